//! Handlers of runs: create, list, show, renew the lease, cancel.

use std::sync::Arc;

use axum::Json;
use axum::extract::{RawQuery, State};
use axum::response::Response;
use http::{HeaderMap, StatusCode};
use runwire_log::{Cancel, InteractionInfo, NewRun, RunError, RunInfo, RunQuery, Warnings};
use runwire_model::event::InteractionKind;
use runwire_model::run::Status;
use runwire_model::{ErrorCode, Timestamp};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{etag, page_of};
use crate::auth::tenant_of;
use crate::ids::{self, RunParam};
use crate::json_body::JsonBody;
use crate::openapi::NotModified;
use crate::openapi::params::{Before, IfNoneMatch, ListLimit, RunListQuery};
use crate::openapi::schemas::{InteractionKindSchema, RunErrorSchema, StatusSchema, WarningsSchema};
use crate::problem::Problem;
use crate::query::Query;
use crate::{AppState, limits};

/// A run, as responses show it.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Run)]
pub(crate) struct RunView {
    run_id: String,
    thread_id: String,
    #[schema(required)]
    agent: Option<String>,
    /// What the person asked, the beginning of a very long text.
    #[schema(required)]
    message: Option<String>,
    #[schema(value_type = StatusSchema)]
    status: Status,
    #[schema(format = DateTime)]
    created_at: String,
    #[schema(required, format = DateTime)]
    started_at: Option<String>,
    #[schema(required, format = DateTime)]
    ended_at: Option<String>,
    /// The last `seq`; `0` if nothing was written.
    cursor: String,
    #[schema(inline)]
    counts: RunCounts,
    #[schema(inline, required)]
    usage: Option<Usage>,
    #[schema(inline)]
    interactions: Vec<InteractionSummary>,
    #[schema(inline, required, value_type = Option<RunErrorSchema>)]
    error: Option<RunError>,
    #[serde(skip_serializing_if = "Warnings::is_empty")]
    #[schema(value_type = Option<WarningsSchema>)]
    warnings: Warnings,
    cancel_requested: bool,
    /// Only in the answer to a new run: its `agent` is the name of none, and close to that of one.
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
struct RunCounts {
    records: u64,
    events: u64,
    messages: u64,
    tool_calls: u64,
    steps: u64,
}

#[derive(Debug, Serialize, ToSchema)]
struct Usage {
    prompt_tokens: u64,
    completion_tokens: u64,
    total_tokens: u64,
}

#[derive(Debug, Serialize, ToSchema)]
struct InteractionSummary {
    interaction_id: String,
    #[schema(inline, value_type = InteractionKindSchema)]
    kind: InteractionKind,
    status: String,
    #[schema(required)]
    title: Option<String>,
    #[schema(required, format = DateTime)]
    expires_at: Option<String>,
}

impl From<InteractionInfo> for InteractionSummary {
    fn from(interaction: InteractionInfo) -> Self {
        Self {
            interaction_id: interaction.interaction_id,
            kind: interaction.kind,
            status: interaction.status,
            title: interaction.title,
            expires_at: interaction.expires_at.map(|at| Timestamp(at).to_string()),
        }
    }
}

impl From<RunInfo> for RunView {
    fn from(run: RunInfo) -> Self {
        let summary = run.summary;
        let (prompt_tokens, completion_tokens) = (summary.prompt_tokens, summary.completion_tokens);
        let total_tokens = summary.total_tokens;
        let known = summary.counted || prompt_tokens + completion_tokens > 0 || total_tokens > 0;
        Self {
            run_id: run.run_id,
            thread_id: run.thread_id,
            agent: run.agent,
            message: summary.message,
            status: run.status,
            created_at: run.created_at.to_string(),
            started_at: run.started_at.map(|at| at.to_string()),
            ended_at: run.ended_at.map(|at| at.to_string()),
            cursor: run.last_seq.to_string(),
            counts: RunCounts {
                records: summary.records,
                events: summary.events,
                messages: summary.messages,
                tool_calls: summary.tool_calls,
                steps: summary.steps,
            },
            usage: known.then_some(Usage { prompt_tokens, completion_tokens, total_tokens }),
            interactions: summary.interactions.into_iter().map(Into::into).collect(),
            error: summary.error,
            warnings: summary.warnings,
            cancel_requested: summary.cancel_requested,
            hint: None,
        }
    }
}

impl RunView {
    /// Creates the JSON of a run in a list, without details.
    fn in_list(run: RunInfo) -> Self {
        let mut view = Self::from(run);
        if let Some(error) = &mut view.error {
            error.details = None;
        }
        view.warnings.first.clear();
        view
    }
}

/// The body of a new run.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
#[schema(as = NewRun)]
pub(crate) struct CreateRunRequest {
    thread_id: Option<String>,
    run_id: Option<String>,
    agent: Option<String>,
    message: Option<String>,
    /// The id of the message, where the caller has given it one. It must be new in the thread; without it, one is made.
    message_id: Option<String>,
    /// Any JSON, at most 1 MiB.
    #[schema(value_type = Value)]
    input: Option<runwire_model::Json>,
}

/// Validates ids and sizes of a new run.
pub(crate) fn check(run: &NewRun) -> Result<(), Problem> {
    let ids = [
        ("thread_id", &run.thread_id),
        ("run_id", &run.run_id),
        ("agent", &run.agent),
        ("message_id", &run.message_id),
    ];
    for (name, id) in ids {
        id.as_deref().map_or(Ok(()), |id| ids::check(name, id))?;
    }
    let message = run.message.as_deref().map_or(0, str::len);
    let input = run.input.as_ref().map_or(0, |input| input.text().len());
    for (name, bytes) in [("message", message), ("input", input)] {
        if bytes > limits::INPUT_BYTES {
            let detail = format!("`{name}` has {bytes} bytes, and {} are allowed", limits::INPUT_BYTES);
            return Err(Problem::new(ErrorCode::TooLarge, detail).with("field", name));
        }
    }
    Ok(())
}

/// Creates a run, and starts its agent.
///
/// The same words again give the same run. An `agent` that the server has (`GET /v1/agents`) is started on it; any other
/// name is a label of a run that somebody else writes.
#[utoipa::path(
    post, path = "/v1/runs", operation_id = "createRun", tag = "runs",
    request_body = Option<CreateRunRequest>,
    responses(
        (status = 201, description = "The run is new.", body = RunView),
        (status = 200, description = "It was created before, in the same words.", body = RunView),
    ),
)]
pub(crate) async fn create(
    State(state): State<Arc<AppState>>,
    headers: HeaderMap,
    JsonBody(request): JsonBody<CreateRunRequest>,
) -> Result<(StatusCode, Json<RunView>), Problem> {
    let run = NewRun {
        tenant: tenant_of(&headers).to_string(),
        run_id: request.run_id,
        thread_id: request.thread_id,
        agent: request.agent,
        message: request.message,
        message_id: request.message_id,
        input: request.input.filter(|input| !input.is_null()),
        ..NewRun::default()
    };
    check(&run)?;
    let hint = run.agent.as_deref().and_then(|name| misspelt_agent_hint(&state, name));
    let created = state.agents.create(run).await?;
    let status = if created.new { StatusCode::CREATED } else { StatusCode::OK };
    Ok((status, Json(RunView { hint, ..created.value.into() })))
}

