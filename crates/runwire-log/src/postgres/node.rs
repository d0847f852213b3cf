//! This node: health checks of Postgres and Redis, its state and counters, and its end.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use async_trait::async_trait;
use tokio::sync::watch;
use tokio::time::timeout;

use super::PostgresLog;
use super::reader::PgReader;
use super::reader_pool::ReaderPool;
use crate::cluster::redis;
use crate::error::LogError;
use crate::health::{Dependency, Health, NodeStats, Outage};
use crate::info::OrphanedRun;
use crate::log::LogNode;
use crate::sql;
use crate::stats::LogStats;

/// Timeout of a health check.
const HEALTH_TIMEOUT: Duration = Duration::from_secs(2);
/// Returns whether the server is read-only: a standby, or configured so.
const IS_READ_ONLY: &str = "SELECT pg_is_in_recovery() OR current_setting('transaction_read_only')::boolean";

/// Why the store cannot be used; `None` if it can.
type ProbeResult = Option<String>;

/// A health probe of the store. Concurrent callers share one, to spare the store.
#[derive(Debug, Default)]
pub(super) struct HealthProbe(Mutex<Option<RunningProbe>>);

/// A probe that was started.
#[derive(Debug, Clone)]
struct RunningProbe {
    at: Instant,
    answer: watch::Receiver<Option<ProbeResult>>,
}

impl RunningProbe {
    fn send(readers: ReaderPool) -> Self {
        let (sender, answer) = watch::channel(None);
        // A caller that goes away does not cancel it: it would still be running on the server.
        tokio::spawn(async move {
            let asking = readers.using(|reader| Ok(reader.connection.one(IS_READ_ONLY, &[])?.get(0)));
            sender.send_replace(Some(match asking.await {
                Ok(false) => None,
                Ok(true) => Some("it can only be read".to_owned()),
                Err(LogError::Unavailable(reason)) => Some(reason),
                Err(other) => Some(other.to_string()),
            }));
        });
        Self { at: Instant::now(), answer }
    }

    /// Returns whether it has no result yet.
    fn is_open(&self) -> bool {
        self.answer.borrow().is_none() && self.answer.has_changed().is_ok()
    }
}

impl HealthProbe {
    /// Starts a probe, or joins the running one.
    async fn run(&self, readers: &ReaderPool) -> ProbeResult {
        let mut probe = self.start_or_join(readers);
        let left = HEALTH_TIMEOUT.saturating_sub(probe.at.elapsed());
        let answer = timeout(left, probe.answer.wait_for(Option::is_some)).await;
        let known = answer.ok().and_then(Result::ok).and_then(|answer| answer.clone());
        known.unwrap_or_else(|| Some("it does not answer".to_owned()))
    }

    fn start_or_join(&self, readers: &ReaderPool) -> RunningProbe {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let probe =
            last.take().filter(RunningProbe::is_open).unwrap_or_else(|| RunningProbe::send(readers.clone()));
        last.insert(probe).clone()
    }
}

#[async_trait]
impl LogNode for PostgresLog {
    async fn claim_orphans(&self, agents: &[&str], limit: usize) -> Result<Vec<OrphanedRun>, LogError> {
        let agents: Vec<String> = agents.iter().map(|agent| (*agent).to_owned()).collect();
        let (nodes, terms) = (self.nodes.clone(), self.terms);
        self.using(move |reader| reader.claim_orphans(&nodes, terms, &agents, limit)).await
    }

    fn is_leader(&self) -> bool {
        self.nodes.is_leader()
    }

    async fn stats(&self) -> Result<LogStats, LogError> {
        let count = |reader: &mut PgReader| {
            let bytes =
                reader.connection.one("SELECT pg_database_size(current_database())", &[])?.get::<_, i64>(0);
            Ok(LogStats { store_bytes: bytes as u64, ..sql::count(&reader.connection)? })
        };
        let stats = self.reading(count).await?;
        let unreadable = self.nodes.unreadable.count();
        Ok(LogStats { written: self.write_counters.written(), unreadable, ..stats })
    }

    async fn ready(&self) -> Result<(), LogError> {
        if self.writers.is_closed() {
            return Err(LogError::Unavailable("the store has stopped".into()));
        }
        self.using(|reader| Ok(reader.connection.run("SELECT 1")?)).await
    }

    async fn health(&self) -> Health {
        let silence = self.nodes.since_heartbeat();
        let store = if self.writers.is_closed() {
            Some("the store was closed".to_owned())
        } else if self.nodes.is_on_time() {
            None
        } else {
            self.health_probe.run(&self.readers).await
        };
        let store = store.map(|reason| Outage { since: SystemTime::now().checked_sub(silence), reason });
        let tail = self.cluster.stats().tail;
        Health {
            store: Dependency { kind: "postgres", outage: store },
            tail: tail.map(|tail| Dependency { kind: "redis", outage: outage_of(&tail.links) }),
        }
    }

    fn node_stats(&self) -> NodeStats {
        let link = Some(self.readers.counters().stats());
        NodeStats { link, cluster: Some(self.cluster.stats()), nodes: Some(self.nodes.nodes()) }
    }

    async fn close(&self) {
        self.readers.close().await;
        // The writers drop their queues last.
        self.writers.close().await;
        self.cluster.close().await;
        // From now on other nodes claim its open runs.
        self.heartbeat.deregister().await;
    }
}

fn outage_of(links: &redis::RedisLinks) -> Option<Outage> {
    let down = [&links.publishing, &links.subscribing].into_iter().filter(|link| !link.up);
    let first = down.min_by_key(|link| link.since)?;
    let since = SystemTime::now().checked_sub(Instant::now().saturating_duration_since(first.since));
    let reason = first.error.clone().unwrap_or_else(|| "it has not answered yet".to_owned());
    Some(Outage { since, reason })
}
