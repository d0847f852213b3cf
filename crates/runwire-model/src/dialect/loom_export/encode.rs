//! Writes frames of Loom's single-key form.

use serde::{Deserialize, Serialize};

use super::{KEYS, NODE_ID};
use crate::dialect::Frames;
use crate::dialect::encode::{Encode, EncodeContext};
use crate::dialect::loom::encode::{Form, shown_node, tell};
use crate::event::Body;
use crate::json::{Json, Object, ObjectWriter};

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Encoder {}

impl Form for Encoder {
    fn frame(
        &mut self,
        context: &EncodeContext<'_>,
        out: &mut Frames,
        kind: &'static str,
        payload: impl FnOnce(&mut ObjectWriter<'_>),
    ) {
        let key = KEYS.iter().find(|(known, _)| *known == kind).map_or(kind, |(_, key)| *key);
        let event = context.event();
        let mut object = ObjectWriter::begin(out.begin());
        match (&event.body, kind) {
            (_, "message_chunk") => {
                let content = match &event.body {
                    Body::TextDelta(delta) => delta.content.as_str(),
                    Body::TextFinished(finished) => finished.content.as_deref().unwrap_or_default(),
                    _ => "",
                };
                let mut messages = object.object(key);
                let mut chunk = messages.object("chunk");
                chunk.str("content", content);
                context.write_own_fields("chunk.", &mut chunk);
                chunk.end();
                let mut metadata = messages.object("metadata");
                metadata.str("loom_node", &shown_node(context));
                context.write_own_fields("metadata.", &mut metadata);
                metadata.end();
                context.write_own_fields("", &mut messages);
                messages.end();
            }
            (Body::StateSnapshot(snapshot), _) => object.json(key, &snapshot.state),
            (Body::Custom(custom), _) => object.json(key, &custom.value),
            (_, "values") => {
                let mut inner = Vec::new();
                let mut writer = ObjectWriter::begin(&mut inner);
                payload(&mut writer);
                writer.end();
                let state = Json::from_written(inner);
                let bare = Object::of_json(&state).and_then(|object| object.get("state").map(Json::from_raw));
                object.json(key, &bare.unwrap_or_default());
            }
            _ => {
                let mut inner = object.object(key);
                inner.rename("id", NODE_ID.contains(&kind).then_some("node_id"));
                payload(&mut inner);
                context.write_own_fields("", &mut inner);
                inner.end();
            }
        }
        object.end();
        out.end(None);
    }

    fn reply(
        &mut self,
        context: &EncodeContext<'_>,
        out: &mut Frames,
        payload: impl FnOnce(&mut ObjectWriter<'_>),
    ) {
        let mut object = ObjectWriter::begin(out.begin());
        let mut reply = object.object("Reply");
        payload(&mut reply);
        context.write_own_fields("", &mut reply);
        reply.end();
        object.end();
        out.end(None);
    }

    fn write_slot(&mut self, context: &EncodeContext<'_>, out: &mut Frames) {
        write_slot(context, out, 0);
    }
}

fn write_slot(context: &EncodeContext<'_>, out: &mut Frames, frames: u64) {
    let mut object = ObjectWriter::begin(out.begin());
    let mut custom = object.object("Custom");
    if frames > 0 && context.has_replacement_events() {
        context.write_residue(&mut custom);
    } else {
        context.write_native(custom.key("runwire"));
    }
    if frames > 0 {
        custom.u64("frames", frames);
    }
    custom.end();
    object.end();
    out.end(None);
}

impl Encode for Encoder {
    fn event(&mut self, context: &EncodeContext<'_>, out: &mut Frames) {
        if let Body::Foreign(foreign) = &context.event().body
            && foreign.dialect == "loom-export"
            && !context.full
        {
            out.begin().extend_from_slice(foreign.frame.text().as_bytes());
            return out.end(None);
        }
        let before = out.len();
        tell(self, context, out);
        if !context.has_residue() || out.len() == before {
            return;
        }
        // The residue stands in a slot before the frames that it is about.
        let native = out.split_off(before);
        let drop_residue =
            native.iter().next().is_some_and(|(_, data)| data.starts_with(b"{\"Custom\":{\"runwire\":"));
        if !drop_residue && context.shows_slot() {
            write_slot(context, out, native.len() as u64);
        }
        out.append(&native);
    }

    fn streams_arguments(&self) -> bool {
        true
    }

    fn write_slot(&mut self, context: &EncodeContext<'_>, out: &mut Frames) {
        write_slot(context, out, 0);
    }
}
