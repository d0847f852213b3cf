//! Attaching to a run: its present in one go, after which the live tail can follow.
//!
//! [`Present`] gathers a run record by record and forgets what is over and was replaced: the pieces of a text
//! become one, of the state only the last is kept, of a call's progress only how far it is. What is kept is told
//! by an encoder of its own. The tail is told by the ordinary encoder that has stepped over all records, so ids,
//! steps and texts in it are those that the snapshot speaks of.

use std::collections::{BTreeMap, HashMap};

use crate::compact;
use crate::dialect::{Dialect, Encoder, EncoderOptions, Fidelity, Frames, Mirror, are_messages};
use crate::event::{Body, Event, RunResumed, StateSnapshot};
use crate::json::Json;
use crate::limits;
use crate::record::{By, Earlier, Entry, Place, Record};
use crate::time::Timestamp;
use crate::window::{Window, change_state};

/// What a reader who comes now must be told of a run.
///
/// ```
/// use runwire_model::attach::Present;
/// use runwire_model::dialect::{Dialect, Fidelity};
/// use runwire_model::event::{Event, RunStarted, TextDelta, TextStarted};
/// use runwire_model::record::{By, Entry, Record};
/// use runwire_model::window::Window;
/// use runwire_model::Timestamp;
///
/// let piece = |content: &str| TextDelta { message_id: "m".into(), content: content.into(), format: None };
/// let started = TextStarted { message_id: "m".into(), role: None };
/// let events =
///     [Event::new(RunStarted::default()), started.into(), piece("Hel").into(), piece("lo").into()];
/// let mut present = Present::new("t", "r", Window::default());
/// for (seq, event) in (1..).zip(events) {
///     let entries = vec![Entry { event, by: By::Producer }];
///     present.absorb(&Record { seq, at: Timestamp(0), source_time: None, dialect: None, entries });
/// }
/// let frames = present.frames(Dialect::StreamingEngine, Fidelity::Native);
/// let (_, text) = frames.iter().last().unwrap();
/// assert!(String::from_utf8_lossy(text).contains(r#""content":"Hello""#));
/// ```
#[derive(Debug, Clone)]
pub struct Present {
    thread_id: String,
    run_id: String,
    /// The thread before the run.
    before: Window,
    state: Option<Json>,
    kept: BTreeMap<Place, Kept>,
    /// The piece that another of the same text or thought would join.
    last_piece: Option<Place>,
    /// Calls whose arguments still arrive.
    arriving: HashMap<String, Arriving>,
    /// Where that stands of which only the last counts.
    latest: HashMap<Latest, Place>,
    open_questions: Vec<String>,
    /// Whether something was told since the last question, so that AG-UI's next response has begun.
    goes_on: bool,
}

/// An event, and of its record what translation asks for.
#[derive(Debug, Clone)]
struct Kept {
    at: Timestamp,
    source_time: Option<Timestamp>,
    dialect: Option<Dialect>,
    entry: Entry,
}

/// A call whose arguments still arrive: where it began, and where pieces of it stand.
#[derive(Debug, Clone)]
struct Arriving {
    start: Place,
    pieces: Vec<Place>,
}

/// Something of which only the last counts.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Latest {
    Progress(String),
    Output(String),
    Status,
    Metrics,
    Checkpoint,
    Messages,
}

impl Present {
    /// Begins with a run to which nothing was written, in a thread as it stood before.
    pub fn new(thread_id: impl Into<String>, run_id: impl Into<String>, mut before: Window) -> Self {
        let run_id = run_id.into();
        before.next_run(&run_id);
        Self {
            thread_id: thread_id.into(),
            run_id,
            state: before.kept_state().cloned(),
            before,
            kept: BTreeMap::new(),
            last_piece: None,
            arriving: HashMap::new(),
            latest: HashMap::new(),
            open_questions: Vec::new(),
            goes_on: false,
        }
    }

    /// Takes in a record of the run.
    pub fn absorb(&mut self, record: &Record) {
        for (index, entry) in record.entries.iter().enumerate() {
            self.absorb_entry(record, entry, Place { seq: record.seq, index: index as u32 });
        }
    }

