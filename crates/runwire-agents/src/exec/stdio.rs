//! Standard input and standard error of an agent's program.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use runwire_model::Json;
use runwire_model::event::{Event, RunStarted};
use runwire_model::framing::{Framing, Unframer};
use runwire_model::json::ObjectWriter;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{ChildStderr, ChildStdin};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::job::Job;
use crate::limits;
use crate::signals::{RecordFollower, producer_frames_in};

/// Writes the first line of a program's input: the start of its run.
pub(super) fn start_frame(job: &Job, input: Option<Json>) -> Vec<u8> {
    let started = RunStarted {
        message: job.input.message.clone(),
        message_id: job.input.message_id.clone(),
        agent: Some(job.agent.name.clone()),
        input,
        ..Default::default()
    };
    let mut line = Vec::new();
    let mut object = ObjectWriter::begin(&mut line);
    object.str("thread_id", &job.thread.id);
    object.str("run_id", &job.run.id);
    Event::new(started).write(&mut object);
    object.end();
    line.push(b'\n');
    line
}

/// Writes a program's input: the first line, then signals until the run ends.
///
/// A program that does not read blocks only this task.
pub(super) async fn write_stdin(
    mut stdin: ChildStdin,
    first: Vec<u8>,
    mut follower: RecordFollower,
    thread: Arc<str>,
) {
    let mut lines = first;
    loop {
        // The program has closed its input.
        if stdin.write_all(&lines).await.is_err() || stdin.flush().await.is_err() {
            return;
        }
        lines.clear();
        let Some(records) = follower.records().await else { return };
        for stored in &records {
            for frame in producer_frames_in(stored, &thread) {
                lines.extend_from_slice(frame.as_bytes());
                lines.push(b'\n');
            }
            if stored.is_terminal() {
                let _ = stdin.write_all(&lines).await;
                return;
            }
        }
    }
}

/// The last lines of a program's standard error.
#[derive(Debug, Clone, Default)]
pub(super) struct StderrTail(Arc<Mutex<VecDeque<String>>>);

impl StderrTail {
    fn push(&self, line: &[u8]) {
        let line = truncated(line);
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() == limits::STDERR_LINES {
            lines.pop_front();
        }
        lines.push_back(line);
    }

    /// Returns the last line.
    pub(super) fn last(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).back().cloned()
    }

    /// Returns all kept lines.
    pub(super) fn text(&self) -> String {
        let lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lines.iter().map(String::as_str).collect::<Vec<_>>().join("\n")
    }

    /// Waits briefly for the rest of the program's standard error.
    pub(super) async fn after(self, stderr_task: JoinHandle<()>) -> Self {
        let abort = stderr_task.abort_handle();
        if timeout(limits::AGENT_OUTPUT_TIME, stderr_task).await.is_err() {
            abort.abort();
        }
        self
    }
}

fn truncated(line: &[u8]) -> String {
    let line = String::from_utf8_lossy(line);
    line[..line.floor_char_boundary(limits::STDERR_LINE_BYTES)].to_owned()
}

/// Rate limit of a program's lines in the server's log.
struct LogRateLimit {
    since: Instant,
    logged: u64,
    suppressed: u64,
}

impl LogRateLimit {
    /// Returns the number of lines suppressed before this one; none if this line is suppressed, too.
    fn take(&mut self) -> Option<u64> {
        if self.since.elapsed() >= Duration::from_secs(1) {
            (self.since, self.logged) = (Instant::now(), 0);
        }
        if self.logged == limits::STDERR_LOGGED_LINES {
            self.suppressed += 1;
            return None;
        }
        self.logged += 1;
        Some(std::mem::take(&mut self.suppressed))
    }
}

/// Logs a program's standard error and keeps its last lines.
pub(super) fn log_stderr(stderr: Option<ChildStderr>, job: &Job) -> (StderrTail, JoinHandle<()>) {
    let tail = StderrTail::default();
    let (kept, run, agent) = (tail.clone(), job.run.id.clone(), job.agent.clone());
    let stderr_task = tokio::spawn(async move {
        let Some(mut stderr) = stderr else { return };
        let mut lines = Unframer::new(Framing::Ndjson);
        let mut piece = vec![0; limits::AGENT_READ_BYTES];
        let mut rate_limit = LogRateLimit { since: Instant::now(), logged: 0, suppressed: 0 };
        let warn_suppressed = |lines: u64| {
            if lines > 0 {
                let agent = &agent.name;
                tracing::warn!(
                    run = &*run,
                    agent,
                    lines,
                    "too many lines of standard error: not all are logged"
                );
            }
        };
        loop {
            let count = stderr.read(&mut piece).await.unwrap_or(0);
            if count == 0 {
                lines.finish();
            }
            lines.push(&piece[..count]);
            while let Some(line) = lines.next() {
                // Lines above the frame size limit are dropped.
                let Ok(line) = line else { continue };
                if let Some(suppressed) = rate_limit.take() {
                    warn_suppressed(suppressed);
                    tracing::info!(run = &*run, agent = agent.name, stderr = ?truncated(line.data));
                }
                kept.push(line.data);
            }
            if count == 0 {
                return warn_suppressed(rate_limit.suppressed);
            }
        }
    });
    (tail, stderr_task)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_of_standard_error_does_not_fill_the_log() {
        // A second that lasts.
        let since = Instant::now() + Duration::from_secs(3600);
        let mut rate_limit = LogRateLimit { since, logged: 0, suppressed: 0 };
        let logged = (0..10_000).filter(|_| rate_limit.take().is_some()).count() as u64;
        assert_eq!(logged, limits::STDERR_LOGGED_LINES);
        rate_limit.since = Instant::now() - Duration::from_secs(1);
        assert_eq!(
            rate_limit.take(),
            Some(10_000 - limits::STDERR_LOGGED_LINES),
            "what was left out is told"
        );
    }
}
