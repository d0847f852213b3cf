//! `streaming-engine`: StreamingEngine's events, and the older ones it still sends
//! (`docs/dialects/streaming-engine.md`).

mod decode;
mod document;
mod encode;

use decode::{decode, open};
pub(super) use encode::Encoder;

use serde_json::{Value, json};

use crate::dialect::registry::{DetectionRule, Ending, NamedIds, Quirks, Read, Spec};
use crate::dialect::start::{AgentStart, StartRequest};
use crate::json::Object;

const STAGES: &[&str] = &["reasoning", "planning", "analyzing"];
const FORMATS: &[&str] = &["markdown", "text", "html"];
const DATA_TYPES: &[&str] = &["dataframe", "chart", "image", "custom"];
const ERROR_TYPES: &[&str] = &["validation", "execution", "timeout", "system"];
/// Name of the field that marks the last `content` of a run.
const LAST_PIECE: &str = "is_complete";
/// Members of `metadata` that are replaced in every frame.
const STAMPED: [&str; 3] = ["request_id", "timestamp", "sequence"];
/// Times from here up to ten times as much have ten digits: they are seconds.
const FIRST_TEN_DIGITS: f64 = 1e9;

/// Code of a failed call's error where the source has none: the document has one on every error.
const NO_CODE: &str = "ERROR";

/// Extension field: the code of an error in its own dialect, where it says no more than that there is none.
const ERROR_CODE: &str = "own.error_code";

pub(super) const SPEC: Spec = Spec {
    name: "streaming-engine",
    read: Some(Read {
        open,
        decode,
        detect: &[
            DetectionRule { rank: 6, matches: has_envelope },
            DetectionRule { rank: 7, matches: is_legacy },
        ],
        ending,
        refinement: None,
        resumes_as_new_run: false,
        start: StartRequest::Flat(start_request),
    }),
    ids: NamedIds::Run,
    thread_field: "data.session_id",
    schema: include_str!("schema.json"),
    frames_section: "§1.2",
    document: document::DOCUMENT,
    offers_attach: true,
    has_unnamed_pieces: true,
    has_extensions: true,
    quirks: Quirks::NONE,
};

fn has_envelope(frame: &Object<'_>) -> bool {
    frame.has("data") && frame.has("metadata")
}

/// Recognises the older form (§6), flat or nested.
fn is_legacy(frame: &Object<'_>) -> bool {
    let data = frame.get("data").and_then(Object::of);
    frame.has("tool_id")
        || data.is_some_and(|data| data.has("tool_id"))
        || matches!(frame.get_str("type").as_deref(), Some("token" | "final_answer" | "done"))
}

/// The body of a chat request.
fn start_request(start: &AgentStart<'_>) -> Value {
    json!({"session_id": start.thread, "content": start.message.unwrap_or_default()})
}

fn ending(frame: &Object<'_>, _name: Option<&str>) -> Option<Ending> {
    let is_end = matches!(frame.get_str("type").as_deref(), Some("session_end" | "done"));
    is_end.then_some(Ending::Over)
}
