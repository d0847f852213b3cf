//! Reads from the store: every read is short, and holds no transaction across a wait.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use bytes::Bytes;
use runwire_model::Timestamp;
use runwire_model::dialect::Encoder;
use rusqlite::{Connection, OptionalExtension, params};

use super::rows::{RUN_COLUMNS, json_error, load_producers, run_of_row};
use crate::ReadFormat;
use crate::error::LogError;
use crate::info::{ProducerInfo, RunInfo, RunSpan, ThreadInfo};
use crate::interaction::InteractionQuery;
use crate::key::{RunKey, ThreadKey};
use crate::query::{InboxRow, ProducerScope, ReadStore, RunSelector, ThreadRow};
use crate::record::{DamagedRecord, RecordDecoder, StoredRecord};
use crate::txn::{ProducerHead, ProducerState, RunHead};

/// A read connection, with a cache of the names of runs.
pub(super) struct SqliteReader {
    pub(super) connection: Connection,
    pub(super) names: HashMap<u64, Arc<str>>,
}

/// Maximum number of cached names.
const NAMES: usize = 4096;

impl SqliteReader {
    pub(super) fn new(connection: Connection) -> Self {
        Self { connection, names: HashMap::new() }
    }

    /// Reads in one transaction, so that all queries see one snapshot.
    pub(super) fn in_snapshot<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, LogError>,
    ) -> rusqlite::Result<Result<T, LogError>> {
        self.connection.prepare_cached("BEGIN")?.execute([])?;
        let result = read(self);
        self.connection.prepare_cached("COMMIT")?.execute([])?;
        Ok(result)
    }

    pub(super) fn spans(&self, key: &ThreadKey) -> Result<Vec<RunSpan>, LogError> {
        let row = self.thread_row(key)?;
        self.spans_of(row.id)
    }

    pub(super) fn row_id(&self, table: &str, tenant: &str, name: &str) -> rusqlite::Result<Option<i64>> {
        let sql = format!("SELECT id FROM {table} WHERE tenant = ?1 AND name = ?2");
        self.connection.prepare_cached(&sql)?.query_row(params![tenant, name], |row| row.get(0)).optional()
    }

    pub(super) fn thread(&self, key: &ThreadKey) -> Result<ThreadInfo, LogError> {
        let row = self.thread_row(key)?;
        self.thread_info(row.id)
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
        let sql = "SELECT id FROM thread INDEXED BY thread_newest \
                   WHERE tenant = ?1 AND id < ?2 AND deleted_at IS NULL AND name <> '' \
                   ORDER BY id DESC LIMIT ?3";
        let mut statement = self.connection.prepare_cached(sql)?;
        let ids = statement.query_map(params![tenant, before, to_i64(limit as u64)], |row| row.get(0))?;
        let ids = ids.collect::<Result<Vec<i64>, _>>()?;
        ids.into_iter().map(|id| self.thread_info(id)).collect()
    }

    pub(super) fn producer(&self, run: &RunKey, name: &str) -> Result<Option<ProducerInfo>, LogError> {
        self.run_info(run)?;
        let Some(owner) = self.row_id("run", &run.tenant, &run.id)? else { return Ok(None) };
        Ok(self.producer_of("run", owner, name)?)
    }

    pub(super) fn thread_producer(
        &self,
        thread: &ThreadKey,
        name: &str,
    ) -> Result<Option<ProducerInfo>, LogError> {
        let row = self.thread_row(thread)?;
        Ok(self.producer_of("thread", row.id, name)?)
    }

    fn producer_of(&self, scope: &str, owner: i64, name: &str) -> rusqlite::Result<Option<ProducerInfo>> {
        let sql = "SELECT epoch, next, decoder FROM producer WHERE scope = ?1 AND owner = ?2 AND name = ?3";
        let mut statement = self.connection.prepare_cached(sql)?;
        let row = statement.query_row(params![scope, owner, name], |row| {
            let state: Option<String> = row.get(2)?;
            let state: Option<ProducerState> =
                state.as_deref().map(serde_json::from_str).transpose().map_err(json_error)?;
            let dialect = state.and_then(|state| state.decoder).map(|decoder| decoder.dialect());
            let (epoch, next) = (row.get::<_, i64>(0)? as u64, row.get::<_, i64>(1)? as u64);
            Ok(ProducerInfo { epoch, next, dialect })
        });
        row.optional()
    }

    pub(super) fn checkpoint(
        &self,
        run: &RunKey,
        form: ReadFormat,
        seq: u64,
    ) -> Result<Option<(u64, Encoder)>, LogError> {
        let sql = "SELECT seq, state FROM checkpoint WHERE form = ?3 AND seq <= ?4 \
                   AND run = (SELECT id FROM run WHERE tenant = ?1 AND name = ?2) ORDER BY seq DESC LIMIT 1";
        let mut statement = self.connection.prepare_cached(sql)?;
        let values = params![&*run.tenant, &*run.id, form.name(), to_i64(seq)];
        let row = statement.query_row(values, |row| Ok((row.get::<_, u64>(0)?, row.get::<_, String>(1)?)));
        // A checkpoint is a cache: one that an older version wrote differently counts as lost.
        let read = |(seq, state): (u64, String)| Some((seq, serde_json::from_str(&state).ok()?));
        Ok(row.optional()?.and_then(read))
    }
}

