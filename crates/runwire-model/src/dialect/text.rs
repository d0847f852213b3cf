//! `text`: the answer's text and nothing else (`docs/dialects/text.md`). Written, never read.
//!
//! The pieces put together are the run's texts with a blank line between them.

use serde::{Deserialize, Serialize};

use super::Frames;
use super::encode::{Encode, Turn};
use crate::event::Body;

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Encoder {
    /// The message that was told last.
    last: Option<String>,
}

impl Encode for Encoder {
    fn event(&mut self, turn: &Turn<'_>, out: &mut Frames) {
        let Body::TextDelta(delta) = &turn.event().body else { return };
        let role = turn.track.text(&delta.message_id).and_then(|text| text.role.as_deref());
        if delta.content.is_empty() || role.is_some_and(|role| role != "assistant") {
            return;
        }
        let data = out.begin();
        if self.last.as_ref().is_some_and(|last| *last != delta.message_id) {
            data.extend_from_slice(b"\n\n");
        }
        data.extend_from_slice(delta.content.as_bytes());
        out.end(None);
        if self.last.as_ref() != Some(&delta.message_id) {
            self.last = Some(delta.message_id.clone());
        }
    }

    fn knows_subagents(&self) -> bool {
        true
    }

    fn write_slot(&mut self, _turn: &Turn<'_>, _out: &mut Frames) {}
}
