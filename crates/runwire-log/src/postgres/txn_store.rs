//! What commands load from Postgres: locks threads, and loads or caches heads.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet, VecDeque};
use std::ops::ControlFlow;
use std::sync::Arc;

use runwire_model::Timestamp;

use super::address::PgAddress;
use super::connection::{Params, PgConnection};
use super::error::{PgError, PgResult};
use super::head_cache::{HeadCache, RunLocation};
use super::rows::{decode_row, load_run, load_thread, to_i64};
use super::store_clock::{SentAt, StoreClock};
use crate::key::{RunKey, ThreadKey};
use crate::record::{RecordRows, StoredRecord, Wanted, visit_chunk};
use crate::txn::{BaseState, Heads, RunHead, ThreadHead, TxnStore};
use crate::unreadable_rows::UnreadableRows;

/// The store of one writer, and the state of its current transaction.
pub(super) struct PgTxnStore {
    pub(super) connection: PgConnection,
    /// Heads cached from earlier transactions.
    pub(super) cache: RefCell<HeadCache>,
    /// An estimate of the store's clock.
    pub(super) clock: Option<StoreClock>,
    /// Whether the transaction is optimistic, so that nothing is locked yet: see commit/optimistic.rs. Records may be read,
    /// but no head.
    pub(super) is_optimistic: bool,
    /// Threads that the transaction has locked, or will lock, with their versions.
    pub(super) locked: RefCell<HashMap<i64, i64>>,
    /// Whether threads were locked after the transaction began.
    locked_later: Cell<bool>,
    /// Names that did not exist when it began.
    pub(super) absent_threads: HashSet<ThreadKey>,
    pub(super) absent_runs: HashSet<RunKey>,
    /// Whether the current command has seen that something does not exist.
    saw_absence: Cell<bool>,
    /// A thread that the current command must lock first, on the next attempt.
    pub(super) wanted: Cell<Option<i64>>,
    names: RefCell<RunNames>,
    /// Runs with an expired lease that cannot be read.
    unreadable: Arc<UnreadableRows>,
    /// Reserved numbers for new rows.
    pub(super) threads: VecDeque<i64>,
    pub(super) runs: VecDeque<i64>,
}

/// Expired runs that one sweep closes.
const DUE: i64 = 256;

impl PgTxnStore {
    /// Connects.
    pub(super) fn open(address: &PgAddress) -> PgResult<Self> {
        Ok(Self {
            connection: PgConnection::open_for_writing(address)?,
            cache: RefCell::default(),
            clock: None,
            is_optimistic: false,
            locked: RefCell::default(),
            locked_later: Cell::new(false),
            absent_threads: HashSet::new(),
            absent_runs: HashSet::new(),
            saw_absence: Cell::new(false),
            wanted: Cell::new(None),
            names: RefCell::default(),
            unreadable: address.unreadable.clone(),
            threads: VecDeque::new(),
            runs: VecDeque::new(),
        })
    }

    /// Updates the estimate of the store's clock from an answer.
    pub(super) fn set_clock(&mut self, store_time: Timestamp, sent: SentAt) {
        if self.clock.is_some_and(|clock| clock.has_moved_back(store_time, sent)) {
            // Leases were moved, or will be, which changes no version.
            self.cache.take();
        }
        self.clock = StoreClock::new(store_time, sent);
    }

    /// Resets the state of the previous transaction.
    pub(super) fn reset(&mut self) {
        self.locked.borrow_mut().clear();
        self.locked_later.set(false);
        self.absent_threads.clear();
        self.absent_runs.clear();
        // Older numbers would make new rows look older than rows of other nodes.
        self.threads.clear();
        self.runs.clear();
    }

    /// Starts the next command of the transaction.
    pub(super) fn next(&self) {
        self.saw_absence.set(false);
    }

