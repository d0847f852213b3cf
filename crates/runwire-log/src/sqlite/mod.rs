//! The embedded store: one SQLite file, one writer thread, and a pool of read connections.
//!
//! WAL with `synchronous=FULL`: a commit is on disk before it is acknowledged or seen. Any SQLite tool can open the
//! file; a lock file beside it keeps a second server away.

mod connection_slot;
mod inbox;
mod leases;
mod lists;
mod orphans;
mod outbox;
mod pending_commits;
mod reader;
mod retention;
mod rows;
mod schema;
mod stats;
mod txn_store;
mod wal_checkpointer;
mod writer;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use runwire_model::Timestamp;
use runwire_model::dialect::Encoder;
use runwire_model::window::Window;
use rusqlite::{Connection, OpenFlags};
use tokio::sync::{Semaphore, mpsc, oneshot, watch};

use crate::append::{Append, Appended};
use crate::error::LogError;
use crate::info::{
    Created, NewRun, NewThread, OrphanedRun, ProducerInfo, RunInfo, RunQuery, RunSpan, ThreadInfo,
};
use crate::interaction::{Answer, Answered, Interaction, InteractionPage, InteractionQuery};
use crate::key::{RunKey, ThreadKey};
use crate::outbox::{DeliveryOutcome, OutboxMessage, Subscriber};
use crate::query::{self, ReadStore};
use crate::stats::{LogStats, WriteCounters};
use crate::tail::{Tail, Tails};
use crate::transfer::{ExportPage, ExportRequest, Imported, NumberedItem};
use crate::txn::{LogCommand, Pending, clock};
use crate::{
    Cancel, Cancelled, Dependency, Health, Log, Migrated, ReadFormat, RecordPage, RetentionLimits, limits,
};
use connection_slot::{Committer, FatalHandler};
use orphans::Orphans;
use reader::SqliteReader;
use retention::plan;
use schema::SchemaState;
use wal_checkpointer::WalCheckpointer;
use writer::{FlushScope, SqliteWriter, SqliteWriterMessage, WriterQueue};

/// Options of the store.
#[derive(Clone)]
pub struct SqliteOptions {
    /// Duration of a run's lease.
    pub lease: Duration,
    /// Grace period of a cancelled run.
    pub cancel_grace: Duration,
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
            clock: Arc::new(clock),
            fatal: Arc::new(|_| {}),
        }
    }
}

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
    /// The file cannot be used.
    #[error("cannot open {}: {problem}", path.display())]
    Unusable {
        /// The store.
        path: PathBuf,
        /// Why.
        problem: String,
    },
}

/// Opens a file and migrates its tables to this version.
fn migrated(path: &Path) -> Result<(Connection, Migrated), SqliteOpenError> {
    let unusable = |problem: String| SqliteOpenError::Unusable { path: path.to_owned(), problem };
    let mut connection = Connection::open(path).map_err(|error| unusable(error.to_string()))?;
    match schema::migrate(&mut connection).map_err(|error| unusable(error.to_string()))? {
        SchemaState::Current(migrated) => Ok((connection, migrated)),
        SchemaState::Newer(found) => {
            Err(SqliteOpenError::Newer { path: path.to_owned(), found, known: schema::newest() })
        }
        SchemaState::Foreign => Err(unusable("it is a database of another program".into())),
    }
}

/// Number of read connections.
const READERS: usize = 4;

/// A log in one SQLite file.
pub struct SqliteLog {
    path: PathBuf,
    requests: mpsc::Sender<SqliteWriterMessage>,
    tails: Arc<Tails>,
    /// Whether pending commits are not flushed to the tables.
    unflushed: Arc<AtomicBool>,
    outbox_changed: Arc<watch::Sender<()>>,
    write_counters: Arc<WriteCounters>,
    clock: Arc<dyn Fn() -> Timestamp + Send + Sync>,
    idle: Arc<Mutex<Vec<SqliteReader>>>,
    readers: Arc<Semaphore>,
    orphans: Arc<tokio::sync::Mutex<Orphans>>,
}

impl std::fmt::Debug for SqliteLog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SqliteLog").field("path", &self.path).finish_non_exhaustive()
    }
}

