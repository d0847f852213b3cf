//! The writer thread: executes all queued commands, has them committed as one transaction, and releases
//! acknowledgements and readers together (`connection_slot.rs`).
//!
//! There is no timer. While a commit waits for the disk, commands queue up; the next commit takes them all. So the
//! disk sets the pace, a lone command never waits for others, and many share one fsync.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use rusqlite::{Connection, params};
use tokio::sync::{mpsc, oneshot};

use super::connection_slot::{Commit, Committer, Release};
use super::pending_commits::UnflushedThread;
use super::reader::to_i64;
use super::retention::TrimCommand;
use super::rows::{save_run, save_thread};
use super::txn_store::SqliteTxnStore;
use super::wal_checkpointer::WalCheckpointer;
use super::{SqliteOptions, StoreLock};
use crate::error::LogError;
use crate::key::{RunKey, ThreadKey};
use crate::outbox::{DeliveryOutcome, Subscriber};
use crate::record::{self, StoredRecord};
use crate::txn::{LogCommand, Txn};
use crate::{ReadFormat, limits};

/// A result whose error is a failure of the store; then the process must not continue.
pub(super) type SqliteResult<T> = rusqlite::Result<T>;

type Reply<T> = oneshot::Sender<Result<T, LogError>>;

/// A message to the writer.
pub(super) enum SqliteWriterMessage {
    /// A command of the log.
    Command(LogCommand),
    Trim(TrimCommand, Reply<usize>),
    Subscribe(Vec<Subscriber>, Reply<()>),
    MarkDelivered(u64, DeliveryOutcome, Reply<()>),
    /// Flushes pending commits so that reads see them.
    Flush(FlushScope, Reply<()>),
    Checkpoint {
        run: RunKey,
        form: ReadFormat,
        seq: u64,
        state: String,
    },
    Ping(Reply<()>),
    Close,
}

impl SqliteWriterMessage {
    /// Returns the bytes of its frames.
    fn bytes(&self) -> usize {
        match self {
            Self::Command(command) => command.bytes(),
            _ => 0,
        }
    }
}

/// What is flushed.
pub(super) enum FlushScope {
    Thread(ThreadKey),
    Run(RunKey),
    Everything,
}

/// The queue of the writer. Dropping it drops what is sent at the same moment, too, so that every waiting caller gets
/// an error.
pub(super) struct WriterQueue(pub(super) mpsc::Receiver<SqliteWriterMessage>);

impl Drop for WriterQueue {
    fn drop(&mut self) {
        self.0.close();
        while self.0.blocking_recv().is_some() {}
    }
}

pub(super) struct SqliteWriter {
    pub(super) txn: Txn<SqliteTxnStore>,
    options: SqliteOptions,
    pub(super) flush_now: HashSet<i64>,
    flush_all: bool,
    /// Threads whose rows are to be removed, each up to a `seq`.
    pub(super) purges: VecDeque<(i64, u64)>,
    /// Whether this commit adds outbox messages.
    pub(super) outbox_changed: bool,
    commits: u64,
    replies: Vec<Box<dyn FnOnce() + Send>>,
    /// Dropped after the connection: it waits for that.
    _checkpointer: WalCheckpointer,
    /// Held as long as anything may be written.
    _lock: StoreLock,
}

/// Bytes of records in one row.
const CHUNK_BYTES: usize = 64 << 10;
/// Bytes of pending records at which a thread is flushed.
const FLUSH_BYTES: usize = 32 << 10;
/// Bytes of pending commits beyond which the longest waiting threads are flushed.
const PENDING_BYTES: usize = 4 << 20;
/// Threads that are flushed in one commit because too much is pending, so that no commit takes long.
const FLUSH_THREADS: usize = 16;
/// Interval of polling the queue while a commit is waited for.
const QUEUE_POLL_INTERVAL: Duration = Duration::from_micros(100);
/// Under load, one commit in this many also removes rows.
const PURGE_EVERY: u64 = 32;

