//! The embedded store: one SQLite file, one writer thread, and a pool of read connections.
//!
//! WAL with `synchronous=FULL`: a commit is on disk before it is acknowledged or seen. Any SQLite tool can open the
//! file; a lock file beside it keeps a second server away.

mod connection_slot;
mod error;
mod events;
mod inbox;
mod leases;
mod message_queue;
mod node;
mod open;
mod orphans;
mod outbox;
mod pending_commits;
mod reader;
mod retention;
mod rows;
mod schema;
mod sql;
mod txn_store;
mod unflushed;
mod wal_checkpointer;
mod writer;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use runwire_model::Timestamp;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{Semaphore, mpsc, oneshot, watch};
use tokio::time::{Instant, timeout_at};

use crate::error::LogError;
use crate::limits;
use crate::stats::WriteCounters;
use crate::store::{ReadScope, StoreHandle, TrimCommand};
use crate::tail::Tails;
use crate::txn::{LogCommand, Pending, clock};
use crate::unreadable_rows::UnreadableRows;
use crate::waiting_checkpoints::WaitingCheckpoints;
use crate::writer_queue::{QUEUE_TIMEOUT, QueueBytes, refused};
pub use open::SqliteOpenError;
use orphans::Orphans;
use reader::SqliteReader;
use unflushed::Unflushed;
use writer::SqliteWriterMessage;

/// Options of the store.
#[derive(Clone)]
pub struct SqliteOptions {
    /// Duration of a run's lease.
    pub lease: Duration,
    /// Grace period of a cancelled run.
    pub cancel_grace: Duration,
    /// How long the writer must have had nothing to do before it stores checkpoints by themselves.
    pub checkpoint_idle: Duration,
    /// The clock: the machine's, except in tests that cannot wait for a week.
    pub clock: Arc<dyn Fn() -> Timestamp + Send + Sync>,
    /// Called when the store has failed; the process should end rather than guess what was written.
    pub fatal: Arc<dyn Fn(&str) + Send + Sync>,
}

impl Default for SqliteOptions {
    fn default() -> Self {
        Self {
            lease: Duration::from_secs(limits::LEASE_SECONDS),
            cancel_grace: Duration::from_secs(limits::CANCEL_SECONDS),
            checkpoint_idle: Duration::from_millis(limits::CHECKPOINT_IDLE_MILLIS),
            clock: Arc::new(clock),
            fatal: Arc::new(|_| {}),
        }
    }
}

/// Number of read connections.
const READERS: usize = 4;

/// A log in one SQLite file.
pub struct SqliteLog {
    path: PathBuf,
    requests: mpsc::Sender<SqliteWriterMessage>,
    queue_bytes: QueueBytes,
    tails: Arc<Tails>,
    unflushed: Arc<Unflushed>,
    checkpoints: Arc<WaitingCheckpoints>,
    outbox_changed: Arc<watch::Sender<()>>,
    write_counters: Arc<WriteCounters>,
    clock: Arc<dyn Fn() -> Timestamp + Send + Sync>,
    idle: Arc<Mutex<Vec<SqliteReader>>>,
    readers: Arc<Semaphore>,
    orphans: Arc<tokio::sync::Mutex<Orphans>>,
    unreadable: Arc<UnreadableRows>,
}

impl std::fmt::Debug for SqliteLog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SqliteLog").field("path", &self.path).finish_non_exhaustive()
    }
}

impl SqliteLog {
    async fn send<T>(
        &self,
        message: impl FnOnce(oneshot::Sender<Result<T, LogError>>) -> SqliteWriterMessage,
    ) -> Result<T, LogError> {
        let (reply, answer) = oneshot::channel();
        self.requests.send(message(reply)).await.map_err(|_| stopped())?;
        answer.await.map_err(|_| stopped())?
    }

