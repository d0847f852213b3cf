//! The body of a webhook message.

use bytes::Bytes;
use runwire_log::{OutboxKind, OutboxMessage};
use runwire_model::Json;
use runwire_model::json::Object;
use serde::Serialize;

use crate::ids::path_segment;

/// The body of a message.
#[derive(Serialize)]
struct Message<'a> {
    r#type: &'static str,
    at: String,
    thread_id: &'a str,
    run_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<&'a str>,
    seq: u64,
    /// Link to the interaction, or to the run.
    url: String,
    data: &'a Json,
}

/// Writes the body of a message, the same for each attempt.
pub(super) fn body(notice: &OutboxMessage, base_url: &str) -> Result<Bytes, serde_json::Error> {
    let run_id = &*notice.run.id;
    let mut url = format!("{}/v1/runs/{}", base_url.trim_end_matches('/'), path_segment(run_id));
    if notice.kind == OutboxKind::InteractionRequested {
        let id = Object::of_json(&notice.event).and_then(|question| question.get_str("interaction_id"));
        url = format!("{url}/interactions/{}", path_segment(&id.unwrap_or_default()));
    }
    let message = Message {
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
