//! The one writer: takes whatever has queued up, commits it as one transaction, then releases the
//! acknowledgements and the readers together.
//!
//! There is no timer. While a commit waits for the disk, requests queue up; the next commit takes them all. So
//! the disk sets the pace, a lone request never waits for company, and many share one flush.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet, VecDeque};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use runwire_model::Timestamp;
use runwire_model::event::{
    Decision, ErrorInfo, Event, InteractionResolved, RunCancelRequested, RunCancelled, RunFailed,
};
use runwire_model::run::Status;
use runwire_model::window::Window;
use rusqlite::{Connection, params};
use tokio::sync::{mpsc, oneshot};

use super::Options;
use super::heads::{Heads, Request, RunHead, ThreadHead};
use super::leases::{Lease, Leases};
use super::read::{form_name, visit};
use super::write::{Done, mint};
use crate::append::{Append, Appended};
use crate::earlier::RecordSource;
use crate::error::LogError;
use crate::info::{Created, NewRun, NewThread, RunInfo, ThreadInfo};
use crate::key::{RunKey, ThreadKey};
use crate::record::{self, Stored};
use crate::tail::Tails;
use crate::{Cancel, Form, limits};

/// A result that only the store can spoil; then the process must not go on.
pub(super) type Db<T> = rusqlite::Result<T>;

type Reply<T> = oneshot::Sender<Result<T, LogError>>;

/// What the writer is asked to do.
pub(super) enum Op {
    Append(Append, Reply<Appended>),
    CreateRun(NewRun, Reply<Created<RunInfo>>),
    CreateThread(NewThread, Reply<Created<ThreadInfo>>),
    Cancel(RunKey, Cancel, Reply<RunInfo>),
    Heartbeat(RunKey, Reply<RunInfo>),
    Sweep(Reply<usize>),
    Delete(ThreadKey, bool, Reply<()>),
    Trim(Cut, Reply<usize>),
    Checkpoint { run: RunKey, form: Form, seq: u64, state: String },
    Ping(Reply<()>),
    Close(oneshot::Sender<()>),
}

/// What retention removes from a thread.
pub(super) struct Cut {
    pub(super) thread: i64,
    pub(super) runs: Vec<String>,
    /// The first `seq` that is kept.
    pub(super) oldest: u64,
    /// Messages and state before it.
    pub(super) base: String,
}

pub(super) struct Writer {
    pub(super) connection: Connection,
    pub(super) heads: Heads,
    pub(super) leases: Leases,
    pub(super) options: Options,
    tails: Arc<Tails>,
    pending: HashMap<i64, Pending>,
    pub(super) touched_runs: HashSet<i64>,
    pub(super) touched_threads: HashSet<i64>,
    deleted: Vec<ThreadKey>,
    /// Threads whose rows are still to be removed: up to which `seq`.
    purges: VecDeque<(i64, u64)>,
    commits: u64,
    names: RefCell<HashMap<u64, Arc<str>>>,
    now: Timestamp,
    replies: Vec<Box<dyn FnOnce() + Send>>,
}

/// Records of a thread that the next commit holds, each with the number of its run.
struct Pending {
    key: ThreadKey,
    records: Vec<(i64, Arc<Stored>)>,
}

/// Bytes of records in one row.
const CHUNK_BYTES: usize = 64 << 10;
/// Under load, one commit in so many also removes rows.
const PURGE_EVERY: u64 = 32;

impl Writer {
    pub(super) fn open(connection: Connection, options: Options, tails: Arc<Tails>) -> Db<Self> {
        let heads = Heads::open(&connection)?;
        let mut writer = Self {
            connection,
            heads,
            leases: Leases::default(),
            options,
            tails,
            pending: HashMap::new(),
            touched_runs: HashSet::new(),
            touched_threads: HashSet::new(),
            deleted: Vec::new(),
            purges: VecDeque::new(),
            commits: 0,
            names: RefCell::default(),
            now: clock(),
            replies: Vec::new(),
        };
        writer.begin_leases()?;
        writer.find_purges()?;
        Ok(writer)
    }

