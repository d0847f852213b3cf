//! Attaching to a run: a snapshot of it at once, after which the live tail follows.
//!
//! [`AttachSnapshot`] collects the records of a run and drops what is over or was replaced: the pieces of a text become
//! one, of states and of a call's progress only the last is kept. An encoder of its own writes what is kept. The tail
//! is written by the ordinary encoder that has stepped over all records, so its ids, steps and texts are those of the
//! snapshot.

use std::collections::{BTreeMap, HashMap};

use crate::compact;
use crate::dialect::{Dialect, Encoder, EncoderOptions, Frames, are_messages};
use crate::event::{Body, Event, StateSnapshot};
use crate::json::Json;
use crate::limits;
use crate::record::{Entry, EventOrigin, EventPosition, Record};
use crate::time::Timestamp;
use crate::window::{Window, change_state};

/// Snapshot of a run, for a reader who attaches to it.
///
/// ```
/// use runwire_model::attach::AttachSnapshot;
/// use runwire_model::dialect::{Dialect, Fidelity};
/// use runwire_model::event::{Event, RunStarted, TextDelta, TextStarted};
/// use runwire_model::record::{EventOrigin, Entry, Record};
/// use runwire_model::window::Window;
/// use runwire_model::Timestamp;
///
/// let piece = |content: &str| TextDelta { message_id: "m".into(), content: content.into(), format: None };
/// let started = TextStarted { message_id: "m".into(), role: None };
/// let events =
///     [Event::new(RunStarted::default()), started.into(), piece("Hel").into(), piece("lo").into()];
/// let mut present = AttachSnapshot::new("t", "r", Window::default());
/// for (seq, event) in (1..).zip(events) {
///     let entries = vec![Entry { event, origin: EventOrigin::Producer }];
///     present.absorb(&Record { seq, at: Timestamp(0), source_time: None, dialect: None, entries });
/// }
/// let frames = present.frames(Dialect::StreamingEngine, Fidelity::Native);
/// let (_, text) = frames.iter().last().unwrap();
/// assert!(String::from_utf8_lossy(text).contains(r#""content":"Hello""#));
/// ```
#[derive(Debug, Clone)]
pub struct AttachSnapshot {
    pub(crate) thread_id: String,
    pub(crate) run_id: String,
    /// The thread as it was before the run.
    pub(crate) before: Window,
    pub(crate) state: Option<Json>,
    kept: BTreeMap<EventPosition, KeptEntry>,
    /// Bytes of what was kept.
    bytes: usize,
    /// Position of the piece that the next one of the same text or thought joins.
    last_piece: Option<EventPosition>,
    /// Calls whose arguments are still arriving.
    arriving: HashMap<String, Arriving>,
    /// Positions of the events of which only the last counts.
    latest: HashMap<Latest, EventPosition>,
    pub(crate) open_interactions: Vec<String>,
    /// Whether an event followed the last interaction, so that the next response has begun.
    pub(crate) response_has_begun: bool,
}

/// An event, with the fields of its record that translation needs.
#[derive(Debug, Clone)]
struct KeptEntry {
    at: Timestamp,
    source_time: Option<Timestamp>,
    dialect: Option<Dialect>,
    entry: Entry,
    bytes: usize,
}

/// A call whose arguments are still arriving: its start, and the positions of its pieces.
#[derive(Debug, Clone)]
struct Arriving {
    start: EventPosition,
    pieces: Vec<EventPosition>,
}

/// Kind of event of which only the last counts.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Latest {
    Progress(String),
    Output(String),
    Status,
    Metrics,
    Checkpoint,
    Messages,
}

impl AttachSnapshot {
    /// Makes the snapshot of a run without records, in a thread as it was before.
    pub fn new(thread_id: impl Into<String>, run_id: impl Into<String>, mut before: Window) -> Self {
        let run_id = run_id.into();
        before.next_run(&run_id);
        Self {
            thread_id: thread_id.into(),
            run_id,
            state: before.kept_state().cloned(),
            before,
            kept: BTreeMap::new(),
            bytes: 0,
            last_piece: None,
            arriving: HashMap::new(),
            latest: HashMap::new(),
            open_interactions: Vec::new(),
            response_has_begun: false,
        }
    }

    /// Estimates the bytes of what is kept.
    pub fn bytes(&self) -> usize {
        self.bytes + self.state.as_ref().map_or(0, |state| state.text().len())
    }

    fn forget(&mut self, position: EventPosition) {
        if let Some(kept) = self.kept.remove(&position) {
            self.bytes -= kept.bytes;
        }
    }

    /// Adds a record of the run.
    pub fn absorb(&mut self, record: &Record) {
        for (index, entry) in record.entries.iter().enumerate() {
            self.absorb_entry(record, entry, EventPosition { seq: record.seq, index: index as u32 });
        }
    }