/// Returns a hint if the name is no agent's but similar to one.
fn misspelt_agent_hint(state: &AppState, name: &str) -> Option<String> {
    let meant = state.agents.similar_name(name)?;
    Some(format!("no agent of this server is called `{name}`, so none was started; is `{meant}` meant?"))
}

/// A page of runs, newest first.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RunList {
    runs: Vec<RunView>,
    /// Where to go on, as `before`.
    #[schema(required)]
    next: Option<String>,
}

/// Lists runs, newest first.
#[utoipa::path(
    get, path = "/v1/runs", operation_id = "listRuns", tag = "runs",
    params(RunListQuery, Before, ListLimit, IfNoneMatch),
    responses(
        (status = 200, description = "A page of runs.", body = RunList),
        NotModified,
    ),
)]
pub(crate) async fn list(
    State(state): State<Arc<AppState>>,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    let mut query = Query::parse(query.as_deref());
    let limit = query.number("limit", 1..=limits::LIST_ITEMS)?.unwrap_or(limits::LIST_ITEMS_DEFAULT);
    let tenant = tenant_of(&headers);
    let filter = RunQuery {
        tenant: tenant.to_string(),
        statuses: statuses_of(query.take("status")?.as_deref())?,
        agent: query.id("agent")?,
        thread: query.id("thread")?,
        prefix: query.id("prefix")?,
        since: query.timestamp("since")?,
        until: query.timestamp("until")?,
        before: query.id("before")?,
        limit: limit + 1,
    };
    query.finish()?;
    etag::respond(&state, &tenant, &headers, async {
        let (runs, next) = page_of(state.log.runs(filter).await?, limit, |run| &run.run_id);
        Ok(RunList { runs: runs.into_iter().map(RunView::in_list).collect(), next })
    })
    .await
}

