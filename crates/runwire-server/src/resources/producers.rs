//! How far a producer is, so that it knows where to go on.

use std::sync::Arc;

use axum::Json;
use axum::extract::{RawQuery, State};
use http::HeaderMap;
use runwire_log::{LogError, ProducerInfo, ThreadKey};

use crate::AppState;
use crate::auth::tenant_of;
use crate::ids::{ProducerParam, RunParam, ThreadParam};
use crate::problem::Problem;
use crate::query::Query;

/// Tells how far a producer of a thread that is written as a whole is.
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

/// Tells how far a producer is whose frames name their threads.
pub(crate) async fn show_of_tenant(
    State(state): State<Arc<AppState>>,
    ProducerParam(producer): ProducerParam,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
) -> Result<Json<ProducerInfo>, Problem> {
    Query::parse(query.as_deref()).finish()?;
    let known = match state.log.thread_producer(&ThreadKey::of_tenant(tenant_of(&headers)), &producer).await {
        // Nobody has written so yet.
        Err(LogError::ThreadUnknown(_)) => None,
        known => known?,
    };
    Ok(Json(known.unwrap_or(ProducerInfo { epoch: 0, next: 0, dialect: None })))
}

/// Tells a producer's epoch and the index of the frame that it must send next.
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
