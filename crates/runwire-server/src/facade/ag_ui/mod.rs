//! The façade of AG-UI: the official client starts runs, answers interactions, and attaches to a thread's newest run.

mod input;
mod resume;
mod run_id_rewriter;

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::Response;
use http::HeaderMap;
use http::request::Parts;
use runwire_log::{LogError, NewRun, RunKey, RunQuery, ThreadKey};
use runwire_model::dialect::Dialect;
use runwire_model::record::{ChatMessage, History};
use runwire_model::{ErrorCode, Json};

use super::start_run::{self, StartAt, agent_of, newest_run, read_params};
use crate::feed::FeedReader;
use crate::ids::{self, ThreadParam};
use crate::json_body::HeldJsonBody;
use crate::openapi::params::{AgentInPath, LastEventId};
use crate::openapi::schemas::RunAgentInput;
use crate::problem::Problem;
use crate::read::{last_event_id, respond, rewritten_stream};
use crate::{AppState, limits};
use input::RunInput;

/// Attaches to a thread as an AG-UI client does.
#[utoipa::path(
    get, path = "/ag-ui/{agent}/{thread}", operation_id = "agUiAttach", tag = "façades",
    params(AgentInPath, ThreadParam, LastEventId),
    responses((status = 200, description = "The frames, live.", body = String, content_type = "text/event-stream")),
)]
pub(crate) async fn attach(
    State(state): State<Arc<AppState>>,
    Path((agent, _)): Path<(String, String)>,
    ThreadParam(thread): ThreadParam,
    parts: Parts,
) -> Result<Response, Problem> {
    check_agent(&state, &thread, agent).await?;
    let run = newest_run(&state, &thread).await?;
    let after = last_event_id(&parts.headers)?;
    let from = after.map_or(StartAt::Snapshot, |after| StartAt::Cursor(Some(after)));
    let run = RunKey { tenant: thread.tenant, id: run.run_id.into() };
    let params = read_params(&state, Dialect::AgUi, from);
    let reader = params.read_run(&state, &run).await?.map(FeedReader::until_first_response);
    respond(state, params, reader).await
}

/// Refuses an unknown agent, unless a run of the thread has that label.
async fn check_agent(state: &AppState, thread: &ThreadKey, agent: String) -> Result<(), Problem> {
    if state.agents.exists(&agent) {
        return Ok(());
    }
    let query = RunQuery {
        tenant: thread.tenant.to_string(),
        thread: Some(thread.id.to_string()),
        agent: Some(agent.clone()),
        limit: 1,
        ..RunQuery::default()
    };
    match state.log.runs(query).await?.is_empty() {
        true => Err(Problem::unknown_agent(&state.agents, &agent)),
        false => Ok(()),
    }
}

/// Starts a run, or answers its questions, as an AG-UI client does.
///
/// The body is the official RunAgentInput. With `resume`, which must answer everything that is open, the thread's run goes
/// on. The response ends with the run, or with its next question. A `runId` that is known is attached to.
#[utoipa::path(
    post, path = "/ag-ui/{agent}", operation_id = "agUiRun", tag = "façades",
    params(AgentInPath),
    request_body = inline(RunAgentInput),
    responses((status = 200, description = "The frames, up to the run's end or its next question.", body = String, content_type = "text/event-stream")),
)]
pub(crate) async fn run(
    State(state): State<Arc<AppState>>,
    Path(agent): Path<String>,
    headers: HeaderMap,
    HeldJsonBody(body, share): HeldJsonBody<Json, { limits::CONVERSATION_BYTES }>,
) -> Result<Response, Problem> {
    let input = RunInput::read(body)?;
    for (name, id) in [("threadId", &input.thread), ("runId", &input.run)] {
        ids::check(name, id)?;
    }
    let agent = agent_of(&state, Some(agent))?;
    let tenant = crate::auth::tenant_of(&headers);
    let thread = ThreadKey { tenant: tenant.clone(), id: input.thread.as_str().into() };
    let client_run_id = input.run.clone();
    let (run, from) = match input.resume.is_empty() {
        true => begin(&state, &thread, agent, input).await?,
        false => resume::resume(&state, &thread, &input.resume).await?,
    };
    // The conversation is no longer held.
    drop(share);
    let reader = match read_params(&state, Dialect::AgUi, from).read_run(&state, &run).await? {
        Some(reader) => Some(reader),
        // Nothing follows: send a snapshot, which includes the end.
        None => read_params(&state, Dialect::AgUi, StartAt::Snapshot).read_run(&state, &run).await?,
    };
    let reader = reader.ok_or_else(|| Problem::new(ErrorCode::Internal, "a run has no present"))?;
    Ok(rewritten_stream(
        &state,
        reader.until_first_response(),
        run_id_rewriter::rewrite_run_id(client_run_id),
    ))
}

/// Starts a run; attaches if a run of this id exists, which means that the response was lost and the client retries.
async fn begin(
    state: &AppState,
    thread: &ThreadKey,
    agent: String,
    input: RunInput,
) -> Result<(RunKey, StartAt), Problem> {
    let key = RunKey { tenant: thread.tenant.clone(), id: input.run.as_str().into() };
    match state.log.run(&key).await {
        Ok(run) if run.thread_id == *thread.id && run.agent.as_ref() == Some(&agent) => {
            return Ok((key, StartAt::Snapshot));
        }
        Ok(run) => return Err(LogError::RunExists(run.run_id).into()),
        Err(LogError::RunUnknown(_)) => {}
        Err(error) => return Err(error.into()),
    }
    let mut messages = messages_of(state, thread).await?;
    // A repeated message gets a new id: ids are unique in a thread.
    let message_id = input.message_id.filter(|id| messages.iter().all(|message| message.id != *id));
    if let (Some(id), Some(content)) = (message_id.clone(), input.message.clone()) {
        messages.push(ChatMessage { id, role: "user".into(), content, ..ChatMessage::default() });
    }
    let run = NewRun {
        tenant: thread.tenant.to_string(),
        run_id: Some(input.run),
        thread_id: Some(input.thread),
        agent: Some(agent),
        message: input.message,
        message_id,
        input: Some(Dialect::AgUi.abridge_input(input.whole, &messages, limits::INPUT_BYTES)),
        ..NewRun::default()
    };
    let (key, created) = start_run::start(state, run).await?;
    Ok((key, if created.new { StartAt::Cursor(None) } else { StartAt::Snapshot }))
}

/// Returns the messages of a thread; none if it does not exist yet.
async fn messages_of(state: &AppState, thread: &ThreadKey) -> Result<Vec<ChatMessage>, Problem> {
    let head = match state.log.thread(thread).await {
        Ok(info) => info.head,
        Err(LogError::ThreadUnknown(_)) => return Ok(Vec::new()),
        Err(error) => return Err(error.into()),
    };
    Ok(state.log.before(thread, head + 1).await?.messages())
}
