//! The writer thread: executes all queued commands, has them committed as one transaction, and releases
//! acknowledgements and readers together (`connection_slot.rs`).
//!
//! There is no timer. While a commit waits for the disk, commands queue up; the next commit takes them all. So the
//! disk sets the pace, a lone command never waits for others, and many share one fsync.

use std::collections::BTreeSet;
use std::sync::Arc;

use rusqlite::{Connection, params};
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use super::SqliteOptions;
use super::connection_slot::{Commit, Committer, Release};
use super::error::{SqliteError, SqliteResult};
use super::message_queue::{Idle, MessageQueue};
use super::open::StoreLock;
use super::pending_commits::UnflushedThread;
use super::rows::{save_chunk, save_run, save_thread};
use super::txn_store::SqliteTxnStore;
use super::wal_checkpointer::WalCheckpointer;
use crate::error::LogError;
use crate::limits;
use crate::outbox::{DeliveryOutcome, Subscriber};
use crate::record::{RecordEncoder, StoredRecord};
use crate::sql::{self, to_i64};
use crate::store::TrimCommand;
use crate::txn::{CommandReply, LogCommand, Txn};
use crate::unreadable_rows::UnreadableRows;
use crate::waiting_checkpoints::{Checkpoint, WaitingCheckpoints};

type Reply<T> = oneshot::Sender<Result<T, LogError>>;

/// A message to the writer.
pub(super) enum SqliteWriterMessage {
    /// A command of the log, and its share of the queue's bytes until it is answered.
    Command(LogCommand, OwnedSemaphorePermit),
    /// Appends that were submitted together, and their share of the queue's bytes until they are answered.
    Appends(Vec<LogCommand>, OwnedSemaphorePermit),
    /// Runs to remove, and the share of the queue's bytes of what replaces them.
    Trim(TrimCommand, OwnedSemaphorePermit, Reply<usize>),
    Subscribe(Vec<Subscriber>, Reply<()>),
    MarkDelivered(u64, DeliveryOutcome, Reply<()>),
    /// A checkpoint waits to be stored.
    CheckpointWaits,
    Ping(Reply<()>),
    Close,
}

impl SqliteWriterMessage {
    /// Counts its commands.
    fn commands(&self) -> usize {
        match self {
            Self::Appends(commands, _) => commands.len(),
            _ => 1,
        }
    }

    /// Returns the bytes of its frames, or of what it stores instead.
    fn bytes(&self) -> usize {
        match self {
            Self::Command(command, _) => command.bytes(),
            Self::Appends(commands, _) => commands.iter().map(LogCommand::bytes).sum(),
            Self::Trim(trim, ..) => trim.bytes(),
            _ => 0,
        }
    }
}

/// The queue of the writer.
pub(super) type WriterQueue = MessageQueue<SqliteWriterMessage>;

