//! Shared code of façades that start runs: body fields, the agent, the run, its stream.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::response::Response;
use http::HeaderMap;
use runwire_log::{Created, NewRun, RunInfo, RunKey, RunQuery, ThreadKey};
use runwire_model::dialect::Dialect;
use runwire_model::{ErrorCode, Json};

use crate::AppState;
use crate::feed::{FeedCursor, StreamFormat};
use crate::problem::Problem;
use crate::read::{ReadParams, ResponseFormat, respond};
use crate::resources::runs;

/// The fields of a façade's JSON body; fields that are not taken become the agent's input.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(transparent)]
pub(crate) struct BodyFields(BTreeMap<String, Json>);

impl BodyFields {
    /// Parses a socket message.
    pub(crate) fn of_message(text: &str) -> Result<Self, Problem> {
        let bad = |detail: String| Problem::new(ErrorCode::BadMessage, detail);
        runwire_model::json::check_frame(text.as_bytes()).map_err(|fault| bad(fault.to_string()))?;
        serde_json::from_str(text).map_err(|error| bad(format!("a message is a JSON object: {error}")))
    }

    /// Takes a text under the first name that exists; `null` counts as missing.
    pub(super) fn text(&mut self, names: &[&str]) -> Result<Option<String>, Problem> {
        let Some((name, value)) = self.first(names) else { return Ok(None) };
        match value.as_string() {
            Some(text) => Ok(Some(text.into_owned())),
            None => Err(bad_field(name, "a string")),
        }
    }

    /// Takes an id, which may be a number; an empty one counts as missing.
    pub(super) fn id(&mut self, names: &[&str]) -> Result<Option<String>, Problem> {
        let Some((name, value)) = self.first(names) else { return Ok(None) };
        let id = match (value.as_string(), value.text().parse::<i64>()) {
            (Some(text), _) => text.into_owned(),
            (None, Ok(number)) => number.to_string(),
            (None, Err(_)) => return Err(bad_field(name, "a string")),
        };
        Ok(Some(id).filter(|id| !id.is_empty()))
    }

    /// Takes a raw value.
    pub(super) fn json(&mut self, name: &str) -> Option<Json> {
        self.0.remove(name).filter(|value| !value.is_null())
    }

    /// Returns true if a field exists and is not `null`.
    pub(super) fn has(&self, name: &str) -> bool {
        self.0.get(name).is_some_and(|value| !value.is_null())
    }

    /// Returns the remaining fields as the agent's input.
    pub(super) fn into_input(self) -> Option<Json> {
        let rest = serde_json::to_string(&self.0).ok().filter(|_| !self.0.is_empty())?;
        Json::parse(&rest).ok()
    }

    fn first<'a>(&mut self, names: &[&'a str]) -> Option<(&'a str, Json)> {
        let mut found = None;
        for name in names {
            // All spellings are removed, so that none of them becomes input.
            let value = self.0.remove(*name).filter(|value| !value.is_null());
            found = found.or(value.map(|value| (*name, value)));
        }
        found
    }
}

/// Creates the problem of a field of the wrong type.
pub(super) fn bad_field(name: &str, kind: &str) -> Problem {
    Problem::new(ErrorCode::BadBody, format!("`{name}` must be {kind}")).with("field", name)
}

/// Creates the problem of a missing field.
pub(super) fn missing_field(name: &str) -> Problem {
    Problem::new(ErrorCode::BadBody, format!("`{name}` is missing")).with("field", name)
}

/// Returns the agent of a request: the named one, else the default.
pub(super) fn agent_of(state: &AppState, named: Option<String>) -> Result<String, Problem> {
    if let Some(name) = named.filter(|name| !name.is_empty()) {
        return if state.agents.exists(&name) {
            Ok(name)
        } else {
            Err(Problem::unknown_agent(&state.agents, &name))
        };
    }
    state.agents.default().map(ToOwned::to_owned).ok_or_else(|| {
        let names: Vec<_> = state.agents.list().map(|agent| agent.name.as_str()).collect();
        let known_agents = if names.is_empty() { "there are none".into() } else { names.join(", ") };
        let detail = format!("the request names no agent of this server: {known_agents}");
        Problem::new(ErrorCode::AgentNeeded, detail).with("agents", names)
    })
}

/// Creates a run and starts its agent.
pub(super) async fn start(state: &AppState, run: NewRun) -> Result<(RunKey, Created<RunInfo>), Problem> {
    runs::check(&run)?;
    let tenant: Arc<str> = run.tenant.as_str().into();
    let created = state.agents.create(run).await?;
    Ok((RunKey::new(tenant, created.value.run_id.as_str()), created))
}

/// Returns the newest run of a thread.
pub(super) async fn newest_run(state: &AppState, thread: &ThreadKey) -> Result<RunInfo, Problem> {
    state.log.thread(thread).await?;
    let (tenant, id) = (thread.tenant.to_string(), thread.id.to_string());
    let query = RunQuery { tenant, thread: Some(id), limit: 1, ..RunQuery::default() };
    state.log.runs(query).await?.pop().ok_or_else(|| {
        let detail = format!("the thread `{}` has no run to attach to", thread.id);
        Problem::new(ErrorCode::RunUnknown, detail).with("thread_id", &*thread.id)
    })
}

/// Where a stream of a façade starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StartAt {
    /// After a cursor, else at the run's first frame.
    Cursor(Option<FeedCursor>),
    /// With a snapshot of the run as it is now.
    Snapshot,
}

/// Returns the parameters for reading a run as SSE in a dialect.
pub(super) fn read_params(state: &AppState, dialect: Dialect, from: StartAt) -> ReadParams {
    let (after, attach) = match from {
        StartAt::Cursor(after) => (after, false),
        StartAt::Snapshot => (None, true),
    };
    let form = Some(state.config.facades.form(dialect));
    ReadParams {
        format: ResponseFormat::Stream(StreamFormat::Sse),
        form,
        after,
        follow: true,
        limit: None,
        compact: false,
        attach,
    }
}

/// Responds with the SSE stream of a run.
pub(super) async fn follow(
    state: Arc<AppState>,
    dialect: Dialect,
    run: &RunKey,
    from: StartAt,
) -> Result<Response, Problem> {
    let params = read_params(&state, dialect, from);
    let reader = params.read_run(&state, run).await?;
    respond(state, params, reader).await
}

/// Parses `?agent=`, for front ends whose bodies have no field for it.
pub(super) fn agent_in_query(query: Option<&str>) -> Result<Option<String>, Problem> {
    let mut query = crate::query::Query::parse(query);
    Ok(query.take("agent")?.map(Into::into))
}

/// Returns the tenant of a request.
pub(super) fn tenant(headers: &HeaderMap) -> String {
    crate::auth::tenant_of(headers).to_string()
}
