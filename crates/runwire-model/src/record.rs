//! Records: what the log stores under one `seq`, and the lookup of stored events.

use serde::{Deserialize, Serialize};

use crate::dialect::Dialect;
use crate::event::{Event, InteractionRequested, Notice, ToolCalled};
use crate::json::Json;
use crate::run::{RunText, join};
use crate::time::Timestamp;

/// Origin of an event of a record: who added it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EventOrigin {
    /// The producer: its frame states the event.
    Producer,
    /// The decoder: the normal form needs the event.
    Decoder,
    /// The guard: a well-formed run needs the event.
    Guard,
    /// The server, for itself or for a person.
    Server,
}

/// An event of a record, and its origin.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The event.
    pub event: Event,
    /// What added it.
    pub origin: EventOrigin,
}

/// Position of an event in its thread.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct EventPosition {
    /// `seq` of the record.
    pub seq: u64,
    /// Index of the event in the record.
    pub index: u32,
}

/// The meaning of one accepted frame, or of one action of the server.
///
/// The log stores the frame's bytes beside it; translation needs only this.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    /// Its number in the thread, contiguous from 1.
    pub seq: u64,
    /// When it was written.
    pub at: Timestamp,
    /// Time in the producer's frame.
    pub source_time: Option<Timestamp>,
    /// Dialect of the producer's frame; `None` for an action of the server.
    pub dialect: Option<Dialect>,
    /// Its events.
    pub entries: Vec<Entry>,
}

/// A message in the form that chat clients keep.
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

/// Lookup of a run's stored events, so that states need not hold them.
///
/// The record that is being encoded counts as stored; the one that is being decoded does not. The positions say where
/// to start reading; an implementation in memory may ignore them.
pub trait History {
    /// Returns the text of a message that began at `start`, or of a thought that is open or ends in the current record.
    fn text(&self, start: EventPosition, message_id: &str) -> String;
    /// Returns the argument text of a call that began at `start`.
    fn arguments(&self, start: EventPosition, call_id: &str) -> String;
    /// Returns the `tool.called` of a call without a result, or with one in the current record.
    fn call(&self, start: EventPosition, call_id: &str) -> Option<ToolCalled>;
    /// Returns an interaction that is open, or resolved in the current record.
    fn interaction(&self, position: EventPosition, interaction_id: &str) -> Option<InteractionRequested>;
    /// Returns the fatal notice at a position.
    fn notice(&self, position: EventPosition) -> Option<Notice>;
    /// Returns the assistant's texts outside subagents, in the order in which they began.
    fn run_texts(&self) -> Vec<RunText>;
    /// Returns these texts joined: the run's whole answer.
    fn run_text(&self) -> String {
        let texts = self.run_texts();
        join(texts.iter().map(|text| (text.id.as_str(), text.content.as_str())))
    }
    /// Returns the thread's state; `None` if it is unknown, or if the current record's patch did not apply.
    fn state(&self) -> Option<Json>;
    /// Returns the thread's messages.
    fn messages(&self) -> Vec<ChatMessage>;
}
