//! Answers an encoder's or decoder's questions about a run's earlier events by scanning its stored records.

mod gathered;

use std::cell::RefCell;
use std::ops::ControlFlow;

use runwire_model::event::{Body, Event, InteractionRequested, Notice, ToolCalled};
use runwire_model::json::Json;
use runwire_model::record::{ChatMessage, EventPosition, History, Record};
use runwire_model::run::{RunText, RunTexts};
use runwire_model::window::Window;

use crate::record::{StoredRecord, Wanted};
use gathered::{Gathered, PIECES, TEXTS};

/// A source of the stored records of one thread: a store, a batch or memory.
pub trait RecordSource {
    /// Calls `visit` with the wanted records after `seq`, in order, until it breaks.
    fn visit(&self, after: u64, wanted: Wanted<'_>, visit: &mut dyn FnMut(&StoredRecord) -> ControlFlow<()>);

    /// Returns the thread's messages and state before the run that begins at `first_seq`.
    fn before(&self, first_seq: u64) -> Window;
}

/// Caches what was looked up of a run, so that the next look-up goes on from there and not from the start.
///
/// One cache serves one reader or writer of one run, which only moves forward.
#[derive(Debug, Clone, Default)]
pub struct HistoryCache {
    /// The thread's state after a record.
    state: RefCell<Option<(u64, Window)>>,
    /// What the run's texts and calls have gathered.
    gathered: RefCell<Option<Gathered>>,
    /// The run's texts up to a record.
    texts: RefCell<Option<KnownTexts>>,
}

impl HistoryCache {
    /// Returns the bytes of texts and arguments that are cached.
    pub fn bytes(&self) -> usize {
        let gathered = self.gathered.borrow().as_ref().map_or(0, Gathered::bytes);
        gathered + self.texts.borrow().as_ref().map_or(0, |known| known.bytes)
    }

    /// Drops the texts and arguments; they can be looked up again.
    pub(crate) fn clear(&mut self) {
        self.gathered.take();
        self.texts.take();
    }
}

/// The texts of a run up to a record.
#[derive(Debug, Clone)]
struct KnownTexts {
    upto: u64,
    texts: RunTexts,
    bytes: usize,
}

/// The stored events of one run, as [`History`] exposes them to translation.
pub struct RunHistory<'a> {
    /// The records of the run's thread.
    pub source: &'a dyn RecordSource,
    /// The run.
    pub run: &'a str,
    /// The run's first `seq`.
    pub first_seq: u64,
    /// The last `seq` that counts as stored.
    pub upto: u64,
    /// The record that is being encoded, if any: the one at `upto`, which the source may not have yet.
    pub current: Option<&'a Record>,
    /// What was looked up before.
    pub cache: &'a HistoryCache,
}

