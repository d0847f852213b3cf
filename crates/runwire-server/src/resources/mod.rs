//! Threads, runs, questions, messages and producers: what can be asked for and asked of the log, beside its events.

pub(crate) mod agents;
mod fresh;
pub(crate) mod interactions;
mod lines;
pub(crate) mod messages;
pub(crate) mod producers;
pub(crate) mod readiness;
pub(crate) mod records;
pub(crate) mod runs;
pub(crate) mod threads;
pub(crate) mod webhooks;

use axum::Json;
use serde_json::{Value, json};

/// Tells that the server lives.
pub(crate) async fn healthz() -> Json<Value> {
    Json(json!({"status": "ok"}))
}

/// Takes one item more than the page has, to know whether there is a next one, and tells where it begins.
fn page_of<T>(mut items: Vec<T>, limit: usize, id: impl Fn(&T) -> &str) -> (Vec<T>, Option<String>) {
    let more = items.len() > limit;
    items.truncate(limit);
    let next = items.last().filter(|_| more).map(|last| id(last).to_owned());
    (items, next)
}
