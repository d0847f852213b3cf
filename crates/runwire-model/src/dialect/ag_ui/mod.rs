//! `ag-ui`: the official AG-UI protocol, version 1.0 (`docs/dialects/ag-ui.md`).

mod attach;
mod decode;
mod document;
mod encode;
mod interrupts;
mod mirror;
pub(super) mod start;

use decode::{decode, last_user_message};
pub(super) use decode::{gathered, open, payload};
pub(super) use encode::Encoder;

use crate::dialect::registry::{DetectionRule, Ending, NamedIds, Quirks, Read, Refinement, Spec};
use crate::dialect::start::StartRequest;
use crate::dialect::{Dialect, social_app};
use crate::json::Object;

/// Name of the `custom` event of a `REASONING_ENCRYPTED_VALUE`.
const ENCRYPTED: &str = "ag-ui.REASONING_ENCRYPTED_VALUE";
/// Name of the `custom` event with the answers that an agent reports.
const RESUME: &str = "ag-ui.resume";
/// Source of a `RAW` without one.
const UNNAMED_SOURCE: &str = "raw";

/// The field that keeps the id of the span around a reasoning message.
const SPAN: &str = "span";

pub(super) const SPEC: Spec = Spec {
    name: "ag-ui",
    read: Some(Read {
        open,
        decode,
        detect: &[DetectionRule { rank: 4, matches: is_ag_ui }],
        ending,
        refinement: Some(Refinement { dialect: Dialect::SocialApp, shows: social_app::shows }),
        resumes_as_new_run: true,
        start: StartRequest::Conversation(start::run_agent_input),
    }),
    ids: NamedIds::None,
    thread_field: "threadId",
    schema: include_str!("schema.json"),
    frames_section: "BaseEvent",
    document: document::DOCUMENT,
    offers_attach: true,
    has_unnamed_pieces: false,
    has_extensions: true,
    quirks: Quirks {
        ends_response: Some(ends_response),
        write_attach: Some(attach::frames),
        stored_input: Some(start::STORED_INPUT),
        ..Quirks::NONE
    },
};

/// Recognises a type in UPPER_SNAKE_CASE.
pub(super) fn is_ag_ui(frame: &Object<'_>) -> bool {
    frame.get_str("type").is_some_and(|kind| {
        kind.starts_with(|first: char| first.is_ascii_uppercase())
            && kind.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_' || byte.is_ascii_digit())
    })
}

fn ends_response(frame: &[u8]) -> bool {
    [&br#"{"type":"RUN_FINISHED""#[..], br#"{"type":"RUN_ERROR""#].iter().any(|end| frame.starts_with(end))
}

pub(super) fn ending(frame: &Object<'_>, _name: Option<&str>) -> Option<Ending> {
    match frame.get_str("type").as_deref() {
        Some("RUN_FINISHED") => Some(Ending::Over),
        Some("RUN_ERROR") => Some(Ending::Failed),
        _ => None,
    }
}