    /// Gives every open run a full term.
    fn begin_leases(&mut self) -> Db<()> {
        let sql = "SELECT id, status, deadline, json_extract(head, '$.summary.cancel_requested') FROM run \
                   WHERE status IN ('pending', 'running', 'suspended')";
        let mut statement = self.connection.prepare(sql)?;
        let rows = statement.query_map([], |row| {
            let status: String = row.get(1)?;
            let stopping: Option<bool> = row.get(3)?;
            Ok((row.get::<_, i64>(0)?, status, row.get::<_, Option<u64>>(2)?, stopping == Some(true)))
        })?;
        let start = std::time::Instant::now();
        for row in rows {
            let (run, status, deadline, stopping) = row?;
            let lease = match (status.as_str(), deadline) {
                ("suspended", Some(deadline)) => Lease::Asking(deadline),
                _ if stopping => Lease::Stopping(start + self.options.cancel_grace),
                _ => Lease::Alive(start + self.options.lease),
            };
            self.leases.set(run, lease);
        }
        Ok(())
    }

    /// Goes on with what a restart has interrupted.
    fn find_purges(&mut self) -> Db<()> {
        let sql = "SELECT id, CASE WHEN deleted_at IS NULL THEN oldest - 1 ELSE 9223372036854775807 END FROM thread \
                   WHERE (deleted_at IS NOT NULL AND purged = 0) OR (deleted_at IS NULL AND oldest > 1 AND \
                   EXISTS (SELECT 1 FROM chunk WHERE thread = thread.id AND last < oldest))";
        let mut statement = self.connection.prepare(sql)?;
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        self.purges = rows.collect::<Result<_, _>>()?;
        Ok(())
    }

    /// Works until it is told to close, or the store fails.
    pub(super) fn run(mut self, mut requests: mpsc::Receiver<Op>) {
        loop {
            let first = if self.purges.is_empty() { requests.blocking_recv() } else { requests.try_recv().ok() };
            if first.is_none() && self.purges.is_empty() {
                return;
            }
            match self.commit(first, &mut requests) {
                Ok(None) => {}
                Ok(Some(closed)) => {
                    // The write-ahead log is folded into the file, so that what is left is one file.
                    let _ = self.connection.pragma_update(None, "wal_checkpoint", "TRUNCATE");
                    drop(self);
                    let _ = closed.send(());
                    return;
                }
                Err(error) => {
                    let reason = format!("the store failed: {error}");
                    tracing::error!("{reason}; what was not acknowledged may or may not be written");
                    (self.options.fatal)(&reason);
                    // Whoever waits is told that nobody knows.
                    self.replies.clear();
                    return;
                }
            }
        }
    }

    /// Commits what has queued up, and gives back who waits for the end, if anyone does.
    fn commit(
        &mut self,
        first: Option<Op>,
        requests: &mut mpsc::Receiver<Op>,
    ) -> Db<Option<oneshot::Sender<()>>> {
        self.now = clock();
        self.connection.execute_batch("BEGIN IMMEDIATE")?;
        let mut closed = None;
        let (mut count, mut bytes) = (0, 0);
        let mut next = first;
        while let Some(op) = next {
            bytes += if let Op::Append(append, _) = &op { append.frames.bytes() } else { 0 };
            count += 1;
            if let Op::Close(sender) = op {
                closed = Some(sender);
                break;
            }
            self.perform(op)?;
            if count >= limits::COMMIT_REQUESTS || bytes >= limits::COMMIT_BYTES {
                break;
            }
            next = requests.try_recv().ok();
        }
        self.commits += 1;
        if count == 0 || self.commits.is_multiple_of(PURGE_EVERY) {
            self.purge()?;
        }
        self.flush()?;
        self.connection.execute_batch("COMMIT")?;
        self.release();
        self.heads.shrink();
        Ok(closed)
    }

