//! Threads, runs, questions, messages and producers: what can be asked for and asked of the log, beside its events.

pub(crate) mod agents;
mod fresh;
pub(crate) mod interactions;
mod lines;
pub(crate) mod messages;
pub(crate) mod producers;
pub(crate) mod records;
pub(crate) mod runs;
pub(crate) mod threads;
pub(crate) mod webhooks;

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use serde_json::{Value, json};

use crate::Wire;
use crate::problem::Problem;

/// Tells that the server lives.
pub(crate) async fn healthz() -> Json<Value> {
    Json(json!({"status": "ok"}))
}

/// Tells whether the store can be read and written.
pub(crate) async fn readyz(State(wire): State<Arc<Wire>>) -> Result<Json<Value>, Problem> {
    if *wire.shutdown.borrow() {
        return Err(Problem::new("shutting_down", "the server is stopping"));
    }
    wire.log.ready().await?;
    Ok(Json(json!({"status": "ok"})))
}

/// Takes one item more than the page has, to know whether there is a next one, and tells where it begins.
fn page_of<T>(mut items: Vec<T>, limit: usize, id: impl Fn(&T) -> &str) -> (Vec<T>, Option<String>) {
    let more = items.len() > limit;
    items.truncate(limit);
    let next = items.last().filter(|_| more).map(|last| id(last).to_owned());
    (items, next)
}
