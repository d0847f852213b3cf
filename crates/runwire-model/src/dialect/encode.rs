//! Writing frames: one record in, the frames it becomes in a reader's dialect out.

use std::cell::{Cell, RefCell};

use serde::{Deserialize, Serialize};

use super::registry::with_dialects;
use super::track::Track;
use super::{
    Dialect, Frames, ag_ui, agio, easyflow_chat, loom, loom_export, runwire, social_app, streaming_engine,
    text,
};
use crate::event::{Body, Event, Extra, TextDelta, TextFinished, TextStarted, ToolFinished, ToolStatus};
use crate::json::{Json, Object, ObjectWriter};
use crate::record::{By, Earlier, Entry, Place, Record};
use crate::run::{Digest, hash_of};

/// Distance of the ordering values of two runs in a thread's stream, for each record between their starts.
const ORDER_STEP: u64 = 1 << 16;

/// How much of the canonical events a foreign dialect carries.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fidelity {
    /// Native frames where the dialect has them, slots where it has not.
    #[default]
    Native,
    /// The same, and beside each native frame the exact events it stands for.
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
    /// All of them: everything that the dialect cannot say natively.
    #[default]
    All,
    /// Questions, answers, suspension and a person's words only.
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

/// What a reader may choose beside its dialect. Frames are a function of the records and of these.
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

/// The ids on a reader's wire.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Ids {
    pub(super) thread: String,
    pub(super) run: String,
}

/// Translates the records of one run into frames of one dialect.
///
/// Its state is small and serialisable; what must be gathered is looked up in `earlier`. The frames depend
/// on nothing but the records, so a reader that comes back finds the same frames at the same cursors.
///
/// ```
/// use runwire_model::dialect::{Dialect, Encoder, Fidelity, Frames};
/// use runwire_model::event::{Event, RunStarted};
/// use runwire_model::record::{By, Entry, Record};
/// use runwire_model::window::Window;
/// use runwire_model::Timestamp;
///
/// let mut encoder = Encoder::new(Dialect::Loom, "sess-1", "run-1", Fidelity::Native);
/// let started = Event::new(RunStarted { message: Some("hi".into()), ..Default::default() });
/// let entries = vec![Entry { event: started, by: By::Producer }];
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
    /// Whether the run is told in a stream of its whole thread.
    in_thread: bool,
    track: Track,
    state: State,
}

