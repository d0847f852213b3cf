//! The hand-off of the write connection between two threads: while the committer waits for the disk, the writer
//! executes the next commands.
//!
//! Most commands need nothing of the store. The committer has the connection while it commits, then releases
//! acknowledgements and readers. [`ConnectionSlot`] is where the writer gets the connection back:
//! [`ConnectionSlot::begin`] waits for it, and begins the next transaction.

use std::cell::{OnceCell, RefCell};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode};
use tokio::sync::watch;

use super::writer::SqliteResult;
use crate::key::ThreadKey;
use crate::record::StoredRecord;
use crate::stats::{CommitCounts, WriteCounters};
use crate::tail::Tails;

/// The write connection: in a transaction, idle, or lent to the committer.
pub(super) struct ConnectionSlot {
    /// Set while a transaction is open.
    begun: OnceCell<Connection>,
    /// Set between two transactions.
    idle: RefCell<Option<Connection>>,
    /// The channel that returns it, while the committer has it.
    lent: RefCell<Option<Receiver<Returned>>>,
    failed: RefCell<Option<rusqlite::Error>>,
}

type Returned = (Connection, SqliteResult<()>);

impl ConnectionSlot {
    pub(super) fn new(connection: Connection) -> Self {
        let idle = RefCell::new(Some(connection));
        Self { begun: OnceCell::new(), idle, lent: RefCell::default(), failed: RefCell::default() }
    }

    /// Returns whether the committer has the connection, as far as the writer has checked.
    pub(super) fn is_with_committer(&self) -> bool {
        self.lent.borrow().is_some()
    }

    /// Waits up to `timeout` for the connection.
    pub(super) fn wait_for(&self, timeout: Duration) {
        let returned = self.lent.borrow().as_ref().map(|lent| lent.recv_timeout(timeout));
        match returned {
            Some(Ok(returned)) => self.accept_returned(returned),
            Some(Err(RecvTimeoutError::Disconnected)) => panic_without_committer(),
            Some(Err(RecvTimeoutError::Timeout)) | None => {}
        }
    }

    /// Waits until the connection is returned.
    pub(super) fn wait(&self) {
        let lent = self.lent.take();
        match lent.map(|lent| lent.recv()) {
            Some(Ok(returned)) => self.accept_returned(returned),
            Some(Err(_)) => panic_without_committer(),
            None => {}
        }
    }

    fn accept_returned(&self, (connection, committed): Returned) {
        self.lent.take();
        if let Err(error) = committed {
            self.failed.replace(Some(error));
        }
        self.idle.replace(Some(connection));
    }

    /// Returns the error of a failed commit, or of a transaction that could not begin.
    pub(super) fn check(&self) -> SqliteResult<()> {
        self.failed.take().map_or(Ok(()), Err)
    }

    /// Commits the open transaction on this thread.
    pub(super) fn commit_now(&mut self) -> SqliteResult<()> {
        self.check()?;
        let Some(connection) = self.begun.take() else { return Ok(()) };
        connection.execute_batch("COMMIT")?;
        self.idle.replace(Some(connection));
        Ok(())
    }

    /// Returns the connection, in a transaction: begins one if none is open, and waits for the committer before.
    ///
    /// A transaction that cannot begin is reported by [`ConnectionSlot::check`].
    pub(super) fn begin(&self) -> &Connection {
        self.begun.get_or_init(|| self.start())
    }

    /// Returns the idle connection, after everything is committed.
    pub(super) fn idle(&self) -> Option<Connection> {
        self.idle.take()
    }

    /// Takes the connection to commit its transaction; returns `None` if none is open.
    pub(super) fn take(&mut self) -> Option<(Connection, Sender<Returned>)> {
        let connection = self.begun.take()?;
        let (out, returned) = channel();
        self.lent.replace(Some(returned));
        Some((connection, out))
    }

    fn start(&self) -> Connection {
        self.wait();
        let connection = self.idle.take().unwrap_or_else(|| unreachable!("the connection is idle or lent"));
        // Nothing has happened yet, so it is safe to wait for another program that holds the file.
        loop {
            match connection.execute_batch("BEGIN IMMEDIATE") {
                Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) => {
                    tracing::warn!("another program holds the store; writing waits for it");
                }
                Err(error) => {
                    self.failed.borrow_mut().get_or_insert(error);
                    return connection;
                }
                Ok(()) => return connection,
            }
        }
    }
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
    pub(super) replies: Vec<Box<dyn FnOnce() + Send>>,
    /// Whether pending commits are not flushed to the tables.
    pub(super) unflushed: bool,
    /// Whether the commit has added outbox messages.
    pub(super) outbox_changed: bool,
}

impl Release {
    /// Counts what the commit has written.
    fn counts(&self) -> CommitCounts {
        let mut counts = CommitCounts::default();
        for stored in self.records.iter().flat_map(|(_, records)| records) {
            counts.records += 1;
            counts.events += stored.record.entries.len() as u64;
            counts.bytes += stored.frame.as_ref().map_or(0, |frame| frame.len() as u64);
        }
        counts
    }

    /// Releases everything: first the flag that tells readers to flush, then the records, then the acknowledgements.
    pub(super) fn publish(self, tails: &Tails, unflushed: &AtomicBool, outbox_changed: &watch::Sender<()>) {
        unflushed.store(self.unflushed, Ordering::Release);
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
        for reply in self.replies {
            reply();
        }
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
    pub(super) unflushed: Arc<AtomicBool>,
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
            let committed = connection.execute_batch("COMMIT");
            match &committed {
                Ok(()) => {
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
