//! Removes the rows of deleted and trimmed threads, in small steps, so that nobody waits for long.
//!
//! The commit that deletes or trims a thread only marks it as `unpurged`. The steps follow; an interrupted removal is
//! continued after a restart, or by another node.

use super::{Sql, Value};
use crate::limits;

/// Removes some rows, and returns whether there may be more.
pub(crate) fn purge_step<S: Sql>(sql: &S) -> Result<bool, S::Error> {
    let statement =
        "SELECT id, oldest, deleted_at IS NOT NULL FROM thread WHERE unpurged ORDER BY id LIMIT 1";
    let found = sql.row(statement, &[], |row| Ok((row.int(0)?, row.int(1)?, row.boolean(2)?)))?;
    let Some((thread, oldest, is_deleted)) = found else { return Ok(false) };
    // A row with records on both sides of the oldest one stays; reads skip the old ones.
    let before = if is_deleted { i64::MAX } else { oldest };
    let statement = "DELETE FROM chunk WHERE thread = ?1 AND last IN \
                     (SELECT last FROM chunk WHERE thread = ?1 AND last < ?2 ORDER BY last LIMIT ?3)";
    let removed = sql.change(statement, &[thread.into(), before.into(), limits::PURGE_ROWS.into()])?;
    if removed == limits::PURGE_ROWS as u64 || (is_deleted && clear_runs(sql, thread)?) {
        return Ok(true);
    }
    // Unless it was trimmed or deleted again meanwhile.
    let is_same = if is_deleted { "deleted_at IS NOT NULL" } else { "deleted_at IS NULL" };
    let statement = format!("UPDATE thread SET unpurged = false WHERE id = ?1 AND oldest = ?2 AND {is_same}");
    sql.change(&statement, &[thread.into(), oldest.into()])?;
    Ok(true)
}

/// Clears some runs of a deleted thread, except for their ids, which stay used; returns whether there may be more.
fn clear_runs<S: Sql>(sql: &S, thread: i64) -> Result<bool, S::Error> {
    let statement = "SELECT id FROM run WHERE thread = ?1 AND request <> '{}' ORDER BY id LIMIT ?2";
    let runs = sql.rows(statement, &[thread.into(), limits::PURGE_ROWS.into()], |row| row.int(0))?;
    let [of_run, of_owner, is_run] = ["run", "owner", "id"].map(|column| S::among(column, "?1"));
    // The rows of runs come last: a cleared one has nothing left.
    for statement in [
        format!("DELETE FROM checkpoint WHERE {of_run}"),
        format!("DELETE FROM producer WHERE scope = 'run' AND {of_owner}"),
        format!(
            "UPDATE run SET head = NULL, request = '{{}}', agent = NULL, trimmed = true{} WHERE {is_run}",
            S::CLEAR_RUN
        ),
    ] {
        sql.change(&statement, &[Value::Ints(&runs)])?;
    }
    if runs.len() == limits::PURGE_ROWS {
        return Ok(true);
    }
    sql.change("DELETE FROM producer WHERE scope = 'thread' AND owner = ?1", &[thread.into()])?;
    Ok(false)
}
