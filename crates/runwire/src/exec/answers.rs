//! What people send back, read from the run and written to the program's standard input.

use std::time::Duration;

use futures_util::StreamExt;
use runwire_client::Events;
use runwire_model::Body;
use tokio::io::AsyncWriteExt;
use tokio::process::ChildStdin;
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::client::notes::Notes;
use crate::failure::plain;

/// How long a program has to read that it is cancelled before a signal says so.
const READING_TIME: Duration = Duration::from_secs(1);

/// Hands answers and requests to cancel to the program; of a cancel, the reason goes to whoever sends signals.
pub(super) async fn hand_on(
    mut events: Events,
    mut stdin: Option<ChildStdin>,
    cancels: mpsc::Sender<Option<String>>,
    notes: Notes,
) {
    while let Some(received) = events.next().await {
        let received = match received {
            Ok(received) => received,
            Err(error) => {
                let lost = "answers and requests to cancel do not reach the program";
                return notes.say(&format!("{}; {lost}", plain(&error)));
            }
        };
        let cancel = match &received.body {
            Body::InteractionResolved(_) => None,
            Body::RunCancelRequested(asked) => Some(asked.reason.clone()),
            // A run that waits for a person, or for its first event, is cancelled at once.
            Body::RunCancelled(cancelled) => Some(cancelled.reason.clone()),
            // The server took the program for dead: nothing that it does can be written any more.
            Body::RunFailed(failed) if failed.error.code.as_deref() == Some("producer_lost") => {
                Some(Some(failed.error.message.clone()))
            }
            _ => continue,
        };
        if let Some(reason) = cancel {
            // Where nobody waits any more, the program has ended.
            let _ = cancels.send(reason).await;
        }
        if let Some(open) = &mut stdin {
            let line = [received.frame(), &b"\n"[..]].concat();
            // A program that has closed its input wants no answers.
            if open.write_all(&line).await.is_err() || open.flush().await.is_err() {
                stdin = None;
            }
        }
    }
}

/// The way from a request to an end that cannot be refused.
#[derive(Debug)]
pub(super) struct Stopping {
    grace: Duration,
    step: Step,
    due: Option<Instant>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// Nobody wants the program to end, or all was done that can be.
    Nothing,
    Terminate,
    Kill,
}

impl Stopping {
    pub(super) fn new(grace: Duration) -> Self {
        Self { grace, step: Step::Nothing, due: None }
    }

    /// Begins, once: the program has a moment to end by itself.
    pub(super) fn begin(&mut self, at_once: bool) {
        if self.due.is_none() && self.step == Step::Nothing {
            let moment = if at_once { Duration::ZERO } else { READING_TIME };
            (self.step, self.due) = (Step::Terminate, Some(Instant::now() + moment));
        }
    }

    /// Waits for the next step, and goes on to the one after it.
    pub(super) async fn next(&mut self) -> Step {
        match self.due {
            Some(due) => tokio::time::sleep_until(due).await,
            None => std::future::pending().await,
        }
        let step = self.step;
        if step == Step::Terminate {
            (self.step, self.due) = (Step::Kill, Some(Instant::now() + self.grace));
        } else {
            self.due = None;
        }
        step
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_program_is_asked_then_told_then_killed() {
        let mut stopping = Stopping::new(Duration::ZERO);
        stopping.begin(true);
        assert_eq!(stopping.next().await, Step::Terminate);
        stopping.begin(true);
        assert_eq!(stopping.next().await, Step::Kill);
        stopping.begin(true);
        let nothing = tokio::time::timeout(Duration::from_millis(20), stopping.next()).await;
        assert!(nothing.is_err());
    }
}
