//! `loom-export`: Loom's single-key form (`docs/dialects/loom-export.md`).
//!
//! The same events as `loom`, each an object whose one key is the type. It has no envelope, so nothing can
//! stand beside a payload: where the exact event must be kept, a slot tells it first and says how many native
//! frames after it say the same.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::decode::{DecodeError, DecoderState, Envelope, Opened, slot_event, take_residue, weave_residue};
use super::encode::{Encode, Turn};
use super::loom::{self, Form};
use super::registry::{NamedIds, Read, Rule, Spec, StartRequest};
use super::{Frames, Weave};
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

pub(super) const SPEC: Spec = Spec {
    name: "loom-export",
    read: Some(Read {
        open,
        decode,
        detect: &[Rule { rank: 8, matches: is_loom_export }],
        ending: loom::ending,
        refinement: None,
        resumes_as_new_run: false,
        start: StartRequest::Flat(loom::start_request),
    }),
    ids: NamedIds::None,
    thread_field: "session_id",
    schema: include_str!("../../../../vectors/loom-export/schema.json"),
    frames_section: "§3",
    offers_attach: false,
    has_unnamed_pieces: true,
    has_extensions: true,
};

/// Recognises an object with a single key in CamelCase.
fn is_loom_export(frame: &Object<'_>) -> bool {
    let mut fields = frame.fields();
    let (Some((key, _)), None) = (fields.next(), fields.next()) else { return false };
    key.bytes().next().is_some_and(|byte| byte.is_ascii_uppercase())
        && key.bytes().any(|byte| byte.is_ascii_lowercase())
        && key.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

pub(super) fn open(object: &mut Object<'_>, _name: Option<&str>) -> Result<Envelope, FieldError> {
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

pub(super) fn decode(
    state: &mut DecoderState,
    frame: Opened<'_>,
    weave: &mut Weave<'_>,
) -> Result<(), DecodeError> {
    if state.skip > 0 {
        state.skip -= 1;
        return Ok(());
    }
    let whole = frame.whole();
    let mut fields = frame.object.fields();
    let (Some((key, raw)), None) = (fields.next(), fields.next()) else {
        drop(fields);
        return Ok(weave.foreign(whole, frame.name)?);
    };
    let kind = KEYS.iter().find(|(_, known)| *known == key).map(|(kind, _)| *kind);
    let known = match (kind, key) {
        (_, "Reply") => {
            loom::reply(payload(key, raw)?, weave)?;
            true
        }
        (Some("custom"), _) => {
            custom(state, raw, weave)?;
            true
        }
        (Some("values"), _) => {
            let state = Json::from_raw(raw);
            weave.say(crate::event::StateSnapshot { state }, Extra::default())?;
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
            loom::keep_node(&mut extra, node, weave);
            weave.text(None, content, None, extra)?;
            true
        }
        (Some(kind), _) => {
            let object = payload(key, raw)?;
            let object = if NODE_ID.contains(&kind) { object.renamed("node_id", "id") } else { object };
            loom::payload(kind, object, weave)?
        }
        (None, _) => false,
    };
    if !known {
        weave.foreign(whole, frame.name)?;
    }
    Ok(())
}

fn payload<'a>(key: &str, raw: &'a RawValue) -> Result<Object<'a>, FieldError> {
    Object::of(raw).ok_or_else(|| FieldError::new(key, "must be an object"))
}

fn custom(state: &mut DecoderState, raw: &RawValue, weave: &mut Weave<'_>) -> Result<(), DecodeError> {
    let value = || Json::from_raw(raw);
    let Some(mut object) = Object::of(raw) else {
        return Ok(weave.say(crate::event::Custom { name: None, value: value() }, Extra::default())?);
    };
    let frames = object.take_opt::<u64>("frames").ok().flatten().unwrap_or(0);
    let residue = take_residue(&mut object);
    if weave_residue(residue.as_ref(), weave)? {
        state.skip = frames;
        return Ok(());
    }
    match object.take("runwire").map(Json::from_raw).as_ref().and_then(slot_event) {
        Some(event) => {
            weave.slot(event)?;
            state.skip = frames;
        }
        None => weave.say(crate::event::Custom { name: None, value: value() }, Extra::default())?,
    }
    Ok(())
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Encoder {}

impl Form for Encoder {
    fn frame(
        &mut self,
        turn: &Turn<'_>,
        out: &mut Frames,
        kind: &'static str,
        payload: impl FnOnce(&mut ObjectWriter<'_>),
    ) {
        let key = KEYS.iter().find(|(known, _)| *known == kind).map_or(kind, |(_, key)| *key);
        let event = turn.event();
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
                turn.write_own("chunk.", &mut chunk);
                chunk.end();
                let mut metadata = messages.object("metadata");
                metadata.str("loom_node", &loom::shown_node(turn));
                turn.write_own("metadata.", &mut metadata);
                metadata.end();
                turn.write_own("", &mut messages);
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
                turn.write_own("", &mut inner);
                inner.end();
            }
        }
        object.end();
        out.end(None);
    }

    fn reply(&mut self, turn: &Turn<'_>, out: &mut Frames, payload: impl FnOnce(&mut ObjectWriter<'_>)) {
        let mut object = ObjectWriter::begin(out.begin());
        let mut reply = object.object("Reply");
        payload(&mut reply);
        turn.write_own("", &mut reply);
        reply.end();
        object.end();
        out.end(None);
    }

    fn write_slot(&mut self, turn: &Turn<'_>, out: &mut Frames) {
        write_slot(turn, out, 0);
    }
}

fn write_slot(turn: &Turn<'_>, out: &mut Frames, frames: u64) {
    let mut object = ObjectWriter::begin(out.begin());
    let mut custom = object.object("Custom");
    if frames > 0 && turn.has_stand_in() {
        turn.write_residue(&mut custom);
    } else {
        turn.write_native(custom.key("runwire"));
    }
    if frames > 0 {
        custom.u64("frames", frames);
    }
    custom.end();
    object.end();
    out.end(None);
}

impl Encode for Encoder {
    fn event(&mut self, turn: &Turn<'_>, out: &mut Frames) {
        if let Body::Foreign(foreign) = &turn.event().body
            && foreign.dialect == "loom-export"
            && !turn.full
        {
            out.begin().extend_from_slice(foreign.frame.text().as_bytes());
            return out.end(None);
        }
        let before = out.len();
        loom::tell(self, turn, out);
        if !turn.has_residue() || out.len() == before {
            return;
        }
        // The residue stands in a slot before the frames that it is about.
        let native = out.split_off(before);
        let told_in_slot =
            native.iter().next().is_some_and(|(_, data)| data.starts_with(b"{\"Custom\":{\"runwire\":"));
        if !told_in_slot && turn.shows_slot() {
            write_slot(turn, out, native.len() as u64);
        }
        out.append(&native);
    }

    fn tells_chunks(&self) -> bool {
        true
    }

    fn write_slot(&mut self, turn: &Turn<'_>, out: &mut Frames) {
        write_slot(turn, out, 0);
    }
}