impl SqliteWriter {
    /// Opens the writer. The checkpointer is the first argument, so that it is dropped last if this fails.
    pub(super) fn open(
        checkpointer: WalCheckpointer,
        connection: Connection,
        lock: StoreLock,
        options: SqliteOptions,
    ) -> SqliteResult<Self> {
        let store = SqliteTxnStore::open(connection, &options)?;
        let mut writer = Self {
            txn: Txn::new(store, (options.clock)()),
            options,
            flush_now: HashSet::new(),
            flush_all: false,
            purges: VecDeque::new(),
            outbox_changed: false,
            commits: 0,
            replies: Vec::new(),
            _checkpointer: checkpointer,
            _lock: lock,
        };
        writer.find_purges()?;
        writer.txn.store.connection.commit_now()?;
        Ok(writer)
    }

    /// Runs until it is closed, or the store fails. The queue is dropped last.
    pub(super) fn run(mut self, mut requests: WriterQueue, committer: Committer) {
        let (commits, receiver) = std::sync::mpsc::channel();
        let fatal = committer.fatal.clone();
        let _watched = fatal.watch_thread();
        let committing =
            std::thread::Builder::new().name("log-committer".into()).spawn(move || committer.run(&receiver));
        let ended = match &committing {
            Ok(_) => self.commit_batches(&mut requests.0, &commits),
            Err(error) => Err(rusqlite::Error::ToSqlConversionFailure(error.to_string().into())),
        };
        if let Err(error) = ended {
            fatal.call(&error.to_string());
        }
        drop(commits);
        self.txn.store.connection.wait();
        // Dropping the senders reports an unknown outcome to waiting callers.
        drop(self);
        if let Ok(committing) = committing {
            let _ = committing.join();
        }
    }

    /// Executes commands and commits them, batch by batch.
    ///
    /// A batch takes what is queued. While the one before is being committed it keeps growing, so the slower the
    /// disk, the more commands share an fsync. Once nothing is queued, the thread waits for the commit, and not for
    /// the next command: a later command could not be committed sooner, and need not wake it. The queue is polled in
    /// between, so that most commands are executed when the commit is done.
    fn commit_batches(
        &mut self,
        requests: &mut mpsc::Receiver<SqliteWriterMessage>,
        commits: &std::sync::mpsc::Sender<Commit>,
    ) -> SqliteResult<()> {
        loop {
            let mut closing = false;
            let (mut count, mut bytes) = (0, 0);
            loop {
                if count >= limits::COMMIT_REQUESTS || bytes >= limits::COMMIT_BYTES {
                    break;
                }
                let has_work = count > 0 || !self.purges.is_empty();
                let next = match requests.try_recv() {
                    Ok(message) => Some(message),
                    Err(_) if self.txn.store.connection.is_with_committer() => {
                        self.txn.store.connection.wait_for(QUEUE_POLL_INTERVAL);
                        self.txn.store.connection.check()?;
                        continue;
                    }
                    Err(_) if has_work => None,
                    Err(_) => requests.blocking_recv(),
                };
                let Some(message) = next else { break };
                if count == 0 {
                    self.txn.now = (self.options.clock)();
                }
                match message {
                    SqliteWriterMessage::Close => {
                        closing = true;
                        break;
                    }
                    message => {
                        bytes += message.bytes();
                        count += 1;
                        self.handle(message)?;
                    }
                }
            }
            let over = closing || (count == 0 && self.purges.is_empty());
            self.flush_all |= closing;
            self.write_batch()?;
            self.commits += 1;
            // Rows of a thread that this commit deletes exist only after the batch is written.
            if count == 0 || self.commits.is_multiple_of(PURGE_EVERY) {
                self.purge()?;
            }
            self.txn.store.connection.check()?;
            self.submit_commit(commits);
            self.txn.heads.shrink();
            if over {
                self.txn.store.connection.wait();
                self.txn.store.connection.check()?;
                // Checkpoint the write-ahead log, so that one file remains.
                if closing && let Some(connection) = self.txn.store.connection.idle() {
                    let _ = super::schema::checkpoint_wal(&connection);
                }
                return Ok(());
            }
        }
    }

