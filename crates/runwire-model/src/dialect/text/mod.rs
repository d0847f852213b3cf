//! `text`: the answer's text and nothing else (`docs/dialects/text.md`). Written, never read.
//!
//! Joined, the pieces are the run's texts with a blank line between two messages; a text that replaces another follows
//! it.

use serde::{Deserialize, Serialize};

use crate::dialect::encode::{Encode, EncodeContext};
use crate::dialect::registry::{NamedIds, Quirks, Spec};
use crate::dialect::{Frames, runwire};
use crate::event::Body;

pub(super) const SPEC: Spec = Spec {
    name: "text",
    read: None,
    ids: NamedIds::None,
    // Frames are text: what follows describes the events that they come from.
    thread_field: runwire::SPEC.thread_field,
    schema: runwire::SPEC.schema,
    frames_section: runwire::SPEC.frames_section,
    document: runwire::document::DOCUMENT,
    offers_attach: false,
    has_unnamed_pieces: false,
    has_extensions: false,
    quirks: Quirks::NONE,
};

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Encoder {
    /// Id of the last message.
    last: Option<String>,
}

impl Encode for Encoder {
    fn event(&mut self, context: &EncodeContext<'_>, out: &mut Frames) {
        let (id, content, replaces) = match &context.event().body {
            Body::TextDelta(delta) => (&delta.message_id, delta.content.as_str(), false),
            // What was shown cannot be taken back: the new text follows it.
            Body::TextFinished(finished) => match context.replacement(finished) {
                Some(content) => (&finished.message_id, content, true),
                None => return,
            },
            _ => return,
        };
        let role = context.shown.text(id).and_then(|text| text.role.as_deref());
        if content.is_empty() || role.is_some_and(|role| role != "assistant") {
            return;
        }
        let data = out.begin();
        let goes_on = |last: &String| !replaces && (last == id || context.shown.continues(last, id));
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

    fn write_slot(&mut self, _context: &EncodeContext<'_>, _out: &mut Frames) {}
}
