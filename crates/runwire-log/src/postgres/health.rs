//! How a node and what it leans on are.

use std::time::{Duration, Instant, SystemTime};

use tokio::time::timeout;

use super::Postgres;
use crate::cluster::redis;
use crate::error::LogError;
use crate::vitals::{Away, Dependency, Health, Vitals};

/// How old a sign of life of the store may be before it is asked for another: beats come every second.
const FRESH: Duration = Duration::from_secs(3);
/// How long it may take to answer then. Whoever asks for health waits no longer than this.
const PATIENCE: Duration = Duration::from_secs(2);
/// Asks whether nothing can be written there: it is a standby, or was told to take nothing.
const ONLY_READS: &str = "SELECT pg_is_in_recovery() OR current_setting('transaction_read_only')::boolean";

impl Postgres {
    /// Tells whether the store can be used, as its last beat showed it, or by asking.
    pub(super) async fn look(&self) -> Health {
        let silence = self.nodes.silence();
        let store = if self.lanes.is_closed() {
            Some("the store was closed".to_owned())
        } else if silence < FRESH {
            None
        } else {
            let asking = self.using(|reader| Ok(reader.connection.one(ONLY_READS, &[])?.get(0)));
            match timeout(PATIENCE, asking).await {
                Ok(Ok(false)) => None,
                Ok(Ok(true)) => Some("it can only be read".to_owned()),
                Ok(Err(LogError::Unavailable(reason))) => Some(reason),
                Ok(Err(other)) => Some(other.to_string()),
                Err(_) => Some("it does not answer".to_owned()),
            }
        };
        let store = store.map(|reason| Away { since: SystemTime::now().checked_sub(silence), reason });
        let tail = self.cluster.figures().tail;
        Health {
            store: Dependency { kind: "postgres", away: store },
            tail: tail.map(|tail| Dependency { kind: "redis", away: away(&tail.links) }),
        }
    }

    pub(super) fn stand(&self) -> Vitals {
        let link = Some(self.readers.count().tell());
        Vitals { link, cluster: Some(self.cluster.figures()), nodes: Some(self.nodes.tell()) }
    }
}

fn away(links: &redis::Links) -> Option<Away> {
    let down = [&links.publishing, &links.following].into_iter().filter(|link| !link.up);
    let first = down.min_by_key(|link| link.since)?;
    let since = SystemTime::now().checked_sub(Instant::now().saturating_duration_since(first.since));
    let reason = first.error.clone().unwrap_or_else(|| "it has not answered yet".to_owned());
    Some(Away { since, reason })
}
