//! The inbox: one row for each open interaction, so that listing them touches no other run.

use runwire_model::Timestamp;
use rusqlite::{Connection, params};

use super::reader::{SqliteReader, to_i64};
use crate::interaction::{InboxCursor, InteractionQuery};
use crate::query::InboxRow;
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
    let open = &head.state.questions;
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
            question.place.seq,
            asked.and_then(|asked| asked.asked_at),
            asked.and_then(|asked| asked.expires_at).map(to_i64),
            question.bytes,
        ])?;
    }
    Ok(())
}

impl SqliteReader {
    /// Reads one row more than the page has, to know whether there is a next one.
    pub(super) fn open_interactions(&self, query: &InteractionQuery) -> rusqlite::Result<Vec<InboxRow>> {
        let end = InboxCursor { asked_at: Timestamp(u64::MAX), number: u64::MAX };
        let before = query.before.unwrap_or(end);
        let sql = "SELECT interaction.id, run.name, run.thread, thread.name, run.agent, interaction.name, interaction.seq, \
                   interaction.asked_at, interaction.expires_at, interaction.bytes FROM interaction JOIN run ON run.id = interaction.run \
                   JOIN thread ON thread.id = run.thread WHERE interaction.tenant = ?1 \
                   AND (interaction.asked_at, interaction.id) < (?2, ?3) AND (?4 IS NULL OR run.name = ?4) \
                   AND (?5 IS NULL OR run.agent = ?5) AND (?6 IS NULL OR thread.name = ?6) \
                   ORDER BY interaction.asked_at DESC, interaction.id DESC LIMIT ?7";
        let mut statement = self.connection.prepare_cached(sql)?;
        let values = params![
            query.tenant,
            to_i64(before.asked_at.0),
            to_i64(before.number),
            query.run,
            query.agent,
            query.thread,
            to_i64(query.limit as u64 + 1),
        ];
        let rows = statement.query_map(values, |row| {
            Ok(InboxRow {
                number: row.get(0)?,
                run: row.get(1)?,
                thread: row.get(2)?,
                thread_name: row.get(3)?,
                agent: row.get(4)?,
                name: row.get(5)?,
                seq: row.get(6)?,
                asked_at: Timestamp(row.get(7)?),
                expires_at: row.get::<_, Option<u64>>(8)?.map(Timestamp),
                bytes: row.get(9)?,
            })
        })?;
        rows.collect()
    }
}
