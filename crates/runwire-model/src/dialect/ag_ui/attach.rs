//! Attach snapshot for the official client: its messages, its state, and the open response.

use super::mirror::Mirror;
use crate::attach::AttachSnapshot;
use crate::dialect::{Dialect, Encoder, EncoderOptions, Fidelity, Frames};
use crate::event::{Body, Event, RunResumed};
use crate::record::{Entry, EventOrigin, History, Record};
use crate::time::Timestamp;

/// Writes the snapshot of a run.
pub(super) fn frames(snapshot: &AttachSnapshot, options: EncoderOptions) -> Frames {
    let records = snapshot.records();
    let mut window = snapshot.before.clone();
    let mut encoder = Encoder::new(Dialect::AgUi, &snapshot.thread_id, &snapshot.run_id, options);
    let mut frames = Frames::default();
    let mut mirror = Mirror::new(window.messages());
    let mut tokens_until = 0;
    for record in &records {
        window.absorb(record);
        frames.clear();
        encoder.step(record, &window, &mut frames);
        for (_, data) in frames.iter() {
            if mirror.take(data) {
                tokens_until = record.seq;
            }
        }
    }
    // What began the response that is open may have been replaced since.
    if snapshot.response_has_begun && !mirror.is_active() {
        let entries = vec![Entry { event: RunResumed::default().into(), origin: EventOrigin::Server }];
        let begins = Record { seq: 0, at: Timestamp(0), source_time: None, dialect: None, entries };
        frames.clear();
        encoder.step(&begins, &window, &mut frames);
        for (_, data) in frames.iter() {
            mirror.take(data);
        }
    }
    // Unless each model call is told in full, the tail's next end of a response sums up the tokens that no end
    // has told yet.
    let is_listed = |record: &Record, event: &Event| {
        options.fidelity == Fidelity::Full
            || record.seq <= tokens_until
            || !matches!(event.body, Body::Usage(_))
    };
    let entries = records.iter().flat_map(|record| record.entries.iter().map(move |entry| (record, entry)));
    let events = entries.filter(|(record, entry)| is_listed(record, &entry.event));
    let events: Vec<&Event> = events.map(|(_, entry)| &entry.event).collect();
    frames.clear();
    let waits = !snapshot.open_interactions.is_empty();
    let ids = [&*snapshot.thread_id, &*snapshot.run_id];
    mirror.write(&mut frames, ids, snapshot.state.as_ref(), waits, &events);
    frames
}
