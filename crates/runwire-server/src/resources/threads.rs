//! Handlers of threads: create, list, show, delete.

use std::sync::Arc;

use axum::Json;
use axum::extract::{RawQuery, State};
use axum::response::Response;
use http::{HeaderMap, StatusCode};
use runwire_log::{LatestRun, NewThread, ThreadInfo};
use runwire_model::run::Status;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{etag, page_of};
use crate::auth::tenant_of;
use crate::ids::{self, ThreadParam};
use crate::json_body::JsonBody;
use crate::openapi::NotModified;
use crate::openapi::params::{Before, ForceQuery, IfNoneMatch, ListLimit};
use crate::openapi::schemas::StatusSchema;
use crate::problem::Problem;
use crate::query::Query;
use crate::{AppState, limits};

/// A thread, as responses show it.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Thread)]
pub(crate) struct ThreadView {
    thread_id: String,
    parallel: bool,
    #[schema(format = DateTime)]
    created_at: String,
    cursor: String,
    oldest: u64,
    open_runs: Vec<String>,
    runs: u64,
    /// What the person asked first, the beginning of a very long text.
    #[schema(required)]
    title: Option<String>,
    /// The run that began last.
    #[schema(required)]
    latest: Option<LatestView>,
}

/// The thread's latest run.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = LatestRun)]
struct LatestView {
    run_id: String,
    #[schema(required)]
    agent: Option<String>,
    #[schema(value_type = StatusSchema)]
    status: Status,
    /// When it began, or ended.
    #[schema(format = DateTime)]
    at: String,
}

impl From<LatestRun> for LatestView {
    fn from(run: LatestRun) -> Self {
        Self { run_id: run.run_id, agent: run.agent, status: run.status, at: run.at.to_string() }
    }
}

impl From<ThreadInfo> for ThreadView {
    fn from(thread: ThreadInfo) -> Self {
        Self {
            thread_id: thread.thread_id,
            parallel: thread.parallel,
            created_at: thread.created_at.to_string(),
            cursor: thread.head.to_string(),
            oldest: thread.oldest,
            open_runs: thread.open_runs,
            runs: thread.runs,
            title: thread.title,
            latest: thread.latest.map(Into::into),
        }
    }
}

/// The body of a new thread.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
#[schema(as = NewThread)]
pub(crate) struct CreateThreadRequest {
    thread_id: Option<String>,
    /// Whether several runs may be open at once.
    parallel: bool,
}

/// Creates a thread.
#[utoipa::path(
    post, path = "/v1/threads", operation_id = "createThread", tag = "threads",
    request_body = Option<CreateThreadRequest>,
    responses(
        (status = 201, description = "The thread is new.", body = ThreadView),
        (status = 200, description = "It was created before, in the same words.", body = ThreadView),
    ),
)]
pub(crate) async fn create(
    State(state): State<Arc<AppState>>,
    headers: HeaderMap,
    JsonBody(request): JsonBody<CreateThreadRequest>,
) -> Result<(StatusCode, Json<ThreadView>), Problem> {
    request.thread_id.as_deref().map_or(Ok(()), |id| ids::check("thread_id", id))?;
    let tenant = tenant_of(&headers).to_string();
    let thread = NewThread { tenant, thread_id: request.thread_id, parallel: request.parallel };
    let created = state.log.create_thread(thread).await?;
    let status = if created.new { StatusCode::CREATED } else { StatusCode::OK };
    Ok((status, Json(created.value.into())))
}

/// A page of threads, newest first.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ThreadList {
    threads: Vec<ThreadView>,
    /// Where to go on, as `before`.
    #[schema(required)]
    next: Option<String>,
}

/// Lists threads, newest first.
#[utoipa::path(
    get, path = "/v1/threads", operation_id = "listThreads", tag = "threads",
    params(Before, ListLimit, IfNoneMatch),
    responses(
        (status = 200, description = "A page of threads.", body = ThreadList),
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
    let before = query.id("before")?;
    query.finish()?;
    let tenant = tenant_of(&headers);
    etag::respond(&state, &tenant, &headers, async {
        let threads = state.log.threads(&tenant, before.as_deref(), limit + 1).await?;
        let (threads, next) = page_of(threads, limit, |thread| &thread.thread_id);
        Ok(ThreadList { threads: threads.into_iter().map(Into::into).collect(), next })
    })
    .await
}

/// Shows a thread.
#[utoipa::path(
    get, path = "/v1/threads/{thread}", operation_id = "getThread", tag = "threads",
    params(ThreadParam),
    responses((status = 200, description = "The thread.", body = ThreadView)),
)]
pub(crate) async fn show(
    State(state): State<Arc<AppState>>,
    ThreadParam(thread): ThreadParam,
    RawQuery(query): RawQuery,
) -> Result<Json<ThreadView>, Problem> {
    Query::parse(query.as_deref()).finish()?;
    Ok(Json(state.log.thread(&thread).await?.into()))
}

/// Deletes a thread and everything of it.
#[utoipa::path(
    delete, path = "/v1/threads/{thread}", operation_id = "deleteThread", tag = "threads",
    params(ThreadParam, ForceQuery),
    responses((status = 204, description = "It is gone; its id stays used up.")),
)]
pub(crate) async fn remove(
    State(state): State<Arc<AppState>>,
    ThreadParam(thread): ThreadParam,
    RawQuery(query): RawQuery,
) -> Result<StatusCode, Problem> {
    let mut query = Query::parse(query.as_deref());
    let force = query.flag("force")?.unwrap_or(false);
    query.finish()?;
    state.log.delete_thread(&thread, force).await?;
    Ok(StatusCode::NO_CONTENT)
}
