//! Error responses as frames of a dialect, for front ends that read only frames.
//!
//! The HTTP status is that of the problem, and the frame contains the whole problem.

use std::time::{SystemTime, UNIX_EPOCH};

use axum::response::{IntoResponse, Response};
use http::header::CONTENT_TYPE;
use runwire_model::Timestamp;
use runwire_model::framing::{Framing, write_frame};
use serde_json::{Map, Value, json};

use crate::problem::Problem;

/// Responds with Agio's `error` event.
pub(super) fn agio(problem: Problem) -> Response {
    respond(problem, None, |members, message| {
        json!({
            "type": "error",
            "run_id": members.get("run_id").cloned().unwrap_or_else(|| "".into()),
            "timestamp": now().to_string(),
            "data": {"error": message, "error_type": members["code"]},
            "metadata": {"problem": members},
        })
    })
}

/// Responds with StreamingEngine's `error` event.
pub(super) fn streaming_engine(problem: Problem) -> Response {
    respond(problem, None, |members, message| {
        let is_ours = members["status"].as_u64() >= Some(500);
        json!({
            "type": "error",
            "data": {
                "error_type": if is_ours { "system" } else { "validation" },
                "message": message,
                "details": members,
                "recoverable": false,
            },
            "metadata": {"timestamp": now().0, "sequence": 0},
        })
    })
}

/// Responds with EasyFlow's `system/error`, which ends a stream.
pub(super) fn easyflow(problem: Problem, conversation: &str) -> Response {
    respond(problem, Some("error"), |members, message| easyflow_error(members, message, conversation))
}

/// Writes the same frame for a socket.
pub(super) fn easyflow_frame(problem: Problem, conversation: &str) -> String {
    let members = problem.into_members();
    easyflow_error(&members, &members["detail"], conversation).to_string()
}

fn easyflow_error(members: &Map<String, Value>, message: &Value, conversation: &str) -> Value {
    json!({
        "protocol": "easyflow-chat",
        "version": "1.1",
        "domain": "system",
        "type": "error",
        "conversation_id": conversation,
        "payload": {
            "code": members["code"],
            "message": message,
            "retryable": members["status"].as_u64() >= Some(500),
            "detail": members,
        },
    })
}

fn respond(
    problem: Problem,
    name: Option<&str>,
    frame: impl FnOnce(&Map<String, Value>, &Value) -> Value,
) -> Response {
    let status = problem.status();
    let members = problem.into_members();
    let frame = frame(&members, &members["detail"]).to_string();
    let mut body = Vec::new();
    write_frame(Framing::Sse, &mut body, None, name, frame.as_bytes());
    let mut response = (status, [(CONTENT_TYPE, "text/event-stream")], body).into_response();
    crate::problem::set_retry_after(&mut response);
    response
}

fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}
