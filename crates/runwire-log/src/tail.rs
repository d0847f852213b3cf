//! How readers learn of new records: one place a thread, one wake-up a commit.
//!
//! The tail is a fast path only. It keeps the newest records of threads that are being read, so that live
//! readers need not ask the store; whoever finds that it has lost them reads the store.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tokio::sync::watch;

use crate::key::ThreadKey;
use crate::limits;
use crate::record::Stored;

/// How far a thread is, as its readers know it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Head {
    /// The last record that was committed while anyone was looking; 0 before that.
    pub seq: u64,
    /// Whether the thread was deleted.
    pub deleted: bool,
}

/// The newest records of one thread, shared by all its readers.
#[derive(Debug)]
pub struct Tail {
    head: watch::Sender<Head>,
    recent: Mutex<Recent>,
}

#[derive(Debug, Default)]
struct Recent {
    records: VecDeque<Arc<Stored>>,
    bytes: usize,
}

impl Tail {
    fn new() -> Self {
        Self { head: watch::Sender::new(Head::default()), recent: Mutex::default() }
    }

    /// Watches how far the thread is.
    pub fn watch(&self) -> watch::Receiver<Head> {
        self.head.subscribe()
    }

    /// Tells how far the thread is.
    pub fn head(&self) -> Head {
        *self.head.borrow()
    }

    /// Lists the records after `seq`, if the tail still has all of them that follow it.
    pub fn after(&self, seq: u64) -> Option<Vec<Arc<Stored>>> {
        let recent = lock(&self.recent);
        let first = recent.records.front()?.record.seq;
        let skip = seq.saturating_add(1).checked_sub(first)?;
        let skip = usize::try_from(skip).ok()?;
        Some(recent.records.iter().skip(skip).cloned().collect())
    }

    /// Shows records that are committed; they follow each other.
    pub(crate) fn publish(&self, records: &[Arc<Stored>]) {
        let Some(last) = records.last() else { return };
        {
            let mut recent = lock(&self.recent);
            let follows = |newest: &Arc<Stored>| newest.record.seq + 1 == records[0].record.seq;
            if !recent.records.back().is_none_or(follows) {
                *recent = Recent::default();
            }
            recent.bytes += records.iter().map(|record| record.weight()).sum::<usize>();
            recent.records.extend(records.iter().cloned());
            while recent.bytes > limits::TAIL_BYTES && recent.records.len() > 1 {
                if let Some(oldest) = recent.records.pop_front() {
                    recent.bytes -= oldest.weight();
                }
            }
        }
        let seq = last.record.seq;
        self.head.send_modify(|head| head.seq = head.seq.max(seq));
    }

    /// Says that the thread is gone. What was shown last stays, for readers that have not come to it yet.
    pub(crate) fn delete(&self) {
        self.head.send_modify(|head| head.deleted = true);
    }
}

/// The tails of all threads that are being read.
#[derive(Debug, Default)]
pub(crate) struct Tails {
    threads: Mutex<HashMap<ThreadKey, Weak<Tail>>>,
}

impl Tails {
    /// Finds the tail of a thread, or begins one.
    pub(crate) fn of(&self, thread: &ThreadKey) -> Arc<Tail> {
        let mut threads = lock(&self.threads);
        if let Some(tail) = threads.get(thread).and_then(Weak::upgrade) {
            return tail;
        }
        let tail = Arc::new(Tail::new());
        if threads.len() >= 64 && threads.len() == threads.capacity() {
            threads.retain(|_, tail| tail.strong_count() > 0);
            let room = 2 * threads.len();
            threads.shrink_to(room);
        }
        threads.insert(thread.clone(), Arc::downgrade(&tail));
        tail
    }

    /// Finds the tail of a thread that is being read.
    pub(crate) fn live(&self, thread: &ThreadKey) -> Option<Arc<Tail>> {
        lock(&self.threads).get(thread).and_then(Weak::upgrade)
    }
}

/// A panic while a tail was held leaves at worst a thread without recent records.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
