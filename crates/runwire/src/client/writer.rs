//! Writes the frames of one producer with retries, exactly once.

use std::io;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::stream;
use runwire_client::{Client, Error, Problem, RunHandle, ThreadHandle, Upload, UploadReceipt};
use runwire_model::dialect::Dialect;

use super::batch::UploadBatch;
use super::notes::Notes;
use crate::failure::plain;

/// Initial and maximum delay between attempts.
const RETRY_DELAYS: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));
/// Limits the delay that a server may ask for.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(60);
/// Timeout of one attempt.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(60);
/// Interval of heartbeats while there is nothing to write.
pub(crate) const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(3);

/// Limits the threads that get heartbeats: those that were written to last.
const THREADS: usize = 1024;

/// The target of a write: a run, a thread, or the threads that the frames name.
#[derive(Debug, Clone)]
pub(crate) struct WriteTarget {
    pub(crate) client: Client,
    pub(crate) resource: TargetResource,
}

#[derive(Debug, Clone)]
pub(crate) enum TargetResource {
    Run(RunHandle),
    Thread(ThreadHandle),
    /// The threads that were written to so far.
    All(Vec<ThreadHandle>),
}

impl WriteTarget {
    pub(crate) fn run(client: &Client, run: &str) -> Self {
        Self { client: client.clone(), resource: TargetResource::Run(client.run(run)) }
    }

    pub(crate) fn thread(client: &Client, thread: &str) -> Self {
        Self { client: client.clone(), resource: TargetResource::Thread(client.thread(thread)) }
    }

    pub(crate) fn all(client: &Client) -> Self {
        Self { client: client.clone(), resource: TargetResource::All(Vec::new()) }
    }

    pub(crate) fn upload(&self) -> Upload {
        match &self.resource {
            TargetResource::Run(run) => run.upload(),
            TargetResource::Thread(thread) => thread.upload(),
            TargetResource::All(_) => self.client.upload(),
        }
    }

    /// Remembers the threads that were written to.
    fn wrote(&mut self, written: &UploadReceipt) {
        if let TargetResource::All(threads) = &mut self.resource {
            threads.retain(|known| !written.threads.iter().any(|id| known.id() == id));
            threads.extend(written.threads.iter().map(|id| self.client.thread(id)));
            let forgotten = threads.len().saturating_sub(THREADS);
            threads.drain(..forgotten);
        }
    }

    /// Returns the threads that the frames named.
    pub(crate) fn threads(&self) -> Vec<String> {
        match &self.resource {
            TargetResource::All(threads) => threads.iter().map(|thread| thread.id().to_owned()).collect(),
            TargetResource::Run(_) | TargetResource::Thread(_) => Vec::new(),
        }
    }

    /// Renews the leases. Errors are ignored: the next write will fail.
    pub(crate) async fn send_heartbeats(&self) {
        match &self.resource {
            TargetResource::Run(run) => drop(run.heartbeat().await),
            TargetResource::Thread(thread) => self.send_thread_heartbeats(thread).await,
            TargetResource::All(threads) => {
                for thread in threads {
                    self.send_thread_heartbeats(thread).await;
                }
            }
        }
    }

    async fn send_thread_heartbeats(&self, thread: &ThreadHandle) {
        let open = thread.info().await.map(|thread| thread.open_runs).unwrap_or_default();
        for run in open {
            drop(self.client.run(run).heartbeat().await);
        }
    }
}

/// The id and epoch of a producer, and the sequence of its next frame.
#[derive(Debug, Clone)]
pub(crate) struct Producer {
    pub(crate) id: String,
    pub(crate) epoch: Option<u64>,
    pub(crate) next: u64,
}

/// Why a batch was not written completely.
#[derive(Debug)]
pub(crate) enum BatchError {
    /// The server refused the frame at this index; those before it are written.
    Frame { at: usize, problem: Box<Problem> },
    /// The run has ended; the frames before this index are written.
    Closed { at: usize, problem: Box<Problem> },
    /// Any other error.
    Other(Error),
}

