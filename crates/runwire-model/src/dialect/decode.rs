//! Reads frames in two steps: `open` reads the envelope, which says to which run a frame belongs; `decode` adds the
//! events that the frame stands for to that run's record.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::registry::Refinement;
use super::{Dialect, RecordBuilder};
use crate::ErrorCode;
use crate::event::{Body, Event};
use crate::json::{FieldError, FrameFault, Json, Object, check_frame};
use crate::run::{AnswerTexts, Digest, Refusal};
use crate::time::Timestamp;

/// Error of a frame that cannot be decoded. It changes nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The bytes are no frame of any dialect.
    #[error(transparent)]
    Frame(#[from] FrameFault),
    /// A field is missing or of the wrong type.
    #[error(transparent)]
    Field(#[from] FieldError),
    /// The guard refuses an event of the frame.
    #[error(transparent)]
    Refused(#[from] Refusal),
}

impl DecodeError {
    /// Returns the stable code.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Frame(fault) => fault.code(),
            Self::Field(_) => ErrorCode::BadField,
            Self::Refused(refusal) => refusal.code(),
        }
    }

    /// Returns the field at fault, with dots between the levels.
    pub fn field(&self) -> Option<&str> {
        match self {
            Self::Field(error) => Some(&error.field),
            _ => None,
        }
    }
}

/// Envelope of a frame: the thread and run that it belongs to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Envelope {
    /// The thread's id in the source.
    pub thread: Option<String>,
    /// The run's id in the source.
    pub run: Option<String>,
    /// The frame's own time.
    pub time: Option<Timestamp>,
    /// Whether the frame can begin a run after another one has ended.
    pub starts: bool,
    /// Whether the frame starts a run.
    pub begins: bool,
}

/// A frame whose envelope has been read.
#[derive(Debug)]
pub struct OpenedFrame<'a> {
    /// Its envelope.
    pub envelope: Envelope,
    pub(super) object: Object<'a>,
    /// SSE event name.
    pub(super) name: Option<&'a str>,
    text: &'a str,
}

impl<'a> OpenedFrame<'a> {
    /// Returns the whole frame, for `foreign`.
    pub(super) fn whole(&self) -> &'a str {
        self.text.trim()
    }
}

/// The message or call that a chunk without an id continues.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Chunk {
    Text(String),
    Thinking(String),
    Call(String),
}

/// State of a decoder between two frames of one producer, beside the run's own.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct DecoderState {
    /// Frames to skip, because a slot before them carries their events.
    pub(super) skip: u64,
    /// The message or call that a chunk without an id continues.
    pub(super) chunk: Option<Chunk>,
    /// Id of the open span around thoughts.
    pub(super) span: Option<String>,
    /// The texts that the producer has called its whole answer, before the frame that ends the run.
    #[serde(default)]
    pub(super) answer: Option<AnswerTexts>,
    /// Thinking that came in pieces, by its id: it may come whole after it has ended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) thoughts: Vec<StreamedThought>,
}

/// Thinking that came in pieces, or whole.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct StreamedThought {
    id: String,
    /// All of it.
    pub(super) all: Digest,
    /// What came of it last, without other events between.
    pub(super) last: Digest,
}

/// Thoughts that a decoder remembers.
const REMEMBERED: usize = 16;

impl DecoderState {
    /// Adds a piece of thinking, which goes on with the last one or comes after other events.
    pub(super) fn grow_thought(&mut self, id: &str, piece: &str, goes_on: bool) {
        let piece = Digest::without_whitespace(piece);
        match self.thoughts.iter_mut().find(|thought| thought.id == id) {
            Some(thought) => {
                thought.all = thought.all.then(piece);
                thought.last = if goes_on { thought.last.then(piece) } else { piece };
            }
            None => self.remember_thought(id, piece),
        }
    }

    /// Sets what is known of a thought to its whole.
    pub(super) fn set_thought(&mut self, id: &str, whole: &str) {
        self.thoughts.retain(|thought| thought.id != id);
        self.remember_thought(id, Digest::without_whitespace(whole));
    }

    fn remember_thought(&mut self, id: &str, digest: Digest) {
        if self.thoughts.len() == REMEMBERED {
            self.thoughts.remove(0);
        }
        self.thoughts.push(StreamedThought { id: id.to_owned(), all: digest, last: digest });
    }

    /// Returns what is known of a thought.
    pub(super) fn thought(&self, id: &str) -> Option<&StreamedThought> {
        self.thoughts.iter().find(|thought| thought.id == id)
    }
}

/// Decoder of the frames of one producer.
///
/// ```
/// use runwire_model::dialect::{Decoder, Dialect, RecordBuilder};
/// use runwire_model::run::{Authority, RunState};
/// use runwire_model::window::Window;
///
/// let mut decoder = Decoder::new(Dialect::Loom);
/// let mut run = RunState::new("thread-1", "run-1");
/// let window = Window::default();
/// let mut entries = Vec::new();
/// let frame = decoder.open(None, br#"{"type":"message_chunk","content":"Hi","id":"think"}"#).unwrap();
/// let mut builder = RecordBuilder::new(&mut run, &window, Authority::Producer, Dialect::Loom, 1, &mut entries);
/// decoder.decode(frame, &mut builder).unwrap();
/// let types: Vec<_> = entries.iter().map(|entry| entry.event.body.type_name()).collect();
/// assert_eq!(types, ["run.started", "text.started", "text.delta"]);
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Decoder {
    dialect: Dialect,
    state: DecoderState,
}

