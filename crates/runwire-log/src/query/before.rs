//! Folds the runs of a thread before a `seq` to its messages and state, in one pass over its records.
//!
//! Runs are folded one after the other in the order they began. Records of a parallel run whose turn has not come are
//! held in memory, up to a limit; what is beyond it is read again when its turn comes.

use std::collections::{HashMap, VecDeque};
use std::ops::ControlFlow;

use runwire_model::Timestamp;
use runwire_model::record::Record;
use runwire_model::window::Window;

use super::ReadStore;
use crate::error::LogError;
use crate::info::RunSpan;
use crate::key::ThreadKey;
use crate::limits;
use crate::record::{StoredRecord, Wanted};

/// Folds the thread's messages and state before a `seq`.
pub(crate) fn before(store: &mut impl ReadStore, key: &ThreadKey, seq: u64) -> Result<Window, LogError> {
    let row = store.thread_row(key)?;
    let mut spans = store.spans_of(row.id)?;
    spans.retain(|span| span.first_seq < seq);
    let mut fold = Fold::new(row.base()?.window(), &spans, seq, limits::HELD_BYTES);
    fold.run(|after, wanted, show| store.visit(row.id, after, wanted, &mut |stored| show(stored)))?;
    let mut window = fold.window;
    // A patch that did not apply hides the state only at its own record.
    let (at, entries) = (Timestamp(0), Vec::new());
    window.absorb(&Record { seq, at, source_time: None, dialect: None, entries });
    Ok(window)
}

/// Records that came before the turn of their run.
#[derive(Default)]
struct Held {
    records: VecDeque<StoredRecord>,
    bytes: usize,
    /// The first record that there was no room for.
    missed: Option<u64>,
}

struct Fold<'s> {
    window: Window,
    spans: &'s [RunSpan],
    indexes: HashMap<&'s str, usize>,
    /// Only records before this one are folded.
    end: u64,
    /// The run that is being folded.
    turn: usize,
    /// The last record that was visited.
    at: u64,
    held: HashMap<usize, Held>,
    held_bytes: usize,
    max_held_bytes: usize,
}

impl<'s> Fold<'s> {
    fn new(mut window: Window, spans: &'s [RunSpan], end: u64, max_held_bytes: usize) -> Self {
        let indexes = spans.iter().enumerate().map(|(index, span)| (&*span.run_id, index)).collect();
        let at = spans.first().map_or(0, |span| span.first_seq.saturating_sub(1));
        if let Some(first) = spans.first() {
            window.next_run(&first.run_id);
        }
        let (held, held_bytes) = (HashMap::new(), 0);
        Self { window, spans, indexes, end, turn: 0, at, held, held_bytes, max_held_bytes }
    }

