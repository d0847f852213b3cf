//! `loom-export`: Loom's single-key form (`docs/dialects/loom-export.md`).
//!
//! The same events as `loom`, each an object whose one key is the type. It has no envelope, so nothing fits beside a
//! payload: an event that must be exact comes first in a slot, with the number of native frames after it that repeat
//! it.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::decode as typed;
use super::encode::{Form, shown_node, tell};
use super::{document, ending, start_request};
use crate::dialect::decode::{DecodeError, DecoderState, Envelope, OpenedFrame, decode_residue, slot_event};
use crate::dialect::encode::{Encode, EncodeContext};
use crate::dialect::registry::{NamedIds, Quirks, Read, Rule, Spec, StartRequest};
use crate::dialect::{Frames, RecordBuilder};
use crate::event::{Body, Extra};
use crate::json::{FieldError, Json, Object, ObjectWriter};

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

pub(crate) const SPEC: Spec = Spec {
    name: "loom-export",
    read: Some(Read {
        open,
        decode,
        detect: &[Rule { rank: 8, matches: is_loom_export }],
        ending,
        refinement: None,
        resumes_as_new_run: false,
        start: StartRequest::Flat(start_request),
    }),
    ids: NamedIds::None,
    thread_field: "session_id",
    schema: include_str!("../../../../../vectors/loom-export/schema.json"),
    frames_section: "§3",
    document: document::EXPORT,
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

pub(crate) fn open(object: &mut Object<'_>, _name: Option<&str>) -> Result<Envelope, FieldError> {
    // Where a slot tells the start, the native one follows it and says the same.
    let slot = object
        .get("Custom")
        .and_then(Object::of)
        .and_then(|custom| custom.get("runwire"))
        .and_then(Object::of);
    let slot = slot.filter(|event| event.get_str("type").as_deref() == Some("run.started"));
    let start = object.get("RunStart").and_then(Object::of).or(slot);
    let begins = start.is_some();
    let run = start.map(|start| start.get_id("run_id")).transpose()?.flatten();
    Ok(Envelope { thread: None, run, time: None, starts: begins || object.has("TaskStart"), begins })
}

pub(crate) fn decode(
    state: &mut DecoderState,
    frame: OpenedFrame<'_>,
    builder: &mut RecordBuilder<'_>,
) -> Result<(), DecodeError> {
    if state.skip > 0 {
        state.skip -= 1;
        return Ok(());
    }
    let whole = frame.whole();
    let mut fields = frame.object.fields();
    let (Some((key, raw)), None) = (fields.next(), fields.next()) else {
        drop(fields);
        return Ok(builder.foreign(whole, frame.name)?);
    };
    let kind = KEYS.iter().find(|(_, known)| *known == key).map(|(kind, _)| *kind);
    let known = match (kind, key) {
        (_, "Reply") => {
            typed::reply(payload(key, raw)?, builder)?;
            true
        }
        (Some("custom"), _) => {
            custom(state, raw, builder)?;
            true
        }
        (Some("values"), _) => {
            let state = Json::from_raw(raw);
            builder.add(crate::event::StateSnapshot { state }, Extra::default())?;
            true
        }
        (Some("message_chunk"), _) => {
            let mut object = payload(key, raw)?;
            let mut chunk =
                object.take_object("chunk")?.ok_or_else(|| FieldError::new("chunk", "is missing"))?;
            let content = chunk.take_str("content").map_err(|error| error.inside("chunk"))?;
            let mut metadata = object.take_object("metadata")?;
            let node = metadata.as_mut().and_then(|metadata| metadata.take("loom_node")).map(Json::from_raw);
            let mut extra = object.rest();
            extra.add_inside("chunk", Some(&chunk));
            extra.add_inside("metadata", metadata.as_ref());
            typed::keep_node(&mut extra, node, builder);
            builder.text(None, content, None, extra)?;
            true
        }
        (Some(kind), _) => {
            let object = payload(key, raw)?;
            let object = if NODE_ID.contains(&kind) { object.renamed("node_id", "id") } else { object };
            typed::payload(kind, object, builder)?
        }
        (None, _) => false,
    };
    if !known {
        builder.foreign(whole, frame.name)?;
    }
    Ok(())
}

fn payload<'a>(key: &str, raw: &'a RawValue) -> Result<Object<'a>, FieldError> {
    Object::of(raw).ok_or_else(|| FieldError::new(key, "must be an object"))
}

fn custom(
    state: &mut DecoderState,
    raw: &RawValue,
    builder: &mut RecordBuilder<'_>,
) -> Result<(), DecodeError> {
    let value = || Json::from_raw(raw);
    let Some(mut object) = Object::of(raw) else {
        return Ok(builder.add(crate::event::Custom { name: None, value: value() }, Extra::default())?);
    };
    let frames = object.take_opt::<u64>("frames").ok().flatten().unwrap_or(0);
    if decode_residue(Some(&mut object), builder)? {
        state.skip = frames;
        return Ok(());
    }
    match object.take("runwire").map(Json::from_raw).as_ref().and_then(slot_event) {
        Some(event) => {
            builder.slot(event)?;
            state.skip = frames;
        }
        None => builder.add(crate::event::Custom { name: None, value: value() }, Extra::default())?,
    }
    Ok(())
}

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
