//! `runwire`: the canonical model as JSON (`docs/dialects/runwire.md`).

pub(super) mod document;

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::dialect::decode::{DecodeError, DecoderState, Envelope, OpenedFrame};
use crate::dialect::encode::{Encode, EncodeContext, Ids};
use crate::dialect::registry::{DetectionRule, Ending, NamedIds, Quirks, Read, Spec};
use crate::dialect::start::{AgentStart, StartRequest};
use crate::dialect::{Frames, RecordBuilder};
use crate::event::{Body, Event, Extra, RunCompleted, TextFinished};
use crate::json::{FieldError, Object, ObjectWriter};
use crate::record::{EventOrigin, Record};
use crate::run::Refusal;
use crate::time::Timestamp;

pub(super) const SPEC: Spec = Spec {
    name: "runwire",
    read: Some(Read {
        open,
        decode,
        detect: &[DetectionRule { rank: 2, matches: is_runwire }],
        ending,
        refinement: None,
        resumes_as_new_run: false,
        start: StartRequest::Nested(start_request),
    }),
    ids: NamedIds::Run,
    thread_field: "thread_id",
    schema: include_str!("schema.json"),
    frames_section: "§4",
    document: document::DOCUMENT,
    offers_attach: true,
    has_unnamed_pieces: false,
    has_extensions: false,
    quirks: Quirks::NONE,
};

fn is_runwire(frame: &Object<'_>) -> bool {
    (frame.has("seq") && frame.has("at")) || frame.get_str("type").is_some_and(|kind| kind.contains('.'))
}

fn start_request(start: &AgentStart<'_>) -> Value {
    let AgentStart { thread, run, agent, message } = start;
    json!({"thread_id": thread, "run_id": run, "agent": agent, "message": message})
}

fn ending(frame: &Object<'_>, _name: Option<&str>) -> Option<Ending> {
    match frame.get_str("type").as_deref() {
        Some("run.completed" | "run.cancelled") => Some(Ending::Over),
        Some("run.failed") => Some(Ending::Failed),
        _ => None,
    }
}

pub(super) fn open(object: &mut Object<'_>, _name: Option<&str>) -> Result<Envelope, FieldError> {
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

pub(super) fn decode(
    _state: &mut DecoderState,
    mut frame: OpenedFrame<'_>,
    builder: &mut RecordBuilder<'_>,
) -> Result<(), DecodeError> {
    let whole = frame.whole();
    let event_type = frame.object.take_str("type")?;
    match Event::read(&event_type, frame.object)? {
        Some(event) => match &event.body {
            Body::RunCompleted(RunCompleted { reply: Some(reply), .. }) => {
                let reply = reply.clone();
                builder.atomically(|builder| {
                    builder.whole_text(&reply, EventOrigin::Decoder, Extra::default())?;
                    builder.event(event, EventOrigin::Producer)
                })?;
            }
            Body::TextFinished(TextFinished { message_id, content: Some(_), .. })
                if event.subagent_run_id.is_none() && is_divided(builder, message_id) =>
            {
                builder.atomically(|builder| finish_divided(event, builder))?;
            }
            _ => builder.event(event, EventOrigin::Producer)?,
        },
        None => builder.foreign(whole, frame.name)?,
    }
    Ok(())
}

/// Returns true for a text that a tool call, a thought or a step has ended or divided.
fn is_divided(builder: &RecordBuilder<'_>, id: &str) -> bool {
    builder.state.text_id(id) != id || (builder.state.is_known(id) && !builder.is_open_text(id))
}

/// Adds the end of such a text: its whole repeats or continues the pieces.
fn finish_divided(mut event: Event, builder: &mut RecordBuilder<'_>) -> Result<(), Refusal> {
    let Body::TextFinished(finished) = &mut event.body else { return Ok(()) };
    if let Some(whole) = finished.content.take() {
        match builder.named_text(&finished.message_id, &whole, EventOrigin::Producer)? {
            Some((id, content)) => (finished.message_id, finished.content) = (id, content),
            None => finished.content = Some(whole),
        }
    }
    builder.event(event, EventOrigin::Producer)
}

/// Writes an event with its envelope.
pub(super) fn write(out: &mut Vec<u8>, record: &Record, ids: &Ids, event: &Event) {
    write_with(out, record, ids, |object| event.write(object));
}

fn write_with(out: &mut Vec<u8>, record: &Record, ids: &Ids, payload: impl FnOnce(&mut ObjectWriter<'_>)) {
    let mut object = ObjectWriter::begin(out);
    object.u64("seq", record.seq);
    let at = object.key("at");
    at.push(b'"');
    record.at.write(at);
    at.push(b'"');
    object.str("thread_id", &ids.thread);
    object.str("run_id", &ids.run);
    payload(&mut object);
    object.end();
}

/// Returns the original frame of an event that this version does not know. A frame of a known type that was refused
/// stays `foreign`.
fn as_it_came(event: &Event) -> Option<(Object<'_>, Option<&str>)> {
    let Body::Foreign(foreign) = &event.body else { return None };
    let frame = Object::of_json(&foreign.frame).filter(|_| foreign.dialect == "runwire")?;
    let is_known = frame.get_str("type").is_none_or(|kind| Body::TYPES.contains(&&*kind));
    let is_plain = event.subagent_run_id.is_none() && event.extra.is_empty();
    (is_plain && !is_known).then_some((frame, foreign.name.as_deref()))
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Encoder {}

impl Encode for Encoder {
    fn event(&mut self, context: &EncodeContext<'_>, out: &mut Frames) {
        let Some((frame, name)) = as_it_came(context.event()) else {
            context.write_native(out.begin());
            return out.end(None);
        };
        write_with(out.begin(), context.record, context.ids, |object| {
            for (name, raw) in frame.fields() {
                if !matches!(name, "seq" | "at" | "thread_id" | "run_id") {
                    object.raw(name, raw.get());
                }
            }
        });
        out.end(name.map(|name| Cow::Owned(name.to_owned())));
    }

    fn knows_subagents(&self) -> bool {
        true
    }

    fn write_slot(&mut self, context: &EncodeContext<'_>, out: &mut Frames) {
        self.event(context, out);
    }

    fn shows_implied(&self, _context: &EncodeContext<'_>) -> bool {
        true
    }
}
