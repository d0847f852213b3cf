//! Statistics of how a node learns of other nodes' commits.

use std::time::Instant;

use super::redis::RedisTailStats;

/// Statistics of how a node learns of other nodes' commits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterStats {
    /// The Redis tail; `None` where there is no Redis.
    pub tail: Option<RedisTailStats>,
    /// The head poller.
    pub poller: PollerStatus,
    /// Followed threads.
    pub followed: usize,
    /// Threads with readers that the store does not have yet, or was not asked for.
    pub unknown: usize,
    /// Polls of the heads of all followed threads.
    pub head_checks: u64,
    /// Reads of a thread's missing records.
    pub heals: u64,
    /// Records that those reads returned.
    pub healed: u64,
}

/// The state of the head poller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PollerStatus {
    /// Whether the last poll succeeded.
    pub up: bool,
    /// Since when polls succeed, or fail.
    pub since: Instant,
    /// Why the last failed poll failed.
    pub error: Option<String>,
}
