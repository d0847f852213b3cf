//! Texts and arguments of a run that are put together of their pieces.

use std::collections::HashMap;

use runwire_model::event::Body;
use runwire_model::record::Record;

/// Types of the events that texts, thoughts and arguments are gathered from.
pub(super) const PIECES: &[&str] = &["text.", "thinking.", "tool.args_", "tool.called"];
/// Types of the events that texts are gathered from.
pub(super) const TEXTS: &[&str] = &["text."];

/// What the open texts, thoughts and calls of a run have gathered since a record.
///
/// What has ended is dropped by the next record: a record that ends something may still ask for it.
#[derive(Debug, Clone, Default)]
pub(super) struct Gathered {
    /// The first record that was read.
    pub(super) from: u64,
    /// The last record that was read.
    pub(super) upto: u64,
    /// Texts and thoughts by the id of their message.
    pub(super) texts: HashMap<String, String>,
    /// Arguments by the id of their call.
    pub(super) arguments: HashMap<String, String>,
    ended_texts: Vec<String>,
    ended_calls: Vec<String>,
    bytes: usize,
}

impl Gathered {
    /// Makes one that begins with a record.
    pub(super) fn from(seq: u64) -> Self {
        Self { from: seq, upto: seq.saturating_sub(1), ..Self::default() }
    }

    /// Returns the bytes that were gathered.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns whether it saves reading: where all that it gathered has ended, later things begin anew.
    pub(super) fn is_useful(&self, start: u64, upto: u64) -> bool {
        let open = self.texts.len() + self.arguments.len() > self.ended_texts.len() + self.ended_calls.len();
        self.upto <= upto && (open || start <= self.upto)
    }

    /// Takes in the next record of the run.
    pub(super) fn absorb(&mut self, record: &Record) {
        let ended = self.ended_texts.drain(..).filter_map(|id| self.texts.remove(&id));
        let bytes: usize = ended.map(|text| text.len()).sum();
        let ended = self.ended_calls.drain(..).filter_map(|id| self.arguments.remove(&id));
        self.bytes -= bytes + ended.map(|text| text.len()).sum::<usize>();
        for entry in &record.entries {
            match &entry.event.body {
                Body::TextStarted(started) => self.start_text(&started.message_id),
                Body::ThinkingStarted(started) => self.start_text(&started.message_id),
                Body::TextDelta(delta) => self.add_text(&delta.message_id, &delta.content),
                Body::ThinkingDelta(delta) => self.add_text(&delta.message_id, &delta.content),
                Body::TextFinished(finished) => {
                    if let Some(content) = &finished.content {
                        self.replace_text(&finished.message_id, content);
                    }
                    self.end_text(&finished.message_id);
                }
                Body::ThinkingFinished(finished) => self.end_text(&finished.message_id),
                Body::ToolArgsStarted(started) => {
                    self.ended_calls.retain(|ended| *ended != started.call_id);
                    let before = self.arguments.insert(started.call_id.clone(), String::new());
                    self.bytes -= before.map_or(0, |text| text.len());
                }
                Body::ToolArgsDelta(delta) => {
                    if let Some(text) = self.arguments.get_mut(&delta.call_id) {
                        text.push_str(&delta.delta);
                        self.bytes += delta.delta.len();
                    }
                }
                Body::ToolCalled(called)
                    if self.arguments.contains_key(&called.call_id)
                        && !self.ended_calls.contains(&called.call_id) =>
                {
                    self.ended_calls.push(called.call_id.clone());
                }
                _ => {}
            }
        }
    }

    fn start_text(&mut self, id: &str) {
        self.ended_texts.retain(|ended| ended != id);
        let before = self.texts.insert(id.to_owned(), String::new());
        self.bytes -= before.map_or(0, |text| text.len());
    }

    fn add_text(&mut self, id: &str, piece: &str) {
        if let Some(text) = self.texts.get_mut(id) {
            text.push_str(piece);
            self.bytes += piece.len();
        }
    }

    fn replace_text(&mut self, id: &str, content: &str) {
        if let Some(text) = self.texts.get_mut(id) {
            self.bytes = self.bytes + content.len() - text.len();
            content.clone_into(text);
        }
    }

    fn end_text(&mut self, id: &str) {
        if self.texts.contains_key(id) && !self.ended_texts.iter().any(|ended| ended == id) {
            self.ended_texts.push(id.to_owned());
        }
    }
}
