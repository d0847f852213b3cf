//! The tables, as the verbs look things up in them.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet, VecDeque};
use std::ops::ControlFlow;
use std::sync::Arc;

use bytes::Bytes;
use runwire_model::Timestamp;

use super::connection::Connection;
use super::failure::{Db, Failure};
use super::rows::{load_run, load_thread, whole_number};
use crate::key::{RunKey, ThreadKey};
use crate::record::{Records, Stored};
use crate::work::{Base, RunHead, Store, ThreadHead};

/// The store of one writer, in a transaction.
pub(super) struct Tables {
    pub(super) connection: Connection,
    /// Threads that the transaction has locked.
    locked: RefCell<HashSet<i64>>,
    /// Whether the request at hand was told that something is not there.
    missed: Cell<bool>,
    /// The thread that a request could not begin with, and must.
    wanted: Cell<Option<i64>>,
    names: RefCell<Names>,
    threads: VecDeque<i64>,
    runs: VecDeque<i64>,
}

/// Numbers that are taken from a sequence at once.
const IDS: i64 = 32;

impl Tables {
    pub(super) fn new(connection: Connection) -> Self {
        Self {
            connection,
            locked: RefCell::default(),
            missed: Cell::new(false),
            wanted: Cell::new(None),
            names: RefCell::default(),
            threads: VecDeque::new(),
            runs: VecDeque::new(),
        }
    }

    /// Begins a transaction, and locks what it is known to need: in one order, so that no two wait for each other.
    /// Tells the store's time.
    pub(super) fn begin(&self, threads: &[&ThreadKey], runs: &[&RunKey]) -> Db<Timestamp> {
        self.locked.borrow_mut().clear();
        self.connection.run("BEGIN")?;
        let (thread_tenants, thread_names) = columns(threads.iter().map(|key| (&*key.tenant, &*key.id)));
        let (run_tenants, run_names) = columns(runs.iter().map(|key| (&*key.tenant, &*key.id)));
        let sql = "SELECT id FROM thread WHERE id IN (\
                   SELECT id FROM thread JOIN unnest($1::text[], $2::text[]) AS known (tenant, name) \
                   USING (tenant, name) UNION ALL \
                   SELECT thread FROM run JOIN unnest($3::text[], $4::text[]) AS known (tenant, name) \
                   USING (tenant, name) UNION ALL SELECT $5::bigint) ORDER BY id FOR UPDATE";
        let by: super::connection::By<'_> =
            &[&thread_tenants, &thread_names, &run_tenants, &run_names, &self.wanted.take()];
        let locked = self.connection.query(sql, by)?;
        self.locked.borrow_mut().extend(locked.iter().map(|row| row.get::<_, i64>(0)));
        now(&self.connection)
    }

    /// Begins the next request of the transaction.
    pub(super) fn next(&self) {
        self.missed.set(false);
    }

    /// Locks a thread.
    ///
    /// What was missing before may have come with it: another node can have made both. A commit would find that out,
    /// but a refusal would not. So the request begins anew, with the thread locked before anything is looked for.
    fn lock(&self, thread: i64) -> Db<()> {
        if self.locked.borrow_mut().insert(thread) {
            if self.missed.get() {
                self.wanted.set(Some(thread));
                return Err(Failure::Overtaken);
            }
            self.connection.execute("SELECT 1 FROM thread WHERE id = $1 FOR UPDATE", &[&thread])?;
        }
        Ok(())
    }

    fn run_of(&self, found: Option<tokio_postgres::Row>) -> Db<Option<Box<RunHead>>> {
        let Some(row) = found else {
            self.missed.set(true);
            return Ok(None);
        };
        let (run, thread): (i64, i64) = (row.get(0), row.get(1));
        self.lock(thread)?;
        load_run(&self.connection, "run.id = $1", &[&run])
    }
}

fn columns<'a>(keys: impl Iterator<Item = (&'a str, &'a str)>) -> (Vec<&'a str>, Vec<&'a str>) {
    keys.unzip()
}

