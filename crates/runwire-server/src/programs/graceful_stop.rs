//! The way from a request to end to an end that cannot be refused.

use std::future::pending;
use std::time::Duration;

use tokio::time::Instant;

/// A program that is to end: first it is asked, then it is killed.
#[derive(Debug)]
pub struct Stopping {
    grace: Duration,
    next: Option<(Step, Instant)>,
    was_killed: bool,
}

/// What is done next to a program that is to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// It is asked to end.
    Terminate,
    /// It is ended.
    Kill,
}

impl Stopping {
    /// Makes the way of a program that nobody wants to end yet; asked to, it has so long.
    pub fn new(grace: Duration) -> Self {
        Self { grace, next: None, was_killed: false }
    }

    /// Sees to it that the program is asked to end after some time; asking twice keeps the earlier time.
    pub fn begin(&mut self, after: Duration) {
        let due = Instant::now() + after;
        match &mut self.next {
            None if !self.was_killed => self.next = Some((Step::Terminate, due)),
            Some((Step::Terminate, known)) => *known = (*known).min(due),
            _ => {}
        }
    }

    /// Waits for the next step, and goes on to the one after it.
    pub async fn step(&mut self) -> Step {
        let Some((step, due)) = self.next else { return pending().await };
        tokio::time::sleep_until(due).await;
        self.next = match step {
            Step::Terminate => Some((Step::Kill, Instant::now() + self.grace)),
            Step::Kill => None,
        };
        self.was_killed |= step == Step::Kill;
        step
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_program_is_asked_then_killed() {
        let mut stopping = Stopping::new(Duration::ZERO);
        stopping.begin(Duration::from_secs(60));
        stopping.begin(Duration::ZERO);
        assert_eq!(stopping.step().await, Step::Terminate);
        stopping.begin(Duration::ZERO);
        assert_eq!(stopping.step().await, Step::Kill);
        stopping.begin(Duration::ZERO);
        assert!(tokio::time::timeout(Duration::from_millis(20), stopping.step()).await.is_err());
    }
}
