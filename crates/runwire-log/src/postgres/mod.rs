//! The store of a cluster: any number of nodes share one Postgres, and any node writes to any thread.
//!
//! A writer locks the row of a thread until its commit, so the first commit wins every race. A node has a few writer
//! threads, each with a connection of its own, and a pool of read connections.
//!
//! The path of a command: `submit.rs` queues it, `writer_pool.rs` assigns it to a writer, `writer.rs` takes all
//! queued commands as a group, and `commit.rs` commits the group: optimistically (`optimistic.rs`), or with locks
//! (`begin.rs`), where commands for busy threads are deferred (`defer.rs`). `write_set/` holds what is written, and
//! `commit_outcome.rs` finds out the outcome of a commit whose answer was lost.

mod address;
mod begin;
mod claim_orphans;
mod commit;
mod commit_outcome;
mod connection;
mod connection_counters;
mod defer;
mod error;
mod generation;
mod head_cache;
mod health;
mod leases;
mod lists;
mod nodes;
mod open;
mod optimistic;
mod outbox;
mod purge;
mod reader;
mod reader_pool;
mod retention;
mod rows;
mod run_snapshot;
mod schema;
mod store_clock;
mod store_probe;
mod submit;
mod tls;
mod txn_store;
mod unreadable_runs;
mod write_set;
mod writer;
mod writer_pool;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use runwire_model::dialect::Encoder;
use runwire_model::window::Window;
use tokio::sync::{Semaphore, watch};

use crate::append::{Append, Appended, Target};
use crate::cluster::{TailFeeder, TailOptions};
use crate::error::LogError;
use crate::info::{
    Created, NewRun, NewThread, OrphanedRun, ProducerInfo, RunInfo, RunQuery, RunSpan, ThreadInfo,
};
use crate::interaction::{Answer, Answered, Interaction, InteractionPage, InteractionQuery};
use crate::key::{RunKey, ThreadKey};
use crate::outbox::{DeliveryOutcome, OutboxMessage, Subscriber};
use crate::query::{self, ReadStore};
use crate::stats::{LogStats, WriteCounters};
use crate::tail::{Tail, Tails};
use crate::transfer::{ExportPage, ExportRequest, Imported, NumberedItem};
use crate::txn::{LogCommand, Merge};
use crate::{Cancel, Cancelled, Health, Log, NodeStats, ReadFormat, RecordPage, RetentionLimits, limits};
use connection::PgConnection;
pub use nodes::Nodes;
pub use open::PgOpenError;
use reader::PgReader;
use reader_pool::ReaderPool;
use writer::{CommitListeners, LeaseTerms, PgWriter, PgWriterMessage};
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
    /// Limits the bytes of queued commands.
    queue_bytes: Arc<Semaphore>,
    tails: Arc<Tails>,
    outbox_changed: Arc<watch::Sender<()>>,
    write_counters: Arc<WriteCounters>,
    terms: LeaseTerms,
    nodes: Arc<nodes::Membership>,
    heartbeat: nodes::HeartbeatHandle,
    readers: ReaderPool,
    health_probe: health::HealthProbe,
    cluster: TailFeeder,
}

impl std::fmt::Debug for PostgresLog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PostgresLog").finish_non_exhaustive()
    }
}

impl PostgresLog {
    /// Opens a store, and creates or migrates its tables. Blocks.
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
        let queue_bytes = Arc::new(Semaphore::new(limits::WRITER_QUEUE_BYTES));
        let health_probe = health::HealthProbe::default();
        Ok(Self {
            writers,
            queue_bytes,
            tails,
            outbox_changed,
            write_counters,
            terms,
            nodes,
            heartbeat,
            readers,
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
        self.using(move |reader| reader.in_snapshot(&read)?).await
    }
}

#[async_trait]
impl Log for PostgresLog {
    async fn create_thread(&self, thread: NewThread) -> Result<Created<ThreadInfo>, LogError> {
        let key = thread.thread_id.clone().map(|id| ThreadKey::new(thread.tenant.as_str(), id));
        let created = self.submit(thread, LogCommand::CreateThread).await?;
        match key.filter(|_| !created.new) {
            Some(key) => Ok(Created { value: self.thread(&key).await?, new: false }),
            None => Ok(created),
        }
    }

