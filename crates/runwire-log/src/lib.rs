//! The log: what Runwire stores, in which order, and what it promises about it.
//!
//! One trait, [`Log`]; its embedded implementation, [`sqlite::SqliteLog`]; its implementation for clusters,
//! [`postgres::PostgresLog`]; and `conformance`, the suite that any implementation must pass (a cargo feature). This
//! page is the specification of what is stored.
//!
//! # What is stored
//!
//! | thing | what it holds |
//! |---|---|
//! | **thread** | tenant and id, whether runs may be open in parallel, the oldest `seq` that is kept, and the messages and the state before it |
//! | **run** | tenant and id, its thread, the request of `POST /v1/runs`, status and times, its first and last `seq`, the guard's state, and a summary (counts, tokens, interactions, error) |
//! | **producer** | of a run, of a thread that is written as a whole, or of a tenant whose frames name their threads: name, epoch, index of the next frame, dialect and decoder state, and for a thread the runs that its frames go to |
//! | **interaction** | for each open one: its run, the record that requests it, when, and when it expires; the inbox |
//! | **record** | see [`StoredRecord`]: `seq`, time, run, the producer's frame byte for byte, its dialect and SSE name, and the events it means, each with who added it |
//! | **outbox message** | for each event that is not delivered to a subscriber yet: the event, the number of attempts, and when the next one is due |
//! | **checkpoint** | the state of an encoder after a record. A cache: it may be lost |
//!
//! # Invariants
//!
//! - `seq` is contiguous per thread from 1; `at` never goes backwards in a thread.
//! - An append is atomic: its records, the run's row with the guard's state, and the producer's row with the
//!   decoder's state are committed together. A refused command changes nothing, also not its neighbours in the
//!   same commit. The frames before a bad one stay written.
//! - Nothing is acknowledged or shown to a reader before it is durable.
//! - The check of a producer's epoch and index precedes every other check.
//! - A run has at most one terminal event, and it is its last record. A thread has one open run, unless it was
//!   created with `parallel`.
//! - An interaction has one answer, which is a record of its run: the first that is committed. After it expired,
//!   or its run has ended, it takes none.
//! - Ids of threads and runs are used once, also those of a deleted thread.
//! - Every open run has a lease; [`Log::sweep`] closes runs whose lease has expired. While no node could reach
//!   the store, no lease expires.
//! - A run whose agent a server has started belongs to that server. Once it is gone, [`Log::claim_orphans`]
//!   assigns the run to one other server; later writes of the first are refused by the epoch of its producer.
//! - An outbox message is committed with its event. It stays until [`Log::mark_delivered`] removes it, whatever
//!   happens to the run; only deleting the thread removes undelivered ones.
//! - A thread can move to another log: [`Log::export`] and [`Log::import`] reproduce the same records under the
//!   same `seq`, and the same states, so every stream and cursor is the same there.
//! - A commit that fails ends the use of the log: opening the store again shows its outcome.

pub mod append;
pub mod cluster;
#[cfg(feature = "conformance")]
pub mod conformance;
pub mod error;
pub mod health;
pub mod info;
pub mod interaction;
pub mod key;
pub mod limits;
pub mod outbox;
pub mod postgres;
mod query;
pub mod record;
pub mod run_history;
pub mod sqlite;
pub mod stats;
pub mod tail;
pub mod transfer;
mod txn;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use runwire_model::Timestamp;
use runwire_model::dialect::{Dialect, Encoder, EncoderOptions, Fidelity, Slots};
use runwire_model::window::Window;
use tokio::sync::watch;

pub use append::{Append, Appended, CheckMode, FrameBatch, FrameIn, Stamp, Target};
pub use error::{AppendFault, Breach, FrameProblem, LogError};
pub use health::{Dependency, Health, NodeStats, Outage};
pub use info::{
    Created, InteractionInfo, LatestRun, NewRun, NewThread, OrphanedRun, ProducerInfo, RunError, RunInfo,
    RunQuery, RunSpan, RunSummary, ThreadInfo, Warning, Warnings,
};
pub use interaction::{
    Answer, Answered, InboxCursor, Interaction, InteractionPage, InteractionQuery, Resolution,
};
pub use key::{RunKey, ThreadKey};
pub use outbox::{DeliveryOutcome, OutboxKind, OutboxMessage, Subscriber};
pub use record::StoredRecord;
pub use run_history::{RecordSource, RunHistory, StateCache};
pub use stats::{LogStats, SubscriberBacklog, WriteStats};
pub use tail::{Tail, TailHead};
pub use transfer::{ExportPage, ExportRequest, ImportFault, ImportProblem, Imported, TransferItem};

