//! What commands load from the tables and the pending commits of SQLite.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use runwire_model::Timestamp;
use rusqlite::{Connection, OptionalExtension, params};

use super::SqliteOptions;
use super::connection_slot::ConnectionSlot;
use super::error::{SqliteError, SqliteResult};
use super::leases::Leases;
use super::pending_commits::PendingCommits;
use super::reader::visit;
use super::rows::{load_run, load_thread};
use crate::key::{RunKey, ThreadKey};
use crate::record::{StoredRecord, Wanted};
use crate::sql::to_i64;
use crate::txn::{BaseState, RunHead, ThreadHead, TxnStore};
use crate::unreadable_rows::UnreadableRows;

/// The store of the writer.
pub(super) struct SqliteTxnStore {
    pub(super) connection: ConnectionSlot,
    pub(super) pending_commits: PendingCommits,
    pub(super) leases: Leases,
    unreadable: Arc<UnreadableRows>,
    /// Cached names of runs.
    names: RefCell<HashMap<u64, Arc<str>>>,
    next_thread: i64,
    next_run: i64,
}

impl SqliteTxnStore {
    /// Opens the tables, and flushes what a crash has left in `pending_commits`.
    pub(super) fn open(
        connection: Connection,
        options: &SqliteOptions,
        unreadable: Arc<UnreadableRows>,
    ) -> SqliteResult<Self> {
        let pending_commits = PendingCommits::open(&connection)?;
        let last = |table: &str| {
            let sql = format!("SELECT coalesce(max(id), 0) FROM {table}");
            connection.query_row(&sql, [], |row| row.get::<_, i64>(0))
        };
        let (next_thread, next_run) = (last("thread")? + 1, last("run")? + 1);
        let leases = Leases::open(&connection, options, &unreadable)?;
        let (connection, names) = (ConnectionSlot::new(connection), RefCell::default());
        Ok(Self { connection, pending_commits, leases, unreadable, names, next_thread, next_run })
    }

    fn run_where(&self, filter: &str, values: &[&dyn rusqlite::ToSql]) -> SqliteResult<Option<Box<RunHead>>> {
        let mut run = load_run(self.connection.begin()?, filter, values)?;
        if let Some(run) = &mut run {
            run.lease = self.leases.of(run.id);
        }
        Ok(run)
    }
}

impl TxnStore for SqliteTxnStore {
    type Error = SqliteError;

    fn thread(&self, key: &ThreadKey) -> SqliteResult<Option<Box<ThreadHead>>> {
        load_thread(self.connection.begin()?, "tenant = ?1 AND name = ?2", params![&*key.tenant, &*key.id])
    }

    fn thread_by_id(&self, id: i64) -> SqliteResult<Option<Box<ThreadHead>>> {
        load_thread(self.connection.begin()?, "id = ?1", params![id])
    }

    fn run(&self, key: &RunKey) -> SqliteResult<Option<Box<RunHead>>> {
        self.run_where("run.tenant = ?1 AND run.name = ?2", params![&*key.tenant, &*key.id])
    }

    fn run_by_id(&self, id: i64) -> SqliteResult<Option<Box<RunHead>>> {
        self.run_where("run.id = ?1", params![id])
    }

    fn has_run(&self, key: &RunKey) -> SqliteResult<bool> {
        let sql = "SELECT 1 FROM run WHERE tenant = ?1 AND name = ?2";
        Ok(self.connection.begin()?.prepare_cached(sql)?.exists(params![&*key.tenant, &*key.id])?)
    }

    fn has_run_from(&self, thread: i64, first_seq: u64) -> SqliteResult<bool> {
        let sql = "SELECT 1 FROM run WHERE thread = ?1 AND first_seq = ?2";
        Ok(self.connection.begin()?.prepare_cached(sql)?.exists(params![thread, to_i64(first_seq)])?)
    }

    fn base(&self, thread: i64) -> SqliteResult<Option<BaseState>> {
        let sql = "SELECT base FROM thread WHERE id = ?1";
        let mut base = self.connection.begin()?.prepare_cached(sql)?;
        let base: Option<Option<String>> = base.query_row([thread], |row| row.get(0)).optional()?;
        Ok(base.flatten().as_deref().map(serde_json::from_str).transpose()?)
    }

    fn visit(
        &self,
        thread: i64,
        after: u64,
        wanted: Wanted<'_>,
        show: &mut dyn FnMut(&StoredRecord) -> ControlFlow<()>,
    ) -> SqliteResult<u64> {
        let unflushed =
            self.pending_commits.threads.get(&thread).map_or(&[][..], |unflushed| &unflushed.records);
        let first_unflushed = unflushed.first().map_or(u64::MAX, |(_, stored)| stored.record.seq);
        let (mut stopped, mut scanned) = (false, 0);
        if after.saturating_add(1) < first_unflushed {
            let mut names = self.names.borrow_mut();
            scanned =
                visit(self.connection.begin()?, &mut names, None, (thread, after), wanted, &mut |stored| {
                    let flow = show(&stored);
                    stopped |= flow.is_break();
                    flow
                })?;
        }
        // `seq` is contiguous, so the place of the first record is known.
        let from = after.saturating_add(1).saturating_sub(first_unflushed);
        for (_, stored) in unflushed.iter().skip(usize::try_from(from).unwrap_or(usize::MAX)) {
            if stopped {
                break;
            }
            scanned += 1;
            stopped = show(stored).is_break();
        }
        Ok(scanned)
    }

    fn expired_leases(&self, now: Timestamp) -> SqliteResult<Vec<i64>> {
        let (mut due, skipped) = (self.leases.due(now), self.unreadable.runs());
        due.retain(|run| !skipped.contains(run));
        Ok(due)
    }

    fn skip_unreadable(&self, run: i64, failure: &SqliteError) -> bool {
        let is_damage = failure.is_damage();
        if is_damage {
            self.unreadable.insert_run(run, failure);
        }
        is_damage
    }

    fn new_thread_id(&mut self) -> SqliteResult<i64> {
        self.next_thread += 1;
        Ok(self.next_thread - 1)
    }

    fn new_run_id(&mut self) -> SqliteResult<i64> {
        self.next_run += 1;
        Ok(self.next_run - 1)
    }
}
