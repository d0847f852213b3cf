//! Reads from Postgres: every read is short, and holds no transaction across a wait.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use super::address::PgAddress;
use super::connection::PgConnection;
use super::error::PgResult;
use super::rows::{RUN_COLUMNS, load_producers, number, restored, run_of_row, time};
use super::run_snapshot::RunSnapshot;
use super::txn_store::{RunNames, visit};
use crate::error::LogError;
use crate::info::{RunInfo, RunSpan, ThreadInfo};
use crate::key::{RunKey, ThreadKey};
use crate::query::{ProducerScope, ReadRecords, ReadRows, ThreadRow};
use crate::record::{StoredRecord, Wanted};
use crate::sql;
use crate::txn::ProducerHead;
use crate::unreadable_rows::UnreadableRows;

/// A read connection, with a cache of the names of runs.
pub(crate) struct PgReader {
    pub(super) connection: PgConnection,
    pub(super) names: RunNames,
    unreadable: Arc<UnreadableRows>,
}

impl PgReader {
    /// Connects.
    pub(super) fn open(address: &PgAddress) -> PgResult<Self> {
        let connection = PgConnection::open(address)?;
        Ok(Self { connection, names: RunNames::new(), unreadable: address.unreadable.clone() })
    }

    /// Reads in one transaction, so that all queries see one snapshot.
    pub(super) fn in_snapshot<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, LogError>,
    ) -> Result<T, LogError> {
        self.connection.run("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")?;
        let result = read(self);
        self.connection.run("COMMIT")?;
        result
    }

    /// Returns the run whose snapshot is in the thread's row, and the snapshot.
    fn snapshot_in(&self, thread: i64) -> PgResult<Option<(i64, RunSnapshot)>> {
        let sql = "SELECT snapshot_run, snapshot FROM thread WHERE id = $1 AND snapshot_run IS NOT NULL";
        let row = self.connection.first(sql, &[&thread])?;
        row.map(|row| Ok((row.get(0), RunSnapshot::read(row.get(1))?))).transpose()
    }

    /// Returns the producers in the snapshot of a run.
    fn snapshot_producers(&self, run: i64) -> PgResult<HashMap<String, ProducerHead>> {
        let mut producers = HashMap::new();
        let sql = "SELECT snapshot FROM thread WHERE id = (SELECT thread FROM run WHERE id = $1) AND snapshot_run = $1";
        if let Some(row) = self.connection.first(sql, &[&run])? {
            RunSnapshot::read(row.get(0))?.apply_producers(&mut producers)?;
        }
        Ok(producers)
    }
}

impl ReadRecords for PgReader {
    fn spans_of(&self, thread: i64) -> Result<Vec<RunSpan>, LogError> {
        let sql = "SELECT name, first_seq, last_seq, status IN ('pending', 'running', 'suspended'), id FROM run \
                   WHERE thread = $1 AND first_seq IS NOT NULL AND NOT trimmed ORDER BY first_seq";
        let rows = self.connection.query(sql, &[&thread])?;
        let snapshot_run = self.snapshot_in(thread)?;
        let snapshot_seq_of = |run: i64| {
            snapshot_run
                .as_ref()
                .filter(|(snapshot_run, _)| *snapshot_run == run)
                .map(|(_, snapshot)| snapshot.last_seq)
        };
        let span = |row: &tokio_postgres::Row| RunSpan {
            run_id: row.get(0),
            first_seq: number(row, 1),
            last_seq: snapshot_seq_of(row.get(4)).unwrap_or_else(|| number(row, 2)),
            open: row.get(3),
        };
        Ok(rows.iter().map(span).collect())
    }

    fn visit(
        &mut self,
        thread: i64,
        after: u64,
        wanted: Wanted<'_>,
        show: &mut dyn FnMut(StoredRecord) -> ControlFlow<()>,
    ) -> Result<(), LogError> {
        visit(&self.connection, &mut self.names, thread, after, wanted, show)?;
        Ok(())
    }

    fn last_run_seq(&self, thread: i64) -> Result<u64, LogError> {
        let sql = "SELECT coalesce(max(last_seq), 0) FROM run WHERE thread = $1";
        let last = number(&self.connection.one(sql, &[&thread])?, 0);
        Ok(self.snapshot_in(thread)?.map_or(last, |(_, snapshot)| snapshot.last_seq.max(last)))
    }
}

impl ReadRows for PgReader {
    type Sql = PgConnection;

    fn sql(&self) -> &PgConnection {
        &self.connection
    }

    fn unreadable(&self) -> &UnreadableRows {
        &self.unreadable
    }

    fn thread_row(&self, key: &ThreadKey) -> Result<ThreadRow, LogError> {
        let sql = "SELECT id, oldest, head, base, deleted_at IS NOT NULL, head_at FROM thread \
                   WHERE tenant = $1 AND name = $2";
        match self.connection.first(sql, &[&&*key.tenant, &&*key.id])? {
            None => Err(LogError::ThreadUnknown(key.id.to_string())),
            Some(row) if row.get::<_, bool>(4) => Err(LogError::ThreadDeleted(key.id.to_string())),
            Some(row) => Ok(ThreadRow {
                id: row.get(0),
                oldest: number(&row, 1),
                head: number(&row, 2),
                head_at: time(&row, 5),
                base: row.get(3),
            }),
        }
    }

    fn thread_info(&self, id: i64) -> Result<ThreadInfo, LogError> {
        let sql = "SELECT name, parallel, created_at, oldest, head, \
                   (SELECT count(*) FROM run WHERE run.thread = thread.id), \
                   ARRAY(SELECT name FROM run WHERE run.thread = thread.id \
                   AND status IN ('pending', 'running', 'suspended') ORDER BY id), \
                   (SELECT message FROM run WHERE run.thread = thread.id AND first_seq IS NOT NULL \
                   ORDER BY first_seq LIMIT 1) FROM thread WHERE id = $1";
        let row = self.connection.one(sql, &[&id])?;
        Ok(ThreadInfo {
            thread_id: row.get(0),
            parallel: row.get(1),
            created_at: time(&row, 2),
            oldest: number(&row, 3),
            head: number(&row, 4),
            open_runs: row.get(6),
            runs: number(&row, 5),
            title: row.get::<_, Option<&str>>(7).map(restored),
            latest: sql::latest_run(&self.connection, id)?,
        })
    }

    fn run_info(&self, key: &RunKey) -> Result<RunInfo, LogError> {
        let sql = format!(
            "SELECT {RUN_COLUMNS} FROM run JOIN thread ON thread.id = run.thread \
             WHERE run.tenant = $1 AND run.name = $2"
        );
        let Some(row) = self.connection.first(&sql, &[&&*key.tenant, &&*key.id])? else {
            return Err(LogError::RunUnknown(key.id.to_string()));
        };
        let run = run_of_row(&row)?.info();
        match row.get::<_, Option<i64>>(14) {
            Some(_) => Err(LogError::ThreadDeleted(run.thread_id)),
            None => Ok(run),
        }
    }

    fn producers_of(
        &self,
        scope: ProducerScope,
        owner: i64,
    ) -> Result<HashMap<String, ProducerHead>, LogError> {
        let mut producers = load_producers(&self.connection, scope.name(), owner)?;
        if scope == ProducerScope::Run {
            producers.extend(self.snapshot_producers(owner)?);
        }
        Ok(producers)
    }
}
