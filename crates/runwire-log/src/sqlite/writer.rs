//! The one writer: takes whatever has queued up, has it committed as one transaction, and then the
//! acknowledgements and the readers are released together (`desk.rs`).
//!
//! There is no timer. While a commit waits for the disk, requests queue up; the next commit takes them all. So
//! the disk sets the pace, a lone request never waits for company, and many share one flush.

use std::collections::{HashSet, VecDeque};
use std::fs::File;
use std::sync::Arc;
use std::time::Duration;

use rusqlite::{Connection, params};
use tokio::sync::{mpsc, oneshot};

use super::Options;
use super::desk::{Commit, Committer, Release};
use super::fold::Folder;
use super::journal::Unsealed;
use super::read::whole_number;
use super::retention::Trim;
use super::rows::{save_run, save_thread};
use super::tables::Tables;
use crate::error::LogError;
use crate::key::{RunKey, ThreadKey};
use crate::outbox::{DeliveryOutcome, Subscriber};
use crate::record::{self, Stored};
use crate::txn::{Command, Txn};
use crate::{Form, limits};

/// A result that only the store can spoil; then the process must not go on.
pub(super) type Db<T> = rusqlite::Result<T>;

type Reply<T> = oneshot::Sender<Result<T, LogError>>;

/// What the writer is asked to do.
pub(super) enum Order {
    /// One of the log's verbs.
    Command(Command),
    Trim(Trim, Reply<usize>),
    Subscribe(Vec<Subscriber>, Reply<()>),
    MarkDelivered(u64, DeliveryOutcome, Reply<()>),
    /// Brings rows up to date, for whoever reads them.
    Seal(Sealing, Reply<()>),
    Checkpoint {
        run: RunKey,
        form: Form,
        seq: u64,
        state: String,
    },
    Ping(Reply<()>),
    Close,
}

impl Order {
    /// Counts the bytes of frames that it brings.
    fn bytes(&self) -> usize {
        match self {
            Self::Command(command) => command.bytes(),
            _ => 0,
        }
    }
}

/// What is brought up to date.
pub(super) enum Sealing {
    Thread(ThreadKey),
    Run(RunKey),
    Everything,
}

/// Where requests come in. Whatever is sent in the moment it goes away is dropped too, never left lying: whoever
/// waits for an answer learns that there is none.
pub(super) struct Inbox(pub(super) mpsc::Receiver<Order>);

impl Drop for Inbox {
    fn drop(&mut self) {
        self.0.close();
        while self.0.blocking_recv().is_some() {}
    }
}

pub(super) struct Writer {
    pub(super) txn: Txn<Tables>,
    options: Options,
    pub(super) seal_now: HashSet<i64>,
    seal_all: bool,
    /// Threads whose rows are still to be removed: up to which `seq`.
    pub(super) purges: VecDeque<(i64, u64)>,
    /// Whether there is anything that subscribers are to be told of this commit.
    pub(super) outbox_changed: bool,
    commits: u64,
    replies: Vec<Box<dyn FnOnce() + Send>>,
    /// After the connection: it waits for that to go.
    _folder: Folder,
    /// Held as long as anything may be written.
    _lock: File,
}

/// Bytes of records in one row.
const CHUNK_BYTES: usize = 64 << 10;
/// Bytes of records with which a thread is sealed.
const SEALED_BYTES: usize = 32 << 10;
/// Bytes of the journal beyond which the threads that have waited longest are sealed.
const JOURNAL_BYTES: usize = 4 << 20;
/// Threads that are sealed in one commit because the journal is too long, so that no commit takes long.
const SEALED_THREADS: usize = 16;
/// Time after which the queue is looked at again while a commit is waited for.
const LOOK_TIME: Duration = Duration::from_micros(100);
/// Under load, one commit in so many also removes rows.
const PURGE_EVERY: u64 = 32;

impl Writer {
    /// Begins to write. The folder comes first, so that it goes last where this fails.
    pub(super) fn open(folder: Folder, connection: Connection, lock: File, options: Options) -> Db<Self> {
        let tables = Tables::open(connection, &options)?;
        let mut writer = Self {
            txn: Txn::new(tables, (options.clock)()),
            options,
            seal_now: HashSet::new(),
            seal_all: false,
            purges: VecDeque::new(),
            outbox_changed: false,
            commits: 0,
            replies: Vec::new(),
            _folder: folder,
            _lock: lock,
        };
        writer.find_purges()?;
        writer.txn.store.connection.settle()?;
        Ok(writer)
    }

