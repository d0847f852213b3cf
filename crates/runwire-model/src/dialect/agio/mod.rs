//! `agio`: Agio's events (`docs/dialects/agio.md`).

mod decode;
mod document;
mod encode;

use decode::{decode, open};
pub(super) use encode::Encoder;

use serde_json::{Value, json};

use crate::dialect::registry::{DetectionRule, Ending, NamedIds, Quirks, Read, Spec};
use crate::dialect::start::{AgentStart, StartRequest};
use crate::json::Object;

pub(super) const SPEC: Spec = Spec {
    name: "agio",
    read: Some(Read {
        open,
        decode,
        detect: &[DetectionRule { rank: 5, matches: is_agio }],
        ending,
        refinement: None,
        resumes_as_new_run: false,
        start: StartRequest::Flat(start_request),
    }),
    ids: NamedIds::Run,
    thread_field: "metadata.thread_id",
    schema: include_str!("schema.json"),
    frames_section: "统一事件模型",
    document: document::DOCUMENT,
    offers_attach: false,
    has_unnamed_pieces: true,
    has_extensions: true,
    // Where a frame names no thread, it is the run's own.
    quirks: Quirks { run_stands_for_thread: true, ..Quirks::NONE },
};

fn is_agio(frame: &Object<'_>) -> bool {
    ["run_id", "timestamp", "data"].iter().all(|key| frame.has(key))
}

/// The body of `POST /agent/stream`.
fn start_request(start: &AgentStart<'_>) -> Value {
    json!({"query": start.message.unwrap_or_default()})
}

fn ending(frame: &Object<'_>, name: Option<&str>) -> Option<Ending> {
    match frame.get_str("type").as_deref().or(name) {
        Some("run_completed" | "run_cancelled") => Some(Ending::Over),
        Some("run_failed") => Some(Ending::Failed),
        _ => None,
    }
}
