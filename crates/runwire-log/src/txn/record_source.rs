//! The records of a thread as the verbs see them: those in the store, and of the batch at hand.

use std::cell::RefCell;
use std::ops::ControlFlow;
use std::sync::Arc;

use runwire_model::window::Window;

use super::heads::ThreadHead;
use super::{StoreResult, Txn, TxnStore};
use crate::record::StoredRecord;
use crate::run_history::RecordSource;

/// The records of a thread as the verbs see them.
pub(super) struct ThreadRecordSource<'a, S: TxnStore> {
    store: &'a S,
    thread: i64,
    /// Those of the batch at hand, each with the number of its run.
    pending: &'a [(i64, Arc<StoredRecord>)],
    failed: RefCell<Option<S::Error>>,
}

impl<S: TxnStore> Txn<S> {
    /// The records of a thread, those of the batch included.
    pub(super) fn source(&self, thread: &ThreadHead) -> ThreadRecordSource<'_, S> {
        let pending = self.batch.records_of(thread.id);
        ThreadRecordSource { store: &self.store, thread: thread.id, pending, failed: RefCell::new(None) }
    }
}

impl<S: TxnStore> ThreadRecordSource<'_, S> {
    /// Returns a lookup that failed: what was made of it must not be written.
    pub(super) fn check(self) -> StoreResult<S, ()> {
        self.failed.into_inner().map_or(Ok(()), Err)
    }
}

impl<S: TxnStore> RecordSource for ThreadRecordSource<'_, S> {
    fn visit(&self, after: u64, show: &mut dyn FnMut(&StoredRecord) -> ControlFlow<()>) {
        let first_pending = self.pending.first().map_or(u64::MAX, |(_, stored)| stored.record.seq);
        let mut stopped = false;
        if after.saturating_add(1) < first_pending {
            let read = self.store.visit(self.thread, after, &mut |stored| {
                let flow = show(stored);
                stopped |= flow.is_break();
                flow
            });
            if let Err(error) = read {
                self.failed.replace(Some(error));
                return;
            }
        }
        for (_, stored) in self.pending.iter().filter(|(_, stored)| stored.record.seq > after) {
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
