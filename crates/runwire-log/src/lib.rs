//! The log: what Runwire stores, in which order, and what it promises about it.
//!
//! One small trait, [`Log`]; its embedded implementation, [`sqlite::SqliteLog`]; and `conformance`, the suite that
//! any implementation must pass (a cargo feature). This page is the specification of what is stored.
//!
//! # What is stored
//!
//! | thing | what it holds |
//! |---|---|
//! | **thread** | tenant and id, whether runs may lie side by side, the oldest `seq` that is kept, and the messages and the state as they stood there |
//! | **run** | tenant and id, its thread, what `POST /v1/runs` said, status and times, its first and last `seq`, the guard's state, and a summary (counts, tokens, questions, error) |
//! | **producer** | of a run, of a thread that is written as a whole, or of a tenant whose frames name their threads: name, epoch, index of the next frame, dialect and decoder state, and for a thread the runs that its frames go to |
//! | **question** | for each that is open: its run, the record that asks it, when, and until when; the inbox |
//! | **record** | see [`StoredRecord`]: `seq`, time, run, the producer's frame byte for byte, its dialect and SSE name, and the events it means, each with who added it |
//! | **notice** | for each event that a subscriber is to be told of and was not: the event, how often it was tried, and when it is due again |
//! | **checkpoint** | the state of an encoder after a record. A cache: it may be lost |
//!
//! # What holds
//!
//! - `seq` is contiguous per thread from 1; `at` never goes backwards in a thread.
//! - One append is one unit: its records, the run's row with the guard's state, and the producer's row with the
//!   decoder's state are committed together. What is refused changes nothing, also not its neighbours in the
//!   same commit. The frames before a bad one stay written.
//! - Nothing is acknowledged or shown to a reader before it is durable.
//! - The check of a producer's epoch and index comes before every other.
//! - A run has at most one terminal event, and it is its last record. A thread has one open run, unless it was
//!   created with `parallel`.
//! - A question has one answer, which is a record of its run: the first that is committed. After it expired, or
//!   its run has ended, it takes none.
//! - Ids of threads and runs are used once. Those of a deleted thread stay used up.
//! - Every open run has a lease; [`Log::sweep`] closes those whose lease ran out. While no node at all could reach
//!   the store, no lease runs.
//! - A run whose agent a server has started is that server's. Once it is gone, [`Log::claim_orphans`] gives the run to one
//!   other; what the first may still write is refused by the epoch of its producer.
//! - A notice is committed with its event. It stays until [`Log::told`] says that it is done, whatever happens to
//!   the run; only deleting the thread removes what was waiting before.
//! - A thread can move to another log: what [`Log::export`] gives and [`Log::import`] takes makes the same records
//!   under the same `seq`, and the same states, so every stream and cursor is the same there.
//! - A commit that fails ends the use of the log: whether it happened is found out by opening the store again.

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

/// Records of a thread, in order.
#[derive(Debug, Clone, Default)]
pub struct RecordPage {
    /// The records; empty at the end of the thread.
    pub records: Vec<Arc<StoredRecord>>,
    /// The thread's last `seq`, as the read saw it.
    pub head: u64,
    /// The first `seq` that is kept.
    pub oldest: u64,
}

/// Who asks a run to stop, and why.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cancel {
    /// Why.
    pub reason: Option<String>,
    /// Who.
    pub by: Option<String>,
}

/// What came of asking a run to stop.
#[derive(Debug, Clone, PartialEq)]
pub struct Cancelled {
    /// The run, after it.
    pub run: RunInfo,
    /// Whether something was written; nothing is where the run has ended, or was asked before.
    pub new: bool,
}

/// What retention removes: whole closed runs, oldest first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RetentionLimits {
    /// Runs that ended before this moment.
    pub ended_before: Option<Timestamp>,
    /// Runs that ended longer ago than this, by the store's clock.
    pub age: Option<Duration>,
    /// As many as it takes to keep the records of all threads within this many bytes.
    pub max_bytes: Option<u64>,
}

