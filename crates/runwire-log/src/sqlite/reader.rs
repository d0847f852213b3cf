//! Reads from the store: every read is short, and holds no transaction across a wait.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use runwire_model::Timestamp;
use rusqlite::{Connection, OpenFlags, OptionalExtension, Row, params};

use super::error::{SqliteError, SqliteResult};
use super::rows::{RUN_COLUMNS, load_producers, run_of_row};
use super::unflushed::{Unflushed, UnflushedPart, UnflushedParts, UnflushedProducer, UnflushedProgress};
use crate::error::LogError;
use crate::info::{RunInfo, RunSpan, ThreadInfo};
use crate::key::{RunKey, ThreadKey};
use crate::query::{ProducerScope, ReadRecords, ReadRows, ThreadRow};
use crate::record::{RecordDecoder, RecordRows, StoredRecord, Wanted, visit_chunk};
use crate::sql;
use crate::store::ReadScope;
use crate::txn::{ProducerHead, RunHead, RunProgress};
use crate::unreadable_rows::UnreadableRows;

/// A read connection, with a cache of the names of runs.
pub(crate) struct SqliteReader {
    pub(super) connection: Connection,
    pub(super) names: HashMap<u64, Arc<str>>,
    pub(super) unreadable: Arc<UnreadableRows>,
    unflushed: Arc<Unflushed>,
    /// What is pending of the threads that are read.
    parts: Arc<UnflushedParts>,
}

/// Maximum number of cached names.
const NAMES: usize = 4096;

impl SqliteReader {
    /// Opens a connection that only reads.
    pub(super) fn open(
        path: &Path,
        unreadable: Arc<UnreadableRows>,
        unflushed: Arc<Unflushed>,
    ) -> SqliteResult<Self> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags)?;
        connection.busy_timeout(Duration::from_secs(5))?;
        connection.pragma_update(None, "cache_size", -4096)?;
        connection.set_prepared_statement_cache_capacity(64);
        let (names, parts) = (HashMap::new(), Arc::default());
        Ok(Self { connection, names, unreadable, unflushed, parts })
    }

    /// Reads in one transaction, so that all queries see one snapshot, and what is pending of the scope.
    pub(super) fn in_snapshot<T>(
        &mut self,
        scope: &ReadScope,
        read: impl FnOnce(&mut Self) -> Result<T, LogError>,
    ) -> Result<T, LogError> {
        // Before the snapshot: what is flushed in between is in both, and not in neither.
        self.parts = self.pending(scope)?;
        self.connection.prepare_cached("BEGIN")?.execute([])?;
        let result = read(self);
        self.parts = Arc::default();
        self.connection.prepare_cached("COMMIT")?.execute([])?;
        result
    }

    /// Returns what is pending of a scope. The number of a thread never changes.
    fn pending(&self, scope: &ReadScope) -> SqliteResult<Arc<UnflushedParts>> {
        let (sql, tenant, name) = match scope {
            ReadScope::Thread(key) => {
                ("SELECT id FROM thread WHERE tenant = ?1 AND name = ?2", &key.tenant, &key.id)
            }
            ReadScope::Run(key) => {
                ("SELECT thread FROM run WHERE tenant = ?1 AND name = ?2", &key.tenant, &key.id)
            }
            ReadScope::Everything => return Ok(self.unflushed.all()),
            ReadScope::Tables => return Ok(Arc::default()),
        };
        let mut statement = self.connection.prepare_cached(sql)?;
        let thread = statement.query_row(params![&**tenant, &**name], |row| row.get(0)).optional()?;
        Ok(thread.map(|thread| Arc::new(self.unflushed.of(thread))).unwrap_or_default())
    }

    /// Returns the last `seq` that is pending of a thread.
    fn pending_head(&self, thread: i64) -> u64 {
        self.parts.get(&thread).and_then(|part| part.last_seq()).unwrap_or(0)
    }

    /// Returns the pending progress of a run, if it is newer than its row.
    fn pending_progress(&self, thread: i64, run: i64, last_seq: u64) -> Option<&UnflushedProgress> {
        let progress = self.parts.get(&thread)?.runs.get(&run)?.progress.as_ref()?;
        (progress.last_seq >= last_seq).then_some(progress)
    }

    /// Returns the first user message of a thread.
    pub(super) fn title_of(&self, thread: i64) -> Result<Option<String>, LogError> {
        let sql = "SELECT CASE WHEN json_valid(head) THEN head ->> '$.summary.message' END FROM run \
                   WHERE thread = ?1 AND first_seq IS NOT NULL ORDER BY first_seq LIMIT 1";
        let mut statement = self.connection.prepare_cached(sql)?;
        Ok(statement.query_row([thread], |row| row.get(0)).optional()?.flatten())
    }
}

