//! Follows a feed for the socket loops that serve it: encodes what is new once, and wakes each loop once.

use std::sync::{Arc, Mutex};

use tokio::runtime::Handle;
use tokio::task::AbortHandle;

use super::{Feed, FeedCursor, FeedReader, Next, lock};

/// Is told when a feed has new segments. Must not block.
pub(crate) trait FeedListener: Send + Sync + 'static {
    /// Notes that the feed of a subscription has changed. `ended` means that nobody follows it any more: it has ended,
    /// or failed.
    fn feed_changed(&self, subscription: usize, ended: bool);
}

/// The listeners of a feed, and the task that follows it for them.
#[derive(Default)]
pub(super) struct Followers {
    state: Mutex<FollowerState>,
}

#[derive(Default)]
struct FollowerState {
    listeners: Vec<(Arc<dyn FeedListener>, usize)>,
    task: Option<AbortHandle>,
    /// Numbers the tasks: one that was aborted may still say something.
    generation: u64,
}

impl Feed {
    /// Subscribes to new segments, and has the feed followed from a record on. Look up what it holds afterwards.
    pub(crate) fn subscribe(
        self: &Arc<Self>,
        listener: Arc<dyn FeedListener>,
        subscription: usize,
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
    pub(crate) fn unsubscribe(&self, listener: &Arc<dyn FeedListener>, subscription: usize) {
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

    fn notify(&self, generation: u64, ended: bool) {
        let mut followers = lock(&self.followers.state);
        if followers.generation != generation {
            return;
        }
        if ended {
            // The next subscription starts another task.
            followers.task = None;
        }
        for (listener, subscription) in &followers.listeners {
            listener.feed_changed(*subscription, ended);
        }
    }
}

async fn follow(feed: Arc<Feed>, at: u64, generation: u64) {
    let reader = FeedReader::new(feed.clone(), FeedCursor::after(at), true);
    let mut reader = reader.until_run_ends().wait_out_outages();
    loop {
        let ended = match reader.next().await {
            Ok(Next::Frames { segment, .. }) => {
                // Framed here, so that no loop has to.
                drop(segment.sse_chunk());
                false
            }
            Ok(Next::CaughtUp) => false,
            Ok(Next::Ended) => true,
            Err(error) => {
                // Each reader gets the error by itself.
                tracing::debug!(%error, "a feed is no longer followed");
                true
            }
        };
        feed.notify(generation, ended);
        if ended {
            return;
        }
    }
}
