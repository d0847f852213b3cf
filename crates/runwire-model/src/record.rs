//! Records: what the log stores under one `seq`, and how earlier ones are looked up.

use serde::{Deserialize, Serialize};

use crate::dialect::Dialect;
use crate::event::{Event, InteractionRequested, Notice, ToolCalled};
use crate::json::Json;
use crate::run::{RunText, join};
use crate::time::Timestamp;

/// Who added an event to a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum By {
    /// The producer's frame says it.
    Producer,
    /// The decoder, because the normal form needs it.
    Decoder,
    /// The guard, because the life of a run needs it.
    Guard,
    /// The server, or a person through it.
    Server,
}

/// An event and who added it.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The event.
    pub event: Event,
    /// Who added it.
    pub by: By,
}

/// Where an event stands in its thread.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Place {
    /// The record.
    pub seq: u64,
    /// The event in it, from 0.
    pub index: u32,
}

/// What one accepted frame, or one act of the server, means.
///
/// The log keeps the frame's bytes beside it; translation needs only what is here.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    /// Its number in the thread, contiguous from 1.
    pub seq: u64,
    /// When it was written.
    pub at: Timestamp,
    /// The time that the producer's frame tells, if it does.
    pub source_time: Option<Timestamp>,
    /// The dialect of the producer's frame; none for an act of the server.
    pub dialect: Option<Dialect>,
    /// The events it means.
    pub entries: Vec<Entry>,
}

/// A message as chat clients keep it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ChatMessage {
    /// Its id.
    pub id: String,
    /// `user`, `assistant`, `tool`, …
    pub role: String,
    /// Its text.
    pub content: String,
    /// The calls that it makes: id, name and the arguments' JSON text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<(String, String, String)>,
    /// The call that it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
    /// Whether a subagent of the current run wrote it.
    #[serde(skip)]
    pub is_subagents: bool,
}

/// Looks up what a run has stored before, so that states need not gather it.
///
/// The record that is being encoded counts as stored; the one that is being decoded does not. Places are
/// where to begin looking; an implementation that keeps everything at hand may ignore them.
pub trait Earlier {
    /// Gathers the text of a message that began at a place, or of a thought that is open or ends in the current
    /// record.
    fn text(&self, start: Place, message_id: &str) -> String;
    /// Gathers the argument pieces of a call that began at a place.
    fn arguments(&self, start: Place, call_id: &str) -> String;
    /// Finds the `tool.called` of a call without a result, or with one in the current record.
    fn call(&self, start: Place, call_id: &str) -> Option<ToolCalled>;
    /// Finds an open question, or one settled in the current record.
    fn question(&self, place: Place, interaction_id: &str) -> Option<InteractionRequested>;
    /// Finds the last fatal notice.
    fn notice(&self, place: Place) -> Option<Notice>;
    /// Gathers the assistant's texts of the run outside subagents, in the order in which they began.
    fn run_texts(&self) -> Vec<RunText>;
    /// Joins the same texts: the run's whole answer.
    fn run_text(&self) -> String {
        let texts = self.run_texts();
        join(texts.iter().map(|text| (text.id.as_str(), text.content.as_str())))
    }
    /// Returns the thread's state; nothing where it is not known, or the current record's patch did not fit.
    fn state(&self) -> Option<Json>;
    /// Lists the thread's messages.
    fn messages(&self) -> Vec<ChatMessage>;
}
