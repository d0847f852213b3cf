//! Façades: faulty requests, lost responses and retries. The real clients are tested in `oracles`.

mod ag_ui;
mod ag_ui_interactions;
mod chats;
mod easyflow_socket;
mod loom;
mod social_app;

use runwire_agents::demos;
use serde_json::Value;

use crate::harness::{Answer, Raw, Served};

/// A server with the demo agents, at a pace for programs.
async fn serving() -> Served {
    Served::with(|config| config.agents = demos(true)).await
}

/// The frames of a stream that has ended.
fn frames(answer: &Answer) -> Vec<Value> {
    let data = answer.text.lines().filter_map(|line| line.strip_prefix("data: "));
    data.map(|data| serde_json::from_str(data).unwrap()).collect()
}

/// Sends a request whose answer is read piece by piece.
async fn open(served: &Served, path: &str, body: &Value) -> Raw {
    let mut raw = served.raw().await;
    let body = body.to_string();
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    raw.send(head.as_bytes()).await.unwrap();
    raw
}
