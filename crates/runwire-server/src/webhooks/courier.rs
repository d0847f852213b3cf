//! The courier of a webhook: tells it what is due, a few things at a time.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use runwire_log::{DeliveryOutcome, OutboxMessage};

use super::Webhooks;
use super::attempt::{Outcome, attempt};
use super::connection::{self, Connections};
use super::standing::Known;
use crate::limits;

/// Time after which the log is looked at again, whatever it said: its clock may have been set.
const LOOK_TIME: Duration = Duration::from_secs(60);
/// Time after which it is looked again whether this node is on duty.
const DUTY_TIME: Duration = Duration::from_secs(1);
/// Time after which the log is asked again when it did not answer.
const STUMBLE_TIME: Duration = Duration::from_secs(1);

/// Brings one webhook what there is to tell.
pub(super) struct Courier {
    pub(super) webhooks: Arc<Webhooks>,
    pub(super) known: Arc<Known>,
}

impl Courier {
    /// Works until the log is gone, and only while this node is on duty.
    pub(super) async fn work(self) {
        let (log, webhook) = (&self.webhooks.log, self.known.webhook.clone());
        let name = webhook.name.clone();
        let connections = match tokio::task::spawn_blocking(move || connection::prepare(&webhook)).await {
            Ok(Ok(connections)) => connections,
            Ok(Err(error)) => {
                self.known.note_failed(&error, false);
                return tracing::error!(webhook = name, %error, "nothing can be told");
            }
            Err(_) => return,
        };
        let mut noticed = log.outbox_changed();
        let mut busy = HashSet::new();
        let mut under_way = FuturesUnordered::new();
        loop {
            noticed.borrow_and_update();
            let mut wait = LOOK_TIME;
            if !log.is_leader() {
                wait = DUTY_TIME;
            } else if self.known.is_gone() {
                self.discard().await;
            } else if busy.len() < limits::WEBHOOK_AT_ONCE {
                // Enough to find one that is not under way, if there is any.
                match log.outbox(&name, limits::WEBHOOK_AT_ONCE + 1).await {
                    Err(error) => {
                        tracing::warn!(webhook = name, %error, "cannot look for what is to be told");
                        wait = STUMBLE_TIME;
                    }
                    Ok(notices) => {
                        for notice in notices {
                            if busy.contains(&notice.number) {
                                continue;
                            }
                            if !notice.wait.is_zero() {
                                wait = wait.min(notice.wait);
                                break;
                            }
                            if busy.len() == limits::WEBHOOK_AT_ONCE {
                                break;
                            }
                            busy.insert(notice.number);
                            under_way.push(self.deliver(&connections, notice));
                        }
                    }
                }
            }
            tokio::select! {
                Some(done) = under_way.next() => {
                    busy.remove(&done);
                }
                changed = noticed.changed() => {
                    if changed.is_err() {
                        return;
                    }
                }
                () = tokio::time::sleep(wait) => {}
            }
        }
    }

    /// Tries to tell a notice, has the log know what came of it, and gives its number back.
    async fn deliver(&self, connections: &Connections, notice: OutboxMessage) -> u64 {
        let outcome = attempt(connections, &self.known.webhook, &notice).await;
        let (webhook, run, event) = (&self.known.webhook.name, &*notice.run.id, notice.kind.name());
        let attempts = notice.attempts + 1;
        let told = match outcome {
            Outcome::Told => {
                tracing::debug!(webhook, run, event, attempts, "told");
                self.known.note_told();
                DeliveryOutcome::Done
            }
            Outcome::Gone => {
                self.leave().await;
                DeliveryOutcome::Done
            }
            Outcome::Failed { why, .. } if attempts >= limits::WEBHOOK_ATTEMPTS => {
                tracing::error!(webhook, run, event, attempts, why, "given up");
                self.known.note_failed(&why, true);
                DeliveryOutcome::Done
            }
            Outcome::Failed { why, wait } => {
                let own = backoff(self.known.webhook.retry_time, notice.attempts, fastrand::f64());
                // A webhook may ask for more time, and not for less.
                let wait = wait.map_or(own, |wait| own.max(wait.min(limits::WEBHOOK_LONGEST_RETRY_TIME)));
                tracing::warn!(webhook, run, event, attempts, why, again_in = ?wait, "cannot be told");
                self.known.note_failed(&why, false);
                DeliveryOutcome::Retry(wait)
            }
        };
        if let Err(error) = self.webhooks.log.mark_delivered(notice.number, told).await {
            tracing::warn!(webhook, run, event, %error, "cannot note what was told; it may be told again");
            tokio::time::sleep(STUMBLE_TIME).await;
        }
        notice.number
    }

    /// Forgets what other nodes have noted for a webhook that is gone: they do not know it.
    async fn discard(&self) {
        let (log, name) = (&self.webhooks.log, &self.known.webhook.name);
        for notice in log.outbox(name, limits::LIST_ITEMS).await.unwrap_or_default() {
            if log.mark_delivered(notice.number, DeliveryOutcome::Done).await.is_err() {
                return;
            }
        }
    }

    /// Stops for a webhook that is gone: what waits for it is forgotten, and nothing more is noted for it.
    async fn leave(&self) {
        if !self.known.note_gone() {
            return;
        }
        let webhook = &self.known.webhook.name;
        tracing::error!(
            webhook,
            "the webhook says that it is gone; it is told nothing more until the server starts anew"
        );
        if let Err(error) = self.webhooks.subscribe().await {
            tracing::warn!(webhook, %error, "cannot forget what waits for a webhook that is gone");
        }
    }
}

/// Tells how long to wait after so many attempts before: three times as long each time, a fifth more or less, so that
/// what failed together does not come back together.
fn backoff(first: Duration, before: u32, luck: f64) -> Duration {
    let longest = limits::WEBHOOK_LONGEST_RETRY_TIME;
    let wait = first.saturating_mul(3_u32.saturating_pow(before)).min(longest);
    wait.mul_f64(0.8 + 0.4 * luck)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_attempts_take_about_a_day() {
        let wait = |before| backoff(limits::WEBHOOK_RETRY_TIME, before, 0.5);
        assert_eq!(wait(0), limits::WEBHOOK_RETRY_TIME);
        let all: Duration = (0..limits::WEBHOOK_ATTEMPTS - 1).map(wait).sum();
        assert!((20..28).contains(&(all.as_secs() / 3600)), "{all:?}");
        assert!(wait(u32::MAX) <= limits::WEBHOOK_LONGEST_RETRY_TIME);
    }
}