pub(super) struct SqliteWriter {
    pub(super) txn: Txn<SqliteTxnStore>,
    options: SqliteOptions,
    pub(super) flush_now: BTreeSet<i64>,
    flush_all: bool,
    /// Whether rows of deleted or trimmed threads may be left to remove.
    pub(super) purging: bool,
    /// Whether this commit adds outbox messages.
    pub(super) outbox_changed: bool,
    commits: u64,
    /// Checkpoints of readers.
    checkpoints: Arc<WaitingCheckpoints>,
    /// Rows that the connection had changed at the last commit.
    committed_changes: u64,
    encoder: RecordEncoder,
    replies: Vec<CommandReply>,
    /// The queue's bytes that this commit gives back.
    queue_bytes: Vec<OwnedSemaphorePermit>,
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
/// Under load, one commit in this many also removes rows.
const PURGE_EVERY: u64 = 32;

impl SqliteWriter {
    /// Opens the writer. The checkpointer is the first argument, so that it is dropped last if this fails.
    pub(super) fn open(
        checkpointer: WalCheckpointer,
        connection: Connection,
        lock: StoreLock,
        options: SqliteOptions,
        unreadable: Arc<UnreadableRows>,
        checkpoints: Arc<WaitingCheckpoints>,
    ) -> SqliteResult<Self> {
        let store = SqliteTxnStore::open(connection, &options, unreadable)?;
        let mut writer = Self {
            txn: Txn::new(store, (options.clock)()),
            options,
            flush_now: BTreeSet::new(),
            flush_all: false,
            purging: false,
            outbox_changed: false,
            commits: 0,
            checkpoints,
            committed_changes: 0,
            encoder: RecordEncoder::default(),
            replies: Vec::new(),
            queue_bytes: Vec::new(),
            _checkpointer: checkpointer,
            _lock: lock,
        };
        let connection = writer.txn.store.connection.begin()?;
        writer.purging = connection.prepare("SELECT 1 FROM thread WHERE unpurged")?.exists([])?;
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
            Ok(_) => self.commit_batches(&mut requests, &commits),
            Err(error) => Err(std::io::Error::new(error.kind(), error.to_string()).into()),
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
    /// the next command: a later command could not be committed sooner, and need not wake it. It looks at the queue
    /// about half way, so that most commands are executed when the commit is done.
    fn commit_batches(
        &mut self,
        requests: &mut WriterQueue,
        commits: &std::sync::mpsc::Sender<Commit>,
    ) -> SqliteResult<()> {
        loop {
            let (mut closing, mut idle) = (false, false);
            let (mut count, mut bytes) = (0, 0);
            loop {
                if count >= limits::COMMIT_REQUESTS || bytes >= limits::COMMIT_BYTES {
                    break;
                }
                let has_work = count > 0 || self.purging;
                let next = match requests.0.try_recv() {
                    Ok(message) => Some(message),
                    Err(_) if self.txn.store.connection.is_with_committer() => {
                        self.txn.store.connection.wait_a_while();
                        self.txn.store.connection.check()?;
                        continue;
                    }
                    Err(_) if has_work => None,
                    Err(_) if self.checkpoints.is_empty() => requests.0.blocking_recv(),
                    Err(_) => match requests.receive_within(self.options.checkpoint_idle) {
                        Ok(message) => message,
                        Err(Idle) => {
                            idle = true;
                            None
                        }
                    },
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
                    // Seen when there is nothing to do.
                    SqliteWriterMessage::CheckpointWaits => {}
                    message => {
                        bytes += message.bytes();
                        count += message.commands();
                        self.handle(message)?;
                    }
                }
            }
            let over = closing || (count == 0 && !self.purging && !idle);
            self.flush_all |= closing;
            self.write_batch()?;
            self.commits += 1;
            // Rows of a thread that this commit deletes exist only after the batch is written.
            if count == 0 || self.commits.is_multiple_of(PURGE_EVERY) {
                self.purge()?;
            }
            self.txn.store.connection.check()?;
            self.save_checkpoints(idle)?;
            self.submit_commit(commits)?;
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

    /// Stores waiting checkpoints with a commit that writes anyway, or by themselves while there is nothing else to do.
    fn save_checkpoints(&mut self, idle: bool) -> SqliteResult<()> {
        let connection = self.txn.store.connection.begin()?;
        if idle || connection.total_changes() != self.committed_changes {
            for Checkpoint { run, form, seq, state } in self.checkpoints.take() {
                let sql = "INSERT OR REPLACE INTO checkpoint (run, form, seq, state) \
                           SELECT id, ?3, ?4, ?5 FROM run WHERE tenant = ?1 AND name = ?2 AND trimmed = 0";
                let values = params![&*run.tenant, &*run.id, form.name(), to_i64(seq), state];
                connection.prepare_cached(sql)?.execute(values)?;
            }
        }
        self.committed_changes = connection.total_changes();
        Ok(())
    }

    /// Hands the batch to the committer, with what is released after the commit.
    fn submit_commit(&mut self, commits: &std::sync::mpsc::Sender<Commit>) -> SqliteResult<()> {
        let records = self.txn.batch.records.drain();
        let release = Release {
            records: records.map(|(_, pending)| (pending.key, stored(pending.records))).collect(),
            deleted: self.txn.batch.deleted.drain(..).map(|(_, key)| key).collect(),
            replies: std::mem::take(&mut self.replies),
            queue_bytes: std::mem::take(&mut self.queue_bytes),
            unflushed: self.txn.store.pending_commits.take_changes(),
            outbox_changed: std::mem::take(&mut self.outbox_changed),
            scanned: self.txn.scanned.take(),
        };
        // Commands that changed nothing are released in order, too: they may report what the batch before has
        // changed.
        self.txn.store.connection.begin()?;
        if let Some((connection, returned)) = self.txn.store.connection.take() {
            // If the committer is gone the replies are dropped, which reports an error to the callers.
            let _ = commits.send(Commit { connection, returned, release });
        }
        Ok(())
    }

    fn handle(&mut self, message: SqliteWriterMessage) -> SqliteResult<()> {
        match message {
            SqliteWriterMessage::Command(command, queue_bytes) => {
                self.execute(command)?;
                self.queue_bytes.push(queue_bytes);
            }
            SqliteWriterMessage::Appends(commands, queue_bytes) => {
                for command in commands {
                    self.execute(command)?;
                }
                self.queue_bytes.push(queue_bytes);
            }
            SqliteWriterMessage::Trim(trim, queue_bytes, reply) => {
                let result = self.trim(&trim);
                self.reply(reply, result)?;
                self.queue_bytes.push(queue_bytes);
            }
            SqliteWriterMessage::Subscribe(subscribers, reply) => {
                let result = self.subscribe(subscribers);
                self.reply(reply, result)?;
            }
            SqliteWriterMessage::MarkDelivered(message, outcome, reply) => {
                let connection = self.txn.store.connection.begin()?;
                let result = sql::mark_delivered(connection, message, outcome, self.txn.now);
                self.reply(reply, result)?;
            }
            SqliteWriterMessage::Ping(reply) => self.reply(reply, Ok(()))?,
            SqliteWriterMessage::CheckpointWaits | SqliteWriterMessage::Close => {}
        }
        Ok(())
    }

    /// Executes a command of the log; its reply is sent after the commit.
    fn execute(&mut self, mut command: LogCommand) -> SqliteResult<()> {
        let mark = self.txn.mark();
        let reply = match self.txn.execute(&mut command) {
            Ok(()) => command.into_reply(),
            // It has changed nothing, so the damage need not end the process.
            Err(failure) if failure.is_damage() && self.txn.mark() == mark => {
                let refusal = refusal_of(&failure);
                CommandReply::Caller(Box::new(move || command.refuse(refusal)))
            }
            Err(failure) => return Err(failure),
        };
        self.replies.push(reply);
        Ok(())
    }

    /// Replies after the commit. Damage is found before anything changes, so it need not end the process.
    fn reply<T: Send + 'static>(&mut self, reply: Reply<T>, result: SqliteResult<T>) -> SqliteResult<()> {
        let result = match result {
            Err(failure) if failure.is_damage() => Err(refusal_of(&failure)),
            result => Ok(result?),
        };
        // The caller may be gone.
        self.replies.push(CommandReply::Caller(Box::new(move || drop(reply.send(result)))));
        Ok(())
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
            let last = unflushed.records.last().map(|(_, stored)| stored.record.seq);
            let next = pending.records.first().map(|(_, stored)| stored.record.seq);
            assert!(last.is_none() || last.map(|last| last + 1) == next, "`seq` is contiguous in a thread");
            for (run, stored) in &pending.records {
                self.encoder.encode(&mut unflushed.body, *run as u64, stored);
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
        pending_commits.write(connection.begin()?)?;
        self.flush()
    }

    /// Writes the changed heads: threads first, because runs refer to them.
    fn save_heads(&mut self) -> SqliteResult<()> {
        let Txn { heads, batch, store, .. } = &mut self.txn;
        let SqliteTxnStore { connection, pending_commits, leases, .. } = store;
        for id in batch.touched_threads.drain() {
            if let Some(thread) = heads.thread_mut(id) {
                save_thread(connection.begin()?, thread)?;
            }
        }
        for id in batch.touched_runs.drain() {
            let Some(run) = heads.run_mut(id) else { continue };
            leases.save(run);
            // What lists are filtered by is never pending.
            if run.new
                || run.stored_status != run.head.state.status
                || run.stored_interactions != run.interaction_counts()
            {
                if run.head.state.status.is_closed() {
                    // Rows that end with a run can be removed with it.
                    self.flush_now.insert(run.thread);
                }
                save_run(connection.begin()?, run)?;
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
        if flushed {
            pending_commits.remove_flushed(connection.begin()?)?;
        }
        Ok(())
    }

    fn flush_thread(&mut self, thread: i64) -> SqliteResult<()> {
        let Txn { heads, store, .. } = &mut self.txn;
        let SqliteTxnStore { connection, pending_commits, .. } = store;
        let Some(UnflushedThread { records, body, ends, runs, .. }) = pending_commits.remove(thread) else {
            return Ok(());
        };
        let (mut first, mut from) = (0, 0);
        for (at, end) in ends.iter().enumerate() {
            if end - from >= CHUNK_BYTES || at + 1 == ends.len() {
                let (first_seq, last_seq) = (records[first].1.record.seq, records[at].1.record.seq);
                assert!(last_seq - first_seq == (at - first) as u64, "`seq` is contiguous in a thread");
                if let Some(thread) = heads.thread_mut(thread) {
                    thread.store_records(first_seq, last_seq);
                }
                save_chunk(connection.begin()?, thread, first_seq, last_seq, &body[from..*end])?;
                (first, from) = (at + 1, *end);
            }
        }
        for run in runs {
            if let Some(run) = heads.run_mut(run) {
                save_run(connection.begin()?, run)?;
            }
        }
        Ok(())
    }
}

/// Reports that stored data cannot be read, and refuses what needs it.
fn refusal_of(failure: &SqliteError) -> LogError {
    tracing::error!(%failure, "a command needs data that cannot be read");
    LogError::Damaged(format!("{failure}; nothing was written"))
}

fn stored(records: Vec<(i64, Arc<StoredRecord>)>) -> Vec<Arc<StoredRecord>> {
    records.into_iter().map(|(_, stored)| stored).collect()
}
