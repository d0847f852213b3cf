//! The tables, as the verbs look things up in them.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet, VecDeque};
use std::ops::ControlFlow;
use std::sync::Arc;

use bytes::Bytes;
use runwire_model::Timestamp;

use super::address::Address;
use super::ahead::{Clock, Sent};
use super::cache::{Cache, RunPlace};
use super::connection::{By, Connection};
use super::failure::{Db, Failure};
use super::rows::{load_run, load_thread, whole_number};
use super::unreadable::Unreadable;
use crate::key::{RunKey, ThreadKey};
use crate::record::{Records, Stored};
use crate::txn::{BaseState, Heads, RunHead, ThreadHead, TxnStore};

/// The store of one writer, in a transaction.
pub(super) struct Tables {
    pub(super) connection: Connection,
    /// What is at hand from earlier transactions.
    pub(super) cache: RefCell<Cache>,
    /// When the store has told its time.
    pub(super) clock: Option<Clock>,
    /// Whether nothing is locked yet: see ahead.rs. Records may be read, but no head.
    pub(super) is_ahead: bool,
    /// Threads that the transaction has locked, or will, and the versions that they have.
    pub(super) locked: RefCell<HashMap<i64, i64>>,
    /// Whether threads were locked after the transaction had begun.
    locked_later: Cell<bool>,
    /// What was not there when it had begun.
    pub(super) absent_threads: HashSet<ThreadKey>,
    pub(super) absent_runs: HashSet<RunKey>,
    /// Whether the request at hand was told that something is not there.
    missed: Cell<bool>,
    /// The thread that a request could not begin with, and must.
    pub(super) wanted: Cell<Option<i64>>,
    names: RefCell<Names>,
    /// Runs whose lease ran out and that cannot be read here.
    unreadable: RefCell<Unreadable>,
    /// Numbers that nobody has yet.
    pub(super) threads: VecDeque<i64>,
    pub(super) runs: VecDeque<i64>,
}

/// Runs whose lease ran out that are closed at once.
const DUE: i64 = 256;

impl Tables {
    /// Connects.
    pub(super) fn open(address: &Address) -> Db<Self> {
        Ok(Self {
            connection: Connection::open_for_writing(address)?,
            cache: RefCell::default(),
            clock: None,
            is_ahead: false,
            locked: RefCell::default(),
            locked_later: Cell::new(false),
            absent_threads: HashSet::new(),
            absent_runs: HashSet::new(),
            missed: Cell::new(false),
            wanted: Cell::new(None),
            names: RefCell::default(),
            unreadable: RefCell::default(),
            threads: VecDeque::new(),
            runs: VecDeque::new(),
        })
    }

    /// Takes note of the store's time, as it was told in answer to what was sent then.
    pub(super) fn set_clock(&mut self, told: Timestamp, sent: Sent) {
        if self.clock.is_some_and(|clock| clock.was_set_back(told, sent)) {
            // Leases were moved, or will be, and no version tells of it.
            self.cache.take();
        }
        self.clock = Clock::new(told, sent);
    }

    /// Forgets what belongs to the transaction before.
    pub(super) fn reset(&mut self) {
        self.locked.borrow_mut().clear();
        self.locked_later.set(false);
        self.absent_threads.clear();
        self.absent_runs.clear();
        // Older numbers would make what is new look older than what other nodes have made since.
        self.threads.clear();
        self.runs.clear();
    }

    /// Begins the next request of the transaction.
    pub(super) fn next(&self) {
        self.missed.set(false);
    }

    /// Keeps the heads of a transaction that is committed; `changed` has another version since.
    pub(super) fn keep(&self, heads: Heads, changed: &HashSet<i64>, version: i64) {
        let (mut cache, locked) = (self.cache.borrow_mut(), self.locked.borrow());
        changed.iter().for_each(|thread| cache.advance(*thread, version));
        let version_of = |thread: i64| match changed.contains(&thread) {
            true => Some(version),
            false => locked.get(&thread).copied(),
        };
        let (threads, runs) = heads.into_parts();
        for thread in threads.filter(|thread| !thread.deleted) {
            if let Some(version) = version_of(thread.id) {
                cache.keep_thread(thread, version);
            }
        }
        for run in runs {
            if let Some(version) = version_of(run.thread) {
                cache.keep_run(run, version);
            }
        }
        cache.shrink();
    }

    /// Locks a thread.
    ///
    /// What was missing before may have come with it: another node can have made both. A commit would find that out,
    /// but a refusal would not. So the request begins anew, with the thread locked before anything is looked for.
    fn lock(&self, thread: i64) -> Db<()> {
        if self.locked.borrow().contains_key(&thread) {
            return Ok(());
        }
        self.must_be_locked()?;
        if self.missed.get() {
            self.wanted.set(Some(thread));
            return Err(Failure::Overtaken);
        }
        let sql = "SELECT version FROM thread WHERE id = $1 FOR UPDATE";
        if let Some(row) = self.connection.first(sql, &[&thread])? {
            self.has_locked(thread, row.get(0));
        }
        Ok(())
    }

