//! Reading: live or replayed, in any dialect, resumable from any cursor.

mod accept;
mod ask;
mod page;
pub(crate) mod raw_http;
mod stream;

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, StatusCode};

pub(crate) use accept::Answer;
pub(crate) use ask::{Ask, after_of, cursor_of};
pub(crate) use page::page;
pub(crate) use stream::{Retell, retold, stream};

use crate::AppState;
use crate::feed::{FeedCursor, FeedReader, Next};
use crate::ids::{RunAt, ThreadAt};
use crate::problem::Problem;

pub(crate) fn routes() -> Router<Arc<AppState>> {
    Router::new()
        .route("/v1/runs/{run}/events", get(of_run))
        .route("/v1/threads/{thread}/events", get(of_thread))
}

async fn of_run(
    State(state): State<Arc<AppState>>,
    RunAt(run): RunAt,
    parts: Parts,
) -> Result<Response, Problem> {
    let ask = Ask::of_request(&parts)?;
    let reader = ask.read_run(&state, &run).await?;
    answer(state, ask, reader).await
}

async fn of_thread(
    State(state): State<Arc<AppState>>,
    ThreadAt(thread): ThreadAt,
    parts: Parts,
) -> Result<Response, Problem> {
    let ask = Ask::of_request(&parts)?;
    let reader = ask.read_thread(&state, &thread).await?;
    answer(state, ask, Some(reader)).await
}

/// Answers with a page or a stream; without a reader there is nothing more to read.
pub(crate) async fn answer(
    state: Arc<AppState>,
    ask: Ask,
    reader: Option<FeedReader>,
) -> Result<Response, Problem> {
    match (ask.answer, reader) {
        (Answer::Page, reader) => {
            let page = match reader {
                Some(reader) => page(reader, ask.limit_or_default()).await?,
                None => page::Page::default(),
            };
            Ok(json(page.into_body()))
        }
        (Answer::Stream(_), None) => Ok(StatusCode::NO_CONTENT.into_response()),
        (Answer::Stream(shape), Some(reader)) => Ok(stream(&state, shape, reader.limit(ask.limit))),
    }
}

/// Answers with JSON that is already written.
pub(crate) fn json(body: Vec<u8>) -> Response {
    let mut response = body.into_response();
    let headers = response.headers_mut();
    headers.insert(http::header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(http::header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// Tells whether nothing follows a place in a run that has ended.
pub(crate) async fn is_over(reader: &mut FeedReader) -> Result<Option<Next>, Problem> {
    loop {
        match reader.next().await? {
            Next::Ended => return Ok(None),
            Next::CaughtUp => {}
            frames @ Next::Frames { .. } => return Ok(Some(frames)),
        }
    }
}

/// Reads `Last-Event-ID`; an empty one is none.
pub(crate) fn last_event_id(headers: &HeaderMap) -> Result<Option<FeedCursor>, Problem> {
    let Some(value) = headers.get("last-event-id").filter(|value| !value.is_empty()) else { return Ok(None) };
    cursor_of("Last-Event-ID", value.to_str().unwrap_or("bytes that are no text")).map(Some)
}
