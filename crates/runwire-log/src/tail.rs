//! The tail of a thread: wakes its readers once per commit, and caches its newest records.
//!
//! It is only a fast path: live readers need not query the store. A reader that finds records missing reads the
//! store.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use tokio::sync::watch;

use crate::cluster::FollowGuard;
use crate::key::ThreadKey;
use crate::limits;
use crate::record::StoredRecord;

/// The head of a thread, as its readers know it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TailHead {
    /// The last record that was committed since the tail exists; 0 before that.
    pub seq: u64,
    /// Whether the thread was deleted.
    pub deleted: bool,
}

/// The newest records of one thread, shared by all its readers.
#[derive(Debug)]
pub struct Tail {
    head: watch::Sender<TailHead>,
    recent: Mutex<Recent>,
    /// The number of its newest records among those that all tails were offered.
    last_offer: AtomicU64,
    shared: Arc<SharedTails>,
    /// In a cluster: unfollows the thread when the last reader leaves.
    follow_guard: OnceLock<FollowGuard>,
}

/// The result of offering records to a tail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OfferResult {
    /// Readers see them, or saw them before.
    Shown,
    /// Earlier records are missing. They are kept until those arrive, as far as the limit allows.
    OutOfOrder,
}

impl Tail {
    fn new(shared: Arc<SharedTails>) -> Self {
        Self {
            head: watch::Sender::new(TailHead::default()),
            recent: Mutex::default(),
            last_offer: AtomicU64::new(0),
            shared,
            follow_guard: OnceLock::new(),
        }
    }

    /// Watches the head.
    pub fn watch(&self) -> watch::Receiver<TailHead> {
        self.head.subscribe()
    }

    /// Returns the head.
    pub fn head(&self) -> TailHead {
        *self.head.borrow()
    }

    /// Returns the records after `seq`, if the tail has all of them.
    pub fn after(&self, seq: u64) -> Option<Vec<Arc<StoredRecord>>> {
        let recent = lock(&self.recent);
        let skip = seq.checked_sub(recent.floor?)?;
        let skip = usize::try_from(skip).ok()?;
        Some(recent.records.iter().skip(skip).cloned().collect())
    }

    /// Shows committed, consecutive records of the only writer.
    pub(crate) fn publish(&self, records: &[Arc<StoredRecord>]) {
        if self.offer(records) == OfferResult::OutOfOrder {
            self.change(|recent| *recent = Recent::default());
            self.offer(records);
        }
    }

    /// Marks the thread as deleted. Cached records stay, for readers that have not read them yet.
    pub(crate) fn delete(&self) {
        self.head.send_if_modified(|head| !std::mem::replace(&mut head.deleted, true));
    }

    /// Takes committed, consecutive records from any source; shows those without a gap.
    pub(crate) fn offer(&self, records: &[Arc<StoredRecord>]) -> OfferResult {
        let (offered, newest) = self.change(|recent| (recent.offer(records), recent.newest()));
        self.announce(newest);
        let number = self.shared.offers.fetch_add(1, Ordering::Relaxed);
        self.last_offer.store(number, Ordering::Relaxed);
        self.shared.evict();
        offered
    }

    /// Sets the head that the store had after the tail was created; returns whether records are missing.
    pub(crate) fn set_position(&self, head: u64) -> bool {
        let (is_missing, newest) = self.change(|recent| {
            recent.reported = recent.reported.max(head);
            // Readers before this read the store.
            let floor = *recent.floor.get_or_insert(head);
            let newest = recent.newest().unwrap_or(floor);
            (recent.reported > newest, newest)
        });
        self.announce(Some(newest));
        is_missing
    }

    /// Returns the last record that readers can see.
    pub(crate) fn newest(&self) -> Option<u64> {
        lock(&self.recent).newest()
    }

    /// Returns the range of missing records, if any: after the newest, up to the last reported one.
    pub(crate) fn missing(&self) -> Option<(u64, u64)> {
        let recent = lock(&self.recent);
        let newest = recent.newest()?;
        (recent.reported > newest).then_some((newest, recent.reported))
    }

    /// Skips records that are too many for the tail: the store has them.
    pub(crate) fn skip_to(&self, head: u64) {
        let newest = self.change(|recent| {
            if recent.newest().is_none_or(|newest| newest < head) {
                recent.restart(head);
            }
            recent.newest()
        });
        self.announce(newest);
    }

    /// Forgets reported records up to `reported`, which the store turned out not to have.
    pub(crate) fn forget_reported(&self, reported: u64) {
        self.change(|recent| {
            if recent.reported <= reported {
                recent.reported = recent.newest().unwrap_or(0);
                (recent.out_of_order, recent.out_of_order_bytes) = (BTreeMap::new(), 0);
            }
        });
    }

    /// Rewinds to the head of a store that has lost records.
    pub(crate) fn rewind_to(&self, head: u64) {
        self.change(|recent| {
            *recent = Recent { floor: Some(head), reported: head, ..Recent::default() };
            self.head.send_modify(|known| known.seq = head);
        });
    }

