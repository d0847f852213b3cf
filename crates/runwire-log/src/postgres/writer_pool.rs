//! The pool of writers of a node, sharded by thread.
//!
//! While one waits for the disk another works. Each has a connection and a cache of heads of its own, as if it were a
//! node. So any writer may execute any command correctly; but commands for one thread are best executed by one
//! writer, and those for one run must be, so that they keep their order.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::mpsc::error::SendTimeoutError;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::error::PgResult;
use super::open::PgOpenError;
use super::writer::{PgWriter, PgWriterMessage};
use crate::error::LogError;
use crate::info::RunInfo;
use crate::key::{RunKey, ThreadKey};
use crate::limits;
use crate::outbox::Subscriber;
use crate::txn::LogCommand;
use crate::writer_queue::{QUEUE_TIMEOUT, refused};

pub(super) struct WriterPool {
    queues: Vec<mpsc::Sender<PgWriterMessage>>,
    assignments: Mutex<Assignments>,
}

/// The writers of recently written runs, in two generations.
#[derive(Default)]
struct Assignments {
    recent: HashMap<RunKey, Assignment>,
    older: HashMap<RunKey, Assignment>,
}

/// The index of a run's writer, which does not change while this is held.
pub(super) type Assignment = Arc<usize>;

impl Assignments {
    /// Returns the assignment of a run, made if missing.
    fn of(&mut self, run: &RunKey, give: impl FnOnce() -> usize) -> Assignment {
        if let Some(assignment) = self.recent.get(run) {
            return assignment.clone();
        }
        let assignment = self.older.remove(run).unwrap_or_else(|| give().into());
        if self.recent.len() >= limits::ASSIGNED_RUNS {
            let (held, forgotten): (HashMap<_, _>, HashMap<_, _>) =
                self.older.drain().partition(|(_, assignment)| Arc::strong_count(assignment) > 1);
            drop(forgotten);
            self.older = std::mem::replace(&mut self.recent, held);
        }
        self.recent.insert(run.clone(), assignment.clone());
        assignment
    }
}

impl WriterPool {
    /// Starts a writer for each core, up to the limit.
    pub(super) fn open(open: impl Fn() -> PgResult<PgWriter>) -> Result<Self, PgOpenError> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let mut queues = Vec::new();
        for _ in 0..cores.min(limits::WRITERS) {
            let (sender, receiver) = mpsc::channel(limits::WRITER_QUEUE);
            let writer = open()?;
            std::thread::Builder::new()
                .name("log-writer".into())
                .spawn(move || writer.run(receiver))
                .map_err(|error| PgOpenError::Unusable(error.to_string()))?;
            queues.push(sender);
        }
        Ok(Self { queues, assignments: Mutex::default() })
    }

    /// Queues a command.
    pub(super) async fn send(
        &self,
        command: LogCommand,
        message: impl FnOnce(LogCommand, Option<Assignment>) -> PgWriterMessage,
        until: Instant,
    ) -> Result<(), LogError> {
        let (writer, assignment) = self.writer_of(&command);
        send(&self.queues[writer], message(command, assignment), until).await
    }

    /// Sets the subscribers of all writers.
    pub(super) async fn subscribe(&self, subscribers: &[Subscriber]) -> Result<(), LogError> {
        let mut result = Ok(());
        for queue in &self.queues {
            let (reply, answer) = oneshot::channel();
            let here = match send(
                queue,
                PgWriterMessage::Subscribe(subscribers.to_vec(), reply),
                Instant::now() + QUEUE_TIMEOUT,
            )
            .await
            {
                Ok(()) => {
                    answer.await.unwrap_or_else(|_| Err(LogError::Uncertain("the writer has ended".into())))
                }
                Err(error) => Err(error),
            };
            result = result.and(here);
        }
        result
    }

    /// Assigns a created run to the writer of its thread.
    pub(super) fn assign_like_thread(&self, tenant: &str, run: &RunInfo) {
        let thread = ThreadKey::new(tenant, run.thread_id.as_str());
        self.assignment(&RunKey::new(tenant, run.run_id.as_str()), || self.writer_of_thread(&thread));
    }

    /// Returns whether a writer has ended.
    pub(super) fn is_closed(&self) -> bool {
        self.queues.iter().any(mpsc::Sender::is_closed)
    }

    /// Closes all writers, and waits for them.
    pub(super) async fn close(&self) {
        for queue in &self.queues {
            // A writer that has ended is closed.
            let _ = queue.send(PgWriterMessage::Close).await;
        }
        for queue in &self.queues {
            queue.closed().await;
        }
    }

    fn writer_of(&self, command: &LogCommand) -> (usize, Option<Assignment>) {
        match command.routing_key() {
            (thread, Some(run)) => {
                // A run without a thread usually has one of its own name.
                let thread = || thread.unwrap_or_else(|| run.thread(run.id.clone()));
                let assignment = self.assignment(&run, || self.writer_of_thread(&thread()));
                (*assignment, Some(assignment))
            }
            (Some(thread), None) => (self.writer_of_thread(&thread), None),
            (None, None) => (0, None),
        }
    }

    fn assignment(&self, run: &RunKey, give: impl FnOnce() -> usize) -> Assignment {
        self.assignments.lock().unwrap_or_else(PoisonError::into_inner).of(run, give)
    }

    fn writer_of_thread(&self, thread: &ThreadKey) -> usize {
        let mut hasher = DefaultHasher::new();
        thread.hash(&mut hasher);
        (hasher.finish() % self.queues.len() as u64) as usize
    }
}

async fn send(
    queue: &mpsc::Sender<PgWriterMessage>,
    message: PgWriterMessage,
    until: Instant,
) -> Result<(), LogError> {
    let timeout = until.saturating_duration_since(Instant::now());
    queue.send_timeout(message, timeout).await.map_err(|error| match error {
        SendTimeoutError::Timeout(_) => refused("too many requests wait for the store"),
        SendTimeoutError::Closed(_) => refused("the store was closed"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_keeps_its_writer_while_it_is_written_to() {
        let mut assignments = Assignments::default();
        let run = |number: usize| RunKey::new("t", format!("r{number}"));
        assert_eq!(*assignments.of(&run(0), || 1), 1);
        let held = assignments.of(&run(1), || 1);
        for number in 2..5 * limits::ASSIGNED_RUNS {
            assignments.of(&run(number), || 0);
            if number % (limits::ASSIGNED_RUNS / 2) == 0 {
                assert_eq!(*assignments.of(&run(0), || 2), 1);
            }
        }
        assert!(assignments.recent.len() + assignments.older.len() <= 2 * limits::ASSIGNED_RUNS + 1);
        assert_eq!(*assignments.of(&run(2), || 3), 3, "one that was not written to is forgotten");
        assert_eq!(*assignments.of(&run(1), || 3), *held, "but not while something waits for it");
    }
}
