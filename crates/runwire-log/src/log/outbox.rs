//! Delivering events to subscribers.

use async_trait::async_trait;
use tokio::sync::watch;

use crate::error::LogError;
use crate::outbox::{DeliveryOutcome, OutboxMessage, Subscriber};

/// Lists undelivered messages, and records their delivery.
#[async_trait]
pub trait LogOutbox: Send + Sync + 'static {
    /// Sets the subscribers of events. Undelivered messages of others are removed: at once, or after a day where
    /// other nodes may know them.
    ///
    /// Imported events are not delivered: they happened elsewhere.
    async fn subscribe(&self, subscribers: Vec<Subscriber>) -> Result<(), LogError>;

    /// Lists undelivered messages of a subscriber, in the order they are due.
    async fn outbox(&self, subscriber: &str, limit: usize) -> Result<Vec<OutboxMessage>, LogError>;

    /// Records the outcome of a delivery; a message that is gone is ignored.
    async fn mark_delivered(&self, message: u64, outcome: DeliveryOutcome) -> Result<(), LogError>;

    /// Watches for commits that add outbox messages.
    ///
    /// Subscribe before listing them, to miss none.
    fn outbox_changed(&self) -> watch::Receiver<()>;
}