impl ReadStore for SqliteReader {
    fn thread_row(&self, key: &ThreadKey) -> Result<ThreadRow, LogError> {
        let sql = "SELECT id, oldest, head, base, deleted_at IS NOT NULL, head_at FROM thread \
                   WHERE tenant = ?1 AND name = ?2";
        let mut statement = self.connection.prepare_cached(sql)?;
        let row = statement.query_row(params![&*key.tenant, &*key.id], |row| {
            let deleted: bool = row.get(4)?;
            let row = ThreadRow {
                id: row.get(0)?,
                oldest: row.get(1)?,
                head: row.get(2)?,
                head_at: Timestamp(row.get(5)?),
                base: row.get(3)?,
            };
            Ok((row, deleted))
        });
        match row.optional()? {
            None => Err(LogError::ThreadUnknown(key.id.to_string())),
            Some((_, true)) => Err(LogError::ThreadDeleted(key.id.to_string())),
            Some((mut row, false)) => {
                let sql = "SELECT max(last) FROM chunk WHERE thread = ?1";
                let mut last = self.connection.prepare_cached(sql)?;
                let last: Option<u64> = last.query_row([row.id], |row| row.get(0))?;
                row.head = row.head.max(last.unwrap_or(0));
                Ok(row)
            }
        }
    }

    fn thread_info(&self, id: i64) -> Result<ThreadInfo, LogError> {
        let sql = "SELECT name, parallel, created_at, oldest, max(head, coalesce((SELECT max(last) FROM chunk \
                   WHERE thread = ?1), 0)), (SELECT count(*) FROM run WHERE thread = ?1) FROM thread WHERE id = ?1";
        let mut statement = self.connection.prepare_cached(sql)?;
        let mut thread = statement.query_row([id], |row| {
            Ok(ThreadInfo {
                thread_id: row.get(0)?,
                parallel: row.get(1)?,
                created_at: Timestamp(row.get(2)?),
                oldest: row.get(3)?,
                head: row.get(4)?,
                open_runs: Vec::new(),
                runs: row.get(5)?,
                title: None,
                latest: None,
            })
        })?;
        let sql = "SELECT name FROM run INDEXED BY run_open \
                   WHERE thread = ?1 AND status IN ('pending', 'running', 'suspended') ORDER BY id";
        let mut open = self.connection.prepare_cached(sql)?;
        thread.open_runs = open.query_map([id], |row| row.get(0))?.collect::<Result<_, _>>()?;
        thread.title = self.title_of(id)?;
        thread.latest = self.latest_run_of(id)?;
        Ok(thread)
    }

    fn run_info(&self, key: &RunKey) -> Result<RunInfo, LogError> {
        let sql = format!(
            "SELECT {RUN_COLUMNS} FROM run JOIN thread ON thread.id = run.thread WHERE run.tenant = ?1 AND run.name = ?2"
        );
        let mut statement = self.connection.prepare_cached(&sql)?;
        let run = statement.query_row(params![&*key.tenant, &*key.id], |row| {
            let deleted: Option<u64> = row.get(14)?;
            Ok((run_of_row(row)?.info(), deleted.is_some()))
        });
        match run.optional()? {
            None => Err(LogError::RunUnknown(key.id.to_string())),
            Some((run, true)) => Err(LogError::ThreadDeleted(run.thread_id)),
            Some((run, false)) => Ok(run),
        }
    }