    fn absorb_entry(&mut self, record: &Record, entry: &Entry, place: Place) {
        let body = &entry.event.body;
        self.note_response(record, body);
        if !leaves_texts_open(body) {
            self.last_piece = self.last_piece.filter(|_| compact::piece(body).is_some());
        }
        match body {
            Body::StateSnapshot(_) | Body::StateUpdated(_) | Body::StatePatched(_) => {
                change_state(&mut self.state, body);
                return;
            }
            Body::TextDelta(_) | Body::ThinkingDelta(_) => {
                if self.join(self.last_piece, record, entry) {
                    return;
                }
                self.last_piece = Some(place);
            }
            Body::ToolArgsStarted(started) => {
                let begun = Arriving { start: place, pieces: Vec::new() };
                self.arriving.insert(started.call_id.clone(), begun);
            }
            // Pieces of arguments belong to their call, whatever else is told between them.
            Body::ToolArgsDelta(delta) => {
                let last = self.arriving.get(&delta.call_id).and_then(|call| call.pieces.last().copied());
                if self.join(last, record, entry) {
                    return;
                }
                if let Some(call) = self.arriving.get_mut(&delta.call_id) {
                    call.pieces.push(place);
                }
            }
            Body::ToolCalled(called) => {
                if let Some(call) = self.arriving.remove(&called.call_id) {
                    self.forget_pieces(&call, called.message_id.as_ref());
                }
            }
            Body::ToolOutput(output) => {
                let key = Latest::Output(output.call_id.clone());
                if self.print(self.latest.get(&key).copied(), entry) {
                    return;
                }
                self.latest.insert(key, place);
            }
            Body::InteractionRequested(asked) => self.open_questions.push(asked.interaction_id.clone()),
            Body::InteractionResolved(resolved) => {
                self.open_questions.retain(|open| *open != resolved.interaction_id);
            }
            _ => {
                if let Some(before) = latest(&entry.event).and_then(|key| self.latest.insert(key, place)) {
                    self.kept.remove(&before);
                }
            }
        }
        let Record { at, source_time, dialect, .. } = *record;
        self.kept.insert(place, Kept { at, source_time, dialect, entry: entry.clone() });
    }

    /// Takes note of whether AG-UI's readers are in the middle of a response: one ends with each question, and the
    /// next begins with whatever is told then, also where only the last of its kind is kept.
    fn note_response(&mut self, record: &Record, body: &Body) {
        let ends_run = || record.entries.iter().any(|entry| entry.event.body.is_terminal());
        self.goes_on = match body {
            Body::InteractionRequested(_) => false,
            Body::RunSuspended(_) if !self.open_questions.is_empty() => false,
            Body::InteractionResolved(_) => self.open_questions.len() <= 1 || ends_run(),
            Body::Usage(_) | Body::ToolStarted(_) => self.goes_on,
            body if compact::piece(body) == Some("") && !matches!(body, Body::ToolArgsDelta(_)) => {
                self.goes_on
            }
            body => !body.is_terminal(),
        };
    }

    /// Forgets how the arguments of a call arrived; the call says them whole.
    fn forget_pieces(&mut self, call: &Arriving, message_id: Option<&String>) {
        for place in &call.pieces {
            self.kept.remove(place);
        }
        // Where the call began under another message, AG-UI's client holds it there.
        let begun = self.kept.get(&call.start).map(|kept| &kept.entry.event.body);
        if matches!(begun, Some(Body::ToolArgsStarted(started)) if started.message_id.as_ref() == message_id)
        {
            self.kept.remove(&call.start);
        }
    }

    /// Adds a piece to one that was kept; tells whether it could.
    fn join(&mut self, to: Option<Place>, record: &Record, entry: &Entry) -> bool {
        let Some(kept) = to.and_then(|place| self.kept.get_mut(&place)) else { return false };
        let first = &mut kept.entry;
        if kept.dialect != record.dialect
            || first.by != entry.by
            || !compact::joins(&first.event, &entry.event)
        {
            return false;
        }
        compact::append(&mut first.event, &entry.event);
        // What only one piece says beside its text is not said of the whole.
        first.event.extra.retain_common(&entry.event.extra);
        true
    }

    /// Adds what a tool printed to what it printed before; tells whether it could.
    fn print(&mut self, to: Option<Place>, entry: &Entry) -> bool {
        let Some(kept) = to.and_then(|place| self.kept.get_mut(&place)) else { return false };
        let (Body::ToolOutput(first), Body::ToolOutput(next)) =
            (&mut kept.entry.event.body, &entry.event.body)
        else {
            return false;
        };
        if first.content.len() + next.content.len() > limits::MERGED_BYTES {
            return false;
        }
        first.content.push_str(&next.content);
        kept.entry.event.extra.retain_common(&entry.event.extra);
        true
    }

