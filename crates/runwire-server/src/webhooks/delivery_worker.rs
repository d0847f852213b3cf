//! The delivery worker of a webhook: takes due messages from the outbox in the log and delivers several at a time.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use runwire_log::{DeliveryOutcome, OutboxMessage};
use runwire_producer::Backoff;

use super::Webhooks;
use super::attempt::{Outcome, attempt};
use super::client::{self, WebhookHttpClient};
use super::status::TrackedWebhook;
use crate::limits;

/// Maximum time between two polls of the outbox: its clock may be adjusted meanwhile.
const POLL_TIME: Duration = Duration::from_secs(60);
/// Time between two checks whether this node is on duty.
const DUTY_POLL_TIME: Duration = Duration::from_secs(1);
/// Delay before a retry after an error of the log.
const STORE_RETRY_TIME: Duration = Duration::from_secs(1);

/// Delivers messages to one webhook.
pub(super) struct DeliveryWorker {
    pub(super) webhooks: Arc<Webhooks>,
    pub(super) tracked: Arc<TrackedWebhook>,
}

impl DeliveryWorker {
    /// Runs until the log is closed; delivers only while this node is on duty.
    pub(super) async fn run(self) {
        let (log, webhook) = (&self.webhooks.log, self.tracked.webhook.clone());
        let name = webhook.name.clone();
        let client = match tokio::task::spawn_blocking(move || client::build(&webhook)).await {
            Ok(Ok(client)) => client,
            Ok(Err(error)) => {
                self.tracked.record_failure(&error, false);
                return tracing::error!(webhook = name, %error, "no HTTP client can be built for a webhook");
            }
            Err(_) => return,
        };
        let mut outbox_changed = log.outbox_changed();
        let mut in_flight = HashSet::new();
        let mut deliveries = FuturesUnordered::new();
        loop {
            outbox_changed.borrow_and_update();
            let mut wait = POLL_TIME;
            if !log.is_leader() {
                wait = DUTY_POLL_TIME;
            } else if self.tracked.is_gone() {
                self.discard().await;
            } else if in_flight.len() < limits::WEBHOOK_AT_ONCE {
                // One more than can be in flight, to find one that is not.
                match log.outbox(&name, limits::WEBHOOK_AT_ONCE + 1).await {
                    Err(error) => {
                        tracing::warn!(webhook = name, %error, "cannot read the outbox of a webhook");
                        wait = STORE_RETRY_TIME;
                    }
                    Ok(messages) => {
                        for message in messages {
                            if in_flight.contains(&message.number) {
                                continue;
                            }
                            if !message.wait.is_zero() {
                                wait = wait.min(message.wait);
                                break;
                            }
                            if in_flight.len() == limits::WEBHOOK_AT_ONCE {
                                break;
                            }
                            in_flight.insert(message.number);
                            deliveries.push(self.deliver(&client, message));
                        }
                    }
                }
            }
            tokio::select! {
                Some(done) = deliveries.next() => {
                    in_flight.remove(&done);
                }
                changed = outbox_changed.changed() => {
                    if changed.is_err() {
                        return;
                    }
                }
                () = tokio::time::sleep(wait) => {}
            }
        }
    }

    /// Attempts a delivery, records its outcome in the log, and returns the number of the message.
    async fn deliver(&self, client: &WebhookHttpClient, message: OutboxMessage) -> u64 {
        let outcome = attempt(client, &self.tracked.webhook, &message).await;
        let (webhook, run, event) = (&self.tracked.webhook.name, &*message.run.id, message.kind.name());
        let attempts = message.attempts + 1;
        let delivered = match outcome {
            Outcome::Delivered => {
                tracing::debug!(webhook, run, event, attempts, "delivered a webhook message");
                self.tracked.record_success();
                DeliveryOutcome::Done
            }
            Outcome::Gone => {
                self.unsubscribe_gone().await;
                DeliveryOutcome::Done
            }
            Outcome::Failed { why, .. } if attempts >= limits::WEBHOOK_ATTEMPTS => {
                tracing::error!(webhook, run, event, attempts, why, "gave up a webhook message");
                self.tracked.record_failure(&why, true);
                DeliveryOutcome::Done
            }
            Outcome::Failed { why, wait } => {
                // A webhook may ask for a longer delay, not for a shorter one.
                let wait = backoff(self.tracked.webhook.retry_time, message.attempts).next_delay_or(wait);
                tracing::warn!(webhook, run, event, attempts, why, again_in = ?wait, "a webhook delivery failed");
                self.tracked.record_failure(&why, false);
                DeliveryOutcome::Retry(wait)
            }
        };
        if let Err(error) = self.webhooks.log.mark_delivered(message.number, delivered).await {
            tracing::warn!(webhook, run, event, %error, "cannot record a webhook delivery; it may be repeated");
            tokio::time::sleep(STORE_RETRY_TIME).await;
        }
        message.number
    }

    /// Deletes messages that other nodes have queued for a gone webhook: they do not know that it is gone.
    async fn discard(&self) {
        let (log, name) = (&self.webhooks.log, &self.tracked.webhook.name);
        for message in log.outbox(name, limits::LIST_ITEMS).await.unwrap_or_default() {
            if log.mark_delivered(message.number, DeliveryOutcome::Done).await.is_err() {
                return;
            }
        }
    }

    /// Unsubscribes a gone webhook: deletes its queue, and stops queueing for it.
    async fn unsubscribe_gone(&self) {
        if !self.tracked.record_gone() {
            return;
        }
        let webhook = &self.tracked.webhook.name;
        tracing::error!(
            webhook,
            "the webhook answered 410 Gone; it gets nothing more until the server restarts"
        );
        if let Err(error) = self.webhooks.subscribe().await {
            tracing::warn!(webhook, %error, "cannot delete the queue of a gone webhook");
        }
    }
}

/// Returns the backoff after a number of earlier attempts: delays that triple, 20 % more or less.
fn backoff(first: Duration, before: u32) -> Backoff {
    let max = limits::WEBHOOK_MAX_RETRY_TIME;
    Backoff::new(first, max).factor(3).jitter(0.8, 1.2).max_asked(max).after(before)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_attempts_take_about_a_day() {
        let wait = |before| backoff(limits::WEBHOOK_RETRY_TIME, before).base();
        assert_eq!(wait(0), limits::WEBHOOK_RETRY_TIME);
        let all: Duration = (0..limits::WEBHOOK_ATTEMPTS - 1).map(wait).sum();
        assert!((20..28).contains(&(all.as_secs() / 3600)), "{all:?}");
        assert!(wait(u32::MAX) <= limits::WEBHOOK_MAX_RETRY_TIME);
    }
}
