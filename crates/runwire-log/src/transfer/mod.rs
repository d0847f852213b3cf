//! The transfer format: everything that is stored of a thread, item by item, for export and import.
//!
//! [`LogUpkeep::export`](crate::LogUpkeep::export) returns the items in the order in which [`import`](crate::LogUpkeep::import)
//! takes them: the thread; the runs whose events retention has removed; then each run before its first record, the
//! records in their order, and after the last record of a run its producers; at the end whatever is open, and
//! [`TransferItem::End`]. [`line`](mod@line) encodes them as lines of JSON.

pub mod line;

use std::sync::Arc;

use runwire_model::ErrorCode;
use runwire_model::dialect::Decoder;
use runwire_model::record::ChatMessage;
use runwire_model::run::{ReplayError, RunState, Status};
use runwire_model::{Json, Timestamp};
use serde::{Deserialize, Serialize};

use crate::error::LogError;
use crate::info::RunSummary;
use crate::record::StoredRecord;

/// An item of an exported thread.
#[derive(Debug, Clone, PartialEq)]
pub enum TransferItem {
    /// The thread itself; it comes first.
    Thread(Box<TransferThread>),
    /// A run of the thread.
    Run(Box<TransferRun>),
    /// A record.
    Record(Arc<StoredRecord>),
    /// The state of a run, or of the thread, beside its records.
    State(Box<TransferState>),
    /// The end of the export, at this `seq`.
    End {
        /// The thread's last `seq`.
        head: u64,
    },
}

impl TransferItem {
    /// Returns its approximate size in bytes.
    pub fn weight(&self) -> usize {
        match self {
            Self::Record(stored) => stored.frame.as_ref().map_or(0, bytes::Bytes::len) + 256,
            _ => 256,
        }
    }
}

/// A thread, without its runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TransferThread {
    /// Its id.
    pub thread_id: String,
    /// Whether several runs may be open at once.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub parallel: bool,
    /// When it was created.
    pub created_at: Timestamp,
    /// The first `seq` in the export.
    pub oldest: u64,
    /// The time of the last record, where all of them were removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head_at: Option<Timestamp>,
    /// The thread's messages before the oldest record.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<ChatMessage>,
    /// The thread's state before the oldest record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<Json>,
    /// The guard's state of the run before the oldest record, where that run itself does not move.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guard: Option<RunState>,
}

/// A run, without its records.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TransferRun {
    /// Its id.
    pub run_id: String,
    /// When it was created.
    pub created_at: Timestamp,
    /// The thread that its request named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread_id: Option<String>,
    /// The agent that its request named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The user message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The id of that message, for a client that had given it one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_id: Option<String>,
    /// What the agent was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Json>,
    /// Whether a request created it, rather than its first frame.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub asked: bool,
    /// What is left of a run whose events retention has removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trimmed: Option<TrimmedRun>,
}

/// What is left of a run whose events retention has removed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrimmedRun {
    /// How it ended.
    pub status: Status,
    /// When its first record was written.
    pub started_at: Timestamp,
    /// When it was closed.
    pub ended_at: Timestamp,
    /// Its first `seq`.
    pub first_seq: u64,
    /// Its last `seq`.
    pub last_seq: u64,
    /// Its counters.
    pub summary: RunSummary,
    /// The guard's state, of the run that began last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guard: Option<RunState>,
}

/// The state of a run, or of the thread as a whole, beside its records.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TransferState {
    /// The run; nothing for the thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<String>,
    /// The last `seq` of the run, or of the thread, that this is true for.
    pub last_seq: u64,
    /// The guard's state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guard: Option<RunState>,
    /// The producers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub producers: Vec<TransferProducer>,
}

/// The position of a producer in its stream.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TransferProducer {
    /// Its name; empty for the one without a name.
    pub name: String,
    /// Its newest incarnation.
    pub epoch: u64,
    /// The index of the frame that it must send next.
    pub next: u64,
    /// The state of its decoder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decoder: Option<Decoder>,
    /// For a thread that is written as a whole: the runs that its frames go to, the last one at the end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub routes: Vec<TransferRoute>,
}

/// Where frames of a source's session or run go.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TransferRoute {
    /// What the source calls the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<String>,
    /// What the source calls the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// The run.
    pub to: String,
}

/// The part of a thread to export.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExportRequest {
    /// Only a run, with those parallel to it; without it the whole thread.
    pub run: Option<String>,
    /// Continue after this record; without it from the start.
    pub after: Option<u64>,
}

/// A page of an export.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ExportPage {
    /// The items, in order.
    pub items: Vec<TransferItem>,
    /// The value of [`ExportRequest::after`] for the next page; `None` at the end.
    pub next: Option<u64>,
}

/// An item with its line number.
pub type NumberedItem = (u64, TransferItem);

/// The result of an import.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Imported {
    /// Records that this import has written.
    pub imported: u64,
    /// Records that existed before.
    pub skipped: u64,
    /// The thread's last `seq`.
    pub head: u64,
    /// The item at which it stopped, if it did; the items before it stay.
    pub fault: Option<ImportFault>,
}

/// The item at which an import stopped, and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct ImportFault {
    /// The line of the item.
    pub line: u64,
    /// What is wrong.
    pub problem: ImportProblem,
}

/// Why an item was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ImportProblem {
    /// Something different exists under the same name.
    #[error("{0} is there already, and is not the same")]
    Conflict(String),
    /// Records before this one are missing.
    #[error("record {expected} was expected next, not {got}")]
    Gap {
        /// The `seq` that must come next.
        expected: u64,
        /// The `seq` that came.
        got: u64,
    },
    /// No log could contain it.
    #[error("{0}")]
    Bad(String),
    /// The log has refused it.
    #[error(transparent)]
    Log(#[from] LogError),
}

impl ImportProblem {
    /// Returns the stable code.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Conflict(_) => ErrorCode::ImportConflict,
            Self::Gap { .. } => ErrorCode::ImportGap,
            Self::Bad(_) => ErrorCode::BadRecord,
            Self::Log(error) => error.code(),
        }
    }
}

impl From<ReplayError> for ImportProblem {
    fn from(error: ReplayError) -> Self {
        Self::Bad(error.to_string())
    }
}
