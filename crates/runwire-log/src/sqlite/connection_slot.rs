//! The hand-off of the write connection between two threads: while the committer waits for the disk, the writer
//! executes the next commands.
//!
//! Most commands need nothing of the store. The committer has the connection while it commits, then releases
//! acknowledgements and readers. [`ConnectionSlot`] is where the writer gets the connection back:
//! [`ConnectionSlot::begin`] waits for it, and begins the next transaction.

use std::cell::{Cell, OnceCell, RefCell};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode};
use tokio::sync::{OwnedSemaphorePermit, watch};

use super::error::{SqliteError, SqliteResult};
use super::unflushed::{Unflushed, UnflushedChanges};
use crate::key::ThreadKey;
use crate::record::StoredRecord;
use crate::stats::{CommitCounts, WriteCounters};
use crate::tail::Tails;
use crate::txn::CommandReply;

/// The write connection: in a transaction, idle, or lent to the committer.
pub(super) struct ConnectionSlot {
    /// Set while a transaction is open.
    begun: OnceCell<Connection>,
    /// Set between two transactions.
    idle: RefCell<Option<Connection>>,
    /// The channel that returns it, while the committer has it, and since when it has it.
    lent: RefCell<Option<(Receiver<Returned>, Instant)>>,
    /// How long the committer had it the last time.
    lent_for: Cell<Duration>,
    failed: RefCell<Option<SqliteError>>,
}

type Returned = (Connection, SqliteResult<()>);

/// Limits the time after which a writer that waits for a commit looks at its queue.
const SHORTEST_WAIT: Duration = Duration::from_micros(100);
const LONGEST_WAIT: Duration = Duration::from_millis(1);

impl ConnectionSlot {
    pub(super) fn new(connection: Connection) -> Self {
        let idle = RefCell::new(Some(connection));
        let (lent, lent_for, failed) = (RefCell::default(), Cell::default(), RefCell::default());
        Self { begun: OnceCell::new(), idle, lent, lent_for, failed }
    }

    /// Returns whether the committer has the connection, as far as the writer has checked.
    pub(super) fn is_with_committer(&self) -> bool {
        self.lent.borrow().is_some()
    }

    /// Waits for the connection, for half of the time that the committer had it the last time.
    pub(super) fn wait_a_while(&self) {
        let timeout = (self.lent_for.get() / 2).clamp(SHORTEST_WAIT, LONGEST_WAIT);
        let returned = self.lent.borrow().as_ref().map(|(lent, _)| lent.recv_timeout(timeout));
        match returned {
            Some(Ok(returned)) => self.accept_returned(returned),
            Some(Err(RecvTimeoutError::Disconnected)) => panic_without_committer(),
            Some(Err(RecvTimeoutError::Timeout)) | None => {}
        }
    }

    /// Waits until the connection is returned.
    pub(super) fn wait(&self) {
        let returned = self.lent.borrow().as_ref().map(|(lent, _)| lent.recv());
        match returned {
            Some(Ok(returned)) => self.accept_returned(returned),
            Some(Err(_)) => panic_without_committer(),
            None => {}
        }
    }

    fn accept_returned(&self, (connection, committed): Returned) {
        if let Some((_, since)) = self.lent.take() {
            self.lent_for.set(since.elapsed());
        }
        if let Err(error) = committed {
            self.failed.replace(Some(error));
        }
        self.idle.replace(Some(connection));
    }

    /// Returns the error of a failed commit.
    pub(super) fn check(&self) -> SqliteResult<()> {
        self.failed.take().map_or(Ok(()), Err)
    }

    /// Commits the open transaction on this thread.
    pub(super) fn commit_now(&mut self) -> SqliteResult<()> {
        self.check()?;
        let Some(connection) = self.begun.take() else { return Ok(()) };
        assert_in_transaction(&connection);
        connection.execute_batch("COMMIT")?;
        self.idle.replace(Some(connection));
        Ok(())
    }

