//! The inbox: one row for each open interaction, so that listing them touches no other run.

use rusqlite::{Connection, params};

use crate::sql::to_i64;
use crate::txn::RunProgress;

/// Updates the rows of a run's open interactions; the run's own row exists.
pub(super) fn save_interactions(
    connection: &Connection,
    run: i64,
    head: &RunProgress,
) -> rusqlite::Result<()> {
    if head.summary.interactions.is_empty() {
        return Ok(());
    }
    let open = &head.state.interactions;
    let known: Vec<String> = {
        let mut known = connection.prepare_cached("SELECT name FROM interaction WHERE run = ?1")?;
        known.query_map([run], |row| row.get(0))?.collect::<Result<_, _>>()?
    };
    for settled in known.iter().filter(|name| open.iter().all(|question| question.id != **name)) {
        let sql = "DELETE FROM interaction WHERE run = ?1 AND name = ?2";
        connection.prepare_cached(sql)?.execute(params![run, settled])?;
    }
    for question in open.iter().filter(|question| !known.contains(&question.id)) {
        let asked = head.summary.interaction(&question.id);
        let sql = "INSERT INTO interaction (tenant, run, name, seq, asked_at, expires_at, bytes) \
                   SELECT tenant, id, ?2, ?3, coalesce(?4, started_at, created_at), ?5, ?6 FROM run WHERE id = ?1";
        connection.prepare_cached(sql)?.execute(params![
            run,
            question.id,
            question.position.seq,
            asked.and_then(|asked| asked.asked_at),
            asked.and_then(|asked| asked.expires_at).map(to_i64),
            question.bytes,
        ])?;
    }
    Ok(())
}
