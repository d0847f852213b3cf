//! Maps rows of threads, runs and producers to heads and back.

use std::collections::HashMap;
use std::sync::Arc;

use runwire_model::Timestamp;
use runwire_model::run::RunState;
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::error::SqliteResult;
use super::inbox::save_interactions;
use super::reader::last_record;
use super::schema::REVISION;
use crate::key::{RunKey, ThreadKey};
use crate::record;
use crate::run_history::HistoryCache;
use crate::txn::{Lease, ProducerHead, RunHead, RunProgress, ThreadHead};

/// Inserts a new thread, and writes its changed producers.
pub(super) fn save_thread(connection: &Connection, thread: &mut ThreadHead) -> SqliteResult<()> {
    if std::mem::take(&mut thread.new) {
        let beginning = thread.imported_base.take();
        let base = beginning.as_ref().map(|beginning| serde_json::to_string(&beginning.base));
        let base = base.transpose()?;
        let sql = "INSERT INTO thread (id, tenant, name, parallel, created_at, oldest, head, head_at, base) \
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
        connection.prepare_cached(sql)?.execute(params![
            thread.id,
            &*thread.key.tenant,
            &*thread.key.id,
            thread.parallel,
            thread.created_at.0,
            thread.oldest,
            thread.oldest - 1,
            beginning.map_or(0, |beginning| beginning.at.0),
            base
        ])?;
    }
    for name in thread.forgotten.drain(..) {
        let sql = "DELETE FROM producer WHERE scope = 'thread' AND owner = ?1 AND name = ?2";
        connection.prepare_cached(sql)?.execute(params![thread.id, name])?;
    }
    save_producers(connection, "thread", thread.id, &mut thread.producers)
}

/// Inserts a row of records.
pub(super) fn save_chunk(
    connection: &Connection,
    thread: i64,
    first: u64,
    last: u64,
    body: &[u8],
) -> SqliteResult<()> {
    let sql = "INSERT INTO chunk (thread, first, last, checksum, body) VALUES (?1, ?2, ?3, ?4, ?5)";
    let checksum = record::checksum(thread, first, last, body);
    connection.prepare_cached(sql)?.execute(params![thread, first, last, checksum, body])?;
    Ok(())
}

/// Writes the changes of a run and its producers.
pub(super) fn save_run(connection: &Connection, run: &mut RunHead) -> SqliteResult<()> {
    run.snapshot_dirty = false;
    if std::mem::take(&mut run.dirty) {
        let head = serde_json::to_string(&run.head)?;
        let status = run.head.state.status;
        if std::mem::take(&mut run.new) {
            let request = serde_json::to_string(&run.request)?;
            let sql = "INSERT INTO run (id, tenant, name, thread, agent, request, status, created_at, started_at, \
                       ended_at, first_seq, last_seq, deadline, revision, trimmed, head) \
                       VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)";
            connection.prepare_cached(sql)?.execute(params![
                run.id,
                &*run.key.tenant,
                &*run.key.id,
                run.thread,
                run.agent,
                request,
                status.as_str(),
                run.created_at.0,
                run.started_at.map(|at| at.0),
                run.ended_at.map(|at| at.0),
                run.first_seq,
                run.last_seq,
                run.deadline,
                REVISION,
                run.trimmed,
                head
            ])?;
        } else if run.stored_status == status {
            // The common case touches no index.
            let sql = "UPDATE run SET head = ?2, last_seq = ?3, deadline = ?4 WHERE id = ?1";
            connection.prepare_cached(sql)?.execute(params![run.id, head, run.last_seq, run.deadline])?;
        } else {
            let sql = "UPDATE run SET head = ?2, last_seq = ?3, deadline = ?4, status = ?5, started_at = ?6, \
                       ended_at = ?7, first_seq = ?8, agent = ?9 WHERE id = ?1";
            connection.prepare_cached(sql)?.execute(params![
                run.id,
                head,
                run.last_seq,
                run.deadline,
                status.as_str(),
                run.started_at.map(|at| at.0),
                run.ended_at.map(|at| at.0),
                run.first_seq,
                run.agent
            ])?;
        }
        (run.stored_status, run.stored_interactions) = (status, run.interaction_counts());
        save_interactions(connection, run.id, &run.head)?;
    }
    save_producers(connection, "run", run.id, &mut run.producers)
}

fn save_producers(
    connection: &Connection,
    scope: &str,
    owner: i64,
    producers: &mut HashMap<String, ProducerHead>,
) -> SqliteResult<()> {
    for (name, producer) in producers.iter_mut().filter(|(_, producer)| producer.dirty) {
        let state = serde_json::to_string(&producer.state)?;
        let sql = "INSERT INTO producer (scope, owner, name, epoch, next, decoder) VALUES (?1, ?2, ?3, ?4, ?5, ?6) \
                   ON CONFLICT DO UPDATE SET epoch = excluded.epoch, next = excluded.next, decoder = excluded.decoder";
        connection.prepare_cached(sql)?.execute(params![
            scope,
            owner,
            name,
            producer.epoch as i64,
            producer.next as i64,
            state
        ])?;
        (producer.dirty, producer.snapshot_dirty, producer.state_dirty) = (false, false, false);
    }
    Ok(())
}

