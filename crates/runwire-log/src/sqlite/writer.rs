//! The one writer: takes whatever has queued up, has it committed as one transaction, and then the
//! acknowledgements and the readers are released together (`desk.rs`).
//!
//! There is no timer. While a commit waits for the disk, requests queue up; the next commit takes them all. So
//! the disk sets the pace, a lone request never waits for company, and many share one flush.

use std::collections::{HashMap, HashSet, VecDeque};
use std::fs::File;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use runwire_model::Timestamp;
use rusqlite::{Connection, params};
use tokio::sync::{mpsc, oneshot};

use super::Options;
use super::desk::{Commit, Committer, Desk, Release};
use super::fold::Folder;
use super::heads::{Heads, RunHead, ThreadHead};
use super::journal::{Journal, Unsealed};
use super::leases::Leases;
use super::notices::NewNotice;
use super::read::{form_name, whole_number};
use super::retention::Cut;
use super::rows::{save_run, save_thread};
use super::source::{Lookups, Source};
use crate::append::{Append, Appended};
use crate::error::LogError;
use crate::info::{Created, NewRun, NewThread, RunInfo, ThreadInfo};
use crate::interaction::{Answer, Answered};
use crate::key::{RunKey, ThreadKey};
use crate::moved::{Imported, Numbered};
use crate::notice::{Subscriber, Told};
use crate::record::{self, Stored};
use crate::{Cancel, Cancelled, Form, limits};

/// A result that only the store can spoil; then the process must not go on.
pub(super) type Db<T> = rusqlite::Result<T>;

/// What comes out of an act on the log: a fault of the store, a refusal, or a result.
pub(super) type Done<T> = Db<Result<T, LogError>>;

type Reply<T> = oneshot::Sender<Result<T, LogError>>;