impl Decoder {
    /// Makes the decoder of a dialect. `text` cannot be read; its frames are all foreign.
    pub fn new(dialect: Dialect) -> Self {
        Self { dialect, state: DecoderState::default() }
    }

    /// Returns the dialect known so far: a stream may turn out to be of a profile of its dialect.
    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// Returns the dialect to decode a frame in: it may show that the stream is of a profile of its dialect.
    pub fn dialect_with(&self, frame: &OpenedFrame<'_>) -> Dialect {
        let refinement = self.dialect.spec().read.as_ref().and_then(|read| read.refinement);
        match refinement {
            Some(Refinement { dialect, shows }) if shows(&frame.object) => dialect,
            _ => self.dialect,
        }
    }

    /// Reads a frame's envelope.
    pub fn open<'a>(&self, name: Option<&'a str>, data: &'a [u8]) -> Result<OpenedFrame<'a>, DecodeError> {
        self.open_with(name, data, |_, _| {})
    }

    /// Reads a frame's envelope, and shows the whole frame before, so that it is parsed once.
    pub fn open_with<'a>(
        &self,
        name: Option<&'a str>,
        data: &'a [u8],
        see: impl FnOnce(&Object<'a>, &'a str),
    ) -> Result<OpenedFrame<'a>, DecodeError> {
        let text = check_frame(data)?;
        let mut object = Object::parse_checked(text)?;
        see(&object, text);
        let envelope = match &self.dialect.spec().read {
            Some(read) => (read.open)(&mut object, name)?,
            None => Envelope::default(),
        };
        Ok(OpenedFrame { envelope, object, name, text })
    }

    /// Adds the events of a frame to its record. An error leaves decoder and run unchanged.
    pub fn decode(
        &mut self,
        frame: OpenedFrame<'_>,
        builder: &mut RecordBuilder<'_>,
    ) -> Result<(), DecodeError> {
        let before = (self.dialect, self.state.clone());
        let decoded = match self.state.chunk {
            // The frame ends what chunks began, whether or not it can be read.
            Some(_) => builder.atomically(|builder| self.decode_frame(frame, builder)),
            None => self.decode_frame(frame, builder),
        };
        if decoded.is_err() {
            (self.dialect, self.state) = before;
        }
        decoded
    }

    fn decode_frame(
        &mut self,
        frame: OpenedFrame<'_>,
        builder: &mut RecordBuilder<'_>,
    ) -> Result<(), DecodeError> {
        self.dialect = self.dialect_with(&frame);
        let state = &mut self.state;
        builder.read(frame.whole(), frame.name, |builder| match &self.dialect.spec().read {
            Some(read) => (read.decode)(state, frame, builder),
            None => Ok(builder.foreign(frame.whole(), frame.name)?),
        })
    }
}

/// Reads the event of an extension slot; `None` if the value is no event.
pub(super) fn slot_event(json: &Json) -> Option<Event> {
    Event::from_json(json)
}

/// Takes the residue out of the object that may carry it, and adds its events, which replace those of the native fields.
///
/// Returns `false` without a residue.
pub(super) fn decode_residue(
    holder: Option<&mut Object<'_>>,
    builder: &mut RecordBuilder<'_>,
) -> Result<bool, DecodeError> {
    let Some(residue) = holder.and_then(take_residue) else { return Ok(false) };
    let Ok(items) = serde_json::from_str::<Vec<&serde_json::value::RawValue>>(residue.text()) else {
        return Ok(false);
    };
    let events: Option<Vec<Event>> =
        items.into_iter().map(|item| slot_event(&Json::from_raw(item))).collect();
    let Some(events) = events else { return Ok(false) };
    builder.atomically(|builder| match <[Event; 2]>::try_from(events) {
        Ok([started, delta]) if is_continuation(&started, &delta) => builder.continuation(started, delta),
        Ok(events) => events.into_iter().try_for_each(|event| builder.slot(event)),
        Err(events) => events.into_iter().try_for_each(|event| builder.slot(event)),
    })?;
    Ok(true)
}

/// Returns true for a residue that continues the text before it.
fn is_continuation(started: &Event, delta: &Event) -> bool {
    matches!((&started.body, &delta.body), (Body::TextStarted(_), Body::TextDelta(_)))
}

fn take_residue(object: &mut Object<'_>) -> Option<Json> {
    let raw = object.get("runwire")?;
    raw.get().starts_with('[').then(|| object.take("runwire").map(Json::from_raw)).flatten()
}

/// Reads the arguments of a call: an object, or a string that holds one.
pub(super) fn read_arguments(called: &mut crate::event::ToolCalled, json: Option<Json>) {
    match json {
        Some(json) if json.is_object() => called.arguments = json,
        None => called.arguments = Json::empty_object(),
        Some(json) if json.is_null() => called.arguments = Json::empty_object(),
        Some(json) => crate::run::set_arguments(called, &json.text_form()),
    }
}

/// Converts a borrowed text into an owned one.
pub(super) fn owned(text: Option<Cow<'_, str>>) -> Option<String> {
    text.map(Cow::into_owned)
}