    /// Hands the batch to the committer, with what is released after the commit.
    fn submit_commit(&mut self, commits: &std::sync::mpsc::Sender<Commit>) {
        let records = self.txn.batch.records.drain();
        let release = Release {
            records: records.map(|(_, pending)| (pending.key, stored(pending.records))).collect(),
            deleted: self.txn.batch.deleted.drain(..).map(|(_, key)| key).collect(),
            replies: std::mem::take(&mut self.replies),
            unflushed: !self.txn.store.pending_commits.threads.is_empty(),
            outbox_changed: std::mem::take(&mut self.outbox_changed),
        };
        // Commands that changed nothing are released in order, too: they may report what the batch before has
        // changed.
        self.txn.store.connection.begin();
        if let Some((connection, returned)) = self.txn.store.connection.take() {
            // If the committer is gone the replies are dropped, which reports an error to the callers.
            let _ = commits.send(Commit { connection, returned, release });
        }
    }

    fn handle(&mut self, message: SqliteWriterMessage) -> SqliteResult<()> {
        match message {
            SqliteWriterMessage::Command(mut command) => {
                self.txn.execute(&mut command)?;
                self.replies.push(command.into_reply());
            }
            SqliteWriterMessage::Trim(trim, reply) => {
                let result = self.trim(&trim)?;
                self.reply(reply, Ok(result));
            }
            SqliteWriterMessage::Subscribe(subscribers, reply) => {
                self.subscribe(subscribers)?;
                self.reply(reply, Ok(()));
            }
            SqliteWriterMessage::MarkDelivered(message, outcome, reply) => {
                self.mark_delivered(message, outcome)?;
                self.reply(reply, Ok(()));
            }
            SqliteWriterMessage::Flush(what, reply) => {
                let heads = &self.txn.heads;
                match what {
                    FlushScope::Thread(key) => self.flush_now.extend(heads.loaded_thread(&key)),
                    FlushScope::Run(key) => self.flush_now.extend(heads.thread_of_loaded_run(&key)),
                    FlushScope::Everything => self.flush_all = true,
                }
                self.reply(reply, Ok(()));
            }
            SqliteWriterMessage::Checkpoint { run, form, seq, state } => {
                let sql = "INSERT OR REPLACE INTO checkpoint (run, form, seq, state) \
                           SELECT id, ?3, ?4, ?5 FROM run WHERE tenant = ?1 AND name = ?2 AND trimmed = 0";
                let values = params![&*run.tenant, &*run.id, form.name(), to_i64(seq), state];
                self.txn.store.connection.begin().prepare_cached(sql)?.execute(values)?;
            }
            SqliteWriterMessage::Ping(reply) => self.reply(reply, Ok(())),
            SqliteWriterMessage::Close => {}
        }
        Ok(())
    }

