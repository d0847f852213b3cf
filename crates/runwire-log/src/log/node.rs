//! This node of the log: its health, its counters, and the runs of nodes that are gone.

use async_trait::async_trait;

use crate::error::LogError;
use crate::health::{Dependency, Health, NodeStats};
use crate::info::OrphanedRun;
use crate::stats::LogStats;

/// Watches over the log as a whole: what the server itself uses.
#[async_trait]
pub trait LogNode: Send + Sync + 'static {
    /// Claims up to `limit` open runs of these agents whose server has started the agent and is gone. Each is
    /// returned once, and belongs to the caller.
    async fn claim_orphans(&self, agents: &[&str], limit: usize) -> Result<Vec<OrphanedRun>, LogError>;

    /// Returns whether this node is the leader: one node at a time delivers webhooks and removes old data.
    fn is_leader(&self) -> bool {
        true
    }

    /// Returns statistics.
    async fn stats(&self) -> Result<LogStats, LogError>;

    /// Checks that the log can be read and written.
    async fn ready(&self) -> Result<(), LogError>;

    /// Returns the health of the log and its dependencies. Answers soon, also during an outage.
    async fn health(&self) -> Health {
        Health { store: Dependency::from_probe("store", self.ready().await), tail: None }
    }

    /// Returns the state and counters of this node, without asking anything.
    fn node_stats(&self) -> NodeStats {
        NodeStats::default()
    }

    /// Finishes queued commands and closes the store.
    async fn close(&self);
}
