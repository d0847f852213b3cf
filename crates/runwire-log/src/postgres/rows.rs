//! Maps rows of threads, runs and producers to heads.

use std::collections::HashMap;
use std::sync::Arc;

use runwire_model::Timestamp;
use runwire_model::run::RunState;
use tokio_postgres::Row;

use super::connection::{Params, PgConnection};
use super::error::PgResult;
use super::run_snapshot::RunSnapshot;
use crate::key::{RunKey, ThreadKey};
use crate::record::{DamagedRecord, RecordDecoder, RecordRows};
use crate::run_history::HistoryCache;
pub(super) use crate::sql::to_i64;
use crate::txn::{Lease, ProducerHead, RunHead, RunProgress, ThreadHead};

/// Escapes NUL, which Postgres cannot store; [`restored`] unescapes it.
pub(super) fn storable(text: &str) -> String {
    match text.contains(['\0', MARK]) {
        true => text.replace(MARK, "\u{1}1").replace('\0', "\u{1}0"),
        false => text.to_owned(),
    }
}

/// Escape character: precedes an escaped character, and itself.
const MARK: char = '\u{1}';

/// Unescapes a text of [`storable`].
pub(super) fn restored(stored: &str) -> String {
    match stored.contains(MARK) {
        true => stored.replace("\u{1}0", "\0").replace("\u{1}1", "\u{1}"),
        false => stored.to_owned(),
    }
}

/// Returns a column that is never negative.
pub(super) fn number(row: &Row, column: usize) -> u64 {
    row.get::<_, i64>(column) as u64
}

pub(super) fn time(row: &Row, column: usize) -> Timestamp {
    Timestamp(number(row, column))
}

pub(super) fn optional_number(row: &Row, column: usize) -> Option<u64> {
    row.get::<_, Option<i64>>(column).map(|number| number as u64)
}

/// Returns the number of a lease in its row.
pub(super) fn number_of_lease(lease: Lease) -> i16 {
    match lease {
        Lease::None => 0,
        Lease::Active => 1,
        Lease::Stopping => 2,
        Lease::AwaitingAnswer(_) => 3,
    }
}

fn lease_of(number: i16, until: u64) -> Lease {
    match number {
        1 => Lease::Active,
        2 => Lease::Stopping,
        3 => Lease::AwaitingAnswer(until),
        _ => Lease::None,
    }
}

/// Decodes a row of records, from a column on: first, last, checksum and body.
pub(super) fn decode_row(
    rows: &mut RecordRows,
    row: &Row,
    from: usize,
) -> Result<RecordDecoder, DamagedRecord> {
    rows.decode(number(row, from), number(row, from + 1), row.get(from + 2), row.get(from + 3))
}

pub(super) const THREAD_COLUMNS: &str = "thread.id, tenant, name, parallel, created_at, head, head_at, deleted_at, \
     oldest, ARRAY(SELECT run.id FROM run WHERE run.thread = thread.id \
     AND status IN ('pending', 'running', 'suspended') ORDER BY run.id), \
     (SELECT run.id FROM run WHERE run.thread = thread.id AND first_seq IS NOT NULL ORDER BY first_seq DESC LIMIT 1), \
     snapshot_run";

/// Converts a thread's row, without its producers.
pub(super) fn thread_of_row(row: &Row) -> ThreadHead {
    let key = ThreadKey::new(row.get::<_, &str>(1), row.get::<_, &str>(2));
    let mut thread = ThreadHead::new(row.get(0), key, row.get(3), time(row, 4));
    (thread.seq, thread.at, thread.oldest) = (number(row, 5), time(row, 6), number(row, 8));
    thread.deleted = row.get::<_, Option<i64>>(7).is_some();
    (thread.open, thread.latest, thread.snapshot_run) = (row.get(9), row.get(10), row.get(11));
    (thread.stored_seq, thread.new) = (thread.seq, false);
    thread
}

/// Loads a thread that is locked.
pub(super) fn load_thread(connection: &PgConnection, id: i64) -> PgResult<Option<Box<ThreadHead>>> {
    let sql = format!("SELECT {THREAD_COLUMNS} FROM thread WHERE id = $1");
    let Some(row) = connection.first(&sql, &[&id])? else { return Ok(None) };
    let mut thread = thread_of_row(&row);
    thread.producers = load_producers(connection, "thread", id)?;
    Ok(Some(Box::new(thread)))
}

