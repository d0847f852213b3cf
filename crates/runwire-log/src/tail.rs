//! How readers learn of new records: one follow_guard a thread, one wake-up a commit.
//!
//! The tail is a fast path only. It keeps the newest records of threads that are being read, so that live
//! readers need not ask the store; whoever finds that it has lost them reads the store.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use tokio::sync::watch;

use crate::cluster::FollowGuard;
use crate::key::ThreadKey;
use crate::limits;
use crate::record::StoredRecord;

/// How far a thread is, as its readers know it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TailHead {
    /// The last record that was committed while anyone was looking; 0 before that.
    pub seq: u64,
    /// Whether the thread was deleted.
    pub deleted: bool,
}

/// The newest records of one thread, shared by all its readers.
#[derive(Debug)]
pub struct Tail {
    head: watch::Sender<TailHead>,
    recent: Mutex<Recent>,
    /// In a cluster: what ends when the last reader leaves.
    follow_guard: OnceLock<FollowGuard>,
}

/// What became of records that a tail was offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OfferResult {
    /// They are shown, or were before.
    Shown,
    /// Something before them is missing. They wait for it, as far as there is room.
    OutOfOrder,
}

impl Tail {
    fn new() -> Self {
        Self {
            head: watch::Sender::new(TailHead::default()),
            recent: Mutex::default(),
            follow_guard: OnceLock::new(),
        }
    }

    /// Watches how far the thread is.
    pub fn watch(&self) -> watch::Receiver<TailHead> {
        self.head.subscribe()
    }

    /// Returns how far the thread is.
    pub fn head(&self) -> TailHead {
        *self.head.borrow()
    }

    /// Lists the records after `seq`, if the tail still has all of them that follow it.
    pub fn after(&self, seq: u64) -> Option<Vec<Arc<StoredRecord>>> {
        let recent = lock(&self.recent);
        let skip = seq.checked_sub(recent.floor?)?;
        let skip = usize::try_from(skip).ok()?;
        Some(recent.records.iter().skip(skip).cloned().collect())
    }

    /// Shows records that are committed; they follow each other, and nobody else writes.
    pub(crate) fn publish(&self, records: &[Arc<StoredRecord>]) {
        if self.offer(records) == OfferResult::OutOfOrder {
            *lock(&self.recent) = Recent::default();
            self.offer(records);
        }
    }

    /// Says that the thread is gone. What was shown last stays, for readers that have not come to it yet.
    pub(crate) fn delete(&self) {
        self.head.send_if_modified(|head| !std::mem::replace(&mut head.deleted, true));
    }

    /// Takes records that are committed and follow each other, from wherever they come; shows what follows.
    pub(crate) fn offer(&self, records: &[Arc<StoredRecord>]) -> OfferResult {
        let (offered, newest) = {
            let mut recent = lock(&self.recent);
            (recent.offer(records), recent.newest())
        };
        self.announce(newest);
        offered
    }

    /// Takes in how far the store is, which was looked up after the tail began; returns whether records are missing.
    pub(crate) fn set_position(&self, head: u64) -> bool {
        let (is_missing, newest) = {
            let mut recent = lock(&self.recent);
            recent.reported = recent.reported.max(head);
            // Whoever has read less than this reads the store.
            let floor = *recent.floor.get_or_insert(head);
            let newest = recent.newest().unwrap_or(floor);
            (recent.reported > newest, newest)
        };
        self.announce(Some(newest));
        is_missing
    }

    /// Returns the last record that the tail has shown, or knows to be shown by the store.
    pub(crate) fn newest(&self) -> Option<u64> {
        lock(&self.recent).newest()
    }

    /// Returns what is missing, if anything is: what comes after a record, up to one that somebody has told of.
    pub(crate) fn missing(&self) -> Option<(u64, u64)> {
        let recent = lock(&self.recent);
        let newest = recent.newest()?;
        (recent.reported > newest).then_some((newest, recent.reported))
    }

    /// Passes over what is too much for the tail: the store has it.
    pub(crate) fn skip_to(&self, head: u64) {
        let newest = {
            let mut recent = lock(&self.recent);
            if recent.newest().is_none_or(|newest| newest < head) {
                recent.restart(head);
            }
            recent.newest()
        };
        self.announce(newest);
    }

    /// Forgets what was told up to a record: the store was asked since, and has nothing more.
    pub(crate) fn forget_reported(&self, reported: u64) {
        let mut recent = lock(&self.recent);
        if recent.reported <= reported {
            recent.reported = recent.newest().unwrap_or(0);
            (recent.early, recent.early_bytes) = (BTreeMap::new(), 0);
        }
    }

