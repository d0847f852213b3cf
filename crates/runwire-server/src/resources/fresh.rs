//! Lists that are asked for again and again: while nothing was committed, they are not made anew.

use std::future::Future;
use std::hash::{DefaultHasher, Hash, Hasher};

use axum::Json;
use axum::response::{IntoResponse, Response};
use http::header::{CACHE_CONTROL, ETAG, IF_NONE_MATCH};
use http::{HeaderMap, HeaderValue, StatusCode};
use serde::Serialize;

use crate::AppState;
use crate::problem::Problem;

/// Answers with a list, or with 304 if the caller has it as it is.
///
/// The tag stands for everything that the store holds, not for the list: comparing it costs no look at the store.
pub(super) async fn unless_known<T: Serialize>(
    state: &AppState,
    tenant: &str,
    asked: &HeaderMap,
    list: impl Future<Output = Result<T, Problem>>,
) -> Result<Response, Problem> {
    // Before the list is read: what is committed meanwhile makes another tag.
    let Some(tag) = tag_of(state, tenant) else { return Ok(Json(list.await?).into_response()) };
    let known =
        asked.get_all(IF_NONE_MATCH).iter().flat_map(|tags| tags.as_bytes().split(|byte| *byte == b','));
    let is_known = known.map(<[u8]>::trim_ascii).any(|known| known == tag.as_bytes());
    let headers = [(ETAG, tag), (CACHE_CONTROL, HeaderValue::from_static("no-cache"))];
    if is_known {
        return Ok((StatusCode::NOT_MODIFIED, headers).into_response());
    }
    Ok((headers, Json(list.await?)).into_response())
}

/// Tells the tag of what a tenant can see now.
fn tag_of(state: &AppState, tenant: &str) -> Option<HeaderValue> {
    let mut hasher = DefaultHasher::new();
    (state.start, state.log.version()?, tenant).hash(&mut hasher);
    HeaderValue::try_from(format!("W/\"{:016x}\"", hasher.finish())).ok()
}
