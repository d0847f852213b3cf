//! The façade of social-app: the events and history of a thread (§1 and §2 of its document).

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use http::request::Parts;
use runwire_model::dialect::Dialect;

use crate::AppState;
use crate::feed::{FeedCursor, StreamFormat};
use crate::ids::ThreadParam;
use crate::limits;
use crate::openapi::params::{HistoryPage, LastEventId, SocialAppThread};
use crate::openapi::schemas::SocialAppHistory;
use crate::problem::Problem;
use crate::query::Query;
use crate::read::{ReadParams, ResponseFormat, after_of, last_event_id, page, respond};

fn read_params(state: &AppState, format: ResponseFormat, after: Option<FeedCursor>) -> ReadParams {
    let (form, follow) =
        (Some(state.config.facades.form(Dialect::SocialApp)), format != ResponseFormat::Page);
    ReadParams { format, form, after, follow, limit: None, compact: false, attach: false }
}

/// Returns the read parameters of an events request.
pub(crate) fn events_params(state: &AppState, parts: &Parts) -> Result<ReadParams, Problem> {
    Ok(read_params(state, ResponseFormat::Stream(StreamFormat::Sse), last_event_id(&parts.headers)?))
}

/// Follows a thread as social-app's front end does.
#[utoipa::path(
    get, path = "/api/v1/agent/runs/{thread_id}/events", operation_id = "socialAppEvents", tag = "façades",
    params(SocialAppThread, LastEventId),
    responses((status = 200, description = "The frames, live.", body = String, content_type = "text/event-stream")),
)]
pub(crate) async fn events(
    State(state): State<Arc<AppState>>,
    ThreadParam(thread): ThreadParam,
    parts: Parts,
) -> Result<Response, Problem> {
    let params = events_params(&state, &parts)?;
    let reader = params.read_thread(&state, &thread).await?;
    respond(state, params, Some(reader)).await
}

/// Reads a thread's history as social-app's front end does.
#[utoipa::path(
    get, path = "/api/v1/agent/runs/{thread_id}/history", operation_id = "socialAppHistory", tag = "façades",
    params(SocialAppThread, HistoryPage),
    responses((status = 200, description = "The history.", body = inline(SocialAppHistory))),
)]
pub(crate) async fn history(
    State(state): State<Arc<AppState>>,
    ThreadParam(thread): ThreadParam,
    parts: Parts,
) -> Result<Response, Problem> {
    let mut query = Query::parse(parts.uri.query());
    let after = query.take("after")?.map(|after| after_of(&after)).transpose()?;
    let limit = query.number("limit", 1..=limits::PAGE_FRAMES)?.unwrap_or(limits::PAGE_FRAMES_DEFAULT);
    let reader = read_params(&state, ResponseFormat::Page, after).read_thread(&state, &thread).await?;
    let page = page(reader, limit).await?;
    let mut body =
        format!(r#"{{"thread_id":{},"events":["#, serde_json::Value::from(&*thread.id)).into_bytes();
    body.extend_from_slice(&page.frames);
    body.extend_from_slice(br#"],"next":"#);
    page.write_next(&mut body);
    body.push(b'}');
    Ok(page.respond(body))
}