impl RunHistory<'_> {
    /// Calls `visit` with the run's records after a `seq`, up to and including the current one.
    ///
    /// Records without an event of the wanted types may be left out.
    fn records(
        &self,
        after: u64,
        types: &'static [&'static str],
        visit: &mut dyn FnMut(&Record) -> ControlFlow<()>,
    ) {
        let end = self.current.map_or(self.upto.saturating_add(1), |record| record.seq);
        // The next run may answer what an earlier one left open, so a place may lie before the run.
        let run = (after + 1 >= self.first_seq).then_some(self.run);
        let mut stopped = false;
        if after + 1 < end {
            self.source.visit(after, Wanted { run, types }, &mut |stored| {
                if stored.record.seq >= end {
                    return ControlFlow::Break(());
                }
                if run.is_none_or(|run| *stored.run == *run) {
                    let flow = visit(&stored.record);
                    stopped |= flow.is_break();
                    return flow;
                }
                ControlFlow::Continue(())
            });
        }
        if let (false, Some(current)) = (stopped, self.current.filter(|current| current.seq > after)) {
            let _ = visit(current);
        }
    }

    /// Calls `visit` with the run's events from a place on, up to and including the current record.
    fn events(
        &self,
        from: EventPosition,
        types: &'static [&'static str],
        visit: &mut dyn FnMut(&Event) -> ControlFlow<()>,
    ) {
        self.records(from.seq.saturating_sub(1), types, &mut |record| {
            let skip = if record.seq == from.seq { from.index as usize } else { 0 };
            record.entries.iter().skip(skip).try_for_each(|entry| visit(&entry.event))
        });
    }

    fn find<T>(
        &self,
        from: EventPosition,
        types: &'static [&'static str],
        mut pick: impl FnMut(&Event) -> Option<T>,
    ) -> Option<T> {
        let mut found = None;
        self.events(from, types, &mut |event| {
            found = pick(event);
            if found.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        found
    }

    /// Returns what was gathered for something that began at a place. Each record is read once for all that is open.
    fn gathered<T>(&self, start: EventPosition, pick: impl Fn(&Gathered) -> Option<T>) -> Option<T> {
        if start.seq < self.first_seq {
            return None;
        }
        let mut cached = self.cache.gathered.borrow_mut();
        let mut gathered = match cached.take().filter(|gathered| gathered.is_useful(start.seq, self.upto)) {
            Some(gathered) if gathered.from <= start.seq => gathered,
            // Further back each time, so that things that end in the reverse order are not each read anew.
            Some(gathered) => {
                let back = start.seq.saturating_sub(gathered.upto - start.seq);
                Gathered::from(back.max(self.first_seq))
            }
            None => Gathered::from(start.seq),
        };
        self.records(gathered.upto, PIECES, &mut |record| {
            gathered.absorb(record);
            ControlFlow::Continue(())
        });
        gathered.upto = self.upto;
        let found = pick(&gathered);
        *cached = Some(gathered);
        found
    }

    /// Folds the thread's messages and state up to and including the current record.
    fn window(&self) -> Window {
        let mut window = self.source.before(self.first_seq);
        window.next_run(self.run);
        self.records(self.first_seq.saturating_sub(1), &[], &mut |record| {
            window.absorb(record);
            ControlFlow::Continue(())
        });
        window
    }
}

impl History for RunHistory<'_> {
    fn text(&self, start: EventPosition, message_id: &str) -> String {
        if let Some(text) = self.gathered(start, |gathered| gathered.texts.get(message_id).cloned()) {
            return text;
        }
        let mut text = String::new();
        self.events(start, PIECES, &mut |event| {
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

    fn arguments(&self, start: EventPosition, call_id: &str) -> String {
        if let Some(text) = self.gathered(start, |gathered| gathered.arguments.get(call_id).cloned()) {
            return text;
        }
        let mut text = String::new();
        self.events(start, PIECES, &mut |event| {
            match &event.body {
                Body::ToolArgsStarted(started) if started.call_id == call_id => text.clear(),
                Body::ToolArgsDelta(delta) if delta.call_id == call_id => text.push_str(&delta.delta),
                _ => {}
            }
            ControlFlow::Continue(())
        });
        text
    }

    fn call(&self, start: EventPosition, call_id: &str) -> Option<ToolCalled> {
        self.find(start, &["tool.called"], |event| match &event.body {
            Body::ToolCalled(called) if called.call_id == call_id => Some(called.clone()),
            _ => None,
        })
    }

    fn interaction(&self, position: EventPosition, interaction_id: &str) -> Option<InteractionRequested> {
        self.find(position, &["interaction.requested"], |event| match &event.body {
            Body::InteractionRequested(asked) if asked.interaction_id == interaction_id => {
                Some(asked.clone())
            }
            _ => None,
        })
    }

    fn notice(&self, position: EventPosition) -> Option<Notice> {
        if let Some(current) = self.current.filter(|record| record.seq == position.seq) {
            return fatal_notice(current, position.index);
        }
        let mut found = None;
        self.source.visit(position.seq.saturating_sub(1), Wanted::default(), &mut |stored| {
            if stored.record.seq == position.seq {
                found = fatal_notice(&stored.record, position.index);
            }
            ControlFlow::Break(())
        });
        found
    }

    fn run_texts(&self) -> Vec<RunText> {
        let mut cached = self.cache.texts.borrow_mut();
        let (known, mut texts) = match cached.take().filter(|known| known.upto <= self.upto) {
            Some(known) => (known.upto, known.texts),
            None => (self.first_seq.saturating_sub(1), RunTexts::default()),
        };
        self.records(known, TEXTS, &mut |record| {
            record.entries.iter().for_each(|entry| texts.absorb(&entry.event));
            ControlFlow::Continue(())
        });
        let found = texts.as_slice().to_vec();
        *cached = Some(KnownTexts { upto: self.upto, bytes: texts.bytes(), texts });
        found
    }

    fn state(&self) -> Option<Json> {
        let mut cached = self.cache.state.borrow_mut();
        let (from, mut window) = match cached.take().filter(|(seq, _)| *seq <= self.upto) {
            Some((seq, window)) if seq == self.upto => {
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
        self.records(from, &["state."], &mut |record| {
            window.absorb(&state_events(record));
            ControlFlow::Continue(())
        });
        let state = window.state();
        *cached = Some((self.upto, window));
        state
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
