//! The built-in demo agents.

use runwire_agents::demos;
use serde_json::{Value, json};

use super::fake_agents::{RunAssertions, count};
use crate::harness::{Served, within_timeout};

async fn serving() -> Served {
    Served::with(|config| config.agents = demos(true)).await
}

/// Answers whatever the run asks, until it has ended.
async fn answer_all(served: &Served, run: &str) -> Value {
    within_timeout(async {
        loop {
            let info = served.get(&format!("/v1/runs/{run}")).await.json();
            if info["ended_at"].is_string() {
                return info;
            }
            let asked =
                info["interactions"].as_array().unwrap().iter().find(|asked| asked["status"] == "open");
            if let Some(asked) = asked {
                let id = asked["interaction_id"].as_str().unwrap();
                let path = format!("/v1/runs/{run}/interactions/{id}");
                let answer = match asked["kind"].as_str().unwrap() {
                    "approval" => json!({"decision": "approved"}),
                    _ => json!({"decision": "cancelled"}),
                };
                served.post(&path, &answer.to_string()).await;
            }
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    })
    .await
}

#[tokio::test]
async fn the_demo_asks_goes_on_with_the_answer_and_ends() {
    let served = serving().await;
    served.post("/v1/runs", r#"{"run_id":"r","agent":"demo","message":"天气怎么样"}"#).await;
    let run = answer_all(&served, "r").await;
    served.one_end("r").await;
    assert_eq!(run["status"], "completed", "{run}");
    let events = served.happened("r").await;
    assert!(count(&events, "interaction.resolved") >= 1 && count(&events, "tool.finished") >= 2);
}

#[tokio::test]
async fn every_demo_ends_as_it_says() {
    let served = serving().await;
    for (agent, status) in
        [("thought-tree", "completed"), ("thought-graph", "completed"), ("failing", "failed")]
    {
        served.post("/v1/runs", &json!({"run_id": agent, "agent": agent, "message": "hi"}).to_string()).await;
        assert_eq!(served.closed(agent).await["status"], status);
    }
}

#[tokio::test]
async fn the_endless_demo_ends_when_it_is_cancelled() {
    let served = serving().await;
    served.post("/v1/runs", r#"{"run_id":"r","agent":"endless"}"#).await;
    served.until_records("r", 20).await;
    served.post("/v1/runs/r/cancel", "").await;
    assert_eq!(served.closed("r").await["status"], "cancelled");
}

#[tokio::test]
async fn a_demo_goes_on_after_a_restart_as_if_there_had_been_none() {
    let whole = serving().await;
    whole.post("/v1/runs", r#"{"run_id":"r","agent":"demo","message":"hello"}"#).await;
    answer_all(&whole, "r").await;
    let expected = whole.happened("r").await;

    let mut served = serving().await;
    served.post("/v1/runs", r#"{"run_id":"r","agent":"demo","message":"hello"}"#).await;
    for records in [3, 40, 70] {
        served.until_records("r", records.min(expected.len() as u64 / 3)).await;
        served = served.restarted_with(|config| config.agents = demos(true)).await;
    }
    answer_all(&served, "r").await;
    served.one_end("r").await;
    let told = |events: &[Value]| -> Vec<Value> {
        let mut events = events.to_vec();
        for event in &mut events {
            event.as_object_mut().unwrap().remove("at");
        }
        events
    };
    assert_eq!(told(&served.happened("r").await), told(&expected));
}