    /// Returns the connection, in a transaction: begins one if none is open, and waits for the committer before.
    ///
    /// Nobody gets the connection outside of a transaction: a statement would commit by itself.
    pub(super) fn begin(&self) -> SqliteResult<&Connection> {
        let connection = match self.begun.get() {
            Some(connection) => connection,
            None => {
                let connection = self.start()?;
                self.begun.get_or_init(|| connection)
            }
        };
        assert_in_transaction(connection);
        Ok(connection)
    }

    /// Returns the idle connection, after everything is committed.
    pub(super) fn idle(&self) -> Option<Connection> {
        self.idle.take()
    }

    /// Takes the connection to commit its transaction; returns `None` if none is open.
    pub(super) fn take(&mut self) -> Option<(Connection, Sender<Returned>)> {
        let connection = self.begun.take()?;
        assert_in_transaction(&connection);
        let (out, returned) = channel();
        self.lent.replace(Some((returned, Instant::now())));
        Some((connection, out))
    }

    fn start(&self) -> SqliteResult<Connection> {
        self.wait();
        // What could not be committed is lost, and nothing may follow it.
        self.check()?;
        let connection = self.idle.take().unwrap_or_else(|| unreachable!("the connection is idle or lent"));
        // Nothing has happened yet, so it is safe to wait for another program that holds the file.
        loop {
            match connection.execute_batch("BEGIN IMMEDIATE") {
                Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) => {
                    tracing::warn!("another program holds the store; writing waits for it");
                }
                Err(error) => {
                    self.idle.replace(Some(connection));
                    return Err(error.into());
                }
                Ok(()) => return Ok(connection),
            }
        }
    }
}

/// Panics if statements would commit by themselves: SQLite ends a transaction on its own after some failures.
fn assert_in_transaction(connection: &Connection) {
    assert!(!connection.is_autocommit(), "the transaction has ended before its commit");
}

/// Panics: the committer has ended with the connection, so nothing can be written again. The watch on the writer's
/// thread reports it.
fn panic_without_committer() -> ! {
    panic!("the thread that commits has ended")
}

/// What is released once a commit is durable: records to readers, replies to callers.
pub(super) struct Release {
    pub(super) records: Vec<(ThreadKey, Vec<Arc<StoredRecord>>)>,
    /// Deleted threads, whose readers are notified.
    pub(super) deleted: Vec<ThreadKey>,
    pub(super) replies: Vec<CommandReply>,
    /// The answered commands' share of the queue's bytes.
    pub(super) queue_bytes: Vec<OwnedSemaphorePermit>,
    /// What it has changed of what is not flushed to the tables.
    pub(super) unflushed: UnflushedChanges,
    /// Whether the commit has added outbox messages.
    pub(super) outbox_changed: bool,
    /// Stored records that its commands have looked at.
    pub(super) scanned: u64,
}

impl Release {
    /// Counts what the commit has written.
    fn counts(&self) -> CommitCounts {
        let mut counts = CommitCounts { scanned: self.scanned, ..CommitCounts::default() };
        for stored in self.records.iter().flat_map(|(_, records)| records) {
            counts.records += 1;
            counts.events += stored.record.entries.len() as u64;
            counts.bytes += stored.frame.as_ref().map_or(0, |frame| frame.len() as u64);
        }
        counts
    }

    /// Releases everything: first what readers of the store see, then the records, then the acknowledgements.
    pub(super) fn publish(self, tails: &Tails, unflushed: &Unflushed, outbox_changed: &watch::Sender<()>) {
        unflushed.publish(self.unflushed);
        for (thread, records) in self.records {
            if let Some(tail) = tails.live(&thread) {
                tail.publish(&records);
            }
        }
        for thread in self.deleted {
            if let Some(tail) = tails.live(&thread) {
                tail.delete();
            }
        }
        if self.outbox_changed {
            outbox_changed.send_replace(());
        }
        CommandReply::send_all(self.replies);
        drop(self.queue_bytes);
    }
}

/// A transaction to commit.
pub(super) struct Commit {
    pub(super) connection: Connection,
    pub(super) returned: Sender<Returned>,
    pub(super) release: Release,
}