    fn perform(&mut self, op: Op) -> Db<()> {
        match op {
            Op::Append(append, reply) => {
                let result = self.append(&append)?;
                self.answer(reply, result);
            }
            Op::CreateRun(run, reply) => {
                let result = self.create_run(&run)?;
                self.answer(reply, result);
            }
            Op::CreateThread(thread, reply) => {
                let result = self.create_thread(&thread)?;
                self.answer(reply, result);
            }
            Op::Cancel(run, cancel, reply) => {
                let result = self.cancel(&run, cancel)?;
                self.answer(reply, result);
            }
            Op::Heartbeat(run, reply) => {
                let result = self.heartbeat(&run)?;
                self.answer(reply, result);
            }
            Op::Sweep(reply) => {
                let result = self.sweep()?;
                self.answer(reply, Ok(result));
            }
            Op::Delete(thread, force, reply) => {
                let result = self.delete(&thread, force)?;
                self.answer(reply, result);
            }
            Op::Trim(cut, reply) => {
                let result = self.trim(cut)?;
                self.answer(reply, Ok(result));
            }
            Op::Checkpoint { run, form, seq, state } => {
                let sql = "INSERT OR REPLACE INTO checkpoint (run, form, seq, state) \
                           SELECT id, ?3, ?4, ?5 FROM run WHERE tenant = ?1 AND name = ?2 AND trimmed = 0";
                let by = params![&*run.tenant, &*run.id, form_name(form), seq, state];
                self.connection.prepare_cached(sql)?.execute(by)?;
            }
            Op::Ping(reply) => self.answer(reply, Ok(())),
            Op::Close(_) => {}
        }
        Ok(())
    }

