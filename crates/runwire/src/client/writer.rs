//! Frames of one producer, sent until they are acknowledged and never written twice.

use std::io;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::stream;
use runwire_client::{Client, Error, Problem, RunHandle, ThreadHandle, Upload, UploadReceipt};
use runwire_model::dialect::Dialect;

use super::batch::Batch;
use super::notes::Notes;
use crate::failure::plain;

/// Waits between attempts: the first, and the longest that it grows to.
const WAITS: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));
/// The longest wait that a server may ask for.
const LONGEST_ASKED: Duration = Duration::from_secs(60);
/// How long a server may take to write a batch before the attempt counts as lost.
const ANSWER_TIME: Duration = Duration::from_secs(60);
/// Time of silence after which a sign of life is sent, so that the run's lease lasts.
pub(crate) const BEAT_TIME: Duration = Duration::from_secs(3);

/// Threads of one stream whose runs are kept alive while it is silent: those that were written to last.
const THREADS: usize = 1024;

/// What is written to: a run, a thread, or the threads that the frames name.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) client: Client,
    pub(crate) goal: Goal,
}

#[derive(Debug, Clone)]
pub(crate) enum Goal {
    Run(RunHandle),
    Thread(ThreadHandle),
    /// The threads that were written to so far.
    All(Vec<ThreadHandle>),
}

impl Place {
    pub(crate) fn run(client: &Client, run: &str) -> Self {
        Self { client: client.clone(), goal: Goal::Run(client.run(run)) }
    }

    pub(crate) fn thread(client: &Client, thread: &str) -> Self {
        Self { client: client.clone(), goal: Goal::Thread(client.thread(thread)) }
    }

    pub(crate) fn all(client: &Client) -> Self {
        Self { client: client.clone(), goal: Goal::All(Vec::new()) }
    }

    pub(crate) fn upload(&self) -> Upload {
        match &self.goal {
            Goal::Run(run) => run.upload(),
            Goal::Thread(thread) => thread.upload(),
            Goal::All(_) => self.client.upload(),
        }
    }

    /// Takes note of the threads that were written to.
    fn wrote(&mut self, written: &UploadReceipt) {
        if let Goal::All(threads) = &mut self.goal {
            threads.retain(|known| !written.threads.iter().any(|id| known.id() == id));
            threads.extend(written.threads.iter().map(|id| self.client.thread(id)));
            let forgotten = threads.len().saturating_sub(THREADS);
            threads.drain(..forgotten);
        }
    }

    /// Lists the threads that the frames named, as far as they are known.
    pub(crate) fn threads(&self) -> Vec<String> {
        match &self.goal {
            Goal::All(threads) => threads.iter().map(|thread| thread.id().to_owned()).collect(),
            Goal::Run(_) | Goal::Thread(_) => Vec::new(),
        }
    }

    /// Keeps the leases. What is wrong will meet the next write.
    pub(crate) async fn beat(&self) {
        match &self.goal {
            Goal::Run(run) => drop(run.heartbeat().await),
            Goal::Thread(thread) => self.beat_thread(thread).await,
            Goal::All(threads) => {
                for thread in threads {
                    self.beat_thread(thread).await;
                }
            }
        }
    }

    async fn beat_thread(&self, thread: &ThreadHandle) {
        let open = thread.info().await.map(|thread| thread.open_runs).unwrap_or_default();
        for run in open {
            drop(self.client.run(run).heartbeat().await);
        }
    }
}

/// Who writes: its name, its incarnation, and the index of the next frame.
#[derive(Debug, Clone)]
pub(crate) struct Producer {
    pub(crate) id: String,
    pub(crate) epoch: Option<u64>,
    pub(crate) next: u64,
}

/// Why a batch is not wholly written.
#[derive(Debug)]
pub(crate) enum Fault {
    /// The server does not take the frame at this place of the batch; those before it are written.
    Frame { at: usize, problem: Box<Problem> },
    /// The run has ended; the frames before this place are written.
    Closed { at: usize, problem: Box<Problem> },
    /// Nothing can be written any more.
    Other(Error),
}

