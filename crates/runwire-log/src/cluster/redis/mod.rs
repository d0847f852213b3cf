//! The live tail over Redis: how a node tells the others what it has committed, and hears of what they have.
//!
//! A fast path only. Nothing here is the truth, nothing blocks a writer, and whatever is lost costs time: whoever
//! reads a thread checks that entries follow each other, and reads the store where they do not.
//!
//! # What is in Redis
//!
//! One name a thread: `runwire:<generation>:<thread>`. The generation belongs to the store; one that was restored or
//! replaced has another, and never meets entries of the old. Under that name are
//!
//! - a **stream**: an entry a commit, its id `<last seq>-0`, its fields `first` (the first seq) and `body` (the
//!   records). Trimmed, and gone some time after the last entry;
//! - a **channel**: the same entries as they come, `<first> <last>`, a line break, and the body.
//!
//! An entry that is too large has no body (and no line break): the reader finds the records in the store.
//!
//! # Why both
//!
//! The channel carries the flow, the stream closes the gap. A blocking read of the streams alone would name every
//! thread that is followed again after each entry, and Redis would look at each of them: with 5,000 threads some
//! milliseconds of Redis an entry, for each node. A channel costs the same however many there are, threads come and
//! go one by one, and one connection does for all of them. But a channel forgets: what was committed after a reader
//! looked into the store and before Redis knew that the thread is followed is in the stream, and so is what went by
//! while the connection was down. Each thread is read once from its stream when it is subscribed, never again.
//!
//! # What holds
//!
//! - Entries of a thread may arrive out of order, twice, or not at all. Two nodes may tell Redis of two commits in the
//!   other order; the stream then refuses the older one, the channel carries it all the same.
//! - Everything has a limit in [`limits`]: what waits to be sent is dropped, what waits to be taken is
//!   missed, both are counted.
//! - Everything has a time limit: a Redis that is killed, paused, flushed or replaced is left, and found again.

mod connect;
mod entry;
mod publish;
mod received;
mod stats;
mod subscribe;
mod subscriptions;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinHandle};

pub use entry::{PublishedEntry, ReceivedEntry};
pub use received::EntryReceiver;
pub use stats::{LinkStatus, RedisLinks, RedisTailStats};
pub use subscribe::Subscription;

use crate::limits;
use connect::RedisConnector;
use publish::{PublishQueue, Publisher};
use stats::Counters;
use subscribe::RedisSubscriber;
use subscriptions::Subscriptions;

/// Why there can be no tail.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TailError {
    /// The address is none.
    #[error("the address of Redis cannot be used: {0}")]
    Address(String),
    /// The certificates are none, or go with an address without TLS.
    #[error("the certificates for Redis cannot be used: {0}")]
    Certificates(String),
}

/// A node's end of the live tail.
///
/// It works from the beginning, whether Redis is there or not, and ends when it is dropped.
pub struct RedisTail {
    queue: Arc<PublishQueue>,
    threads: Arc<Subscriptions>,
    counters: Arc<Counters>,
    publisher: PublisherTask,
    subscriber: AbortHandle,
}

/// The task that publishes; whoever closes the tail waits for it.
struct PublisherTask {
    abort: AbortHandle,
    ended: tokio::sync::Mutex<Option<JoinHandle<()>>>,
}

impl RedisTail {
    /// Begins a tail, and gives the end that entries arrive at.
    ///
    /// `url` is `redis://` or, with TLS, `rediss://`; `trust` is PEM of the certificates that are trusted instead of
    /// the system's. Must be called within a tokio runtime.
    pub fn open(
        url: &str,
        trust: Option<&[u8]>,
        generation: &str,
    ) -> Result<(Self, EntryReceiver), TailError> {
        let connector = RedisConnector::new(url, trust)?;
        let keys = entry::RedisKeys::new(generation);
        let counters = Arc::new(Counters::default());
        let queue = Arc::new(PublishQueue::new(Arc::clone(&counters)));
        let threads = Arc::new(Subscriptions::default());
        let (sender, receiver) = received::channel(Arc::clone(&counters));
        let publisher =
            Publisher::new(connector.clone(), keys.clone(), Arc::clone(&queue), Arc::clone(&counters));
        let subscriber =
            RedisSubscriber::new(connector, keys, Arc::clone(&threads), sender, Arc::clone(&counters));
        let publishing = tokio::spawn(publisher.run());
        let subscribing = tokio::spawn(subscriber.run());
        let publisher = PublisherTask {
            abort: publishing.abort_handle(),
            ended: tokio::sync::Mutex::new(Some(publishing)),
        };
        Ok((Self { queue, threads, counters, publisher, subscriber: subscribing.abort_handle() }, receiver))
    }

    /// Tells what is wrong with an address, or with the certificates for it, without connecting.
    pub fn check(url: &str, trust: Option<&[u8]>) -> Result<(), TailError> {
        RedisConnector::new(url, trust).map(drop)
    }

    /// Tells the other nodes what was committed, when Redis has time for it.
    ///
    /// Never waits: what Redis does not take in time is dropped.
    pub fn publish(&self, entries: impl IntoIterator<Item = PublishedEntry>) {
        self.queue.push(entries);
    }

    /// Follows a thread from after a `seq` until the guard is dropped.
    ///
    /// `after` is the last record that was read from the store: what was committed since is in the stream, or comes
    /// over the channel.
    pub fn follow(&self, thread: i64, after: u64) -> Subscription {
        self.threads.follow(thread, after);
        Subscription::new(thread, Arc::clone(&self.threads))
    }

    /// Tells how the tail is.
    pub fn stats(&self) -> RedisTailStats {
        self.counters.stats(self.queue.len(), self.threads.len())
    }

    /// Watches whether Redis is there.
    pub fn links(&self) -> watch::Receiver<RedisLinks> {
        self.counters.links.subscribe()
    }

    /// Sends what waits to be sent, as long as Redis takes it in time, and takes nothing more.
    pub async fn close(&self) {
        self.queue.close();
        if let Some(mut publishing) = self.publisher.ended.lock().await.take() {
            let timeout = Duration::from_millis(limits::REDIS_ANSWER_MILLIS);
            let _ = tokio::time::timeout(timeout, &mut publishing).await;
            publishing.abort();
        }
    }
}

impl Drop for RedisTail {
    fn drop(&mut self) {
        self.publisher.abort.abort();
        self.subscriber.abort();
    }
}

impl fmt::Debug for RedisTail {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("RedisTail").field("stats", &self.stats()).finish_non_exhaustive()
    }
}
