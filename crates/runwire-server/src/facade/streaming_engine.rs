//! The façade of StreamingEngine: `POST /api/chat {session_id, content}`, answered with its events.

use std::sync::Arc;

use axum::Router;
use axum::extract::{RawQuery, State};
use axum::response::Response;
use axum::routing::post;
use http::HeaderMap;
use runwire_log::NewRun;
use runwire_model::dialect::Dialect;

use super::error_frame;
use super::start_run::{BodyFields, StartAt, agent_in_query, agent_of, follow, missing_field, start, tenant};
use crate::AppState;
use crate::json_body::JsonBody;
use crate::problem::Problem;

pub(super) fn routes() -> Router<Arc<AppState>> {
    Router::new().route("/api/chat", post(chat))
}

/// Starts a run in a session and streams its events to the end.
async fn chat(
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
