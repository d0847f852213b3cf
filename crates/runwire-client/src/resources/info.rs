//! Runs and threads as a server shows them. What a newer server adds is kept in `others`.

use std::fmt;

use runwire_model::Timestamp;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use crate::read::Cursor;

/// How a run stands.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RunStatus {
    /// Nothing was written yet.
    Pending,
    /// It works.
    Running,
    /// It waits for a person.
    Suspended,
    /// It came to its end.
    Completed,
    /// It failed.
    Failed,
    /// It was cancelled.
    Cancelled,
    /// Something that this version has no name for.
    Unknown(String),
}

impl RunStatus {
    const KNOWN: [Self; 6] =
        [Self::Pending, Self::Running, Self::Suspended, Self::Completed, Self::Failed, Self::Cancelled];

    /// Tells the word on the wire.
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

    /// Tells whether nothing more can happen in the run.
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
    /// Who works on it.
    #[serde(default)]
    pub agent: Option<String>,
    /// What the person asked, the beginning of a very long text.
    #[serde(default)]
    pub message: Option<String>,
    /// How it stands.
    pub status: RunStatus,
    /// When it was created.
    #[serde(default, with = "time")]
    pub created_at: Option<Timestamp>,
    /// When the first event was written.
    #[serde(default, with = "time")]
    pub started_at: Option<Timestamp>,
    /// When it was closed.
    #[serde(default, with = "time")]
    pub ended_at: Option<Timestamp>,
    /// The place after everything that was written.
    #[serde(default)]
    pub cursor: Option<Cursor>,
    /// How much of what it has.
    #[serde(default)]
    pub counts: Counts,
    /// Tokens, where the agent tells them.
    #[serde(default)]
    pub usage: Option<Usage>,
    /// The questions that it asked.
    #[serde(default)]
    pub interactions: Vec<InteractionInfo>,
    /// Why it failed.
    #[serde(default)]
    pub error: Option<RunError>,
    /// What its frames break of their dialect's document.
    #[serde(default, skip_serializing_if = "Warnings::is_empty")]
    pub warnings: Warnings,
    /// Whether somebody asked it to stop.
    #[serde(default)]
    pub cancel_requested: bool,
    /// What whoever has just created it may not have meant: an agent whose name is close to that of another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// What this version has no name for.
    #[serde(flatten)]
    pub others: Map<String, Value>,
}

/// How much of what a run has.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
#[serde(default)]
pub struct Counts {
    /// Records of the log.
    pub records: u64,
    /// Events.
    pub events: u64,
    /// Texts.
    pub messages: u64,
    /// Calls of tools.
    pub tool_calls: u64,
    /// Steps.
    pub steps: u64,
    /// What this version has no name for.
    #[serde(flatten)]
    pub others: Map<String, Value>,
}

/// Tokens of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
#[serde(default)]
pub struct Usage {
    /// Of all prompts.
    pub prompt_tokens: u64,
    /// Of all completions.
    pub completion_tokens: u64,
    /// In all.
    pub total_tokens: u64,
    /// What this version has no name for.
    #[serde(flatten)]
    pub others: Map<String, Value>,
}

/// A question of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct InteractionInfo {
    /// Its id.
    pub interaction_id: String,
    /// `form` or `approval`.
    #[serde(default)]
    pub kind: String,
    /// `open`, or what became of it.
    #[serde(default)]
    pub status: String,
    /// Its title.
    #[serde(default)]
    pub title: Option<String>,
    /// When it is too late to answer.
    #[serde(default, with = "time")]
    pub expires_at: Option<Timestamp>,
    /// What this version has no name for.
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
    /// What a person reads.
    #[serde(default)]
    pub message: String,
    /// What else is known, such as the exit code of a program; lists leave it out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
    /// What this version has no name for.
    #[serde(flatten)]
    pub others: Map<String, Value>,
}

/// What the frames of a run break of their dialect's document, where they were written all the same.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
#[serde(default)]
pub struct Warnings {
    /// How many there are in all.
    pub count: u64,
    /// The first ones, each different one once; lists leave them out.
    pub first: Vec<Warning>,
}

impl Warnings {
    /// Tells whether there are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
}

/// One thing that frames of a run break of their dialect's document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Warning {
    /// The first record that has it.
    #[serde(default)]
    pub seq: u64,
    /// How often it was found.
    #[serde(default)]
    pub times: u64,
    /// The dialect.
    #[serde(default)]
    pub dialect: String,
    /// The rule that is broken.
    #[serde(default)]
    pub code: String,
    /// The field at fault, with dots between the levels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// The field at fault as a JSON pointer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pointer: Option<String>,
    /// The section of the dialect's document.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub section: Option<String>,
    /// What is wrong, and what is expected.
    #[serde(default)]
    pub message: String,
    /// What probably helps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// What this version has no name for.
    #[serde(flatten)]
    pub others: Map<String, Value>,
}

/// What a producer learns by saying that it lives.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Beat {
    /// How the run stands.
    pub status: RunStatus,
    /// Whether somebody asked it to stop.
    #[serde(default)]
    pub cancel_requested: bool,
}

/// A thread.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ThreadInfo {
    /// Its id.
    pub thread_id: String,
    /// Whether it may have several open runs.
    #[serde(default)]
    pub parallel: bool,
    /// When it was created.
    #[serde(default, with = "time")]
    pub created_at: Option<Timestamp>,
    /// The place after everything that was written.
    #[serde(default)]
    pub cursor: Option<Cursor>,
    /// The oldest record that retention has left.
    #[serde(default)]
    pub oldest: u64,
    /// The runs that are open.
    #[serde(default)]
    pub open_runs: Vec<String>,
    /// How many runs it has.
    #[serde(default)]
    pub runs: u64,
    /// What the person asked first.
    #[serde(default)]
    pub title: Option<String>,
    /// The run that began last.
    #[serde(default)]
    pub latest: Option<LatestRun>,
    /// What this version has no name for.
    #[serde(flatten)]
    pub others: Map<String, Value>,
}

/// The run of a thread that began last.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct LatestRun {
    /// Its id.
    pub run_id: String,
    /// Who works on it.
    #[serde(default)]
    pub agent: Option<String>,
    /// How it stands.
    pub status: RunStatus,
    /// When it began, or ended.
    #[serde(default, with = "time")]
    pub at: Option<Timestamp>,
    /// What this version has no name for.
    #[serde(flatten)]
    pub others: Map<String, Value>,
}

/// A page of a thread's messages, in the order their runs began.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Messages {
    /// The messages: what people said (`role` is `user`), and each run folded into one object (`assistant`).
    pub messages: Vec<Value>,
    /// The run before which older ones are left, if any are.
    #[serde(default)]
    pub next: Option<String>,
}

/// Times as texts.
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
