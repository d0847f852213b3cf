//! Runs an agent that is a program.
//!
//! ```text
//! stdout ─▶ lines ─▶ delivery        stderr ─▶ the server's log, and the last lines for the failure
//! stdin  ◀─ the run's start, then answers and cancel, one `runwire` frame a line
//! ```
//!
//! The program's output decides the outcome of the run, else its exit status.

mod stdio;

use std::process::{ExitStatus, Stdio};

use runwire_log::FrameBatch;
use runwire_model::RunFailureCode;
use runwire_model::event::ErrorInfo;
use runwire_model::framing::{Framing, FramingError, Unframer};
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::Command;
use tokio::time::{Instant, sleep_until};

use super::agent_writer::{AgentWriteError, AgentWriter};
use super::config::ExecAgent;
use super::job::Job;
use super::outcome::{AgentOutcome, with_details};
use super::signals::{RecordFollower, RunSignal};
use crate::limits;
use crate::programs::{GracefulStop, ProcessGroup, exit_signal};
use runwire_log::outage::is_outage;
use stdio::StderrTail;

/// Runs the program until its run ends.
pub(super) async fn run(job: &Job, agent: &ExecAgent, mut writer: AgentWriter, mut follower: RecordFollower) {
    let Some(permit) = job.acquire_run_permit(&mut writer, &mut follower).await else { return };
    let first = match job.full_input().await {
        Ok(input) => stdio::start_frame(job, input),
        Err(error) if is_outage(&error) => return,
        Err(error) => {
            return job
                .end(&mut writer, AgentOutcome::failed(RunFailureCode::NotStarted, error.to_string()))
                .await;
        }
    };
    let group = match ProcessGroup::start(command(job, agent)) {
        Ok(group) => group,
        Err(error) => {
            let program = agent.command.first().map_or("", String::as_str);
            let message = format!("cannot run `{program}`: {error}");
            return job.end(&mut writer, AgentOutcome::failed(RunFailureCode::NotStarted, message)).await;
        }
    };
    let supervisor = ProgramSupervisor {
        job,
        writer,
        graceful_stop: GracefulStop::new(job.grace),
        unframer: Unframer::new(Framing::Ndjson),
        cancelled: None,
        is_server_stopping: false,
        write_error: None,
    };
    job.with_heartbeat(supervisor.supervise(group, first, follower)).await;
    drop(permit);
}

fn command(job: &Job, agent: &ExecAgent) -> Command {
    let mut words = agent.command.iter();
    let mut command = Command::new(words.next().map_or("", String::as_str));
    command.args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let variables = [("RUN", &*job.run.id), ("THREAD", &*job.thread.id), ("AGENT", job.agent.name.as_str())];
    for (name, value) in variables {
        command.env(format!("RUNWIRE_{name}"), value);
    }
    let message = job.input.message.as_deref().unwrap_or_default();
    // Systems limit the size of a variable; standard input has the whole message.
    if message.len() <= limits::MESSAGE_VARIABLE_BYTES && !message.contains('\0') {
        command.env("RUNWIRE_MESSAGE", message);
    }
    command.envs(agent.env.iter().map(|(name, value)| (name, value)));
    if let Some(directory) = &agent.directory {
        command.current_dir(directory);
    }
    command
}

/// Supervises a running program.
struct ProgramSupervisor<'a> {
    job: &'a Job,
    writer: AgentWriter,
    graceful_stop: GracefulStop,
    unframer: Unframer,
    /// The reason of a cancel request, if there was one.
    cancelled: Option<Option<String>>,
    is_server_stopping: bool,
    /// Why no more output is written.
    write_error: Option<AgentWriteError>,
}

