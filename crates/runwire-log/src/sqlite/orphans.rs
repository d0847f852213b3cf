//! Orphaned runs: those that an earlier server left open when it ended.

use rusqlite::Connection;

use super::reader::SqliteReader;
use crate::error::LogError;
use crate::info::OrphanedRun;
use crate::query::ReadRows;
use crate::sql::{LoadedRun, Sql, Value};

/// The cursor through the orphaned runs.
#[derive(Debug)]
pub(super) struct Orphans {
    /// The last claimed run.
    claimed_up_to: i64,
    /// The last run that existed when the store was opened.
    last: i64,
}

impl Orphans {
    /// Finds the range of runs before any is added.
    pub(super) fn find(connection: &Connection) -> rusqlite::Result<Self> {
        let last = connection.query_row("SELECT coalesce(max(id), 0) FROM run", [], |row| row.get(0))?;
        Ok(Self { claimed_up_to: 0, last })
    }

    /// Returns whether all orphans were claimed.
    pub(super) fn is_done(&self) -> bool {
        self.claimed_up_to >= self.last
    }

    /// Claims the next orphans.
    pub(super) fn claim(
        &mut self,
        reader: &SqliteReader,
        agents: &[String],
        limit: usize,
    ) -> Result<Vec<OrphanedRun>, LogError> {
        let names: Vec<String> = (0..agents.len()).map(|at| format!("?{}", at + 4)).collect();
        // The caller finds out whether a server has started the agent of a run with records; others count as started
        // only if their request says so.
        let filter = format!(
            "run.id > ?1 AND run.id <= ?2 AND thread.deleted_at IS NULL AND json_valid(run.request) \
             AND (run.status IN ('running', 'suspended') \
             OR (run.status = 'pending' AND run.request ->> '$.started')) \
             AND run.request ->> '$.agent' IN ({}) ORDER BY run.id LIMIT ?3",
            names.join(", ")
        );
        let mut values: Vec<Value<'_>> = vec![self.claimed_up_to.into(), self.last.into(), limit.into()];
        values.extend(agents.iter().map(|agent| Value::Text(agent)));
        let runs = reader.connection.run_heads("", &filter, &values)?;
        let last = runs.last().map(|run| match run {
            LoadedRun::Head(run) => run.id,
            LoadedRun::Damaged { id, .. } => *id,
        });
        let claimed_up_to = last.filter(|_| runs.len() == limit).unwrap_or(self.last);
        let mut orphans = Vec::with_capacity(runs.len());
        for run in runs {
            match run {
                LoadedRun::Head(mut run) => match reader.update_run(&mut run) {
                    Ok(()) => orphans.push(run.orphaned()),
                    Err(failure @ LogError::Damaged(_)) => reader.unreadable.insert_run(run.id, &failure),
                    Err(failure) => return Err(failure),
                },
                LoadedRun::Damaged { id, failure, .. } => reader.unreadable.insert_run(id, &failure),
            }
        }
        self.claimed_up_to = claimed_up_to;
        Ok(orphans)
    }
}
