//! Answers an encoder's or decoder's questions about a run's earlier events by scanning its stored records.

use std::cell::RefCell;
use std::ops::ControlFlow;

use runwire_model::event::{Body, Event, InteractionRequested, Notice, ToolCalled};
use runwire_model::json::Json;
use runwire_model::record::{ChatMessage, Earlier, Place, Record};
use runwire_model::run::{RunText, RunTexts};
use runwire_model::window::Window;

use crate::record::StoredRecord;

/// A source of the stored records of one thread: a store, a batch or memory.
pub trait RecordSource {
    /// Calls `visit` with the records after `seq`, in order, until it breaks.
    fn visit(&self, after: u64, visit: &mut dyn FnMut(&StoredRecord) -> ControlFlow<()>);

    /// Returns the thread's messages and state before the run that begins at `first_seq`.
    fn before(&self, first_seq: u64) -> Window;
}

/// Caches the thread's state after a record of a run, so that the next patch is applied to it and not to the start.
///
/// One cache serves one reader of one run, which only moves forward.
#[derive(Debug, Clone, Default)]
pub struct StateCache(RefCell<Option<(u64, Window)>>);

/// The stored events of one run, as [`Earlier`] exposes them to translation.
pub struct RunHistory<'a> {
    /// The records of the run's thread.
    pub source: &'a dyn RecordSource,
    /// The run.
    pub run: &'a str,
    /// The run's first `seq`.
    pub first_seq: u64,
    /// The record that is being encoded, if any. It counts as stored, and the source may not have it yet.
    pub current: Option<&'a Record>,
    /// The state after an earlier record.
    pub state: &'a StateCache,
}

