//! `social-app`: social-app's profile of AG-UI (`docs/dialects/social-app.md`).
//!
//! Frames that are the same in AG-UI are read by its decoder. Figures that are internal to the back end are stored like
//! anything else and never written here (`scrub.rs`).

mod decode;
mod document;
mod encode;
mod scrub;

use decode::decode;
pub(super) use encode::Encoder;

use crate::dialect::ag_ui;
use crate::dialect::registry::{DetectionRule, NamedIds, Quirks, Read, Spec};
use crate::dialect::start::StartRequest;
use crate::json::Object;

/// The stage of the document that answers; steps of other systems belong to it.
const WORKER: &str = "worker";
/// The stage of the document that chooses who answers.
const ROUTER: &str = "router";
/// Error code of a cancelled run, for which the document has no event.
const CANCELLED: &str = "CANCELLED";

pub(super) const SPEC: Spec = Spec {
    name: "social-app",
    read: Some(Read {
        open: ag_ui::open,
        decode,
        detect: &[DetectionRule { rank: 3, matches: is_social_app }],
        ending: ag_ui::ending,
        refinement: None,
        resumes_as_new_run: true,
        start: StartRequest::Conversation(ag_ui::start::run_agent_input),
    }),
    ids: NamedIds::Run,
    thread_field: "threadId",
    schema: include_str!("schema.json"),
    frames_section: "§2",
    document: document::DOCUMENT,
    offers_attach: false,
    has_unnamed_pieces: false,
    has_extensions: true,
    // The document allows only the comment (§2).
    quirks: Quirks { has_bare_keep_alive: true, ..Quirks::NONE },
};

fn is_social_app(frame: &Object<'_>) -> bool {
    ag_ui::is_ag_ui(frame) && shows(frame)
}

/// Returns true for a frame of AG-UI with a field that only this profile has.
pub(super) fn shows(object: &Object<'_>) -> bool {
    ["args", "answer", "stage", "tool_call_id"].iter().any(|key| object.has(key))
}

/// Returns the stage that a step belongs to.
fn stage_of(step: &str) -> &'static str {
    if step == ROUTER { ROUTER } else { WORKER }
}
