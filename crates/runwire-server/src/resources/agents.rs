//! Handlers of agents: list them, and retry a run.

use std::sync::Arc;

use axum::Json;
use axum::extract::{RawQuery, State};
use http::StatusCode;
use runwire_log::{Created, LogError, NewRun, RunInfo, RunKey};
use runwire_model::ErrorCode;
use runwire_model::dialect::Dialect;
use runwire_model::event::RunStarted;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::runs::RunView;
use crate::AppState;
use crate::ids::{self, RunParam};
use crate::json_body::JsonBody;
use crate::openapi::schemas::{AgentKindSchema, IdSchema};
use crate::problem::Problem;
use crate::query::Query;
use runwire_agents::demo::{self, LocalizedText};
use runwire_agents::{AgentKind, start_in};

/// The agents of the server.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AgentList {
    agents: Vec<AgentView>,
}

// Without its URL or command, which are for the operator only.
/// An agent that the server starts.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Agent)]
struct AgentView {
    name: String,
    #[schema(inline, value_type = AgentKindSchema)]
    kind: &'static str,
    #[schema(value_type = String)]
    dialect: Dialect,
    /// Whether it is the agent of requests to façades that name none.
    default: bool,
    #[schema(required)]
    title: Option<LocalizedTextView>,
    #[schema(required)]
    description: Option<LocalizedTextView>,
    /// What it can be asked, to try it.
    examples: Vec<LocalizedTextView>,
}

/// The same words in two languages.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Words)]
struct LocalizedTextView {
    en: &'static str,
    zh: &'static str,
}

impl From<LocalizedText> for LocalizedTextView {
    fn from(text: LocalizedText) -> Self {
        Self { en: text.en, zh: text.zh }
    }
}

/// Lists the agents that the server starts.
#[utoipa::path(
    get, path = "/v1/agents", operation_id = "listAgents", tag = "agents",
    responses((status = 200, description = "The agents, in the order of the configuration.", body = AgentList)),
)]
pub(crate) async fn list(
    State(state): State<Arc<AppState>>,
    RawQuery(query): RawQuery,
) -> Result<Json<AgentList>, Problem> {
    Query::parse(query.as_deref()).finish()?;
    let view = |agent: &runwire_agents::Agent| {
        let demo = match &agent.kind {
            AgentKind::Demo(agent) => demo::agents().iter().find(|demo| demo.name == agent.script),
            AgentKind::Http(_) | AgentKind::Exec(_) => None,
        };
        AgentView {
            name: agent.name.clone(),
            kind: agent.kind.name(),
            dialect: agent.kind.dialect(),
            default: state.agents.default() == Some(agent.name.as_str()),
            title: demo.map(|demo| demo.title.into()),
            description: demo.map(|demo| demo.description.into()),
            examples: demo.map(|demo| demo.examples).into_iter().flatten().copied().map(Into::into).collect(),
        }
    };
    Ok(Json(AgentList { agents: state.agents.list().map(view).collect() }))
}

/// The body of a retry.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct RetryRequest {
    /// The id of the new run; without one it is minted.
    #[schema(value_type = Option<IdSchema>)]
    run_id: Option<String>,
}

/// Runs the agent of a run again.
///
/// The same agent, on the same message and input, as a new run of the same thread.
#[utoipa::path(
    post, path = "/v1/runs/{run}/retry", operation_id = "retryRun", tag = "agents",
    params(RunParam),
    request_body = inline(Option<RetryRequest>),
    responses(
        (status = 201, description = "The new run.", body = RunView),
        (status = 200, description = "It was created before, in the same words.", body = RunView),
    ),
)]
pub(crate) async fn retry(
    State(state): State<Arc<AppState>>,
    RunParam(run): RunParam,
    RawQuery(query): RawQuery,
    JsonBody(request): JsonBody<RetryRequest>,
) -> Result<(StatusCode, Json<RunView>), Problem> {
    Query::parse(query.as_deref()).finish()?;
    let created = retry_run(&state, &run, request.run_id).await?;
    let status = if created.new { StatusCode::CREATED } else { StatusCode::OK };
    Ok((status, Json(created.value.into())))
}

/// Retries an ended run.
pub(crate) async fn retry_run(
    state: &AppState,
    run: &RunKey,
    run_id: Option<String>,
) -> Result<Created<RunInfo>, Problem> {
    run_id.as_deref().map_or(Ok(()), |id| ids::check("run_id", id))?;
    let info = state.log.run(run).await?;
    let Some(agent) = info.agent.clone() else {
        let detail = format!("the run `{}` names no agent that could be started again", run.id);
        return Err(Problem::new(ErrorCode::NoAgent, detail).with("run_id", &*run.id));
    };
    if !state.agents.exists(&agent) {
        return Err(Problem::unknown_agent(&state.agents, &agent));
    }
    if !info.status.is_closed() {
        return Err(LogError::RunOpen(run.id.to_string()).into());
    }
    let started = started_event(state, run, &info).await?;
    let run_again = NewRun {
        tenant: run.tenant.to_string(),
        run_id,
        thread_id: Some(info.thread_id),
        agent: Some(agent),
        message: started.message,
        // A new message with the same text.
        message_id: None,
        input: started.input,
        ..NewRun::default()
    };
    Ok(state.agents.create(run_again).await?)
}

/// Returns the `run.started` event of an ended run, which holds its input.
async fn started_event(state: &AppState, run: &RunKey, info: &RunInfo) -> Result<RunStarted, Problem> {
    let thread = run.thread(info.thread_id.as_str());
    let first = info.first_seq.unwrap_or(1);
    if info.trimmed {
        let oldest = state.log.thread(&thread).await?.oldest;
        return Err(LogError::RunTrimmed { run: run.id.to_string(), oldest }.into());
    }
    let page = state.log.read(&thread, first.saturating_sub(1)).await?;
    let stored = page.records.iter().find(|stored| stored.record.seq == first && *stored.run == *run.id);
    let bodies = stored.into_iter().flat_map(|stored| &stored.record.entries).map(|entry| &entry.event.body);
    start_in(bodies).cloned().ok_or_else(|| {
        tracing::error!(run = &*run.id, "a closed run has no start");
        Problem::new(ErrorCode::Internal, "what the run was given is not stored")
    })
}