    async fn create_run(&self, run: NewRun) -> Result<Created<RunInfo>, LogError> {
        let tenant = run.tenant.clone();
        let created = self.submit(run, LogCommand::CreateRun).await?;
        self.writers.assign_like_thread(&tenant, &created.value);
        Ok(created)
    }

    async fn append(&self, append: Append) -> Result<Appended, LogError> {
        match append.target {
            Target::Tenant(_) => self.submit(Merge::of(append), LogCommand::Merge).await,
            Target::Run(_) | Target::Thread(_) => self.submit(append, LogCommand::Append).await,
        }
    }

    async fn cancel(&self, run: &RunKey, cancel: Cancel) -> Result<Cancelled, LogError> {
        self.submit((run.clone(), cancel), LogCommand::Cancel).await
    }

    async fn answer_all(&self, run: &RunKey, answers: Vec<Answer>) -> Result<Vec<Answered>, LogError> {
        self.submit((run.clone(), answers), LogCommand::Answer).await
    }

    async fn heartbeat(&self, run: &RunKey) -> Result<RunInfo, LogError> {
        self.submit(run.clone(), LogCommand::Heartbeat).await
    }

    async fn sweep(&self) -> Result<usize, LogError> {
        self.submit((), LogCommand::Sweep).await
    }

    async fn export(&self, thread: &ThreadKey, part: &ExportRequest) -> Result<ExportPage, LogError> {
        let (thread, part) = (thread.clone(), part.clone());
        self.reading(move |reader| query::export(reader, &thread, &part)).await
    }

    async fn import(&self, thread: &ThreadKey, items: Vec<NumberedItem>) -> Result<Imported, LogError> {
        self.submit((thread.clone(), items), LogCommand::Import).await
    }

    async fn delete_thread(&self, thread: &ThreadKey, force: bool) -> Result<(), LogError> {
        self.submit((thread.clone(), force), LogCommand::Delete).await
    }

    async fn trim(&self, retention: RetentionLimits) -> Result<usize, LogError> {
        self.using(move |reader| reader.trim_all(retention)).await
    }

    async fn run(&self, run: &RunKey) -> Result<RunInfo, LogError> {
        let run = run.clone();
        self.reading(move |reader| reader.run_info(&run)).await
    }

    async fn runs(&self, query: RunQuery) -> Result<Vec<RunInfo>, LogError> {
        self.reading(move |reader| reader.runs(&query)).await
    }

    async fn claim_orphans(&self, agents: &[&str], limit: usize) -> Result<Vec<OrphanedRun>, LogError> {
        let agents: Vec<String> = agents.iter().map(|agent| (*agent).to_owned()).collect();
        let (nodes, terms) = (self.nodes.clone(), self.terms);
        self.using(move |reader| reader.claim_orphans(&nodes, terms, &agents, limit)).await
    }

    fn is_leader(&self) -> bool {
        self.nodes.is_leader()
    }

    async fn interaction(&self, run: &RunKey, interaction_id: &str) -> Result<Interaction, LogError> {
        let (run, id) = (run.clone(), interaction_id.to_owned());
        self.reading(move |reader| query::interaction(reader, &run, &id)).await
    }

    async fn interactions(&self, query: InteractionQuery) -> Result<InteractionPage, LogError> {
        self.reading(move |reader| query::interactions(reader, &query)).await
    }

    async fn subscribe(&self, subscribers: Vec<Subscriber>) -> Result<(), LogError> {
        self.nodes.subscribe(subscribers.iter().map(|known| known.name.clone()).collect());
        self.writers.subscribe(&subscribers).await
    }