    fn spans_of(&self, thread: i64) -> Result<Vec<RunSpan>, LogError> {
        let sql = "SELECT name, first_seq, last_seq, status FROM run \
                   WHERE thread = ?1 AND first_seq IS NOT NULL AND trimmed = 0 ORDER BY first_seq";
        let mut statement = self.connection.prepare_cached(sql)?;
        let rows = statement.query_map([thread], |row| {
            let status: String = row.get(3)?;
            let open = matches!(status.as_str(), "pending" | "running" | "suspended");
            Ok(RunSpan { run_id: row.get(0)?, first_seq: row.get(1)?, last_seq: row.get(2)?, open })
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
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
        let (filter, values): (&str, Vec<&dyn rusqlite::ToSql>) = match &which {
            RunSelector::Named(name) => ("run.name = ?2", vec![&thread, name]),
            RunSelector::Numbered(id) => ("run.id = ?2", vec![&thread, id]),
            RunSelector::Begun { from, to } => ("run.first_seq BETWEEN ?2 AND ?3", vec![&thread, from, to]),
            RunSelector::Trimmed => ("run.trimmed = 1", vec![&thread]),
            RunSelector::Open => ("run.status IN ('pending', 'running', 'suspended')", vec![&thread]),
        };
        let sql = format!(
            "SELECT {RUN_COLUMNS} FROM run JOIN thread ON thread.id = run.thread \
             WHERE run.thread = ?1 AND {filter} ORDER BY run.first_seq, run.id"
        );
        let mut statement = self.connection.prepare_cached(&sql)?;
        let runs = statement.query_map(&*values, run_of_row)?;
        Ok(runs.collect::<Result<_, _>>()?)
    }

    fn latest_before(&self, thread: i64, seq: u64) -> Result<Option<i64>, LogError> {
        let sql = "SELECT id FROM run WHERE thread = ?1 AND first_seq < ?2 ORDER BY first_seq DESC LIMIT 1";
        let mut latest = self.connection.prepare_cached(sql)?;
        Ok(latest.query_row(params![thread, to_i64(seq)], |row| row.get(0)).optional()?)
    }

    fn last_run_seq(&self, thread: i64) -> Result<u64, LogError> {
        let sql = "SELECT coalesce(max(last_seq), 0) FROM run WHERE thread = ?1";
        Ok(self.connection.prepare_cached(sql)?.query_row([thread], |row| row.get(0))?)
    }

    fn producers_of(
        &self,
        scope: ProducerScope,
        owner: i64,
    ) -> Result<HashMap<String, ProducerHead>, LogError> {
        Ok(load_producers(&self.connection, scope.name(), owner)?)
    }

    fn run_name(&self, run: i64) -> Result<Option<String>, LogError> {
        let mut name = self.connection.prepare_cached("SELECT name FROM run WHERE id = ?1")?;
        Ok(name.query_row([run], |row| row.get(0)).optional()?)
    }

    fn inbox_rows(&self, query: &InteractionQuery) -> Result<Vec<InboxRow>, LogError> {
        Ok(self.open_interactions(query)?)
    }
}

/// Converts to a number that SQLite can hold; no `seq` or count comes near its maximum.
pub(super) fn to_i64(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Returns the `seq` and the time of a thread's last record.
pub(super) fn last_record(
    connection: &Connection,
    thread: i64,
) -> rusqlite::Result<Option<(u64, Timestamp)>> {
    let sql = "SELECT last, body FROM chunk WHERE thread = ?1 ORDER BY last DESC LIMIT 1";
    let mut statement = connection.prepare_cached(sql)?;
    let row = statement.query_row([thread], |row| Ok((row.get::<_, u64>(0)?, row.get::<_, Vec<u8>>(1)?)));
    let Some((last, body)) = row.optional()? else { return Ok(None) };
    let record = RecordDecoder::new(body.into()).next(last - 1).map_err(damaged)?;
    Ok(record.map(|read| (read.record.seq, read.record.at)))
}

/// Calls `show` with the stored records of a thread after a `seq`, until it breaks.
pub(super) fn visit(
    connection: &Connection,
    names: &mut HashMap<u64, Arc<str>>,
    thread: i64,
    after: u64,
    show: &mut dyn FnMut(StoredRecord) -> ControlFlow<()>,
) -> rusqlite::Result<()> {
    let sql = "SELECT body FROM chunk WHERE thread = ?1 AND last > ?2 ORDER BY last";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query(params![thread, after])?;
    while let Some(row) = rows.next()? {
        let body: Vec<u8> = row.get(0)?;
        let mut records = RecordDecoder::new(Bytes::from(body));
        while let Some(read) = records.next(after).map_err(damaged)? {
            let run = match names.get(&read.run) {
                Some(name) => name.clone(),
                None => {
                    let sql = "SELECT name FROM run WHERE id = ?1";
                    let name: String =
                        connection.prepare_cached(sql)?.query_row([read.run], |row| row.get(0))?;
                    if names.len() >= NAMES {
                        names.clear();
                    }
                    names.entry(read.run).or_insert_with(|| name.into()).clone()
                }
            };
            let stored = StoredRecord { run, record: read.record, name: read.name, frame: read.frame };
            if show(stored).is_break() {
                return Ok(());
            }
        }
    }
    Ok(())
}

fn damaged(error: DamagedRecord) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(0, rusqlite::types::Type::Blob, Box::new(error))
}

impl From<rusqlite::Error> for LogError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Unavailable(error.to_string())
    }
}
