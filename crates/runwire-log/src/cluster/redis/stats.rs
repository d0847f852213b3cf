//! Statistics of the Redis tail, and the state of its connections.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use redis::ServerError;
use tokio::sync::watch;

/// Minimum time between two warnings about refused commands: a minute.
const COMPLAINT_MICROS: u64 = 60_000_000;

/// The state of a connection to Redis.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkStatus {
    /// Whether it is up.
    pub up: bool,
    /// Since when it is up, or down.
    pub since: Instant,
    /// Why it was last lost.
    pub error: Option<String>,
}

/// The state of both connections to Redis.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RedisLinks {
    /// The connection that publishes.
    pub publishing: LinkStatus,
    /// The connection that subscribes; it is up once every followed thread is subscribed.
    pub subscribing: LinkStatus,
}

impl RedisLinks {
    /// Returns whether both are up.
    pub fn up(&self) -> bool {
        self.publishing.up && self.subscribing.up
    }
}

/// State and counters of the Redis tail since it was opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RedisTailStats {
    /// The connections.
    pub links: RedisLinks,
    /// Published entries.
    pub published: u64,
    /// Entries that were dropped, because Redis was down or slow.
    pub dropped: u64,
    /// Refused commands.
    pub refused: u64,
    /// Received entries.
    pub arrived: u64,
    /// Received entries that were dropped, because the queue was full.
    pub missed: u64,
    /// Malformed entries.
    pub garbage: u64,
    /// Entries queued to be published.
    pub queued: usize,
    /// Subscriptions that are followed.
    pub threads: usize,
    /// The last measured round trip of this node's own message, including the queue.
    pub lag: Option<Duration>,
}

/// The counters behind [`RedisTailStats`].
#[derive(Debug)]
pub(super) struct Counters {
    pub(super) links: watch::Sender<RedisLinks>,
    pub(super) published: AtomicU64,
    pub(super) dropped: AtomicU64,
    pub(super) refused: AtomicU64,
    pub(super) arrived: AtomicU64,
    pub(super) missed: AtomicU64,
    pub(super) garbage: AtomicU64,
    /// When a refusal was last logged, in microseconds; 0 before the first.
    complained: AtomicU64,
    /// In microseconds, and 0 before the first.
    lag: AtomicU64,
    began: Instant,
}

/// RunSelector connection.
#[derive(Debug, Clone, Copy)]
pub(super) enum Direction {
    Publishing,
    Subscribing,
}

impl Default for Counters {
    fn default() -> Self {
        let began = Instant::now();
        let down = LinkStatus { up: false, since: began, error: None };
        Self {
            links: watch::Sender::new(RedisLinks { publishing: down.clone(), subscribing: down }),
            published: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            arrived: AtomicU64::new(0),
            missed: AtomicU64::new(0),
            garbage: AtomicU64::new(0),
            complained: AtomicU64::new(0),
            lag: AtomicU64::new(0),
            began,
        }
    }
}

impl Counters {
    /// Marks a connection as up.
    pub(super) fn up(&self, direction: Direction) {
        self.change(direction, true, None);
    }

    /// Marks a connection as down.
    pub(super) fn down(&self, direction: Direction, error: &str) {
        self.change(direction, false, Some(error));
    }

    fn change(&self, direction: Direction, up: bool, error: Option<&str>) {
        self.links.send_if_modified(|links| {
            let link = match direction {
                Direction::Publishing => &mut links.publishing,
                Direction::Subscribing => &mut links.subscribing,
            };
            let turned = link.up != up;
            // A connection that was never up is logged once, too.
            let is_first = error.is_some() && link.error.is_none();
            if turned {
                link.up = up;
                link.since = Instant::now();
            }
            match error {
                Some(error) if turned || is_first => {
                    tracing::warn!(?direction, error, "Redis is away: events of other nodes arrive later");
                }
                None if turned => tracing::info!(?direction, "Redis is there"),
                _ => {}
            }
            if let Some(error) = error {
                link.error = Some(error.to_owned());
            }
            turned
        });
    }

    /// Counts refused commands, and logs one from time to time.
    pub(super) fn refused<'a>(&self, refusals: impl Iterator<Item = &'a ServerError>) {
        for refusal in refusals {
            self.refused.fetch_add(1, Relaxed);
            let (now, last) = (self.now().max(1), self.complained.load(Relaxed));
            if last == 0 || now.saturating_sub(last) >= COMPLAINT_MICROS {
                self.complained.store(now, Relaxed);
                let (code, details) = (refusal.code(), refusal.details());
                tracing::warn!(code, details, "Redis refuses a command; readers on other nodes may be late");
            }
        }
    }

    /// Returns the time since the tail was opened, in microseconds.
    pub(super) fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    /// Records the round trip of a message sent at `sent`.
    pub(super) fn echoed(&self, sent: u64) {
        self.lag.store(self.now().saturating_sub(sent).max(1), Relaxed);
    }

    pub(super) fn stats(&self, queued: usize, threads: usize) -> RedisTailStats {
        let lag = self.lag.load(Relaxed);
        RedisTailStats {
            links: self.links.borrow().clone(),
            published: self.published.load(Relaxed),
            dropped: self.dropped.load(Relaxed),
            refused: self.refused.load(Relaxed),
            arrived: self.arrived.load(Relaxed),
            missed: self.missed.load(Relaxed),
            garbage: self.garbage.load(Relaxed),
            queued,
            threads,
            lag: (lag > 0).then(|| Duration::from_micros(lag)),
        }
    }
}
