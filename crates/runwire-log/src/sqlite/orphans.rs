//! Orphaned runs: those that an earlier server left open when it ended.

use rusqlite::{Connection, params_from_iter};

use super::reader::{SqliteReader, to_i64};
use super::rows::{RUN_COLUMNS, run_of_row};
use crate::error::LogError;
use crate::info::OrphanedRun;
use crate::txn::RunHead;

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
        let from = self.claimed_up_to;
        let names = vec!["?"; agents.len()].join(", ");
        // Stores of an earlier version do not say whether a server has started an agent. The caller finds that out
        // for runs with records; others count as started only if their request says so.
        let sql = format!(
            "SELECT {RUN_COLUMNS} FROM run JOIN thread ON thread.id = run.thread \
             WHERE run.id > ? AND run.id <= ? AND thread.deleted_at IS NULL \
             AND (run.status IN ('running', 'suspended') \
             OR (run.status = 'pending' AND run.request ->> '$.started')) \
             AND run.request ->> '$.agent' IN ({names}) ORDER BY run.id LIMIT ?"
        );
        let mut values: Vec<rusqlite::types::Value> = vec![from.into(), self.last.into()];
        values.extend(agents.iter().map(|agent| agent.clone().into()));
        values.push(to_i64(limit as u64).into());
        let mut statement = reader.connection.prepare_cached(&sql)?;
        let rows = statement.query_map(params_from_iter(values), run_of_row)?;
        let runs = rows.collect::<Result<Vec<_>, _>>()?;
        let claimed_up_to = match runs.last() {
            Some(last) if runs.len() == limit => last.id,
            _ => self.last,
        };
        self.claimed_up_to = claimed_up_to;
        Ok(runs.iter().map(RunHead::orphaned).collect())
    }
}