    /// Returns the present in a dialect: nothing, while the run has not begun.
    ///
    /// Ordering values count from the start, so none of them is higher than the tail's next.
    pub fn frames(&self, dialect: Dialect, options: impl Into<EncoderOptions>) -> Frames {
        let options = options.into();
        let records = self.records();
        let mut window = self.before.clone();
        let mut encoder = Encoder::new(dialect, &self.thread_id, &self.run_id, options);
        let mut frames = Frames::default();
        if dialect != Dialect::AgUi {
            for record in &records {
                window.absorb(record);
                encoder.step(record, &window, &mut frames);
            }
            return frames;
        }
        let mut mirror = Mirror::new(window.messages());
        let mut tokens_told = 0;
        for record in &records {
            window.absorb(record);
            frames.clear();
            encoder.step(record, &window, &mut frames);
            for (_, data) in frames.iter() {
                if mirror.take(data) {
                    tokens_told = record.seq;
                }
            }
        }
        // What began the response that is open may have been replaced since.
        if self.goes_on && !mirror.is_active() {
            let entries = vec![Entry { event: RunResumed::default().into(), by: By::Server }];
            let begins = Record { seq: 0, at: Timestamp(0), source_time: None, dialect: None, entries };
            frames.clear();
            encoder.step(&begins, &window, &mut frames);
            for (_, data) in frames.iter() {
                mirror.take(data);
            }
        }
        // Unless each model call is told in full, the tail's next end of a response sums up the tokens that no end
        // has told yet.
        let is_told = |record: &Record, event: &Event| {
            options.fidelity == Fidelity::Full
                || record.seq <= tokens_told
                || !matches!(event.body, Body::Usage(_))
        };
        let events =
            records.iter().flat_map(|record| record.entries.iter().map(move |entry| (record, entry)));
        let events: Vec<&Event> = events
            .filter(|(record, entry)| is_told(record, &entry.event))
            .map(|(_, entry)| &entry.event)
            .collect();
        frames.clear();
        let waits = !self.open_questions.is_empty();
        mirror.write(&mut frames, [&self.thread_id, &self.run_id], self.state.as_ref(), waits, &events);
        frames
    }

    /// Puts together the records of what was kept, with the state as it is now after the run's start.
    fn records(&self) -> Vec<Record> {
        let mut records: Vec<Record> = Vec::new();
        for (place, kept) in &self.kept {
            let Kept { at, source_time, dialect, ref entry } = *kept;
            match records.last_mut() {
                Some(last) if last.seq == place.seq => last.entries.push(entry.clone()),
                _ => {
                    let entries = vec![entry.clone()];
                    records.push(Record { seq: place.seq, at, source_time, dialect, entries });
                }
            }
        }
        if let (Some(state), Some(first)) = (&self.state, records.first_mut()) {
            let (seq, at) = (first.seq, first.at);
            // What else the first record says follows the state.
            let begins = |entry: &Entry| matches!(entry.event.body, Body::RunStarted(_));
            let start = first.entries.iter().position(begins).map_or(0, |at| at + 1);
            let rest = Record { entries: first.entries.split_off(start), ..first.clone() };
            let entry = Entry { event: StateSnapshot { state: state.clone() }.into(), by: By::Server };
            let state = Record { seq, at, source_time: None, dialect: None, entries: vec![entry] };
            records.splice(1..1, [state, rest]);
        }
        records
    }
}

/// Returns of which kind an event is the latest, where that replaces the ones before.
fn latest(event: &Event) -> Option<Latest> {
    match &event.body {
        Body::ToolProgress(progress) => Some(Latest::Progress(progress.call_id.clone())),
        // One that says more is about something of the source's own.
        Body::RunStatus(_) if event.extra.is_empty() => Some(Latest::Status),
        Body::Metrics(_) => Some(Latest::Metrics),
        Body::Checkpoint(_) => Some(Latest::Checkpoint),
        // A list that no client takes replaces nothing.
        Body::MessagesSnapshot(snapshot) if are_messages(&snapshot.messages) => Some(Latest::Messages),
        _ => None,
    }
}

/// Returns whether no reader takes an event for the end of the texts before it, so that pieces may be joined
/// across it.
fn leaves_texts_open(body: &Body) -> bool {
    matches!(
        body,
        Body::ToolProgress(_)
            | Body::ToolOutput(_)
            | Body::ToolStarted(_)
            | Body::StateSnapshot(_)
            | Body::StateUpdated(_)
            | Body::StatePatched(_)
            | Body::Data(_)
            | Body::Usage(_)
            | Body::Metrics(_)
            | Body::Checkpoint(_)
            | Body::RunStatus(_)
            | Body::RunCancelRequested(_)
    )
}
