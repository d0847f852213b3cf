//! `text`: the answer's text and nothing else (`docs/dialects/text.md`). Written, never read.
//!
//! The pieces put together are the run's texts with a blank line between two messages; a text that replaces another
//! follows it.

use serde::{Deserialize, Serialize};

use super::encode::{Encode, Turn};
use super::registry::{NamedIds, Spec};
use super::{Frames, runwire};
use crate::event::Body;

pub(super) const SPEC: Spec = Spec {
    name: "text",
    read: None,
    ids: NamedIds::None,
    // Frames are text: what follows describes the events that they come from.
    thread_field: runwire::SPEC.thread_field,
    schema: runwire::SPEC.schema,
    frames_section: runwire::SPEC.frames_section,
    offers_attach: false,
    has_unnamed_pieces: false,
    has_extensions: false,
};

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Encoder {
    /// The message that was told last.
    last: Option<String>,
}

impl Encode for Encoder {
    fn event(&mut self, turn: &Turn<'_>, out: &mut Frames) {
        let (id, content, replaces) = match &turn.event().body {
            Body::TextDelta(delta) => (&delta.message_id, delta.content.as_str(), false),
            // What was shown cannot be taken back: the new text follows it.
            Body::TextFinished(finished) => match turn.replacement(finished) {
                Some(content) => (&finished.message_id, content, true),
                None => return,
            },
            _ => return,
        };
        let role = turn.track.text(id).and_then(|text| text.role.as_deref());
        if content.is_empty() || role.is_some_and(|role| role != "assistant") {
            return;
        }
        let data = out.begin();
        let goes_on = |last: &String| !replaces && (last == id || turn.track.continues(last, id));
        if self.last.as_ref().is_some_and(|last| !goes_on(last)) {
            data.extend_from_slice(b"\n\n");
        }
        data.extend_from_slice(content.as_bytes());
        out.end(None);
        if self.last.as_ref() != Some(id) {
            self.last = Some(id.clone());
        }
    }

    fn knows_subagents(&self) -> bool {
        true
    }

    fn write_slot(&mut self, _turn: &Turn<'_>, _out: &mut Frames) {}
}
