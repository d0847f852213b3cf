//! The JSON resources of runs and threads. Fields of a newer server are kept in `others`.

use std::fmt;

use runwire_model::Timestamp;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use crate::read::Cursor;

/// The status of a run.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RunStatus {
    /// Nothing was written yet.
    Pending,
    /// It is running.
    Running,
    /// It waits for the answer to an interaction.
    Suspended,
    /// It completed.
    Completed,
    /// It failed.
    Failed,
    /// It was cancelled.
    Cancelled,
    /// A status that this version does not know.
    Unknown(String),
}

impl RunStatus {
    const KNOWN: [Self; 6] =
        [Self::Pending, Self::Running, Self::Suspended, Self::Completed, Self::Failed, Self::Cancelled];

    /// Returns the value on the wire.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Pending => "pending",
            Self::Running => "running",
            Self::Suspended => "suspended",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Unknown(word) => word,
        }
    }

    /// Returns true if the run has ended.
    pub fn is_closed(&self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }
}

impl From<&str> for RunStatus {
    fn from(word: &str) -> Self {
        let known = Self::KNOWN.into_iter().find(|status| status.as_str() == word);
        known.unwrap_or_else(|| Self::Unknown(word.to_owned()))
    }
}

impl fmt::Display for RunStatus {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl Serialize for RunStatus {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for RunStatus {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(|word| word.as_str().into())
    }
}

/// A run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RunInfo {
    /// Its id.
    pub run_id: String,
    /// The thread that it is in.
    pub thread_id: String,
    /// Its agent.
    #[serde(default)]
    pub agent: Option<String>,
    /// The person's message; a very long one is truncated.
    #[serde(default)]
    pub message: Option<String>,
    /// Its status.
    pub status: RunStatus,
    /// When it was created.
    #[serde(default, with = "time")]
    pub created_at: Option<Timestamp>,
    /// When the first event was written.
    #[serde(default, with = "time")]
    pub started_at: Option<Timestamp>,
    /// When it ended.
    #[serde(default, with = "time")]
    pub ended_at: Option<Timestamp>,
    /// The cursor after its last record.
    #[serde(default)]
    pub cursor: Option<Cursor>,
    /// Counts of records, events, messages, tool calls and steps.
    #[serde(default)]
    pub counts: RunCounts,
    /// Token usage, if the agent reports it.
    #[serde(default)]
    pub usage: Option<Usage>,
    /// Its interactions.
    #[serde(default)]
    pub interactions: Vec<InteractionInfo>,
    /// Why it failed.
    #[serde(default)]
    pub error: Option<RunError>,
    /// Rules of the dialect's document that its frames break.
    #[serde(default, skip_serializing_if = "Warnings::is_empty")]
    pub warnings: Warnings,
    /// Whether its cancellation was requested.
    #[serde(default)]
    pub cancel_requested: bool,
    /// Hint for the creator: the agent's name is unknown, but close to another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub others: Map<String, Value>,
}

/// Counts of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
#[serde(default)]
pub struct RunCounts {
    /// Records of the log.
    pub records: u64,
    /// Events.
    pub events: u64,
    /// Texts.
    pub messages: u64,
    /// Tool calls.
    pub tool_calls: u64,
    /// Steps.
    pub steps: u64,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub others: Map<String, Value>,
}

/// Tokens of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
#[serde(default)]
pub struct Usage {
    /// Prompt tokens.
    pub prompt_tokens: u64,
    /// Completion tokens.
    pub completion_tokens: u64,
    /// All tokens.
    pub total_tokens: u64,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub others: Map<String, Value>,
}

/// A summary of an interaction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct InteractionInfo {
    /// Its id.
    pub interaction_id: String,
    /// `form` or `approval`.
    #[serde(default)]
    pub kind: String,
    /// `open`, or its outcome.
    #[serde(default)]
    pub status: String,
    /// Its title.
    #[serde(default)]
    pub title: Option<String>,
    /// When it expires.
    #[serde(default, with = "time")]
    pub expires_at: Option<Timestamp>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub others: Map<String, Value>,
}

/// Why a run failed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RunError {
    /// The code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// The message for people.
    #[serde(default)]
    pub message: String,
    /// Details such as the exit code of a program; omitted in lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub others: Map<String, Value>,
}

/// Rules of the dialect's document that a run's accepted frames break.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
#[serde(default)]
pub struct Warnings {
    /// Total number.
    pub count: u64,
    /// The first distinct ones; omitted in lists.
    pub first: Vec<Warning>,
}

impl Warnings {
    /// Returns true if there are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
}

/// A rule of the dialect's document that frames break.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Warning {
    /// The first record that breaks it.
    #[serde(default)]
    pub seq: u64,
    /// Number of occurrences.
    #[serde(default)]
    pub times: u64,
    /// The dialect.
    #[serde(default)]
    pub dialect: String,
    /// Code of the rule.
    #[serde(default)]
    pub code: String,
    /// Path of the invalid field, separated by dots.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// JSON pointer to the invalid field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pointer: Option<String>,
    /// The section of the dialect's document.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub section: Option<String>,
    /// The found and the expected value.
    #[serde(default)]
    pub message: String,
    /// How to fix it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub others: Map<String, Value>,
}

/// The response to a heartbeat.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Heartbeat {
    /// The run's status.
    pub status: RunStatus,
    /// Whether its cancellation was requested.
    #[serde(default)]
    pub cancel_requested: bool,
}

/// A thread.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ThreadInfo {
    /// Its id.
    pub thread_id: String,
    /// Whether it may have several open runs at once.
    #[serde(default)]
    pub parallel: bool,
    /// When it was created.
    #[serde(default, with = "time")]
    pub created_at: Option<Timestamp>,
    /// The cursor after its last record.
    #[serde(default)]
    pub cursor: Option<Cursor>,
    /// The oldest record that retention has kept.
    #[serde(default)]
    pub oldest: u64,
    /// Its open runs.
    #[serde(default)]
    pub open_runs: Vec<String>,
    /// Number of runs.
    #[serde(default)]
    pub runs: u64,
    /// The person's first message.
    #[serde(default)]
    pub title: Option<String>,
    /// Its latest run.
    #[serde(default)]
    pub latest: Option<LatestRun>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub others: Map<String, Value>,
}

/// A summary of a thread's latest run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct LatestRun {
    /// Its id.
    pub run_id: String,
    /// Its agent.
    #[serde(default)]
    pub agent: Option<String>,
    /// Its status.
    pub status: RunStatus,
    /// When it started or ended.
    #[serde(default, with = "time")]
    pub at: Option<Timestamp>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub others: Map<String, Value>,
}

/// A page of a thread's messages, in the order in which their runs started.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Messages {
    /// The messages of people (`role` is `user`), and each run folded into one object (`assistant`).
    pub messages: Vec<Value>,
    /// The `before` of the next page; `None` at the end.
    #[serde(default)]
    pub next: Option<String>,
}

/// Serde functions for timestamps as strings.
pub(super) mod time {
    use super::{Deserialize, Deserializer, Serialize, Serializer, Timestamp};

    #[expect(clippy::ref_option, reason = "serde hands over a reference")]
    pub(in crate::resources) fn serialize<S: Serializer>(
        time: &Option<Timestamp>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        time.map(|time| time.to_string()).serialize(serializer)
    }

    pub(in crate::resources) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Timestamp>, D::Error> {
        let text = Option::<String>::deserialize(deserializer)?;
        Ok(text.and_then(|text| Timestamp::parse(&text)))
    }
}
