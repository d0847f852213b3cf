//! Encodes records into the frames of a reader's dialect.

use std::cell::{Cell, RefCell};

use serde::{Deserialize, Serialize};

use super::shown_state::ShownState;
use super::{Dialect, Frames, runwire};
use crate::event::{Body, Event, Extra, TextDelta, TextFinished, TextStarted, ToolFinished, ToolStatus};
use crate::json::{Json, Object, ObjectWriter};
use crate::record::{Entry, EventOrigin, EventPosition, History, Record};
use crate::run::{Digest, hash_of};

/// Distance of the ordering values of two runs in a thread's stream, for each record between their starts.
const ORDER_STEP: u64 = 1 << 16;

/// How much of the canonical events the frames of another dialect carry.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fidelity {
    /// Native frames where the dialect has them, slots elsewhere.
    #[default]
    Native,
    /// The same, and in each native frame the exact events that it stands for.
    Full,
}

impl Fidelity {
    /// Returns the name on the command line and in requests.
    pub fn name(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Full => "full",
        }
    }

    /// Finds the fidelity of a name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Native, Self::Full].into_iter().find(|fidelity| fidelity.name() == name)
    }
}

/// Which extension frames a reader sees.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Slots {
    /// All of them.
    #[default]
    All,
    /// Interactions, answers, suspensions and a person's texts only.
    Asks,
    /// None of them.
    None,
}

impl Slots {
    /// Every choice.
    pub const ALL: [Self; 3] = [Self::All, Self::Asks, Self::None];

    /// Returns the name on the command line and in requests.
    pub fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Asks => "asks",
            Self::None => "none",
        }
    }

    /// Finds the choice of a name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|slots| slots.name() == name)
    }
}

/// Options of a reader beside its dialect. Frames are a function of the records and of these.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct EncoderOptions {
    /// How much of the canonical events native frames carry.
    pub fidelity: Fidelity,
    /// Which extension frames are written. Those that are not use up no ordering value.
    pub slots: Slots,
}

impl EncoderOptions {
    /// Returns the options without those that change no frame of the dialect.
    pub fn of(self, dialect: Dialect) -> Self {
        if dialect.has_extensions() { self } else { Self::default() }
    }

    /// Returns the number of a record's first frame in cursors, which shows what they are valid for: 0 with
    /// the default options, else a 12-bit hash of dialect and options × 2²⁰.
    pub fn first_frame(self, dialect: Dialect) -> u32 {
        let options = self.of(dialect);
        if options == Self::default() {
            return 0;
        }
        let fidelity = options.fidelity.name();
        let name = format!("{dialect}/{fidelity}/{}", options.slots.name());
        // Neither 0, which stands for the default, nor 2¹² - 1, whose last frame would be `u32::MAX`.
        let tag = 1 + hash_of(&name) % 0xffe;
        (tag as u32) << FRAME_BITS
    }
}

/// Bits of a cursor's frame number that count frames; those above them hold the hash of the options.
pub const FRAME_BITS: u32 = 20;

impl From<Fidelity> for EncoderOptions {
    fn from(fidelity: Fidelity) -> Self {
        Self { fidelity, ..Self::default() }
    }
}

/// The ids in a reader's frames.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Ids {
    pub(super) thread: String,
    pub(super) run: String,
}

/// Translates the records of one run into frames of one dialect.
///
/// Its state is small and serialisable; what must be gathered is looked up in `history`. The frames depend
/// on nothing but the records, so a reader that comes back finds the same frames at the same cursors.
///
/// ```
/// use runwire_model::dialect::{Dialect, Encoder, Fidelity, Frames};
/// use runwire_model::event::{Event, RunStarted};
/// use runwire_model::record::{EventOrigin, Entry, Record};
/// use runwire_model::window::Window;
/// use runwire_model::Timestamp;
///
/// let mut encoder = Encoder::new(Dialect::Loom, "sess-1", "run-1", Fidelity::Native);
/// let started = Event::new(RunStarted { message: Some("hi".into()), ..Default::default() });
/// let entries = vec![Entry { event: started, origin: EventOrigin::Producer }];
/// let record = Record { seq: 1, at: Timestamp(0), source_time: None, dialect: None, entries };
/// let mut frames = Frames::default();
/// encoder.step(&record, &Window::default(), &mut frames);
/// let (_, data) = frames.iter().next().unwrap();
/// assert_eq!(
///     std::str::from_utf8(data).unwrap(),
///     r#"{"session_id":"sess-1","event_id":1,"type":"run_start","run_id":"run-1","message":"hi"}"#
/// );
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Encoder {
    dialect: Dialect,
    options: EncoderOptions,
    ids: Ids,
    /// `seq` of the run's first record; 0 before it.
    first_seq: u64,
    /// Whether the frames are part of a stream of the whole thread.
    in_thread: bool,
    shown: ShownState,
    state: State,
}

