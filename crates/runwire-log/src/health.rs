//! Health of a log: its dependencies, whether they are available, and counters of this node. It holds no secrets.

use std::time::SystemTime;

use crate::cluster;
use crate::error::LogError;
use crate::postgres::Nodes;

/// The health of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Health {
    /// The store. Without it nothing can be read or written.
    pub store: Dependency,
    /// The live tail between nodes, if there is one. Without it readers see events of other nodes later.
    pub tail: Option<Dependency>,
}

/// A dependency of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dependency {
    /// Its kind: `sqlite`, `postgres`, `redis`.
    pub kind: &'static str,
    /// Its outage, if it is unavailable.
    pub outage: Option<Outage>,
}

/// An outage of a dependency.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outage {
    /// Since when, where that is known.
    pub since: Option<SystemTime>,
    /// Why.
    pub reason: String,
}

impl Dependency {
    /// Makes the state of a store from the result of a probe.
    pub fn from_probe(kind: &'static str, answer: Result<(), LogError>) -> Self {
        let outage = answer.err().map(|error| match error {
            LogError::Unavailable(reason) => Outage { since: None, reason },
            other => Outage { since: None, reason: other.to_string() },
        });
        Self { kind, outage }
    }
}

/// The state of a node and its counters since the log was opened; known without asking anything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NodeStats {
    /// Connections to the store, if it is a server.
    pub link: Option<ConnectionStats>,
    /// How this node learns of other nodes' commits, if there may be any.
    pub cluster: Option<cluster::ClusterStats>,
    /// The nodes of the cluster, if there may be several.
    pub nodes: Option<Nodes>,
}

/// Counters of connections to a store that is a server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ConnectionStats {
    /// Open connections.
    pub connections: u64,
    /// Connections that broke, or timed out.
    pub lost: u64,
    /// Failed attempts to commit: another node was faster, or the store was unavailable.
    pub retries: u64,
}
