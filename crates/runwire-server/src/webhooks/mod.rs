//! Webhooks: other servers are told when a run asks a person, and when it ends.
//!
//! ```text
//! Log::append ─▶ one commit: the record, and a notice for each webhook that wants it
//!                                   │
//!                    courier ◀──────┘ one for each webhook: POST, then told: done, or again later
//! ```
//!
//! What is to be told lies in the log until it was, so a run never waits for a webhook, and a server that dies
//! forgets none. It may tell one twice; `webhook-id` says so.

mod address;
mod attempt;
mod config;
mod connection;
mod courier;
mod message;
mod secret;
mod standing;

use std::sync::Arc;

use runwire_log::{Log, LogError, Subscriber};
use tokio::sync::Mutex;
use tokio::task::AbortHandle;

pub use config::Webhook;
pub use runwire_log::OutboxKind;
pub use secret::{BadSecret, Secret};
pub(crate) use standing::WebhookView;

use courier::Courier;
use standing::Known;

/// The webhooks of a server.
pub(crate) struct Webhooks {
    log: Arc<dyn Log>,
    all: Vec<Arc<Known>>,
    /// Held while the log is told who is to be told of what, so that the last word is the newest.
    subscribing: Mutex<()>,
}

impl Webhooks {
    pub(crate) fn new(webhooks: &[Webhook], log: Arc<dyn Log>) -> Self {
        let all = webhooks.iter().cloned().map(Known::new).map(Arc::new).collect();
        Self { log, all, subscribing: Mutex::default() }
    }

    /// Has the log note what webhooks are to be told, from now on. What waits for those that are gone is forgotten.
    pub(crate) async fn subscribe(&self) -> Result<(), LogError> {
        let _turn = self.subscribing.lock().await;
        let present = self.all.iter().filter(|known| !known.is_gone()).map(|known| &known.webhook);
        let subscriber =
            |webhook: &Webhook| Subscriber { name: webhook.name.clone(), kinds: webhook.events.clone() };
        self.log.subscribe(present.map(subscriber).collect()).await
    }

    /// Begins to tell what there is to tell.
    pub(crate) fn start(self: &Arc<Self>) -> impl Iterator<Item = AbortHandle> {
        self.all.iter().map(|known| {
            let courier = Courier { webhooks: self.clone(), known: known.clone() };
            tokio::spawn(courier.work()).abort_handle()
        })
    }
}
