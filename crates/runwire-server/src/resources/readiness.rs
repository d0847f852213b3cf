//! The handler of `GET /readyz`: the health of the store and of the tail.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use axum::Json;
use axum::extract::State;
use runwire_log::{Dependency, Health, Outage};
use runwire_model::{ErrorCode, Timestamp};
use serde_json::{Map, Value, json};

use crate::AppState;
use crate::openapi::schemas::ReadinessSchema;
use crate::problem::{Problem, log_store_failure};

/// Shows whether the store can be read and written.
///
/// 503 `store_unavailable` names what is away, with the same members as the answer; 503 `shutting_down` while the server
/// stops. A tail that is away leaves a server ready: events of other nodes arrive later.
#[utoipa::path(
    get, path = "/readyz", operation_id = "getReadiness", tag = "server",
    responses((status = 200, description = "It can.", body = ReadinessSchema)),
)]
pub(crate) async fn readyz(State(state): State<Arc<AppState>>) -> Result<Json<Value>, Problem> {
    if *state.shutdown.borrow() {
        return Err(Problem::new(ErrorCode::ShuttingDown, "the server is stopping"));
    }
    let Health { store, tail } = state.log.health().await;
    let tail_shown = tail.as_ref().map(|tail| shown(tail, |outage| &outage.reason));
    // The store's error may contain files, hosts and users: it is for the server's log only.
    let store_shown = shown(&store, |_| "the server's log says why");
    if let Some(outage) = store.outage {
        log_store_failure(&outage.reason);
        let problem = Problem::new(ErrorCode::StoreUnavailable, format!("{} is away", store.kind));
        return Err(problem.with("ready", false).with("store", store_shown).with_some("tail", tail_shown));
    }
    let mut members = Map::from_iter([("ready".to_owned(), json!(true)), ("store".to_owned(), store_shown)]);
    members.extend(tail_shown.map(|tail| ("tail".to_owned(), tail)));
    Ok(Json(Value::Object(members)))
}

fn shown(Dependency { kind, outage }: &Dependency, why: impl Fn(&Outage) -> &str) -> Value {
    match outage {
        None => json!({"kind": kind, "state": "up"}),
        Some(outage) => {
            let mut shown = json!({"kind": kind, "state": "away", "reason": why(outage)});
            if let Some(since) = outage.since.and_then(written) {
                shown["since"] = since.into();
            }
            shown
        }
    }
}

fn written(time: SystemTime) -> Option<String> {
    let millis = u64::try_from(time.duration_since(UNIX_EPOCH).ok()?.as_millis()).ok()?;
    Timestamp::from_millis(millis).map(|at| at.to_string())
}