    /// Folds all runs with the records that `visit` shows.
    fn run<E>(
        &mut self,
        mut visit: impl FnMut(u64, Wanted<'_>, &mut dyn FnMut(StoredRecord) -> ControlFlow<()>) -> Result<(), E>,
    ) -> Result<(), E> {
        while self.turn < self.spans.len() {
            let last = self.last_of(self.turn);
            if self.at < last {
                let mut missed = false;
                visit(self.at, Wanted::default(), &mut |stored| {
                    if stored.record.seq >= self.end {
                        self.at = self.end;
                        return ControlFlow::Break(());
                    }
                    missed = !self.take(stored);
                    if missed { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
                })?;
                if !missed {
                    self.at = self.at.max(self.end);
                }
            }
            // Its turn is over, or the records that it missed before are read again.
            if self.at >= self.last_of(self.turn) {
                self.turn += 1;
                if self.turn < self.spans.len() {
                    self.begin_turn();
                }
            }
            if let Some(from) = self.held.get_mut(&self.turn).and_then(|held| held.missed.take()) {
                let (run, upto) = (&*self.spans[self.turn].run_id, self.at.min(self.end - 1));
                let wanted = Wanted { run: Some(run), types: &[] };
                visit(from - 1, wanted, &mut |stored| {
                    if stored.record.seq > upto {
                        return ControlFlow::Break(());
                    }
                    if *stored.run == *run {
                        self.window.absorb(&stored.record);
                    }
                    ControlFlow::Continue(())
                })?;
            }
        }
        Ok(())
    }

    /// Returns the last record of a run that is folded.
    fn last_of(&self, index: usize) -> u64 {
        self.spans[index].last_seq.min(self.end - 1)
    }

    /// Takes the next record in. Returns `false`, and takes nothing, where records of the next run have to be read again
    /// before.
    fn take(&mut self, stored: StoredRecord) -> bool {
        let seq = stored.record.seq;
        while seq > self.last_of(self.turn) && self.turn + 1 < self.spans.len() {
            if self.held.get(&(self.turn + 1)).is_some_and(|held| held.missed.is_some()) {
                return false;
            }
            self.turn += 1;
            self.begin_turn();
        }
        self.at = seq;
        match self.indexes.get(&*stored.run) {
            Some(index) if *index == self.turn => self.window.absorb(&stored.record),
            Some(index) if *index > self.turn => self.hold(*index, stored),
            _ => {}
        }
        true
    }

    /// Begins to fold the next run, with the records that were held for it.
    fn begin_turn(&mut self) {
        self.window.next_run(&self.spans[self.turn].run_id);
        let Some(held) = self.held.get_mut(&self.turn) else { return };
        self.held_bytes -= std::mem::take(&mut held.bytes);
        for stored in std::mem::take(&mut held.records) {
            self.window.absorb(&stored.record);
        }
    }

    fn hold(&mut self, index: usize, stored: StoredRecord) {
        let held = self.held.entry(index).or_default();
        let bytes = stored.weight();
        if held.missed.is_some() || self.held_bytes + bytes > self.max_held_bytes {
            held.missed.get_or_insert(stored.record.seq);
            return;
        }
        held.bytes += bytes;
        self.held_bytes += bytes;
        held.records.push_back(stored);
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::convert::Infallible;

    use runwire_model::event::{Event, RunStarted, TextDelta, TextStarted};
    use runwire_model::record::{Entry, EventOrigin, History};

    use super::*;

    /// Makes a record of a run: its start if it is the first, else a piece of its text.
    fn record(seq: u64, run: usize, is_first: bool) -> StoredRecord {
        let message_id = format!("m{run}");
        let start = TextStarted { message_id: message_id.clone(), role: None };
        let delta = TextDelta { message_id, content: format!("{seq} "), format: None };
        let mut events = vec![Event::new(delta)];
        if is_first {
            events.splice(0..0, [Event::new(RunStarted::default()), Event::new(start)]);
        }
        let entries =
            events.into_iter().map(|event| Entry { event, origin: EventOrigin::Producer }).collect();
        let record = Record { seq, at: Timestamp(1), source_time: None, dialect: None, entries };
        StoredRecord { run: format!("r{run}").into(), record, name: None, frame: None }
    }

    /// Makes a thread of runs that are all open at once, and whose records take turns.
    fn parallel_runs(runs: usize, records: u64) -> (Vec<RunSpan>, Vec<StoredRecord>) {
        let all: Vec<_> = (1..=records)
            .map(|seq| {
                let run = (seq as usize - 1) % runs;
                record(seq, run, (seq as usize) <= runs)
            })
            .collect();
        let span = |run: usize| {
            let of_run = all.iter().filter(|stored| *stored.run == format!("r{run}"));
            let seqs: Vec<_> = of_run.map(|stored| stored.record.seq).collect();
            let (first_seq, last_seq) = (seqs[0], seqs[seqs.len() - 1]);
            RunSpan { run_id: format!("r{run}"), first_seq, last_seq, open: true }
        };
        ((0..runs).map(span).collect(), all)
    }

    /// Folds a thread, and returns its messages and the number of records that were visited for it.
    fn folded(spans: &[RunSpan], all: &[StoredRecord], end: u64, held: usize) -> (Vec<String>, u64) {
        let visited = Cell::new(0);
        let mut fold = Fold::new(Window::default(), spans, end, held);
        let run = fold.run(|after, wanted, show| {
            let is_wanted = |stored: &&StoredRecord| {
                stored.record.seq > after && wanted.run.is_none_or(|run| *run == *stored.run)
            };
            for stored in all.iter().filter(is_wanted) {
                visited.set(visited.get() + 1);
                if show(stored.clone()).is_break() {
                    break;
                }
            }
            Ok::<_, Infallible>(())
        });
        let Ok(()) = run;
        (fold.window.messages().into_iter().map(|message| message.content).collect(), visited.get())
    }

    #[test]
    fn parallel_runs_are_folded_in_one_pass() {
        let (spans, all) = parallel_runs(50, 1000);
        let expected: Vec<String> = (0..50u64)
            .map(|run| (0..20).map(|round| format!("{} ", round * 50 + run + 1)).collect())
            .collect();
        let (messages, visited) = folded(&spans, &all, 1001, usize::MAX);
        assert_eq!(messages, expected);
        assert!(visited <= 1000 + 50, "{visited} records were visited");
        // What there is no room for is read again.
        for held in [0, 20_000] {
            assert_eq!(folded(&spans, &all, 1001, held).0, expected, "{held} bytes");
        }
    }

    #[test]
    fn runs_are_folded_as_far_as_they_are_before_a_record() {
        let (spans, all) = parallel_runs(3, 9);
        for held in [0, usize::MAX] {
            assert_eq!(folded(&spans, &all, 6, held).0, ["1 4 ", "2 5 ", "3 "], "{held} bytes");
        }
        assert_eq!(folded(&[], &all, 6, 0).0, Vec::<String>::new());
    }
}