impl ReadRecords for SqliteReader {
    fn spans_of(&self, thread: i64) -> Result<Vec<RunSpan>, LogError> {
        let sql = "SELECT name, first_seq, last_seq, status, id FROM run \
                   WHERE thread = ?1 AND first_seq IS NOT NULL AND trimmed = 0 ORDER BY first_seq";
        let mut statement = self.connection.prepare_cached(sql)?;
        let rows = statement.query_map([thread], |row| {
            let status: String = row.get(3)?;
            let open = matches!(status.as_str(), "pending" | "running" | "suspended");
            let last_seq = row.get(2)?;
            let progress = self.pending_progress(thread, row.get(4)?, last_seq);
            let last_seq = progress.map_or(last_seq, |progress| progress.last_seq);
            Ok(RunSpan { run_id: row.get(0)?, first_seq: row.get(1)?, last_seq, open })
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    fn visit(
        &mut self,
        thread: i64,
        after: u64,
        wanted: Wanted<'_>,
        show: &mut dyn FnMut(StoredRecord) -> ControlFlow<()>,
    ) -> Result<(), LogError> {
        let Self { connection, names, parts, .. } = self;
        let part = parts.get(&thread).map(|part| &**part);
        visit(connection, names, part, (thread, after), wanted, show)?;
        Ok(())
    }

    fn last_run_seq(&self, thread: i64) -> Result<u64, LogError> {
        let sql = "SELECT coalesce(max(last_seq), 0) FROM run WHERE thread = ?1";
        let last: u64 = self.connection.prepare_cached(sql)?.query_row([thread], |row| row.get(0))?;
        Ok(last.max(self.pending_head(thread)))
    }
}

impl ReadRows for SqliteReader {
    type Sql = Connection;

    fn sql(&self) -> &Connection {
        &self.connection
    }

    fn unreadable(&self) -> &UnreadableRows {
        &self.unreadable
    }

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
                row.head = row.head.max(last.unwrap_or(0)).max(self.pending_head(row.id));
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
        thread.head = thread.head.max(self.pending_head(id));
        let sql = "SELECT name FROM run INDEXED BY run_open \
                   WHERE thread = ?1 AND status IN ('pending', 'running', 'suspended') ORDER BY id";
        let mut open = self.connection.prepare_cached(sql)?;
        thread.open_runs = open.query_map([id], |row| row.get(0))?.collect::<Result<_, _>>()?;
        thread.title = self.title_of(id)?;
        thread.latest = sql::latest_run(&self.connection, id)?;
        Ok(thread)
    }

    fn run_info(&self, key: &RunKey) -> Result<RunInfo, LogError> {
        let sql = format!(
            "SELECT {RUN_COLUMNS} FROM run JOIN thread ON thread.id = run.thread WHERE run.tenant = ?1 AND run.name = ?2"
        );
        let mut statement = self.connection.prepare_cached(&sql)?;
        let mut runs = statement.query_and_then(params![&*key.tenant, &*key.id], |row| {
            let deleted: Option<u64> = row.get(14)?;
            SqliteResult::Ok((run_of_row(row)?, deleted.is_some()))
        })?;
        let run = runs.next().transpose()?;
        let updated = |(mut run, deleted): (RunHead, bool)| -> Result<_, LogError> {
            self.update_run(&mut run)?;
            Ok((run.info(), deleted))
        };
        match run.map(updated).transpose()? {
            None => Err(LogError::RunUnknown(key.id.to_string())),
            Some((run, true)) => Err(LogError::ThreadDeleted(run.thread_id)),
            Some((run, false)) => Ok(run),
        }
    }

    fn producers_of(
        &self,
        scope: ProducerScope,
        owner: i64,
    ) -> Result<HashMap<String, ProducerHead>, LogError> {
        let mut producers = load_producers(&self.connection, scope.name(), owner)?;
        if scope == ProducerScope::Run {
            for run in self.parts.values().filter_map(|part| part.runs.get(&owner)) {
                for (name, producer) in &run.producers {
                    add_producer(&mut producers, name, producer)?;
                }
            }
        }
        Ok(producers)
    }

    fn update_run(&self, run: &mut RunHead) -> Result<(), LogError> {
        let Some(pending) = self.pending_progress(run.thread, run.id, run.last_seq) else { return Ok(()) };
        let mut progress = RunProgress::decode(&pending.progress).map_err(SqliteError::from)?;
        // The user message is in the row alone.
        progress.summary.message = run.head.summary.message.take();
        (run.head, run.last_seq, run.deadline) = (progress, pending.last_seq, pending.deadline);
        Ok(())
    }
}

/// Returns the `seq` and the time of a thread's last record.
pub(super) fn last_record(connection: &Connection, thread: i64) -> SqliteResult<Option<(u64, Timestamp)>> {
    let sql = "SELECT first, last, checksum, body FROM chunk WHERE thread = ?1 ORDER BY last DESC LIMIT 1";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query([thread])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    let mut chunk = decode_row(&mut RecordRows::of(thread), row)?;
    let record = chunk.next(row.get::<_, u64>(1)?.saturating_sub(1))?;
    Ok(record.map(|read| (read.record.seq, read.record.at)))
}

/// Decodes a row of records: first, last, checksum and body.
fn decode_row(rows: &mut RecordRows, row: &Row<'_>) -> SqliteResult<RecordDecoder> {
    Ok(rows.decode(row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)?)
}

/// Adds a pending producer of a run, unless its row is newer.
fn add_producer(
    producers: &mut HashMap<String, ProducerHead>,
    name: &[u8],
    pending: &UnflushedProducer,
) -> SqliteResult<()> {
    let UnflushedProducer { epoch, next, state } = pending;
    let head = producers.entry(String::from_utf8_lossy(name).into_owned()).or_default();
    if (head.epoch, head.next) > (*epoch, *next) {
        return Ok(());
    }
    (head.epoch, head.next) = (*epoch, *next);
    if !state.is_empty() {
        head.state = serde_json::from_slice(state)?;
    }
    Ok(())
}

/// Calls `show` with the wanted records after a thread's `seq`, those in rows and then the pending ones, until it
/// breaks; returns how many were looked at.
pub(super) fn visit(
    connection: &Connection,
    names: &mut HashMap<u64, Arc<str>>,
    pending: Option<&UnflushedPart>,
    (thread, after): (i64, u64),
    wanted: Wanted<'_>,
    show: &mut dyn FnMut(StoredRecord) -> ControlFlow<()>,
) -> SqliteResult<u64> {
    let sql = "SELECT first, last, checksum, body FROM chunk WHERE thread = ?1 AND last > ?2 ORDER BY last";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query(params![thread, after])?;
    let mut name_of = |run: u64| name_of(connection, names, run);
    let (mut last, mut scanned, mut verified) = (after, 0, RecordRows::of(thread));
    while let Some(row) = rows.next()? {
        let chunk = decode_row(&mut verified, row)?;
        last = row.get(1)?;
        if visit_chunk(chunk, after, wanted, &mut scanned, &mut name_of, show)?.is_break() {
            return Ok(scanned);
        }
    }
    let pending = pending.map_or(&[][..], |part| &part.records);
    for (_, records) in &pending[pending.partition_point(|(upto, _)| *upto <= last)..] {
        if visit_chunk(RecordDecoder::new(records.clone()), last, wanted, &mut scanned, &mut name_of, show)?
            .is_break()
        {
            break;
        }
    }
    Ok(scanned)
}

/// Returns the name of a run.
fn name_of(connection: &Connection, names: &mut HashMap<u64, Arc<str>>, run: u64) -> SqliteResult<Arc<str>> {
    if let Some(name) = names.get(&run) {
        return Ok(name.clone());
    }
    let sql = "SELECT name FROM run WHERE id = ?1";
    let name: String = connection.prepare_cached(sql)?.query_row([run], |row| row.get(0))?;
    if names.len() >= NAMES {
        names.clear();
    }
    Ok(names.entry(run).or_insert_with(|| name.into()).clone())
}