/// A page of records of a thread, in order.
#[derive(Debug, Clone, Default)]
pub struct RecordPage {
    /// The records; empty at the end of the thread.
    pub records: Vec<Arc<StoredRecord>>,
    /// The thread's last `seq`, as the read saw it.
    pub head: u64,
    /// The first `seq` that is kept.
    pub oldest: u64,
}

/// A request to cancel a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cancel {
    /// Why.
    pub reason: Option<String>,
    /// Who.
    pub by: Option<String>,
}

/// The result of a cancel request.
#[derive(Debug, Clone, PartialEq)]
pub struct Cancelled {
    /// The run, after it.
    pub run: RunInfo,
    /// Whether something was written; not if the run has ended, or a cancel was requested before.
    pub new: bool,
}

/// What retention removes: whole closed runs, oldest first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RetentionLimits {
    /// Runs that ended before this moment.
    pub ended_before: Option<Timestamp>,
    /// Runs that ended longer ago than this, by the store's clock.
    pub age: Option<Duration>,
    /// The oldest runs, until the records of all threads fit into this many bytes.
    pub max_bytes: Option<u64>,
}

impl RetentionLimits {
    /// Converts the age to a time before `now`.
    pub(crate) fn at(self, now: Timestamp) -> Self {
        let millis = |age: Duration| u64::try_from(age.as_millis()).unwrap_or(u64::MAX);
        let by_age = self.age.map(|age| Timestamp(now.0.saturating_sub(millis(age))));
        Self { ended_before: self.ended_before.max(by_age), age: None, ..self }
    }
}

/// The versions of a store's tables, before and after they were migrated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Migrated {
    /// The version that it had; 0 is a store without tables.
    pub from: u32,
    /// The version that it has.
    pub to: u32,
}

/// The format in which a run is read: a dialect and its options. It is part of the key of a checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ReadFormat {
    /// The dialect.
    pub dialect: Dialect,
    /// How much of the events it carries.
    pub fidelity: Fidelity,
    /// Which extension frames it has.
    pub slots: Slots,
}

impl ReadFormat {
    /// Makes the format of a dialect with default options.
    pub const fn new(dialect: Dialect) -> Self {
        Self { dialect, fidelity: Fidelity::Native, slots: Slots::All }
    }

    /// Makes the format of a dialect and options, without those that have no effect in it.
    pub fn with(dialect: Dialect, options: EncoderOptions) -> Self {
        let EncoderOptions { fidelity, slots } = options.of(dialect);
        Self { dialect, fidelity, slots }
    }

    /// Returns the options of its encoders.
    pub fn options(self) -> EncoderOptions {
        EncoderOptions { fidelity: self.fidelity, slots: self.slots }
    }

    /// Returns the number of a record's first frame in cursors.
    pub fn first_frame(self) -> u32 {
        self.options().first_frame(self.dialect)
    }

    /// Returns the key under which checkpoints are stored.
    fn name(self) -> String {
        let Self { dialect, fidelity, slots } = self;
        format!("{dialect}/{}/{}", fidelity.name(), slots.name())
    }
}

