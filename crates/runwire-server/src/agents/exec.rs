//! An agent that is a program.
//!
//! ```text
//! stdout ─▶ lines ─▶ delivery        stderr ─▶ the server's log, and the last lines for the failure
//! stdin  ◀─ the run's start, then answers and cancel, one `runwire` frame a line
//! ```
//!
//! The run goes by what the program says, else by its exit.

mod pipes;

use std::process::{ExitStatus, Stdio};

use runwire_log::FrameBatch;
use runwire_model::event::ErrorInfo;
use runwire_model::framing::{Framing, FramingError, Unframer};
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::Command;
use tokio::time::{Instant, sleep_until};

use super::config::ExecAgent;
use super::delivery::{Delivery, Stop};
use super::ending::{Ending, with_details};
use super::job::Job;
use super::signals::{Follower, Signal};
use crate::limits;
use crate::programs::{GracefulStop, ProcessGroup, exit_signal};
use crate::store_retry::is_outage;
use pipes::LastWords;

/// Runs the program, to the end of its run.
pub(super) async fn run(job: &Job, agent: &ExecAgent, mut delivery: Delivery, mut follower: Follower) {
    let Some(turn) = job.turn(&mut delivery, &mut follower).await else { return };
    let first = match job.given().await {
        Ok(input) => pipes::start_frame(job, input),
        Err(error) if is_outage(&error) => return,
        Err(error) => return job.end(&mut delivery, Ending::failed("not_started", error.to_string())).await,
    };
    let group = match ProcessGroup::start(command(job, agent)) {
        Ok(group) => group,
        Err(error) => {
            let program = agent.command.first().map_or("", String::as_str);
            let message = format!("cannot run `{program}`: {error}");
            return job.end(&mut delivery, Ending::failed("not_started", message)).await;
        }
    };
    let attending = Attending {
        job,
        delivery,
        stopping: GracefulStop::new(job.grace),
        unframer: Unframer::new(Framing::Ndjson),
        cancelled: None,
        is_server_stopping: false,
        stop: None,
    };
    job.beating(attending.look_after(group, first, follower)).await;
    drop(turn);
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
    // Systems bound what a variable holds; the whole is on standard input.
    if message.len() <= limits::MESSAGE_VARIABLE_BYTES && !message.contains('\0') {
        command.env("RUNWIRE_MESSAGE", message);
    }
    command.envs(agent.env.iter().map(|(name, value)| (name, value)));
    if let Some(directory) = &agent.directory {
        command.current_dir(directory);
    }
    command
}

/// A program that is being looked after.
struct Attending<'a> {
    job: &'a Job,
    delivery: Delivery,
    stopping: GracefulStop,
    unframer: Unframer,
    /// Why the run was cancelled, if it was.
    cancelled: Option<Option<String>>,
    is_server_stopping: bool,
    /// Why nothing more is written.
    stop: Option<Stop>,
}

