//! Webhooks: notify other servers when a run asks a person, and when it ends.
//!
//! ```text
//! Log::append ─▶ one commit: the record, and a notice for each webhook that wants it
//!                                   │
//!            delivery worker ◀──────┘ one per webhook: POST, then delete the notice, or schedule a retry
//! ```
//!
//! Notices wait in an outbox in the log (at-least-once delivery): a run never waits for a webhook, and a crash loses
//! none. A notice may be delivered twice; its `webhook-id` stays the same.

mod address;
mod attempt;
mod client;
mod config;
mod delivery_worker;
mod message;
mod secret;
mod status;

use std::sync::Arc;

use runwire_log::{Log, LogError, Subscriber};
use tokio::sync::Mutex;
use tokio::task::AbortHandle;

pub use config::Webhook;
pub(crate) use message::WebhookMessage;
pub use runwire_log::OutboxKind;
pub use secret::{BadSecret, Secret};
pub(crate) use status::WebhookView;

use delivery_worker::DeliveryWorker;
use status::TrackedWebhook;

/// The webhooks of a server.
pub(crate) struct Webhooks {
    log: Arc<dyn Log>,
    all: Vec<Arc<TrackedWebhook>>,
    /// Serializes subscription updates, so that the newest one wins.
    subscribing: Mutex<()>,
}

impl Webhooks {
    pub(crate) fn new(webhooks: &[Webhook], log: Arc<dyn Log>) -> Self {
        let all = webhooks.iter().cloned().map(TrackedWebhook::new).map(Arc::new).collect();
        Self { log, all, subscribing: Mutex::default() }
    }

    /// Updates the subscriptions in the log; deletes the queues of webhooks that are gone.
    pub(crate) async fn subscribe(&self) -> Result<(), LogError> {
        let _turn = self.subscribing.lock().await;
        let present = self.all.iter().filter(|tracked| !tracked.is_gone()).map(|tracked| &tracked.webhook);
        let subscriber =
            |webhook: &Webhook| Subscriber { name: webhook.name.clone(), kinds: webhook.events.clone() };
        self.log.subscribe(present.map(subscriber).collect()).await
    }

    /// Starts a delivery worker for each webhook.
    pub(crate) fn start(self: &Arc<Self>) -> impl Iterator<Item = AbortHandle> {
        self.all.iter().map(|tracked| {
            let worker = DeliveryWorker { webhooks: self.clone(), tracked: tracked.clone() };
            tokio::spawn(worker.run()).abort_handle()
        })
    }
}
