//! Delivery status of webhooks: statistics since the server started, and the queue; as JSON and as metrics.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use http::Uri;
use runwire_log::LogStats;
use runwire_model::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;

use super::Webhooks;
use super::config::Webhook;
use crate::metrics::PrometheusText;
use crate::openapi::schemas::{WebhookEventSchema, WebhookStateSchema};

/// A webhook and its delivery statistics.
pub(super) struct TrackedWebhook {
    pub(super) webhook: Webhook,
    stats: Mutex<DeliveryStats>,
}

/// Delivery statistics of a webhook.
#[derive(Debug, Clone, Default)]
struct DeliveryStats {
    is_gone: bool,
    delivered: u64,
    failed: u64,
    given_up: u64,
    last_success: Option<Timestamp>,
    last_failure: Option<Failure>,
}

#[derive(Debug, Clone)]
struct Failure {
    at: Timestamp,
    reason: String,
}

impl TrackedWebhook {
    pub(super) fn new(webhook: Webhook) -> Self {
        Self { webhook, stats: Mutex::default() }
    }

    /// Returns true if the webhook has answered 410 Gone.
    pub(super) fn is_gone(&self) -> bool {
        self.stats().is_gone
    }

    /// Counts a delivered message.
    pub(super) fn record_success(&self) {
        let mut stats = self.stats();
        stats.delivered += 1;
        stats.last_success = Some(now());
    }

    /// Counts a failed attempt; `is_last` means that the message is given up.
    pub(super) fn record_failure(&self, reason: &str, is_last: bool) {
        let mut stats = self.stats();
        stats.failed += 1;
        stats.given_up += u64::from(is_last);
        stats.last_failure = Some(Failure { at: now(), reason: reason.to_owned() });
    }

    /// Marks the webhook as gone; returns false if it was already.
    pub(super) fn record_gone(&self) -> bool {
        let mut stats = self.stats();
        stats.failed += 1;
        stats.given_up += 1;
        stats.last_failure = Some(Failure { at: now(), reason: "it answered 410 Gone".to_owned() });
        !std::mem::replace(&mut stats.is_gone, true)
    }

    fn stats(&self) -> MutexGuard<'_, DeliveryStats> {
        self.stats.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A webhook and how its deliveries go.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Webhook)]
pub(crate) struct WebhookView {
    name: String,
    /// Scheme, host and port. Path and query are left out: they may be secret.
    target: String,
    #[schema(inline, value_type = Vec<WebhookEventSchema>)]
    events: Vec<&'static str>,
    /// `gone`: it answered 410, and is sent nothing more until the server starts anew.
    #[schema(inline, value_type = WebhookStateSchema)]
    status: &'static str,
    /// Messages that wait for their delivery.
    waiting: u64,
    /// Those of them that were tried in vain.
    retrying: u64,
    /// Messages that arrived since the server started.
    delivered: u64,
    /// Attempts in vain since the server started.
    failed_attempts: u64,
    /// Messages that were given up since the server started.
    given_up: u64,
    #[schema(required, format = DateTime)]
    last_success_at: Option<String>,
    #[schema(inline, required)]
    last_failure: Option<FailureView>,
}

#[derive(Debug, Serialize, ToSchema)]
struct FailureView {
    #[schema(format = DateTime)]
    at: String,
    reason: String,
}

impl Webhooks {
    /// Returns the status of each webhook.
    pub(crate) fn views(&self, log_stats: &LogStats) -> Vec<WebhookView> {
        let view = |tracked: &std::sync::Arc<TrackedWebhook>| {
            let (stats, webhook) = (tracked.stats().clone(), &tracked.webhook);
            let (waiting, retrying) = queued_for(log_stats, &webhook.name);
            let failure =
                |failure: Failure| FailureView { at: failure.at.to_string(), reason: failure.reason };
            WebhookView {
                name: webhook.name.clone(),
                target: origin_of(&webhook.url),
                events: webhook.events.iter().map(|kind| kind.name()).collect(),
                status: if stats.is_gone { "gone" } else { "active" },
                waiting,
                retrying,
                delivered: stats.delivered,
                failed_attempts: stats.failed,
                given_up: stats.given_up,
                last_success_at: stats.last_success.map(|at| at.to_string()),
                last_failure: stats.last_failure.map(failure),
            }
        };
        self.all.iter().map(view).collect()
    }

    /// Writes the status as metrics; the queues only if the log's stats are known.
    pub(crate) fn write_metrics(&self, text: &mut PrometheusText, log_stats: Option<&LogStats>) {
        let all_stats: Vec<_> =
            self.all.iter().map(|tracked| (tracked.webhook.name.as_str(), tracked.stats().clone())).collect();
        let mut family = |name: &str, kind: &str, help: &str, value: &dyn Fn(&str, &DeliveryStats) -> u64| {
            text.family(name, kind, help);
            for (webhook, stats) in &all_stats {
                text.sample(name, &[("webhook", webhook)], value(webhook, stats));
            }
        };
        if let Some(log_stats) = log_stats {
            let help = "Messages queued for a webhook.";
            family("runwire_webhook_messages_waiting", "gauge", help, &|name, _| {
                queued_for(log_stats, name).0
            });
        }
        let help = "Messages delivered to a webhook.";
        family("runwire_webhook_messages_delivered_total", "counter", help, &|_, stats| stats.delivered);
        let help = "Failed delivery attempts to a webhook.";
        family("runwire_webhook_attempts_failed_total", "counter", help, &|_, stats| stats.failed);
        let help = "Messages to a webhook that were given up after the last attempt.";
        family("runwire_webhook_messages_given_up_total", "counter", help, &|_, stats| stats.given_up);
        let help = "Whether a webhook has answered 410 Gone.";
        family("runwire_webhook_gone", "gauge", help, &|_, stats| u64::from(stats.is_gone));
    }
}

fn queued_for(stats: &LogStats, name: &str) -> (u64, u64) {
    let backlog = stats.backlog.iter().find(|backlog| backlog.subscriber == name);
    backlog.map_or((0, 0), |backlog| (backlog.messages, backlog.retried))
}

/// Returns scheme, host and port of a URL, without its secrets.
fn origin_of(url: &Uri) -> String {
    let scheme = url.scheme_str().unwrap_or("http");
    let port = url.port_u16().map(|port| format!(":{port}")).unwrap_or_default();
    format!("{scheme}://{}{port}", url.host().unwrap_or_default())
}

fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_url_of_a_webhook_is_shown_without_its_secrets() {
        for (url, shown) in [
            ("https://hooks.example.org/services/T0/B0/secret?key=secret", "https://hooks.example.org"),
            ("http://me:secret@10.0.0.1:8080/x", "http://10.0.0.1:8080"),
            ("http://[::1]:80/", "http://[::1]:80"),
        ] {
            assert_eq!(origin_of(&url.parse().unwrap()), shown);
        }
    }
}