    /// Reads on a blocking thread, with a pooled connection, and sees what is pending of the scope.
    async fn reading<T: Send + 'static>(
        &self,
        scope: ReadScope,
        read: impl FnOnce(&mut SqliteReader) -> Result<T, LogError> + Send + 'static,
    ) -> Result<T, LogError> {
        let unavailable = |error: &dyn std::fmt::Display| LogError::Unavailable(error.to_string());
        let permit = self.readers.clone().acquire_owned().await.map_err(|error| unavailable(&error))?;
        let (idle, path, unreadable) = (self.idle.clone(), self.path.clone(), self.unreadable.clone());
        let unflushed = self.unflushed.clone();
        let reading = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            let reader = idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let mut reader = match reader {
                Some(reader) => reader,
                None => SqliteReader::open(&path, unreadable, unflushed)?,
            };
            let result = reader.in_snapshot(&scope, read);
            // A failed statement may have left a transaction open.
            if reader.connection.is_autocommit() {
                idle.lock().unwrap_or_else(PoisonError::into_inner).push(reader);
            }
            result
        });
        reading.await.map_err(|error| unavailable(&error))?
    }
}

fn stopped() -> LogError {
    LogError::Unavailable("the store has stopped".into())
}

impl StoreHandle for SqliteLog {
    type Reader = SqliteReader;