/// What the writer is asked to do.
pub(super) enum Op {
    Append(Append, Reply<Appended>),
    Import(ThreadKey, Vec<Numbered>, Reply<Imported>),
    CreateRun(NewRun, Reply<Created<RunInfo>>),
    CreateThread(NewThread, Reply<Created<ThreadInfo>>),
    Cancel(RunKey, Cancel, Reply<Cancelled>),
    Answer(RunKey, Vec<Answer>, Reply<Vec<Answered>>),
    Heartbeat(RunKey, Reply<RunInfo>),
    Sweep(Reply<usize>),
    Delete(ThreadKey, bool, Reply<()>),
    Trim(Cut, Reply<usize>),
    Subscribe(Vec<Subscriber>, Reply<()>),
    Told(u64, Told, Reply<()>),
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

impl Op {
    /// Counts the bytes of frames that it brings.
    fn bytes(&self) -> usize {
        match self {
            Self::Append(append, _) => append.frames.bytes(),
            Self::Import(_, pieces, _) => pieces.iter().map(|(_, piece)| piece.weight()).sum(),
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
pub(super) struct Inbox(pub(super) mpsc::Receiver<Op>);

impl Drop for Inbox {
    fn drop(&mut self) {
        self.0.close();
        while self.0.blocking_recv().is_some() {}
    }
}

pub(super) struct Writer {
    pub(super) connection: Desk,
    pub(super) journal: Journal,
    pub(super) seal_now: HashSet<i64>,
    seal_all: bool,
    /// Threads that the commit at hand deletes.
    pub(super) gone: HashSet<i64>,
    pub(super) heads: Heads,
    pub(super) leases: Leases,
    pub(super) options: Options,
    pending: HashMap<i64, Pending>,
    pub(super) touched_runs: HashSet<i64>,
    pub(super) touched_threads: HashSet<i64>,
    /// Threads whose readers learn with the commit that they are gone.
    pub(super) deleted: Vec<ThreadKey>,
    /// Threads whose rows are still to be removed: up to which `seq`.
    pub(super) purges: VecDeque<(i64, u64)>,
    pub(super) subscribers: Vec<Subscriber>,
    /// What subscribers are to be told of this commit, and whether there was anything.
    pub(super) notices: Vec<NewNotice>,
    pub(super) noticed: bool,
    commits: u64,
    pub(super) lookups: Lookups,
    now: Timestamp,
    replies: Vec<Box<dyn FnOnce() + Send>>,
    /// After the connection: it waits for that to go.
    _folder: Folder,
    /// Held as long as anything may be written.
    _lock: File,
}

/// Records of a thread that the next commit holds, each with the number of its run.
struct Pending {
    key: ThreadKey,
    records: Vec<(i64, Arc<Stored>)>,
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
        let journal = Journal::open(&connection)?;
        let heads = Heads::open(&connection)?;
        let mut writer = Self {
            connection: Desk::new(connection),
            journal,
            seal_now: HashSet::new(),
            seal_all: false,
            gone: HashSet::new(),
            heads,
            leases: Leases::default(),
            options,
            pending: HashMap::new(),
            touched_runs: HashSet::new(),
            touched_threads: HashSet::new(),
            deleted: Vec::new(),
            purges: VecDeque::new(),
            subscribers: Vec::new(),
            notices: Vec::new(),
            noticed: false,
            commits: 0,
            lookups: Lookups::default(),
            now: Timestamp(0),
            replies: Vec::new(),
            _folder: folder,
            _lock: lock,
        };
        writer.now = (writer.options.clock)();
        writer.begin_leases()?;
        writer.find_purges()?;
        writer.connection.settle()?;
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
            Ok(_) => self.work(&mut requests.0, &commits),
            Err(error) => Err(rusqlite::Error::ToSqlConversionFailure(error.to_string().into())),
        };
        if let Err(error) = ended {
            fatal.call(&error.to_string());
        }
        drop(commits);
        self.connection.wait();
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
    fn work(
        &mut self,
        requests: &mut mpsc::Receiver<Op>,
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
                    Ok(op) => Some(op),
                    Err(_) if self.connection.is_away() => {
                        self.connection.wait_for(LOOK_TIME);
                        self.connection.check()?;
                        continue;
                    }
                    Err(_) if has_work => None,
                    Err(_) => requests.blocking_recv(),
                };
                let Some(op) = next else { break };
                if count == 0 {
                    self.now = (self.options.clock)();
                }
                match op {
                    Op::Close => {
                        closing = true;
                        break;
                    }
                    op => {
                        bytes += op.bytes();
                        count += 1;
                        self.perform(op)?;
                    }
                }
            }
            let over = closing || (count == 0 && self.purges.is_empty());
            self.seal_all |= closing;
            self.flush()?;
            self.commits += 1;
            // Rows of a thread that this commit deletes are there only after the flush.
            if count == 0 || self.commits.is_multiple_of(PURGE_EVERY) {
                self.purge()?;
            }
            self.connection.check()?;
            self.hand_over(commits);
            self.heads.shrink();
            if over {
                self.connection.wait();
                self.connection.check()?;
                // The write-ahead log is folded into the file, so that what is left is one file.
                if closing && let Some(connection) = self.connection.idle() {
                    let _ = super::schema::fold_log(&connection);
                }
                return Ok(());
            }
        }
    }

    /// Lets the batch be committed, and what waits for it be released.
    fn hand_over(&mut self, commits: &std::sync::mpsc::Sender<Commit>) {
        self.gone.clear();
        let records = self.pending.drain();
        let release = Release {
            records: records.map(|(_, pending)| (pending.key, stored(pending.records))).collect(),
            deleted: std::mem::take(&mut self.deleted),
            replies: std::mem::take(&mut self.replies),
            unsealed: !self.journal.threads.is_empty(),
            noticed: std::mem::take(&mut self.noticed),
        };
        // Also what changed nothing is released in its turn: it may tell of what the batch before it changed.
        self.connection.begin_if_idle();
        if let Some((connection, back)) = self.connection.take() {
            // A committer that is gone lets go of the replies, which tells whoever waits.
            let _ = commits.send(Commit { connection, back, release });
        }
    }