    /// Goes back to where the store is, which has lost what was shown.
    pub(crate) fn rewind_to(&self, head: u64) {
        let mut recent = lock(&self.recent);
        *recent = Recent { floor: Some(head), reported: head, ..Recent::default() };
        self.head.send_modify(|known| known.seq = head);
    }

    /// Ties something to the tail that ends with it; returns whether there was nothing yet.
    pub(crate) fn attach(&self, follow_guard: FollowGuard) -> bool {
        self.follow_guard.set(follow_guard).is_ok()
    }

    /// Returns whether something is tied to it.
    pub(crate) fn is_followed(&self) -> bool {
        self.follow_guard.get().is_some()
    }

    fn announce(&self, newest: Option<u64>) {
        let Some(newest) = newest else { return };
        self.head.send_if_modified(|head| {
            let is_new = head.seq < newest;
            head.seq = head.seq.max(newest);
            is_new
        });
    }
}

#[derive(Debug, Default)]
struct Recent {
    /// Everything after this and up to the newest is in `records`; nothing while the tail knows nothing.
    floor: Option<u64>,
    records: VecDeque<Arc<StoredRecord>>,
    bytes: usize,
    /// What came before something that it follows, by its first record.
    early: BTreeMap<u64, Vec<Arc<StoredRecord>>>,
    early_bytes: usize,
    /// The last record that anybody has told of.
    reported: u64,
}

impl Recent {
    fn newest(&self) -> Option<u64> {
        self.records.back().map(|newest| newest.record.seq).or(self.floor)
    }

    fn offer(&mut self, records: &[Arc<StoredRecord>]) -> OfferResult {
        let (Some(first), Some(last)) = (records.first(), records.last()) else { return OfferResult::Shown };
        let (first, last) = (first.record.seq, last.record.seq);
        self.reported = self.reported.max(last);
        let newest = self.newest().unwrap_or(first.saturating_sub(1));
        if first > newest + 1 {
            let weight = weight(records);
            if self.early_bytes + weight <= limits::TAIL_BYTES && !self.early.contains_key(&first) {
                self.early.insert(first, records.to_vec());
                self.early_bytes += weight;
            }
            return OfferResult::OutOfOrder;
        }
        if self.records.is_empty() && last >= newest {
            // The store may have told how far the thread is before these could be shown.
            self.floor = Some(first - 1);
        }
        self.extend(records);
        self.drain_early();
        while self.bytes > limits::TAIL_BYTES && self.records.len() > 1 {
            if let Some(oldest) = self.records.pop_front() {
                self.bytes -= oldest.weight();
                self.floor = Some(oldest.record.seq);
            }
        }
        OfferResult::Shown
    }

    /// Adds those of the records that come after the newest.
    fn extend(&mut self, records: &[Arc<StoredRecord>]) {
        let newest = self.newest().unwrap_or(0);
        for stored in records.iter().filter(|stored| stored.record.seq > newest) {
            self.bytes += stored.weight();
            self.records.push_back(stored.clone());
        }
    }

    /// Begins anew after a record.
    fn restart(&mut self, floor: u64) {
        (self.records, self.bytes, self.floor) = (VecDeque::new(), 0, Some(floor));
        self.drain_early();
    }

    /// Adds what came early and follows now.
    fn drain_early(&mut self) {
        let next = |recent: &Self| recent.newest().map_or(0, |newest| newest + 1);
        while self.early.first_key_value().is_some_and(|(first, _)| *first <= next(self)) {
            if let Some((_, early)) = self.early.pop_first() {
                self.early_bytes -= weight(&early);
                self.extend(&early);
            }
        }
    }
}

fn weight(records: &[Arc<StoredRecord>]) -> usize {
    records.iter().map(|stored| stored.weight()).sum()
}

/// The tails of all threads that are being read.
#[derive(Debug, Default)]
pub(crate) struct Tails {
    threads: Mutex<HashMap<ThreadKey, Weak<Tail>>>,
}

impl Tails {
    /// Finds the tail of a thread, or begins one.
    pub(crate) fn of(&self, thread: &ThreadKey) -> Arc<Tail> {
        self.find(thread).0
    }