    fn answer<T: Send + 'static>(&mut self, reply: Reply<T>, result: Result<T, LogError>) {
        // Whoever asked may have gone; the log does not mind.
        self.replies.push(Box::new(move || drop(reply.send(result))));
    }

    /// Writes what the requests have changed.
    fn flush(&mut self) -> Db<()> {
        for id in self.touched_threads.drain() {
            self.heads.save_thread(&self.connection, id)?;
        }
        for id in self.touched_runs.drain() {
            self.heads.save_run(&self.connection, id)?;
        }
        let sql = "INSERT INTO chunk (thread, first, last, body) VALUES (?1, ?2, ?3, ?4)";
        let mut insert = self.connection.prepare_cached(sql)?;
        let mut body = Vec::new();
        for (thread, pending) in &self.pending {
            let mut first = None;
            for (at, (run, stored)) in pending.records.iter().enumerate() {
                let seq = stored.record.seq;
                let first_seq = *first.get_or_insert(seq);
                record::write(&mut body, *run as u64, stored);
                if body.len() >= CHUNK_BYTES || at + 1 == pending.records.len() {
                    insert.execute(params![thread, first_seq, seq, body])?;
                    body.clear();
                    first = None;
                }
            }
        }
        Ok(())
    }

    /// Lets go of what the commit has made durable.
    fn release(&mut self) {
        for (_, pending) in self.pending.drain() {
            if let Some(tail) = self.tails.live(&pending.key) {
                let records: Vec<_> = pending.records.into_iter().map(|(_, stored)| stored).collect();
                tail.publish(&records);
            }
        }
        for key in self.deleted.drain(..) {
            if let Some(tail) = self.tails.live(&key) {
                tail.delete();
            }
        }
        for reply in self.replies.drain(..) {
            reply();
        }
    }

    fn create_thread(&mut self, new: &NewThread) -> Done<Created<ThreadInfo>> {
        let id = new.thread_id.clone().unwrap_or_else(mint);
        let key = ThreadKey::new(new.tenant.as_str(), id.as_str());
        let known = self.heads.take_thread(&self.connection, &key)?;
        let is_new = known.is_none();
        let thread = known.unwrap_or_else(|| self.heads.new_thread(key, new.parallel, self.now));
        let result = if thread.deleted {
            Err(LogError::ThreadDeleted(id))
        } else if thread.parallel != new.parallel {
            Err(LogError::ThreadExists(id))
        } else {
            let info = ThreadInfo {
                thread_id: id,
                parallel: thread.parallel,
                created_at: thread.created_at,
                head: thread.seq,
                oldest: 1,
                open_runs: Vec::new(),
                runs: 0,
            };
            Ok(Created { value: info, new: is_new })
        };
        self.touched_threads.insert(thread.id);
        self.heads.put_thread(thread);
        Ok(result)
    }

    fn create_run(&mut self, new: &NewRun) -> Done<Created<RunInfo>> {
        let key = RunKey::new(new.tenant.as_str(), new.run_id.clone().unwrap_or_else(mint));
        let request = Request::of(new);
        if let Some(run) = self.heads.take_run(&self.connection, &key)? {
            let thread = self.thread_of(&run)?;
            let result = if thread.deleted {
                Err(LogError::ThreadDeleted(thread.key.id.to_string()))
            } else if run.request == request {
                Ok(Created { value: run.info(), new: false })
            } else {
                Err(LogError::RunExists(key.id.to_string()))
            };
            self.heads.put_thread(thread);
            self.heads.put_run(run);
            return Ok(result);
        }
        let thread = match &new.thread_id {
            Some(thread) => self.thread_to_join(&key.thread(thread.as_str()), self.now)?,
            None => Ok(self.thread_of_its_own(&key, self.now)?),
        };
        let mut thread = match thread {
            Ok(thread) => thread,
            Err(refused) => return Ok(Err(refused)),
        };
        let run = self.heads.new_run(key, &thread, request, self.now);
        thread.open.push(run.id);
        self.leases.renew(&run, self.options.lease);
        let info = run.info();
        self.touched_threads.insert(thread.id);
        self.touched_runs.insert(run.id);
        self.heads.put_thread(thread);
        self.heads.put_run(run);
        Ok(Ok(Created { value: info, new: true }))
    }

    fn cancel(&mut self, key: &RunKey, cancel: Cancel) -> Done<RunInfo> {
        self.on_run(key, |writer, thread, run| {
            match run.head.state.status {
                Status::Pending | Status::Suspended => {
                    let event = Event::new(RunCancelled { reason: cancel.reason, ..Default::default() });
                    let _ = writer.act(thread, run, vec![event])?;
                }
                Status::Running if !run.head.summary.cancel_requested => {
                    let event = Event::new(RunCancelRequested { reason: cancel.reason, by: cancel.by });
                    if writer.act(thread, run, vec![event])?.is_ok() {
                        writer.leases.stop(run.id, writer.options.cancel_grace);
                    }
                }
                _ => {}
            }
            Ok(run.info())
        })
    }

    fn heartbeat(&mut self, key: &RunKey) -> Done<RunInfo> {
        self.on_run(key, |writer, _, run| {
            if !run.head.state.status.is_closed() {
                writer.leases.renew(run, writer.options.lease);
            }
            Ok(run.info())
        })
    }

    /// Works on a run and its thread, unless that is gone.
    fn on_run<T>(
        &mut self,
        key: &RunKey,
        work: impl FnOnce(&mut Self, &mut ThreadHead, &mut RunHead) -> Db<T>,
    ) -> Done<T> {
        let Some(mut run) = self.heads.take_run(&self.connection, key)? else {
            return Ok(Err(LogError::RunUnknown(key.id.to_string())));
        };
        let mut thread = self.thread_of(&run)?;
        let result = if thread.deleted {
            Err(LogError::ThreadDeleted(thread.key.id.to_string()))
        } else {
            Ok(work(self, &mut thread, &mut run)?)
        };
        self.touched_runs.insert(run.id);
        self.heads.put_run(run);
        self.heads.put_thread(thread);
        Ok(result)
    }

    /// Closes the runs whose lease ran out.
    fn sweep(&mut self) -> Db<usize> {
        let mut closed = 0;
        for (id, lease) in self.leases.due(self.now) {
            let Some(mut run) = self.heads.take_run_by_id(&self.connection, id)? else {
                self.leases.remove(id);
                continue;
            };
            let mut thread = self.thread_of(&run)?;
            let events = match lease {
                Lease::Alive(_) => vec![producer_lost()],
                Lease::Stopping(_) => vec![Event::new(RunCancelled::default())],
                Lease::Asking(_) => expired(&run, self.now),
            };
            if events.is_empty() || self.act(&mut thread, &mut run, events)?.is_err() {
                self.leases.remove(id);
            }
            closed += usize::from(run.head.state.status.is_closed());
            self.touched_runs.insert(run.id);
            self.heads.put_run(run);
            self.heads.put_thread(thread);
        }
        Ok(closed)
    }

    fn delete(&mut self, key: &ThreadKey, force: bool) -> Done<()> {
        let Some(mut thread) = self.heads.take_thread(&self.connection, key)? else {
            return Ok(Err(LogError::ThreadUnknown(key.id.to_string())));
        };
        if thread.deleted {
            self.heads.put_thread(thread);
            return Ok(Err(LogError::ThreadDeleted(key.id.to_string())));
        }
        if let (false, Some(open)) = (force, thread.open.first().copied()) {
            let run = self.heads.take_run_by_id(&self.connection, open)?;
            let name = run.as_ref().map_or_else(String::new, |run| run.key.id.to_string());
            run.into_iter().for_each(|run| self.heads.put_run(run));
            self.heads.put_thread(thread);
            return Ok(Err(LogError::RunOpen(name)));
        }
        for open in thread.open.clone() {
            let event = Event::new(RunCancelled { reason: Some("thread deleted".into()), ..Default::default() });
            self.with_run(open, |writer, run| writer.act(&mut thread, run, vec![event]))?;
            self.leases.remove(open);
        }
        let id = thread.id;
        self.touched_threads.insert(id);
        self.heads.put_thread(thread);
        // What is pending of the thread is shown to its readers, and goes with the rest.
        self.heads.save_thread(&self.connection, id)?;
        for run in std::mem::take(&mut self.touched_runs) {
            self.heads.save_run(&self.connection, run)?;
        }
        let sql = "UPDATE thread SET deleted_at = ?2, base = NULL WHERE id = ?1";
        self.connection.prepare_cached(sql)?.execute(params![id, self.now.0])?;
        self.heads.forget_thread(id);
        self.purges.push_back((id, i64::MAX as u64));
        self.deleted.push(key.clone());
        Ok(Ok(()))
    }

    fn trim(&mut self, cut: Cut) -> Db<usize> {
        let Some(thread) = self.heads.take_thread_by_id(&self.connection, cut.thread)? else { return Ok(0) };
        let (deleted, seq, at, key) = (thread.deleted, thread.seq, thread.at, thread.key.clone());
        self.heads.put_thread(thread);
        if deleted {
            return Ok(0);
        }
        let sql = "UPDATE thread SET oldest = ?2, base = ?3, head = ?4, head_at = ?5 WHERE id = ?1 AND oldest < ?2";
        let by = params![cut.thread, cut.oldest, cut.base, seq, at.0];
        if self.connection.prepare_cached(sql)?.execute(by)? == 0 {
            return Ok(0);
        }
        for name in &cut.runs {
            let run = RunKey::new(key.tenant.clone(), name.as_str());
            if let Some(mut run) = self.heads.take_run(&self.connection, &run)? {
                run.trimmed = true;
                self.connection.execute("UPDATE run SET trimmed = 1 WHERE id = ?1", [run.id])?;
                self.connection.execute("DELETE FROM checkpoint WHERE run = ?1", [run.id])?;
                self.heads.put_run(run);
            }
        }
        self.purges.push_back((cut.thread, cut.oldest - 1));
        Ok(cut.runs.len())
    }

    /// Removes some rows of what was deleted or trimmed, so that no writer waits for long.
    fn purge(&mut self) -> Db<()> {
        let Some((thread, upto)) = self.purges.front().copied() else { return Ok(()) };
        let sql = "DELETE FROM chunk WHERE id IN \
                   (SELECT id FROM chunk WHERE thread = ?1 AND last <= ?2 ORDER BY last LIMIT ?3)";
        let removed =
            self.connection.prepare_cached(sql)?.execute(params![thread, upto, limits::PURGE_ROWS])?;
        if removed == limits::PURGE_ROWS {
            return Ok(());
        }
        self.purges.pop_front();
        if upto == i64::MAX as u64 {
            // The ids stay, so that they stay used up; what they stood for goes.
            let runs = "SELECT id FROM run WHERE thread = ?1";
            for sql in [
                format!("DELETE FROM checkpoint WHERE run IN ({runs})"),
                format!("DELETE FROM producer WHERE scope = 'run' AND owner IN ({runs})"),
                "DELETE FROM producer WHERE scope = 'thread' AND owner = ?1".to_owned(),
                "UPDATE run SET head = NULL, request = '{}', agent = NULL, trimmed = 1, \
                 status = CASE WHEN status IN ('pending', 'running', 'suspended') THEN 'cancelled' ELSE status END \
                 WHERE thread = ?1"
                    .to_owned(),
                "UPDATE thread SET purged = 1 WHERE id = ?1".to_owned(),
            ] {
                self.connection.execute(&sql, [thread])?;
            }
        }
        Ok(())
    }

    /// Takes out the thread of a run, which cannot be missing.
    pub(super) fn thread_of(&mut self, run: &RunHead) -> Db<ThreadHead> {
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
        Source { connection: &self.connection, names: &self.names, thread: thread.id, pending }
    }
}

