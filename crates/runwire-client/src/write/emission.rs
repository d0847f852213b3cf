//! The argument of one `emit_*` call, and its encoding as a frame of the `streaming-engine` dialect.

use runwire_model::event::{Body, Event, Summary};
use runwire_model::json::{Object, ObjectWriter};
use runwire_model::{Json, limits};

use super::enums::{DataType, ErrorType, Format, SessionStatus, Stage};
use super::value::ToolEnd;
use super::{EmitError, ToolStatus};

/// Frame type of slots, which carry events that the document has no frame for.
const SLOT: &str = "runwire";

/// The event of one frame.
#[derive(Debug)]
pub(super) enum Emission {
    SessionStart {
        session_id: String,
    },
    Thinking {
        content: String,
        stage: Option<Stage>,
    },
    ToolCallStart {
        tool_id: String,
        tool_name: String,
        description: Option<String>,
        arguments: Json,
    },
    ToolCallProgress {
        tool_id: String,
        progress: f64,
        message: String,
    },
    ToolCallEnd {
        tool_id: String,
        end: ToolEnd,
    },
    Content {
        content: String,
        format: Format,
        is_complete: bool,
    },
    Data {
        data_type: DataType,
        data: Json,
        metadata: Option<Json>,
    },
    Error {
        error_type: ErrorType,
        message: String,
        details: Option<Json>,
        recoverable: bool,
    },
    SessionEnd {
        status: SessionStatus,
        summary: Option<Summary>,
    },
    /// A canonical event that the document has no frame for.
    Event(Box<Event>),
}

impl Emission {
    /// Returns the frame's type for logs; of a slot, the event's type.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Event(event) => event.body.type_name(),
            _ => self.frame_type(),
        }
    }

    fn frame_type(&self) -> &'static str {
        match self {
            Self::SessionStart { .. } => "session_start",
            Self::Thinking { .. } => "thinking",
            Self::ToolCallStart { .. } => "tool_call_start",
            Self::ToolCallProgress { .. } => "tool_call_progress",
            Self::ToolCallEnd { .. } => "tool_call_end",
            Self::Content { .. } => "content",
            Self::Data { .. } => "data",
            Self::Error { .. } => "error",
            Self::SessionEnd { .. } => "session_end",
            Self::Event(_) => SLOT,
        }
    }

    /// Returns true if nothing may follow.
    pub(super) fn ends_session(&self) -> bool {
        match self {
            Self::SessionEnd { .. } => true,
            Self::Event(event) => event.body.is_terminal(),
            _ => false,
        }
    }

    /// Checks the fields alone, without the run's state.
    pub(super) fn check_fields(&self) -> Result<(), EmitError> {
        match self {
            Self::SessionStart { session_id } => check_path_id("session_id", session_id),
            Self::ToolCallStart { tool_id, tool_name, arguments, .. } => {
                check_id("tool_id", tool_id)?;
                check_id("tool_name", tool_name)?;
                check_object("arguments", arguments)
            }
            Self::ToolCallProgress { tool_id, progress, .. } => {
                check_id("tool_id", tool_id)?;
                let within = (0.0..=100.0).contains(progress);
                within.then_some(()).ok_or_else(|| {
                    EmitError::field("progress", format!("must be from 0 to 100, and is {progress}"))
                })
            }
            Self::ToolCallEnd { tool_id, end } => {
                check_id("tool_id", tool_id)?;
                check_duration("duration_ms", end.duration_ms)
            }
            Self::SessionEnd { summary, .. } => check_summary(summary.as_ref()),
            Self::Event(event) => check_event(event),
            _ => Ok(()),
        }
    }

    /// Encodes the frame with the document's metadata.
    pub(super) fn write(&self, out: &mut Vec<u8>, request_id: &str, timestamp: u64, sequence: u64) {
        let mut frame = ObjectWriter::begin(out);
        frame.str("type", self.frame_type());
        let mut data = frame.object("data");
        self.write_data(&mut data, request_id);
        data.end();
        let mut metadata = frame.object("metadata");
        metadata.str("request_id", request_id);
        metadata.u64("timestamp", timestamp);
        metadata.u64("sequence", sequence);
        if let Self::ToolCallEnd { end: ToolEnd { duration_ms: Some(duration), .. }, .. } = self {
            metadata.f64("duration_ms", *duration);
        }
        metadata.end();
        frame.end();
    }

    fn write_data(&self, data: &mut ObjectWriter<'_>, request_id: &str) {
        match self {
            Self::SessionStart { session_id } => {
                data.str("session_id", session_id);
                data.str("request_id", request_id);
            }
            Self::Thinking { content, stage } => {
                data.str("content", content);
                data.opt_str("stage", stage.map(Stage::as_str));
            }
            Self::ToolCallStart { tool_id, tool_name, description, arguments } => {
                data.str("tool_id", tool_id);
                data.str("tool_name", tool_name);
                data.opt_str("description", description.as_deref());
                data.json("arguments", arguments);
            }
            Self::ToolCallProgress { tool_id, progress, message } => {
                data.str("tool_id", tool_id);
                data.f64("progress", *progress);
                data.str("message", message);
            }
            Self::ToolCallEnd { tool_id, end } => {
                data.str("tool_id", tool_id);
                data.str("status", end.status.as_str());
                data.opt_json("result", end.result.as_ref());
                if let (ToolStatus::Failed, Some((message, code))) = (end.status, &end.error) {
                    let mut error = data.object("error");
                    error.str("message", message);
                    error.opt_str("code", code.as_deref());
                    error.end();
                }
            }
            Self::Content { content, format, is_complete } => {
                data.str("content", content);
                data.str("format", format.as_str());
                data.bool("is_complete", *is_complete);
            }
            Self::Data { data_type, data: value, metadata } => {
                data.str("data_type", data_type.as_str());
                data.json("data", value);
                data.opt_json("metadata", metadata.as_ref());
            }
            Self::Error { error_type, message, details, recoverable } => {
                data.str("error_type", error_type.as_str());
                data.str("message", message);
                data.opt_json("details", details.as_ref());
                data.bool("recoverable", *recoverable);
            }
            Self::SessionEnd { status, summary } => {
                data.str("status", status.as_str());
                if let Some(summary) = summary {
                    runwire_model::json::Field::write(summary, "summary", data);
                }
            }
            Self::Event(event) => event.write(data),
        }
    }
}