impl Attending<'_> {
    async fn look_after(mut self, mut group: ProcessGroup, first: Vec<u8>, mut follower: Follower) {
        let job = self.job;
        let mut stdout = group.child.stdout.take();
        let feeding = group.child.stdin.take().map(|stdin| {
            let follower = Follower::new(job.log.clone(), Some(&job.run), &job.thread, follower.at());
            tokio::spawn(pipes::feed(stdin, first, follower, job.thread.id.clone()))
        });
        let (words, listening) = pipes::listen(group.child.stderr.take(), job);
        let mut piece = vec![0; limits::AGENT_PIECE_BYTES];
        let (mut status, mut is_followed) = (None, true);
        let mut silent_at = Instant::now();
        let mut given_up_at = silent_at;
        while status.is_none() || stdout.is_some() {
            tokio::select! {
                // An agent that floods its output is still heard to be cancelled.
                biased;
                signals = follower.signals(), if is_followed => {
                    is_followed = !signals.iter().any(|signal| matches!(signal, Signal::Closed { .. }));
                    signals.into_iter().for_each(|signal| self.heed(signal));
                }
                step = self.stopping.step() => group.step(step),
                () = job.server_stops(), if !self.is_server_stopping => {
                    self.is_server_stopping = true;
                    self.stopping.begin(std::time::Duration::ZERO);
                }
                exited = group.child.wait(), if status.is_none() => {
                    status = Some(exited);
                    silent_at = Instant::now() + limits::AGENT_LINGER_TIME;
                    given_up_at = Instant::now() + job.grace;
                }
                count = read(&mut stdout, &mut piece) => {
                    self.take(&piece[..count]).await;
                    if count == 0 {
                        stdout = None;
                    }
                    silent_at = Instant::now() + limits::AGENT_LINGER_TIME;
                }
                // Something that the program has started holds its output open.
                () = sleep_until(silent_at.min(given_up_at)), if status.is_some() => {
                    self.take(&[]).await;
                    stdout = None;
                }
            }
        }
        group.kill_remaining();
        let last_words = words.after(listening).await;
        if let Some(feeding) = feeding {
            feeding.abort();
        }
        self.end(status.and_then(Result::ok), &last_words).await;
    }

    fn heed(&mut self, signal: Signal) {
        match signal {
            Signal::CancelRequested { reason } => {
                self.cancelled.get_or_insert(reason);
                self.stopping.begin(limits::AGENT_READING_TIME);
            }
            // Who has said the end has work to finish, perhaps; anyone else's end is a request to stop.
            Signal::Closed { by_agent: true } => self.stopping.begin(self.job.grace),
            Signal::Closed { by_agent: false } => self.stopping.begin(limits::AGENT_READING_TIME),
            // The program reads them on its standard input.
            Signal::Suspended | Signal::Answered(_) | Signal::Resumed { .. } => {}
        }
    }

    /// Takes in output; none is its end.
    async fn take(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            self.unframer.finish();
        }
        self.unframer.push(bytes);
        if self.stop.is_some() {
            // What is written after the end is read, so that the program need not wait, and dropped.
            while self.unframer.next().is_some() {}
            return;
        }
        if let Err(stop) = self.write().await {
            if !matches!(stop, Stop::Closed) {
                tracing::debug!(run = &*self.job.run.id, agent = self.job.agent.name, %stop, "ending an agent");
                self.stopping.begin(std::time::Duration::ZERO);
            }
            self.stop = Some(stop);
        }
    }

    async fn write(&mut self) -> Result<(), Stop> {
        let mut frames = FrameBatch::default();
        loop {
            let too_long = match self.unframer.next() {
                Some(Ok(frame)) => {
                    frames.push(frame.line, frame.name, frame.data);
                    None
                }
                Some(Err(FramingError::TooLong { line } | FramingError::NameTooLong { line })) => Some(line),
                // Only JSON arrays end like this, and they are not cut here.
                Some(Err(FramingError::NotJson { .. })) | None => return self.delivery.write(frames).await,
            };
            if too_long.is_some() || frames.len() >= limits::BATCH_FRAMES {
                self.delivery.write(std::mem::take(&mut frames)).await?;
            }
            if let Some(line) = too_long {
                self.delivery.too_long(line).await?;
            }
        }
    }

    async fn end(mut self, status: Option<ExitStatus>, last_words: &LastWords) {
        let ending = match self.stop {
            // What is not written now is for the server that has the run next.
            Some(Stop::Log(_) | Stop::Closed | Stop::Fenced) => return,
            Some(Stop::Garbled(message)) => Ending::failed("agent_garbled", message),
            Some(Stop::Refused) => Ending::store_damaged(),
            None => match (self.cancelled, status) {
                (Some(reason), _) => Ending::Cancelled { reason },
                (None, _) if self.is_server_stopping => Ending::server_stopped(),
                (None, Some(status)) if status.success() => Ending::Complete,
                (None, status) => Ending::of(failure(status, last_words)),
            },
        };
        self.job.end(&mut self.delivery, ending).await;
    }
}

/// Reads a piece of the output; one that cannot be read has ended.
async fn read(stdout: &mut Option<impl AsyncRead + Unpin>, piece: &mut [u8]) -> usize {
    match stdout {
        Some(stdout) => stdout.read(piece).await.unwrap_or(0),
        None => std::future::pending().await,
    }
}

/// Tells why a program failed, with its last words.
fn failure(status: Option<ExitStatus>, last_words: &LastWords) -> ErrorInfo {
    let (exit_code, signal) = (status.and_then(|status| status.code()), status.and_then(exit_signal));
    let (code, mut message, details) = match (exit_code, signal) {
        (Some(number), _) => (
            "exit_status",
            format!("the program ended with exit code {number}"),
            json!({"exit_code": number}),
        ),
        (None, Some(number)) => {
            ("killed", format!("the program was ended by signal {number}"), json!({"signal": number}))
        }
        (None, None) => ("exit_status", "the program's end is not known".to_owned(), json!({})),
    };
    let mut details = details;
    if let Some(last) = last_words.last() {
        message.push_str(&format!(": {last}"));
        details["stderr"] = Value::from(last_words.text());
    }
    with_details(ErrorInfo::coded(code, message), &details)
}
