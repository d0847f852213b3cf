//! Configuration of webhooks.

use std::time::Duration;

use http::Uri;
use runwire_log::OutboxKind;

use super::address;
use super::secret::Secret;
use crate::limits;

/// A server that is notified of events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Webhook {
    /// Its name, under which its queue is stored.
    pub name: String,
    /// The URL that messages are posted to.
    pub url: Uri,
    /// The key that signs its messages.
    pub secret: Secret,
    /// The events that it is notified of.
    pub events: Vec<OutboxKind>,
    /// Whether its address may be private.
    pub allow_private: bool,
    /// Prefix of the links in its messages; without one they begin with `/v1`.
    pub base_url: String,
    /// PEM certificates to trust beside those of the system.
    pub trusted: Vec<u8>,
    /// Timeout of an attempt, name resolution included.
    pub answer_time: Duration,
    /// Delay before the second attempt; triples with each further one, up to a limit.
    pub retry_time: Duration,
}

impl Webhook {
    /// Returns true if its URL alone shows that its address is not allowed; names are resolved only at an attempt.
    pub fn is_refused(&self) -> bool {
        let is_here = self.url.host() == Some("localhost");
        !self.allow_private && (is_here || address::check(&self.url).is_err())
    }

    /// Creates a webhook for all events, with default times.
    pub fn new(name: impl Into<String>, url: Uri, secret: Secret) -> Self {
        Self {
            name: name.into(),
            url,
            secret,
            events: OutboxKind::ALL.to_vec(),
            allow_private: false,
            base_url: String::new(),
            trusted: Vec::new(),
            answer_time: limits::WEBHOOK_TIME,
            retry_time: limits::WEBHOOK_RETRY_TIME,
        }
    }
}
