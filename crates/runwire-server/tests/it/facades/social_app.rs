//! The façade of social-app: what it shows of runs in other dialects.

use serde_json::{Value, json};

use crate::harness::Served;
use crate::reading::SSE;

fn agio(kind: &str, data: Value) -> String {
    let metadata = json!({"model_name": "hidden", "thread_id": "t"});
    let frame = json!({"type": kind, "run_id": "r", "timestamp": "2026-11-16T08:00:00Z", "data": data, "metadata": metadata});
    format!("{frame}\n")
}

#[tokio::test(flavor = "multi_thread")]
async fn neither_the_stream_nor_the_history_shows_figures_of_the_back_end() {
    let served = Served::start().await;
    let created = json!({"run_id": "r", "thread_id": "t", "message": "hi", "input": {"model": "hidden"}});
    served.post("/v1/runs", &created.to_string()).await;
    let car = json!({"model": "Z4"});
    let frames = [
        agio("run_started", json!({"query": "hi"})),
        agio("tool_call_started", json!({"tool_name": "find", "tool_call_id": "c", "arguments": car})),
        agio("usage_update", json!({"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 424_242})),
        agio(
            "run_completed",
            json!({"response": "Yes.", "metrics": {"total_tokens": 424_242, "response_latency": 424_242}}),
        ),
    ];
    served.post("/v1/runs/r/events?dialect=agio", &frames.concat()).await.written(4, 0);
    let history = served.get("/api/v1/agent/runs/t/history").await.json();
    let history = history["events"].as_array().unwrap().clone();
    let mut stream = served.read("/api/v1/agent/runs/t/events", &[SSE]).await;
    let mut live = Vec::new();
    while live.len() < history.len() {
        live.push(stream.event().await.unwrap().json());
    }
    assert_eq!(live, history);
    let end = served.get("/api/v1/agent/runs/t/history?after=end").await.json();
    assert_eq!((&end["events"], end["next"].is_string()), (&Value::Array(Vec::new()), true));
    let text = Value::from(history).to_string();
    assert!(!text.contains("hidden") && !text.contains("424242"), "{text}");
    assert!(text.contains(r#""args":{"model":"Z4"}"#), "{text}");
}