macro_rules! define_state {
    ($($(#[$doc:meta])* $variant:ident => $module:ident,)*) => {
        /// What each dialect's encoder remembers beside what all of them do.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        #[serde(rename_all = "kebab-case")]
        enum State {
            $($variant(super::$module::Encoder),)*
        }

        impl State {
            fn new(dialect: Dialect) -> Self {
                match dialect {
                    $(Dialect::$variant => Self::$variant(super::$module::Encoder::default()),)*
                }
            }

            fn dialect(&mut self) -> &mut dyn Encode {
                match self {
                    $(Self::$variant(encoder) => encoder,)*
                }
            }
        }
    };
}
with_dialects!(define_state);

/// The encoder of a dialect.
pub(super) trait Encode {
    /// Writes an event as frames of the dialect, or into its slot.
    fn event(&mut self, context: &EncodeContext<'_>, out: &mut Frames);

    /// Writes an event into the dialect's extension slot.
    fn write_slot(&mut self, context: &EncodeContext<'_>, out: &mut Frames);

    /// Writes an event into the dialect's extension slot, if the reader's options show it.
    fn slot(&mut self, context: &EncodeContext<'_>, out: &mut Frames) {
        if context.shows_slot() {
            self.write_slot(context, out);
        }
    }

    /// Returns the counter that orders the dialect's frames, if it has one.
    fn order(&mut self) -> Option<&mut u64> {
        None
    }

    /// Returns true if the dialect's frames name their subagent.
    fn knows_subagents(&self) -> bool {
        false
    }

    /// Returns true if the dialect has frames for pieces of arguments.
    fn streams_arguments(&self) -> bool {
        false
    }

    /// Returns true if the dialect shows an event that its decoder implied.
    fn shows_implied(&self, _context: &EncodeContext<'_>) -> bool {
        false
    }

    /// Returns the event without fields that the dialect never shows; `None` if it shows all of them.
    fn scrub(&self, _event: &Event) -> Option<Event> {
        None
    }
}

/// An event to encode, with all that its frames depend on.
pub(super) struct EncodeContext<'a> {
    pub(super) record: &'a Record,
    pub(super) entry: &'a Entry,
    pub(super) position: EventPosition,
    pub(super) ids: &'a Ids,
    pub(super) shown: &'a ShownState,
    pub(super) history: &'a dyn History,
    /// Added to an ordering value that must grow over the runs of a thread; 0 in a run's own stream.
    pub(super) order_base: u64,
    /// Whether the record's dialect is the reader's.
    pub(super) same_dialect: bool,
    pub(super) full: bool,
    slots: Slots,
    /// Whether every event is written exactly, beside its native form.
    exact: bool,
    /// The residue of the next native frame.
    residue: Cell<Residue>,
    /// Events that replace the event in its residue, unless it is exact.
    residue_events: RefCell<Vec<Event>>,
    /// Whether the current frame leaves out the source's own fields.
    bare: Cell<bool>,
}

#[derive(Clone, Copy, PartialEq)]
enum Residue {
    /// None: the native form loses nothing that matters.
    None,
    /// The event.
    Event,
    /// An empty one: the frame before shows the event.
    Empty,
}

/// Extension field: the frame named its call, by an id that looks minted.
pub(super) const CALL_ID: &str = "own.call_id";

/// Returns true if the id of a call has the form of ids minted in a run.
pub(super) fn looks_minted(call_id: &str, run_id: &str) -> bool {
    let number = call_id.strip_prefix(run_id).and_then(|rest| rest.strip_prefix(":c"));
    number.is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Prefixes of unknown fields that are not part of the payload.
const FIELD_PREFIXES: [&str; 5] = ["metadata.", "meta.", "frame.", "chunk.", "own."];

/// Returns true for an unknown field that is not part of the payload.
fn has_prefix(name: &str) -> bool {
    FIELD_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

/// Returns an unknown field's name in the source.
pub(super) fn field_of(name: &str) -> &str {
    FIELD_PREFIXES.iter().find_map(|prefix| name.strip_prefix(prefix)).unwrap_or(name)
}

impl EncodeContext<'_> {
    /// Returns the event.
    pub(super) fn event(&self) -> &Event {
        &self.entry.event
    }

    /// Returns true if the event has no frame of its own: a frame of the reader's dialect implied it.
    pub(super) fn is_silent(&self) -> bool {
        self.same_dialect && !self.full && self.entry.origin == EventOrigin::Decoder
    }

    /// Puts the event into the residue, because its native form loses a part that matters.
    pub(super) fn keep_in_residue(&self) {
        if self.residue.get() == Residue::None {
            self.residue.set(Residue::Event);
        }
    }

    /// Replaces the event in its residue by other events, unless it is exact.
    pub(super) fn replace_in_residue(&self, events: Vec<Event>) {
        if !self.exact {
            self.residue_events.replace(events);
        }
    }

    /// Puts a piece into the residue if its text or thought needs an id.
    pub(super) fn keep_id(&self, message_id: &str) {
        if self.shown.needs_id(message_id) {
            self.keep_in_residue();
        }
    }

    /// Puts a piece of text into the residue if it needs an id, or continues the text before it.
    pub(super) fn keep_text(&self, delta: &TextDelta) {
        self.keep_id(&delta.message_id);
        if self.shown.needs_id(&delta.message_id) || !self.shown.begins_continuation(&delta.message_id) {
            return;
        }
        let started = TextStarted { message_id: delta.message_id.clone(), role: None };
        let started = Event { body: started.into(), extra: Extra::default(), ..self.event().clone() };
        self.keep_in_residue();
        self.replace_in_residue(vec![started, self.event().clone()]);
    }

    /// Puts a replaced text into the residue. A message that needs an id and was not shown yet begins with it.
    pub(super) fn keep_replacement(&self, finished: &TextFinished, content: &str) {
        self.keep_in_residue();
        if self.shown.awaits_first_frame(&finished.message_id) {
            let message_id = finished.message_id.clone();
            let delta = TextDelta { message_id, content: content.to_owned(), ..Default::default() };
            let delta = Event { body: delta.into(), extra: Extra::default(), ..self.event().clone() };
            let end = TextFinished { content: None, ..finished.clone() };
            self.replace_in_residue(vec![delta, Event { body: end.into(), ..self.event().clone() }]);
        }
    }

    /// Returns the content that replaces what was shown of a message.
    pub(super) fn replacement<'f>(&self, finished: &'f TextFinished) -> Option<&'f str> {
        let shown = self.shown.text(&finished.message_id).map(|text| text.digest);
        finished.content.as_deref().filter(|content| shown != Some(Digest::of(content)))
    }

    /// Returns true if other events replace the event in its residue.
    pub(super) fn has_replacement_events(&self) -> bool {
        !self.residue_events.borrow().is_empty()
    }

    /// Puts a run's end into the residue with the tokens that its native form sums up.
    pub(super) fn keep_usage(&self) {
        let ends = self.event().body.is_terminal() && !self.same_dialect;
        let Some(tokens) = self.shown.usage.filter(|_| ends) else { return };
        let mut event = self.event().clone();
        let summary = match &mut event.body {
            Body::RunCompleted(completed) => &mut completed.summary,
            Body::RunFailed(failed) => &mut failed.summary,
            Body::RunCancelled(cancelled) => &mut cancelled.summary,
            _ => return,
        };
        let summary = summary.get_or_insert_default();
        summary.prompt_tokens = Some(tokens.prompt);
        summary.completion_tokens = Some(tokens.completion);
        summary.total_tokens = Some(tokens.total);
        self.replace_in_residue(vec![event]);
    }

    /// Puts a result into the residue where a document with one field for result and error loses a part of it.
    pub(super) fn keep_result_beside_error(&self, finished: &ToolFinished) {
        if finished.status == ToolStatus::Partial || (finished.result.is_some() && finished.error.is_some()) {
            self.keep_in_residue();
        }
    }

    /// Puts a result into the residue that is an object in the document and another value in the source.
    pub(super) fn keep_result_kind(&self, finished: &ToolFinished, said: ToolFinished) {
        let is_object = finished.result.as_ref().is_none_or(Json::is_object);
        if finished.status == ToolStatus::Partial {
            self.keep_in_residue();
        } else if !is_object && !self.same_dialect {
            self.keep_result(said);
        }
    }

    /// Puts a result into the residue as its frame has it, with the tool's name of its call.
    pub(super) fn keep_result(&self, said: ToolFinished) {
        self.keep_in_residue();
        let call = self.shown.call(&said.call_id);
        let name = call.map(|call| call.name.clone()).or(said.name.clone());
        let body = ToolFinished { name, ..said }.into();
        self.replace_in_residue(vec![Event { body, extra: Extra::default(), ..self.event().clone() }]);
    }

    /// Writes a result as an object, any other value as the `value` of one.
    pub(super) fn write_object_result(&self, object: &mut ObjectWriter<'_>, result: &Json) {
        if self.same_dialect || result.is_object() {
            return object.json("result", result);
        }
        let mut wrapped = object.object("result");
        wrapped.json("value", result);
        wrapped.end();
    }

    /// Returns true if the next native frame carries a residue.
    pub(super) fn has_residue(&self) -> bool {
        self.residue.get() != Residue::None
    }

    /// Writes the residue, if one is due, into the object that carries it.
    pub(super) fn write_residue(&self, object: &mut ObjectWriter<'_>) {
        let residue_events = self.residue_events.borrow();
        let events = match self.residue.get() {
            Residue::None => return,
            Residue::Event if residue_events.is_empty() => std::slice::from_ref(self.event()),
            Residue::Event => &residue_events,
            Residue::Empty => &[],
        };
        object.array("runwire", events, |out, event| {
            let mut object = ObjectWriter::begin(out);
            event.write(&mut object);
            object.end();
        });
        self.residue.set(Residue::Empty);
    }

    /// Writes a frame that represents no event: without the source's own fields, and with an empty residue
    /// where residues are exact.
    pub(super) fn beside_event(&self, write: impl FnOnce()) {
        let due = self.residue.replace(if self.exact { Residue::Empty } else { Residue::None });
        self.without_own(write);
        self.residue.set(due);
    }

    /// Writes a frame without the source's own fields.
    pub(super) fn without_own(&self, write: impl FnOnce()) {
        self.bare.set(true);
        write();
        self.bare.set(false);
    }

    /// Returns the record's entries before and after this one.
    pub(super) fn neighbours(&self) -> (&[Entry], &[Entry]) {
        let (before, rest) = self.record.entries.split_at(self.position.index as usize);
        (before, rest.get(1..).unwrap_or_default())
    }

    /// Returns true if the event ends a text and the record then adds another one: a whole text that is new.
    pub(super) fn ends_before_addition(&self) -> bool {
        let is_piece = |entry: &Entry| matches!(entry.event.body, Body::TextDelta(_));
        matches!(self.event().body, Body::TextFinished(_)) && self.neighbours().1.iter().any(is_piece)
    }

    /// Returns a field of the source's frame that the model does not know, if the frame shows it.
    pub(super) fn own_field(&self, name: &str) -> Option<&Json> {
        self.event().extra.get(name).filter(|_| self.same_dialect && !self.bare.get())
    }

    /// Writes the unknown fields of the source's frame that belong to one object, in the source's own dialect.
    ///
    /// The prefix (`metadata.`) names the object of the envelope; an empty one is the payload.
    pub(super) fn write_own_fields(&self, prefix: &str, object: &mut ObjectWriter<'_>) {
        if !self.same_dialect || self.bare.get() {
            return;
        }
        for (name, value) in self.event().extra.iter() {
            match name.strip_prefix(prefix) {
                Some(name) if !prefix.is_empty() || !has_prefix(name) => object.json(name, value),
                _ => {}
            }
        }
    }

    /// Writes the members of an object of the source's envelope, except those that are replaced.
    pub(super) fn write_rest(&self, object: &mut ObjectWriter<'_>, source: &Object<'_>, stamped: &[&str]) {
        for (name, raw) in source.fields() {
            let is_ours = stamped.contains(&name) || (name == "runwire" && self.has_residue());
            if !is_ours {
                object.raw(name, raw.get());
            }
        }
    }

    /// Returns true if the reader's options show the event in an extension slot.
    pub(super) fn shows_slot(&self) -> bool {
        match self.slots {
            Slots::All => true,
            Slots::Asks => self.is_ask(),
            Slots::None => false,
        }
    }

    /// Returns true for an interaction, its answer, a suspension, a resumption and a person's text.
    fn is_ask(&self) -> bool {
        let is_person = |role: Option<&str>| role == Some("user");
        let is_persons = |id: &str| self.shown.text(id).is_some_and(|text| is_person(text.role.as_deref()));
        match &self.event().body {
            Body::InteractionRequested(_) | Body::InteractionResolved(_) => true,
            Body::RunSuspended(_) | Body::RunResumed(_) => true,
            Body::TextStarted(started) => is_person(started.role.as_deref()),
            Body::TextDelta(delta) => is_persons(&delta.message_id),
            Body::TextFinished(finished) => is_persons(&finished.message_id),
            _ => false,
        }
    }

    /// Returns true if a call's id was minted here, so that a frame of its own dialect has none.
    pub(super) fn is_own_minted(&self, call_id: &str) -> bool {
        self.same_dialect && looks_minted(call_id, &self.ids.run) && self.event().extra.get(CALL_ID).is_none()
    }

    /// Empties the residues of the event's further frames: they show no event of their own.
    pub(super) fn mark_shown(&self) {
        if self.full {
            self.residue.set(Residue::Empty);
        }
    }

    /// Drops the residue, because a slot carries the event.
    pub(super) fn drop_residue(&self) {
        self.residue.set(Residue::None);
    }

    /// Writes the event as a frame of the `runwire` dialect: what slots carry.
    pub(super) fn write_native(&self, out: &mut Vec<u8>) {
        runwire::write(out, self.record, self.ids, self.event());
    }
}

impl Encoder {
    /// Makes the encoder of a run for readers of a dialect.
    pub fn new(
        dialect: Dialect,
        thread_id: impl Into<String>,
        run_id: impl Into<String>,
        options: impl Into<EncoderOptions>,
    ) -> Self {
        let state = State::new(dialect);
        let ids = Ids { thread: thread_id.into(), run: run_id.into() };
        let options = options.into();
        Self { dialect, options, ids, first_seq: 0, in_thread: false, shown: ShownState::default(), state }
    }

    /// Sets whether the frames are part of a stream of the whole thread, rather than of the run alone.
    ///
    /// Loom's `event_id` then grows over the runs. The state is the same either way.
    #[must_use]
    pub fn in_thread(self, in_thread: bool) -> Self {
        Self { in_thread, ..self }
    }

    /// Returns the dialect.
    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// Returns true for the first piece of a continuation that its frame marks as one.
    pub(crate) fn begins_continuation(&self, event: &Event) -> bool {
        let Body::TextDelta(delta) = &event.body else { return false };
        self.dialect.spec().has_unnamed_pieces && self.shown.begins_continuation(&delta.message_id)
    }

    /// Adds the frames that a record becomes.
    pub fn step(&mut self, record: &Record, history: &dyn History, out: &mut Frames) {
        if self.first_seq == 0 {
            self.first_seq = record.seq;
        }
        let order_base = match self.in_thread {
            true => self.first_seq.saturating_sub(1).saturating_mul(ORDER_STEP),
            false => 0,
        };
        let same_dialect = record.dialect == Some(self.dialect);
        if same_dialect {
            self.shown.source_time = record.source_time.or(self.shown.source_time);
        }
        let EncoderOptions { fidelity, slots } = self.options;
        let full = fidelity == Fidelity::Full && self.dialect.has_extensions();
        for (index, entry) in record.entries.iter().enumerate() {
            let position = EventPosition { seq: record.seq, index: index as u32 };
            self.shown.before_event(&entry.event, position, record.at);
            let scrubbed = self.state.dialect().scrub(&entry.event);
            let scrubbed = scrubbed.map(|event| Entry { event, origin: entry.origin });
            let entry = scrubbed.as_ref().unwrap_or(entry);
            // A dialect without subagents carries their events exactly; tokens are summed.
            let apart = entry.event.subagent_run_id.is_some() && !matches!(entry.event.body, Body::Usage(_));
            let exact = full || (apart && !self.state.dialect().knows_subagents());
            let residue = Cell::new(if exact { Residue::Event } else { Residue::None });
            let shown = &self.shown;
            let (residue_events, bare) = (RefCell::default(), Cell::default());
            let ids = &self.ids;
            let context = EncodeContext {
                record,
                entry,
                position,
                ids,
                shown,
                history,
                order_base,
                same_dialect,
                full,
                slots,
                exact,
                residue,
                residue_events,
                bare,
            };
            let dialect = self.state.dialect();
            if context.is_silent() && !dialect.shows_implied(&context) {
                let order = dialect.order().map(|order| *order);
                dialect.event(&context, &mut Frames::default());
                if let (Some(order), Some(now)) = (order, dialect.order()) {
                    *now = order;
                }
            } else {
                let before = out.len();
                dialect.event(&context, out);
                if exact && out.len() == before {
                    dialect.slot(&context, out);
                }
            }
            let chunks = self.state.dialect().streams_arguments();
            self.shown.after_event(&entry.event, chunks);
        }
    }
}