    fn perform(&mut self, op: Op) -> Db<()> {
        match op {
            Op::Append(append, reply) => {
                let result = self.append(&append)?;
                self.reply(reply, result);
            }
            Op::Import(thread, pieces, reply) => {
                let result = self.import(&thread, pieces)?;
                self.reply(reply, result);
            }
            Op::CreateRun(run, reply) => {
                let result = self.create_run(&run)?;
                self.reply(reply, result);
            }
            Op::CreateThread(thread, reply) => {
                let result = self.create_thread(&thread)?;
                self.reply(reply, result);
            }
            Op::Cancel(run, cancel, reply) => {
                let result = self.cancel(&run, cancel)?;
                self.reply(reply, result);
            }
            Op::Answer(run, answers, reply) => {
                let result = self.answer(&run, answers)?;
                self.reply(reply, result);
            }
            Op::Heartbeat(run, reply) => {
                let result = self.heartbeat(&run)?;
                self.reply(reply, result);
            }
            Op::Sweep(reply) => {
                let result = self.sweep()?;
                self.reply(reply, Ok(result));
            }
            Op::Delete(thread, force, reply) => {
                let result = self.delete(&thread, force)?;
                self.reply(reply, result);
            }
            Op::Trim(cut, reply) => {
                let result = self.trim(&cut)?;
                self.reply(reply, Ok(result));
            }
            Op::Subscribe(subscribers, reply) => {
                let result = self.subscribe(subscribers)?;
                self.reply(reply, result);
            }
            Op::Told(notice, told, reply) => {
                let result = self.told(notice, told)?;
                self.reply(reply, result);
            }
            Op::Seal(what, reply) => {
                match what {
                    Sealing::Thread(key) => self.seal_now.extend(self.heads.thread_at_hand(&key)),
                    Sealing::Run(key) => self.seal_now.extend(self.heads.thread_of_run_at_hand(&key)),
                    Sealing::Everything => self.seal_all = true,
                }
                self.reply(reply, Ok(()));
            }
            Op::Checkpoint { run, form, seq, state } => {
                let sql = "INSERT OR REPLACE INTO checkpoint (run, form, seq, state) \
                           SELECT id, ?3, ?4, ?5 FROM run WHERE tenant = ?1 AND name = ?2 AND trimmed = 0";
                let by = params![&*run.tenant, &*run.id, form_name(form), whole_number(seq), state];
                self.connection.prepare_cached(sql)?.execute(by)?;
            }
            Op::Ping(reply) => self.reply(reply, Ok(())),
            Op::Close => {}
        }
        Ok(())
    }