/// A durable, ordered log of threads.
#[async_trait]
pub trait Log: Send + Sync + 'static {
    /// Creates a thread; returns the existing one if the same request has created it.
    async fn create_thread(&self, thread: NewThread) -> Result<Created<ThreadInfo>, LogError>;

    /// Creates a run without records; returns the existing one if the same request has created it.
    async fn create_run(&self, run: NewRun) -> Result<Created<RunInfo>, LogError>;

    /// Writes frames; returns once they are durable.
    async fn append(&self, append: Append) -> Result<Appended, LogError>;

    /// Cancels a run; returns a closed one as it is.
    async fn cancel(&self, run: &RunKey, cancel: Cancel) -> Result<Cancelled, LogError>;

    /// Answers an interaction; returns once the answer is durable.
    ///
    /// The first answer wins. The same answer again, by the same person, succeeds; another is refused with the one
    /// that won. The caller has validated it: an interaction never changes.
    async fn answer(&self, run: &RunKey, answer: Answer) -> Result<Answered, LogError> {
        let answered = self.answer_all(run, vec![answer]).await?.pop();
        answered.ok_or_else(|| LogError::Unavailable("the log does not say what came of an answer".into()))
    }

    /// Answers several interactions of a run in one record, each at most once. If one answer is refused, none is
    /// written.
    async fn answer_all(&self, run: &RunKey, answers: Vec<Answer>) -> Result<Vec<Answered>, LogError>;

    /// Renews a run's lease.
    async fn heartbeat(&self, run: &RunKey) -> Result<RunInfo, LogError>;

    /// Closes the runs whose lease has expired, and returns their number.
    async fn sweep(&self) -> Result<usize, LogError>;

    /// Returns a page of everything that is stored of a thread, for [`Log::import`].
    async fn export(&self, thread: &ThreadKey, part: &ExportRequest) -> Result<ExportPage, LogError>;

    /// Imports items of a thread that another log has exported; returns once they are durable.
    ///
    /// A record must be what the guard makes of its events. Items that exist and are equal are skipped, so that an
    /// interrupted import can be repeated. Until [`TransferItem::End`] the open runs of the thread have a lease that
    /// is long enough for that.
    async fn import(
        &self,
        thread: &ThreadKey,
        items: Vec<transfer::NumberedItem>,
    ) -> Result<Imported, LogError>;

    /// Deletes a thread with all its data; `force` cancels its open runs.
    async fn delete_thread(&self, thread: &ThreadKey, force: bool) -> Result<(), LogError>;

    /// Removes runs by retention, and returns their number.
    async fn trim(&self, retention: RetentionLimits) -> Result<usize, LogError>;

    /// Returns a run.
    async fn run(&self, run: &RunKey) -> Result<RunInfo, LogError>;

    /// Lists runs, newest first.
    async fn runs(&self, query: RunQuery) -> Result<Vec<RunInfo>, LogError>;

    /// Claims up to `limit` open runs of these agents whose server has started the agent and is gone. Each is
    /// returned once, and belongs to the caller.
    async fn claim_orphans(&self, agents: &[&str], limit: usize) -> Result<Vec<OrphanedRun>, LogError>;

    /// Returns whether this node is the leader: one node at a time delivers webhooks and removes old data.
    fn is_leader(&self) -> bool {
        true
    }

    /// Returns an interaction, open or resolved.
    async fn interaction(&self, run: &RunKey, interaction_id: &str) -> Result<Interaction, LogError>;

    /// Lists open interactions, newest first.
    async fn interactions(&self, query: InteractionQuery) -> Result<InteractionPage, LogError>;

    /// Sets the subscribers of events. Undelivered messages of others are removed: at once, or after a day where
    /// other nodes may know them.
    ///
    /// Imported events are not delivered: they happened elsewhere.
    async fn subscribe(&self, subscribers: Vec<Subscriber>) -> Result<(), LogError>;

    /// Lists undelivered messages of a subscriber, in the order they are due.
    async fn outbox(&self, subscriber: &str, limit: usize) -> Result<Vec<OutboxMessage>, LogError>;

    /// Records the outcome of a delivery; a message that is gone is ignored.
    async fn mark_delivered(&self, message: u64, outcome: DeliveryOutcome) -> Result<(), LogError>;

    /// Watches for commits that add outbox messages.
    ///
    /// Subscribe before listing them, to miss none.
    fn outbox_changed(&self) -> watch::Receiver<()>;

    /// Returns a thread.
    async fn thread(&self, thread: &ThreadKey) -> Result<ThreadInfo, LogError>;

    /// Lists up to `limit` threads created before `before`, newest first.
    async fn threads(
        &self,
        tenant: &str,
        before: Option<&str>,
        limit: usize,
    ) -> Result<Vec<ThreadInfo>, LogError>;

    /// Returns the ranges of a thread's runs, in the order they began; without those that retention removed.
    async fn spans(&self, thread: &ThreadKey) -> Result<Vec<RunSpan>, LogError>;

    /// Returns the position of a producer of a run.
    async fn producer(&self, run: &RunKey, producer: &str) -> Result<Option<ProducerInfo>, LogError>;

    /// Returns the position of a producer of a whole thread.
    async fn thread_producer(
        &self,
        thread: &ThreadKey,
        producer: &str,
    ) -> Result<Option<ProducerInfo>, LogError>;

    /// Reads a page of the records after `after`.
    async fn read(&self, thread: &ThreadKey, after: u64) -> Result<RecordPage, LogError>;

    /// Returns the thread's messages and state before a `seq`, as far as they are kept.
    async fn before(&self, thread: &ThreadKey, seq: u64) -> Result<Window, LogError>;

    /// Returns the newest checkpoint of a run up to `seq`.
    async fn checkpoint(
        &self,
        run: &RunKey,
        form: ReadFormat,
        seq: u64,
    ) -> Result<Option<(u64, Encoder)>, LogError>;

    /// Stores the state of an encoder after a record, unless the writer is busy.
    fn keep_checkpoint(&self, run: &RunKey, form: ReadFormat, seq: u64, encoder: &Encoder);

    /// Returns the tail of a thread.
    ///
    /// Take the tail before reading the store, to miss nothing.
    fn tail(&self, thread: &ThreadKey) -> Arc<Tail>;

    /// Returns a number that changes with every commit, before its caller learns of it; `None` if the log does not
    /// see every commit.
    ///
    /// A cache of what was read after it was taken is valid until it changes.
    fn version(&self) -> Option<u64> {
        None
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