    /// Caches the heads of a committed transaction; `changed` threads have the new version.
    pub(super) fn cache_heads(&self, heads: Heads, changed: &HashSet<i64>, version: i64) {
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
    /// A row that was missing before may exist now: another node may have created both. A commit would detect that,
    /// but a refusal would not. So the command is executed again, with the thread locked first.
    fn lock(&self, thread: i64) -> PgResult<()> {
        if self.locked.borrow().contains_key(&thread) {
            return Ok(());
        }
        self.require_locks()?;
        if self.saw_absence.get() {
            self.wanted.set(Some(thread));
            return Err(PgError::Conflict);
        }
        let sql = "SELECT version FROM thread WHERE id = $1 FOR UPDATE";
        if let Some(row) = self.connection.first(sql, &[&thread])? {
            self.record_lock(thread, row.get(0));
        }
        Ok(())
    }

    /// Fails in an optimistic transaction, which holds no locks.
    fn require_locks(&self) -> PgResult<()> {
        if self.is_optimistic { Err(PgError::NotCached) } else { Ok(()) }
    }

    fn record_lock(&self, thread: i64, version: i64) {
        self.locked_later.set(true);
        self.locked.borrow_mut().insert(thread, version);
        self.cache.borrow_mut().check(thread, version);
    }

    /// Checks that a run and its thread, which is locked, can be read.
    fn check_readable(&self, run: i64, thread: i64) -> PgResult<()> {
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

    fn load_run_at(&self, location: RunLocation) -> PgResult<Option<Box<RunHead>>> {
        self.lock(location.thread)?;
        let kept = self.cache.borrow_mut().take_run(location.run);
        match kept {
            Some(run) => Ok(Some(run)),
            None => self
                .require_locks()
                .and_then(|()| load_run(&self.connection, "run.id = $1", &[&location.run])),
        }
    }

    fn query_location(&self, sql: &str, params: Params<'_>) -> PgResult<Option<RunLocation>> {
        self.require_locks()?;
        let row = self.connection.first(sql, params)?;
        Ok(row.map(|row| RunLocation { run: row.get(0), thread: row.get(1) }))
    }

    /// Returns the numbers of a named run and its thread.
    fn find_location(&self, key: &RunKey) -> PgResult<Option<RunLocation>> {
        let known = self.cache.borrow().run_location(key);
        if known.is_some() || (self.absent_runs.contains(key) && !self.locked_later.get()) {
            return Ok(known);
        }
        let sql = "SELECT id, thread FROM run WHERE tenant = $1 AND name = $2";
        self.query_location(sql, &[&&*key.tenant, &&*key.id])
    }

    /// Returns the number of a named thread.
    fn find_thread(&self, key: &ThreadKey) -> PgResult<Option<i64>> {
        let known = self.cache.borrow().thread_id(key);
        if known.is_some() || (self.absent_threads.contains(key) && !self.locked_later.get()) {
            return Ok(known);
        }
        self.require_locks()?;
        let sql = "SELECT id FROM thread WHERE tenant = $1 AND name = $2";
        Ok(self.connection.first(sql, &[&&*key.tenant, &&*key.id])?.map(|row| row.get(0)))
    }
}

/// Returns the time of the store's clock.
pub(super) fn now(connection: &PgConnection) -> PgResult<Timestamp> {
    Ok(super::rows::time(&connection.one(&format!("SELECT {NOW}"), &[])?, 0))
}

pub(super) const NOW: &str = "floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint";

fn take_id(connection: &PgConnection, sequence: &str, ready: &mut VecDeque<i64>) -> PgResult<i64> {
    match ready.pop_front() {
        Some(id) => Ok(id),
        None => Ok(connection.one(&format!("SELECT nextval('{sequence}')"), &[])?.get(0)),
    }
}

impl TxnStore for PgTxnStore {
    type Error = PgError;

    fn thread(&self, key: &ThreadKey) -> PgResult<Option<Box<ThreadHead>>> {
        match self.find_thread(key)? {
            Some(id) => self.thread_by_id(id),
            None => {
                self.saw_absence.set(true);
                Ok(None)
            }
        }
    }

    fn thread_by_id(&self, id: i64) -> PgResult<Option<Box<ThreadHead>>> {
        self.lock(id)?;
        let kept = self.cache.borrow_mut().take_thread(id);
        match kept {
            Some(thread) => Ok(Some(thread)),
            None => self.require_locks().and_then(|()| load_thread(&self.connection, id)),
        }
    }

    fn run(&self, key: &RunKey) -> PgResult<Option<Box<RunHead>>> {
        match self.find_location(key)? {
            Some(location) => self.load_run_at(location),
            None => {
                self.saw_absence.set(true);
                Ok(None)
            }
        }
    }

    fn run_by_id(&self, id: i64) -> PgResult<Option<Box<RunHead>>> {
        let kept = self.cache.borrow().thread_of(id).map(|thread| RunLocation { run: id, thread });
        let location = match kept {
            Some(location) => Some(location),
            None => self.query_location("SELECT id, thread FROM run WHERE id = $1", &[&id])?,
        };
        match location {
            Some(location) => self.load_run_at(location),
            None => {
                self.saw_absence.set(true);
                Ok(None)
            }
        }
    }

    fn has_run(&self, key: &RunKey) -> PgResult<bool> {
        let found = self.find_location(key)?.is_some();
        self.saw_absence.set(self.saw_absence.get() || !found);
        Ok(found)
    }

    fn has_run_from(&self, thread: i64, first_seq: u64) -> PgResult<bool> {
        let sql = "SELECT 1 FROM run WHERE thread = $1 AND first_seq = $2";
        Ok(self.connection.first(sql, &[&thread, &to_i64(first_seq)])?.is_some())
    }

    fn base(&self, thread: i64) -> PgResult<Option<BaseState>> {
        let row = self.connection.first("SELECT base FROM thread WHERE id = $1", &[&thread])?;
        let base = row.and_then(|row| row.get::<_, Option<String>>(0));
        Ok(base.as_deref().map(serde_json::from_str).transpose()?)
    }

    fn visit(
        &self,
        thread: i64,
        after: u64,
        wanted: Wanted<'_>,
        show: &mut dyn FnMut(&StoredRecord) -> ControlFlow<()>,
    ) -> PgResult<u64> {
        let mut names = self.names.borrow_mut();
        visit(&self.connection, &mut names, thread, after, wanted, &mut |stored| show(&stored))
    }

    fn expired_leases(&self, now: Timestamp) -> PgResult<Vec<i64>> {
        self.require_locks()?;
        // Threads that another node has locked are left to it. After a gap between heartbeats the leases are moved
        // before any expires: see nodes.rs.
        let sql = "SELECT run.id, run.thread, thread.version FROM run JOIN thread ON thread.id = run.thread \
                   WHERE run.lease > 0 AND run.lease_until <= $1 \
                   AND EXISTS (SELECT 1 FROM store WHERE alive_until > $1) AND run.id <> ALL($3) \
                   ORDER BY run.lease_until LIMIT $2 FOR UPDATE OF thread SKIP LOCKED";
        let due = self.connection.query(sql, &[&to_i64(now.0), &DUE, &self.unreadable.runs()])?;
        if due.is_empty() {
            return Ok(Vec::new());
        }
        due.iter().for_each(|row| self.record_lock(row.get(1), row.get(2)));
        // A lease that was renewed before its thread was locked has not expired.
        let due: Vec<i64> = due.iter().map(|row| row.get(0)).collect();
        let sql = "SELECT id, thread FROM run WHERE id = ANY($1) AND lease > 0 AND lease_until <= $2";
        let due = self.connection.query(sql, &[&due, &to_i64(now.0)])?;
        let mut readable = Vec::with_capacity(due.len());
        for row in due {
            let id = row.get(0);
            match self.check_readable(id, row.get(1)) {
                Ok(()) => readable.push(id),
                Err(failure @ PgError::Damaged(_)) => self.unreadable.insert_run(id, &failure),
                // The transaction has failed, too.
                Err(failure) => {
                    self.skip_unreadable(id, &failure);
                    return Err(failure);
                }
            }
        }
        Ok(readable)
    }

    fn skip_unreadable(&self, run: i64, failure: &PgError) -> bool {
        if failure.is_permanent() {
            self.unreadable.insert_run(run, failure);
        }
        // The transaction may have failed, too; the next attempt skips the run.
        false
    }

    fn new_thread_id(&mut self) -> PgResult<i64> {
        self.require_locks()?;
        take_id(&self.connection, "thread_id", &mut self.threads)
    }

    fn new_run_id(&mut self) -> PgResult<i64> {
        self.require_locks()?;
        take_id(&self.connection, "run_id", &mut self.runs)
    }
}

/// Cached names of runs.
pub(super) type RunNames = HashMap<u64, Arc<str>>;

/// Maximum number of cached names.
const NAMES: usize = 4096;
/// Rows of records that one query reads.
const ROWS: i64 = 32;

/// Calls `show` with the wanted records of a thread after a `seq`, until it breaks; returns how many were looked at.
pub(super) fn visit(
    connection: &PgConnection,
    names: &mut RunNames,
    thread: i64,
    after: u64,
    wanted: Wanted<'_>,
    show: &mut dyn FnMut(StoredRecord) -> ControlFlow<()>,
) -> PgResult<u64> {
    let sql = "SELECT first, last, checksum, body FROM chunk WHERE thread = $1 AND last > $2 \
               ORDER BY last LIMIT $3";
    let mut name_of = |run: u64| name_of(connection, names, run);
    let (mut from, mut verified, mut scanned) = (to_i64(after), RecordRows::of(thread), 0);
    loop {
        let rows = connection.query(sql, &[&thread, &from, &ROWS])?;
        for row in &rows {
            from = row.get(1);
            let chunk = decode_row(&mut verified, row, 0)?;
            if visit_chunk(chunk, after, wanted, &mut scanned, &mut name_of, show)?.is_break() {
                return Ok(scanned);
            }
        }
        if (rows.len() as i64) < ROWS {
            return Ok(scanned);
        }
    }
}

/// Returns the name of a run.
fn name_of(connection: &PgConnection, names: &mut RunNames, run: u64) -> PgResult<Arc<str>> {
    if let Some(name) = names.get(&run) {
        return Ok(name.clone());
    }
    let row = connection.one("SELECT name FROM run WHERE id = $1", &[&to_i64(run)])?;
    if names.len() >= NAMES {
        names.clear();
    }
    Ok(names.entry(run).or_insert_with(|| row.get::<_, &str>(0).into()).clone())
}
