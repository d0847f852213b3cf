//! An agent loop: it thinks, asks a person, uses a tool, answers, and stops when it is told to.
//!
//! ```sh
//! RUNWIRE_URL=http://127.0.0.1:7420 cargo run -p runwire-client --example agent_loop
//! ```

use runwire_client::Client;
use runwire_client::write::{
    Format, InteractionRequest, SessionStatus, Signal, Stage, StreamingEngine, ToolEnd,
};
use serde_json::json;

pub(crate) async fn agent(client: &Client, run: &str) -> Result<(), Box<dyn std::error::Error>> {
    let engine = StreamingEngine::builder(run).server(client)?;
    let mut signals = engine.signals();
    engine.emit_session_start(format!("session-of-{run}")).await?;
    engine.emit_thinking("The weather, but where?", Stage::Planning).await?;

    let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}});
    engine.emit_interaction(InteractionRequest::form("city", schema).title("Which city?")).await?;
    let city = match signals.next().await.transpose()? {
        Some(Signal::Answer { values: Some(values), .. }) => values.to_value()?["city"].clone(),
        Some(Signal::Answer { .. }) => json!("Paris"),
        // A run that waits for a person is cancelled at once: nothing is left to say.
        _ => return Ok(()),
    };

    engine.emit_tool_call_start("c1", "weather", "Looks the weather up", json!({"city": city})).await?;
    for percent in [25.0, 50.0, 75.0] {
        if engine.is_cancel_requested() {
            engine.emit_session_end(SessionStatus::Cancelled, None).await?;
            return Ok(engine.close().await?);
        }
        engine.emit_tool_call_progress("c1", percent, "asking the sky").await?;
    }
    engine.emit_tool_call_end("c1", ToolEnd::success().result(json!({"sky": "clear"}))).await?;

    for piece in ["The sky is ", "**clear**."] {
        engine.emit_content(piece, Format::Markdown, false).await?;
    }
    engine.emit_session_end(SessionStatus::Completed, None).await?;
    Ok(engine.close().await?)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    agent(&Client::from_env()?, "agent-loop").await
}
