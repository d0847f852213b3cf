//! Conditional requests for lists: 304 while nothing was committed, without reading the store.

use std::future::Future;
use std::hash::{DefaultHasher, Hash, Hasher};

use axum::Json;
use axum::response::{IntoResponse, Response};
use http::header::{CACHE_CONTROL, ETAG, IF_NONE_MATCH};
use http::{HeaderMap, HeaderValue, StatusCode};
use serde::Serialize;

use crate::AppState;
use crate::problem::Problem;

/// Responds with a list, or with 304 if the client's copy is current.
///
/// The ETag identifies the version of the whole store, not of the list, so comparing it needs no read.
pub(super) async fn respond<T: Serialize>(
    state: &AppState,
    tenant: &str,
    request_headers: &HeaderMap,
    list: impl Future<Output = Result<T, Problem>>,
) -> Result<Response, Problem> {
    // Taken before the list is read: a commit in between changes the tag.
    let Some(tag) = tag_of(state, tenant) else { return Ok(Json(list.await?).into_response()) };
    let known = request_headers
        .get_all(IF_NONE_MATCH)
        .iter()
        .flat_map(|tags| tags.as_bytes().split(|byte| *byte == b','));
    let is_known = known.map(<[u8]>::trim_ascii).any(|known| known == tag.as_bytes());
    let headers = [(ETAG, tag), (CACHE_CONTROL, HeaderValue::from_static("no-cache"))];
    if is_known {
        return Ok((StatusCode::NOT_MODIFIED, headers).into_response());
    }
    Ok((headers, Json(list.await?)).into_response())
}

/// Returns the current ETag of a tenant; none if the store has no version.
fn tag_of(state: &AppState, tenant: &str) -> Option<HeaderValue> {
    let mut hasher = DefaultHasher::new();
    (state.start, state.log.version()?, tenant).hash(&mut hasher);
    HeaderValue::try_from(format!("W/\"{:016x}\"", hasher.finish())).ok()
}
