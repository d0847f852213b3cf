//! Error responses as frames of a dialect, for front ends that read only frames.
//!
//! The HTTP status is that of the problem, and the frame contains the whole problem.

use std::time::{SystemTime, UNIX_EPOCH};

use axum::response::{IntoResponse, Response};
use http::header::CONTENT_TYPE;
use runwire_model::Timestamp;
use runwire_model::framing::{Framing, write_frame};
use runwire_model::json::{Json, ObjectWriter};

use crate::problem::{Problem, text_of};

/// Responds with Agio's `error` event.
pub(super) fn agio(problem: Problem) -> Response {
    respond(&problem, None, |object| {
        object.str("type", "error");
        let run = problem.member("run_id");
        object.str("run_id", &run.map(Json::text_form).unwrap_or_default());
        object.str("timestamp", &now().to_string());
        let mut data = object.object("data");
        data.str("error", problem.detail());
        data.str("error_type", problem.code().as_str());
        data.end();
        let mut metadata = object.object("metadata");
        metadata.raw("problem", &problem.to_text());
        metadata.end();
    })
}

/// Responds with StreamingEngine's `error` event.
pub(super) fn streaming_engine(problem: Problem) -> Response {
    respond(&problem, None, |object| {
        object.str("type", "error");
        let mut data = object.object("data");
        data.str("error_type", if problem.status().is_server_error() { "system" } else { "validation" });
        data.str("message", problem.detail());
        data.raw("details", &problem.to_text());
        data.bool("recoverable", false);
        data.end();
        let mut metadata = object.object("metadata");
        metadata.u64("timestamp", now().0);
        metadata.u64("sequence", 0);
        metadata.end();
    })
}

/// Responds with EasyFlow's `system/error`, which ends a stream.
pub(super) fn easyflow(problem: Problem, conversation: &str) -> Response {
    respond(&problem, Some("error"), |object| easyflow_error(object, &problem, conversation))
}

/// Writes the same frame for a socket.
pub(super) fn easyflow_frame(problem: Problem, conversation: &str) -> String {
    text_of(|object| easyflow_error(object, &problem, conversation))
}

fn easyflow_error(object: &mut ObjectWriter<'_>, problem: &Problem, conversation: &str) {
    object.str("protocol", "easyflow-chat");
    object.str("version", "1.1");
    object.str("domain", "system");
    object.str("type", "error");
    object.str("conversation_id", conversation);
    let mut payload = object.object("payload");
    payload.str("code", problem.code().as_str());
    payload.str("message", problem.detail());
    payload.bool("retryable", problem.status().is_server_error());
    payload.raw("detail", &problem.to_text());
    payload.end();
}

fn respond(problem: &Problem, name: Option<&str>, frame: impl FnOnce(&mut ObjectWriter<'_>)) -> Response {
    let mut body = Vec::new();
    write_frame(Framing::Sse, &mut body, None, name, text_of(frame).as_bytes());
    let mut response = (problem.status(), [(CONTENT_TYPE, "text/event-stream")], body).into_response();
    crate::problem::set_retry_after(&mut response);
    response
}

fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}
