//! Runs that cannot be read: they are reported and passed over, so that they block nothing else.
//!
//! A newer version may have written them, and its nodes can read them. So nothing of them is changed here.

use std::collections::HashMap;
use std::fmt::Display;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Maximum number of remembered runs; beyond it all are forgotten, and met again.
const MAX_RUNS: usize = 1024;
/// Time after which they are read again.
const RETRY_AFTER: Duration = Duration::from_secs(600);

/// Runs that could not be read.
#[derive(Debug, Default)]
pub(crate) struct UnreadableRuns(Mutex<HashMap<i64, Instant>>);

impl UnreadableRuns {
    /// Lists the runs to skip.
    pub(crate) fn ids(&self) -> Vec<i64> {
        let mut runs = self.lock();
        runs.retain(|_, since| since.elapsed() < RETRY_AFTER);
        runs.keys().copied().collect()
    }

    /// Returns the number of runs that could not be read lately.
    pub(crate) fn count(&self) -> u64 {
        self.ids().len() as u64
    }

    /// Adds a run that cannot be read.
    pub(crate) fn insert(&self, run: i64, failure: &(impl Display + ?Sized)) {
        let mut runs = self.lock();
        if runs.len() >= MAX_RUNS {
            runs.clear();
        }
        if runs.insert(run, Instant::now()).is_none() {
            tracing::warn!(run, %failure, "a run cannot be read, and is skipped");
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<i64, Instant>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
