//! What is sent to Redis: a queue that never makes anybody wait, and the task that empties it.

use std::collections::VecDeque;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use redis::aio::MultiplexedConnection;
use redis::{Pipeline, RedisResult, ServerError, Value};
use tokio::sync::Notify;
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use super::connect::{RedisBackoff, RedisConnector};
use super::entry::{PublishedEntry, RedisKeys, message};
use super::stats::{Counters, Direction};
use crate::limits;

/// Commands that tell of one entry.
const COMMANDS: usize = 3;

/// What waits to be sent.
#[derive(Debug)]
pub(super) struct PublishQueue {
    inner: Mutex<Queued>,
    wake: Notify,
    counters: Arc<Counters>,
}

#[derive(Debug, Default)]
struct Queued {
    entries: VecDeque<QueuedEntry>,
    /// Bytes of bodies.
    bytes: usize,
    /// Whether Redis is away, so that queued is in vain: whoever reads finds it in the store before.
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

    /// Takes entries in, without their bodies or not at all where there is no room.
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

    /// Tells how many wait.
    pub(super) fn len(&self) -> usize {
        self.lock().entries.len()
    }

    /// Takes nothing more.
    pub(super) fn close(&self) {
        self.lock().is_closed = true;
        self.wake.notify_one();
    }

    /// Says whether Redis is away; if so, what waits is dropped.
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

    /// Waits for entries and takes some; there are none after the queue is closed.
    ///
    /// Whoever stops queued has taken nothing.
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

    /// A panic while it was held leaves at worst a wrong count of bytes.
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

/// The task that empties the queue.
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

    /// Sends until the queue is closed.
    pub(super) async fn run(self) {
        let mut backoff = RedisBackoff::new();
        loop {
            let Err(error) = self.connect_and_send(&mut backoff).await else { return };
            self.queue.set_down(true);
            self.counters.down(Direction::Publishing, &error.to_string());
            if self.queue.lock().is_closed {
                return;
            }
            backoff.pause().await;
        }
    }

    /// Sends over one connection until it falls, or the queue is closed.
    async fn connect_and_send(&self, backoff: &mut RedisBackoff) -> RedisResult<()> {
        let mut connection = self.connector.connect().await?;
        // A Redis that lets a node in and then refuses everything is none.
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
                        // Whether Redis has them nobody knows; to send them later would be too late.
                        self.counters.dropped.fetch_add(batch.len() as u64, Relaxed);
                        return Err(error);
                    }
                }
                // Also shows that a connection without anything to send still stands.
                _ = ping.tick() => {
                    self.ping(&mut connection).await?;
                    // Only one that has stood for a while is worth coming back to at once.
                    *backoff = RedisBackoff::new();
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
        // Another server has taken over; the address may lead there by now.
        read_only.map_or(Ok(()), |refusal| Err(refusal.clone().into()))
    }

    /// Says what tells of an entry: first the stream, then the channel. Whoever subscribes between the two finds it in
    /// the stream, which is read after that.
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

/// Tells what Redis refused. That a stream has the entry, or a later one, is no refusal: another node was faster.
fn refusal(answer: &Value) -> Option<&ServerError> {
    let Value::ServerError(error) = answer else { return None };
    let is_late = error.details().is_some_and(|details| details.contains("equal or smaller"));
    (!is_late).then_some(error)
}