    fn absorb_entry(&mut self, record: &Record, entry: &Entry, position: EventPosition) {
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
                self.last_piece = Some(position);
            }
            Body::ToolArgsStarted(started) => {
                let begun = Arriving { start: position, pieces: Vec::new() };
                self.arriving.insert(started.call_id.clone(), begun);
            }
            // Pieces of arguments belong to their call, whatever else is told between them.
            Body::ToolArgsDelta(delta) => {
                let last = self.arriving.get(&delta.call_id).and_then(|call| call.pieces.last().copied());
                if self.join(last, record, entry) {
                    return;
                }
                if let Some(call) = self.arriving.get_mut(&delta.call_id) {
                    call.pieces.push(position);
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
                self.latest.insert(key, position);
            }
            Body::InteractionRequested(asked) => self.open_interactions.push(asked.interaction_id.clone()),
            Body::InteractionResolved(resolved) => {
                self.open_interactions.retain(|open| *open != resolved.interaction_id);
            }
            _ => {
                if let Some(before) = latest(&entry.event).and_then(|key| self.latest.insert(key, position)) {
                    self.forget(before);
                }
            }
        }
        let Record { at, source_time, dialect, .. } = *record;
        let bytes = size_of::<KeptEntry>() + event_bytes(&entry.event);
        self.bytes += bytes;
        self.kept.insert(position, KeptEntry { at, source_time, dialect, entry: entry.clone(), bytes });
    }

    /// Tracks whether a response is open: it ends with each interaction, and the next begins with the event after it,
    /// also where only the last event of its kind is kept.
    fn note_response(&mut self, record: &Record, body: &Body) {
        let ends_run = || record.entries.iter().any(|entry| entry.event.body.is_terminal());
        self.response_has_begun = match body {
            Body::InteractionRequested(_) => false,
            Body::RunSuspended(_) if !self.open_interactions.is_empty() => false,
            Body::InteractionResolved(_) => self.open_interactions.len() <= 1 || ends_run(),
            Body::Usage(_) | Body::ToolStarted(_) => self.response_has_begun,
            body if compact::piece(body) == Some("") && !matches!(body, Body::ToolArgsDelta(_)) => {
                self.response_has_begun
            }
            body => !body.is_terminal(),
        };
    }

    /// Drops the argument pieces of a call, which has its arguments whole.
    fn forget_pieces(&mut self, call: &Arriving, message_id: Option<&String>) {
        for position in &call.pieces {
            self.forget(*position);
        }
        // Where the call began under another message, clients hold it there.
        let begun = self.kept.get(&call.start).map(|kept| &kept.entry.event.body);
        if matches!(begun, Some(Body::ToolArgsStarted(started)) if started.message_id.as_ref() == message_id)
        {
            self.forget(call.start);
        }
    }

    /// Adds a piece to a kept one; returns `false` if it cannot.
    fn join(&mut self, to: Option<EventPosition>, record: &Record, entry: &Entry) -> bool {
        let Some(kept) = to.and_then(|position| self.kept.get_mut(&position)) else { return false };
        let first = &mut kept.entry;
        if kept.dialect != record.dialect
            || first.origin != entry.origin
            || !compact::joins(&first.event, &entry.event)
        {
            return false;
        }
        compact::append(&mut first.event, &entry.event);
        let more = compact::piece(&entry.event.body).map_or(0, str::len);
        kept.bytes += more;
        self.bytes += more;
        // What only one piece says beside its text is not said of the whole.
        first.event.extra.retain_common(&entry.event.extra);
        true
    }

    /// Adds output of a tool to a kept one; returns `false` if it cannot.
    fn print(&mut self, to: Option<EventPosition>, entry: &Entry) -> bool {
        let Some(kept) = to.and_then(|position| self.kept.get_mut(&position)) else { return false };
        let (Body::ToolOutput(first), Body::ToolOutput(next)) =
            (&mut kept.entry.event.body, &entry.event.body)
        else {
            return false;
        };
        if first.content.len() + next.content.len() > limits::MERGED_BYTES {
            return false;
        }
        first.content.push_str(&next.content);
        kept.bytes += next.content.len();
        self.bytes += next.content.len();
        kept.entry.event.extra.retain_common(&entry.event.extra);
        true
    }

    /// Returns the snapshot as frames of a dialect; none before the run has begun.
    ///
    /// Ordering values count from the start, so all of them are below the tail's next.
    pub fn frames(&self, dialect: Dialect, options: impl Into<EncoderOptions>) -> Frames {
        let options = options.into();
        if let Some(write) = dialect.attach_writer() {
            return write(self, options);
        }
        let mut window = self.before.clone();
        let mut encoder = Encoder::new(dialect, &self.thread_id, &self.run_id, options);
        let mut frames = Frames::default();
        for record in &self.records() {
            window.absorb(record);
            encoder.step(record, &window, &mut frames);
        }
        frames
    }

    /// Builds the records of the snapshot, with the current state after the run's start.
    pub(crate) fn records(&self) -> Vec<Record> {
        let mut records: Vec<Record> = Vec::new();
        for (position, kept) in &self.kept {
            let KeptEntry { at, source_time, dialect, ref entry, .. } = *kept;
            match records.last_mut() {
                Some(last) if last.seq == position.seq => last.entries.push(entry.clone()),
                _ => {
                    let entries = vec![entry.clone()];
                    records.push(Record { seq: position.seq, at, source_time, dialect, entries });
                }
            }
        }
        if let (Some(state), Some(first)) = (&self.state, records.first_mut()) {
            let (seq, at) = (first.seq, first.at);
            // What else the first record says follows the state.
            let begins = |entry: &Entry| matches!(entry.event.body, Body::RunStarted(_));
            let start = first.entries.iter().position(begins).map_or(0, |at| at + 1);
            let rest = Record { entries: first.entries.split_off(start), ..first.clone() };
            let entry =
                Entry { event: StateSnapshot { state: state.clone() }.into(), origin: EventOrigin::Server };
            let state = Record { seq, at, source_time: None, dialect: None, entries: vec![entry] };
            records.splice(1..1, [state, rest]);
        }
        records
    }
}

/// Estimates the bytes of an event.
fn event_bytes(event: &Event) -> usize {
    match compact::piece(&event.body) {
        Some(piece) if event.extra.is_empty() => piece.len(),
        _ => event.to_json().text().len(),
    }
}

/// Returns the kind of an event of which only the last counts.
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

/// Returns true for an event that no reader takes for the end of the texts before it, so that pieces may be joined
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
