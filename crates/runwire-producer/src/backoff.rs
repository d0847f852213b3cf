//! Exponential backoff with jitter.

use std::time::Duration;

/// Limits the delay that the other side may ask for, unless a backoff says otherwise.
const MAX_ASKED: Duration = Duration::from_secs(60);

/// The delays between attempts: each longer than the one before, up to a limit, and random, so that those who wait for
/// the same server do not come back at once.
#[derive(Debug, Clone)]
pub struct Backoff {
    first: Duration,
    max: Duration,
    factor: u32,
    jitter: (f64, f64),
    max_asked: Duration,
    failures: u32,
}

impl Backoff {
    /// Creates a backoff that doubles; each delay is shortened by up to a half.
    pub const fn new(first: Duration, max: Duration) -> Self {
        Self { first, max, factor: 2, jitter: (0.5, 1.0), max_asked: MAX_ASKED, failures: 0 }
    }

    /// Sets the factor by which delays grow.
    #[must_use]
    pub const fn factor(self, factor: u32) -> Self {
        Self { factor, ..self }
    }

    /// Sets the range of random factors of a delay.
    #[must_use]
    pub const fn jitter(self, low: f64, high: f64) -> Self {
        Self { jitter: (low, high), ..self }
    }

    /// Sets the limit of delays that the other side asks for.
    #[must_use]
    pub const fn max_asked(self, max_asked: Duration) -> Self {
        Self { max_asked, ..self }
    }

    /// Continues after a number of failures.
    #[must_use]
    pub const fn after(self, failures: u32) -> Self {
        Self { failures, ..self }
    }

    /// Returns the next delay without jitter.
    pub fn base(&self) -> Duration {
        self.first.saturating_mul(self.factor.saturating_pow(self.failures)).min(self.max)
    }

    /// Counts a failure, and returns the delay before the next attempt.
    pub fn next_delay(&mut self) -> Duration {
        let (low, high) = self.jitter;
        let delay = self.base().mul_f64(low + (high - low) * fastrand::f64());
        self.failures = self.failures.saturating_add(1);
        delay
    }

    /// Counts a failure, and returns the delay before the next attempt: at least what the other side asks for, within
    /// a minute or the limit that was set.
    pub fn next_delay_or(&mut self, asked: Option<Duration>) -> Duration {
        let delay = self.next_delay();
        asked.map_or(delay, |asked| asked.min(self.max_asked).max(delay))
    }

    /// Returns whether no failure is counted.
    pub fn is_fresh(&self) -> bool {
        self.failures == 0
    }

    /// Starts again with the first delay, after progress.
    pub fn reset(&mut self) {
        self.failures = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_grow_to_a_limit_and_are_reset_by_progress() {
        let mut backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(5));
        for expected in [100, 200, 400, 800, 1600, 3200, 5000, 5000] {
            let delay = backoff.next_delay().as_millis();
            assert!((expected / 2..=expected).contains(&delay), "{delay} of {expected}");
        }
        backoff.reset();
        assert!(backoff.next_delay() <= Duration::from_millis(100));
        assert_eq!(backoff.next_delay_or(Some(Duration::from_secs(9))), Duration::from_secs(9));
        assert_eq!(backoff.next_delay_or(Some(Duration::from_secs(9000))), MAX_ASKED);
        let mut patient = backoff.max_asked(Duration::from_secs(600));
        assert_eq!(patient.next_delay_or(Some(Duration::from_secs(9000))), Duration::from_secs(600));
    }

    #[test]
    fn no_number_of_failures_overflows() {
        let backoff = Backoff::new(Duration::from_secs(5), Duration::from_secs(14_400)).factor(3);
        assert_eq!(backoff.clone().after(2).base(), Duration::from_secs(45));
        let mut backoff = backoff.jitter(0.8, 1.2).after(u32::MAX);
        assert!(backoff.next_delay() <= Duration::from_secs(17_280));
        assert!(backoff.next_delay() >= Duration::from_secs(11_520));
    }
}
