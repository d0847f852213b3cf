//! The messages that webhooks get, as the document describes them.

use runwire_log::OutboxKind;
use serde_json::{Map, Value, json};

/// Describes the message of each event.
pub(super) fn webhooks() -> Map<String, Value> {
    OutboxKind::ALL.iter().map(|kind| (kind.name().to_owned(), json!({"post": operation(*kind)}))).collect()
}

fn operation(kind: OutboxKind) -> Value {
    let (id, summary) = match kind {
        OutboxKind::InteractionRequested => ("toldInteractionRequested", "A run asks a person"),
        OutboxKind::RunCompleted => ("toldRunCompleted", "A run is complete"),
        OutboxKind::RunFailed => ("toldRunFailed", "A run has failed"),
        OutboxKind::RunCancelled => ("toldRunCancelled", "A run was cancelled"),
    };
    let header = |name: &str, description: &str| json!({"name": name, "in": "header", "required": true, "description": description, "schema": {"type": "string"}});
    json!({
        "operationId": id,
        "summary": summary,
        "parameters": [
            header("webhook-id", "The same however often the message is sent."),
            header("webhook-timestamp", "When this attempt was made, in seconds since 1970."),
            header("webhook-signature", "`v1,` and the HMAC-SHA256 of id, timestamp and body, in Base64: Standard Webhooks."),
        ],
        "requestBody": {"required": true, "content": {"application/json": {"schema": {"allOf": [
            {"$ref": "#/components/schemas/WebhookMessage"},
            {"properties": {"type": {"const": kind.name()}}},
        ]}}}},
        "responses": {
            "2XX": {"description": "It has arrived. The body is not read."},
            "410": {"description": "Nothing more is wanted: the webhook is told nothing until the server starts anew."},
            "default": {"description": "It is sent again later; `Retry-After` in seconds may ask for more time."},
        },
    })
}
