//! Webhooks: how they stand.

use std::sync::Arc;

use axum::Json;
use axum::extract::{RawQuery, State};
use serde::Serialize;

use crate::Wire;
use crate::problem::Problem;
use crate::query::Query;
use crate::webhooks::WebhookView;

/// The webhooks of the server.
#[derive(Debug, Serialize)]
pub(crate) struct WebhookList {
    webhooks: Vec<WebhookView>,
}

/// Lists the webhooks, each with what waits for it and what became of the rest.
pub(crate) async fn list(
    State(wire): State<Arc<Wire>>,
    RawQuery(query): RawQuery,
) -> Result<Json<WebhookList>, Problem> {
    Query::parse(query.as_deref()).finish()?;
    let figures = wire.log.stats().await?;
    Ok(Json(WebhookList { webhooks: wire.webhooks.views(&figures) }))
}
