//! Graceful stop of a program: SIGTERM, then SIGKILL after a grace period.

use std::future::pending;
use std::time::Duration;

use tokio::time::Instant;

/// Timer of a program's graceful stop.
#[derive(Debug)]
pub struct GracefulStop {
    grace: Duration,
    next: Option<(StopStep, Instant)>,
    was_killed: bool,
}

/// A step of a graceful stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopStep {
    /// Ask the program to end.
    Terminate,
    /// Kill it.
    Kill,
}

impl GracefulStop {
    /// Creates a stop that has not begun; `grace` is the time between the two steps.
    pub fn new(grace: Duration) -> Self {
        Self { grace, next: None, was_killed: false }
    }

    /// Schedules the first step; of several calls the earliest time counts.
    pub fn begin(&mut self, after: Duration) {
        let due = Instant::now() + after;
        match &mut self.next {
            None if !self.was_killed => self.next = Some((StopStep::Terminate, due)),
            Some((StopStep::Terminate, known)) => *known = (*known).min(due),
            _ => {}
        }
    }

    /// Waits for the next step; forever if the stop has not begun or is over.
    pub async fn step(&mut self) -> StopStep {
        let Some((step, due)) = self.next else { return pending().await };
        tokio::time::sleep_until(due).await;
        self.next = match step {
            StopStep::Terminate => Some((StopStep::Kill, Instant::now() + self.grace)),
            StopStep::Kill => None,
        };
        self.was_killed |= step == StopStep::Kill;
        step
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_program_is_asked_then_killed() {
        let mut stopping = GracefulStop::new(Duration::ZERO);
        stopping.begin(Duration::from_secs(60));
        stopping.begin(Duration::ZERO);
        assert_eq!(stopping.step().await, StopStep::Terminate);
        stopping.begin(Duration::ZERO);
        assert_eq!(stopping.step().await, StopStep::Kill);
        stopping.begin(Duration::ZERO);
        assert!(tokio::time::timeout(Duration::from_millis(20), stopping.step()).await.is_err());
    }
}