/// Checks an id that is only used in frames.
pub(super) fn check_id(field: &str, id: &str) -> Result<(), EmitError> {
    match id.len() {
        0 => Err(EmitError::field(field, "must not be empty")),
        length if length > limits::ID_BYTES => Err(EmitError::field(
            field,
            format!("has {length} bytes; at most {} are allowed", limits::ID_BYTES),
        )),
        _ => Ok(()),
    }
}

/// Limits the bytes of an id in a URL path.
const PATH_ID_BYTES: usize = 256;

/// Checks an id that is used in URL paths: of a thread, a run, a producer.
pub(super) fn check_path_id(field: &str, id: &str) -> Result<(), EmitError> {
    let within = (1..=PATH_ID_BYTES).contains(&id.len()) && !id.chars().any(char::is_control);
    within.then_some(()).ok_or_else(|| {
        EmitError::field(field, format!("must be 1 to {PATH_ID_BYTES} bytes without control characters"))
    })
}

fn check_object(field: &str, json: &Json) -> Result<(), EmitError> {
    json.is_object().then_some(()).ok_or_else(|| EmitError::field(field, "must be an object"))
}

fn check_duration(field: &str, duration: Option<f64>) -> Result<(), EmitError> {
    match duration {
        Some(duration) if !duration.is_finite() || duration < 0.0 => {
            Err(EmitError::field(field, format!("must be a number from 0 on, and is {duration}")))
        }
        _ => Ok(()),
    }
}

fn check_summary(summary: Option<&Summary>) -> Result<(), EmitError> {
    let Some(summary) = summary else { return Ok(()) };
    check_duration("summary.duration_ms", summary.duration_ms)?;
    check_duration("summary.response_latency_ms", summary.response_latency_ms)
}

/// Checks that an event can be decoded again: numbers must be finite, ids within limits.
fn check_event(event: &Event) -> Result<(), EmitError> {
    match &event.body {
        Body::ToolProgress(progress) => check_duration("progress", progress.progress)?,
        Body::ToolFinished(finished) => check_duration("duration_ms", finished.duration_ms)?,
        Body::RunCompleted(completed) => check_summary(completed.summary.as_ref())?,
        Body::RunFailed(failed) => check_summary(failed.summary.as_ref())?,
        Body::RunCancelled(cancelled) => check_summary(cancelled.summary.as_ref())?,
        _ => {}
    }
    let written = event.to_json();
    let Some(mut object) = Object::of_json(&written) else { return Ok(()) };
    object.take("type");
    let read = Event::read(event.body.type_name(), object);
    read.map(drop).map_err(|error| EmitError::Field { field: error.field, problem: error.problem })
}
