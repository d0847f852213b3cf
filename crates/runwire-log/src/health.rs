//! How a log is: what it leans on, whether that is there, and what was counted. Nothing in it is a secret.

use std::time::SystemTime;

use crate::cluster;
use crate::error::LogError;
use crate::postgres::Nodes;

/// Whether a log can be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Health {
    /// Where events are kept. Without it nothing can be read or written.
    pub store: Dependency,
    /// Where nodes tell each other of new events, where there is such a place. Without it they learn of them later.
    pub tail: Option<Dependency>,
}

/// Something that a log leans on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dependency {
    /// What it is: `sqlite`, `postgres`, `redis`.
    pub kind: &'static str,
    /// That it cannot be used, if so.
    pub outage: Option<Outage>,
}

/// That something cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outage {
    /// Since when, where that is known.
    pub since: Option<SystemTime>,
    /// Why.
    pub reason: String,
}

impl Dependency {
    /// Returns a store that was asked.
    pub fn from_probe(kind: &'static str, answer: Result<(), LogError>) -> Self {
        let outage = answer.err().map(|error| match error {
            LogError::Unavailable(reason) => Outage { since: None, reason },
            other => Outage { since: None, reason: other.to_string() },
        });
        Self { kind, outage }
    }
}

/// How a node stands, and what it has counted since the log was opened; known without asking anybody.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NodeStats {
    /// The way to the store, where it is a server.
    pub link: Option<ConnectionStats>,
    /// How the commits of other nodes are learned of, where there may be any.
    pub cluster: Option<cluster::ClusterStats>,
    /// The nodes, where there may be several.
    pub nodes: Option<Nodes>,
}

/// The way to a store that is a server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ConnectionStats {
    /// Connections that are open.
    pub connections: u64,
    /// Connections that broke, or were given up because no answer came.
    pub lost: u64,
    /// Tries to commit that failed: another node was faster, or the store was away.
    pub retries: u64,
}