pub(super) fn load_thread(
    connection: &Connection,
    filter: &str,
    values: &[&dyn rusqlite::ToSql],
) -> SqliteResult<Option<Box<ThreadHead>>> {
    let sql = format!(
        "SELECT id, tenant, name, parallel, created_at, head, head_at, deleted_at, oldest FROM thread WHERE {filter}"
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let thread = statement.query_row(values, |row| {
        Ok(ThreadHead {
            id: row.get(0)?,
            key: ThreadKey::new(row.get::<_, String>(1)?, row.get::<_, String>(2)?),
            parallel: row.get(3)?,
            created_at: Timestamp(row.get(4)?),
            seq: row.get(5)?,
            stored_seq: 0,
            at: Timestamp(row.get(6)?),
            deleted: row.get::<_, Option<u64>>(7)?.is_some(),
            oldest: row.get(8)?,
            imported_base: None,
            open: Vec::new(),
            latest: None,
            snapshot_run: None,
            producers: HashMap::new(),
            forgotten: Vec::new(),
            new: false,
            listed: false,
        })
    });
    let Some(mut thread) = thread.optional()? else { return Ok(None) };
    if let Some((seq, at)) = last_record(connection, thread.id)? {
        (thread.seq, thread.at) = (seq, at);
    }
    thread.stored_seq = thread.seq;
    let sql = "SELECT id FROM run INDEXED BY run_open \
               WHERE thread = ?1 AND status IN ('pending', 'running', 'suspended') ORDER BY id";
    let mut open = connection.prepare_cached(sql)?;
    thread.open = open.query_map([thread.id], |row| row.get(0))?.collect::<Result<_, _>>()?;
    let sql =
        "SELECT id FROM run WHERE thread = ?1 AND first_seq IS NOT NULL ORDER BY first_seq DESC LIMIT 1";
    thread.latest = connection.prepare_cached(sql)?.query_row([thread.id], |row| row.get(0)).optional()?;
    thread.producers = load_producers(connection, "thread", thread.id)?;
    Ok(Some(Box::new(thread)))
}

pub(super) const RUN_COLUMNS: &str = "run.id, run.tenant, run.name, run.thread, thread.name, run.request, \
     run.created_at, run.started_at, run.ended_at, run.first_seq, run.last_seq, run.deadline, run.trimmed, run.head, \
     thread.deleted_at, run.status, run.agent";

/// Converts a run's row, without its producers and its lease.
pub(super) fn run_of_row(row: &Row<'_>) -> SqliteResult<RunHead> {
    let tenant: Arc<str> = row.get::<_, String>(1)?.into();
    let request: String = row.get(5)?;
    let head: Option<String> = row.get(13)?;
    let name: String = row.get(2)?;
    let thread_name: String = row.get(4)?;
    let head = match head {
        Some(head) => serde_json::from_str(&head)?,
        None => RunProgress { state: RunState::new(&thread_name, &name), ..RunProgress::default() },
    };
    Ok(RunHead {
        id: row.get(0)?,
        key: RunKey::new(tenant.clone(), name),
        thread: row.get(3)?,
        thread_key: ThreadKey::new(tenant, thread_name),
        request: serde_json::from_str(&request)?,
        agent: row.get(16)?,
        created_at: Timestamp(row.get(6)?),
        started_at: row.get::<_, Option<u64>>(7)?.map(Timestamp),
        ended_at: row.get::<_, Option<u64>>(8)?.map(Timestamp),
        first_seq: row.get(9)?,
        last_seq: row.get(10)?,
        deadline: row.get(11)?,
        lease: Lease::None,
        leased: false,
        trimmed: row.get(12)?,
        owner: None,
        stored_status: head.state.status,
        stored_interactions: (head.summary.interactions.len(), head.state.interactions.len()),
        stored_lease: (Lease::None, 0),
        head,
        producers: HashMap::new(),
        lookups: HistoryCache::default(),
        new: false,
        dirty: false,
        snapshot_dirty: false,
        listed: false,
    })
}

pub(super) fn load_run(
    connection: &Connection,
    filter: &str,
    values: &[&dyn rusqlite::ToSql],
) -> SqliteResult<Option<Box<RunHead>>> {
    let sql = format!("SELECT {RUN_COLUMNS} FROM run JOIN thread ON thread.id = run.thread WHERE {filter}");
    let mut statement = connection.prepare_cached(&sql)?;
    let Some(mut run) = statement.query_and_then(values, run_of_row)?.next().transpose()? else {
        return Ok(None);
    };
    run.producers = load_producers(connection, "run", run.id)?;
    Ok(Some(Box::new(run)))
}

pub(super) fn load_producers(
    connection: &Connection,
    scope: &str,
    owner: i64,
) -> SqliteResult<HashMap<String, ProducerHead>> {
    let sql = "SELECT name, epoch, next, decoder FROM producer WHERE scope = ?1 AND owner = ?2";
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_and_then(params![scope, owner], |row| {
        let state: Option<String> = row.get(3)?;
        let state = state.as_deref().map(serde_json::from_str).transpose()?;
        let state = state.unwrap_or_default();
        Ok((
            row.get(0)?,
            ProducerHead {
                epoch: row.get::<_, i64>(1)? as u64,
                next: row.get::<_, i64>(2)? as u64,
                state,
                ..ProducerHead::default()
            },
        ))
    })?;
    rows.collect()
}