impl RetentionLimits {
    /// Returns the moment that an age means when it is `now`.
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

/// How a run is translated: a checkpoint belongs to one of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct OutputFormat {
    /// The dialect.
    pub dialect: Dialect,
    /// How much it carries.
    pub fidelity: Fidelity,
    /// RunFilter extension frames it shows.
    pub slots: Slots,
}

impl OutputFormat {
    /// Makes the form of a dialect with its default options.
    pub const fn new(dialect: Dialect) -> Self {
        Self { dialect, fidelity: Fidelity::Native, slots: Slots::All }
    }

    /// Makes the form of a dialect and options, without those that change nothing in it.
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

    /// Tells its name, as checkpoints have it.
    fn name(self) -> String {
        let Self { dialect, fidelity, slots } = self;
        format!("{dialect}/{}/{}", fidelity.name(), slots.name())
    }
}

/// A durable, ordered log of threads.
#[async_trait]
pub trait Log: Send + Sync + 'static {
    /// Creates a thread; creating it again in the same words gives it again.
    async fn create_thread(&self, thread: NewThread) -> Result<Created<ThreadInfo>, LogError>;

    /// Creates a run that nothing was written to; creating it again in the same words gives it again.
    async fn create_run(&self, run: NewRun) -> Result<Created<RunInfo>, LogError>;

    /// Writes frames; returns when they are durable.
    async fn append(&self, append: Append) -> Result<Appended, LogError>;

    /// Asks a run to stop; a closed one is told as it is.
    async fn cancel(&self, run: &RunKey, cancel: Cancel) -> Result<Cancelled, LogError>;

    /// Answers a question; returns when the answer is durable.
    ///
    /// The first answer wins. The same one again, by the same person, is told as it is; another is refused with
    /// the one that won. Whether it fits the question was found out before: a question never changes.
    async fn answer(&self, run: &RunKey, answer: Answer) -> Result<Answered, LogError> {
        let answered = self.answer_all(run, vec![answer]).await?.pop();
        answered.ok_or_else(|| LogError::Unavailable("the log does not say what came of an answer".into()))
    }

    /// Answers several questions of a run, each once, in one record. Where one of the answers is refused, none is
    /// taken.
    async fn answer_all(&self, run: &RunKey, answers: Vec<Answer>) -> Result<Vec<Answered>, LogError>;

    /// Renews a run's lease.
    async fn heartbeat(&self, run: &RunKey) -> Result<RunInfo, LogError>;

    /// Closes the runs whose lease ran out, and returns how many.
    async fn sweep(&self) -> Result<usize, LogError>;

    /// Returns a page of everything that is stored of a thread, so that it can move to another log.
    async fn export(&self, thread: &ThreadKey, part: &ExportRequest) -> Result<ExportPage, LogError>;

    /// Takes in items of a thread that moves here; returns when they are durable.
    ///
    /// A record must be just what the guard makes of its events. What is there already and is the same is passed
    /// over, so that an import that was cut off can be repeated. Until [`TransferItem::End`] the open runs of the thread
    /// have a lease that is long enough for that.
    async fn import(
        &self,
        thread: &ThreadKey,
        items: Vec<transfer::NumberedItem>,
    ) -> Result<Imported, LogError>;

    /// Deletes a thread and everything of it; `force` cancels the runs that are open.
    async fn delete_thread(&self, thread: &ThreadKey, force: bool) -> Result<(), LogError>;

    /// Removes what retention does not keep, and returns how many runs.
    async fn trim(&self, retention: RetentionLimits) -> Result<usize, LogError>;

    /// Returns a run.
    async fn run(&self, run: &RunKey) -> Result<RunInfo, LogError>;

    /// Lists runs, newest first.
    async fn runs(&self, query: RunQuery) -> Result<Vec<RunInfo>, LogError>;

    /// Takes up open runs of these agents, at most so many, whose server has started the agent and is gone. Each is
    /// given once: it belongs to whoever asked.
    async fn claim_orphans(&self, agents: &[&str], limit: usize) -> Result<Vec<OrphanedRun>, LogError>;

    /// Returns whether this node keeps house for all: one node at a time tells webhooks and removes what is old.
    fn on_duty(&self) -> bool {
        true
    }

    /// Returns a question, open or not.
    async fn interaction(&self, run: &RunKey, interaction_id: &str) -> Result<Interaction, LogError>;

    /// Lists the questions that are open, newest first.
    async fn interactions(&self, query: InteractionQuery) -> Result<InteractionPage, LogError>;

    /// Says who is to be told of which events from now on; what waits for anyone else is forgotten: at once, or after
    /// a day where other nodes may know them.
    ///
    /// Events that are imported are told to nobody: they happened elsewhere.
    async fn subscribe(&self, subscribers: Vec<Subscriber>) -> Result<(), LogError>;

    /// Lists what a subscriber is to be told, what is due first, first.
    async fn outbox(&self, subscriber: &str, limit: usize) -> Result<Vec<OutboxMessage>, LogError>;

    /// Says what became of telling a notice; one that is gone meanwhile is no matter.
    async fn mark_delivered(&self, message: u64, outcome: DeliveryOutcome) -> Result<(), LogError>;

    /// Watches for commits that bring notices.
    ///
    /// Whoever watches first and lists them afterwards misses none.
    fn outbox_changed(&self) -> watch::Receiver<()>;

    /// Returns a thread.
    async fn thread(&self, thread: &ThreadKey) -> Result<ThreadInfo, LogError>;

    /// Lists threads, newest first: those created before one, at most so many.
    async fn threads(
        &self,
        tenant: &str,
        before: Option<&str>,
        limit: usize,
    ) -> Result<Vec<ThreadInfo>, LogError>;

    /// Returns where the runs of a thread lie, in the order they began; those that retention removed are left out.
    async fn spans(&self, thread: &ThreadKey) -> Result<Vec<RunSpan>, LogError>;

    /// Returns how far a producer of a run is.
    async fn producer(&self, run: &RunKey, producer: &str) -> Result<Option<ProducerInfo>, LogError>;

    /// Returns how far a producer of a thread that is written as a whole is.
    async fn thread_producer(
        &self,
        thread: &ThreadKey,
        producer: &str,
    ) -> Result<Option<ProducerInfo>, LogError>;

    /// Reads the records after `after`, a page at most.
    async fn read(&self, thread: &ThreadKey, after: u64) -> Result<RecordPage, LogError>;

    /// Returns the thread's messages and state before a `seq`, as far as they are kept.
    async fn before(&self, thread: &ThreadKey, seq: u64) -> Result<Window, LogError>;

    /// Finds the newest checkpoint of a run that is not after `seq`.
    async fn checkpoint(
        &self,
        run: &RunKey,
        form: OutputFormat,
        seq: u64,
    ) -> Result<Option<(u64, Encoder)>, LogError>;

    /// Keeps the state of an encoder after a record, when there is time for it.
    fn keep_checkpoint(&self, run: &RunKey, form: OutputFormat, seq: u64, encoder: &Encoder);

    /// Follows a thread.
    ///
    /// Whoever takes the tail first and reads the store afterwards misses nothing.
    fn tail(&self, thread: &ThreadKey) -> Arc<Tail>;

    /// Returns a number that changes with every commit, before whoever caused it learns of it; nothing where the log
    /// does not see every commit.
    ///
    /// Whoever asks first and reads the store afterwards need not read again until it has changed.
    fn version(&self) -> Option<u64> {
        None
    }

    /// Returns how much was written since the log was opened, and what it holds now.
    async fn stats(&self) -> Result<LogStats, LogError>;

    /// Returns whether the log can be read and written.
    async fn ready(&self) -> Result<(), LogError>;

    /// Returns whether the log can be used, and what it leans on. Answers soon, also where nothing else does.
    async fn health(&self) -> Health {
        Health { store: Dependency::from_probe("store", self.ready().await), tail: None }
    }

    /// Returns how the node stands, without asking anybody.
    fn node_stats(&self) -> NodeStats {
        NodeStats::default()
    }

    /// Finishes what was begun and closes the store.
    async fn close(&self);
}
