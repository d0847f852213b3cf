//! What a webhook is, as the configuration says it.

use std::time::Duration;

use http::Uri;
use runwire_log::OutboxKind;

use super::address;
use super::secret::Secret;
use crate::limits;

/// A server that is told of events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Webhook {
    /// What it is called here; what waits for it is kept under this name.
    pub name: String,
    /// Where it is told.
    pub url: Uri,
    /// What its messages are signed with.
    pub secret: Secret,
    /// What it is told of.
    pub events: Vec<OutboxKind>,
    /// Whether it may be on this machine or in a private network.
    pub allow_private: bool,
    /// What the links in its messages begin with; nothing makes them begin with `/v1`.
    pub base_url: String,
    /// Certificates, as PEM, that are trusted beside those of the machine.
    pub trusted: Vec<u8>,
    /// Time in which it must answer, from the first look for its address on.
    pub answer_time: Duration,
    /// Time before the second attempt; each further one waits three times as long, up to a limit.
    pub retry_time: Duration,
}

impl Webhook {
    /// Tells whether it is plain from its address that it may not be told: what a name stands for shows only later.
    pub fn is_refused(&self) -> bool {
        let is_here = self.url.host() == Some("localhost");
        !self.allow_private && (is_here || address::check(&self.url).is_err())
    }

    /// Makes a webhook that is told of everything, in the usual times.
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