    /// Finds the tail of a thread, or begins one; returns whether it is new.
    pub(crate) fn find(&self, thread: &ThreadKey) -> (Arc<Tail>, bool) {
        let mut threads = lock(&self.threads);
        if let Some(tail) = threads.get(thread).and_then(Weak::upgrade) {
            return (tail, false);
        }
        let tail = Arc::new(Tail::new());
        if threads.len() >= 64 && threads.len() == threads.capacity() {
            threads.retain(|_, tail| tail.strong_count() > 0);
            let room = 2 * threads.len();
            threads.shrink_to(room);
        }
        threads.insert(thread.clone(), Arc::downgrade(&tail));
        (tail, true)
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

#[cfg(test)]
mod tests {
    use std::ops::RangeInclusive;

    use bytes::Bytes;
    use runwire_model::Timestamp;
    use runwire_model::record::Record;

    use super::*;

    fn records(seqs: RangeInclusive<u64>) -> Vec<Arc<StoredRecord>> {
        sized(seqs, 10)
    }

    fn sized(seqs: RangeInclusive<u64>, bytes: usize) -> Vec<Arc<StoredRecord>> {
        let stored = |seq: u64| {
            let record =
                Record { seq, at: Timestamp(9), source_time: None, dialect: None, entries: Vec::new() };
            Arc::new(StoredRecord {
                run: "r".into(),
                record,
                name: None,
                frame: Some(Bytes::from(vec![0; bytes])),
            })
        };
        seqs.map(stored).collect()
    }

    fn after(tail: &Tail, seq: u64) -> Option<Vec<u64>> {
        Some(tail.after(seq)?.iter().map(|stored| stored.record.seq).collect())
    }

    #[test]
    fn whatever_order_records_come_in_each_is_shown_once_and_in_order() {
        let tail = Tail::new();
        assert!(!tail.set_position(3));
        assert_eq!(tail.offer(&records(6..=7)), OfferResult::OutOfOrder);
        assert_eq!((tail.head().seq, after(&tail, 3)), (3, Some(vec![])));
        assert_eq!(tail.offer(&records(9..=9)), OfferResult::OutOfOrder);
        assert_eq!(tail.offer(&records(9..=9)), OfferResult::OutOfOrder);
        assert_eq!(tail.missing(), Some((3, 9)));
        assert_eq!(tail.offer(&records(4..=5)), OfferResult::Shown);
        assert_eq!((tail.head().seq, after(&tail, 3)), (7, Some(vec![4, 5, 6, 7])));
        assert_eq!(tail.offer(&records(4..=5)), OfferResult::Shown);
        assert_eq!(tail.offer(&records(7..=10)), OfferResult::Shown);
        assert_eq!((tail.head().seq, after(&tail, 6)), (10, Some(vec![7, 8, 9, 10])));
        assert_eq!((tail.missing(), after(&tail, 2), after(&tail, 99)), (None, None, Some(vec![])));
        assert_eq!(lock(&tail.recent).early_bytes, 0);
    }

    #[test]
    fn what_the_store_has_told_of_before_it_is_shown_is_shown_all_the_same() {
        let tail = Tail::new();
        assert!(!tail.set_position(5));
        assert_eq!(tail.offer(&records(4..=5)), OfferResult::Shown);
        assert_eq!((tail.head().seq, after(&tail, 3)), (5, Some(vec![4, 5])));
        // And what was shown before the store was asked.
        let tail = Tail::new();
        assert_eq!(tail.offer(&records(6..=6)), OfferResult::Shown);
        assert!(!tail.set_position(5));
        assert!(tail.set_position(8));
        assert_eq!((tail.missing(), tail.head().seq), (Some((6, 8)), 6));
    }

    #[test]
    fn what_is_too_much_is_left_to_the_store() {
        let tail = Tail::new();
        tail.set_position(1);
        tail.offer(&records(9..=9));
        tail.offer(&records(12..=12));
        tail.skip_to(8);
        assert_eq!((tail.head().seq, after(&tail, 7), after(&tail, 8)), (9, None, Some(vec![9])));
        tail.skip_to(5);
        assert_eq!(tail.newest(), Some(9));
        // The store has nothing of what was told.
        tail.forget_reported(11);
        assert_eq!(tail.missing(), Some((9, 12)));
        tail.forget_reported(12);
        assert_eq!((tail.missing(), lock(&tail.recent).early.len()), (None, 0));
        tail.rewind_to(4);
        assert_eq!((tail.head().seq, after(&tail, 4), after(&tail, 3)), (4, Some(vec![]), None));
    }

    #[test]
    fn what_comes_early_costs_bounded_memory() {
        let tail = Tail::new();
        tail.set_position(1);
        for seq in 3..1000 {
            assert_eq!(tail.offer(&sized(seq..=seq, 1000)), OfferResult::OutOfOrder);
        }
        let held = lock(&tail.recent).early_bytes;
        assert!(held > 0 && held <= limits::TAIL_BYTES);
        tail.offer(&sized(2..=2, 1000));
        assert!(lock(&tail.recent).bytes <= limits::TAIL_BYTES);
        assert_eq!(lock(&tail.recent).early_bytes, 0);
        assert_eq!(tail.missing().map(|(_, reported)| reported), Some(999));
    }
}
