//! Handlers of the REST resources: threads, runs, interactions, messages, producers, agents, webhooks, health.

pub(crate) mod agents;
mod etag;
mod import_lines;
pub(crate) mod interactions;
pub(crate) mod messages;
pub(crate) mod producers;
pub(crate) mod readiness;
pub(crate) mod runs;
pub(crate) mod threads;
pub(crate) mod transfer;
pub(crate) mod webhooks;

use axum::Json;
use serde::Serialize;
use utoipa::ToSchema;

use crate::openapi::schemas::LivenessSchema;

/// The response to the liveness probe.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Ok)]
pub(crate) struct Liveness {
    #[schema(inline, value_type = LivenessSchema)]
    status: &'static str,
}

/// Confirms that the server lives.
#[utoipa::path(
    get, path = "/healthz", operation_id = "getHealth", tag = "server",
    responses((status = 200, description = "It lives.", body = Liveness)),
)]
pub(crate) async fn healthz() -> Json<Liveness> {
    Json(Liveness { status: "ok" })
}

/// Truncates a list to a page; returns the cursor of the next page if there was one more item.
fn page_of<T>(mut items: Vec<T>, limit: usize, id: impl Fn(&T) -> &str) -> (Vec<T>, Option<String>) {
    let more = items.len() > limit;
    items.truncate(limit);
    let next = items.last().filter(|_| more).map(|last| id(last).to_owned());
    (items, next)
}
