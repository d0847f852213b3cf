//! The store of a cluster: any number of nodes share one Postgres, and any node writes to any thread.
//!
//! A writer locks the row of a thread until its commit, so the first commit wins every race. A node has a few writer
//! threads, each with a connection of its own, and a pool of read connections.
//!
//! The path of a command: `submit.rs` queues it, `writer_pool.rs` assigns it to a writer, `writer.rs` takes all queued
//! commands as a group, and `commit/` commits the group: its module doc is the specification of the protocol.

mod address;
mod checkpoints;
mod claim_orphans;
mod commit;
mod connection;
mod connection_counters;
mod error;
mod events;
mod generation;
mod head_cache;
mod leases;
mod node;
mod nodes;
mod open;
mod outbox;
mod reader;
mod reader_pool;
mod retention;
mod rows;
mod run_snapshot;
mod schema;
mod sql;
mod store_clock;
mod store_probe;
mod submit;
mod tls;
mod txn_store;
mod writer;
mod writer_pool;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use crate::cluster::{TailFeeder, TailOptions};
use crate::error::LogError;
use crate::limits;
use crate::stats::WriteCounters;
use crate::tail::Tails;
use crate::waiting_checkpoints::WaitingCheckpoints;
use crate::writer_queue::QueueBytes;
use connection::PgConnection;
pub use nodes::Nodes;
pub use open::PgOpenError;
use reader::PgReader;
use reader_pool::ReaderPool;
use writer::{CommitListeners, LeaseTerms, PgWriter};
use writer_pool::WriterPool;

/// Options of the store.
#[derive(Clone)]
pub struct PgOptions {
    /// Duration of a run's lease.
    pub lease: Duration,
    /// Grace period of a cancelled run.
    pub cancel_grace: Duration,
    /// Name of this node, for people.
    pub node_name: String,
    /// Time without a heartbeat after which a node counts as gone.
    pub node_term: Duration,
    /// The live tail over Redis; without one, nodes poll for each other's commits.
    pub tail: Option<TailOptions>,
    /// Called when the store may lack commits that this node has seen: it was restored, or a replica took over. The
    /// process should end, and restart from what there is.
    pub fatal: Arc<dyn Fn(&str) + Send + Sync>,
}

impl Default for PgOptions {
    fn default() -> Self {
        Self {
            lease: Duration::from_secs(limits::LEASE_SECONDS),
            cancel_grace: Duration::from_secs(limits::CANCEL_SECONDS),
            node_name: String::new(),
            node_term: Duration::from_millis(limits::NODE_TIMEOUT_MILLIS),
            tail: None,
            fatal: Arc::new(|_| {}),
        }
    }
}

/// A log in Postgres.
pub struct PostgresLog {
    writers: WriterPool,
    queue_bytes: QueueBytes,
    tails: Arc<Tails>,
    outbox_changed: Arc<watch::Sender<()>>,
    write_counters: Arc<WriteCounters>,
    terms: LeaseTerms,
    nodes: Arc<nodes::Membership>,
    heartbeat: nodes::HeartbeatHandle,
    readers: ReaderPool,
    checkpoints: Arc<WaitingCheckpoints>,
    health_probe: node::HealthProbe,
    cluster: TailFeeder,
}

impl std::fmt::Debug for PostgresLog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PostgresLog").finish_non_exhaustive()
    }
}

impl PostgresLog {
    /// Opens a store, and creates its tables if it is new. Blocks.
    pub fn open(url: &str, options: &PgOptions) -> Result<Self, PgOpenError> {
        let address = open::config(url)?;
        open::prepare(&PgConnection::open_without_timeout(&address)?)?;
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let terms = LeaseTerms { lease: millis(options.lease), grace: millis(options.cancel_grace) };
        let node = nodes::NodeRecord::new(&options.node_name, options.node_term);
        let nodes = nodes::Membership::register(&PgConnection::open(&address)?, &address, node, terms)?;
        let tails = Arc::new(Tails::default());
        let outbox_changed = Arc::new(watch::Sender::new(()));
        let write_counters = Arc::new(WriteCounters::default());
        let cluster = store_probe::follow(&address, options.tail.as_ref(), &nodes.generation)?;
        let (followed, write_counters_here) = (cluster.followed().clone(), write_counters.clone());
        let listeners = CommitListeners {
            tails: tails.clone(),
            followed,
            outbox_changed: outbox_changed.clone(),
            write_counters: write_counters_here,
        };
        let open = || PgWriter::open(&address, terms, nodes.node.id.clone(), listeners.clone());
        let writers = WriterPool::open(open)?;
        let heartbeat =
            nodes::start(address.clone(), nodes.clone(), outbox_changed.clone(), options.fatal.clone())?;
        let readers = ReaderPool::new(address);
        let health_probe = node::HealthProbe::default();
        Ok(Self {
            writers,
            queue_bytes: QueueBytes::default(),
            tails,
            outbox_changed,
            write_counters,
            terms,
            nodes,
            heartbeat,
            readers,
            checkpoints: Arc::default(),
            health_probe,
            cluster,
        })
    }

    /// Returns how this node learns of other nodes' commits.
    pub fn cluster(&self) -> crate::cluster::ClusterStats {
        self.cluster.stats()
    }

    /// Returns the nodes of the cluster, as this one knows them.
    pub fn nodes(&self) -> Nodes {
        self.nodes.nodes()
    }

    /// Runs `work` with a read connection.
    async fn using<T: Send + 'static>(
        &self,
        work: impl Fn(&mut PgReader) -> Result<T, LogError> + Send + 'static,
    ) -> Result<T, LogError> {
        self.readers.using(work).await
    }

    /// Reads in one snapshot.
    async fn reading<T: Send + 'static>(
        &self,
        read: impl Fn(&mut PgReader) -> Result<T, LogError> + Send + 'static,
    ) -> Result<T, LogError> {
        self.using(move |reader| reader.in_snapshot(&read)).await
    }
}
