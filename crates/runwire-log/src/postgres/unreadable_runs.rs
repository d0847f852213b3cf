//! Runs that this node cannot read: it is_transient them over, so that they stop nothing else.
//!
//! A newer version may have written them, and its nodes can read them. So nothing of them is changed here.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use super::error::PgError;

/// How many are remembered; of more, all are met again.
const MAX_RUNS: usize = 1024;
/// After which time they are tried again.
const RETRY_AFTER: Duration = Duration::from_secs(600);

/// Runs that could not be read.
#[derive(Debug, Default)]
pub(super) struct UnreadableRuns(HashMap<i64, Instant>);

impl UnreadableRuns {
    /// Lists those that are to be passed over.
    pub(super) fn ids(&mut self) -> Vec<i64> {
        self.0.retain(|_, since| since.elapsed() < RETRY_AFTER);
        self.0.keys().copied().collect()
    }

    /// Notes that one cannot be read.
    pub(super) fn insert(&mut self, run: i64, failure: &PgError) {
        tracing::warn!(run, %failure, "a run cannot be read, and is passed over");
        if self.0.len() >= MAX_RUNS {
            self.0.clear();
        }
        self.0.insert(run, Instant::now());
    }
}
