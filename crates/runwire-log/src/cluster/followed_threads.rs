//! The registry of threads that readers of this node follow, with the lookups and reads that are due for them.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use super::redis::{RedisLinks, RedisTail, Subscription};
use super::{ClusterStats, EncodedBatch, PollerStatus};
use crate::key::ThreadKey;
use crate::limits;
use crate::record::StoredRecord;
use crate::tail::{OfferResult, Tail};

/// The followed threads of a node, shared by its writers, its subscriber and its head poller.
#[derive(Debug)]
pub(crate) struct FollowedThreads {
    inner: Mutex<Inner>,
    pub(super) wake: Notify,
    redis: Option<RedisTail>,
    poller_status: Mutex<PollerStatus>,
    pub(super) head_checks: AtomicU64,
    pub(super) heals: AtomicU64,
    pub(super) healed: AtomicU64,
}

/// Drop no tail while this is locked: dropping the last reference locks it to remove the entry.
#[derive(Debug, Default)]
struct Inner {
    /// Followed threads by the store's number.
    followed: HashMap<i64, Followed>,
    /// Threads whose number is not known yet.
    unresolved: HashMap<ThreadKey, Unresolved>,
    /// Threads of which records are missing.
    pending_reads: HashMap<i64, PendingRead>,
    stamps: u64,
}

#[derive(Debug)]
struct Followed {
    tail: Weak<Tail>,
    /// Distinguishes this tail from an earlier one of the same thread.
    stamp: u64,
}

#[derive(Debug)]
struct Unresolved {
    tail: Weak<Tail>,
    /// When it is looked up next.
    due: Instant,
}

#[derive(Debug, Clone, Copy)]
struct PendingRead {
    due: Instant,
    /// Whether Redis was up and did not deliver it.
    redis_missed_it: bool,
}

/// When missing records are read from the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReadUrgency {
    /// Immediately.
    Now,
    /// After the reorder delay, unless they arrive.
    Soon,
    /// After the reorder delay. Redis was up and did not deliver them.
    MissedByRedis,
}

/// Follows a thread until it is dropped, which its tail does when the last reader is gone.
#[derive(Debug)]
pub(crate) struct FollowGuard {
    followed: Weak<FollowedThreads>,
    number: i64,
    stamp: u64,
    /// Ends the Redis subscription when dropped.
    _subscription: Option<Subscription>,
}

impl Drop for FollowGuard {
    fn drop(&mut self) {
        if let Some(followed) = self.followed.upgrade() {
            let mut inner = followed.lock();
            if inner.followed.get(&self.number).is_some_and(|entry| entry.stamp == self.stamp) {
                inner.followed.remove(&self.number);
                inner.pending_reads.remove(&self.number);
            }
        }
    }
}

impl FollowedThreads {
    pub(super) fn new(redis: Option<RedisTail>) -> Self {
        Self {
            inner: Mutex::default(),
            wake: Notify::new(),
            redis,
            poller_status: Mutex::new(PollerStatus {
                up: true,
                since: std::time::Instant::now(),
                error: None,
            }),
            head_checks: AtomicU64::new(0),
            heals: AtomicU64::new(0),
            healed: AtomicU64::new(0),
        }
    }

    /// Offers this node's own commit to the tail of a thread.
    pub(crate) fn show_commit(
        self: &Arc<Self>,
        number: i64,
        tail: &Arc<Tail>,
        records: &[Arc<StoredRecord>],
    ) {
        let Some(last) = records.last() else { return };
        let offered = tail.offer(records);
        if !tail.is_followed() {
            self.follow(number, tail, last.record.seq);
        }
        if offered == OfferResult::OutOfOrder {
            self.request_read(number, ReadUrgency::Soon);
        }
    }

    /// Queues the lookup of a thread whose tail is new.
    pub(super) fn resolve(&self, key: &ThreadKey, tail: &Arc<Tail>) {
        let thread = Unresolved { tail: Arc::downgrade(tail), due: Instant::now() };
        self.lock().unresolved.insert(key.clone(), thread);
        self.wake.notify_one();
    }

    /// Publishes this node's commits to the other nodes. Never waits.
    pub(crate) fn publish(&self, batches: impl IntoIterator<Item = EncodedBatch>) {
        if let Some(redis) = &self.redis {
            redis.publish(batches.into_iter().map(EncodedBatch::into_entry));
        }
    }

    /// Follows a thread whose head was `head` after its tail was created.
    pub(super) fn follow(self: &Arc<Self>, number: i64, tail: &Arc<Tail>, head: u64) {
        let is_missing = tail.set_position(head);
        if let Some(stamp) = self.register(number, tail) {
            let subscription = self.redis.as_ref().map(|redis| redis.follow(number, head));
            tail.attach(FollowGuard {
                followed: Arc::downgrade(self),
                number,
                stamp,
                _subscription: subscription,
            });
            // The first poll of heads may be due.
            self.wake.notify_one();
        }
        if is_missing {
            self.request_read(number, ReadUrgency::Soon);
        }
    }

    /// Adds a thread before Redis can deliver entries of it; returns `None` if it is followed already.
    fn register(&self, number: i64, tail: &Arc<Tail>) -> Option<u64> {
        let mut inner = self.lock();
        let is_there = |entry: &Followed| entry.tail.as_ptr() == Arc::as_ptr(tail);
        if tail.is_followed() || inner.followed.get(&number).is_some_and(is_there) {
            return None;
        }
        inner.stamps += 1;
        let stamp = inner.stamps;
        inner.followed.insert(number, Followed { tail: Arc::downgrade(tail), stamp });
        Some(stamp)
    }