    /// Attaches the guard that unfollows the thread; returns whether there was none yet.
    pub(crate) fn attach(&self, follow_guard: FollowGuard) -> bool {
        self.follow_guard.set(follow_guard).is_ok()
    }

    /// Returns whether a guard is attached.
    pub(crate) fn is_followed(&self) -> bool {
        self.follow_guard.get().is_some()
    }

    /// Drops the records; the store has them.
    fn clear(&self) {
        self.change(|recent| {
            if let Some(newest) = recent.newest() {
                recent.restart(newest);
            }
        });
    }

    /// Changes the records, and counts what they take.
    fn change<T>(&self, change: impl FnOnce(&mut Recent) -> T) -> T {
        let mut recent = lock(&self.recent);
        let before = recent.held_bytes();
        let changed = change(&mut recent);
        let bytes = &self.shared.bytes;
        match recent.held_bytes().checked_sub(before) {
            Some(more) => bytes.fetch_add(more, Ordering::Relaxed),
            None => bytes.fetch_sub(before - recent.held_bytes(), Ordering::Relaxed),
        };
        changed
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

impl Drop for Tail {
    fn drop(&mut self) {
        self.change(|recent| *recent = Recent::default());
    }
}

#[derive(Debug, Default)]
struct Recent {
    /// All records after this `seq`, up to the newest, are in `records`; `None` while the tail knows nothing.
    floor: Option<u64>,
    records: VecDeque<Arc<StoredRecord>>,
    bytes: usize,
    /// Records that arrived out of order, by their first `seq`.
    out_of_order: BTreeMap<u64, Vec<Arc<StoredRecord>>>,
    out_of_order_bytes: usize,
    /// The last record that anything has reported.
    reported: u64,
}

impl Recent {
    fn held_bytes(&self) -> usize {
        self.bytes + self.out_of_order_bytes
    }

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
            if self.out_of_order_bytes + weight <= limits::TAIL_BYTES
                && !self.out_of_order.contains_key(&first)
            {
                self.out_of_order.insert(first, records.to_vec());
                self.out_of_order_bytes += weight;
            }
            return OfferResult::OutOfOrder;
        }
        if self.records.is_empty() && last >= newest {
            // The store may have reported the head before these could be shown.
            self.floor = Some(first - 1);
        }
        self.extend(records);
        self.drain_out_of_order();
        while self.bytes > limits::TAIL_BYTES && self.records.len() > 1 {
            if let Some(oldest) = self.records.pop_front() {
                self.bytes -= oldest.weight();
                self.floor = Some(oldest.record.seq);
            }
        }
        OfferResult::Shown
    }

    /// Adds the records after the newest.
    fn extend(&mut self, records: &[Arc<StoredRecord>]) {
        let newest = self.newest().unwrap_or(0);
        for stored in records.iter().filter(|stored| stored.record.seq > newest) {
            self.bytes += stored.weight();
            self.records.push_back(stored.clone());
        }
    }

    /// Restarts after a `seq`.
    fn restart(&mut self, floor: u64) {
        (self.records, self.bytes, self.floor) = (VecDeque::new(), 0, Some(floor));
        self.drain_out_of_order();
    }

    /// Adds the out-of-order records that follow now.
    fn drain_out_of_order(&mut self) {
        let next = |recent: &Self| recent.newest().map_or(0, |newest| newest + 1);
        while self.out_of_order.first_key_value().is_some_and(|(first, _)| *first <= next(self)) {
            if let Some((_, out_of_order)) = self.out_of_order.pop_first() {
                self.out_of_order_bytes -= weight(&out_of_order);
                self.extend(&out_of_order);
            }
        }
    }
}

fn weight(records: &[Arc<StoredRecord>]) -> usize {
    records.iter().map(|stored| stored.weight()).sum()
}

/// The tails of all threads with readers.
#[derive(Debug, Default)]
pub(crate) struct Tails {
    shared: Arc<SharedTails>,
}

/// What all tails share.
#[derive(Debug, Default)]
struct SharedTails {
    threads: Mutex<HashMap<ThreadKey, Weak<Tail>>>,
    /// The bytes of the records of all tails.
    bytes: AtomicUsize,
    /// Counts what all tails were offered.
    offers: AtomicU64,
    /// Held by whoever empties tails.
    eviction: Mutex<()>,
}

impl SharedTails {
    /// Empties the tails that have rested longest, if all of them hold more than [`limits::TAILS_BYTES`].
    fn evict(&self) {
        if self.bytes.load(Ordering::Relaxed) <= limits::TAILS_BYTES {
            return;
        }
        let Ok(_evicting) = self.eviction.try_lock() else { return };
        let mut tails: Vec<Arc<Tail>> = lock(&self.threads).values().filter_map(Weak::upgrade).collect();
        tails.sort_unstable_by_key(|tail| tail.last_offer.load(Ordering::Relaxed));
        for tail in tails {
            if self.bytes.load(Ordering::Relaxed) <= limits::TAILS_BYTES / 4 * 3 {
                return;
            }
            tail.clear();
        }
    }
}

