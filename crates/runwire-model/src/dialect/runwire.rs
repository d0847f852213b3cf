//! `runwire`: the canonical model as JSON (`docs/dialects/runwire.md`).

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::decode::{DecodeError, Envelope, Opened};
use super::encode::{Encode, Ids, Turn};
use super::{Frames, Weave};
use crate::event::{Body, Event};
use crate::json::{FieldError, Json, Object, ObjectWriter};
use crate::record::{By, Record};
use crate::time::Timestamp;

pub(super) fn open(object: &mut Object<'_>) -> Result<Envelope, FieldError> {
    object.take("seq");
    let time = object.take_opt_str("at")?.and_then(|at| Timestamp::parse(&at));
    let starts = object.get_str("type").as_deref() == Some("run.started");
    Ok(Envelope {
        thread: object.take_id("thread_id")?,
        run: object.take_id("run_id")?,
        time,
        starts,
        begins: starts,
    })
}

pub(super) fn decode(mut frame: Opened<'_>, weave: &mut Weave<'_>) -> Result<(), DecodeError> {
    let whole = frame.whole();
    let event_type = frame.object.take_str("type")?;
    match Event::read(&event_type, frame.object)? {
        Some(event) => weave.event(event, By::Producer)?,
        None => weave.foreign(whole, frame.name)?,
    }
    Ok(())
}

/// Writes an event with its envelope.
pub(super) fn write(out: &mut Vec<u8>, record: &Record, ids: &Ids, event: &Event) {
    let mut object = ObjectWriter::begin(out);
    object.u64("seq", record.seq);
    let at = object.key("at");
    at.push(b'"');
    record.at.write(at);
    at.push(b'"');
    object.str("thread_id", &ids.thread);
    object.str("run_id", &ids.run);
    match &event.body {
        // A type that this version does not know, from a producer that does, is handed on as it came.
        // One of a type that is known was refused, and stays what it is.
        Body::Foreign(foreign) if foreign.dialect == "runwire" && !is_known(&foreign.frame) => {
            for (name, raw) in Object::of_json(&foreign.frame).iter().flat_map(Object::fields) {
                if !matches!(name, "seq" | "at" | "thread_id" | "run_id") {
                    object.raw(name, raw.get());
                }
            }
        }
        _ => event.write(&mut object),
    }
    object.end();
}

fn is_known(frame: &Json) -> bool {
    let event_type = Object::of_json(frame).and_then(|object| object.get_str("type").map(Cow::into_owned));
    event_type.is_none_or(|event_type| Body::TYPES.contains(&event_type.as_str()))
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Encoder {}

impl Encode for Encoder {
    fn event(&mut self, turn: &Turn<'_>, out: &mut Frames) {
        turn.write_native(out.begin());
        out.end(None);
    }

    fn slot(&mut self, turn: &Turn<'_>, out: &mut Frames) {
        self.event(turn, out);
    }

    fn shows_implied(&self) -> bool {
        true
    }
}