    /// Returns the tail of a followed thread.
    pub(super) fn tail(&self, number: i64) -> Option<Arc<Tail>> {
        self.lock().followed.get(&number).and_then(|entry| entry.tail.upgrade())
    }

    /// Schedules a read of a thread's missing records.
    pub(super) fn request_read(&self, number: i64, urgency: ReadUrgency) {
        let waits = urgency != ReadUrgency::Now && self.redis_is_up();
        let delay = if waits { Duration::from_millis(limits::REORDER_MILLIS) } else { Duration::ZERO };
        let new = PendingRead {
            due: Instant::now() + delay,
            redis_missed_it: urgency == ReadUrgency::MissedByRedis,
        };
        {
            let mut inner = self.lock();
            let read = inner.pending_reads.entry(number).or_insert(new);
            read.due = read.due.min(new.due);
            read.redis_missed_it |= new.redis_missed_it;
        }
        self.wake.notify_one();
    }

    /// Returns whether Redis delivers commits of other nodes.
    pub(super) fn redis_is_up(&self) -> bool {
        self.redis.as_ref().is_some_and(|redis| redis.links().borrow().subscribing.up)
    }

    /// Watches the state of the Redis connections.
    pub(super) fn links(&self) -> Option<watch::Receiver<RedisLinks>> {
        self.redis.as_ref().map(RedisTail::links)
    }

    /// Returns when the next lookup or read is due.
    pub(super) fn due(&self) -> Option<Instant> {
        let inner = self.lock();
        let thread = inner.unresolved.values().map(|thread| thread.due);
        thread.chain(inner.pending_reads.values().map(|read| read.due)).min()
    }

    /// Returns whether any thread is followed.
    pub(super) fn is_following(&self) -> bool {
        !self.lock().followed.is_empty()
    }

    /// Lists threads whose lookup is due.
    pub(super) fn due_unresolved(&self) -> Vec<(ThreadKey, Arc<Tail>)> {
        let now = Instant::now();
        let mut inner = self.lock();
        inner.unresolved.retain(|_, thread| thread.tail.strong_count() > 0);
        let due = inner.unresolved.iter().filter(|(_, thread)| thread.due <= now);
        let found = due.filter_map(|(key, thread)| Some((key.clone(), thread.tail.upgrade()?)));
        found.take(limits::POLL_NAMES).collect()
    }

    /// Removes a thread that was found, or schedules its next lookup.
    pub(super) fn mark_resolved(&self, key: &ThreadKey, tail: &Arc<Tail>, is_found: bool) {
        let mut inner = self.lock();
        let Some(thread) = inner.unresolved.get_mut(key) else { return };
        if thread.tail.as_ptr() != Arc::as_ptr(tail) {
            return;
        }
        if is_found {
            inner.unresolved.remove(key);
        } else {
            thread.due = Instant::now() + Duration::from_millis(limits::POLL_WITHOUT_REDIS_MILLIS);
        }
    }

    /// Lists all followed threads.
    pub(super) fn all(&self) -> Vec<(i64, Arc<Tail>)> {
        let inner = self.lock();
        inner.followed.iter().filter_map(|(number, entry)| Some((*number, entry.tail.upgrade()?))).collect()
    }

    /// Takes the reads that are due, each with whether Redis has missed it.
    pub(super) fn take_due_reads(&self) -> Vec<(i64, Arc<Tail>, bool)> {
        let now = Instant::now();
        let mut inner = self.lock();
        let due = inner.pending_reads.iter().filter(|(_, read)| read.due <= now);
        let mut due: Vec<_> = due.map(|(number, read)| (*number, *read)).collect();
        // The longest waiting first, so that none starves.
        due.sort_unstable_by_key(|(_, read)| read.due);
        due.truncate(limits::POLL_THREADS);
        let mut found = Vec::new();
        for (number, read) in due {
            inner.pending_reads.remove(&number);
            if let Some(tail) = inner.followed.get(&number).and_then(|entry| entry.tail.upgrade()) {
                found.push((number, tail, read.redis_missed_it));
            }
        }
        found
    }

    /// Removes a deleted thread.
    pub(super) fn unfollow(&self, number: i64, tail: &Tail) {
        let mut inner = self.lock();
        if inner.followed.get(&number).is_some_and(|entry| std::ptr::eq(entry.tail.as_ptr(), tail)) {
            inner.followed.remove(&number);
            inner.pending_reads.remove(&number);
        }
    }

    /// Records whether the last poll succeeded.
    pub(super) fn set_poller_status(&self, error: Option<String>) {
        let mut status = self.poller_status.lock().unwrap_or_else(PoisonError::into_inner);
        let up = error.is_none();
        if status.up != up {
            (status.up, status.since) = (up, std::time::Instant::now());
            tracing::info!(up, error, "polling the store for readers has changed state");
        }
        if error.is_some() {
            status.error = error;
        }
    }

    /// Returns statistics.
    pub(super) fn stats(&self) -> ClusterStats {
        let (followed, unknown) = {
            let inner = self.lock();
            (inner.followed.len(), inner.unresolved.len())
        };
        ClusterStats {
            tail: self.redis.as_ref().map(RedisTail::stats),
            poller: self.poller_status.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            followed,
            unknown,
            head_checks: self.head_checks.load(Relaxed),
            heals: self.heals.load(Relaxed),
            healed: self.healed.load(Relaxed),
        }
    }

    /// Publishes what is queued, as far as Redis accepts it in time.
    pub(super) async fn close(&self) {
        if let Some(redis) = &self.redis {
            redis.close().await;
        }
    }

    /// A panic while it was locked costs at worst one more lookup of a thread.
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