    /// Works until it is told to close, or the store fails. Then the requests are the last thing to go.
    pub(super) fn run(mut self, mut requests: Inbox, committer: Committer) {
        let (commits, inbox) = std::sync::mpsc::channel();
        let fatal = committer.fatal.clone();
        let _watched = fatal.watch_thread();
        let committing =
            std::thread::Builder::new().name("log-committer".into()).spawn(move || committer.run(&inbox));
        let ended = match &committing {
            Ok(_) => self.commit_batches(&mut requests.0, &commits),
            Err(error) => Err(rusqlite::Error::ToSqlConversionFailure(error.to_string().into())),
        };
        if let Err(error) = ended {
            fatal.call(&error.to_string());
        }
        drop(commits);
        self.txn.store.connection.wait();
        // Whoever still waits is told by this that nobody knows.
        drop(self);
        if let Ok(committing) = committing {
            let _ = committing.join();
        }
    }

    /// Performs requests and commits them, batch by batch.
    ///
    /// A batch takes what has queued up. While the one before it is being committed it goes on growing, so the
    /// slower the disk, the more share a flush. Once nothing is queued, the commit is waited for, and not the next
    /// request: whatever comes meanwhile could not be committed sooner, and need not wake anyone. The queue is only
    /// looked at now and then, so that most is decoded when the commit is done.
    fn commit_batches(
        &mut self,
        requests: &mut mpsc::Receiver<Order>,
        commits: &std::sync::mpsc::Sender<Commit>,
    ) -> Db<()> {
        loop {
            let mut closing = false;
            let (mut count, mut bytes) = (0, 0);
            loop {
                if count >= limits::COMMIT_REQUESTS || bytes >= limits::COMMIT_BYTES {
                    break;
                }
                let has_work = count > 0 || !self.purges.is_empty();
                let next = match requests.try_recv() {
                    Ok(order) => Some(order),
                    Err(_) if self.txn.store.connection.is_away() => {
                        self.txn.store.connection.wait_for(LOOK_TIME);
                        self.txn.store.connection.check()?;
                        continue;
                    }
                    Err(_) if has_work => None,
                    Err(_) => requests.blocking_recv(),
                };
                let Some(order) = next else { break };
                if count == 0 {
                    self.txn.now = (self.options.clock)();
                }
                match order {
                    Order::Close => {
                        closing = true;
                        break;
                    }
                    order => {
                        bytes += order.bytes();
                        count += 1;
                        self.perform(order)?;
                    }
                }
            }
            let over = closing || (count == 0 && self.purges.is_empty());
            self.seal_all |= closing;
            self.flush()?;
            self.commits += 1;
            // ReadStore of a thread that this commit deletes are there only after the flush.
            if count == 0 || self.commits.is_multiple_of(PURGE_EVERY) {
                self.purge()?;
            }
            self.txn.store.connection.check()?;
            self.hand_over(commits);
            self.txn.heads.shrink();
            if over {
                self.txn.store.connection.wait();
                self.txn.store.connection.check()?;
                // The write-ahead log is folded into the file, so that what is left is one file.
                if closing && let Some(connection) = self.txn.store.connection.idle() {
                    let _ = super::schema::fold_log(&connection);
                }
                return Ok(());
            }
        }
    }

    /// Lets the batch be committed, and what waits for it be released.
    fn hand_over(&mut self, commits: &std::sync::mpsc::Sender<Commit>) {
        let records = self.txn.batch.pending.drain();
        let release = Release {
            records: records.map(|(_, pending)| (pending.key, stored(pending.records))).collect(),
            deleted: self.txn.batch.deleted.drain(..).map(|(_, key)| key).collect(),
            replies: std::mem::take(&mut self.replies),
            unsealed: !self.txn.store.journal.threads.is_empty(),
            outbox_changed: std::mem::take(&mut self.outbox_changed),
        };
        // Also what changed nothing is released in its turn: it may tell of what the batch before it changed.
        self.txn.store.connection.begin_if_idle();
        if let Some((connection, back)) = self.txn.store.connection.take() {
            // A committer that is gone lets go of the replies, which tells whoever waits.
            let _ = commits.send(Commit { connection, back, release });
        }
    }

