//! Removes the rows of what was deleted or trimmed: some at a time, so that nobody waits for long.
//!
//! A thread is marked first, in the commit that deletes or trims it. The node on duty removes its rows afterwards, and
//! another goes on where that one dies.

use super::connection::PgConnection;
use super::error::PgResult;
use crate::limits;

/// Removes some rows, and returns whether there may be more.
pub(super) fn step(connection: &PgConnection) -> PgResult<bool> {
    let sql = "SELECT id, oldest, deleted_at IS NOT NULL FROM thread WHERE unpurged ORDER BY id LIMIT 1";
    let Some(row) = connection.first(sql, &[])? else { return Ok(false) };
    let (thread, oldest, is_deleted): (i64, i64, bool) = (row.get(0), row.get(1), row.get(2));
    // A row that holds records on both sides of the oldest one stays; what is too old in it is passed over.
    let before = if is_deleted { i64::MAX } else { oldest };
    let most = limits::PURGE_ROWS as i64;
    let sql = "DELETE FROM chunk WHERE thread = $1 AND last IN \
               (SELECT last FROM chunk WHERE thread = $1 AND last < $2 ORDER BY last LIMIT $3)";
    if connection.execute(sql, &[&thread, &before, &most])? == most as u64 {
        return Ok(true);
    }
    if is_deleted && empty_runs(connection, thread, most)? {
        return Ok(true);
    }
    // Unless it was trimmed or deleted meanwhile.
    let sql = "UPDATE thread SET unpurged = false \
               WHERE id = $1 AND oldest = $2 AND (deleted_at IS NOT NULL) = $3";
    connection.execute(sql, &[&thread, &oldest, &is_deleted])?;
    Ok(true)
}

/// Removes what is stored of some runs of a deleted thread but their ids, so that they stay used up; tells whether
/// there may be more.
fn empty_runs(connection: &PgConnection, thread: i64, most: i64) -> PgResult<bool> {
    let sql = "UPDATE run SET head = NULL, request = '{}', agent = NULL, message = NULL, owner = NULL, trimmed = true \
               WHERE id IN (SELECT id FROM run WHERE thread = $1 AND request <> '{}' ORDER BY id LIMIT $2) RETURNING id";
    // Together: what is left of a run must not be forgotten because the run counts as emptied.
    let sql = format!(
        "WITH emptied AS ({sql}), \
         checkpoints AS (DELETE FROM checkpoint WHERE run IN (SELECT id FROM emptied)), \
         producers AS (DELETE FROM producer WHERE scope = 'run' AND owner IN (SELECT id FROM emptied)) \
         SELECT count(*) FROM emptied"
    );
    let emptied: i64 = connection.one(&sql, &[&thread, &most])?.get(0);
    if emptied == most {
        return Ok(true);
    }
    connection.execute("DELETE FROM producer WHERE scope = 'thread' AND owner = $1", &[&thread])?;
    Ok(false)
}
