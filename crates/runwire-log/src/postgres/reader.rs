//! Reads from Postgres: every read is short, and holds no transaction across a wait.

use std::collections::HashMap;
use std::ops::ControlFlow;

use runwire_model::dialect::Encoder;
use runwire_model::run::Status;
use tokio_postgres::types::ToSql;

use super::connection::PgConnection;
use super::error::PgResult;
use super::rows::{RUN_COLUMNS, load_producers, number, producer_of_row, restored, run_of_row, time, to_i64};
use super::run_snapshot::RunSnapshot;
use super::txn_store::{RunNames, visit};
use crate::ReadFormat;
use crate::error::LogError;
use crate::info::{LatestRun, ProducerInfo, RunInfo, RunSpan, ThreadInfo};
use crate::interaction::InteractionQuery;
use crate::key::{RunKey, ThreadKey};
use crate::query::{InboxRow, ProducerScope, ReadStore, RunSelector, ThreadRow};
use crate::record::StoredRecord;
use crate::txn::{ProducerHead, RunHead};

/// A read connection, with a cache of the names of runs.
pub(super) struct PgReader {
    pub(super) connection: PgConnection,
    pub(super) names: RunNames,
}

impl PgReader {
    pub(super) fn new(connection: PgConnection) -> Self {
        Self { connection, names: RunNames::new() }
    }

    /// Reads in one transaction, so that all queries see one snapshot.
    pub(super) fn in_snapshot<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, LogError>,
    ) -> PgResult<Result<T, LogError>> {
        self.connection.run("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")?;
        let result = read(self);
        self.connection.run("COMMIT")?;
        Ok(result)
    }

    pub(super) fn spans(&self, key: &ThreadKey) -> Result<Vec<RunSpan>, LogError> {
        let row = self.thread_row(key)?;
        self.spans_of(row.id)
    }

    pub(super) fn row_id(&self, table: &str, tenant: &str, name: &str) -> PgResult<Option<i64>> {
        let sql = format!("SELECT id FROM {table} WHERE tenant = $1 AND name = $2");
        Ok(self.connection.first(&sql, &[&tenant, &name])?.map(|row| row.get(0)))
    }

    pub(super) fn thread(&self, key: &ThreadKey) -> Result<ThreadInfo, LogError> {
        let row = self.thread_row(key)?;
        self.thread_info(row.id)
    }

    /// Returns the latest run of a thread.
    fn latest_run_of(&self, thread: i64) -> Result<Option<LatestRun>, LogError> {
        let sql = "SELECT name, agent, status, coalesce(ended_at, started_at, created_at) FROM run \
                   WHERE thread = $1 AND first_seq IS NOT NULL ORDER BY first_seq DESC LIMIT 1";
        let row = self.connection.first(sql, &[&thread])?;
        Ok(row.map(|row| LatestRun {
            run_id: row.get(0),
            agent: row.get(1),
            status: Status::from_word(row.get(2)).unwrap_or_default(),
            at: time(&row, 3),
        }))
    }

    pub(super) fn threads(
        &self,
        tenant: &str,
        before: Option<&str>,
        limit: usize,
    ) -> Result<Vec<ThreadInfo>, LogError> {
        let before = match before {
            Some(before) => {
                let id = self.row_id("thread", tenant, before)?;
                id.ok_or_else(|| LogError::ThreadUnknown(before.to_owned()))?
            }
            None => i64::MAX,
        };
        let sql = "SELECT id FROM thread WHERE tenant = $1 AND id < $2 AND deleted_at IS NULL AND name <> '' \
                   ORDER BY id DESC LIMIT $3";
        let ids = self.connection.query(sql, &[&tenant, &before, &to_i64(limit as u64)])?;
        ids.iter().map(|row| self.thread_info(row.get(0))).collect()
    }

    pub(super) fn producer(&self, run: &RunKey, name: &str) -> Result<Option<ProducerInfo>, LogError> {
        self.run_info(run)?;
        let Some(owner) = self.row_id("run", &run.tenant, &run.id)? else { return Ok(None) };
        Ok(match self.snapshot_producers(owner)?.remove(name) {
            Some(snapshot_run) => Some(ProducerInfo::of(&snapshot_run)),
            None => self.producer_of("run", owner, name)?,
        })
    }

    pub(super) fn thread_producer(
        &self,
        thread: &ThreadKey,
        name: &str,
    ) -> Result<Option<ProducerInfo>, LogError> {
        let row = self.thread_row(thread)?;
        Ok(self.producer_of("thread", row.id, name)?)
    }

    fn producer_of(&self, scope: &str, owner: i64, name: &str) -> PgResult<Option<ProducerInfo>> {
        let sql =
            "SELECT name, epoch, next, decoder FROM producer WHERE scope = $1 AND owner = $2 AND name = $3";
        let Some(row) = self.connection.first(sql, &[&scope, &owner, &name])? else { return Ok(None) };
        Ok(Some(ProducerInfo::of(&producer_of_row(&row, 0)?.1)))
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

    pub(super) fn checkpoint(
        &self,
        run: &RunKey,
        form: ReadFormat,
        seq: u64,
    ) -> Result<Option<(u64, Encoder)>, LogError> {
        let sql = "SELECT seq, state FROM checkpoint WHERE form = $3 AND seq <= $4 \
                   AND run = (SELECT id FROM run WHERE tenant = $1 AND name = $2) ORDER BY seq DESC LIMIT 1";
        let params: super::connection::Params<'_> = &[&&*run.tenant, &&*run.id, &form.name(), &to_i64(seq)];
        // A checkpoint is a cache: one that an older version wrote differently counts as lost.
        let row = self.connection.first(sql, params)?;
        Ok(row.and_then(|row| Some((number(&row, 0), serde_json::from_str(row.get(1)).ok()?))))
    }
}

