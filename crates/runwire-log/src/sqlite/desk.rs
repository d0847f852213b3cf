//! Two threads share the writing connection: while one waits for the disk, the other decodes what comes next.
//!
//! The writer works out what requests mean; most need nothing of the store for that. The committer has the
//! connection while it commits, then releases the acknowledgements and the readers. [`Desk`] is the place where
//! the writer finds the connection again: whoever needs it waits until it is back, and begins the next
//! transaction.

use std::cell::{Cell, OnceCell, RefCell};
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};

use rusqlite::{Connection, ErrorCode};
use tokio::sync::mpsc::WeakSender;

use super::writer::{Db, Op};
use crate::key::ThreadKey;
use crate::record::Stored;
use crate::tail::Tails;

/// The connection, or the place it comes back to. Using it begins a transaction.
pub(super) struct Desk {
    /// In a transaction.
    begun: OnceCell<Connection>,
    /// Between two transactions.
    idle: RefCell<Option<Connection>>,
    /// Whether the committer has it.
    away: Cell<bool>,
    back: Receiver<Back>,
    out: Sender<Back>,
    failed: RefCell<Option<rusqlite::Error>>,
}

type Back = (Connection, Db<()>);

impl Desk {
    pub(super) fn new(connection: Connection) -> Self {
        let (out, back) = channel();
        let idle = RefCell::new(Some(connection));
        let away = Cell::new(false);
        Self { begun: OnceCell::new(), idle, away, back, out, failed: RefCell::default() }
    }

    /// Tells whether the committer still has the connection.
    pub(super) fn is_away(&self) -> bool {
        if self.away.get() {
            match self.back.try_recv() {
                Ok(back) => self.put_back(back),
                Err(TryRecvError::Empty) => return true,
                Err(TryRecvError::Disconnected) => unreachable!("the desk has a sender of its own"),
            }
        }
        false
    }

    /// Waits until the connection is back.
    pub(super) fn wait(&self) {
        if self.away.get()
            && let Ok(back) = self.back.recv()
        {
            self.put_back(back);
        }
    }

    fn put_back(&self, (connection, committed): Back) {
        self.away.set(false);
        if let Err(error) = committed {
            self.failed.replace(Some(error));
        }
        self.idle.replace(Some(connection));
    }

    /// Tells of a commit that failed, or a transaction that could not begin.
    pub(super) fn check(&self) -> Db<()> {
        self.failed.take().map_or(Ok(()), Err)
    }

    /// Commits here and now what was begun.
    pub(super) fn settle(&mut self) -> Db<()> {
        self.check()?;
        let Some(connection) = self.begun.take() else { return Ok(()) };
        connection.execute_batch("COMMIT")?;
        self.idle.replace(Some(connection));
        Ok(())
    }

    /// Begins a transaction, if none is begun.
    pub(super) fn begin_if_idle(&self) {
        let _: &Connection = self;
    }

    /// Hands out the connection after everything is committed.
    pub(super) fn idle(&self) -> Option<Connection> {
        self.idle.take()
    }

    /// Takes the connection out to commit what was begun; none where nothing was.
    pub(super) fn take(&mut self) -> Option<(Connection, Sender<Back>)> {
        let connection = self.begun.take()?;
        self.away.set(true);
        Some((connection, self.out.clone()))
    }

    fn begin(&self) -> Connection {
        self.wait();
        let connection = self.idle.take().unwrap_or_else(|| unreachable!("the connection is here or away"));
        // Nothing has happened yet, so another program that holds the file is waited for.
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

impl Deref for Desk {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        self.begun.get_or_init(|| self.begin())
    }
}

/// What is let go of when a commit has made it durable.
pub(super) struct Release {
    pub(super) records: Vec<(ThreadKey, Vec<Arc<Stored>>)>,
    /// Threads whose readers learn that they are gone.
    pub(super) deleted: Vec<ThreadKey>,
    pub(super) replies: Vec<Box<dyn FnOnce() + Send>>,
    /// Whether the journal holds something that is nowhere else.
    pub(super) unsealed: bool,
}

impl Release {
    /// Lets go: first of what tells readers where to look, then of the records, then of the acknowledgements.
    pub(super) fn go(self, tails: &Tails, unsealed: &AtomicBool) {
        unsealed.store(self.unsealed, Ordering::Release);
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
        for reply in self.replies {
            reply();
        }
    }
}

/// A transaction that is to be committed.
pub(super) struct Commit {
    pub(super) connection: Connection,
    pub(super) back: Sender<Back>,
    pub(super) release: Release,
}

/// Commits one transaction after the other.
pub(super) struct Committer {
    pub(super) tails: Arc<Tails>,
    pub(super) unsealed: Arc<AtomicBool>,
    /// Where the writer waits; it is woken when the connection is back.
    pub(super) writer: WeakSender<Op>,
    pub(super) fatal: Arc<Fatal>,
}

/// What is done when the store failed: once, whoever finds it out.
pub(super) struct Fatal {
    done: AtomicBool,
    what: Arc<dyn Fn(&str) + Send + Sync>,
}

impl Fatal {
    pub(super) fn new(what: Arc<dyn Fn(&str) + Send + Sync>) -> Self {
        Self { done: AtomicBool::new(false), what }
    }

    /// Says that the store failed.
    pub(super) fn call(&self, error: &rusqlite::Error) {
        if !self.done.swap(true, Ordering::SeqCst) {
            let reason = format!("the store failed: {error}");
            tracing::error!("{reason}; what was not acknowledged may or may not be written");
            (self.what)(&reason);
        }
    }
}

impl Committer {
    pub(super) fn run(self, commits: &Receiver<Commit>) {
        while let Ok(Commit { connection, back, release }) = commits.recv() {
            let committed = connection.execute_batch("COMMIT");
            match &committed {
                Ok(()) => {
                    // The connection first, so that the writer need not wait for the readers to be woken.
                    let _ = back.send((connection, committed));
                    release.go(&self.tails, &self.unsealed);
                }
                Err(error) => {
                    self.fatal.call(error);
                    let _ = back.send((connection, committed));
                    // Whoever waits is told by this that nobody knows.
                    drop(release);
                }
            }
            // A full queue means that the writer is awake.
            if let Some(writer) = self.writer.upgrade() {
                let _ = writer.try_send(Op::Committed);
            }
        }
    }
}