fn producer_lost() -> Event {
    let message = "the producer was silent for longer than its lease";
    Event::new(RunFailed { error: ErrorInfo::coded("producer_lost", message), ..Default::default() })
}

/// Resolves the questions that have expired.
fn expired(run: &RunHead, now: Timestamp) -> Vec<Event> {
    let due = run.deadline.is_some_and(|deadline| deadline <= now.0);
    let asked = run.head.summary.interactions.iter().filter(|asked| asked.status == "open" && due);
    asked
        .filter(|asked| asked.expires_at.is_none_or(|at| at <= now.0))
        .map(|asked| {
            Event::new(InteractionResolved {
                interaction_id: asked.interaction_id.clone(),
                decision: Decision::Expired,
                ..Default::default()
            })
        })
        .collect()
}

fn clock() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

/// The records of a thread as the writer sees them.
pub(super) struct Source<'a> {
    connection: &'a Connection,
    names: &'a RefCell<HashMap<u64, Arc<str>>>,
    thread: i64,
    pending: &'a [(i64, Arc<Stored>)],
}

impl RecordSource for Source<'_> {
    fn visit(&self, after: u64, show: &mut dyn FnMut(&Stored) -> ControlFlow<()>) {
        let first_pending = self.pending.first().map_or(u64::MAX, |(_, stored)| stored.record.seq);
        let mut stopped = false;
        if after + 1 < first_pending {
            let mut names = self.names.borrow_mut();
            let read = visit(self.connection, &mut names, self.thread, after, &mut |stored, _| {
                let flow = show(&stored);
                stopped |= flow.is_break();
                flow
            });
            if let Err(error) = read {
                tracing::error!("a lookup of earlier records failed: {error}");
            }
        }
        for (_, stored) in self.pending.iter().filter(|(_, stored)| stored.record.seq > after) {
            if stopped || show(stored).is_break() {
                return;
            }
        }
    }

    fn before(&self, _first_seq: u64) -> Window {
        // Decoding asks for nothing of earlier runs.
        Window::default()
    }
}