    fn perform(&mut self, order: Order) -> Db<()> {
        match order {
            Order::Command(mut command) => {
                self.txn.execute(&mut command)?;
                self.replies.push(command.into_reply());
            }
            Order::Trim(trim, reply) => {
                let result = self.trim(&trim)?;
                self.reply(reply, Ok(result));
            }
            Order::Subscribe(subscribers, reply) => {
                self.subscribe(subscribers)?;
                self.reply(reply, Ok(()));
            }
            Order::MarkDelivered(notice, outcome, reply) => {
                self.mark_delivered(notice, told)?;
                self.reply(reply, Ok(()));
            }
            Order::Seal(what, reply) => {
                let heads = &self.txn.heads;
                match what {
                    Sealing::Thread(key) => self.seal_now.extend(heads.thread_at_hand(&key)),
                    Sealing::Run(key) => self.seal_now.extend(heads.thread_of_run_at_hand(&key)),
                    Sealing::Everything => self.seal_all = true,
                }
                self.reply(reply, Ok(()));
            }
            Order::Checkpoint { run, form, seq, state } => {
                let sql = "INSERT OR REPLACE INTO checkpoint (run, form, seq, state) \
                           SELECT id, ?3, ?4, ?5 FROM run WHERE tenant = ?1 AND name = ?2 AND trimmed = 0";
                let by = params![&*run.tenant, &*run.id, form.name(), whole_number(seq), state];
                self.txn.store.connection.prepare_cached(sql)?.execute(by)?;
            }
            Order::Ping(reply) => self.reply(reply, Ok(())),
            Order::Close => {}
        }
        Ok(())
    }

    fn reply<T: Send + 'static>(&mut self, reply: Reply<T>, result: Result<T, LogError>) {
        // Whoever asked may have gone; the log does not mind.
        self.replies.push(Box::new(move || drop(reply.send(result))));
    }

    /// Writes what the requests have changed: into the journal what changes with every record, into its rows
    /// what is new or tells how far a run is.
    fn flush(&mut self) -> Db<()> {
        self.save_heads()?;
        self.bury()?;
        let journal = &mut self.txn.store.journal;
        let deleted = &self.txn.batch.deleted;
        let is_kept = |thread: i64| deleted.iter().all(|(gone, _)| *gone != thread);
        for (thread, pending) in self.txn.batch.pending.iter().filter(|(thread, _)| is_kept(**thread)) {
            let unsealed = journal.of(*thread);
            let from = unsealed.body.len();
            for (run, stored) in &pending.records {
                record::write(&mut unsealed.body, *run as u64, stored);
                unsealed.ends.push(unsealed.body.len());
                unsealed.records.push((*run, stored.clone()));
            }
            if unsealed.body.len() >= SEALED_BYTES {
                // Enough for a row of its own: no need to write it twice.
                self.seal_now.insert(*thread);
            } else {
                journal.note_records(*thread, from);
            }
        }
        self.save_outbox()?;
        let Tables { connection, journal, .. } = &mut self.txn.store;
        journal.write(connection)?;
        self.seal()
    }

    /// Writes the heads that the requests have changed: threads first, because runs refer to them.
    fn save_heads(&mut self) -> Db<()> {
        let Txn { heads, batch, store, .. } = &mut self.txn;
        let Tables { connection, journal, leases, .. } = store;
        for id in batch.touched_threads.drain() {
            if let Some(thread) = heads.thread_mut(id) {
                save_thread(connection, thread)?;
            }
        }
        for id in batch.touched_runs.drain() {
            let Some(run) = heads.run_mut(id) else { continue };
            leases.save(run);
            if run.new || run.stored_status != run.head.state.status {
                if run.head.state.status.is_closed() {
                    // ReadStore that end where runs do can be removed with them.
                    self.seal_now.insert(run.thread);
                }
                save_run(connection, run)?;
            } else if run.dirty || run.producers.values().any(|producer| producer.dirty) {
                journal.note_run(run)?;
                journal.of(run.thread).runs.insert(id);
            }
        }
        Ok(())
    }

    /// Brings the rows of threads up to date that are asked for, or have waited for long.
    fn seal(&mut self) -> Db<()> {
        if self.seal_all || self.txn.heads.is_crowded() {
            self.seal_all = false;
            self.seal_now.extend(self.txn.store.journal.threads.keys());
        }
        let mut sealed = !self.seal_now.is_empty();
        for thread in std::mem::take(&mut self.seal_now) {
            self.seal_thread(thread)?;
        }
        for _ in 0..SEALED_THREADS {
            let Some(thread) = self.txn.store.journal.overdue(JOURNAL_BYTES) else { break };
            self.seal_thread(thread)?;
            sealed = true;
        }
        let Tables { connection, journal, .. } = &mut self.txn.store;
        if sealed { journal.clean(connection) } else { Ok(()) }
    }

    fn seal_thread(&mut self, thread: i64) -> Db<()> {
        let Tables { connection, journal, .. } = &mut self.txn.store;
        let Some(Unsealed { records, body, ends, runs, .. }) = journal.threads.remove(&thread) else {
            return Ok(());
        };
        let sql = "INSERT INTO chunk (thread, first, last, body) VALUES (?1, ?2, ?3, ?4)";
        let mut insert = connection.prepare_cached(sql)?;
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
                save_run(connection, run)?;
            }
        }
        Ok(())
    }
}

fn stored(records: Vec<(i64, Arc<Stored>)>) -> Vec<Arc<Stored>> {
    records.into_iter().map(|(_, stored)| stored).collect()
}