/// Writes one producer's frames.
#[derive(Debug)]
pub(crate) struct ProducerWriter {
    pub(crate) target: WriteTarget,
    pub(crate) dialect: Option<Dialect>,
    /// The thread of a new run.
    pub(crate) thread: Option<String>,
    /// Whether a new thread may have several open runs at once.
    pub(crate) parallel: bool,
    pub(crate) producer: Producer,
    /// How long a batch is retried; `None` means forever.
    pub(crate) retry_timeout: Option<Duration>,
    /// Whether the server was ever reached: if not, an unreachable server is an error at once.
    pub(crate) was_reached: bool,
    pub(crate) notes: Notes,
}

impl ProducerWriter {
    /// Writes a batch, and returns once it is durable; `end` ends the run after it.
    ///
    /// Temporary errors are retried until the retry timeout.
    pub(crate) async fn write(
        &mut self,
        batch: &UploadBatch,
        end: bool,
    ) -> Result<UploadReceipt, BatchError> {
        let body = batch.body();
        let (begun, mut wait, mut is_disconnected) = (Instant::now(), RETRY_DELAYS.0, false);
        loop {
            let error = match self.attempt(batch, body.clone(), end).await {
                Ok(written) => {
                    if is_disconnected {
                        self.notes.say("connected again; everything is written");
                    }
                    self.was_reached = true;
                    self.producer.next += batch.len() as u64;
                    self.target.wrote(&written);
                    return Ok(written);
                }
                Err(error) => error,
            };
            let is_absent = matches!(error, Error::Unreachable { .. }) && !self.was_reached;
            if !error.is_temporary() || is_absent {
                return Err(self.fault(error, batch));
            }
            self.was_reached = true;
            let asked = error.retry_after().unwrap_or_default().min(MAX_RETRY_AFTER).max(wait);
            if self.retry_timeout.is_some_and(|limit| begun.elapsed() + asked > limit) {
                return Err(BatchError::Other(error));
            }
            if !std::mem::replace(&mut is_disconnected, true) {
                self.notes.say(&format!("trying again: {}", plain(&error)));
            }
            tokio::time::sleep(asked).await;
            wait = (wait * 2).min(RETRY_DELAYS.1);
        }
    }

    async fn attempt(&self, batch: &UploadBatch, body: Bytes, end: bool) -> Result<UploadReceipt, Error> {
        let Producer { id, epoch, next } = &self.producer;
        let mut upload = self.target.upload().framing(batch.framing()).end(end).parallel(self.parallel);
        upload = upload.producer(id, *epoch, Some(*next));
        if let Some(dialect) = self.dialect {
            upload = upload.dialect(dialect);
        }
        if let Some(thread) = &self.thread {
            upload = upload.thread(thread);
        }
        let sent = upload.send(stream::iter([Ok::<_, io::Error>(body)]));
        let written = match tokio::time::timeout(RESPONSE_TIMEOUT, sent).await {
            Ok(written) => written?,
            Err(_) => {
                let reason = format!("no answer for {} s", RESPONSE_TIMEOUT.as_secs());
                return Err(Error::Broken { url: self.target.client.url(), reason });
            }
        };
        let counted = written.accepted.saturating_add(written.duplicates);
        if counted == batch.len() as u64 {
            return Ok(written);
        }
        let reason = format!("of {} frames it counts {counted}", batch.len());
        Err(Error::Protocol { url: self.target.client.url(), reason })
    }

    /// Converts a refusal, and advances the producer past the frames that are written.
    fn fault(&mut self, error: Error, batch: &UploadBatch) -> BatchError {
        let Error::Refused(problem) = error else { return BatchError::Other(error) };
        let written = problem.accepted().unwrap_or(0).saturating_add(problem.duplicates().unwrap_or(0));
        let at = usize::try_from(written).unwrap_or(usize::MAX).min(batch.len());
        self.producer.next += at as u64;
        match problem.code() {
            Some("run_closed") => BatchError::Closed { at, problem },
            Some("dialect_pinned" | "dialect_ambiguous" | "producer_gap") => {
                BatchError::Other(Error::Refused(problem))
            }
            // The problem has a line if a frame was refused, not the run, thread or producer.
            _ if problem.line().is_some() && at < batch.len() && is_of_a_frame(&problem) => {
                BatchError::Frame { at, problem }
            }
            _ => BatchError::Other(Error::Refused(problem)),
        }
    }
}

/// Returns true if the problem is about this frame only.
fn is_of_a_frame(problem: &Problem) -> bool {
    matches!(problem.status(), 400 | 413 | 422)
}
