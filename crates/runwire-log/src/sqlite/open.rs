//! Opens or creates a SQLite store, locks it against a second server, and explains why it cannot be opened.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rusqlite::Connection;
use tokio::sync::{Semaphore, mpsc, watch};

use super::connection_slot::{Committer, FatalHandler};
use super::message_queue::MessageQueue;
use super::orphans::Orphans;
use super::schema::{self, SchemaState};
use super::unflushed::Unflushed;
use super::wal_checkpointer::WalCheckpointer;
use super::writer::SqliteWriter;
use super::{READERS, SqliteLog, SqliteOptions};
use crate::stats::WriteCounters;
use crate::tail::Tails;
use crate::unreadable_rows::UnreadableRows;
use crate::waiting_checkpoints::WaitingCheckpoints;
use crate::writer_queue::QueueBytes;
use crate::{Migrated, limits};

/// Why a store cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum SqliteOpenError {
    /// Another process has it open.
    #[error("{} is in use by another server; stop that one, or choose another store", .0.display())]
    InUse(PathBuf),
    /// A newer version has written it.
    #[error(
        "{} has schema version {found}, and this program knows versions up to {known}; use a newer runwire",
        path.display()
    )]
    Newer {
        /// The store.
        path: PathBuf,
        /// The version that it has.
        found: u32,
        /// The newest version that is known here.
        known: u32,
    },
    /// An older version has written it, in another layout.
    #[error(
        "{} has schema version {found}, and this program needs version {needed}; export its threads with the \
         runwire that wrote it (`runwire export`), and import them into a new store",
        path.display()
    )]
    Older {
        /// The store.
        path: PathBuf,
        /// The version that it has.
        found: u32,
        /// The version that is needed here.
        needed: u32,
    },
    /// The file cannot be used.
    #[error("cannot open {}: {problem}", path.display())]
    Unusable {
        /// The store.
        path: PathBuf,
        /// Why.
        problem: String,
    },
}

/// Opens a file, and makes its tables if it is empty.
fn migrated(path: &Path) -> Result<(Connection, Migrated), SqliteOpenError> {
    let unusable = |problem: String| SqliteOpenError::Unusable { path: path.to_owned(), problem };
    let mut connection = Connection::open(path).map_err(|error| unusable(error.to_string()))?;
    match schema::migrate(&mut connection).map_err(|error| unusable(error.to_string()))? {
        SchemaState::Current(migrated) => Ok((connection, migrated)),
        SchemaState::Newer(found) => {
            Err(SqliteOpenError::Newer { path: path.to_owned(), found, known: schema::VERSION })
        }
        SchemaState::Older(found) => {
            Err(SqliteOpenError::Older { path: path.to_owned(), found, needed: schema::VERSION })
        }
        SchemaState::Foreign => Err(unusable("it is a database of another program".into())),
    }
}

impl SqliteLog {
    /// Creates the tables of a new store. Blocks.
    pub fn migrate(path: &Path) -> Result<Migrated, SqliteOpenError> {
        let _lock = lock(path)?;
        Ok(migrated(path)?.1)
    }

    /// Opens or creates a store. Blocks while it recovers from a crash.
    pub fn open(path: &Path, options: SqliteOptions) -> Result<Self, SqliteOpenError> {
        let unusable = |problem: String| SqliteOpenError::Unusable { path: path.to_owned(), problem };
        let lock = lock(path)?;
        let (mut connection, _) = migrated(path)?;
        schema::prepare(&connection).map_err(|error| unusable(error.to_string()))?;
        // What a failed fsync may have left in the write-ahead log is written and synced again before anyone sees it.
        schema::checkpoint_wal(&connection).map_err(|error| unusable(error.to_string()))?;
        let tails = Arc::new(Tails::default());
        let unreadable = Arc::<UnreadableRows>::default();
        let unflushed = Arc::new(Unflushed::default());
        let checkpoints = Arc::<WaitingCheckpoints>::default();
        let outbox_changed = Arc::new(watch::Sender::new(()));
        let write_counters = Arc::new(WriteCounters::default());
        let clock = options.clock.clone();
        let fatal = Arc::new(FatalHandler::new(options.fatal.clone()));
        let checkpointer = WalCheckpointer::watch(path, &mut connection, &fatal)
            .map_err(|error| unusable(error.to_string()))?;
        let orphans = Orphans::find(&connection).map_err(|error| unusable(error.to_string()))?;
        let orphans = Arc::new(tokio::sync::Mutex::new(orphans));
        let writer = SqliteWriter::open(
            checkpointer,
            connection,
            lock,
            options,
            unreadable.clone(),
            checkpoints.clone(),
        );
        let writer = writer.map_err(|error| unusable(error.to_string()))?;
        let (requests, receiver) = mpsc::channel(limits::WRITER_QUEUE);
        let committer = Committer {
            tails: tails.clone(),
            unflushed: unflushed.clone(),
            outbox_changed: outbox_changed.clone(),
            write_counters: write_counters.clone(),
            fatal,
        };
        std::thread::Builder::new()
            .name("log-writer".into())
            .spawn(move || writer.run(MessageQueue(receiver), committer))
            .map_err(|error| unusable(error.to_string()))?;
        let readers = Arc::new(Semaphore::new(READERS));
        let idle = Arc::default();
        Ok(Self {
            path: path.to_owned(),
            requests,
            queue_bytes: QueueBytes::default(),
            tails,
            unflushed,
            checkpoints,
            outbox_changed,
            write_counters,
            clock,
            idle,
            readers,
            orphans,
            unreadable,
        })
    }
}

/// Keeps other servers from a store until it is dropped.
#[derive(Debug)]
pub(super) struct StoreLock(File);

impl Drop for StoreLock {
    fn drop(&mut self) {
        // Closing the file is not enough: a program that another thread is just starting has a copy of it for a moment.
        let _ = self.0.unlock();
    }
}

/// Locks the store against a second server.
fn lock(path: &Path) -> Result<StoreLock, SqliteOpenError> {
    // A link to a store is that store, so the lock file is beside the file that the link names.
    let mut name = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned()).into_os_string();
    name.push(".lock");
    let unusable = |error: std::io::Error| SqliteOpenError::Unusable {
        path: path.to_owned(),
        problem: error.to_string(),
    };
    let file = File::options().create(true).truncate(false).write(true).open(PathBuf::from(name));
    let file = file.map_err(unusable)?;
    match file.try_lock() {
        Ok(()) => Ok(StoreLock(file)),
        Err(std::fs::TryLockError::WouldBlock) => Err(SqliteOpenError::InUse(path.to_owned())),
        Err(std::fs::TryLockError::Error(error)) => Err(unusable(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_ends_with_its_store_even_if_a_starting_program_has_a_copy() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log.db");
        let held = lock(&path).unwrap();
        assert!(matches!(lock(&path), Err(SqliteOpenError::InUse(_))));
        let copy = held.0.try_clone().unwrap();
        drop(held);
        lock(&path).unwrap();
        drop(copy);
    }
}
