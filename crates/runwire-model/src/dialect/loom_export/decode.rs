//! Reads frames of Loom's single-key form.

use serde_json::value::RawValue;

use super::{KEYS, NODE_ID};
use crate::dialect::RecordBuilder;
use crate::dialect::decode::{DecodeError, DecoderState, Envelope, OpenedFrame, decode_residue, slot_event};
use crate::dialect::loom::decode as typed;
use crate::event::Extra;
use crate::json::{FieldError, Json, Object};

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