macro_rules! define_state {
    ($($(#[$doc:meta])* $variant:ident => $module:ident,)*) => {
        /// What each dialect's encoder remembers beside what all of them do.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        #[serde(rename_all = "kebab-case")]
        enum State {
            $($variant($module::Encoder),)*
        }

        impl State {
            fn new(dialect: Dialect) -> Self {
                match dialect {
                    $(Dialect::$variant => Self::$variant($module::Encoder::default()),)*
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

/// A dialect's way to tell an event.
pub(super) trait Encode {
    /// Returns an event in the dialect's own frames, or in its slot.
    fn event(&mut self, turn: &Turn<'_>, out: &mut Frames);

    /// Writes an event into the dialect's extension slot.
    fn write_slot(&mut self, turn: &Turn<'_>, out: &mut Frames);

    /// Returns an event in the dialect's extension slot, if the reader wants to see it there.
    fn slot(&mut self, turn: &Turn<'_>, out: &mut Frames) {
        if turn.shows_slot() {
            self.write_slot(turn, out);
        }
    }

    /// The counter that orders the dialect's frames, if it has one.
    fn order(&mut self) -> Option<&mut u64> {
        None
    }

    /// Whether the dialect's frames say which subagent they come from.
    fn knows_subagents(&self) -> bool {
        false
    }

    /// Whether the dialect tells the arguments of a call piece by piece.
    fn tells_chunks(&self) -> bool {
        false
    }

    /// Returns whether the dialect shows an event that decoding added to one of its own frames.
    fn shows_implied(&self, _turn: &Turn<'_>) -> bool {
        false
    }

    /// Takes out of an event what the dialect never shows; gives nothing where it shows all of it.
    fn scrub(&self, _event: &Event) -> Option<Event> {
        None
    }
}

/// An event that is to be told.
pub(super) struct Turn<'a> {
    pub(super) record: &'a Record,
    pub(super) entry: &'a Entry,
    pub(super) place: Place,
    pub(super) ids: &'a Ids,
    pub(super) track: &'a Track,
    pub(super) earlier: &'a dyn Earlier,
    /// Added to an ordering value that must grow over the runs of a thread; 0 in a run's own stream.
    pub(super) order_base: u64,
    /// Whether the record came in the reader's own dialect.
    pub(super) own: bool,
    pub(super) full: bool,
    slots: Slots,
    /// Whether all events around this one are told as they are.
    exact: bool,
    /// What the next native frame says in its residue.
    residue: Cell<Residue>,
    /// What stands for the event there by default, where the event alone would lose what is summed up.
    stand_in: RefCell<Vec<Event>>,
    /// Whether the frame that is being written has none of the source's own fields.
    bare: Cell<bool>,
}

#[derive(Clone, Copy, PartialEq)]
enum Residue {
    /// Nothing: the native form tells enough.
    None,
    /// The event.
    Event,
    /// That the event was told by the frame before.
    Told,
}

/// Extension field: the frame named its call, by an id that could have been minted.
pub(super) const CALL_ID: &str = "own.call_id";

/// Returns whether the id of a call could have been minted in a run.
pub(super) fn looks_minted(call_id: &str, run_id: &str) -> bool {
    let number = call_id.strip_prefix(run_id).and_then(|rest| rest.strip_prefix(":c"));
    number.is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Begins the name of an unknown field that stood elsewhere than in the payload.
const PLACES: [&str; 5] = ["metadata.", "meta.", "frame.", "chunk.", "own."];

/// Returns whether an unknown field stood elsewhere than in the payload.
fn is_placed(name: &str) -> bool {
    PLACES.iter().any(|place| name.starts_with(place))
}

/// Returns the name that an unknown field has in the source.
pub(super) fn field_of(name: &str) -> &str {
    PLACES.iter().find_map(|place| name.strip_prefix(place)).unwrap_or(name)
}

impl Turn<'_> {
    /// Returns the event.
    pub(super) fn event(&self) -> &Event {
        &self.entry.event
    }

    /// Returns whether readers are not shown the event: their own dialect's frame implies it.
    pub(super) fn is_silent(&self) -> bool {
        self.own && !self.full && self.entry.by == By::Decoder
    }

    /// Asks for the event beside its native form, which would lose a part that matters.
    pub(super) fn keep_whole(&self) {
        if self.residue.get() == Residue::None {
            self.residue.set(Residue::Event);
        }
    }

    /// Makes other events stand in the event's residue, except where it must be exact.
    pub(super) fn keep_instead(&self, events: Vec<Event>) {
        if !self.exact {
            self.stand_in.replace(events);
        }
    }

    /// Keeps that a text continues the one before it, where pieces have no id.
    pub(super) fn keep_continuation(&self, delta: &TextDelta) {
        if !self.track.begins_continuation(&delta.message_id) {
            return;
        }
        let started = TextStarted { message_id: delta.message_id.clone(), role: None };
        let started = Event { body: started.into(), extra: Extra::default(), ..self.event().clone() };
        self.keep_whole();
        self.keep_instead(vec![started, self.event().clone()]);
    }

    /// Returns the text that replaces what was told of a message.
    pub(super) fn replacement<'f>(&self, finished: &'f TextFinished) -> Option<&'f str> {
        let told = self.track.text(&finished.message_id).map(|text| text.digest);
        finished.content.as_deref().filter(|content| told != Some(Digest::of(content)))
    }

    /// Returns whether other events stand in the event's residue.
    pub(super) fn has_stand_in(&self) -> bool {
        !self.stand_in.borrow().is_empty()
    }

    /// Makes the residue of a run's end tell the tokens that its native form sums up.
    pub(super) fn keep_usage(&self) {
        let ends = self.event().body.is_terminal() && !self.own;
        let Some(tokens) = self.track.usage.filter(|_| ends) else { return };
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
        self.keep_instead(vec![event]);
    }

    /// Keeps what a result loses where the document has one text for result and error.
    pub(super) fn keep_result_beside_error(&self, finished: &ToolFinished) {
        if finished.status == ToolStatus::Partial || (finished.result.is_some() && finished.error.is_some()) {
            self.keep_whole();
        }
    }

    /// Keeps a result that the document has as an object and the source has not, with what else its frame says.
    pub(super) fn keep_result_kind(&self, finished: &ToolFinished, said: ToolFinished) {
        let is_object = finished.result.as_ref().is_none_or(Json::is_object);
        if finished.status == ToolStatus::Partial {
            self.keep_whole();
        } else if !is_object && !self.own {
            self.keep_result(said);
        }
    }

    /// Keeps a result as its frame says it, with the tool's name that its call tells.
    pub(super) fn keep_result(&self, said: ToolFinished) {
        self.keep_whole();
        let call = self.track.call(&said.call_id);
        let name = call.map(|call| call.name.clone()).or(said.name.clone());
        let body = ToolFinished { name, ..said }.into();
        self.keep_instead(vec![Event { body, extra: Extra::default(), ..self.event().clone() }]);
    }

    /// Writes a result where the document has an object: any other value stands in one, as `value`.
    pub(super) fn write_object_result(&self, object: &mut ObjectWriter<'_>, result: &Json) {
        if self.own || result.is_object() {
            return object.json("result", result);
        }
        let mut wrapped = object.object("result");
        wrapped.json("value", result);
        wrapped.end();
    }

    /// Returns whether the next native frame carries a residue.
    pub(super) fn has_residue(&self) -> bool {
        self.residue.get() != Residue::None
    }

    /// Writes the residue, if one is due, into the object that carries it.
    pub(super) fn write_residue(&self, object: &mut ObjectWriter<'_>) {
        let stand_in = self.stand_in.borrow();
        let events = match self.residue.get() {
            Residue::None => return,
            Residue::Event if stand_in.is_empty() => std::slice::from_ref(self.event()),
            Residue::Event => &stand_in,
            Residue::Told => &[],
        };
        object.array("runwire", events, |out, event| {
            let mut object = ObjectWriter::begin(out);
            event.write(&mut object);
            object.end();
        });
        self.residue.set(Residue::Told);
    }

    /// Writes a frame that represents no event: without the source's own fields, and with an empty residue
    /// where residues are exact.
    pub(super) fn beside_event(&self, write: impl FnOnce()) {
        let due = self.residue.replace(if self.exact { Residue::Told } else { Residue::None });
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
        let (before, rest) = self.record.entries.split_at(self.place.index as usize);
        (before, rest.get(1..).unwrap_or_default())
    }

    /// Returns whether the event ends a text before the record adds another one: a whole that is new.
    pub(super) fn ends_before_addition(&self) -> bool {
        let is_piece = |entry: &Entry| matches!(entry.event.body, Body::TextDelta(_));
        matches!(self.event().body, Body::TextFinished(_)) && self.neighbours().1.iter().any(is_piece)
    }

    /// Returns what the source said in its own dialect and the model has no field for, where that is written.
    pub(super) fn own_field(&self, name: &str) -> Option<&Json> {
        self.event().extra.get(name).filter(|_| self.own && !self.bare.get())
    }

    /// Writes, in its own dialect, what the source said beyond its document in one object of the envelope.
    ///
    /// The object is named by what stands before the dot (`metadata.`); without a name it is the payload.
    pub(super) fn write_own(&self, place: &str, object: &mut ObjectWriter<'_>) {
        if !self.own || self.bare.get() {
            return;
        }
        for (name, value) in self.event().extra.iter() {
            match name.strip_prefix(place) {
                Some(name) if !place.is_empty() || !is_placed(name) => object.json(name, value),
                _ => {}
            }
        }
    }

    /// Writes the members of an object of the source's envelope, but for those that are stamped anew.
    pub(super) fn write_rest(&self, object: &mut ObjectWriter<'_>, source: &Object<'_>, stamped: &[&str]) {
        for (name, raw) in source.fields() {
            let is_ours = stamped.contains(&name) || (name == "runwire" && self.has_residue());
            if !is_ours {
                object.raw(name, raw.get());
            }
        }
    }

    /// Returns whether the reader wants to see the event where only an extension slot can tell it.
    pub(super) fn shows_slot(&self) -> bool {
        match self.slots {
            Slots::All => true,
            Slots::Asks => self.is_ask(),
            Slots::None => false,
        }
    }

    /// Returns whether the event is a question, an answer, a suspension or a person's word.
    fn is_ask(&self) -> bool {
        let is_person = |role: Option<&str>| role == Some("user");
        let is_persons = |id: &str| self.track.text(id).is_some_and(|text| is_person(text.role.as_deref()));
        match &self.event().body {
            Body::InteractionRequested(_) | Body::InteractionResolved(_) => true,
            Body::RunSuspended(_) | Body::RunResumed(_) => true,
            Body::TextStarted(started) => is_person(started.role.as_deref()),
            Body::TextDelta(delta) => is_persons(&delta.message_id),
            Body::TextFinished(finished) => is_persons(&finished.message_id),
            _ => false,
        }
    }

    /// Returns whether a call's id was minted by us: in its own dialect the frame had none.
    pub(super) fn is_own_minted(&self, call_id: &str) -> bool {
        self.own && looks_minted(call_id, &self.ids.run) && self.event().extra.get(CALL_ID).is_none()
    }

    /// Says that nothing in the event's further frames is an event of its own.
    pub(super) fn told_before(&self) {
        if self.full {
            self.residue.set(Residue::Told);
        }
    }

    /// Says that a slot tells the event itself, so that no residue has to.
    pub(super) fn told_in_slot(&self) {
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
        Self { dialect, options, ids, first_seq: 0, in_thread: false, track: Track::default(), state }
    }

    /// Says whether the frames stand in a stream of the whole thread, rather than of the run alone.
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

    /// Returns whether the frame of an event says that it is the first piece of a continuation.
    pub(crate) fn begins_continuation(&self, event: &Event) -> bool {
        let Body::TextDelta(delta) = &event.body else { return false };
        self.dialect.spec().has_unnamed_pieces && self.track.begins_continuation(&delta.message_id)
    }

    /// Adds the frames that a record becomes.
    pub fn step(&mut self, record: &Record, earlier: &dyn Earlier, out: &mut Frames) {
        if self.first_seq == 0 {
            self.first_seq = record.seq;
        }
        let order_base = match self.in_thread {
            true => self.first_seq.saturating_sub(1).saturating_mul(ORDER_STEP),
            false => 0,
        };
        let own = record.dialect == Some(self.dialect);
        let EncoderOptions { fidelity, slots } = self.options;
        let full = fidelity == Fidelity::Full && self.dialect.has_extensions();
        for (index, entry) in record.entries.iter().enumerate() {
            let place = Place { seq: record.seq, index: index as u32 };
            self.track.before(&entry.event, place, record.at);
            let scrubbed = self.state.dialect().scrub(&entry.event);
            let scrubbed = scrubbed.map(|event| Entry { event, by: entry.by });
            let entry = scrubbed.as_ref().unwrap_or(entry);
            // Where a dialect knows no subagents, what happens in one is told exactly; but tokens are summed.
            let apart = entry.event.subagent_run_id.is_some() && !matches!(entry.event.body, Body::Usage(_));
            let exact = full || (apart && !self.state.dialect().knows_subagents());
            let residue = Cell::new(if exact { Residue::Event } else { Residue::None });
            let track = &self.track;
            let (stand_in, bare) = (RefCell::default(), Cell::default());
            let ids = &self.ids;
            let turn = Turn {
                record,
                entry,
                place,
                ids,
                track,
                earlier,
                order_base,
                own,
                full,
                slots,
                exact,
                residue,
                stand_in,
                bare,
            };
            let dialect = self.state.dialect();
            if turn.is_silent() && !dialect.shows_implied(&turn) {
                let order = dialect.order().map(|order| *order);
                dialect.event(&turn, &mut Frames::default());
                if let (Some(order), Some(now)) = (order, dialect.order()) {
                    *now = order;
                }
            } else {
                let before = out.len();
                dialect.event(&turn, out);
                if exact && out.len() == before {
                    dialect.slot(&turn, out);
                }
            }
            let chunks = self.state.dialect().tells_chunks();
            self.track.after(&entry.event, chunks);
        }
    }
}