/// The committer thread: commits one transaction after the other.
pub(super) struct Committer {
    pub(super) tails: Arc<Tails>,
    pub(super) unflushed: Arc<Unflushed>,
    pub(super) outbox_changed: Arc<watch::Sender<()>>,
    pub(super) write_counters: Arc<WriteCounters>,
    pub(super) fatal: Arc<FatalHandler>,
}

/// Calls the handler for a failed store, once.
pub(super) struct FatalHandler {
    done: AtomicBool,
    what: Arc<dyn Fn(&str) + Send + Sync>,
}

impl FatalHandler {
    pub(super) fn new(what: Arc<dyn Fn(&str) + Send + Sync>) -> Self {
        Self { done: AtomicBool::new(false), what }
    }

    /// Reports that the store failed.
    pub(super) fn call(&self, reason: &str) {
        if !self.done.swap(true, Ordering::SeqCst) {
            let reason = format!("the store failed: {reason}");
            tracing::error!("{reason}; what was not acknowledged may or may not be written");
            (self.what)(&reason);
        }
    }

    /// Reports a panic of this thread as a failure of the store, until the returned guard is dropped.
    pub(super) fn watch_thread(self: &Arc<Self>) -> impl Drop + use<> {
        struct Watch(Arc<FatalHandler>);
        impl Drop for Watch {
            fn drop(&mut self) {
                if std::thread::panicking() {
                    self.0.call("a thread of it ended by a panic");
                }
            }
        }
        Watch(self.clone())
    }
}

impl Committer {
    pub(super) fn run(self, commits: &Receiver<Commit>) {
        let _watched = self.fatal.watch_thread();
        while let Ok(Commit { connection, returned, release }) = commits.recv() {
            let begun = Instant::now();
            let committed = connection.execute_batch("COMMIT").map_err(SqliteError::from);
            match &committed {
                Ok(()) => {
                    assert!(connection.is_autocommit(), "nothing is acknowledged before its commit");
                    // The connection first, so that the writer need not wait until the readers are woken.
                    let _ = returned.send((connection, committed));
                    self.write_counters.record(release.counts(), begun.elapsed());
                    release.publish(&self.tails, &self.unflushed, &self.outbox_changed);
                }
                Err(error) => {
                    self.fatal.call(&error.to_string());
                    let _ = returned.send((connection, committed));
                    // Dropping the senders reports an unknown outcome to waiting callers.
                    drop(release);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use rusqlite::hooks::{AuthAction, AuthContext, Authorization, TransactionOperation};

    use super::*;

    #[test]
    fn nothing_is_executed_without_a_transaction_if_begin_fails() {
        let mut connection = Connection::open_in_memory().unwrap();
        connection.execute_batch("CREATE TABLE batch (id INTEGER)").unwrap();
        let refuse_begin = |context: AuthContext<'_>| match context.action {
            AuthAction::Transaction { operation: TransactionOperation::Begin } => Authorization::Deny,
            _ => Authorization::Allow,
        };
        connection.authorizer(Some(refuse_begin)).unwrap();
        let mut slot = ConnectionSlot::new(connection);
        let written = slot.begin().map(|connection| connection.execute("INSERT INTO batch VALUES (1)", []));
        assert!(matches!(written, Err(SqliteError::Sqlite(_))), "{written:?}");
        assert!(slot.take().is_none(), "nothing is committed");
        let connection = slot.idle().unwrap();
        let rows: i64 = connection.query_row("SELECT count(*) FROM batch", [], |row| row.get(0)).unwrap();
        assert_eq!(rows, 0);
    }

    #[test]
    #[should_panic(expected = "the transaction has ended before its commit")]
    fn a_transaction_that_ended_by_itself_is_not_continued() {
        let slot = ConnectionSlot::new(Connection::open_in_memory().unwrap());
        slot.begin().unwrap().execute_batch("ROLLBACK").unwrap();
        let _ = slot.begin();
    }
}
