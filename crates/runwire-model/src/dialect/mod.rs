//! The dialects: each a protocol's vocabulary and envelope, translated to the canonical events and back.
//!
//! A dialect is one folder that reads like its document, and one line of the registry. Shared code is here and in three
//! neighbours: [`record_builder`](RecordBuilder) (the record of a decoded frame), `shown_state` (what a reader has been
//! shown of a run) and `frames` (the output of encoders).

#[macro_use]
mod registry;
mod decode;
mod detect;
pub mod document;
mod encode;
mod frames;
mod record_builder;
mod shown_state;
pub mod start;

/// Declares the module of each line of the registry.
macro_rules! declare_modules {
    ($($(#[$doc:meta])* $variant:ident => $module:ident,)*) => {
        $(mod $module;)*
    };
}
with_dialects!(declare_modules);

pub use decode::{DecodeError, Decoder, DecoderState, Envelope, OpenedFrame};
pub use detect::{AmbiguousDialect, detect};
pub use encode::{Encoder, EncoderOptions, FRAME_BITS, Fidelity, Slots};
pub use frames::Frames;
pub use record_builder::RecordBuilder;
pub use registry::{Dialect, Ending};

use crate::event::ErrorInfo;
use crate::json::{Json, ObjectWriter};
use crate::time::Timestamp;

/// Extension field of `run.started`: the `session_id` of the run, where it is not the thread's id.
pub const SESSION_ID: &str = "own.session_id";

/// Returns the time that a frame shows: the producer's own in its own dialect, or that of the frame before where it
/// cannot be read, else when it was written.
fn shown_time(context: &encode::EncodeContext<'_>) -> Timestamp {
    context.shown.source_time.filter(|_| context.same_dialect).unwrap_or(context.record.at)
}

/// Returns true for a custom value of an agent that has the form of an extension slot.
fn looks_like_slot(value: &Json) -> bool {
    crate::json::Object::of_json(value).is_some_and(|object| object.has("runwire"))
}

/// Returns true for messages that front ends accept.
pub(crate) fn are_messages(messages: &Json) -> bool {
    let Ok(serde_json::Value::Array(items)) = messages.to_value() else { return false };
    items.iter().all(|message| {
        let text = |key: &str| message[key].is_string();
        let content = &message["content"];
        let fits = match message["role"].as_str() {
            Some("developer" | "system" | "reasoning") => content.is_string(),
            Some("user") => content.is_string() || content.is_array(),
            Some("assistant") => content.is_string() || message.get("content").is_none(),
            Some("tool") => (content.is_string() || content.is_array()) && text("toolCallId"),
            Some("activity") => content.is_object() && text("activityType"),
            _ => false,
        };
        fits && text("id")
    })
}

/// Schema of an approval in dialects that have only forms.
const APPROVAL_SCHEMA: &str =
    r#"{"type":"object","required":["approved"],"properties":{"approved":{"type":"boolean"}}}"#;

/// Returns true for a schema with a boolean `approved`, which makes a form an approval.
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
