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

use std::sync::Arc;

use runwire_log::{Log, LogError, Subscriber};
use tokio::task::AbortHandle;

pub use config::Webhook;
pub use runwire_log::NoticeKind;
pub use secret::{BadSecret, Secret};

use crate::Wire;
use courier::Courier;

/// Has the log note what webhooks are to be told, from now on.
pub(crate) async fn subscribe(log: &dyn Log, webhooks: &[Webhook]) -> Result<(), LogError> {
    let subscriber =
        |webhook: &Webhook| Subscriber { name: webhook.name.clone(), kinds: webhook.events.clone() };
    log.subscribe(webhooks.iter().map(subscriber).collect()).await
}

/// Begins to tell what there is to tell.
pub(crate) fn start(wire: &Arc<Wire>) -> impl Iterator<Item = AbortHandle> {
    wire.config.webhooks.iter().map(|webhook| {
        let courier = Courier { log: wire.log.clone(), webhook: webhook.clone() };
        tokio::spawn(courier.work()).abort_handle()
    })
}