impl SqliteLog {
    /// Creates or migrates the tables of a store. Blocks.
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
        let unflushed = Arc::new(AtomicBool::new(false));
        let outbox_changed = Arc::new(watch::Sender::new(()));
        let write_counters = Arc::new(WriteCounters::default());
        let clock = options.clock.clone();
        let fatal = Arc::new(FatalHandler::new(options.fatal.clone()));
        let checkpointer = WalCheckpointer::watch(path, &mut connection, &fatal)
            .map_err(|error| unusable(error.to_string()))?;
        let orphans = Orphans::find(&connection).map_err(|error| unusable(error.to_string()))?;
        let orphans = Arc::new(tokio::sync::Mutex::new(orphans));
        let writer = SqliteWriter::open(checkpointer, connection, lock, options);
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
            .spawn(move || writer.run(WriterQueue(receiver), committer))
            .map_err(|error| unusable(error.to_string()))?;
        let readers = Arc::new(Semaphore::new(READERS));
        let idle = Arc::default();
        Ok(Self {
            path: path.to_owned(),
            requests,
            tails,
            unflushed,
            outbox_changed,
            write_counters,
            clock,
            idle,
            readers,
            orphans,
        })
    }

    async fn send<T>(
        &self,
        message: impl FnOnce(oneshot::Sender<Result<T, LogError>>) -> SqliteWriterMessage,
    ) -> Result<T, LogError> {
        let (reply, answer) = oneshot::channel();
        let gone = || LogError::Unavailable("the store has stopped".into());
        self.requests.send(message(reply)).await.map_err(|_| gone())?;
        answer.await.map_err(|_| gone())?
    }

    /// Submits a command to the writer, and waits for its reply.
    async fn submit<C, T: Send + 'static>(
        &self,
        request: C,
        command: impl FnOnce(Pending<C, T>) -> LogCommand,
    ) -> Result<T, LogError> {
        self.send(|reply| SqliteWriterMessage::Command(command(Pending::new(request, reply)))).await
    }

    /// Flushes pending commits so that reads see them.
    async fn flush(&self, what: FlushScope) -> Result<(), LogError> {
        if self.unflushed.load(Ordering::Acquire) {
            self.send(|reply| SqliteWriterMessage::Flush(what, reply)).await?;
        }
        Ok(())
    }

    /// Reads on a blocking thread, with a pooled connection.
    async fn reading<T: Send + 'static>(
        &self,
        read: impl FnOnce(&mut SqliteReader) -> Result<T, LogError> + Send + 'static,
    ) -> Result<T, LogError> {
        let stopped = |error: &dyn std::fmt::Display| LogError::Unavailable(error.to_string());
        let permit = self.readers.clone().acquire_owned().await.map_err(|error| stopped(&error))?;
        let (idle, path) = (self.idle.clone(), self.path.clone());
        let reading = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            let reader = idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let mut reader = match reader {
                Some(reader) => reader,
                None => SqliteReader::new(open_reader(&path)?),
            };
            let result = reader.in_snapshot(read)?;
            idle.lock().unwrap_or_else(PoisonError::into_inner).push(reader);
            result
        });
        reading.await.map_err(|error| stopped(&error))?
    }
}

fn open_reader(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(Duration::from_secs(5))?;
    connection.pragma_update(None, "cache_size", -4096)?;
    connection.set_prepared_statement_cache_capacity(64);
    Ok(connection)
}

/// Keeps other servers from a store until it is dropped.
#[derive(Debug)]
struct StoreLock(File);

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

#[async_trait]
impl Log for SqliteLog {
    async fn create_thread(&self, thread: NewThread) -> Result<Created<ThreadInfo>, LogError> {
        let key = thread.thread_id.clone().map(|id| ThreadKey::new(thread.tenant.as_str(), id));
        let created = self.submit(thread, LogCommand::CreateThread).await?;
        match key.filter(|_| !created.new) {
            Some(key) => Ok(Created { value: self.thread(&key).await?, new: false }),
            None => Ok(created),
        }
    }

    async fn create_run(&self, run: NewRun) -> Result<Created<RunInfo>, LogError> {
        self.submit(run, LogCommand::CreateRun).await
    }

    async fn append(&self, append: Append) -> Result<Appended, LogError> {
        self.submit(append, LogCommand::Append).await
    }

    async fn cancel(&self, run: &RunKey, cancel: Cancel) -> Result<Cancelled, LogError> {
        self.submit((run.clone(), cancel), LogCommand::Cancel).await
    }

