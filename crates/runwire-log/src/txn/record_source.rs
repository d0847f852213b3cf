//! The records of a thread as commands see them: the stored ones, then those of the current batch.

use std::cell::{Cell, RefCell};
use std::ops::ControlFlow;
use std::sync::Arc;

use runwire_model::window::Window;

use super::heads::ThreadHead;
use super::{StoreResult, Txn, TxnStore};
use crate::record::{StoredRecord, Wanted};
use crate::run_history::RecordSource;

/// The stored and pending records of a thread.
pub(super) struct ThreadRecordSource<'a, S: TxnStore> {
    store: &'a S,
    thread: i64,
    /// The records of the current batch, each with the number of its run.
    pending: &'a [(i64, Arc<StoredRecord>)],
    failed: RefCell<Option<S::Error>>,
    /// Counts the records that are looked at.
    scanned: &'a Cell<u64>,
}

impl<S: TxnStore> Txn<S> {
    /// Returns the records of a thread, including those of the batch.
    pub(super) fn source(&self, thread: &ThreadHead) -> ThreadRecordSource<'_, S> {
        let pending = self.batch.records_of(thread.id);
        let (store, scanned) = (&self.store, &self.scanned);
        ThreadRecordSource { store, thread: thread.id, pending, failed: RefCell::new(None), scanned }
    }
}

impl<S: TxnStore> ThreadRecordSource<'_, S> {
    /// Returns the error of a failed read: what was made of it must not be written.
    pub(super) fn check(self) -> StoreResult<S, ()> {
        self.failed.into_inner().map_or(Ok(()), Err)
    }
}

impl<S: TxnStore> RecordSource for ThreadRecordSource<'_, S> {
    fn visit(&self, after: u64, wanted: Wanted<'_>, show: &mut dyn FnMut(&StoredRecord) -> ControlFlow<()>) {
        let first_pending = self.pending.first().map_or(u64::MAX, |(_, stored)| stored.record.seq);
        let mut stopped = false;
        if after.saturating_add(1) < first_pending {
            let read = self.store.visit(self.thread, after, wanted, &mut |stored| {
                let flow = show(stored);
                stopped |= flow.is_break();
                flow
            });
            match read {
                Ok(scanned) => self.scanned.set(self.scanned.get() + scanned),
                Err(error) => return drop(self.failed.replace(Some(error))),
            }
        }
        // `seq` is contiguous, so the place of the first record is known.
        let from = after.saturating_add(1).saturating_sub(first_pending);
        for (_, stored) in self.pending.iter().skip(usize::try_from(from).unwrap_or(usize::MAX)) {
            if stopped {
                return;
            }
            self.scanned.set(self.scanned.get() + 1);
            stopped = show(stored).is_break();
        }
    }

    fn before(&self, _first_seq: u64) -> Window {
        // Decoding needs nothing of earlier runs.
        Window::default()
    }
}
