//! The log: what Runwire stores, in which order, and what it promises about it.
//!
//! One interface, [`Log`], in small traits by who uses them ([`log`]); its embedded implementation,
//! [`sqlite::SqliteLog`]; its implementation for clusters, [`postgres::PostgresLog`]; and `conformance`, the suite that
//! any implementation must pass (a cargo feature). This page is the specification of what is stored.
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
//! - Every open run has a lease; [`LogUpkeep::sweep`] closes runs whose lease has expired. While no node could reach
//!   the store, no lease expires.
//! - A run whose agent a server has started belongs to that server. Once it is gone, [`LogNode::claim_orphans`]
//!   assigns the run to one other server; later writes of the first are refused by the epoch of its producer.
//! - An outbox message is committed with its event. It stays until [`LogOutbox::mark_delivered`] removes it, whatever
//!   happens to the run; only deleting the thread removes undelivered ones.
//! - A thread can move to another log: [`LogUpkeep::export`] and [`LogUpkeep::import`] reproduce the same records under the
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
pub mod log;
pub mod outage;
pub mod outbox;
pub mod postgres;
mod query;
pub mod record;
pub mod run_history;
mod sql;
pub mod sqlite;
pub mod stats;
mod store;
pub mod tail;
pub mod transfer;
mod txn;
mod unreadable_rows;
mod waiting_checkpoints;
mod writer_queue;

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
pub use log::{
    AppendReply, Cancel, Cancelled, Log, LogEvents, LogLookups, LogNode, LogOutbox, LogRuns, LogUpkeep,
    QueuedAppend, ReadFormat, RecordPage, ReplySink, RetentionLimits,
};
pub use outbox::{DeliveryOutcome, OutboxKind, OutboxMessage, Subscriber};
pub use record::{StoredRecord, Wanted};
pub use run_history::{HistoryCache, RecordSource, RunHistory};
pub use stats::{LogStats, SubscriberBacklog, WriteStats};
pub use tail::{Tail, TailHead};
pub use transfer::{ExportPage, ExportRequest, ImportFault, ImportProblem, Imported, TransferItem};

/// The versions of a store's tables, before and after they were created.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Migrated {
    /// The version that it had; 0 is a store without tables.
    pub from: u32,
    /// The version that it has.
    pub to: u32,
}
