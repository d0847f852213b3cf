//! The dialects: each a protocol's vocabulary and envelope, translated to the canonical events and back.
//!
//! A dialect is one folder that reads like its document, and one line of the registry. What all of them share stands
//! here and in three neighbours: [`weave`](Weave) (which message, call or step a frame means), `track` (what a reader
//! has been shown so far) and `frames` (where encoders write to).

mod ag_ui;
mod agio;
mod decode;
mod detect;
mod easyflow_chat;
mod encode;
mod frames;
mod loom;
mod loom_export;
mod registry;
mod runwire;
mod social_app;
mod streaming_engine;
mod text;
mod track;
mod weave;

pub(crate) use ag_ui::{Mirror, are_messages};
pub use decode::{DecodeError, Decoder, DecoderState, Envelope, Opened};
pub use detect::{Ambiguous, detect};
pub use encode::{Encoder, EncoderOptions, FRAME_BITS, Fidelity, Slots};
pub use frames::Frames;
pub use loom::SESSION_ID;
pub use registry::{AgentStart, Dialect, Ending, StartRequest};
pub use weave::Weave;

use crate::event::ErrorInfo;
use crate::json::{Json, ObjectWriter};
use crate::time::Timestamp;

/// Returns the time that a frame shows: the producer's own in its own dialect, else when it was written.
fn shown_time(turn: &encode::Turn<'_>) -> Timestamp {
    turn.record.source_time.filter(|_| turn.own).unwrap_or(turn.record.at)
}

/// Returns whether a value of the agent's own has the form of an extension slot.
fn looks_like_slot(value: &Json) -> bool {
    crate::json::Object::of_json(value).is_some_and(|object| object.has("runwire"))
}

/// What an approval asks for where the dialect has only forms.
const APPROVAL_SCHEMA: &str =
    r#"{"type":"object","required":["approved"],"properties":{"approved":{"type":"boolean"}}}"#;

/// Returns whether a schema asks for a boolean `approved`, which makes the question an approval.
fn asks_for_approval(schema: &Json) -> bool {
    use crate::json::Object;
    let properties = Object::of_json(schema).and_then(|schema| Object::of(schema.get("properties")?));
    let approved = properties.and_then(|properties| Object::of(properties.get("approved")?));
    approved.is_some_and(|approved| approved.get_str("type").is_some_and(|kind| kind == "boolean"))
}

/// Copies the fields that are left in an object.
fn fields_of(object: &crate::json::Object<'_>) -> Json {
    let mut out = Vec::new();
    let mut writer = ObjectWriter::begin(&mut out);
    for (name, raw) in object.fields() {
        writer.json(name, &Json::from_raw(raw));
    }
    writer.end();
    Json::from_written(out)
}

/// Writes an error as an object.
fn write_error(object: &mut ObjectWriter<'_>, key: &str, error: &ErrorInfo) {
    crate::json::Field::write(error, key, object);
}