impl ReadStore for PgReader {
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
            latest: self.latest_run_of(id)?,
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
        show: &mut dyn FnMut(StoredRecord) -> ControlFlow<()>,
    ) -> Result<(), LogError> {
        Ok(visit(&self.connection, &mut self.names, thread, after, show)?)
    }

    fn runs_of(&self, thread: i64, which: RunSelector<'_>) -> Result<Vec<RunHead>, LogError> {
        let bounds = match &which {
            RunSelector::Begun { from, to } => [to_i64(*from), to_i64(*to)],
            _ => [0, 0],
        };
        let (filter, params): (&str, Vec<&(dyn ToSql + Sync)>) = match &which {
            RunSelector::Named(name) => ("run.name = $2", vec![&thread, name]),
            RunSelector::Numbered(id) => ("run.id = $2", vec![&thread, id]),
            RunSelector::Begun { .. } => {
                ("run.first_seq BETWEEN $2 AND $3", vec![&thread, &bounds[0], &bounds[1]])
            }
            RunSelector::Trimmed => ("run.trimmed", vec![&thread]),
            RunSelector::Open => ("run.status IN ('pending', 'running', 'suspended')", vec![&thread]),
        };
        let sql = format!(
            "SELECT {RUN_COLUMNS} FROM run JOIN thread ON thread.id = run.thread \
             WHERE run.thread = $1 AND {filter} ORDER BY run.first_seq NULLS FIRST, run.id"
        );
        let rows = self.connection.query(&sql, &params)?;
        rows.iter().map(|row| Ok(run_of_row(row)?)).collect()
    }

    fn latest_before(&self, thread: i64, seq: u64) -> Result<Option<i64>, LogError> {
        let sql = "SELECT id FROM run WHERE thread = $1 AND first_seq < $2 ORDER BY first_seq DESC LIMIT 1";
        Ok(self.connection.first(sql, &[&thread, &to_i64(seq)])?.map(|row| row.get(0)))
    }

    fn last_run_seq(&self, thread: i64) -> Result<u64, LogError> {
        let sql = "SELECT coalesce(max(last_seq), 0) FROM run WHERE thread = $1";
        let last = number(&self.connection.one(sql, &[&thread])?, 0);
        Ok(self.snapshot_in(thread)?.map_or(last, |(_, snapshot)| snapshot.last_seq.max(last)))
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

    fn run_name(&self, run: i64) -> Result<Option<String>, LogError> {
        let row = self.connection.first("SELECT name FROM run WHERE id = $1", &[&run])?;
        Ok(row.map(|row| row.get(0)))
    }

    fn inbox_rows(&self, query: &InteractionQuery) -> Result<Vec<InboxRow>, LogError> {
        Ok(self.open_interactions(query)?)
    }
}
