//! The handler of webhooks: lists their delivery status.

use std::sync::Arc;

use axum::Json;
use axum::extract::{RawQuery, State};
use serde::Serialize;

use crate::AppState;
use crate::problem::Problem;
use crate::query::Query;
use crate::webhooks::WebhookView;

/// The webhooks of the server.
#[derive(Debug, Serialize)]
pub(crate) struct WebhookList {
    webhooks: Vec<WebhookView>,
}

/// Lists the webhooks with their queues and delivery statistics.
pub(crate) async fn list(
    State(state): State<Arc<AppState>>,
    RawQuery(query): RawQuery,
) -> Result<Json<WebhookList>, Problem> {
    Query::parse(query.as_deref()).finish()?;
    let stats = state.log.stats().await?;
    Ok(Json(WebhookList { webhooks: state.webhooks.views(&stats) }))
}