    async fn submit<C: Send, T: Send + 'static>(
        &self,
        request: C,
        command: impl FnOnce(Pending<C, T>) -> LogCommand + Send,
    ) -> Result<T, LogError> {
        let (reply, answer) = oneshot::channel();
        let command = command(Pending::new(request, reply));
        let until = Instant::now() + QUEUE_TIMEOUT;
        let queue_bytes = self.queue_bytes.acquire(command.bytes(), until).await?;
        match self.requests.try_send(SqliteWriterMessage::Command(command, queue_bytes)) {
            Ok(()) => {}
            Err(TrySendError::Closed(_)) => return Err(stopped()),
            Err(TrySendError::Full(message)) => {
                let queued = timeout_at(until, self.requests.send(message)).await;
                queued
                    .map_err(|_| refused("too many commands wait for the store"))?
                    .map_err(|_| stopped())?;
            }
        }
        answer.await.map_err(|_| stopped())?
    }

    async fn read_in<T: Send + 'static>(
        &self,
        scope: ReadScope,
        read: impl Fn(&mut SqliteReader) -> Result<T, LogError> + Send + 'static,
    ) -> Result<T, LogError> {
        self.reading(scope, read).await
    }

    fn unreadable(&self) -> &UnreadableRows {
        &self.unreadable
    }

    async fn now(&self) -> Result<Timestamp, LogError> {
        Ok((self.clock)())
    }

    async fn trim_thread(&self, trim: TrimCommand) -> Result<usize, LogError> {
        let until = Instant::now() + QUEUE_TIMEOUT;
        let queue_bytes = self.queue_bytes.acquire(trim.bytes(), until).await?;
        self.send(|reply| SqliteWriterMessage::Trim(trim, queue_bytes, reply)).await
    }
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Waker};

    use super::*;
    use crate::append::{Append, FrameBatch, Target};
    use crate::key::RunKey;
    use crate::log::{AppendReply, LogEvents, LogLookups, LogNode, QueuedAppend, ReplySink};

    fn append(run: &str, bytes: usize) -> Append {
        let mut frames = FrameBatch::default();
        let text = "x".repeat(bytes);
        frames.push(1, None, format!(r#"{{"type":"run.started","padding":"{text}"}}"#).as_bytes());
        Append {
            target: Target::Run(RunKey::new("tenant", run)),
            thread: None,
            dialect: None,
            stamp: None,
            frames,
            end: false,
            check: Default::default(),
            whole: Default::default(),
            parallel: false,
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn the_bytes_of_waiting_commands_are_bounded() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log.db");
        let mut log = SqliteLog::open(&path, SqliteOptions::default()).unwrap();
        log.queue_bytes = QueueBytes::new(1000);
        let other = rusqlite::Connection::open(&path).unwrap();
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        // The first command waits for the file, and keeps its share of the bytes until it is answered.
        let (mut first, mut second) = (log.append(append("first", 600)), log.append(append("second", 600)));
        let mut context = Context::from_waker(Waker::noop());
        assert!(first.as_mut().poll(&mut context).is_pending());
        assert!(second.as_mut().poll(&mut context).is_pending());
        let (reply, _answer) = oneshot::channel();
        let third = LogCommand::append(Pending::new(append("third", 600), reply));
        let refused = log.queue_bytes.acquire(third.bytes(), Instant::now()).await;
        assert!(
            matches!(&refused, Err(LogError::Unavailable(why)) if why.contains("too many bytes")),
            "{refused:?}"
        );
        assert!(log.requests.capacity() >= limits::WRITER_QUEUE - 1, "the second is not queued");
        other.execute_batch("COMMIT").unwrap();
        assert_eq!(first.await.unwrap().accepted, 1);
        assert_eq!(second.await.unwrap().accepted, 1);
        log.close().await;
    }

    #[derive(Default)]
    struct Replies(Mutex<Vec<(u64, bool)>>, tokio::sync::Notify);

    impl Replies {
        /// Waits until there are so many: a command's own reply may overtake those of a sink.
        async fn wait_for(&self, count: usize) {
            while self.0.lock().unwrap().len() < count {
                self.1.notified().await;
            }
        }
    }

    impl ReplySink for Replies {
        fn deliver(&self, replies: Vec<AppendReply>) {
            let replies = replies.iter().map(|reply| (reply.ticket, reply.result.is_ok()));
            self.0.lock().unwrap().extend(replies);
            self.1.notify_one();
        }
    }

    fn queued(tickets: std::ops::Range<u64>, bytes: usize) -> Vec<QueuedAppend> {
        let queued = |ticket| QueuedAppend { append: append(&format!("r{ticket}"), bytes), ticket };
        tickets.map(queued).collect()
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn submitted_appends_are_answered_once_or_given_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log.db");
        let mut log = SqliteLog::open(&path, SqliteOptions::default()).unwrap();
        log.queue_bytes = QueueBytes::new(1000);
        let replies = Arc::new(Replies::default());
        let sink: Arc<dyn ReplySink> = replies.clone();
        let other = rusqlite::Connection::open(&path).unwrap();
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        assert!(log.submit_appends(queued(0..2, 300), &sink).is_empty());
        // There is no space for these until the first are answered.
        let returned: Vec<_> =
            log.submit_appends(queued(2..4, 300), &sink).iter().map(|back| back.ticket).collect();
        assert_eq!(returned, [2, 3]);
        assert!(replies.0.lock().unwrap().is_empty(), "nothing is answered before its commit");
        other.execute_batch("COMMIT").unwrap();
        // A command behind them is committed after them, or with them.
        log.append(append("last", 10)).await.unwrap();
        replies.wait_for(2).await;
        assert_eq!(*replies.0.lock().unwrap(), [(0, true), (1, true)]);
        log.close().await;
        assert!(log.submit_appends(queued(5..7, 10), &sink).is_empty());
        assert_eq!(replies.0.lock().unwrap()[2..], [(5, false), (6, false)]);
        let reopened = SqliteLog::open(&path, SqliteOptions::default()).unwrap();
        for (run, is_there) in [("r0", true), ("r1", true), ("r2", false), ("r5", false)] {
            assert_eq!(reopened.run(&RunKey::new("tenant", run)).await.is_ok(), is_there, "{run}");
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_full_queue_gives_submitted_appends_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log.db");
        let log = SqliteLog::open(&path, SqliteOptions::default()).unwrap();
        let replies = Arc::new(Replies::default());
        let sink: Arc<dyn ReplySink> = replies.clone();
        let other = rusqlite::Connection::open(&path).unwrap();
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        let mut ticket = 0;
        // The writer takes some out of the queue before it has to wait.
        let returned = loop {
            let returned = log.submit_appends(queued(ticket..ticket + 1, 1), &sink);
            if !returned.is_empty() {
                break returned;
            }
            ticket += 1;
        };
        assert_eq!(returned[0].ticket, ticket);
        other.execute_batch("COMMIT").unwrap();
        log.append(append("last", 10)).await.unwrap();
        replies.wait_for(ticket as usize).await;
        assert_eq!(replies.0.lock().unwrap().len() as u64, ticket);
        log.close().await;
    }
}
