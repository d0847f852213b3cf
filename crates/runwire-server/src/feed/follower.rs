//! Follows a feed for the socket loops that serve it: has what is new encoded once, and wakes each loop once.

use std::sync::{Arc, Mutex};

use tokio::runtime::Handle;
use tokio::task::AbortHandle;

use super::{Feed, FeedCursor, FeedReader, Next, lock};

/// Identifies a subscription of a listener: its place there, and a number that tells it from earlier ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SubscriptionId {
    pub(crate) place: usize,
    pub(crate) number: u32,
}

/// Is told when a feed has new segments. Must not block.
pub(crate) trait FeedListener: Send + Sync + 'static {
    /// Notes that the feed of a subscription has changed. `ended` means that nobody follows it any more: it has ended,
    /// or failed.
    fn feed_changed(&self, subscription: SubscriptionId, ended: bool);
}

/// The listeners of a feed, and the task that follows it for them.
#[derive(Default)]
pub(super) struct Followers {
    state: Mutex<FollowerState>,
}

#[derive(Default)]
struct FollowerState {
    listeners: Vec<(Arc<dyn FeedListener>, SubscriptionId)>,
    task: Option<AbortHandle>,
    /// Numbers the tasks: one that was aborted may still say something.
    generation: u64,
}

impl Feed {
    /// Subscribes to new segments, and has the feed followed from a record on. Look up what it holds afterwards.
    pub(crate) fn subscribe(
        self: &Arc<Self>,
        listener: Arc<dyn FeedListener>,
        subscription: SubscriptionId,
        at: u64,
        runtime: &Handle,
    ) {
        let mut followers = lock(&self.followers.state);
        followers.listeners.push((listener, subscription));
        if followers.task.is_none() {
            followers.generation += 1;
            let task = runtime.spawn(follow(self.clone(), at, followers.generation));
            followers.task = Some(task.abort_handle());
        }
    }

    /// Ends a subscription; the last one ends the task.
    pub(crate) fn unsubscribe(&self, listener: &Arc<dyn FeedListener>, subscription: SubscriptionId) {
        let mut followers = lock(&self.followers.state);
        followers
            .listeners
            .retain(|(known, number)| !(Arc::ptr_eq(known, listener) && *number == subscription));
        if followers.listeners.is_empty()
            && let Some(task) = followers.task.take()
        {
            task.abort();
        }
    }

    /// Returns true if socket loops serve the feed.
    pub(super) fn has_followers(&self) -> bool {
        !lock(&self.followers.state).listeners.is_empty()
    }

    /// Wakes the loops after the ring has changed, whoever has changed it: readers at its end look at nothing else.
    pub(super) fn notify_followers(&self) {
        lock(&self.followers.state).notify(false);
    }

    /// Notifies the loops that nobody follows the feed any more.
    fn end_following(&self, generation: u64) {
        let mut followers = lock(&self.followers.state);
        if followers.generation == generation {
            // The next subscription starts another task.
            followers.task = None;
            followers.notify(true);
        }
    }
}

impl FollowerState {
    fn notify(&self, ended: bool) {
        for (listener, subscription) in &self.listeners {
            listener.feed_changed(*subscription, ended);
        }
    }
}

async fn follow(feed: Arc<Feed>, at: u64, generation: u64) {
    let reader = FeedReader::new(feed.clone(), FeedCursor::after(at), true);
    let mut reader = reader.until_run_ends().wait_out_outages();
    loop {
        match reader.next().await {
            // What it has encoded for all is in the ring, and announced; what it has read for itself is for nobody else.
            Ok(Next::Frames { .. } | Next::CaughtUp) => {}
            Ok(Next::Ended) => break,
            Err(error) => {
                // Each reader gets the error by itself.
                tracing::debug!(%error, "a feed is no longer followed");
                break;
            }
        }
    }
    feed.end_following(generation);
}
