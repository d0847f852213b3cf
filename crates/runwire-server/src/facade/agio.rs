//! The façade of Agio: starts and streams a run, and lists the stored events of one.

use std::sync::Arc;

use axum::extract::{RawQuery, State};
use axum::response::Response;
use http::HeaderMap;
use http::request::Parts;
use runwire_log::NewRun;
use runwire_model::dialect::Dialect;

use super::error_frame;
use super::start_run::{BodyFields, StartAt, agent_of, follow, missing_field, start, tenant};
use crate::AppState;
use crate::feed::{Next, StreamFormat};
use crate::ids::RunParam;
use crate::json_body::JsonBody;
use crate::limits;
use crate::openapi::params::{AgioPage, AgioQuery, AgioRun, FacadeAgent};
use crate::openapi::schemas::{AgioEventPage, AgioRequest};
use crate::problem::Problem;
use crate::query::Query;
use crate::read::{ReadParams, ResponseFormat, last_event_id, page, respond};

/// Starts a run as Agio's front end does.
///
/// `query` is a parameter or a field of the body. Fields that are not listed are handed on to the agent.
#[utoipa::path(
    post, path = "/agent/stream", operation_id = "agioStream", tag = "façades",
    params(FacadeAgent, AgioQuery),
    request_body = inline(Option<AgioRequest>),
    responses(
        (status = 200, description = "The run's events, to its end.", body = String, content_type = "text/event-stream"),
        (status = "default", description = "Agio's `error` event, which carries the problem.", body = String, content_type = "text/event-stream"),
    ),
)]
pub(crate) async fn stream(
    State(state): State<Arc<AppState>>,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
    body: Result<JsonBody<BodyFields>, Problem>,
) -> Response {
    let started = async {
        let mut parameters = Query::parse(query.as_deref());
        let JsonBody(mut fields) = body?;
        let message = match parameters.take("query")? {
            Some(message) => Some(message.into_owned()),
            None => fields.text(&["query"])?,
        };
        let named = match parameters.take("agent")? {
            Some(named) => Some(named.into_owned()),
            None => fields.id(&["agent"])?,
        };
        let run = NewRun {
            tenant: tenant(&headers),
            run_id: fields.id(&["run_id"])?,
            thread_id: fields.id(&["thread_id"])?,
            agent: Some(agent_of(&state, named)?),
            message: Some(message.ok_or_else(|| missing_field("query"))?),
            message_id: None,
            input: fields.into_input(),
            ..NewRun::default()
        };
        let (run, _) = start(&state, run).await?;
        follow(state, Dialect::Agio, &run, StartAt::Cursor(None)).await
    };
    started.await.unwrap_or_else(error_frame::agio)
}

/// Starts a run as Agio's front end does.
///
/// `query` is a parameter or a field of the body. Fields that are not listed are handed on to the agent.
#[utoipa::path(
    post, path = "/api/agent/stream", operation_id = "agioApiStream", tag = "façades",
    params(FacadeAgent, AgioQuery),
    request_body = inline(Option<AgioRequest>),
    responses(
        (status = 200, description = "The run's events, to its end.", body = String, content_type = "text/event-stream"),
        (status = "default", description = "Agio's `error` event, which carries the problem.", body = String, content_type = "text/event-stream"),
    ),
)]
pub(crate) async fn api_stream(
    state: State<Arc<AppState>>,
    headers: HeaderMap,
    query: RawQuery,
    body: Result<JsonBody<BodyFields>, Problem>,
) -> Response {
    stream(state, headers, query, body).await
}

/// Reads a run's events as Agio's front end does.
#[utoipa::path(
    get, path = "/api/runs/{run_id}/events", operation_id = "agioEvents", tag = "façades",
    params(AgioRun, AgioPage),
    responses((status = 200, description = "A page of events.", body = inline(AgioEventPage))),
)]
pub(crate) async fn events(
    State(state): State<Arc<AppState>>,
    RunParam(run): RunParam,
    parts: Parts,
) -> Result<Response, Problem> {
    let accept = parts.headers.get(http::header::ACCEPT).and_then(|accept| accept.to_str().ok());
    let as_stream = accept.is_some_and(|accept| accept.contains("text/event-stream"));
    let format = if as_stream { ResponseFormat::Stream(StreamFormat::Sse) } else { ResponseFormat::Page };
    let after = last_event_id(&parts.headers)?.filter(|_| as_stream);
    let params = ReadParams {
        format,
        form: Some(state.config.facades.form(Dialect::Agio)),
        after,
        follow: as_stream,
        limit: None,
        compact: false,
        attach: false,
    };
    if as_stream {
        let reader = params.read_run(&state, &run).await?;
        return respond(state, params, reader).await;
    }
    let mut query = Query::parse(parts.uri.query());
    let offset = query.number("offset", 0..=1 << 40)?.unwrap_or(0);
    let limit = query.number("limit", 1..=limits::PAGE_FRAMES)?.unwrap_or(limits::PAGE_FRAMES_DEFAULT);
    // Read before the events: if the run is closed here, the page misses none.
    let is_open = !state.log.run(&run).await?.status.is_closed();
    let mut skipped = 0;
    let reader = match params.read_run(&state, &run).await? {
        Some(reader) if offset > 0 => {
            let mut skipping = reader.limit(Some(offset));
            loop {
                match skipping.next().await? {
                    Next::Frames { from, to, .. } => skipped += to - from,
                    Next::CaughtUp => {}
                    Next::Ended => break,
                }
            }
            Some(skipping)
        }
        reader => reader,
    };
    let page = match reader {
        Some(reader) => page(reader, limit).await?,
        None => Default::default(),
    };
    let mut body =
        format!(r#"{{"run_id":{},"offset":{offset},"events":["#, serde_json::Value::from(&*run.id));
    // More is there, or may come; an offset beyond the end leads back to it.
    let next = (page.next.is_some() || is_open).then(|| skipped + page.count);
    body.push_str(&String::from_utf8_lossy(&page.frames));
    match next {
        Some(next) => body.push_str(&format!(r#"],"next_offset":{next}}}"#)),
        None => body.push_str(r#"],"next_offset":null}"#),
    }
    Ok(page.respond(body.into_bytes()))
}