    async fn answer_all(&self, run: &RunKey, answers: Vec<Answer>) -> Result<Vec<Answered>, LogError> {
        self.submit((run.clone(), answers), LogCommand::Answer).await
    }

    async fn heartbeat(&self, run: &RunKey) -> Result<RunInfo, LogError> {
        self.submit(run.clone(), LogCommand::Heartbeat).await
    }

    async fn sweep(&self) -> Result<usize, LogError> {
        self.submit((), LogCommand::Sweep).await
    }

    async fn export(&self, thread: &ThreadKey, part: &ExportRequest) -> Result<ExportPage, LogError> {
        self.flush(FlushScope::Thread(thread.clone())).await?;
        let (thread, part) = (thread.clone(), part.clone());
        self.reading(move |reader| query::export(reader, &thread, &part)).await
    }

    async fn import(&self, thread: &ThreadKey, items: Vec<NumberedItem>) -> Result<Imported, LogError> {
        self.submit((thread.clone(), items), LogCommand::Import).await
    }

    async fn delete_thread(&self, thread: &ThreadKey, force: bool) -> Result<(), LogError> {
        self.submit((thread.clone(), force), LogCommand::Delete).await
    }

    async fn trim(&self, retention: RetentionLimits) -> Result<usize, LogError> {
        self.flush(FlushScope::Everything).await?;
        let retention = retention.at((self.clock)());
        let trims = self.reading(move |reader| plan(reader, retention)).await?;
        let mut runs = 0;
        for trim in trims {
            runs += self.send(|reply| SqliteWriterMessage::Trim(trim, reply)).await?;
        }
        Ok(runs)
    }

    async fn run(&self, run: &RunKey) -> Result<RunInfo, LogError> {
        self.flush(FlushScope::Run(run.clone())).await?;
        let run = run.clone();
        self.reading(move |reader| reader.run_info(&run)).await
    }

    async fn runs(&self, query: RunQuery) -> Result<Vec<RunInfo>, LogError> {
        self.flush(FlushScope::Everything).await?;
        self.reading(move |reader| reader.runs(&query)).await
    }

    async fn claim_orphans(&self, agents: &[&str], limit: usize) -> Result<Vec<OrphanedRun>, LogError> {
        // Concurrent calls wait, so that each orphan is returned once.
        let mut orphans = self.orphans.clone().lock_owned().await;
        if orphans.is_done() || agents.is_empty() || limit == 0 {
            return Ok(Vec::new());
        }
        self.flush(FlushScope::Everything).await?;
        let agents: Vec<String> = agents.iter().map(|agent| (*agent).to_owned()).collect();
        self.reading(move |reader| orphans.claim(reader, &agents, limit)).await
    }

    async fn interaction(&self, run: &RunKey, interaction_id: &str) -> Result<Interaction, LogError> {
        self.flush(FlushScope::Run(run.clone())).await?;
        let (run, id) = (run.clone(), interaction_id.to_owned());
        self.reading(move |reader| query::interaction(reader, &run, &id)).await
    }

    async fn interactions(&self, query: InteractionQuery) -> Result<InteractionPage, LogError> {
        self.flush(FlushScope::Everything).await?;
        self.reading(move |reader| query::interactions(reader, &query)).await
    }

    async fn subscribe(&self, subscribers: Vec<Subscriber>) -> Result<(), LogError> {
        self.send(|reply| SqliteWriterMessage::Subscribe(subscribers, reply)).await
    }

    async fn outbox(&self, subscriber: &str, limit: usize) -> Result<Vec<OutboxMessage>, LogError> {
        let (subscriber, now) = (subscriber.to_owned(), (self.clock)());
        self.reading(move |reader| reader.outbox(&subscriber, limit, now)).await
    }

    async fn mark_delivered(&self, message: u64, outcome: DeliveryOutcome) -> Result<(), LogError> {
        self.send(|reply| SqliteWriterMessage::MarkDelivered(message, outcome, reply)).await
    }

    fn outbox_changed(&self) -> watch::Receiver<()> {
        self.outbox_changed.subscribe()
    }

    async fn thread(&self, thread: &ThreadKey) -> Result<ThreadInfo, LogError> {
        self.flush(FlushScope::Thread(thread.clone())).await?;
        let thread = thread.clone();
        self.reading(move |reader| reader.thread(&thread)).await
    }

