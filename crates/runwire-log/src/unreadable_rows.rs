//! Rows that cannot be read: they are reported and passed over, so that they block nothing else.
//!
//! A newer version may have written them, and its nodes can read them. So nothing of them is changed here.

use std::collections::HashMap;
use std::fmt::Display;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Maximum number of remembered rows; beyond it all are forgotten, and met again.
const MAX_ROWS: usize = 1024;
/// Time after which a row is read again where it was passed over, and reported again where it was met.
const RETRY_AFTER: Duration = Duration::from_secs(600);

/// A table with rows that cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum UnreadableTable {
    Run,
    Thread,
    Interaction,
    Outbox,
}

impl UnreadableTable {
    fn row(self) -> &'static str {
        match self {
            Self::Run => "a run",
            Self::Thread => "a thread",
            Self::Interaction => "an open interaction",
            Self::Outbox => "an outbox message",
        }
    }
}

/// Rows that could not be read lately.
#[derive(Debug, Default)]
pub(crate) struct UnreadableRows(Mutex<HashMap<(UnreadableTable, i64), Instant>>);

impl UnreadableRows {
    /// Lists the runs to skip.
    pub(crate) fn runs(&self) -> Vec<i64> {
        let mut rows = self.lock();
        rows.retain(|_, since| since.elapsed() < RETRY_AFTER);
        let runs = rows.keys().filter(|(table, _)| *table == UnreadableTable::Run);
        runs.map(|(_, run)| *run).collect()
    }

    /// Returns the number of rows that could not be read lately.
    pub(crate) fn count(&self) -> u64 {
        let mut rows = self.lock();
        rows.retain(|_, since| since.elapsed() < RETRY_AFTER);
        rows.len() as u64
    }

    /// Adds a run that cannot be read.
    pub(crate) fn insert_run(&self, run: i64, failure: &(impl Display + ?Sized)) {
        self.insert(UnreadableTable::Run, run, failure);
    }

    /// Adds a row that cannot be read, and reports it, unless that was done lately.
    pub(crate) fn insert(&self, table: UnreadableTable, number: i64, failure: &(impl Display + ?Sized)) {
        let mut rows = self.lock();
        if rows.get(&(table, number)).is_some_and(|since| since.elapsed() < RETRY_AFTER) {
            return;
        }
        if rows.len() >= MAX_ROWS {
            rows.clear();
        }
        rows.insert((table, number), Instant::now());
        tracing::warn!(number, %failure, "{} cannot be read, and is skipped", table.row());
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<(UnreadableTable, i64), Instant>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
