//! Compaction for readers that catch up: neighbouring pieces of one text, thought or call become one frame.
//!
//! The merged frame is the last piece's frame with the content of all of them: it has that one's cursor and ordering
//! value, and the encoder continues as if each piece had been encoded alone. So a reader can switch to the plain stream
//! at any cursor that it was given.

use crate::dialect::{Dialect, Encoder, Frames};
use crate::event::{Body, Event};
use crate::limits;
use crate::record::{Entry, History, Record};

/// Merges neighbouring pieces while a reader catches up.
///
/// A piece is merged only where it stands alone in its record and becomes exactly one frame. Every other record
/// passes through as it is.
///
/// ```
/// use runwire_model::compact::Compactor;
/// use runwire_model::dialect::{Dialect, Encoder, Fidelity};
/// use runwire_model::event::{Event, RunStarted, TextDelta, TextStarted};
/// use runwire_model::record::{EventOrigin, Entry, Record};
/// use runwire_model::window::Window;
/// use runwire_model::Timestamp;
///
/// let piece = |content: &str| TextDelta { message_id: "m".into(), content: content.into(), format: None };
/// let started = TextStarted { message_id: "m".into(), role: None };
/// let events =
///     [Event::new(RunStarted::default()), started.into(), piece("Hel").into(), piece("lo").into()];
/// let mut encoder = Encoder::new(Dialect::StreamingEngine, "t", "r", Fidelity::Native);
/// let (mut compactor, window, mut seen) = (Compactor::new(), Window::default(), Vec::new());
/// let mut out = |seq, frames: &runwire_model::dialect::Frames, _: Option<&Record>| {
///     seen.extend(frames.iter().map(|(_, data)| (seq, String::from_utf8_lossy(data).into_owned())));
/// };
/// for (seq, event) in (1..).zip(events) {
///     let entries = vec![Entry { event, origin: EventOrigin::Producer }];
///     let record = Record { seq, at: Timestamp(0), source_time: None, dialect: None, entries };
///     compactor.step(&mut encoder, &record, &window, &mut out);
/// }
/// compactor.flush(&window, &mut out);
/// let (seq, frame) = &seen[1];
/// assert_eq!(*seq, 4);
/// assert!(frame.contains(r#""content":"Hello""#) && frame.contains(r#""sequence":2"#));
/// ```
#[derive(Debug, Default)]
pub struct Compactor {
    held: Option<MergedRecord>,
    frames: Frames,
}

/// Receives the frames of a record: its number, its frames, and the record itself unless it was merged with others.
pub type Sink<'s> = dyn FnMut(u64, &Frames, Option<&Record>) + 's;

/// Pieces that the next one may still join.
#[derive(Debug)]
struct MergedRecord {
    /// Record of the last piece, with the content of all of them.
    merged: Record,
    /// Encoder state before the last piece; `None` while there is only one. In `text` before the first: its pieces have
    /// no ordering value, but the first may begin with the blank line after the text before.
    before: Option<Encoder>,
    /// Frames of the first piece alone.
    alone: Frames,
    pieces: usize,
}

impl Compactor {
    /// Makes a compactor that holds no pieces.
    pub fn new() -> Self {
        Self::default()
    }

    /// Steps the encoder over the next record, and passes on the frames that are final.
    ///
    /// `history` must contain the record, as for [`Encoder::step`].
    pub fn step(
        &mut self,
        encoder: &mut Encoder,
        record: &Record,
        history: &dyn History,
        out: &mut Sink<'_>,
    ) {
        let joins = self.held.as_ref().is_some_and(|held| held.may_take(record));
        let from_first = encoder.dialect() == Dialect::Text;
        let before = (joins != from_first && lone_piece(record).is_some()).then(|| encoder.clone());
        let begins_continuation =
            lone_piece(record).is_some_and(|piece| encoder.begins_continuation(&piece.event));
        self.frames.clear();
        encoder.step(record, history, &mut self.frames);
        // The first piece of a continuation says that it is one, which a merged frame would not.
        let is_single = self.frames.len() == 1 && !begins_continuation;
        if let Some(held) = self.held.as_mut().filter(|_| joins && is_single) {
            return held.add(record, before);
        }
        self.flush(history, out);
        if is_single && lone_piece(record).is_some() {
            let alone = std::mem::take(&mut self.frames);
            self.held = Some(MergedRecord { merged: record.clone(), before, alone, pieces: 1 });
        } else {
            out(record.seq, &self.frames, Some(record));
        }
    }

    /// Passes on the pieces that are held back: at the end of a page, or when the reader has caught up.
    pub fn flush(&mut self, history: &dyn History, out: &mut Sink<'_>) {
        let Some(MergedRecord { merged, before, alone, pieces }) = self.held.take() else { return };
        let Some(mut before) = before.filter(|_| pieces > 1) else {
            return out(merged.seq, &alone, Some(&merged));
        };
        let mut frames = Frames::default();
        before.step(&merged, history, &mut frames);
        out(merged.seq, &frames, None);
    }
}

impl MergedRecord {
    fn may_take(&self, record: &Record) -> bool {
        let (Some(held), Some(next)) = (lone_piece(&self.merged), lone_piece(record)) else { return false };
        self.merged.dialect == record.dialect
            && held.origin == next.origin
            && held.event.extra == next.event.extra
            && joins(&held.event, &next.event)
    }

    fn add(&mut self, record: &Record, before: Option<Encoder>) {
        if let ([held], [next]) = (&mut self.merged.entries[..], &record.entries[..]) {
            append(&mut held.event, &next.event);
        }
        (self.merged.seq, self.merged.at) = (record.seq, record.at);
        self.merged.source_time = record.source_time.or(self.merged.source_time);
        self.pieces += 1;
        self.before = before.or(self.before.take());
    }
}

/// Returns the piece of a record without other events.
fn lone_piece(record: &Record) -> Option<&Entry> {
    match &record.entries[..] {
        [entry] if piece(&entry.event.body).is_some() => Some(entry),
        _ => None,
    }
}

/// Returns the content of a piece of a text, thought or call; `None` for any other event.
pub(crate) fn piece(body: &Body) -> Option<&str> {
    match body {
        Body::TextDelta(delta) => Some(&delta.content),
        Body::ThinkingDelta(delta) => Some(&delta.content),
        Body::ToolArgsDelta(delta) => Some(&delta.delta),
        _ => None,
    }
}

/// Returns true if a piece continues another, and both together fit into one frame.
pub(crate) fn joins(first: &Event, next: &Event) -> bool {
    let same = match (&first.body, &next.body) {
        (Body::TextDelta(first), Body::TextDelta(next)) => {
            first.message_id == next.message_id && first.format == next.format
        }
        (Body::ThinkingDelta(first), Body::ThinkingDelta(next)) => {
            first.message_id == next.message_id && first.stage == next.stage
        }
        (Body::ToolArgsDelta(first), Body::ToolArgsDelta(next)) => first.call_id == next.call_id,
        _ => false,
    };
    let length = |event: &Event| piece(&event.body).map_or(0, str::len);
    same && first.step_id == next.step_id
        && first.subagent_run_id == next.subagent_run_id
        && length(first) + length(next) <= limits::MERGED_BYTES
}

/// Appends a piece to the one that it joins.
pub(crate) fn append(first: &mut Event, next: &Event) {
    let Some(more) = piece(&next.body) else { return };
    match &mut first.body {
        Body::TextDelta(delta) => delta.content.push_str(more),
        Body::ThinkingDelta(delta) => delta.content.push_str(more),
        Body::ToolArgsDelta(delta) => delta.delta.push_str(more),
        _ => {}
    }
}
