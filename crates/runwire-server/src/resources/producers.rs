//! Handlers of producers: their epoch and next index, for resuming.

use std::sync::Arc;

use axum::Json;
use axum::extract::{RawQuery, State};
use http::HeaderMap;
use runwire_log::{LogError, ProducerInfo, ThreadKey};

use crate::AppState;
use crate::auth::tenant_of;
use crate::ids::{ProducerParam, RunParam, ThreadParam};
use crate::openapi::schemas::ProducerSchema;
use crate::problem::Problem;
use crate::query::Query;

/// Shows how far a producer of a thread is.
#[utoipa::path(
    get, path = "/v1/threads/{thread}/producers/{producer}", operation_id = "getProducerOfThread", tag = "writing",
    params(ThreadParam, ProducerParam),
    responses((status = 200, description = "Where it must go on; zeros if it never wrote.", body = ProducerSchema)),
)]
pub(crate) async fn show_of_thread(
    State(state): State<Arc<AppState>>,
    ThreadParam(thread): ThreadParam,
    ProducerParam(producer): ProducerParam,
    RawQuery(query): RawQuery,
) -> Result<Json<ProducerInfo>, Problem> {
    Query::parse(query.as_deref()).finish()?;
    let known = state.log.thread_producer(&thread, &producer).await?;
    Ok(Json(known.unwrap_or(ProducerInfo { epoch: 0, next: 0, dialect: None })))
}

/// Shows how far a producer of several sessions is.
#[utoipa::path(
    get, path = "/v1/producers/{producer}", operation_id = "getProducerOfSessions", tag = "writing",
    params(ProducerParam),
    responses((status = 200, description = "Where it must go on; zeros if it never wrote.", body = ProducerSchema)),
)]
pub(crate) async fn show_of_tenant(
    State(state): State<Arc<AppState>>,
    ProducerParam(producer): ProducerParam,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
) -> Result<Json<ProducerInfo>, Problem> {
    Query::parse(query.as_deref()).finish()?;
    let known = match state.log.thread_producer(&ThreadKey::of_tenant(tenant_of(&headers)), &producer).await {
        // No producer of the tenant has written yet.
        Err(LogError::ThreadUnknown(_)) => None,
        known => known?,
    };
    Ok(Json(known.unwrap_or(ProducerInfo { epoch: 0, next: 0, dialect: None })))
}

/// Shows how far a producer is.
#[utoipa::path(
    get, path = "/v1/runs/{run}/producers/{producer}", operation_id = "getProducer", tag = "writing",
    params(RunParam, ProducerParam),
    responses((status = 200, description = "Where it must go on; zeros if it never wrote.", body = ProducerSchema)),
)]
pub(crate) async fn show(
    State(state): State<Arc<AppState>>,
    RunParam(run): RunParam,
    ProducerParam(producer): ProducerParam,
    RawQuery(query): RawQuery,
) -> Result<Json<ProducerInfo>, Problem> {
    Query::parse(query.as_deref()).finish()?;
    let known = state.log.producer(&run, &producer).await?;
    Ok(Json(known.unwrap_or(ProducerInfo { epoch: 0, next: 0, dialect: None })))
}
