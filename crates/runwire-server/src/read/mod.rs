//! Read requests: live or replayed, in any dialect, resumable from any cursor.

mod accept;
mod page;
mod params;
pub(crate) mod raw_http;
mod stream;

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, StatusCode};

pub(crate) use accept::ResponseFormat;
pub(crate) use page::page;
pub(crate) use params::{ReadParams, after_of, cursor_of};
pub(crate) use stream::{FrameRewriter, rewritten_stream, stream};

use crate::AppState;
use crate::feed::{FeedCursor, FeedReader, Next};
use crate::ids::{RunParam, ThreadParam};
use crate::openapi::FrameResponses;
use crate::openapi::params::{AttachQuery, ReadQuery};
use crate::problem::Problem;

/// Reads a run's events in any dialect, live or replayed.
#[utoipa::path(
    get, path = "/v1/runs/{run}/events", operation_id = "readRun", tag = "reading",
    params(RunParam, ReadQuery, AttachQuery),
    responses(FrameResponses, (status = 204, description = "The run has ended and nothing follows the cursor.")),
)]
pub(crate) async fn run(
    State(state): State<Arc<AppState>>,
    RunParam(run): RunParam,
    parts: Parts,
) -> Result<Response, Problem> {
    let params = ReadParams::of_request(&parts)?;
    let reader = params.read_run(&state, &run).await?;
    respond(state, params, reader).await
}

/// Reads a thread's events in any dialect, live or replayed.
#[utoipa::path(
    get,
    path = "/v1/threads/{thread}/events",
    operation_id = "readThread",
    tag = "reading",
    params(ThreadParam, ReadQuery),
    responses(FrameResponses)
)]
pub(crate) async fn thread(
    State(state): State<Arc<AppState>>,
    ThreadParam(thread): ThreadParam,
    parts: Parts,
) -> Result<Response, Problem> {
    let params = ReadParams::of_request(&parts)?;
    let reader = params.read_thread(&state, &thread).await?;
    respond(state, params, Some(reader)).await
}

/// Responds with a page or a stream; no reader means that there is nothing more to read.
pub(crate) async fn respond(
    state: Arc<AppState>,
    params: ReadParams,
    reader: Option<FeedReader>,
) -> Result<Response, Problem> {
    match (params.format, reader) {
        (ResponseFormat::Page, reader) => {
            let page = match reader {
                Some(reader) => page(reader, params.limit_or_default()).await?,
                None => page::EncodedPage::default(),
            };
            let body = page.body();
            Ok(page.respond(body))
        }
        (ResponseFormat::Stream(_), None) => Ok(StatusCode::NO_CONTENT.into_response()),
        (ResponseFormat::Stream(format), Some(reader)) => {
            Ok(stream(&state, format, reader.limit(params.limit)))
        }
    }
}

/// Responds with a JSON body.
pub(crate) fn json(body: impl Into<Body>) -> Response {
    let mut response = body.into().into_response();
    let headers = response.headers_mut();
    headers.insert(http::header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(http::header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// Returns the next frames, or none if the reader ends first.
pub(crate) async fn next_unread(reader: &mut FeedReader) -> Result<Option<Next>, Problem> {
    loop {
        match reader.next().await? {
            Next::Ended => return Ok(None),
            Next::CaughtUp => {}
            frames @ Next::Frames { .. } => return Ok(Some(frames)),
        }
    }
}

/// Parses `Last-Event-ID`; an empty value counts as none.
pub(crate) fn last_event_id(headers: &HeaderMap) -> Result<Option<FeedCursor>, Problem> {
    let Some(value) = headers.get("last-event-id").filter(|value| !value.is_empty()) else { return Ok(None) };
    cursor_of("Last-Event-ID", value.to_str().unwrap_or("bytes that are no text")).map(Some)
}
