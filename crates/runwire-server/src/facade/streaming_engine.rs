//! The façade of StreamingEngine: `POST /api/chat {session_id, content}`, answered with its events.

use std::sync::Arc;

use axum::extract::{RawQuery, State};
use axum::response::Response;
use http::HeaderMap;
use runwire_log::NewRun;
use runwire_model::dialect::Dialect;

use super::error_frame;
use super::start_run::{BodyFields, StartAt, agent_in_query, agent_of, follow, missing_field, start, tenant};
use crate::AppState;
use crate::json_body::JsonBody;
use crate::openapi::params::FacadeAgent;
use crate::openapi::schemas::StreamingEngineRequest;
use crate::problem::Problem;

/// Starts a run as StreamingEngine's front end does.
///
/// Fields that are not listed are handed on to the agent.
#[utoipa::path(
    post, path = "/api/chat", operation_id = "streamingEngineChat", tag = "façades",
    params(FacadeAgent),
    request_body = inline(StreamingEngineRequest),
    responses(
        (status = 200, description = "The run's events, to its end.", body = String, content_type = "text/event-stream"),
        (status = "default", description = "StreamingEngine's `error` event, which carries the problem.", body = String, content_type = "text/event-stream"),
    ),
)]
pub(crate) async fn chat(
    State(state): State<Arc<AppState>>,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
    body: Result<JsonBody<BodyFields>, Problem>,
) -> Response {
    let started = async {
        let JsonBody(mut fields) = body?;
        let named = fields.id(&["agent"])?.or(agent_in_query(query.as_deref())?);
        let run = NewRun {
            tenant: tenant(&headers),
            run_id: fields.id(&["request_id"])?,
            thread_id: fields.id(&["session_id"])?,
            agent: Some(agent_of(&state, named)?),
            message: Some(fields.text(&["content"])?.ok_or_else(|| missing_field("content"))?),
            message_id: None,
            input: fields.into_input(),
            ..NewRun::default()
        };
        let (run, _) = start(&state, run).await?;
        follow(state, Dialect::StreamingEngine, &run, StartAt::Cursor(None)).await
    };
    started.await.unwrap_or_else(error_frame::streaming_engine)
}
