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
    // As bytes: a name that cannot be read is that of no open interaction.
    let known: Vec<(i64, Vec<u8>)> = {
        let mut known = connection.prepare_cached("SELECT id, name FROM interaction WHERE run = ?1")?;
        let rows = known.query_map([run], |row| Ok((row.get(0)?, row.get_ref(1)?.as_bytes()?.to_vec())))?;
        rows.collect::<Result<_, _>>()?
    };
    let is_open = |name: &[u8]| open.iter().any(|question| question.id.as_bytes() == name);
    for (settled, _) in known.iter().filter(|(_, name)| !is_open(name)) {
        connection.prepare_cached("DELETE FROM interaction WHERE id = ?1")?.execute([settled])?;
    }
    let is_known = |id: &str| known.iter().any(|(_, name)| name == id.as_bytes());
    for question in open.iter().filter(|question| !is_known(&question.id)) {
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
