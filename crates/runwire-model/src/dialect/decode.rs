//! Reading frames: opened first, so that it is known which run they belong to, then woven into that run.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::registry::Refinement;
use super::{Dialect, Weave, ag_ui};
use crate::event::{Body, Event};
use crate::json::{FieldError, FrameFault, Json, Object, check_frame};
use crate::run::Refusal;
use crate::time::Timestamp;

/// Why a frame cannot be written. Nothing has changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The bytes are no frame of any dialect.
    #[error(transparent)]
    Frame(#[from] FrameFault),
    /// A field is missing or of the wrong type.
    #[error(transparent)]
    Field(#[from] FieldError),
    /// The run may not take what the frame says.
    #[error(transparent)]
    Refused(#[from] Refusal),
}

impl DecodeError {
    /// Returns the stable code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Frame(fault) => fault.code(),
            Self::Field(_) => "bad_field",
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

/// What a frame says about where it belongs.
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
    /// Whether the frame says that a run begins.
    pub begins: bool,
}

/// A frame whose envelope has been read.
#[derive(Debug)]
pub struct Opened<'a> {
    /// Where it belongs.
    pub envelope: Envelope,
    pub(super) object: Object<'a>,
    /// The name that SSE carried.
    pub(super) name: Option<&'a str>,
    text: &'a str,
}

impl<'a> Opened<'a> {
    /// Returns the whole frame, for `foreign`.
    pub(super) fn whole(&self) -> &'a str {
        self.text.trim()
    }
}

/// What a decoder remembers between two frames of one producer, beside the run's own state.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct DecoderState {
    /// Frames to pass over, because what they say was told by a slot before them (`loom-export`).
    pub(super) skip: u64,
    /// The message or call that an AG-UI chunk without an id continues.
    pub(super) chunk: Option<ag_ui::Chunk>,
    /// The reasoning span that is open (AG-UI only).
    pub(super) span: Option<String>,
}

/// Reads the frames of one producer.
///
/// ```
/// use runwire_model::dialect::{Decoder, Dialect, Weave};
/// use runwire_model::run::{Authority, RunState};
/// use runwire_model::window::Window;
///
/// let mut decoder = Decoder::new(Dialect::Loom);
/// let mut run = RunState::new("thread-1", "run-1");
/// let window = Window::default();
/// let mut entries = Vec::new();
/// let frame = decoder.open(None, br#"{"type":"message_chunk","content":"Hi","id":"think"}"#).unwrap();
/// let mut weave = Weave::new(&mut run, &window, Authority::Producer, Dialect::Loom, 1, &mut entries);
/// decoder.decode(frame, &mut weave).unwrap();
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

    /// Returns the dialect, as far as it is known: `ag-ui` may turn out to be `social-app`.
    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// Returns the dialect that a frame will be read in: with it, `ag-ui` may turn out to be `social-app`.
    pub fn dialect_with(&self, frame: &Opened<'_>) -> Dialect {
        let refinement = self.dialect.spec().read.as_ref().and_then(|read| read.refinement);
        match refinement {
            Some(Refinement { dialect, shows }) if shows(&frame.object) => dialect,
            _ => self.dialect,
        }
    }

    /// Reads a frame's envelope.
    pub fn open<'a>(&self, name: Option<&'a str>, data: &'a [u8]) -> Result<Opened<'a>, DecodeError> {
        let text = check_frame(data)?;
        let mut object = Object::parse_checked(text)?;
        let envelope = match &self.dialect.spec().read {
            Some(read) => (read.open)(&mut object, name)?,
            None => Envelope::default(),
        };
        Ok(Opened { envelope, object, name, text })
    }

    /// Weaves a frame into its run. On an error nothing has changed.
    pub fn decode(&mut self, frame: Opened<'_>, weave: &mut Weave<'_>) -> Result<(), DecodeError> {
        let before = (self.dialect, self.state.clone());
        let woven = match self.state.chunk {
            // The frame ends what chunks began, whether or not it can be read.
            Some(_) => weave.atomically(|weave| self.weave(frame, weave)),
            None => self.weave(frame, weave),
        };
        if woven.is_err() {
            (self.dialect, self.state) = before;
        }
        woven
    }

    fn weave(&mut self, frame: Opened<'_>, weave: &mut Weave<'_>) -> Result<(), DecodeError> {
        self.dialect = self.dialect_with(&frame);
        let state = &mut self.state;
        weave.read(frame.whole(), frame.name, |weave| match &self.dialect.spec().read {
            Some(read) => (read.decode)(state, frame, weave),
            None => Ok(weave.foreign(frame.whole(), frame.name)?),
        })
    }
}

/// Reads the event of an extension slot; what is no event of ours is not a slot.
pub(super) fn slot_event(json: &Json) -> Option<Event> {
    Event::from_json(json)
}

/// Weaves what a residue tells: the events that a frame stands for, whatever its native fields say.
///
/// Returns `false` where there is no residue.
pub(super) fn weave_residue(residue: Option<&Json>, weave: &mut Weave<'_>) -> Result<bool, DecodeError> {
    let Some(residue) = residue else { return Ok(false) };
    let Ok(items) = serde_json::from_str::<Vec<&serde_json::value::RawValue>>(residue.text()) else {
        return Ok(false);
    };
    let events: Option<Vec<Event>> =
        items.into_iter().map(|item| slot_event(&Json::from_raw(item))).collect();
    let Some(events) = events else { return Ok(false) };
    weave.atomically(|weave| match <[Event; 2]>::try_from(events) {
        Ok([started, delta]) if is_continuation(&started, &delta) => weave.continuation(started, delta),
        Ok(events) => events.into_iter().try_for_each(|event| weave.slot(event)),
        Err(events) => events.into_iter().try_for_each(|event| weave.slot(event)),
    })?;
    Ok(true)
}

/// Returns whether a residue says that a text continues the one before it.
fn is_continuation(started: &Event, delta: &Event) -> bool {
    matches!((&started.body, &delta.body), (Body::TextStarted(_), Body::TextDelta(_)))
}

/// Takes a residue out of the object that carries it.
pub(super) fn take_residue(object: &mut Object<'_>) -> Option<Json> {
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

/// Turns a borrowed text into an owned one where it is needed.
pub(super) fn owned(text: Option<Cow<'_, str>>) -> Option<String> {
    text.map(Cow::into_owned)
}
