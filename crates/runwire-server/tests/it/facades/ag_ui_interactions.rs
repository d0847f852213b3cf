//! The façade of AG-UI with several interactions: one list and one set of answers, without intermediate states.

use bytes::Bytes;
use http::Method;
use serde_json::{Value, json};

use super::{frames, open, serving};
use crate::harness::Served;

const STARTED: &str = r#"{"type":"RUN_STARTED","threadId":"t","runId":"r"}"#;
const ENDED: &str = r#"{"type":"RUN_FINISHED","threadId":"t","runId":"r"}"#;
const BOTH: &str = r#"{"type":"RUN_FINISHED","threadId":"t","runId":"r","outcome":{"type":"interrupt","interrupts":[{"id":"pay","reason":"confirm","responseSchema":{"type":"object","required":["approved"],"properties":{"approved":{"type":"boolean"}}}},{"id":"who","reason":"input_required","responseSchema":{"type":"object"}}]}}"#;
const PAY: &str =
    r#"{"type":"interaction.requested","interaction_id":"pay","kind":"approval","title":"Pay?"}"#;
const WHO: &str = r#"{"type":"interaction.requested","interaction_id":"who","kind":"form","title":"Who?"}"#;

/// A run in the thread `t` that asks both in one frame.
async fn asking_at_once(served: &Served) {
    let body = format!("{STARTED}\n{BOTH}\n");
    served.post("/v1/runs/r/events?dialect=ag-ui&thread=t", &body).await.written(2, 0);
}

/// The same, but each question is a frame of its own.
async fn asking_apart(served: &Served) {
    let body = format!("{{\"type\":\"run.started\"}}\n{PAY}\n{WHO}\n");
    served.post("/v1/runs/r/events?dialect=runwire&thread=t", &body).await.written(3, 0);
}

fn pay() -> Value {
    json!({"interruptId": "pay", "status": "resolved", "payload": {"approved": true}})
}

fn who() -> Value {
    json!({"interruptId": "who", "status": "resolved", "payload": {"name": "Ines"}})
}

fn resuming(run: &str, resume: &Value) -> Value {
    json!({"threadId": "t", "runId": run, "messages": [], "resume": resume})
}

async fn resumed(served: &Served, resume: Value) -> Vec<Value> {
    frames(&served.post("/ag-ui/demo", &resuming("r2", &resume).to_string()).await)
}

/// The lists of questions that a client was given, in their order.
fn lists(told: &[Value]) -> Vec<Vec<&str>> {
    let lists = told.iter().filter_map(|frame| frame["outcome"]["interrupts"].as_array());
    lists.map(|list| list.iter().filter_map(|asked| asked["id"].as_str()).collect()).collect()
}

fn starts(told: &[Value]) -> usize {
    told.iter().filter(|frame| frame["type"] == "RUN_STARTED").count()
}

async fn statuses(served: &Served) -> Vec<Value> {
    let run = served.get("/v1/runs/r").await.json();
    run["interactions"].as_array().unwrap().iter().map(|asked| asked["status"].clone()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn two_interactions_in_one_frame_are_one_list() {
    let served = serving().await;
    asking_at_once(&served).await;
    for path in ["/ag-ui/demo/t", "/v1/runs/r/events?dialect=ag-ui&follow=false"] {
        let told = frames(&served.get(path).await);
        assert_eq!((lists(&told), starts(&told)), (vec![vec!["pay", "who"]], 1), "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_that_come_together_leave_nothing_to_ask_in_between() {
    let served = serving().await;
    asking_at_once(&served).await;
    let mut stream = open(&served, "/ag-ui/demo", &resuming("r2", &json!([who(), pay()]))).await;
    let mut told = stream.until(r#""interaction_id":"pay""#).await;
    assert_eq!(statuses(&served).await, ["approved", "submitted"]);
    assert_eq!(served.get("/v1/runs/r").await.json()["cursor"], "3", "both answers are one record");
    served.post("/v1/runs/r/events?dialect=ag-ui", &format!("{ENDED}\n")).await.written(1, 0);
    told += &stream.until("RUN_FINISHED").await;
    told += &stream.until("\n").await;
    assert_eq!(told.matches("RUN_FINISHED").count(), 1, "{told}");
    assert_eq!(told.matches("RUN_STARTED").count(), 1, "{told}");
    assert!(!told.contains("interrupts"), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_response_ends_at_its_first_end_also_where_the_run_has_gone_on() {
    let served = serving().await;
    asking_apart(&served).await;
    let from = async |cursor: &str| {
        let request = served.request(Method::GET, "/ag-ui/demo/t", &[("last-event-id", cursor)]);
        frames(&served.send(request.body(Bytes::new()).unwrap()).await)
    };
    let first = from("1").await;
    assert_eq!((lists(&first), starts(&first)), (vec![vec!["pay"]], 0));
    let second = from("2").await;
    assert_eq!((lists(&second), starts(&second)), (vec![vec!["pay", "who"]], 1));
    // Whoever reads the run itself is told all of it.
    let all = frames(&served.get("/v1/runs/r/events?dialect=ag-ui").await);
    assert_eq!(lists(&all), [vec!["pay"], vec!["pay", "who"]]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interaction_after_the_response_is_in_the_next_one() {
    let served = serving().await;
    asking_apart(&served).await;
    // The client's response ended at the first question.
    let told = resumed(&served, json!([pay()])).await;
    assert_eq!((lists(&told), starts(&told)), (vec![vec!["who"]], 1));
    assert_eq!(statuses(&served).await, ["approved", "open"]);
    let again = resumed(&served, json!([pay()])).await;
    assert_eq!(lists(&again), [["who"]], "the same again is told the same");
    let mut stream = open(&served, "/ag-ui/demo", &resuming("r3", &json!([who()]))).await;
    stream.until("RUN_STARTED").await;
    assert_eq!(statuses(&served).await, ["approved", "submitted"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_from_another_channel_shortens_the_list() {
    let served = serving().await;
    asking_at_once(&served).await;
    let approved = served.post("/v1/runs/r/interactions/pay", r#"{"decision":"approved"}"#).await;
    assert_eq!(approved.status.as_u16(), 200);
    let told = frames(&served.get("/ag-ui/demo/t").await);
    assert_eq!((lists(&told), starts(&told)), (vec![vec!["who"]], 1));
    // The client that knows of both says both, and the same is no obstacle.
    let mut stream = open(&served, "/ag-ui/demo", &resuming("r2", &json!([pay(), who()]))).await;
    stream.until("MESSAGES_SNAPSHOT").await;
    assert_eq!(statuses(&served).await, ["approved", "submitted"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_answers_that_come_together_all_are_taken_or_none() {
    let served = serving().await;
    asking_at_once(&served).await;
    let refused = async |resume: Value, status: u16, code: &str| {
        let body = resuming("r2", &resume).to_string();
        served.post("/ag-ui/demo", &body).await.problem(status, code)
    };
    for (left, missing) in [(pay(), "who"), (who(), "pay")] {
        assert_eq!(refused(json!([left]), 422, "invalid_answer").await["missing"], json!([missing]));
    }
    assert_eq!(refused(json!([pay(), who(), pay()]), 422, "invalid_answer").await["field"], "resume");
    assert_eq!(statuses(&served).await, ["open", "open"]);
    served.post("/v1/runs/r/interactions/pay", r#"{"decision":"rejected"}"#).await;
    refused(json!([who(), pay()]), 409, "interaction_closed").await;
    assert_eq!(statuses(&served).await, ["rejected", "open"]);
}
