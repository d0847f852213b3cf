//! Runs that this node cannot read: it skips them, so that they block nothing else.
//!
//! A newer version may have written them, and its nodes can read them. So nothing of them is changed here.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use super::error::PgError;

/// Maximum number of remembered runs; beyond it all are forgotten, and met again.
const MAX_RUNS: usize = 1024;
/// Time after which they are read again.
const RETRY_AFTER: Duration = Duration::from_secs(600);

/// Runs that could not be read.
#[derive(Debug, Default)]
pub(super) struct UnreadableRuns(HashMap<i64, Instant>);

impl UnreadableRuns {
    /// Lists the runs to skip.
    pub(super) fn ids(&mut self) -> Vec<i64> {
        self.0.retain(|_, since| since.elapsed() < RETRY_AFTER);
        self.0.keys().copied().collect()
    }

    /// Adds a run that cannot be read.
    pub(super) fn insert(&mut self, run: i64, failure: &PgError) {
        tracing::warn!(run, %failure, "a run cannot be read, and is skipped");
        if self.0.len() >= MAX_RUNS {
            self.0.clear();
        }
        self.0.insert(run, Instant::now());
    }
}
