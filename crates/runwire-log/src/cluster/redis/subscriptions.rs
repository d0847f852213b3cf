//! The threads that a node follows in Redis, and the changes that are not yet subscribed.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// The followed threads of a Redis connection.
#[derive(Debug, Default)]
pub(super) struct Subscriptions {
    inner: Mutex<Inner>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct Inner {
    followed: HashMap<i64, Followed>,
    /// Threads that were followed or unfollowed since changes were last taken.
    touched: HashSet<i64>,
}

#[derive(Debug)]
struct Followed {
    /// Number of followers.
    holders: usize,
    /// The last record that was received.
    seen: u64,
    /// The `seq` after which its stream is read once it is subscribed.
    catch_up: Option<u64>,
}

/// A change that the connection has to make.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SubscriptionChange {
    /// Subscribe it, where it is not, and read its stream after a `seq`.
    Subscribe(u64),
    /// Unsubscribe it, where it is subscribed.
    Unsubscribe,
}

impl Subscriptions {
    /// Adds a follower of a thread.
    pub(super) fn follow(&self, thread: i64, after: u64) {
        let mut inner = self.lock();
        let mut is_new = false;
        let followed = inner.followed.entry(thread).or_insert_with(|| {
            is_new = true;
            Followed { holders: 0, seen: after, catch_up: Some(after) }
        });
        followed.holders += 1;
        if is_new {
            inner.touched.insert(thread);
            drop(inner);
            self.changed.notify_one();
        }
    }

    /// Removes a follower of a thread.
    pub(super) fn unfollow(&self, thread: i64) {
        let mut inner = self.lock();
        let Some(followed) = inner.followed.get_mut(&thread) else { return };
        followed.holders -= 1;
        if followed.holders == 0 {
            inner.followed.remove(&thread);
            inner.touched.insert(thread);
            drop(inner);
            self.changed.notify_one();
        }
    }

    /// Records the last received `seq`; returns whether the thread is followed.
    pub(super) fn advance(&self, thread: i64, last: u64) -> bool {
        let mut inner = self.lock();
        let Some(followed) = inner.followed.get_mut(&thread) else { return false };
        followed.seen = followed.seen.max(last);
        true
    }

    /// Marks all followed threads for subscription, after a reconnect.
    pub(super) fn resubscribe_all(&self) {
        let mut inner = self.lock();
        let Inner { followed, touched } = &mut *inner;
        touched.clear();
        touched.extend(followed.keys());
        for followed in followed.values_mut() {
            // What was not caught up before is caught up from where it was.
            followed.catch_up.get_or_insert(followed.seen);
        }
    }

    /// Takes up to `limit` pending changes; returns none if nothing is pending.
    pub(super) fn take_changes(&self, limit: usize) -> Vec<(i64, SubscriptionChange)> {
        let mut inner = self.lock();
        let Inner { followed, touched } = &mut *inner;
        let taken: Vec<i64> = touched.iter().copied().take(limit).collect();
        let changes = taken.into_iter().map(|thread| {
            touched.remove(&thread);
            let followed = followed.get_mut(&thread);
            let change = followed.map_or(SubscriptionChange::Unsubscribe, |followed| {
                SubscriptionChange::Subscribe(followed.catch_up.take().unwrap_or(followed.seen))
            });
            (thread, change)
        });
        changes.collect()
    }

    /// Waits until a change is pending.
    pub(super) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Returns the number of followed threads.
    pub(super) fn len(&self) -> usize {
        self.lock().followed.len()
    }

    /// A panic while it was locked costs at worst a read of a thread from the store.
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_followed_until_its_last_follower_leaves() {
        let threads = Subscriptions::default();
        threads.follow(1, 5);
        threads.follow(1, 9);
        assert_eq!(threads.take_changes(10), [(1, SubscriptionChange::Subscribe(5))]);
        assert!(threads.advance(1, 6));
        threads.unfollow(1);
        assert_eq!(threads.take_changes(10), []);
        threads.unfollow(1);
        assert!(!threads.advance(1, 7));
        assert_eq!(threads.take_changes(10), [(1, SubscriptionChange::Unsubscribe)]);
        threads.unfollow(1);
        assert_eq!((threads.take_changes(10), threads.len()), (vec![], 0));
    }

    #[test]
    fn a_thread_that_is_followed_again_is_caught_up() {
        let threads = Subscriptions::default();
        threads.follow(1, 5);
        threads.take_changes(10);
        threads.unfollow(1);
        threads.follow(1, 8);
        assert!(threads.advance(1, 10));
        assert_eq!(threads.take_changes(10), [(1, SubscriptionChange::Subscribe(8))]);
    }

    #[test]
    fn a_restarted_redis_is_subscribed_again() {
        let threads = Subscriptions::default();
        threads.follow(1, 0);
        threads.take_changes(10);
        threads.follow(2, 0);
        (1..=2).for_each(|thread| assert!(threads.advance(thread, 7)));
        threads.resubscribe_all();
        let mut changes = threads.take_changes(10);
        changes.sort_by_key(|(thread, _)| *thread);
        // The stream of the second was never read.
        assert_eq!(changes, [(1, SubscriptionChange::Subscribe(7)), (2, SubscriptionChange::Subscribe(0))]);
    }
}
