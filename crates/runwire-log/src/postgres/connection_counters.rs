//! Counts what becomes of the connections to a store, and how often work is begun anew.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::health::ConnectionStats;

/// What all connections of a node count together.
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

    /// Counts a connection that is no more; whoever has lost it did not mean to close it.
    pub(super) fn closed(&self, is_lost: bool) {
        self.closed.fetch_add(1, Relaxed);
        self.lost.fetch_add(u64::from(is_lost), Relaxed);
    }

    /// Counts a commit that failed, and is tried again or given up.
    pub(super) fn retried(&self) {
        self.retries.fetch_add(1, Relaxed);
    }

    pub(super) fn stats(&self) -> ConnectionStats {
        // In this order: what is closed was opened before.
        let closed = self.closed.load(Relaxed);
        ConnectionStats {
            connections: self.opened.load(Relaxed).saturating_sub(closed),
            lost: self.lost.load(Relaxed),
            retries: self.retries.load(Relaxed),
        }
    }
}