impl ProgramSupervisor<'_> {
    async fn supervise(mut self, mut group: ProcessGroup, first: Vec<u8>, mut follower: RecordFollower) {
        let job = self.job;
        let mut stdout = group.child.stdout.take();
        let stdin_task = group.child.stdin.take().map(|stdin| {
            let follower = RecordFollower::new(job.log.clone(), Some(&job.run), &job.thread, follower.at());
            tokio::spawn(stdio::write_stdin(stdin, first, follower, job.thread.id.clone()))
        });
        let (tail, stderr_task) = stdio::log_stderr(group.child.stderr.take(), job);
        let mut buffer = vec![0; limits::AGENT_READ_BYTES];
        let (mut status, mut is_following) = (None, true);
        let mut silence_deadline = Instant::now();
        let mut grace_deadline = silence_deadline;
        while status.is_none() || stdout.is_some() {
            tokio::select! {
                // Polled first: an agent that floods its output can still be cancelled.
                biased;
                signals = follower.signals(), if is_following => {
                    is_following = !signals.iter().any(|signal| matches!(signal, RunSignal::Closed { .. }));
                    signals.into_iter().for_each(|signal| self.handle_signal(signal));
                }
                step = self.graceful_stop.step() => group.step(step),
                () = job.server_stops(), if !self.is_server_stopping => {
                    self.is_server_stopping = true;
                    self.graceful_stop.begin(std::time::Duration::ZERO);
                }
                exited = group.child.wait(), if status.is_none() => {
                    status = Some(exited);
                    silence_deadline = Instant::now() + limits::AGENT_OUTPUT_TIME;
                    grace_deadline = Instant::now() + job.grace;
                }
                count = read(&mut stdout, &mut buffer) => {
                    self.handle_output(&buffer[..count]).await;
                    if count == 0 {
                        stdout = None;
                    }
                    silence_deadline = Instant::now() + limits::AGENT_OUTPUT_TIME;
                }
                // A child of the program still holds its output open.
                () = sleep_until(silence_deadline.min(grace_deadline)), if status.is_some() => {
                    self.handle_output(&[]).await;
                    stdout = None;
                }
            }
        }
        group.kill_remaining();
        let stderr_tail = tail.after(stderr_task).await;
        if let Some(stdin_task) = stdin_task {
            stdin_task.abort();
        }
        self.end(status.and_then(Result::ok), &stderr_tail).await;
    }

    fn handle_signal(&mut self, signal: RunSignal) {
        match signal {
            RunSignal::CancelRequested { reason } => {
                self.cancelled.get_or_insert(reason);
                self.graceful_stop.begin(limits::AGENT_CANCEL_TIME);
            }
            // A program that ended the run itself may have work to finish; otherwise the end is a request to stop.
            RunSignal::Closed { by_agent: true } => self.graceful_stop.begin(self.job.grace),
            RunSignal::Closed { by_agent: false } => self.graceful_stop.begin(limits::AGENT_CANCEL_TIME),
            // The program gets these on its standard input.
            RunSignal::Suspended | RunSignal::Answered(_) | RunSignal::Resumed { .. } => {}
        }
    }

    /// Handles output; empty bytes mean its end.
    async fn handle_output(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            self.unframer.finish();
        }
        self.unframer.push(bytes);
        if self.write_error.is_some() {
            // Output after an error is read and discarded, so that the program does not block.
            while self.unframer.next().is_some() {}
            return;
        }
        if let Err(error) = self.write().await {
            if !matches!(error, AgentWriteError::Closed) {
                tracing::debug!(run = &*self.job.run.id, agent = self.job.agent.name, %error, "stopping an agent");
                self.graceful_stop.begin(std::time::Duration::ZERO);
            }
            self.write_error = Some(error);
        }
    }

    async fn write(&mut self) -> Result<(), AgentWriteError> {
        let mut frames = FrameBatch::default();
        loop {
            let too_long = match self.unframer.next() {
                Some(Ok(frame)) => {
                    frames.push(frame.line, frame.name, frame.data);
                    None
                }
                Some(Err(FramingError::TooLong { line } | FramingError::NameTooLong { line })) => Some(line),
                // Only the JSON array framing has this error.
                Some(Err(FramingError::NotJson { .. })) | None => return self.writer.write(frames).await,
            };
            if too_long.is_some() || frames.len() >= runwire_producer::limits::BATCH_FRAMES {
                self.writer.write(std::mem::take(&mut frames)).await?;
            }
            if let Some(line) = too_long {
                self.writer.skip_too_long(line).await?;
            }
        }
    }

    async fn end(mut self, status: Option<ExitStatus>, stderr_tail: &StderrTail) {
        let outcome = match self.write_error {
            // Left to the server that claims the run.
            Some(AgentWriteError::Log(_) | AgentWriteError::Closed | AgentWriteError::Fenced) => return,
            Some(AgentWriteError::Garbled(message)) => {
                AgentOutcome::failed(RunFailureCode::AgentGarbled, message)
            }
            Some(AgentWriteError::Refused) => AgentOutcome::store_damaged(),
            None => match (self.cancelled, status) {
                (Some(reason), _) => AgentOutcome::Cancelled { reason },
                (None, _) if self.is_server_stopping => AgentOutcome::server_stopped(),
                (None, Some(status)) if status.success() => AgentOutcome::Complete,
                (None, status) => AgentOutcome::of(failure(status, stderr_tail)),
            },
        };
        self.job.end(&mut self.writer, outcome).await;
    }
}

/// Reads output; returns 0 at the end or on an error.
async fn read(stdout: &mut Option<impl AsyncRead + Unpin>, buffer: &mut [u8]) -> usize {
    match stdout {
        Some(stdout) => stdout.read(buffer).await.unwrap_or(0),
        None => std::future::pending().await,
    }
}

/// Creates the error of a failed program: its exit status and the tail of its standard error.
fn failure(status: Option<ExitStatus>, stderr_tail: &StderrTail) -> ErrorInfo {
    let (exit_code, signal) = (status.and_then(|status| status.code()), status.and_then(exit_signal));
    let (code, mut message, details) = match (exit_code, signal) {
        (Some(number), _) => (
            RunFailureCode::ExitStatus,
            format!("the program ended with exit code {number}"),
            json!({"exit_code": number}),
        ),
        (None, Some(number)) => (
            RunFailureCode::Killed,
            format!("the program was ended by signal {number}"),
            json!({"signal": number}),
        ),
        (None, None) => (RunFailureCode::ExitStatus, "the program's end is not known".to_owned(), json!({})),
    };
    let mut details = details;
    if let Some(last) = stderr_tail.last() {
        message.push_str(&format!(": {last}"));
        details["stderr"] = Value::from(stderr_tail.text());
    }
    with_details(code.error(message), &details)
}