impl RunHistory<'_> {
    /// Calls `visit` with the run's events from a place on, up to and including the current record.
    fn events(&self, from: Place, visit: &mut dyn FnMut(&Event) -> ControlFlow<()>) {
        let end = self.current.map_or(u64::MAX, |record| record.seq);
        let mut show = |record: &Record| {
            let skip = if record.seq == from.seq { from.index as usize } else { 0 };
            record.entries.iter().skip(skip).try_for_each(|entry| visit(&entry.event))
        };
        let mut stopped = false;
        // The next run may answer what an earlier one left open, so a place may lie before the run.
        let any_run = from.seq < self.first_seq;
        self.source.visit(from.seq.saturating_sub(1), &mut |stored| {
            if stored.record.seq >= end {
                return ControlFlow::Break(());
            }
            if any_run || *stored.run == *self.run {
                let flow = show(&stored.record);
                stopped |= flow.is_break();
                return flow;
            }
            ControlFlow::Continue(())
        });
        if let (false, Some(current)) = (stopped, self.current) {
            let _ = show(current);
        }
    }

    fn find<T>(&self, from: Place, mut pick: impl FnMut(&Event) -> Option<T>) -> Option<T> {
        let mut found = None;
        self.events(from, &mut |event| {
            found = pick(event);
            if found.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        found
    }

    /// Folds the thread's messages and state up to and including the current record.
    fn window(&self) -> Window {
        let mut window = self.source.before(self.first_seq);
        window.next_run(self.run);
        let end = self.current.map_or(u64::MAX, |record| record.seq);
        self.source.visit(self.first_seq.saturating_sub(1), &mut |stored| {
            if stored.record.seq >= end {
                return ControlFlow::Break(());
            }
            if *stored.run == *self.run {
                window.absorb(&stored.record);
            }
            ControlFlow::Continue(())
        });
        if let Some(current) = self.current {
            window.absorb(current);
        }
        window
    }
}

impl Earlier for RunHistory<'_> {
    fn text(&self, start: Place, message_id: &str) -> String {
        let mut text = String::new();
        self.events(start, &mut |event| {
            match &event.body {
                Body::TextStarted(started) if started.message_id == message_id => text.clear(),
                Body::TextDelta(delta) if delta.message_id == message_id => text.push_str(&delta.content),
                Body::ThinkingStarted(started) if started.message_id == message_id => text.clear(),
                Body::ThinkingDelta(delta) if delta.message_id == message_id => text.push_str(&delta.content),
                Body::TextFinished(finished) if finished.message_id == message_id => {
                    if let Some(content) = &finished.content {
                        text.clone_from(content);
                    }
                }
                _ => {}
            }
            ControlFlow::Continue(())
        });
        text
    }

    fn arguments(&self, start: Place, call_id: &str) -> String {
        let mut text = String::new();
        self.events(start, &mut |event| {
            match &event.body {
                Body::ToolArgsStarted(started) if started.call_id == call_id => text.clear(),
                Body::ToolArgsDelta(delta) if delta.call_id == call_id => text.push_str(&delta.delta),
                _ => {}
            }
            ControlFlow::Continue(())
        });
        text
    }

    fn call(&self, start: Place, call_id: &str) -> Option<ToolCalled> {
        self.find(start, |event| match &event.body {
            Body::ToolCalled(called) if called.call_id == call_id => Some(called.clone()),
            _ => None,
        })
    }

    fn question(&self, place: Place, interaction_id: &str) -> Option<InteractionRequested> {
        self.find(place, |event| match &event.body {
            Body::InteractionRequested(asked) if asked.interaction_id == interaction_id => {
                Some(asked.clone())
            }
            _ => None,
        })
    }

    fn notice(&self, place: Place) -> Option<Notice> {
        if let Some(current) = self.current.filter(|record| record.seq == place.seq) {
            return fatal_notice(current, place.index);
        }
        let mut found = None;
        self.source.visit(place.seq.saturating_sub(1), &mut |stored| {
            if stored.record.seq == place.seq {
                found = fatal_notice(&stored.record, place.index);
            }
            ControlFlow::Break(())
        });
        found
    }

    fn run_texts(&self) -> Vec<RunText> {
        let mut texts = RunTexts::default();
        self.events(Place { seq: self.first_seq, index: 0 }, &mut |event| {
            texts.absorb(event);
            ControlFlow::Continue(())
        });
        texts.into_vec()
    }

    fn state(&self) -> Option<Json> {
        let upto = self.current.map_or(u64::MAX, |record| record.seq);
        let mut cached = self.state.0.borrow_mut();
        let (from, mut window) = match cached.take().filter(|(seq, _)| *seq <= upto) {
            Some((seq, window)) if seq == upto => {
                let state = window.state();
                *cached = Some((seq, window));
                return state;
            }
            Some(cached) => cached,
            None => {
                // Only the state is needed: folding the messages of earlier runs would cost time and memory.
                let state = self.source.before(self.first_seq).state();
                (self.first_seq.saturating_sub(1), Window::after(Vec::new(), state))
            }
        };
        self.source.visit(from, &mut |stored| {
            if stored.record.seq >= upto {
                return ControlFlow::Break(());
            }
            if *stored.run == *self.run {
                window.absorb(&state_events(&stored.record));
            }
            ControlFlow::Continue(())
        });
        if let Some(current) = self.current {
            window.absorb(&state_events(current));
            *cached = Some((current.seq, window.clone()));
        }
        window.state()
    }

    fn messages(&self) -> Vec<ChatMessage> {
        self.window().messages()
    }
}

fn fatal_notice(record: &Record, index: u32) -> Option<Notice> {
    match &record.entries.get(index as usize)?.event.body {
        Body::Notice(notice) => Some(notice.clone()),
        _ => None,
    }
}

/// Copies a record with only the events that change the thread's state.
fn state_events(record: &Record) -> Record {
    let is_state = |event: &Event| {
        matches!(event.body, Body::StateSnapshot(_) | Body::StateUpdated(_) | Body::StatePatched(_))
    };
    let entries = record.entries.iter().filter(|entry| is_state(&entry.event)).cloned().collect();
    Record { entries, ..record.clone() }
}
