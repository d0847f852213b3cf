//! An estimate of the store's clock, so that an optimistic commit need not ask for the time.

use std::time::{Duration, Instant, SystemTime};

use runwire_model::Timestamp;

/// How long the store's time is known after it was told.
const CLOCK_VALID_FOR: Duration = Duration::from_secs(5);

/// How long an answer that tells the time may take, so that the time is known well enough.
const MAX_CLOCK_ROUND_TRIP: Duration = Duration::from_millis(100);
/// By how many milliseconds a clock must be behind to have been set back.
const MAX_BACKWARD_SKEW_MILLIS: u128 = 1000;

/// When something was sent.
#[derive(Debug, Clone, Copy)]
pub(super) struct SentAt(Instant, SystemTime);

impl SentAt {
    pub(super) fn now() -> Self {
        Self(Instant::now(), SystemTime::now())
    }
}

/// The store's time, as it was told in answer to something: it is that or a little earlier.
#[derive(Debug, Clone, Copy)]
pub(super) struct StoreClock {
    told: Timestamp,
    sent: SentAt,
}

impl StoreClock {
    /// Makes a clock that goes on from a time; none where it took long to learn of it.
    pub(super) fn new(told: Timestamp, sent: SentAt) -> Option<Self> {
        (sent.0.elapsed() < MAX_CLOCK_ROUND_TRIP).then_some(Self { told, sent })
    }

    fn time(self) -> Timestamp {
        let millis = u64::try_from(self.sent.0.elapsed().as_millis()).unwrap_or(u64::MAX);
        Timestamp(self.told.0.saturating_add(millis))
    }

    /// Returns the store's time by this machine's clocks. Nothing where they disagree, as after the machine has slept.
    pub(super) fn now(self) -> Option<Timestamp> {
        let SentAt(sent, by_the_wall) = self.sent;
        (sent.elapsed().max(by_the_wall.elapsed().ok()?) < CLOCK_VALID_FOR).then(|| self.time())
    }

    /// Returns whether the store has set back its clock, where it tells this time in answer to what was sent then.
    pub(super) fn has_moved_back(self, told: Timestamp, sent: SentAt) -> bool {
        let since = sent.0.saturating_duration_since(self.sent.0).as_millis();
        u128::from(told.0) + MAX_BACKWARD_SKEW_MILLIS < u128::from(self.told.0) + since
    }
}
