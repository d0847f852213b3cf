//! Exponential backoff with jitter between connection attempts.

use std::time::Duration;

use crate::client::RetryOptions;

/// Limits the delay that a server may ask for.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(60);

/// Computes the delay before the next attempt.
#[derive(Debug, Clone)]
pub(crate) struct RetryBackoff {
    initial: Duration,
    max: Duration,
    next: Duration,
}

impl RetryBackoff {
    pub(crate) fn new(retry: &RetryOptions) -> Self {
        let (initial, max) = (retry.initial_delay, retry.max_delay);
        Self { initial, max, next: initial }
    }

    /// Returns the delay before the next attempt: the backoff, or `retry_after` if that is longer.
    pub(crate) fn next_delay(&mut self, retry_after: Option<Duration>) -> Duration {
        // Half of the delay is jitter, so that the readers of a restarted server do not reconnect at once.
        let delay = self.next.mul_f64(0.5 + fastrand::f64() / 2.0);
        self.next = (self.next * 2).min(self.max);
        retry_after.map_or(delay, |asked| asked.min(MAX_RETRY_AFTER).max(delay))
    }

    /// Resets the delay after progress.
    pub(crate) fn reset(&mut self) {
        self.next = self.initial;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_grow_to_a_limit_and_are_reset_by_progress() {
        let (initial, max) = (Duration::from_millis(100), Duration::from_secs(5));
        let mut backoff = RetryBackoff { initial, max, next: initial };
        for expected in [100, 200, 400, 800, 1600, 3200, 5000, 5000] {
            let delay = backoff.next_delay(None).as_millis();
            assert!((expected / 2..=expected).contains(&delay), "{delay} of {expected}");
        }
        backoff.reset();
        assert!(backoff.next_delay(None) <= initial);
        assert_eq!(backoff.next_delay(Some(Duration::from_secs(9))), Duration::from_secs(9));
        assert_eq!(backoff.next_delay(Some(Duration::from_secs(9000))), MAX_RETRY_AFTER);
    }
}
