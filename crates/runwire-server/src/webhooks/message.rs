//! The body of a webhook message.

use bytes::Bytes;
use runwire_log::{OutboxKind, OutboxMessage};
use runwire_model::json::Object;
use runwire_model::{Json, percent_encoded};
use serde::Serialize;
use utoipa::ToSchema;

use crate::openapi::schemas::{IdSchema, WebhookEventSchema};

/// The message that a webhook gets.
#[derive(Serialize, ToSchema)]
pub(crate) struct WebhookMessage<'a> {
    #[schema(inline, value_type = WebhookEventSchema)]
    r#type: &'static str,
    /// When the event was written.
    #[schema(format = DateTime)]
    at: String,
    #[schema(value_type = IdSchema)]
    thread_id: &'a str,
    #[schema(value_type = IdSchema)]
    run_id: &'a str,
    /// Missing where the run names none.
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<&'a str>,
    /// The record in the thread: what happened first has the smaller one.
    #[schema(minimum = 1)]
    seq: u64,
    /// Of a question, where it is answered; of an end, the run. A path, unless the webhook has a `base_url`.
    url: String,
    /// The event, as the `runwire` dialect has it.
    #[schema(value_type = Object)]
    data: &'a Json,
}

/// Writes the body of a message, the same for each attempt.
pub(super) fn body(notice: &OutboxMessage, base_url: &str) -> Result<Bytes, serde_json::Error> {
    let run_id = &*notice.run.id;
    let mut url = format!("{}/v1/runs/{}", base_url.trim_end_matches('/'), percent_encoded(run_id));
    if notice.kind == OutboxKind::InteractionRequested {
        let id = Object::of_json(&notice.event).and_then(|question| question.get_str("interaction_id"));
        url = format!("{url}/interactions/{}", percent_encoded(&id.unwrap_or_default()));
    }
    let message = WebhookMessage {
        r#type: notice.kind.name(),
        at: notice.at.to_string(),
        thread_id: &notice.thread_id,
        run_id,
        agent: notice.agent.as_deref(),
        seq: notice.seq,
        url,
        data: &notice.event,
    };
    serde_json::to_vec(&message).map(Bytes::from)
}
