//! The live tail over Redis: a node publishes its commits, and subscribes to those of other nodes.
//!
//! It is only a fast path. It holds no truth, blocks no writer, and whatever it loses costs only time: a tail checks
//! that entries follow each other, and reads the store where they do not.
//!
//! # What is in Redis
//!
//! One name for each thread: `runwire:<generation>:<thread>`. The generation belongs to the store; one that was
//! restored or replaced has another, and never meets entries of the old. Under that name are
//!
//! - a **stream**: an entry for each commit, its id `<last seq>-0`, its fields `first` (the first seq) and
//!   `body` (the records). It is trimmed, and expires some time after the last entry;
//! - a **channel**: the same entries as they are committed, `<first> <last>`, a line break, and the body.
//!
//! An entry that is too large has no body (and no line break): the reader finds the records in the store.
//!
//! # Why both
//!
//! The channel carries the flow, the stream closes the gap. A blocking read of the streams alone would name every
//! followed thread again after each entry, and Redis would look at each of them: with 5,000 threads some milliseconds
//! of Redis for each entry and node. A channel costs the same however many there are, threads are added and removed
//! one by one, and one connection serves all of them. But a channel forgets: what was committed after a reader looked
//! into the store and before Redis knew of the subscription is in the stream, and so is what was published while the
//! connection was down. Each thread is read once from its stream when it is subscribed, never again.
//!
//! # Invariants
//!
//! - Entries of a thread may arrive out of order, twice, or not at all. Two nodes may publish two commits in the
//!   other order; the stream then refuses the older one, the channel carries it all the same.
//! - Every queue has a limit in [`limits`]: what cannot be queued is dropped and counted.
//! - Everything has a timeout: a Redis that is killed, paused, flushed or replaced is dropped and reconnected.

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

/// Why a Redis tail cannot be opened.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TailError {
    /// The address is invalid.
    #[error("the address of Redis cannot be used: {0}")]
    Address(String),
    /// The certificates are invalid, or the address is without TLS.
    #[error("the certificates for Redis cannot be used: {0}")]
    Certificates(String),
}

/// A node's connection to the live tail.
///
/// It works at once, whether Redis is up or not, and ends when it is dropped.
pub struct RedisTail {
    queue: Arc<PublishQueue>,
    threads: Arc<Subscriptions>,
    counters: Arc<Counters>,
    publisher: PublisherTask,
    subscriber: AbortHandle,
}

/// The publisher task; closing the tail waits for it.
struct PublisherTask {
    abort: AbortHandle,
    ended: tokio::sync::Mutex<Option<JoinHandle<()>>>,
}

impl RedisTail {
    /// Opens a tail, and returns the receiver of its entries.
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

    /// Checks an address and the certificates for it, without connecting.
    pub fn check(url: &str, trust: Option<&[u8]>) -> Result<(), TailError> {
        RedisConnector::new(url, trust).map(drop)
    }

    /// Publishes commits to the other nodes.
    ///
    /// Never waits: what Redis does not accept in time is dropped.
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

    /// Returns statistics.
    pub fn stats(&self) -> RedisTailStats {
        self.counters.stats(self.queue.len(), self.threads.len())
    }

    /// Watches the state of the connections.
    pub fn links(&self) -> watch::Receiver<RedisLinks> {
        self.counters.links.subscribe()
    }

    /// Closes the tail, and publishes what is queued as far as Redis accepts it in time.
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
