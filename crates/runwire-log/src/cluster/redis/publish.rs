//! Publishes this node's commits to Redis: a queue that never blocks a writer, and the task that drains it.

use std::collections::VecDeque;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use redis::aio::MultiplexedConnection;
use redis::{Pipeline, RedisResult, ServerError, Value};
use runwire_producer::Backoff;
use tokio::sync::Notify;
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use super::connect::{REDIS_BACKOFF, RedisConnector};
use super::entry::{PublishedEntry, RedisKeys, message};
use super::stats::{Counters, Direction};
use crate::limits;

/// Commands for one entry: XADD, EXPIRE, PUBLISH.
const COMMANDS: usize = 3;

/// The bounded queue of entries to publish.
#[derive(Debug)]
pub(super) struct PublishQueue {
    inner: Mutex<Queued>,
    wake: Notify,
    counters: Arc<Counters>,
}

#[derive(Debug, Default)]
struct Queued {
    entries: VecDeque<QueuedEntry>,
    /// Bytes of queued bodies.
    bytes: usize,
    /// Whether Redis is down: by the time it is back, readers have found the entries in the store.
    is_down: bool,
    is_closed: bool,
}

#[derive(Debug)]
struct QueuedEntry {
    thread: i64,
    first: u64,
    last: u64,
    body: Option<Bytes>,
}

impl PublishQueue {
    pub(super) fn new(counters: Arc<Counters>) -> Self {
        Self { inner: Mutex::default(), wake: Notify::new(), counters }
    }

    /// Queues entries; drops bodies, or whole entries, where the queue is full.
    pub(super) fn push(&self, entries: impl IntoIterator<Item = PublishedEntry>) {
        let mut dropped = 0;
        {
            let mut queued = self.lock();
            for PublishedEntry { thread, first, last, body } in entries {
                if queued.is_down || queued.is_closed || queued.entries.len() >= limits::REDIS_QUEUE {
                    dropped += 1;
                    continue;
                }
                let fits = body.len() <= limits::REDIS_BODY_BYTES
                    && queued.bytes + body.len() <= limits::REDIS_QUEUE_BYTES;
                let body = fits.then_some(body);
                queued.bytes += weight(body.as_ref());
                queued.entries.push_back(QueuedEntry { thread, first, last, body });
            }
        }
        self.counters.dropped.fetch_add(dropped, Relaxed);
        self.wake.notify_one();
    }

    /// Returns the number of queued entries.
    pub(super) fn len(&self) -> usize {
        self.lock().entries.len()
    }

    /// Closes the queue.
    pub(super) fn close(&self) {
        self.lock().is_closed = true;
        self.wake.notify_one();
    }

    /// Marks Redis as down or up; while it is down, the queue is empty.
    fn set_down(&self, is_down: bool) {
        let mut queued = self.lock();
        queued.is_down = is_down;
        if is_down {
            let dropped = queued.entries.len();
            queued.entries.clear();
            queued.bytes = 0;
            self.counters.dropped.fetch_add(dropped as u64, Relaxed);
        }
    }

    /// Waits for entries and takes a batch; returns `None` once the queue is closed and empty.
    ///
    /// Cancel-safe: a dropped future has taken nothing.
    async fn next(&self) -> Option<Vec<QueuedEntry>> {
        loop {
            {
                let mut queued = self.lock();
                let batch = queued.take();
                if !batch.is_empty() {
                    return Some(batch);
                }
                if queued.is_closed {
                    return None;
                }
            }
            self.wake.notified().await;
        }
    }

    /// A panic while it was locked costs at worst a wrong count of bytes.
    fn lock(&self) -> MutexGuard<'_, Queued> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queued {
    fn take(&mut self) -> Vec<QueuedEntry> {
        let (mut batch, mut bytes) = (Vec::new(), 0);
        while batch.len() < limits::REDIS_BATCH && bytes < limits::REDIS_BATCH_BYTES {
            let Some(entry) = self.entries.pop_front() else { break };
            bytes += weight(entry.body.as_ref());
            batch.push(entry);
        }
        self.bytes = self.bytes.saturating_sub(bytes);
        batch
    }
}

fn weight(body: Option<&Bytes>) -> usize {
    body.map_or(0, Bytes::len)
}

/// The publisher task.
#[derive(Debug)]
pub(super) struct Publisher {
    connector: RedisConnector,
    keys: RedisKeys,
    queue: Arc<PublishQueue>,
    counters: Arc<Counters>,
}