pub(super) const RUN_COLUMNS: &str = "run.id, run.tenant, run.name, run.thread, thread.name, run.request, \
     run.created_at, run.started_at, run.ended_at, run.first_seq, run.last_seq, run.deadline, run.trimmed, run.head, \
     thread.deleted_at, run.lease, run.lease_until, CASE WHEN thread.snapshot_run = run.id THEN thread.snapshot END, \
     run.agent";

/// Converts a run's row and applies its snapshot, without the rows of its producers: see [`add_producers`].
pub(super) fn run_of_row(row: &Row) -> PgResult<RunHead> {
    let mut run = run_of_row_alone(row)?;
    if let Some(snapshot) = row.get::<_, Option<&[u8]>>(17) {
        RunSnapshot::read(snapshot)?.apply_to(&mut run)?;
    }
    Ok(run)
}

/// Converts a run's row, which may be stale.
pub(super) fn run_of_row_alone(row: &Row) -> PgResult<RunHead> {
    let tenant: Arc<str> = row.get::<_, &str>(1).into();
    let (name, thread_name): (&str, &str) = (row.get(2), row.get(4));
    let head = match row.get::<_, Option<&str>>(13) {
        Some(head) => serde_json::from_str(head)?,
        None => RunProgress { state: RunState::new(thread_name, name), ..RunProgress::default() },
    };
    let lease = lease_of(row.get(15), number(row, 16));
    Ok(RunHead {
        id: row.get(0),
        key: RunKey::new(tenant.clone(), name),
        thread: row.get(3),
        thread_key: ThreadKey::new(tenant, thread_name),
        request: serde_json::from_str(row.get(5))?,
        agent: row.get::<_, Option<&str>>(18).map(restored),
        created_at: time(row, 6),
        started_at: optional_number(row, 7).map(Timestamp),
        ended_at: optional_number(row, 8).map(Timestamp),
        first_seq: optional_number(row, 9),
        last_seq: number(row, 10),
        deadline: optional_number(row, 11),
        lease,
        leased: false,
        trimmed: row.get(12),
        owner: None,
        stored_status: head.state.status,
        stored_interactions: (head.summary.interactions.len(), head.state.interactions.len()),
        stored_lease: (lease, number(row, 16)),
        head,
        producers: HashMap::new(),
        lookups: HistoryCache::default(),
        new: false,
        dirty: false,
        snapshot_dirty: false,
        listed: false,
    })
}

/// Adds the rows of a run's producers; those of the snapshot are newer.
pub(super) fn add_producers(rows: HashMap<String, ProducerHead>, run: &mut RunHead) {
    for (name, producer) in rows {
        run.producers.entry(name).or_insert(producer);
    }
}

/// Loads a run whose thread is locked.
pub(super) fn load_run(
    connection: &PgConnection,
    filter: &str,
    params: Params<'_>,
) -> PgResult<Option<Box<RunHead>>> {
    let sql = format!("SELECT {RUN_COLUMNS} FROM run JOIN thread ON thread.id = run.thread WHERE {filter}");
    let Some(row) = connection.first(&sql, params)? else { return Ok(None) };
    let mut run = run_of_row(&row)?;
    add_producers(load_producers(connection, "run", run.id)?, &mut run);
    Ok(Some(Box::new(run)))
}

/// Loads the rows of producers.
pub(super) fn load_producers(
    connection: &PgConnection,
    scope: &str,
    owner: i64,
) -> PgResult<HashMap<String, ProducerHead>> {
    let sql = "SELECT name, epoch, next, decoder FROM producer WHERE scope = $1 AND owner = $2";
    connection.query(sql, &[&scope, &owner])?.iter().map(|row| producer_of_row(row, 0)).collect()
}

/// Converts a producer's row, from a column on, to its name and head.
pub(super) fn producer_of_row(row: &Row, from: usize) -> PgResult<(String, ProducerHead)> {
    let state = serde_json::from_str(row.get(from + 3))?;
    let (epoch, next) = (number(row, from + 1), number(row, from + 2));
    Ok((row.get(from), ProducerHead { epoch, next, state, ..ProducerHead::default() }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_with_characters_that_postgres_cannot_hold_is_the_same_again() {
        for text in ["", "plain", "\0", "a\0b\0", "\u{1}", "\u{1}0", "\u{1}1\0", "\u{1}\u{1}0\0\u{1}"] {
            let stored = storable(text);
            assert!(!stored.contains('\0'));
            assert_eq!(restored(&stored), text);
        }
    }
}
