//! How the tail is.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use redis::ServerError;
use tokio::sync::watch;

/// Between two complaints about a Redis that refuses: a minute.
const COMPLAINT_MICROS: u64 = 60_000_000;

/// How a connection to Redis is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkStatus {
    /// Whether it stands.
    pub up: bool,
    /// Since when it stands, or does not.
    pub since: Instant,
    /// Why it last fell.
    pub error: Option<String>,
}

/// How the connections to Redis are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RedisLinks {
    /// The one that entries are sent over.
    pub publishing: LinkStatus,
    /// The one that entries arrive over; it stands when every thread that is followed is subscribed.
    pub subscribing: LinkStatus,
}

impl RedisLinks {
    /// Tells whether both stand.
    pub fn up(&self) -> bool {
        self.publishing.up && self.subscribing.up
    }
}

/// How the tail is, and what it did since it began.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RedisTailStats {
    /// The connections.
    pub links: RedisLinks,
    /// Entries that were sent.
    pub published: u64,
    /// Entries that were not sent, because Redis was away or slow.
    pub dropped: u64,
    /// Commands that Redis refused.
    pub refused: u64,
    /// Entries that arrived and wait to be taken, or were taken.
    pub arrived: u64,
    /// Entries that arrived while too many waited to be taken.
    pub missed: u64,
    /// Entries that made no sense.
    pub garbage: u64,
    /// Entries that wait to be sent.
    pub queued: usize,
    /// Subscriptions that are followed.
    pub threads: usize,
    /// How long an entry of this node took last to come back to it: through the queue, there and back.
    pub lag: Option<Duration>,
}

/// What is counted.
#[derive(Debug)]
pub(super) struct Counters {
    pub(super) links: watch::Sender<RedisLinks>,
    pub(super) published: AtomicU64,
    pub(super) dropped: AtomicU64,
    pub(super) refused: AtomicU64,
    pub(super) arrived: AtomicU64,
    pub(super) missed: AtomicU64,
    pub(super) garbage: AtomicU64,
    /// When a refusal was last said aloud, in microseconds; 0 before the first.
    complained: AtomicU64,
    /// In microseconds, and 0 before the first.
    lag: AtomicU64,
    began: Instant,
}

/// RunFilter connection.
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
    /// Says that a connection stands.
    pub(super) fn up(&self, direction: Direction) {
        self.change(direction, true, None);
    }

    /// Says that a connection fell, or does not come to stand.
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
            // One that never stood has not turned, and is worth a line all the same.
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

    /// Counts what Redis refused, and says so now and then.
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

    /// Tells the time, as an echo carries it.
    pub(super) fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    /// Takes an echo that was sent at a time.
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