impl Publisher {
    pub(super) fn new(
        connector: RedisConnector,
        keys: RedisKeys,
        queue: Arc<PublishQueue>,
        counters: Arc<Counters>,
    ) -> Self {
        Self { connector, keys, queue, counters }
    }

    /// Reconnects and publishes until the queue is closed.
    pub(super) async fn run(self) {
        let mut backoff = REDIS_BACKOFF;
        loop {
            let Err(error) = self.connect_and_send(&mut backoff).await else { return };
            self.queue.set_down(true);
            self.counters.down(Direction::Publishing, &error.to_string());
            if self.queue.lock().is_closed {
                return;
            }
            tokio::time::sleep(backoff.next_delay()).await;
        }
    }

    /// Publishes over one connection until it fails, or the queue is closed.
    async fn connect_and_send(&self, backoff: &mut Backoff) -> RedisResult<()> {
        let mut connection = self.connector.connect().await?;
        // A Redis that accepts connections and refuses commands counts as down.
        self.ping(&mut connection).await?;
        self.queue.set_down(false);
        self.counters.up(Direction::Publishing);
        let every = Duration::from_millis(limits::REDIS_PING_MILLIS);
        let mut ping = interval_at(Instant::now() + every, every);
        ping.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                batch = self.queue.next() => {
                    let Some(batch) = batch else { return Ok(()) };
                    if let Err(error) = self.send(&mut connection, &batch).await {
                        // Redis may have them or not; publishing them later would be too late.
                        self.counters.dropped.fetch_add(batch.len() as u64, Relaxed);
                        return Err(error);
                    }
                }
                // Also detects a dead connection while nothing is published.
                _ = ping.tick() => {
                    self.ping(&mut connection).await?;
                    // Only a connection that was up for a while resets the backoff.
                    backoff.reset();
                }
            }
        }
    }

    async fn ping(&self, connection: &mut MultiplexedConnection) -> RedisResult<()> {
        redis::cmd("PUBLISH").arg(self.keys.echo()).arg(self.counters.now()).exec_async(connection).await
    }

    async fn send(&self, connection: &mut MultiplexedConnection, batch: &[QueuedEntry]) -> RedisResult<()> {
        let mut pipeline = Pipeline::with_capacity(COMMANDS * batch.len());
        for entry in batch {
            self.write_commands(&mut pipeline, entry);
        }
        let answers = connection.send_packed_commands(&pipeline, 0, COMMANDS * batch.len()).await?;
        let mut read_only = None;
        for answers in answers.chunks(COMMANDS) {
            let refusals = answers.iter().filter_map(refusal);
            self.counters.refused(refusals.clone());
            read_only = refusals.into_iter().find(|refusal| refusal.code() == "READONLY").or(read_only);
            let was_carried = answers.last().is_some_and(|answer| !matches!(answer, Value::ServerError(_)));
            let counter = if was_carried { &self.counters.published } else { &self.counters.dropped };
            counter.fetch_add(1, Relaxed);
        }
        // A replica was promoted elsewhere; the address may lead to it by now.
        read_only.map_or(Ok(()), |refusal| Err(refusal.clone().into()))
    }

    /// Writes the commands for an entry: first the stream, then the channel. A subscriber that comes between the two
    /// finds it in the stream, which it reads after subscribing.
    fn write_commands(&self, pipeline: &mut Pipeline, entry: &QueuedEntry) {
        let QueuedEntry { thread, first, last, body } = entry;
        let (name, body) = (self.keys.of(*thread), body.as_deref());
        let add = pipeline.cmd("XADD").arg(&name).arg("MAXLEN").arg("~").arg(limits::REDIS_STREAM_LENGTH);
        add.arg(format!("{last}-0")).arg("first").arg(*first);
        if let Some(body) = body {
            add.arg("body").arg(body);
        }
        pipeline.cmd("EXPIRE").arg(&name).arg(limits::REDIS_STREAM_SECONDS);
        pipeline.cmd("PUBLISH").arg(&name).arg(message(*first, *last, body));
    }
}

/// Returns the error of a refused command. A stream that has this or a later entry is no error: another node was
/// faster.
fn refusal(answer: &Value) -> Option<&ServerError> {
    let Value::ServerError(error) = answer else { return None };
    let is_late = error.details().is_some_and(|details| details.contains("equal or smaller"));
    (!is_late).then_some(error)
}
