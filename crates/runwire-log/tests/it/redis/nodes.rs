//! Nodes that share a Redis.

use std::ops::RangeInclusive;
use std::time::Duration;

use bytes::Bytes;
use runwire_engines::Redis;
use runwire_log::cluster::redis::{
    EntryReceiver, PublishedEntry, ReceivedEntry, RedisLinks, RedisTail, RedisTailStats,
};
use tokio::time::{sleep, timeout};

/// Longer than anything takes that happens at all.
const PATIENCE: Duration = Duration::from_secs(30);

pub(super) struct Node {
    pub(super) tail: RedisTail,
    pub(super) arrivals: EntryReceiver,
}

impl Node {
    /// Starts a node of the generation `g`, and waits until it is connected.
    pub(super) async fn start(redis: &Redis) -> Self {
        Self::start_by(&redis.url(), "g").await
    }

    pub(super) async fn start_by(url: &str, generation: &str) -> Self {
        let node = Self::begin(url, generation);
        node.links(RedisLinks::up).await;
        node
    }

    /// Starts a node, whether Redis is there or not.
    pub(super) fn begin(url: &str, generation: &str) -> Self {
        let (tail, arrivals) = RedisTail::open(url, None, generation).unwrap();
        Self { tail, arrivals }
    }

    /// Waits until the connections are in some state.
    pub(super) async fn links(&self, are: impl FnMut(&RedisLinks) -> bool) {
        let waited = timeout(PATIENCE, self.tail.links().wait_for(are)).await.map(|_| ());
        waited.unwrap_or_else(|_| panic!("the links change: {:?}", self.tail.stats()));
    }

    /// Waits until the health is in some state.
    pub(super) async fn stats(&self, mut is: impl FnMut(&RedisTailStats) -> bool) {
        let wait = async {
            while !is(&self.tail.stats()) {
                sleep(Duration::from_millis(5)).await;
            }
        };
        let waited = timeout(PATIENCE, wait).await;
        waited.unwrap_or_else(|_| panic!("the health changes: {:?}", self.tail.stats()));
    }

    pub(super) fn publish(&self, thread: i64, seqs: RangeInclusive<u64>) {
        self.tail.publish([published(thread, seqs)]);
    }

    /// Publishes one record after another until one arrives at a node, and tells which.
    pub(super) async fn publish_until_heard(&self, thread: i64, from: u64, other: &mut Self) -> u64 {
        let wait = async {
            for seq in from.. {
                self.publish(thread, seq..=seq);
                let heard = timeout(Duration::from_millis(100), other.arrivals.next()).await;
                if let Ok(Some(arrival)) = heard
                    && arrival.thread == thread
                    && arrival.last >= from
                {
                    return arrival.last;
                }
            }
            unreachable!()
        };
        timeout(PATIENCE, wait).await.expect("an entry arrives")
    }

    pub(super) async fn next(&mut self) -> ReceivedEntry {
        timeout(PATIENCE, self.arrivals.next()).await.expect("an entry arrives").unwrap()
    }

    /// Takes entries until the one with a last `seq` of a thread has come; tells the last `seq`s of that thread.
    pub(super) async fn lasts_until(&mut self, thread: i64, last: u64) -> Vec<u64> {
        self.lasts_until_without(thread, last, (thread, 0)).await
    }

    /// The same, and an entry must not come meanwhile.
    pub(super) async fn lasts_until_without(
        &mut self,
        thread: i64,
        last: u64,
        never: (i64, u64),
    ) -> Vec<u64> {
        let mut lasts = Vec::new();
        while lasts.last() != Some(&last) {
            let arrival = self.next().await;
            assert_ne!((arrival.thread, arrival.last), never);
            if arrival.thread == thread {
                lasts.push(arrival.last);
            }
        }
        lasts
    }

    /// Takes entries until the one with a last `seq` of a thread has come, and compares its body.
    pub(super) async fn lasts_until_is(&mut self, thread: i64, last: u64, body: Option<Bytes>) {
        loop {
            let arrival = self.next().await;
            if (arrival.thread, arrival.last) == (thread, last) {
                assert!(arrival.body == body, "the body of {last}");
                return;
            }
        }
    }
}

pub(super) fn published(thread: i64, seqs: RangeInclusive<u64>) -> PublishedEntry {
    PublishedEntry { thread, first: *seqs.start(), last: *seqs.end(), body: body(thread, *seqs.end()) }
}

pub(super) fn arrival(thread: i64, seqs: RangeInclusive<u64>) -> ReceivedEntry {
    ReceivedEntry { thread, first: *seqs.start(), last: *seqs.end(), body: Some(body(thread, *seqs.end())) }
}

/// Bytes that are no text.
fn body(thread: i64, last: u64) -> Bytes {
    [&thread.to_be_bytes()[..], b"\n\xff\0\r\n", &last.to_be_bytes()].concat().into()
}
