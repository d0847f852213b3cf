//! Finds the runs that retention does not keep.
//!
//! Runs are visited in the order they ended, in pages, so that no statement takes long and a large store costs no
//! memory.

use std::collections::BTreeSet;

use runwire_model::Timestamp;

use super::{Sql, to_i64};
use crate::key::ThreadKey;
use crate::txn::{Candidate, ThreadTrim, plan_trims};
use crate::{RetentionLimits, limits};

/// Rows whose bytes one page counts.
const COUNTED_ROWS: usize = 20_000;

/// The bytes of a page of kept records.
pub(crate) struct BytePage {
    pub(crate) bytes: u64,
    /// Thread and last `seq` of its last row.
    pub(crate) upto: (i64, i64),
}

/// Counts the bytes of the next rows of kept records; returns `None` at the end.
pub(crate) fn byte_page<S: Sql>(sql: &S, after: (i64, i64)) -> Result<Option<BytePage>, S::Error> {
    let statement = "WITH page AS (SELECT thread, last, length(body) AS bytes FROM chunk \
        WHERE (thread, last) > (?1, ?2) ORDER BY thread, last LIMIT ?3), \
        upto AS (SELECT thread, last FROM page ORDER BY thread DESC, last DESC LIMIT 1) \
        SELECT upto.thread, upto.last, (SELECT CAST(coalesce(sum(bytes), 0) AS bigint) FROM page \
        JOIN thread ON thread.id = page.thread AND deleted_at IS NULL AND page.last >= oldest) FROM upto";
    sql.row(statement, &[after.0.into(), after.1.into(), COUNTED_ROWS.into()], |row| {
        Ok(BytePage { upto: (row.int(0)?, row.int(1)?), bytes: row.number(2)? })
    })
}

/// How far retention is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TrimProgress {
    /// The limits, with an absolute time.
    pub(crate) limits: RetentionLimits,
    /// Bytes that are still too many.
    pub(crate) excess: u64,
    /// When the last visited run ended, and its number.
    pub(crate) after: (i64, i64),
}

/// Plans which runs are removed next, and updates the progress; returns `None` at the end.
pub(crate) fn plan_page<S: Sql>(
    sql: &S,
    mut progress: TrimProgress,
) -> Result<Option<(Vec<ThreadTrim>, TrimProgress)>, S::Error> {
    let is_old = |moment: Timestamp| progress.after.0 < to_i64(moment.0);
    if progress.excess == 0 && !progress.limits.ended_before.is_some_and(is_old) {
        return Ok(None);
    }
    let statement = "SELECT ended_at, id, thread FROM run WHERE NOT trimmed AND first_seq IS NOT NULL \
        AND ended_at IS NOT NULL AND (ended_at, id) > (?1, ?2) ORDER BY ended_at, id LIMIT ?3";
    let values = [progress.after.0.into(), progress.after.1.into(), limits::TRIM_RUNS.into()];
    let ended = sql.rows(statement, &values, |row| Ok((row.int(0)?, row.int(1)?, row.int(2)?)))?;
    let Some(last) = ended.last() else { return Ok(None) };
    progress.after = (last.0, last.1);
    let mut candidates = Vec::new();
    for thread in ended.iter().map(|(_, _, thread)| *thread).collect::<BTreeSet<_>>() {
        candidates.extend(candidates_of(sql, thread, progress.after)?);
    }
    let trims = plan_trims(
        &candidates,
        progress.limits,
        || Ok(progress.limits.max_bytes.unwrap_or(0).saturating_add(progress.excess)),
        |thread, after, upto| bytes_between(sql, thread, after, upto),
    )?;
    for trim in &trims {
        let bytes = bytes_between(sql, trim.thread, 0, trim.oldest - 1)?;
        progress.excess = progress.excess.saturating_sub(bytes);
    }
    Ok(Some((trims, progress)))
}

/// Lists the first kept runs of a thread, in the order they began.
fn candidates_of<S: Sql>(sql: &S, thread: i64, upto: (i64, i64)) -> Result<Vec<Candidate>, S::Error> {
    let statement = "SELECT thread.tenant, thread.name, run.name, run.first_seq, run.last_seq, run.ended_at, run.id \
        FROM run JOIN thread ON thread.id = run.thread WHERE run.thread = ?1 AND NOT run.trimmed \
        AND run.first_seq IS NOT NULL AND thread.deleted_at IS NULL ORDER BY run.first_seq LIMIT ?2";
    // One more than are removed at once: a run that overlaps the next one stays.
    let most = limits::TRIM_RUNS + 1;
    let mut count = 0;
    sql.rows(statement, &[thread.into(), most.into()], |row| {
        count += 1;
        let ended_at = row.optional_int(5)?;
        let number = row.int(6)?;
        // One that ended later is removed later, after those that ended before it.
        let is_due = |at: &i64| count < most && (*at, number) <= upto;
        Ok(Candidate {
            thread,
            key: ThreadKey::new(row.text(0)?, row.text(1)?),
            run: row.text(2)?,
            first_seq: row.number(3)?,
            last_seq: row.number(4)?,
            ended_at: ended_at.filter(is_due).map(|at| Timestamp(at as u64)),
        })
    })
}

/// Counts the bytes of a thread's rows that end after one `seq` and up to another.
fn bytes_between<S: Sql>(sql: &S, thread: i64, after: u64, upto: u64) -> Result<u64, S::Error> {
    let statement = "SELECT CAST(coalesce(sum(length(body)), 0) AS bigint) FROM chunk \
        JOIN thread ON thread.id = chunk.thread \
        WHERE chunk.thread = ?1 AND last > ?2 AND last <= ?3 AND last >= oldest";
    let bytes = sql.row(statement, &[thread.into(), after.into(), upto.into()], |row| row.number(0))?;
    Ok(bytes.unwrap_or(0))
}