    /// Refuses to look anything up while nothing is locked.
    fn must_be_locked(&self) -> Db<()> {
        if self.is_ahead { Err(Failure::NotAtHand) } else { Ok(()) }
    }

    fn has_locked(&self, thread: i64, version: i64) {
        self.locked_later.set(true);
        self.locked.borrow_mut().insert(thread, version);
        self.cache.borrow_mut().check(thread, version);
    }

    /// Finds out whether a run and its thread, which is locked, can be read.
    fn try_to_read(&self, run: i64, thread: i64) -> Db<()> {
        let (has_run, has_thread) =
            (self.cache.borrow().has_run(run), self.cache.borrow().has_thread(thread));
        if !has_run {
            load_run(&self.connection, "run.id = $1", &[&run])?;
        }
        if !has_thread {
            load_thread(&self.connection, thread)?;
        }
        Ok(())
    }

    fn run_at(&self, place: RunPlace) -> Db<Option<Box<RunHead>>> {
        self.lock(place.thread)?;
        let kept = self.cache.borrow_mut().take_run(place.run);
        match kept {
            Some(run) => Ok(Some(run)),
            None => {
                self.must_be_locked().and_then(|()| load_run(&self.connection, "run.id = $1", &[&place.run]))
            }
        }
    }

    fn place_of(&self, sql: &str, by: By<'_>) -> Db<Option<RunPlace>> {
        self.must_be_locked()?;
        let row = self.connection.first(sql, by)?;
        Ok(row.map(|row| RunPlace { run: row.get(0), thread: row.get(1) }))
    }

    /// Finds a run by its name.
    fn place_named(&self, key: &RunKey) -> Db<Option<RunPlace>> {
        let known = self.cache.borrow().run_named(key);
        if known.is_some() || (self.absent_runs.contains(key) && !self.locked_later.get()) {
            return Ok(known);
        }
        let sql = "SELECT id, thread FROM run WHERE tenant = $1 AND name = $2";
        self.place_of(sql, &[&&*key.tenant, &&*key.id])
    }

    /// Finds a thread by its name.
    fn thread_named(&self, key: &ThreadKey) -> Db<Option<i64>> {
        let known = self.cache.borrow().thread_named(key);
        if known.is_some() || (self.absent_threads.contains(key) && !self.locked_later.get()) {
            return Ok(known);
        }
        self.must_be_locked()?;
        let sql = "SELECT id FROM thread WHERE tenant = $1 AND name = $2";
        Ok(self.connection.first(sql, &[&&*key.tenant, &&*key.id])?.map(|row| row.get(0)))
    }
}

/// Tells the time by the store's clock.
pub(super) fn now(connection: &Connection) -> Db<Timestamp> {
    Ok(super::rows::time(&connection.one(&format!("SELECT {NOW}"), &[])?, 0))
}

pub(super) const NOW: &str = "floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint";

fn take_id(connection: &Connection, sequence: &str, ready: &mut VecDeque<i64>) -> Db<i64> {
    match ready.pop_front() {
        Some(id) => Ok(id),
        None => Ok(connection.one(&format!("SELECT nextval('{sequence}')"), &[])?.get(0)),
    }
}

impl TxnStore for Tables {
    type Error = Failure;

    fn thread(&self, key: &ThreadKey) -> Db<Option<Box<ThreadHead>>> {
        match self.thread_named(key)? {
            Some(id) => self.thread_by_id(id),
            None => {
                self.missed.set(true);
                Ok(None)
            }
        }
    }

    fn thread_by_id(&self, id: i64) -> Db<Option<Box<ThreadHead>>> {
        self.lock(id)?;
        let kept = self.cache.borrow_mut().take_thread(id);
        match kept {
            Some(thread) => Ok(Some(thread)),
            None => self.must_be_locked().and_then(|()| load_thread(&self.connection, id)),
        }
    }

    fn run(&self, key: &RunKey) -> Db<Option<Box<RunHead>>> {
        match self.place_named(key)? {
            Some(place) => self.run_at(place),
            None => {
                self.missed.set(true);
                Ok(None)
            }
        }
    }

    fn run_by_id(&self, id: i64) -> Db<Option<Box<RunHead>>> {
        let kept = self.cache.borrow().thread_of(id).map(|thread| RunPlace { run: id, thread });
        let place = match kept {
            Some(place) => Some(place),
            None => self.place_of("SELECT id, thread FROM run WHERE id = $1", &[&id])?,
        };
        match place {
            Some(place) => self.run_at(place),
            None => {
                self.missed.set(true);
                Ok(None)
            }
        }
    }

    fn has_run(&self, key: &RunKey) -> Db<bool> {
        let found = self.place_named(key)?.is_some();
        self.missed.set(self.missed.get() || !found);
        Ok(found)
    }

