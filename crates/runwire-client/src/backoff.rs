//! Waits between attempts: longer each time, and never the same for two clients.

use std::time::Duration;

use crate::client::Patience;

/// The longest wait that a server may ask for.
const LONGEST_ASKED: Duration = Duration::from_secs(60);

/// Counts how long to wait before the next attempt.
#[derive(Debug, Clone)]
pub(crate) struct Backoff {
    shortest: Duration,
    longest: Duration,
    next: Duration,
}

impl Backoff {
    pub(crate) fn new(patience: &Patience) -> Self {
        let (shortest, longest) = (patience.shortest_wait, patience.longest_wait);
        Self { shortest, longest, next: shortest }
    }

    /// Tells how long to wait now; a server that asks for a longer wait gets it.
    pub(crate) fn next_wait(&mut self, asked: Option<Duration>) -> Duration {
        // Half of it is left to chance, so that readers of one server do not all come back at once.
        let wait = self.next.mul_f64(0.5 + fastrand::f64() / 2.0);
        self.next = (self.next * 2).min(self.longest);
        asked.map_or(wait, |asked| asked.min(LONGEST_ASKED).max(wait))
    }

    /// Begins anew: something went well.
    pub(crate) fn reset(&mut self) {
        self.next = self.shortest;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_to_a_limit_and_begin_anew_after_progress() {
        let (shortest, longest) = (Duration::from_millis(100), Duration::from_secs(5));
        let mut backoff = Backoff { shortest, longest, next: shortest };
        for expected in [100, 200, 400, 800, 1600, 3200, 5000, 5000] {
            let wait = backoff.next_wait(None).as_millis();
            assert!((expected / 2..=expected).contains(&wait), "{wait} of {expected}");
        }
        backoff.reset();
        assert!(backoff.next_wait(None) <= shortest);
        assert_eq!(backoff.next_wait(Some(Duration::from_secs(9))), Duration::from_secs(9));
        assert_eq!(backoff.next_wait(Some(Duration::from_secs(9000))), LONGEST_ASKED);
    }
}