impl Tails {
    /// Returns the tail of a thread, created if missing.
    pub(crate) fn of(&self, thread: &ThreadKey) -> Arc<Tail> {
        self.find(thread).0
    }

    /// Returns the tail of a thread, created if missing, and whether it is new.
    pub(crate) fn find(&self, thread: &ThreadKey) -> (Arc<Tail>, bool) {
        let mut threads = lock(&self.shared.threads);
        if let Some(tail) = threads.get(thread).and_then(Weak::upgrade) {
            return (tail, false);
        }
        let tail = Arc::new(Tail::new(self.shared.clone()));
        if threads.len() >= 64 && threads.len() == threads.capacity() {
            threads.retain(|_, tail| tail.strong_count() > 0);
            let room = 2 * threads.len();
            threads.shrink_to(room);
        }
        threads.insert(thread.clone(), Arc::downgrade(&tail));
        (tail, true)
    }

    /// Returns the tail of a thread that has readers.
    pub(crate) fn live(&self, thread: &ThreadKey) -> Option<Arc<Tail>> {
        lock(&self.shared.threads).get(thread).and_then(Weak::upgrade)
    }
}

/// A panic while it was locked costs at worst the cached records of a thread.
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

    fn new_tail() -> Arc<Tail> {
        Arc::new(Tail::new(Arc::default()))
    }

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
    fn records_in_any_order_are_shown_once_and_in_order() {
        let tail = new_tail();
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
        assert_eq!(lock(&tail.recent).out_of_order_bytes, 0);
    }

    #[test]
    fn records_that_the_store_reported_first_are_shown() {
        let tail = new_tail();
        assert!(!tail.set_position(5));
        assert_eq!(tail.offer(&records(4..=5)), OfferResult::Shown);
        assert_eq!((tail.head().seq, after(&tail, 3)), (5, Some(vec![4, 5])));
        // And what was shown before the store was asked.
        let tail = new_tail();
        assert_eq!(tail.offer(&records(6..=6)), OfferResult::Shown);
        assert!(!tail.set_position(5));
        assert!(tail.set_position(8));
        assert_eq!((tail.missing(), tail.head().seq), (Some((6, 8)), 6));
    }

    #[test]
    fn records_that_are_too_many_are_skipped() {
        let tail = new_tail();
        tail.set_position(1);
        tail.offer(&records(9..=9));
        tail.offer(&records(12..=12));
        tail.skip_to(8);
        assert_eq!((tail.head().seq, after(&tail, 7), after(&tail, 8)), (9, None, Some(vec![9])));
        tail.skip_to(5);
        assert_eq!(tail.newest(), Some(9));
        // The store has none of the reported records.
        tail.forget_reported(11);
        assert_eq!(tail.missing(), Some((9, 12)));
        tail.forget_reported(12);
        assert_eq!((tail.missing(), lock(&tail.recent).out_of_order.len()), (None, 0));
        tail.rewind_to(4);
        assert_eq!((tail.head().seq, after(&tail, 4), after(&tail, 3)), (4, Some(vec![]), None));
    }

    #[test]
    fn out_of_order_records_use_bounded_memory() {
        let tail = new_tail();
        tail.set_position(1);
        for seq in 3..1000 {
            assert_eq!(tail.offer(&sized(seq..=seq, 1000)), OfferResult::OutOfOrder);
        }
        let held = lock(&tail.recent).out_of_order_bytes;
        assert!(held > 0 && held <= limits::TAIL_BYTES);
        tail.offer(&sized(2..=2, 1000));
        assert!(lock(&tail.recent).bytes <= limits::TAIL_BYTES);
        assert_eq!(lock(&tail.recent).out_of_order_bytes, 0);
        assert_eq!(tail.missing().map(|(_, reported)| reported), Some(999));
    }

    #[test]
    fn all_tails_together_hold_no_more_than_their_limit() {
        let tails = Tails::default();
        let count = 2 * limits::TAILS_BYTES / limits::TAIL_BYTES;
        let all: Vec<_> =
            (0..count).map(|at| tails.of(&ThreadKey::new("t", format!("{at}").as_str()))).collect();
        for tail in &all {
            tail.publish(&sized(1..=2, limits::TAIL_BYTES / 6));
            assert!(tails.shared.bytes.load(Ordering::Relaxed) <= limits::TAILS_BYTES);
            assert_eq!(after(tail, 0), Some(vec![1, 2]));
        }
        // Those that have rested longest are empty, and their readers go on.
        assert_eq!((after(&all[0], 0), after(&all[0], 2)), (None, Some(vec![])));
        all[0].publish(&sized(3..=3, 10));
        assert_eq!((all[0].head().seq, after(&all[0], 2)), (3, Some(vec![3])));
        drop(all);
        assert_eq!(tails.shared.bytes.load(Ordering::Relaxed), 0);
    }
}