    async fn outbox(&self, subscriber: &str, limit: usize) -> Result<Vec<OutboxMessage>, LogError> {
        let subscriber = subscriber.to_owned();
        self.reading(move |reader| reader.outbox(&subscriber, limit)).await
    }

    async fn mark_delivered(&self, message: u64, outcome: DeliveryOutcome) -> Result<(), LogError> {
        self.using(move |reader| reader.mark_delivered(message, outcome)).await
    }

    fn outbox_changed(&self) -> watch::Receiver<()> {
        self.outbox_changed.subscribe()
    }

    async fn thread(&self, thread: &ThreadKey) -> Result<ThreadInfo, LogError> {
        let thread = thread.clone();
        self.reading(move |reader| reader.thread(&thread)).await
    }

    async fn threads(
        &self,
        tenant: &str,
        before: Option<&str>,
        limit: usize,
    ) -> Result<Vec<ThreadInfo>, LogError> {
        let (tenant, before) = (tenant.to_owned(), before.map(str::to_owned));
        self.reading(move |reader| reader.threads(&tenant, before.as_deref(), limit)).await
    }

    async fn spans(&self, thread: &ThreadKey) -> Result<Vec<RunSpan>, LogError> {
        let thread = thread.clone();
        self.reading(move |reader| reader.spans(&thread)).await
    }

    async fn producer(&self, run: &RunKey, producer: &str) -> Result<Option<ProducerInfo>, LogError> {
        let (run, producer) = (run.clone(), producer.to_owned());
        self.reading(move |reader| reader.producer(&run, &producer)).await
    }

    async fn thread_producer(
        &self,
        thread: &ThreadKey,
        producer: &str,
    ) -> Result<Option<ProducerInfo>, LogError> {
        let (thread, producer) = (thread.clone(), producer.to_owned());
        self.reading(move |reader| reader.thread_producer(&thread, &producer)).await
    }

    async fn read(&self, thread: &ThreadKey, after: u64) -> Result<RecordPage, LogError> {
        let thread = thread.clone();
        self.reading(move |reader| Ok(query::page(reader, &thread, after)?.0)).await
    }

    async fn before(&self, thread: &ThreadKey, seq: u64) -> Result<Window, LogError> {
        let thread = thread.clone();
        self.reading(move |reader| query::before(reader, &thread, seq)).await
    }

    async fn checkpoint(
        &self,
        run: &RunKey,
        form: ReadFormat,
        seq: u64,
    ) -> Result<Option<(u64, Encoder)>, LogError> {
        let run = run.clone();
        self.reading(move |reader| reader.checkpoint(&run, form, seq)).await
    }

    fn keep_checkpoint(&self, run: &RunKey, form: ReadFormat, seq: u64, encoder: &Encoder) {
        if let Ok(state) = serde_json::to_string(encoder) {
            let checkpoint = writer::Checkpoint { run: run.clone(), form, seq, state };
            // A full queue means that there is no time for it.
            self.writers.try_send(PgWriterMessage::Checkpoint(checkpoint));
        }
    }

    fn tail(&self, thread: &ThreadKey) -> Arc<Tail> {
        let (tail, is_new) = self.tails.find(thread);
        if is_new {
            self.cluster.begin(thread, &tail);
        }
        tail
    }

    async fn stats(&self) -> Result<LogStats, LogError> {
        let stats = self.reading(|reader| reader.stats()).await?;
        Ok(LogStats { written: self.write_counters.written(), ..stats })
    }

    async fn ready(&self) -> Result<(), LogError> {
        if self.writers.is_closed() {
            return Err(LogError::Unavailable("the store has stopped".into()));
        }
        self.using(|reader| Ok(reader.connection.run("SELECT 1")?)).await
    }

    async fn health(&self) -> Health {
        self.check_health().await
    }

    fn node_stats(&self) -> NodeStats {
        self.node_stats()
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