    async fn threads(
        &self,
        tenant: &str,
        before: Option<&str>,
        limit: usize,
    ) -> Result<Vec<ThreadInfo>, LogError> {
        self.flush(FlushScope::Everything).await?;
        let (tenant, before) = (tenant.to_owned(), before.map(str::to_owned));
        self.reading(move |reader| reader.threads(&tenant, before.as_deref(), limit)).await
    }

    async fn spans(&self, thread: &ThreadKey) -> Result<Vec<RunSpan>, LogError> {
        self.flush(FlushScope::Thread(thread.clone())).await?;
        let thread = thread.clone();
        self.reading(move |reader| reader.spans(&thread)).await
    }

    async fn producer(&self, run: &RunKey, producer: &str) -> Result<Option<ProducerInfo>, LogError> {
        self.flush(FlushScope::Run(run.clone())).await?;
        let (run, producer) = (run.clone(), producer.to_owned());
        self.reading(move |reader| reader.producer(&run, &producer)).await
    }

    async fn thread_producer(
        &self,
        thread: &ThreadKey,
        producer: &str,
    ) -> Result<Option<ProducerInfo>, LogError> {
        self.flush(FlushScope::Thread(thread.clone())).await?;
        let (thread, producer) = (thread.clone(), producer.to_owned());
        self.reading(move |reader| reader.thread_producer(&thread, &producer)).await
    }

    async fn read(&self, thread: &ThreadKey, after: u64) -> Result<RecordPage, LogError> {
        // Loaded before the rows are read: a flush between the two would be missed.
        let unflushed = self.unflushed.load(Ordering::Acquire);
        let key = thread.clone();
        let page = self.reading(move |reader| query::page(reader, &key, after)).await;
        // Beyond the rows there may be pending commits.
        match page {
            Ok((page, true)) => return Ok(page),
            Ok(_) | Err(LogError::CursorBeyondEnd { .. }) if unflushed => {}
            page => return page.map(|(page, _)| page),
        }
        self.flush(FlushScope::Thread(thread.clone())).await?;
        let key = thread.clone();
        self.reading(move |reader| query::page(reader, &key, after)).await.map(|(page, _)| page)
    }

    async fn before(&self, thread: &ThreadKey, seq: u64) -> Result<Window, LogError> {
        self.flush(FlushScope::Thread(thread.clone())).await?;
        let thread = thread.clone();
        self.reading(move |reader| query::before(reader, &thread, seq)).await
    }

    async fn checkpoint(
        &self,
        run: &RunKey,
        form: ReadFormat,
        seq: u64,
    ) -> Result<Option<(u64, Encoder)>, LogError> {
        let run = run.clone();
        self.reading(move |reader| reader.checkpoint(&run, form, seq)).await
    }

    fn keep_checkpoint(&self, run: &RunKey, form: ReadFormat, seq: u64, encoder: &Encoder) {
        if let Ok(state) = serde_json::to_string(encoder) {
            // A full queue means that there is no time for it.
            let _ = self.requests.try_send(SqliteWriterMessage::Checkpoint {
                run: run.clone(),
                form,
                seq,
                state,
            });
        }
    }

    fn tail(&self, thread: &ThreadKey) -> Arc<Tail> {
        self.tails.of(thread)
    }

    fn version(&self) -> Option<u64> {
        Some(self.write_counters.written().commits)
    }

    async fn stats(&self) -> Result<LogStats, LogError> {
        let path = self.path.clone();
        let stats = self.reading(move |reader| reader.stats(&path)).await?;
        Ok(LogStats { written: self.write_counters.written(), ..stats })
    }

    async fn ready(&self) -> Result<(), LogError> {
        self.send(SqliteWriterMessage::Ping).await
    }

    async fn health(&self) -> Health {
        Health { store: Dependency::from_probe("sqlite", self.ready().await), tail: None }
    }

    async fn close(&self) {
        // Readers are closed first: then the writer leaves one file that nobody has open.
        let reads = self.readers.acquire_many(READERS as u32).await;
        self.readers.close();
        drop(reads);
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).clear();
        // The writer drops its queue last.
        let _ = self.requests.send(SqliteWriterMessage::Close).await;
        self.requests.closed().await;
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
