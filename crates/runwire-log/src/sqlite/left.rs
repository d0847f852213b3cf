//! Runs that an earlier server has left: those that were open when the store was opened.

use rusqlite::{Connection, params_from_iter};

use super::read::{Reader, whole_number};
use super::rows::{RUN_COLUMNS, run_of_row};
use crate::error::LogError;
use crate::info::LeftRun;
use crate::txn::RunHead;

/// How far what was left has been given out.
#[derive(Debug)]
pub(super) struct Left {
    /// The last run that was given.
    given: i64,
    /// The last run that was there when the store was opened.
    last: i64,
}

impl Left {
    /// Finds out what is there before anybody can add to it.
    pub(super) fn find(connection: &Connection) -> rusqlite::Result<Self> {
        let last = connection.query_row("SELECT coalesce(max(id), 0) FROM run", [], |row| row.get(0))?;
        Ok(Self { given: 0, last })
    }

    /// Tells whether all of it was given.
    pub(super) fn is_over(&self) -> bool {
        self.given >= self.last
    }

    /// Gives what comes next.
    pub(super) fn give(
        &mut self,
        reader: &Reader,
        agents: &[String],
        limit: usize,
    ) -> Result<Vec<LeftRun>, LogError> {
        let from = self.given;
        let names = vec!["?"; agents.len()].join(", ");
        // Stores of an earlier version do not say whether a server has started an agent. Whoever asks finds that out
        // for runs that were written to; others count as started only where it is said.
        let sql = format!(
            "SELECT {RUN_COLUMNS} FROM run JOIN thread ON thread.id = run.thread \
             WHERE run.id > ? AND run.id <= ? AND thread.deleted_at IS NULL \
             AND (run.status IN ('running', 'suspended') \
             OR (run.status = 'pending' AND run.request ->> '$.started')) \
             AND run.request ->> '$.agent' IN ({names}) ORDER BY run.id LIMIT ?"
        );
        let mut by: Vec<rusqlite::types::Value> = vec![from.into(), self.last.into()];
        by.extend(agents.iter().map(|agent| agent.clone().into()));
        by.push(whole_number(limit as u64).into());
        let mut statement = reader.connection.prepare_cached(&sql)?;
        let rows = statement.query_map(params_from_iter(by), run_of_row)?;
        let runs = rows.collect::<Result<Vec<_>, _>>()?;
        let given = match runs.last() {
            Some(last) if runs.len() == limit => last.id,
            _ => self.last,
        };
        self.given = given;
        Ok(runs.iter().map(RunHead::left).collect())
    }
}
