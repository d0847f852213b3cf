//! An estimate of the store's clock, so that an optimistic commit need not ask for the time.

use std::time::{Duration, Instant, SystemTime};

use runwire_model::Timestamp;

/// How long an estimate of the store's clock is valid.
const CLOCK_VALID_FOR: Duration = Duration::from_secs(5);

/// Maximum round trip of an answer with the store's time, so that the estimate is exact enough.
const MAX_CLOCK_ROUND_TRIP: Duration = Duration::from_millis(100);
/// Tolerated backward clock skew, in milliseconds.
const MAX_BACKWARD_SKEW_MILLIS: u128 = 1000;

/// When a statement was sent.
#[derive(Debug, Clone, Copy)]
pub(super) struct SentAt(Instant, SystemTime);

impl SentAt {
    pub(super) fn now() -> Self {
        Self(Instant::now(), SystemTime::now())
    }
}

/// An estimate of the store's clock, from the time in an answer: the true time is the estimate or a little earlier.
#[derive(Debug, Clone, Copy)]
pub(super) struct StoreClock {
    store_time: Timestamp,
    sent: SentAt,
}

impl StoreClock {
    /// Makes an estimate; returns `None` if the round trip was too long.
    pub(super) fn new(store_time: Timestamp, sent: SentAt) -> Option<Self> {
        (sent.0.elapsed() < MAX_CLOCK_ROUND_TRIP).then_some(Self { store_time, sent })
    }

    fn time(self) -> Timestamp {
        let millis = u64::try_from(self.sent.0.elapsed().as_millis()).unwrap_or(u64::MAX);
        Timestamp(self.store_time.0.saturating_add(millis))
    }

    /// Returns the estimated time; `None` if it is too old, or the machine's clocks disagree, as after a sleep.
    pub(super) fn now(self) -> Option<Timestamp> {
        let SentAt(sent, wall_clock) = self.sent;
        (sent.elapsed().max(wall_clock.elapsed().ok()?) < CLOCK_VALID_FOR).then(|| self.time())
    }

    /// Returns whether the store's clock has moved back, according to a newer answer.
    pub(super) fn has_moved_back(self, store_time: Timestamp, sent: SentAt) -> bool {
        let since = sent.0.saturating_duration_since(self.sent.0).as_millis();
        u128::from(store_time.0) + MAX_BACKWARD_SKEW_MILLIS < u128::from(self.store_time.0) + since
    }
}
