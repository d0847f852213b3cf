//! The dialects: each a protocol's vocabulary and envelope, translated to the canonical events and back.
//!
//! A dialect is one file that reads like its document, decoder and encoder side by side. What all of them
//! share stands here and in three neighbours: [`weave`](Weave) (which message, call or step a frame means),
//! `track` (what a reader has been shown so far) and `frames` (where encoders write to).

mod ag_ui;
mod agio;
mod decode;
mod detect;
mod easyflow_chat;
mod encode;
mod frames;
mod loom;
mod loom_export;
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
pub use weave::Weave;

use serde::{Deserialize, Serialize};

use crate::event::ErrorInfo;
use crate::json::{Json, ObjectWriter};
use crate::time::Timestamp;

/// A protocol that Runwire speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Dialect {
    /// The canonical model as JSON.
    Runwire,
    /// Loom's streaming output, type and payload.
    Loom,
    /// Loom's single-key export form.
    LoomExport,
    /// StreamingEngine's events.
    StreamingEngine,
    /// Agio's events.
    Agio,
    /// The official AG-UI protocol, version 1.0.
    AgUi,
    /// social-app's profile of AG-UI.
    SocialApp,
    /// EasyFlow's chat protocol, version 1.1.
    EasyflowChat,
    /// The answer's text alone; written, never read.
    Text,
}

impl Dialect {
    /// Every dialect.
    pub const ALL: [Self; 9] = [
        Self::Runwire,
        Self::Loom,
        Self::LoomExport,
        Self::StreamingEngine,
        Self::Agio,
        Self::AgUi,
        Self::SocialApp,
        Self::EasyflowChat,
        Self::Text,
    ];

    /// Every dialect that can be read.
    pub const READABLE: [Self; 8] = [
        Self::Runwire,
        Self::Loom,
        Self::LoomExport,
        Self::StreamingEngine,
        Self::Agio,
        Self::AgUi,
        Self::SocialApp,
        Self::EasyflowChat,
    ];

    /// Tells the name on the command line and in requests.
    pub fn name(self) -> &'static str {
        match self {
            Self::Runwire => "runwire",
            Self::Loom => "loom",
            Self::LoomExport => "loom-export",
            Self::StreamingEngine => "streaming-engine",
            Self::Agio => "agio",
            Self::AgUi => "ag-ui",
            Self::SocialApp => "social-app",
            Self::EasyflowChat => "easyflow-chat",
            Self::Text => "text",
        }
    }

    /// Finds the dialect of a name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|dialect| dialect.name() == name)
    }

    /// Tells whether every frame names its run, or a session of its own, so that runs may lie side by side in one
    /// stream.
    pub fn names_its_run(self) -> bool {
        matches!(self, Self::Runwire | Self::Loom | Self::Agio | Self::StreamingEngine | Self::SocialApp)
    }

    /// Tells whether every frame names its run, so that runs of one session may lie side by side.
    ///
    /// Elsewhere only its first frame names a run, so that a second one begins where the first is over.
    pub fn names_run_in_every_frame(self) -> bool {
        self.names_its_run() && self != Self::Loom
    }

    /// Tells whether the frames of a producer name their session or run, so that one stream may hold several
    /// sessions.
    pub fn names_its_session(self) -> bool {
        self.names_its_run() || self == Self::EasyflowChat
    }
}

/// Tells the time that a frame shows: the producer's own in its own dialect, else when it was written.
fn shown_time(turn: &encode::Turn<'_>) -> Timestamp {
    turn.record.source_time.filter(|_| turn.own).unwrap_or(turn.record.at)
}

/// Tells whether a value of the agent's own has the form of an extension slot.
fn looks_like_slot(value: &Json) -> bool {
    crate::json::Object::of_json(value).is_some_and(|object| object.has("runwire"))
}

/// What an approval asks for where the dialect has only forms.
const APPROVAL_SCHEMA: &str =
    r#"{"type":"object","required":["approved"],"properties":{"approved":{"type":"boolean"}}}"#;

/// Tells whether a schema asks for a boolean `approved`, which makes the question an approval.
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

impl std::fmt::Display for Dialect {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}