    fn reply<T: Send + 'static>(&mut self, reply: Reply<T>, result: Result<T, LogError>) {
        // Whoever asked may have gone; the log does not mind.
        self.replies.push(Box::new(move || drop(reply.send(result))));
    }

    /// Writes the rows that the requests have changed: threads first, because runs refer to them.
    pub(super) fn save_heads(&mut self) -> Db<()> {
        for id in self.touched_threads.drain() {
            if let Some(thread) = self.heads.thread_mut(id) {
                save_thread(&self.connection, thread)?;
            }
        }
        for id in self.touched_runs.drain() {
            if let Some(run) = self.heads.run_mut(id) {
                save_run(&self.connection, run)?;
            }
        }
        Ok(())
    }

    /// Writes what the requests have changed: into the journal what changes with every record, into its rows
    /// what is new or tells how far a run is.
    fn flush(&mut self) -> Db<()> {
        for id in self.touched_threads.drain() {
            if let Some(thread) = self.heads.thread_mut(id) {
                save_thread(&self.connection, thread)?;
            }
        }
        for id in self.touched_runs.drain() {
            let Some(run) = self.heads.run_mut(id) else { continue };
            if run.new || run.stored_status != run.head.state.status {
                if run.head.state.status.is_closed() {
                    // Rows that end where runs do can be removed with them.
                    self.seal_now.insert(run.thread);
                }
                save_run(&self.connection, run)?;
            } else if run.dirty || run.producers.values().any(|producer| producer.dirty) {
                self.journal.note_run(run)?;
                self.journal.of(run.thread).runs.insert(id);
            }
        }
        for (thread, pending) in self.pending.iter().filter(|(thread, _)| !self.gone.contains(thread)) {
            let unsealed = self.journal.of(*thread);
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
                self.journal.note_records(*thread, from);
            }
        }
        self.save_notices()?;
        self.journal.write(&self.connection)?;
        self.seal()
    }

    /// Brings the rows of threads up to date that are asked for, or have waited for long.
    fn seal(&mut self) -> Db<()> {
        if self.seal_all || self.heads.is_crowded() {
            self.seal_all = false;
            self.seal_now.extend(self.journal.threads.keys());
        }
        let mut sealed = !self.seal_now.is_empty();
        for thread in std::mem::take(&mut self.seal_now) {
            self.seal_thread(thread)?;
        }
        for _ in 0..SEALED_THREADS {
            let Some(thread) = self.journal.overdue(JOURNAL_BYTES) else { break };
            self.seal_thread(thread)?;
            sealed = true;
        }
        if sealed { self.journal.clean(&self.connection) } else { Ok(()) }
    }

    fn seal_thread(&mut self, thread: i64) -> Db<()> {
        let Some(Unsealed { records, body, ends, runs, .. }) = self.journal.threads.remove(&thread) else {
            return Ok(());
        };
        let sql = "INSERT INTO chunk (thread, first, last, body) VALUES (?1, ?2, ?3, ?4)";
        let mut insert = self.connection.prepare_cached(sql)?;
        let (mut first, mut from) = (0, 0);
        for (at, end) in ends.iter().enumerate() {
            if end - from >= CHUNK_BYTES || at + 1 == ends.len() {
                let (first_seq, last_seq) = (records[first].1.record.seq, records[at].1.record.seq);
                insert.execute(params![thread, first_seq, last_seq, &body[from..*end]])?;
                (first, from) = (at + 1, *end);
            }
        }
        for run in runs {
            if let Some(run) = self.heads.run_mut(run) {
                save_run(&self.connection, run)?;
            }
        }
        Ok(())
    }

    /// Brings back a run and its thread, which were worked on.
    pub(super) fn put(&mut self, thread: Box<ThreadHead>, run: Box<RunHead>) {
        self.touched_threads.insert(thread.id);
        self.touched_runs.insert(run.id);
        self.heads.put_thread(thread);
        self.heads.put_run(run);
    }

    /// Works on a run by its number, and notes that it was touched.
    pub(super) fn with_run<T>(
        &mut self,
        id: i64,
        work: impl FnOnce(&mut Self, &mut RunHead) -> Db<T>,
    ) -> Db<Option<T>> {
        let Some(mut run) = self.heads.take_run_by_id(&self.connection, id)? else { return Ok(None) };
        let result = work(self, &mut run)?;
        self.touched_runs.insert(run.id);
        self.heads.put_run(run);
        Ok(Some(result))
    }

    /// Takes out the thread of a run, which cannot be missing.
    pub(super) fn thread_of(&mut self, run: &RunHead) -> Db<Box<ThreadHead>> {
        let thread = self.heads.take_thread_by_id(&self.connection, run.thread)?;
        thread.ok_or(rusqlite::Error::QueryReturnedNoRows)
    }

    /// Tells the time of this commit: one for all its records.
    pub(super) fn now(&self) -> Timestamp {
        self.now
    }

    pub(super) fn pending_of(&mut self, thread: &ThreadHead) -> &mut Vec<(i64, Arc<Stored>)> {
        let begin = || Pending { key: thread.key.clone(), records: Vec::new() };
        &mut self.pending.entry(thread.id).or_insert_with(begin).records
    }

    /// The records of a thread, those of this commit included.
    pub(super) fn source(&self, thread: &ThreadHead) -> Source<'_> {
        let pending = self.pending.get(&thread.id).map_or(&[][..], |pending| &pending.records);
        let unsealed = self.journal.threads.get(&thread.id).map_or(&[][..], |unsealed| &unsealed.records);
        Source { connection: &self.connection, lookups: &self.lookups, thread: thread.id, unsealed, pending }
    }
}

fn stored(records: Vec<(i64, Arc<Stored>)>) -> Vec<Arc<Stored>> {
    records.into_iter().map(|(_, stored)| stored).collect()
}

/// Tells the time by the machine's clock.
pub(super) fn clock() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

/// Makes an id that is new.
pub(super) fn mint() -> String {
    uuid::Uuid::now_v7().to_string()
}
