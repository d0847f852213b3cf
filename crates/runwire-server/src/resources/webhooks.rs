//! The handler of webhooks: lists their delivery status.

use std::sync::Arc;

use axum::Json;
use axum::extract::{RawQuery, State};
use serde::Serialize;
use utoipa::ToSchema;

use crate::AppState;
use crate::problem::Problem;
use crate::query::Query;
use crate::webhooks::WebhookView;

/// The webhooks of the server.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct WebhookList {
    webhooks: Vec<WebhookView>,
}

/// Lists the webhooks, each with what waits for it and what became of the rest.
#[utoipa::path(
    get, path = "/v1/webhooks", operation_id = "listWebhooks", tag = "server",
    responses((status = 200, description = "The webhooks, in the order of the configuration.", body = WebhookList)),
)]
pub(crate) async fn list(
    State(state): State<Arc<AppState>>,
    RawQuery(query): RawQuery,
) -> Result<Json<WebhookList>, Problem> {
    Query::parse(query.as_deref()).finish()?;
    let stats = state.log.stats().await?;
    Ok(Json(WebhookList { webhooks: state.webhooks.views(&stats) }))
}
