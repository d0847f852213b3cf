//! `loom`: Loom's streaming output, type and payload (`docs/dialects/loom.md`).

pub(super) mod decode;
pub(super) mod document;
pub(super) mod encode;

use decode::{decode, open};
pub(super) use encode::Encoder;

use serde_json::{Value, json};

use crate::dialect::registry::{DetectionRule, Ending, NamedIds, Quirks, Read, Spec};
use crate::dialect::start::{AgentStart, StartRequest};
use crate::json::Object;

/// Node that Loom's web client shows for events outside any node.
const OUTSIDE: &str = "agent";
/// Extension field: the node that a piece names in its own dialect.
const NODE: &str = "own.node";
/// Extension field of `step.started`: the producer's `node_id` of the node run.
const NODE_ID: &str = "own.node_id";

pub(super) const SPEC: Spec = Spec {
    name: "loom",
    read: Some(Read {
        open,
        decode,
        detect: &[DetectionRule { rank: 9, matches: is_loom }],
        ending,
        refinement: None,
        resumes_as_new_run: false,
        start: StartRequest::Flat(start_request),
    }),
    ids: NamedIds::RunAtStart,
    thread_field: "session_id",
    schema: include_str!("schema.json"),
    frames_section: "§3",
    document: document::DOCUMENT,
    offers_attach: false,
    has_unnamed_pieces: true,
    has_extensions: true,
    quirks: Quirks { has_run_sessions: true, ..Quirks::NONE },
};

/// The event types that a first frame is recognised by.
const TYPES: &[&str] = &[
    "run_start",
    "node_enter",
    "node_exit",
    "message_chunk",
    "thought_chunk",
    "usage",
    "values",
    "updates",
    "custom",
    "checkpoint",
    "tot_expand",
    "tot_evaluate",
    "tot_backtrack",
    "got_plan",
    "got_node_start",
    "got_node_complete",
    "got_node_failed",
    "got_expand",
    "tool_call_chunk",
    "tool_call",
    "tool_start",
    "tool_output",
    "tool_end",
    "tool_approval",
];

fn is_loom(frame: &Object<'_>) -> bool {
    frame.has("reply") || frame.get_str("type").is_some_and(|kind| TYPES.contains(&&*kind))
}

/// The message that starts a run on Loom's WebSocket.
pub(super) fn start_request(start: &AgentStart<'_>) -> Value {
    json!({
        "type": "run",
        "id": start.run,
        "message": start.message.unwrap_or_default(),
        "agent": start.agent,
        "thread_id": start.thread,
    })
}

/// Returns `None`: a second reply is another answer, not the same end again.
pub(super) fn ending(_frame: &Object<'_>, _name: Option<&str>) -> Option<Ending> {
    None
}

/// Makes the id of a node run; `before` counts the node runs before it.
fn minted_node_id(name: &str, before: u64) -> String {
    format!("run-{name}-{before}")
}
