//! Schemas of what has no type of this crate: values of other crates, frames, and the open bodies of façades.

use std::borrow::Cow;

use runwire_log::OutboxKind;
use runwire_model::ErrorCode;
use runwire_model::event::{Decision, InteractionKind};
use runwire_model::run::Status;
use serde_json::{Value, json};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use crate::limits;
use crate::resources::interactions::HUMAN_DECISIONS;

/// Makes a schema of JSON.
pub(super) fn schema(json: Value) -> RefOr<Schema> {
    serde_json::from_value(json).unwrap_or_else(|_| Schema::default().into())
}

/// Declares types that stand for a schema; each is a component of its name.
macro_rules! schemas {
    ($($(#[doc = $doc:literal])* $name:ident = $schema:expr;)*) => {$(
        $(#[doc = $doc])*
        pub(crate) struct $name;

        impl PartialSchema for $name {
            fn schema() -> RefOr<Schema> {
                schema($schema)
            }
        }

        impl ToSchema for $name {
            fn name() -> Cow<'static, str> {
                stringify!($name).trim_end_matches("Schema").into()
            }
        }
    )*};
}

fn count() -> Value {
    json!({"type": "integer", "minimum": 0})
}

fn text() -> Value {
    json!({"type": "string"})
}

/// Any JSON. utoipa reads only schemas that name their types; an empty list of them is not shown.
fn any() -> Value {
    json!({"type": []})
}

fn described(mut schema: Value, description: &str) -> Value {
    schema["description"] = description.into();
    schema
}

schemas! {
    /// An id.
    IdSchema = json!({
        "type": "string", "minLength": 1, "maxLength": limits::ID_BYTES,
        "description": "At most 256 bytes of UTF-8, without control characters.",
    });
    /// How far a run is.
    StatusSchema = json!({"type": "string", "enum": Status::ALL.map(Status::as_str)});
    /// A decision about an interaction.
    DecisionSchema = json!({
        "type": "string", "enum": Decision::ALL.iter().map(|decision| decision.as_str()).collect::<Vec<_>>(),
        "description": "A form is `submitted` or `cancelled`, an approval `approved`, `rejected` or `cancelled`; `expired` is nobody's answer.",
    });
    /// A decision that people can make.
    HumanDecisionSchema = json!({"type": "string", "enum": HUMAN_DECISIONS.map(Decision::as_str)});
    /// What an interaction asks for.
    InteractionKindSchema = json!({
        "type": "string", "enum": InteractionKind::ALL.iter().map(|kind| kind.as_str()).collect::<Vec<_>>(),
    });
    /// How an agent is run.
    AgentKindSchema = json!({"type": "string", "enum": ["http", "exec", "demo"]});
    /// Whether a webhook is told anything.
    WebhookStateSchema = json!({"type": "string", "enum": ["active", "gone"]});
    /// What a live server says.
    LivenessSchema = json!({"type": "string", "enum": ["ok"]});
    /// A problem.
    ProblemSchema = json!({
        "type": "object",
        "properties": {
            "type": {"type": "string", "format": "uri-reference"},
            "title": text(),
            "status": {"type": "integer"},
            "code": {
                "type": "string", "examples": ErrorCode::ALL.iter().map(|code| code.as_str()).collect::<Vec<_>>(),
                "description": "A stable code. A newer server may have others.",
            },
            "detail": text(),
            "hint": described(text(), "What to do."),
            "line": count(),
            "field": text(),
            "parameter": text(),
            "header": text(),
            "expected": described(any(), "What would have been right."),
            "oldest": count(),
            "epoch": count(),
            "run_id": text(),
            "thread_id": text(),
            "session": described(text(), "The session of the frames before the one that was refused."),
            "accepted": count(),
            "duplicates": count(),
            "last_seq": count(),
        },
        "required": ["type", "title", "status", "code", "detail", "hint"],
    });
    /// Why a run failed.
    RunErrorSchema = json!({
        "type": "object",
        "properties": {
            "code": text(),
            "message": text(),
            "details": described(any(), "What else is known, such as `exit_code` and `stderr` of a program. Left out in lists, and where it is longer than 32 KiB."),
        },
        "required": ["message"],
    });
    /// Violations of a dialect's document by the frames of a run.
    WarningsSchema = json!({
        "type": "object",
        "description": "What the frames of a run break of their dialect's document, where they were written all the same; left out where there is nothing.",
        "properties": {
            "count": {"type": "integer", "minimum": 1, "description": "How many there are in all."},
            "first": {
                "type": "array", "items": {"$ref": "#/components/schemas/Warning"},
                "description": "The first ones, each different one once; empty in lists.",
            },
        },
        "required": ["count", "first"],
    });
    /// A violation of a dialect's document.
    WarningSchema = json!({
        "type": "object",
        "description": "One thing that frames of a run break of their dialect's document.",
        "properties": {
            "seq": {"type": "integer", "minimum": 1, "description": "The first record that has it."},
            "times": {"type": "integer", "minimum": 1, "description": "How often it was found."},
            "dialect": text(),
            "code": described(text(), "The rule that is broken."),
            "field": described(text(), "The field at fault, with dots between the levels."),
            "pointer": described(text(), "The field at fault as a JSON pointer."),
            "section": described(text(), "The section of the dialect's document."),
            "message": described(text(), "What is wrong, and what is expected."),
            "hint": described(text(), "What probably helps."),
        },
        "required": ["seq", "times", "dialect", "code", "message"],
    });
    /// The position of a producer.
    ProducerSchema = json!({
        "type": "object",
        "properties": {
            "epoch": count(),
            "next": described(count(), "The index of the frame to send next."),
            "dialect": text(),
        },
        "required": ["epoch", "next"],
    });
    /// A page of frames.
    FramePageSchema = json!({
        "type": "object",
        "properties": {
            "frames": {"type": "array", "items": {
                "type": "object", "properties": {"cursor": text(), "frame": any()}, "required": ["cursor", "frame"],
            }},
            "next": described(any(), "The cursor to go on from."),
        },
        "required": ["frames", "next"],
    });
    /// What a server depends on.
    DependencySchema = json!({
        "type": "object",
        "description": "Something that a server leans on.",
        "properties": {
            "kind": {"type": "string", "enum": ["sqlite", "postgres", "redis", "store"]},
            "state": {"type": "string", "enum": ["up", "away"]},
            "since": {"type": "string", "format": "date-time", "description": "Since when it is away, where that is known."},
            "reason": described(text(), "Why it is away."),
        },
        "required": ["kind", "state"],
    });
    /// Whether a server can do its work.
    ReadinessSchema = json!({
        "type": "object",
        "description": "Whether a server can do its work, and what it leans on for it.",
        "properties": {
            "ready": {"type": "boolean"},
            "store": {"$ref": "#/components/schemas/Dependency"},
            "tail": {"$ref": "#/components/schemas/Dependency"},
        },
        "required": ["ready", "store"],
    });
    /// Names of a webhook's events.
    WebhookEventSchema = json!({"type": "string", "enum": OutboxKind::ALL.map(OutboxKind::name)});
    /// Frames in lines.
    NdjsonFrames = described(text(), "One frame a line.");
    /// Frames as server-sent events.
    SseFrames = described(text(), "One frame an event.");
    /// One frame, or several in an array.
    JsonFrames = json!({"oneOf": [{"type": "object"}, {"type": "array", "items": {"type": "object"}}]});
    /// The lines of an export.
    ExportedLines = described(text(), "The lines of an export, in their order. What is there already and is the same is passed over.");
    /// A page of social-app's history.
    SocialAppHistory = json!({
        "type": "object",
        "properties": {
            "thread_id": text(),
            "events": {"type": "array", "items": {"type": "object"}},
            "next": described(any(), "The cursor to go on from."),
        },
        "required": ["thread_id", "events", "next"],
    });
    /// A page of Agio's events.
    AgioEventPage = json!({
        "type": "object",
        "properties": {
            "run_id": text(),
            "offset": count(),
            "events": {"type": "array", "items": {"type": "object"}},
            "next_offset": {
                "type": ["integer", "null"], "minimum": 0,
                "description": "Where to go on; null when the run is over and its last event was sent.",
            },
        },
        "required": ["run_id", "offset", "events", "next_offset"],
    });
    /// The body that starts a run as Agio does.
    AgioRequest = json!({
        "type": "object", "properties": {"query": text(), "agent": text(), "thread_id": text(), "run_id": text()},
    });
    /// AG-UI's `RunAgentInput`.
    RunAgentInput = json!({
        "type": "object",
        "properties": {
            "threadId": text(),
            "runId": text(),
            "messages": {"type": "array", "items": {"type": "object"}},
            "state": any(),
            "tools": {"type": "array", "items": {"type": "object"}},
            "context": {"type": "array", "items": {"type": "object"}},
            "forwardedProps": any(),
            "resume": {"type": "array", "items": {
                "type": "object",
                "properties": {
                    "interruptId": text(),
                    "status": {"type": "string", "enum": ["resolved", "cancelled"]},
                    "payload": any(),
                },
                "required": ["interruptId", "status"],
            }},
        },
        "required": ["threadId", "runId"],
    });
    /// The body of StreamingEngine's chat.
    StreamingEngineRequest = json!({
        "type": "object",
        "properties": {"session_id": text(), "content": text(), "agent": text(), "request_id": text()},
        "required": ["content"],
    });
    /// The body of EasyFlow's chat.
    EasyflowRequest = json!({
        "type": "object",
        "properties": {
            "prompt": text(),
            "botId": {"type": ["string", "integer"]},
            "conversationId": {"type": ["string", "integer"]},
        },
    });
    /// The body of EasyFlow's answer to a form.
    EasyflowForm = json!({
        "type": "object",
        "properties": {
            "conversation_id": {"type": ["string", "integer"]},
            "form_id": text(),
            "values": {"type": "object"},
            "decision": {"type": "string", "enum": ["submitted", "cancelled"]},
        },
        "required": ["conversation_id", "form_id"],
    });
}
