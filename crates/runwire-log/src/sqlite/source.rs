//! The records of a thread as the writer sees them: those in its rows, in the journal, and of the commit at hand.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use runwire_model::window::Window;

use super::desk::Desk;
use super::read::visit;
use crate::earlier::RecordSource;
use crate::record::Stored;

/// What lookups need to remember.
#[derive(Debug, Default)]
pub(super) struct Lookups {
    names: RefCell<HashMap<u64, Arc<str>>>,
    failed: RefCell<Option<rusqlite::Error>>,
}

impl Lookups {
    /// Tells of a lookup that failed: what was made of it must not be written.
    pub(super) fn check(&self) -> rusqlite::Result<()> {
        self.failed.take().map_or(Ok(()), Err)
    }
}

/// The records of a thread as the writer sees them.
pub(super) struct Source<'a> {
    pub(super) connection: &'a Desk,
    pub(super) lookups: &'a Lookups,
    pub(super) thread: i64,
    /// Those that are in the journal only, each with the number of its run.
    pub(super) unsealed: &'a [(i64, Arc<Stored>)],
    /// Those of the commit at hand.
    pub(super) pending: &'a [(i64, Arc<Stored>)],
}

impl RecordSource for Source<'_> {
    fn visit(&self, after: u64, show: &mut dyn FnMut(&Stored) -> ControlFlow<()>) {
        let at_hand = || self.unsealed.iter().chain(self.pending);
        let first_at_hand = at_hand().next().map_or(u64::MAX, |(_, stored)| stored.record.seq);
        let mut stopped = false;
        if after.saturating_add(1) < first_at_hand {
            let mut names = self.lookups.names.borrow_mut();
            let read = visit(self.connection, &mut names, self.thread, after, &mut |stored| {
                let flow = show(&stored);
                stopped |= flow.is_break();
                flow
            });
            if let Err(error) = read {
                self.lookups.failed.replace(Some(error));
                return;
            }
        }
        for (_, stored) in at_hand().filter(|(_, stored)| stored.record.seq > after) {
            if stopped || show(stored).is_break() {
                return;
            }
        }
    }

    fn before(&self, _first_seq: u64) -> Window {
        // Decoding asks for nothing of earlier runs.
        Window::default()
    }
}