/// Parses comma-separated statuses.
fn statuses_of(names: Option<&str>) -> Result<Vec<Status>, Problem> {
    let wrong = || {
        let names = Status::ALL.map(Status::as_str);
        let detail = format!("`status` is one of {}, or several with commas between them", names.join(", "));
        Problem::bad_query("status", detail).with("expected", names.as_slice())
    };
    let names = names.into_iter().flat_map(|names| names.split(','));
    let mut statuses = Vec::new();
    for name in names {
        let status = Status::from_word(name).ok_or_else(wrong)?;
        if !statuses.contains(&status) {
            statuses.push(status);
        }
    }
    Ok(statuses)
}

/// Shows a run.
#[utoipa::path(
    get, path = "/v1/runs/{run}", operation_id = "getRun", tag = "runs",
    params(RunParam),
    responses((status = 200, description = "The run.", body = RunView)),
)]
pub(crate) async fn show(
    State(state): State<Arc<AppState>>,
    RunParam(run): RunParam,
    RawQuery(query): RawQuery,
) -> Result<Json<RunView>, Problem> {
    Query::parse(query.as_deref()).finish()?;
    Ok(Json(state.log.run(&run).await?.into()))
}

/// The response to a heartbeat.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Beat)]
pub(crate) struct HeartbeatResponse {
    #[schema(value_type = StatusSchema)]
    status: Status,
    cancel_requested: bool,
}

/// Renews a run's lease, and tells whether it shall stop.
#[utoipa::path(
    post, path = "/v1/runs/{run}/heartbeat", operation_id = "heartbeat", tag = "runs",
    params(RunParam),
    responses((status = 200, description = "The lease is renewed.", body = HeartbeatResponse)),
)]
pub(crate) async fn heartbeat(
    State(state): State<Arc<AppState>>,
    RunParam(run): RunParam,
    RawQuery(query): RawQuery,
) -> Result<Json<HeartbeatResponse>, Problem> {
    Query::parse(query.as_deref()).finish()?;
    let run = state.log.heartbeat(&run).await?;
    Ok(Json(HeartbeatResponse { status: run.status, cancel_requested: run.summary.cancel_requested }))
}

/// The body of a cancel request.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct CancelRequest {
    reason: Option<String>,
}

/// Asks a run to stop.
#[utoipa::path(
    post, path = "/v1/runs/{run}/cancel", operation_id = "cancelRun", tag = "runs",
    params(RunParam),
    request_body = inline(Option<CancelRequest>),
    responses((status = 200, description = "The run as it is now; a closed one as it ended.", body = RunView)),
)]
pub(crate) async fn cancel(
    State(state): State<Arc<AppState>>,
    RunParam(run): RunParam,
    RawQuery(query): RawQuery,
    JsonBody(request): JsonBody<CancelRequest>,
) -> Result<Json<RunView>, Problem> {
    Query::parse(query.as_deref()).finish()?;
    if request.reason.as_deref().is_some_and(|reason| reason.len() > limits::REASON_BYTES) {
        let detail = format!("`reason` has more than {} bytes", limits::REASON_BYTES);
        return Err(Problem::new(ErrorCode::TooLarge, detail).with("field", "reason"));
    }
    let cancel = Cancel { reason: request.reason, by: None };
    Ok(Json(state.log.cancel(&run, cancel).await?.run.into()))
}
