//! How the readers of a node learn of what other nodes commit.

use std::time::Instant;

use super::redis::RedisTailStats;

/// What a node knows of the others' commits, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterStats {
    /// How the tail over Redis is; nothing where there is none.
    pub tail: Option<RedisTailStats>,
    /// How the looks into the store go.
    pub poller: PollerStatus,
    /// Threads that are followed because they are being read.
    pub followed: usize,
    /// Threads that somebody waits for and that the store does not have yet, or was not asked for.
    pub unknown: usize,
    /// Looks at how far all followed threads are.
    pub head_checks: u64,
    /// Reads of a thread because entries were missing.
    pub heals: u64,
    /// Records that those have brought.
    pub healed: u64,
}

/// How the looks into the store go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PollerStatus {
    /// Whether the last look succeeded.
    pub up: bool,
    /// Since when they do, or do not.
    pub since: Instant,
    /// Why one failed last.
    pub error: Option<String>,
}
