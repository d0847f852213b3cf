//! Removes the rows of deleted and trimmed threads, in small steps, so that nobody waits for long.
//!
//! The commit that deletes or trims a thread only marks it. The leader removes its rows afterwards, and the next
//! leader continues.

use super::connection::PgConnection;
use super::error::PgResult;
use crate::limits;

/// Removes some rows, and returns whether there may be more.
pub(super) fn step(connection: &PgConnection) -> PgResult<bool> {
    let sql = "SELECT id, oldest, deleted_at IS NOT NULL FROM thread WHERE unpurged ORDER BY id LIMIT 1";
    let Some(row) = connection.first(sql, &[])? else { return Ok(false) };
    let (thread, oldest, is_deleted): (i64, i64, bool) = (row.get(0), row.get(1), row.get(2));
    // A row with records on both sides of the oldest one stays; reads skip the old ones.
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
    // Unless it was trimmed or deleted again meanwhile.
    let sql = "UPDATE thread SET unpurged = false \
               WHERE id = $1 AND oldest = $2 AND (deleted_at IS NOT NULL) = $3";
    connection.execute(sql, &[&thread, &oldest, &is_deleted])?;
    Ok(true)
}

/// Clears some runs of a deleted thread, except for their ids, which stay used; returns whether there may be more.
fn empty_runs(connection: &PgConnection, thread: i64, most: i64) -> PgResult<bool> {
    let sql = "UPDATE run SET head = NULL, request = '{}', agent = NULL, message = NULL, owner = NULL, trimmed = true \
               WHERE id IN (SELECT id FROM run WHERE thread = $1 AND request <> '{}' ORDER BY id LIMIT $2) RETURNING id";
    // In one statement: a run that counts as cleared must have nothing left.
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