/// Writes one producer's frames.
#[derive(Debug)]
pub(crate) struct Writer {
    pub(crate) place: Place,
    pub(crate) dialect: Option<Dialect>,
    /// The thread of a run that this creates.
    pub(crate) thread: Option<String>,
    /// Whether a thread that this creates has several runs at once.
    pub(crate) parallel: bool,
    pub(crate) producer: Producer,
    /// How long a server may be away; without a limit, for ever.
    pub(crate) patience: Option<Duration>,
    /// Whether the server has ever answered: one that is not there at the very beginning is told at once.
    pub(crate) was_there: bool,
    pub(crate) notes: Notes,
}

impl Writer {
    /// Writes a batch, and returns once it is on disk; `end` ends the run after it.
    ///
    /// A server that is away, restarting or overloaded is tried again for as long as patience lasts.
    pub(crate) async fn write(&mut self, batch: &Batch, end: bool) -> Result<UploadReceipt, Fault> {
        let body = batch.body();
        let (begun, mut wait, mut is_cut) = (Instant::now(), WAITS.0, false);
        loop {
            let error = match self.attempt(batch, body.clone(), end).await {
                Ok(written) => {
                    if is_cut {
                        self.notes.say("connected again; everything is written");
                    }
                    self.was_there = true;
                    self.producer.next += batch.len() as u64;
                    self.place.wrote(&written);
                    return Ok(written);
                }
                Err(error) => error,
            };
            let is_absent = matches!(error, Error::Unreachable { .. }) && !self.was_there;
            if !error.is_temporary() || is_absent {
                return Err(self.fault(error, batch));
            }
            self.was_there = true;
            let asked = error.retry_after().unwrap_or_default().min(LONGEST_ASKED).max(wait);
            if self.patience.is_some_and(|patience| begun.elapsed() + asked > patience) {
                return Err(Fault::Other(error));
            }
            if !std::mem::replace(&mut is_cut, true) {
                self.notes.say(&format!("trying again: {}", plain(&error)));
            }
            tokio::time::sleep(asked).await;
            wait = (wait * 2).min(WAITS.1);
        }
    }

    async fn attempt(&self, batch: &Batch, body: Bytes, end: bool) -> Result<UploadReceipt, Error> {
        let Producer { id, epoch, next } = &self.producer;
        let mut upload = self.place.upload().framing(batch.framing()).end(end).parallel(self.parallel);
        upload = upload.producer(id, *epoch, Some(*next));
        if let Some(dialect) = self.dialect {
            upload = upload.dialect(dialect);
        }
        if let Some(thread) = &self.thread {
            upload = upload.thread(thread);
        }
        let sent = upload.send(stream::iter([Ok::<_, io::Error>(body)]));
        let written = match tokio::time::timeout(ANSWER_TIME, sent).await {
            Ok(written) => written?,
            Err(_) => {
                let reason = format!("no answer for {} s", ANSWER_TIME.as_secs());
                return Err(Error::Broken { url: self.place.client.url(), reason });
            }
        };
        let counted = written.accepted.saturating_add(written.duplicates);
        if counted == batch.len() as u64 {
            return Ok(written);
        }
        let reason = format!("of {} frames it counts {counted}", batch.len());
        Err(Error::Protocol { url: self.place.client.url(), reason })
    }

    /// Tells what a refusal means for the frames, and counts those that are written nevertheless.
    fn fault(&mut self, error: Error, batch: &Batch) -> Fault {
        let Error::Refused(problem) = error else { return Fault::Other(error) };
        let written = problem.accepted().unwrap_or(0).saturating_add(problem.duplicates().unwrap_or(0));
        let at = usize::try_from(written).unwrap_or(usize::MAX).min(batch.len());
        self.producer.next += at as u64;
        match problem.code() {
            Some("run_closed") => Fault::Closed { at, problem },
            Some("dialect_pinned" | "dialect_ambiguous" | "producer_gap") => {
                Fault::Other(Error::Refused(problem))
            }
            // A line is named where a frame is at fault, and not the run, the thread or the producer.
            _ if problem.line().is_some() && at < batch.len() && is_of_a_frame(&problem) => {
                Fault::Frame { at, problem }
            }
            _ => Fault::Other(Error::Refused(problem)),
        }
    }
}

/// Tells whether another frame could be written in its place.
fn is_of_a_frame(problem: &Problem) -> bool {
    matches!(problem.status(), 400 | 413 | 422)
}