/// Tells the time by the store's clock.
pub(super) fn now(connection: &Connection) -> Db<Timestamp> {
    let sql = "SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint";
    Ok(super::rows::time(&connection.one(sql, &[])?, 0))
}

fn take_id(connection: &Connection, sequence: &str, ready: &mut VecDeque<i64>) -> Db<i64> {
    if ready.is_empty() {
        let sql = format!("SELECT nextval('{sequence}') FROM generate_series(1, $1::bigint)");
        ready.extend(connection.query(&sql, &[&IDS])?.iter().map(|row| row.get::<_, i64>(0)));
    }
    ready.pop_front().ok_or_else(|| Failure::Damaged("a sequence gives no number".into()))
}

impl Store for Tables {
    type Error = Failure;

    fn thread(&self, key: &ThreadKey) -> Db<Option<Box<ThreadHead>>> {
        let sql = "SELECT id FROM thread WHERE tenant = $1 AND name = $2";
        match self.connection.first(sql, &[&&*key.tenant, &&*key.id])? {
            Some(row) => self.thread_by_id(row.get(0)),
            None => {
                self.missed.set(true);
                Ok(None)
            }
        }
    }

    fn thread_by_id(&self, id: i64) -> Db<Option<Box<ThreadHead>>> {
        self.lock(id)?;
        load_thread(&self.connection, id)
    }

    fn run(&self, key: &RunKey) -> Db<Option<Box<RunHead>>> {
        let sql = "SELECT id, thread FROM run WHERE tenant = $1 AND name = $2";
        self.run_of(self.connection.first(sql, &[&&*key.tenant, &&*key.id])?)
    }

    fn run_by_id(&self, id: i64) -> Db<Option<Box<RunHead>>> {
        self.run_of(self.connection.first("SELECT id, thread FROM run WHERE id = $1", &[&id])?)
    }

    fn has_run(&self, key: &RunKey) -> Db<bool> {
        let sql = "SELECT 1 FROM run WHERE tenant = $1 AND name = $2";
        let found = self.connection.first(sql, &[&&*key.tenant, &&*key.id])?.is_some();
        self.missed.set(self.missed.get() || !found);
        Ok(found)
    }

    fn has_run_from(&self, thread: i64, first_seq: u64) -> Db<bool> {
        let sql = "SELECT 1 FROM run WHERE thread = $1 AND first_seq = $2";
        Ok(self.connection.first(sql, &[&thread, &whole_number(first_seq)])?.is_some())
    }

    fn base(&self, thread: i64) -> Db<Option<Base>> {
        let row = self.connection.first("SELECT base FROM thread WHERE id = $1", &[&thread])?;
        let base = row.and_then(|row| row.get::<_, Option<String>>(0));
        Ok(base.as_deref().map(serde_json::from_str).transpose()?)
    }

    fn visit(&self, thread: i64, after: u64, show: &mut dyn FnMut(&Stored) -> ControlFlow<()>) -> Db<()> {
        let mut names = self.names.borrow_mut();
        visit(&self.connection, &mut names, thread, after, &mut |stored| show(&stored))
    }

    fn due(&self, now: Timestamp) -> Db<Vec<i64>> {
        // What another node is working on is left to it.
        let sql = "SELECT run.id, run.thread FROM run JOIN thread ON thread.id = run.thread \
                   WHERE run.lease > 0 AND run.lease_until <= $1 FOR UPDATE OF thread SKIP LOCKED";
        let rows = self.connection.query(sql, &[&whole_number(now.0)])?;
        self.locked.borrow_mut().extend(rows.iter().map(|row| row.get::<_, i64>(1)));
        Ok(rows.iter().map(|row| row.get(0)).collect())
    }

    fn new_thread_id(&mut self) -> Db<i64> {
        take_id(&self.connection, "thread_id", &mut self.threads)
    }

    fn new_run_id(&mut self) -> Db<i64> {
        take_id(&self.connection, "run_id", &mut self.runs)
    }
}

/// Names of runs that were met.
pub(super) type Names = HashMap<u64, Arc<str>>;

/// Names that are remembered.
const NAMES: usize = 4096;
/// Rows of records that are read at once.
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
