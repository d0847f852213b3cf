//! Interactive runs: answers, cancel requests and expiry, in races, through every channel, and over restarts.

mod answer_channels;
mod bad_answers;
mod open_forms;
mod producer_signals;
mod races;

use serde_json::{Value, json};

use crate::harness::Served;

/// A form that asks for a whole number.
const FORM: &str = r#"{"type":"interaction.requested","interaction_id":"q","kind":"form","schema":{"type":"object","required":["n"],"properties":{"n":{"type":"integer"}}}}"#;

/// Writes frames of `runwire` to a run, in a thread that has its name.
async fn write(served: &Served, run: &str, frames: &[&str]) {
    let body: String = frames.iter().map(|frame| format!("{frame}\n")).collect();
    let path = format!("/v1/runs/{run}/events?dialect=runwire");
    served.post(&path, &body).await.written(frames.len() as u64, 0);
}

/// Answers over HTTP.
async fn submit(served: &Served, run: &str, n: usize) -> crate::harness::Answer {
    let body = json!({"decision": "submitted", "values": {"n": n}});
    served.post(&format!("/v1/runs/{run}/interactions/q"), &body.to_string()).await
}

/// Picks the events of a type.
fn of_type<'a>(events: &'a [Value], kind: &str) -> Vec<&'a Value> {
    events.iter().filter(|event| event["type"] == kind).collect()
}
