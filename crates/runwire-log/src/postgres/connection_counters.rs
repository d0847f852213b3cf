//! Counters of the connections of a node, and of failed commits.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::health::ConnectionStats;

/// Counters that all connections of a node share.
#[derive(Debug, Default)]
pub(super) struct ConnectionCounters {
    opened: AtomicU64,
    closed: AtomicU64,
    lost: AtomicU64,
    retries: AtomicU64,
}

impl ConnectionCounters {
    pub(super) fn opened(&self) {
        self.opened.fetch_add(1, Relaxed);
    }

    /// Counts a closed connection; a lost one was not closed on purpose.
    pub(super) fn closed(&self, is_lost: bool) {
        self.closed.fetch_add(1, Relaxed);
        self.lost.fetch_add(u64::from(is_lost), Relaxed);
    }

    /// Counts a failed commit, which is retried or refused.
    pub(super) fn retried(&self) {
        self.retries.fetch_add(1, Relaxed);
    }

    pub(super) fn stats(&self) -> ConnectionStats {
        // In this order: a closed connection was opened before.
        let closed = self.closed.load(Relaxed);
        ConnectionStats {
            connections: self.opened.load(Relaxed).saturating_sub(closed),
            lost: self.lost.load(Relaxed),
            retries: self.retries.load(Relaxed),
        }
    }
}