    fn has_run_from(&self, thread: i64, first_seq: u64) -> Db<bool> {
        let sql = "SELECT 1 FROM run WHERE thread = $1 AND first_seq = $2";
        Ok(self.connection.first(sql, &[&thread, &whole_number(first_seq)])?.is_some())
    }

    fn base(&self, thread: i64) -> Db<Option<BaseState>> {
        let row = self.connection.first("SELECT base FROM thread WHERE id = $1", &[&thread])?;
        let base = row.and_then(|row| row.get::<_, Option<String>>(0));
        Ok(base.as_deref().map(serde_json::from_str).transpose()?)
    }

    fn visit(&self, thread: i64, after: u64, show: &mut dyn FnMut(&Stored) -> ControlFlow<()>) -> Db<()> {
        let mut names = self.names.borrow_mut();
        visit(&self.connection, &mut names, thread, after, &mut |stored| show(&stored))
    }

    fn due(&self, now: Timestamp) -> Db<Vec<i64>> {
        self.must_be_locked()?;
        // What another node is working on is left to it.
        // Where no node could show a sign of life, the leases are moved before any is looked at: see nodes.rs.
        let sql = "SELECT run.id, run.thread, thread.version FROM run JOIN thread ON thread.id = run.thread \
                   WHERE run.lease > 0 AND run.lease_until <= $1 \
                   AND EXISTS (SELECT 1 FROM store WHERE alive_until > $1) AND run.id <> ALL($3) \
                   ORDER BY run.lease_until LIMIT $2 FOR UPDATE OF thread SKIP LOCKED";
        let due =
            self.connection.query(sql, &[&whole_number(now.0), &DUE, &self.unreadable.borrow_mut().ids()])?;
        if due.is_empty() {
            return Ok(Vec::new());
        }
        due.iter().for_each(|row| self.has_locked(row.get(1), row.get(2)));
        // A lease that was renewed before its thread was locked has not run out.
        let due: Vec<i64> = due.iter().map(|row| row.get(0)).collect();
        let sql = "SELECT id, thread FROM run WHERE id = ANY($1) AND lease > 0 AND lease_until <= $2";
        let due = self.connection.query(sql, &[&due, &whole_number(now.0)])?;
        let mut readable = Vec::with_capacity(due.len());
        for row in due {
            let id = row.get(0);
            match self.try_to_read(id, row.get(1)) {
                Ok(()) => readable.push(id),
                Err(failure @ Failure::Damaged(_)) => self.pass_over(id, &failure),
                // The transaction has failed with it.
                Err(failure) => {
                    self.pass_over(id, &failure);
                    return Err(failure);
                }
            }
        }
        Ok(readable)
    }

    fn pass_over(&self, run: i64, failure: &Failure) {
        if failure.is_for_good() {
            self.unreadable.borrow_mut().note(run, failure);
        }
    }

    fn new_thread_id(&mut self) -> Db<i64> {
        self.must_be_locked()?;
        take_id(&self.connection, "thread_id", &mut self.threads)
    }

    fn new_run_id(&mut self) -> Db<i64> {
        self.must_be_locked()?;
        take_id(&self.connection, "run_id", &mut self.runs)
    }
}

/// Names of runs that were met.
pub(super) type Names = HashMap<u64, Arc<str>>;

/// Names that are remembered.
const NAMES: usize = 4096;
/// ReadStore of records that are read at once.
const ROWS: i64 = 32;

/// Shows the stored records of a thread after a `seq`, until it is told to stop.
pub(super) fn visit(
    connection: &Connection,
    names: &mut Names,
    thread: i64,
    after: u64,
    show: &mut dyn FnMut(Stored) -> ControlFlow<()>,
) -> Db<()> {
    let sql = "SELECT last, body FROM chunk WHERE thread = $1 AND last > $2 ORDER BY last LIMIT $3";
    let mut from = whole_number(after);
    loop {
        let rows = connection.query(sql, &[&thread, &from, &ROWS])?;
        for row in &rows {
            from = row.get(0);
            let mut records = Records::new(Bytes::from(row.get::<_, Vec<u8>>(1)));
            while let Some(read) = records.next(after)? {
                let run = match names.get(&read.run) {
                    Some(name) => name.clone(),
                    None => {
                        let row = connection
                            .one("SELECT name FROM run WHERE id = $1", &[&whole_number(read.run)])?;
                        if names.len() >= NAMES {
                            names.clear();
                        }
                        names.entry(read.run).or_insert_with(|| row.get::<_, &str>(0).into()).clone()
                    }
                };
                let stored = Stored { run, record: read.record, name: read.name, frame: read.frame };
                if show(stored).is_break() {
                    return Ok(());
                }
            }
        }
        if (rows.len() as i64) < ROWS {
            return Ok(());
        }
    }
}