    fn reply<T: Send + 'static>(&mut self, reply: Reply<T>, result: Result<T, LogError>) {
        // The caller may be gone.
        self.replies.push(Box::new(move || drop(reply.send(result))));
    }

    /// Writes the batch: what changes with every record into `pending_commits`, and new rows and changes of status
    /// into their tables.
    fn write_batch(&mut self) -> SqliteResult<()> {
        self.save_heads()?;
        self.mark_deleted()?;
        let pending_commits = &mut self.txn.store.pending_commits;
        let deleted = &self.txn.batch.deleted;
        let is_kept = |thread: i64| deleted.iter().all(|(gone, _)| *gone != thread);
        for (thread, pending) in self.txn.batch.records.iter().filter(|(thread, _)| is_kept(**thread)) {
            let unflushed = pending_commits.of(*thread);
            let from = unflushed.body.len();
            for (run, stored) in &pending.records {
                record::encode(&mut unflushed.body, *run as u64, stored);
                unflushed.ends.push(unflushed.body.len());
                unflushed.records.push((*run, stored.clone()));
            }
            if unflushed.body.len() >= FLUSH_BYTES {
                // Enough for a row of its own: it need not be written twice.
                self.flush_now.insert(*thread);
            } else {
                pending_commits.push_records(*thread, from);
            }
        }
        self.save_outbox()?;
        let SqliteTxnStore { connection, pending_commits, .. } = &mut self.txn.store;
        pending_commits.write(connection.begin())?;
        self.flush()
    }

    /// Writes the changed heads: threads first, because runs refer to them.
    fn save_heads(&mut self) -> SqliteResult<()> {
        let Txn { heads, batch, store, .. } = &mut self.txn;
        let SqliteTxnStore { connection, pending_commits, leases, .. } = store;
        for id in batch.touched_threads.drain() {
            if let Some(thread) = heads.thread_mut(id) {
                save_thread(connection.begin(), thread)?;
            }
        }
        for id in batch.touched_runs.drain() {
            let Some(run) = heads.run_mut(id) else { continue };
            leases.save(run);
            if run.new || run.stored_status != run.head.state.status {
                if run.head.state.status.is_closed() {
                    // Rows that end with a run can be removed with it.
                    self.flush_now.insert(run.thread);
                }
                save_run(connection.begin(), run)?;
            } else if run.dirty || run.producers.values().any(|producer| producer.dirty) {
                pending_commits.push_run(run)?;
                pending_commits.of(run.thread).runs.insert(id);
            }
        }
        Ok(())
    }

    /// Flushes threads that were asked for, or have waited for long.
    fn flush(&mut self) -> SqliteResult<()> {
        if self.flush_all || self.txn.heads.is_full() {
            self.flush_all = false;
            self.flush_now.extend(self.txn.store.pending_commits.threads.keys());
        }
        let mut flushed = !self.flush_now.is_empty();
        for thread in std::mem::take(&mut self.flush_now) {
            self.flush_thread(thread)?;
        }
        for _ in 0..FLUSH_THREADS {
            let Some(thread) = self.txn.store.pending_commits.overdue(PENDING_BYTES) else { break };
            self.flush_thread(thread)?;
            flushed = true;
        }
        let SqliteTxnStore { connection, pending_commits, .. } = &mut self.txn.store;
        if flushed { pending_commits.remove_flushed(connection.begin()) } else { Ok(()) }
    }

    fn flush_thread(&mut self, thread: i64) -> SqliteResult<()> {
        let SqliteTxnStore { connection, pending_commits, .. } = &mut self.txn.store;
        let Some(UnflushedThread { records, body, ends, runs, .. }) = pending_commits.threads.remove(&thread)
        else {
            return Ok(());
        };
        let sql = "INSERT INTO chunk (thread, first, last, body) VALUES (?1, ?2, ?3, ?4)";
        let mut insert = connection.begin().prepare_cached(sql)?;
        let (mut first, mut from) = (0, 0);
        for (at, end) in ends.iter().enumerate() {
            if end - from >= CHUNK_BYTES || at + 1 == ends.len() {
                let (first_seq, last_seq) = (records[first].1.record.seq, records[at].1.record.seq);
                insert.execute(params![thread, first_seq, last_seq, &body[from..*end]])?;
                (first, from) = (at + 1, *end);
            }
        }
        for run in runs {
            if let Some(run) = self.txn.heads.run_mut(run) {
                save_run(connection.begin(), run)?;
            }
        }
        Ok(())
    }
}

fn stored(records: Vec<(i64, Arc<StoredRecord>)>) -> Vec<Arc<StoredRecord>> {
    records.into_iter().map(|(_, stored)| stored).collect()
}
