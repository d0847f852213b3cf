//! The routes of the HTTP interface.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, Method, Uri};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};

use crate::problem::Problem;
use crate::resources::{agents, interactions, messages, producers, runs, threads, transfer, webhooks};
use crate::{AppState, console, facade, metrics, openapi, read, resources, write, ws};

/// Builds the router. `tests/it/openapi.rs` checks that `openapi.json` documents each route.
pub(crate) fn router(state: Arc<AppState>) -> Router {
    Router::new()
        .route("/v1/runs", get(runs::list).post(runs::create))
        .route("/v1/runs/{run}", get(runs::show))
        .route("/v1/runs/{run}/events", post(write::run))
        .route("/v1/runs/{run}/message", get(messages::of_run))
        .route("/v1/runs/{run}/producers/{producer}", get(producers::show))
        .route("/v1/runs/{run}/heartbeat", post(runs::heartbeat))
        .route("/v1/runs/{run}/cancel", post(runs::cancel))
        .route("/v1/runs/{run}/retry", post(agents::retry))
        .route("/v1/agents", get(agents::list))
        .route(
            "/v1/runs/{run}/interactions/{interaction}",
            get(interactions::show).post(interactions::answer),
        )
        .route("/v1/interactions", get(interactions::list))
        .route("/v1/threads", get(threads::list).post(threads::create))
        .route("/v1/threads/{thread}", get(threads::show).delete(threads::remove))
        .route("/v1/threads/{thread}/events", post(write::thread))
        .route("/v1/threads/{thread}/producers/{producer}", get(producers::show_of_thread))
        .route("/v1/threads/{thread}/messages", get(messages::of_thread))
        .route("/v1/threads/{thread}/records", get(transfer::export).post(transfer::import))
        .route("/v1/events", post(write::tenant))
        .route("/v1/producers/{producer}", get(producers::show_of_tenant))
        .route("/v1/webhooks", get(webhooks::list))
        .route("/openapi.json", get(openapi::show))
        .route("/healthz", get(resources::healthz))
        .route("/readyz", get(resources::readiness::readyz))
        .route("/metrics", get(metrics::show))
        .merge(read::routes())
        .merge(facade::routes())
        .merge(ws::routes())
        .fallback(unknown_route)
        .method_not_allowed_fallback(wrong_method)
        .with_state(state)
}

/// Responds with a page of the console, or 404.
async fn unknown_route(
    State(state): State<Arc<AppState>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
) -> Response {
    let page = state.config.console.then(|| console::respond(&method, uri.path(), &headers)).flatten();
    page.unwrap_or_else(|| {
        Problem::new("not_found", format!("nothing answers {method} {}", uri.path())).into_response()
    })
}

async fn wrong_method(method: Method, uri: Uri) -> Problem {
    Problem::new("method_not_allowed", format!("{} does not answer {method}", uri.path()))
}
