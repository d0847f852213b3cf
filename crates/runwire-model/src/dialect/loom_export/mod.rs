//! `loom-export`: Loom's single-key form (`docs/dialects/loom-export.md`).
//!
//! The same events as `loom`, each an object whose one key is the type. It has no envelope, so nothing fits beside a
//! payload: an event that must be exact comes first in a slot, with the number of native frames after it that repeat
//! it.

mod decode;
mod document;
mod encode;

use decode::{decode, open};
pub(super) use encode::Encoder;

use crate::dialect::loom::{ending, start_request};
use crate::dialect::registry::{DetectionRule, NamedIds, Quirks, Read, Spec};
use crate::dialect::start::StartRequest;
use crate::json::Object;

/// The export key of each type, in the order of the document.
const KEYS: &[(&str, &str)] = &[
    ("run_start", "RunStart"),
    ("node_enter", "TaskStart"),
    ("node_exit", "TaskEnd"),
    ("message_chunk", "Messages"),
    ("usage", "Usage"),
    ("values", "Values"),
    ("updates", "Updates"),
    ("custom", "Custom"),
    ("checkpoint", "Checkpoint"),
    ("tot_expand", "TotExpand"),
    ("tot_evaluate", "TotEvaluate"),
    ("tot_backtrack", "TotBacktrack"),
    ("got_plan", "GotPlan"),
    ("got_node_start", "GotNodeStart"),
    ("got_node_complete", "GotNodeComplete"),
    ("got_node_failed", "GotNodeFailed"),
    ("got_expand", "GotExpand"),
    ("tool_call_chunk", "ToolCallChunk"),
    ("tool_call", "ToolCall"),
    ("tool_start", "ToolStart"),
    ("tool_output", "ToolOutput"),
    ("tool_end", "ToolEnd"),
    ("tool_approval", "ToolApproval"),
    ("thought_chunk", "ThoughtChunk"),
];

/// Types whose node is called `node_id` here and `id` in the typed form.
const NODE_ID: &[&str] =
    &["node_enter", "node_exit", "updates", "got_node_start", "got_node_complete", "got_node_failed"];

pub(super) const SPEC: Spec = Spec {
    name: "loom-export",
    read: Some(Read {
        open,
        decode,
        detect: &[DetectionRule { rank: 8, matches: is_loom_export }],
        ending,
        refinement: None,
        resumes_as_new_run: false,
        start: StartRequest::Flat(start_request),
    }),
    ids: NamedIds::None,
    thread_field: "session_id",
    schema: include_str!("schema.json"),
    frames_section: "§3",
    document: document::DOCUMENT,
    offers_attach: false,
    has_unnamed_pieces: true,
    has_extensions: true,
    quirks: Quirks::NONE,
};

/// Recognises an object with a single key in CamelCase.
fn is_loom_export(frame: &Object<'_>) -> bool {
    let mut fields = frame.fields();
    let (Some((key, _)), None) = (fields.next(), fields.next()) else { return false };
    key.bytes().next().is_some_and(|byte| byte.is_ascii_uppercase())
        && key.bytes().any(|byte| byte.is_ascii_lowercase())
        && key.bytes().all(|byte| byte.is_ascii_alphanumeric())
}
