//! How webhooks stand: what became of their messages since the server started, and what still waits.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use http::Uri;
use runwire_log::LogStats;
use runwire_model::Timestamp;
use serde::Serialize;

use super::Webhooks;
use super::config::Webhook;
use crate::metrics::Text;

/// A webhook, and how it stands.
pub(super) struct Known {
    pub(super) webhook: Webhook,
    standing: Mutex<Standing>,
}

/// What became of the messages of a webhook.
#[derive(Debug, Clone, Default)]
struct Standing {
    is_gone: bool,
    told: u64,
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

impl Known {
    pub(super) fn new(webhook: Webhook) -> Self {
        Self { webhook, standing: Mutex::default() }
    }

    /// Tells whether the webhook has said that it is gone.
    pub(super) fn is_gone(&self) -> bool {
        self.standing().is_gone
    }

    /// Notes that a message has arrived.
    pub(super) fn note_told(&self) {
        let mut standing = self.standing();
        standing.told += 1;
        standing.last_success = Some(now());
    }

    /// Notes an attempt in vain, and whether it was the message's last.
    pub(super) fn note_failed(&self, reason: &str, is_last: bool) {
        let mut standing = self.standing();
        standing.failed += 1;
        standing.given_up += u64::from(is_last);
        standing.last_failure = Some(Failure { at: now(), reason: reason.to_owned() });
    }

    /// Notes that the webhook is gone; false if that was known.
    pub(super) fn note_gone(&self) -> bool {
        let mut standing = self.standing();
        standing.failed += 1;
        standing.given_up += 1;
        standing.last_failure = Some(Failure { at: now(), reason: "it answered 410 Gone".to_owned() });
        !std::mem::replace(&mut standing.is_gone, true)
    }

    fn standing(&self) -> MutexGuard<'_, Standing> {
        self.standing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A webhook, as operators see it.
#[derive(Debug, Serialize)]
pub(crate) struct WebhookView {
    name: String,
    /// Where it is, without path and query: those may be all that keeps strangers from it.
    target: String,
    events: Vec<&'static str>,
    status: &'static str,
    /// Messages that wait to be told, and those of them that were tried in vain.
    waiting: u64,
    retrying: u64,
    /// Since the server started.
    told: u64,
    failed_attempts: u64,
    given_up: u64,
    last_success_at: Option<String>,
    last_failure: Option<FailureView>,
}

#[derive(Debug, Serialize)]
struct FailureView {
    at: String,
    reason: String,
}

impl Webhooks {
    /// Shows how each webhook stands.
    pub(crate) fn views(&self, figures: &LogStats) -> Vec<WebhookView> {
        let view = |known: &std::sync::Arc<Known>| {
            let (standing, webhook) = (known.standing().clone(), &known.webhook);
            let (waiting, retrying) = waiting_for(figures, &webhook.name);
            let failure =
                |failure: Failure| FailureView { at: failure.at.to_string(), reason: failure.reason };
            WebhookView {
                name: webhook.name.clone(),
                target: origin_of(&webhook.url),
                events: webhook.events.iter().map(|kind| kind.name()).collect(),
                status: if standing.is_gone { "gone" } else { "active" },
                waiting,
                retrying,
                told: standing.told,
                failed_attempts: standing.failed,
                given_up: standing.given_up,
                last_success_at: standing.last_success.map(|at| at.to_string()),
                last_failure: standing.last_failure.map(failure),
            }
        };
        self.all.iter().map(view).collect()
    }

    /// Tells the same as metrics, as far as it is known.
    pub(crate) fn tell(&self, text: &mut Text, figures: Option<&LogStats>) {
        let standings: Vec<_> =
            self.all.iter().map(|known| (known.webhook.name.as_str(), known.standing().clone())).collect();
        let mut family = |name: &str, kind: &str, help: &str, value: &dyn Fn(&str, &Standing) -> u64| {
            text.family(name, kind, help);
            for (webhook, standing) in &standings {
                text.sample(name, &[("webhook", webhook)], value(webhook, standing));
            }
        };
        if let Some(figures) = figures {
            let help = "Messages that wait to be told to a webhook.";
            family("runwire_webhook_messages_waiting", "gauge", help, &|name, _| {
                waiting_for(figures, name).0
            });
        }
        let help = "Messages that arrived at a webhook.";
        family("runwire_webhook_messages_told_total", "counter", help, &|_, standing| standing.told);
        let help = "Attempts to tell a webhook something that were in vain.";
        family("runwire_webhook_attempts_failed_total", "counter", help, &|_, standing| standing.failed);
        let help = "Messages to a webhook that were given up.";
        family("runwire_webhook_messages_given_up_total", "counter", help, &|_, standing| standing.given_up);
        let help = "Whether a webhook has said that it is gone.";
        family("runwire_webhook_gone", "gauge", help, &|_, standing| u64::from(standing.is_gone));
    }
}

fn waiting_for(figures: &LogStats, name: &str) -> (u64, u64) {
    let waiting = figures.backlog.iter().find(|waiting| waiting.subscriber == name);
    waiting.map_or((0, 0), |waiting| (waiting.messages, waiting.retried))
}

/// Tells scheme, host and port of an address, and nothing that could be secret.
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
    fn the_address_of_a_webhook_is_told_without_what_could_be_secret() {
        for (url, shown) in [
            ("https://hooks.example.org/services/T0/B0/secret?key=secret", "https://hooks.example.org"),
            ("http://me:secret@10.0.0.1:8080/x", "http://10.0.0.1:8080"),
            ("http://[::1]:80/", "http://[::1]:80"),
        ] {
            assert_eq!(origin_of(&url.parse().unwrap()), shown);
        }
    }
}
