//! The façade of AG-UI: retries, partial answers, reloads.

use runwire_agents::demos;
use serde_json::{Value, json};

use super::{frames, open, serving};
use crate::harness::{COMPLETED, Served};

const ASKED: &str = r#"{"type":"run.started"}
{"type":"interaction.requested","interaction_id":"f","kind":"form","schema":{"type":"object","required":["n"],"properties":{"n":{"type":"integer"}}}}
{"type":"interaction.requested","interaction_id":"a","kind":"approval","title":"Go on?"}
"#;

/// A run of somebody else's, in the thread `t`, that waits for a form and an approval.
async fn with_two_questions(served: &Served) {
    served.post("/v1/runs/r/events?dialect=runwire&thread=t", ASKED).await.written(3, 0);
}

fn input(run: &str, message: &str) -> Value {
    json!({"threadId": "t", "runId": run, "messages": [{"id": "u", "role": "user", "content": message}]})
}

fn resuming(run: &str, resume: &Value) -> Value {
    json!({"threadId": "t", "runId": run, "messages": [], "resume": resume})
}

async fn statuses(served: &Served) -> Vec<Value> {
    let run = served.get("/v1/runs/r").await.json();
    run["interactions"].as_array().unwrap().iter().map(|asked| asked["status"].clone()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_request_attaches_to_its_run_and_starts_nothing() {
    let served = serving().await;
    let first = served.post("/ag-ui/demo", &input("r", "hi").to_string()).await;
    let told = frames(&first);
    assert_eq!((&told[0]["type"], &told[0]["runId"]), (&"RUN_STARTED".into(), &"r".into()));
    assert_eq!(told.last().unwrap()["outcome"]["interrupts"][0]["id"], "trip");
    let before = served.get("/v1/runs/r").await.json();
    // The client has gathered messages since; it is still the same request.
    let again = frames(&served.post("/ag-ui/demo", &input("r", "hi again").to_string()).await);
    assert!(again.iter().any(|frame| frame["type"] == "MESSAGES_SNAPSHOT"));
    assert_eq!(again.last().unwrap()["outcome"], told.last().unwrap()["outcome"]);
    assert_eq!(served.get("/v1/runs/r").await.json(), before);
    served.post("/ag-ui/endless", &input("r", "hi").to_string()).await.problem(409, "run_exists");
    let elsewhere = json!({"threadId": "t2", "runId": "r", "messages": []});
    served.post("/ag-ui/demo", &elsewhere.to_string()).await.problem(409, "run_exists");
}

#[tokio::test(flavor = "multi_thread")]
async fn new_input_during_an_open_interaction_is_refused() {
    let served = serving().await;
    with_two_questions(&served).await;
    let busy = served.post("/ag-ui/demo", &input("r2", "hi").to_string()).await.problem(409, "thread_busy");
    assert_eq!(busy["run_id"], "r");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_resume_that_does_not_answer_everything_changes_nothing() {
    let served = serving().await;
    with_two_questions(&served).await;
    let form = json!({"interruptId": "f", "status": "resolved", "payload": {"n": 1}});
    let approval = json!({"interruptId": "a", "status": "resolved", "payload": {"approved": true}});
    let refused = async |resume: Value, status: u16, code: &str| {
        let problem =
            served.post("/ag-ui/demo", &resuming("r2", &resume).to_string()).await.problem(status, code);
        assert_eq!(statuses(&served).await, ["open", "open"]);
        problem
    };
    assert_eq!(refused(json!([approval]), 422, "invalid_answer").await["missing"], json!(["f"]));
    let wrong = json!({"interruptId": "f", "status": "resolved", "payload": {"n": "one"}});
    assert_eq!(refused(json!([approval, wrong]), 422, "invalid_answer").await["errors"][0]["pointer"], "/n");
    let silent = json!({"interruptId": "a", "status": "resolved"});
    assert_eq!(refused(json!([form, silent]), 422, "invalid_answer").await["field"], "approved");
    let stranger = json!({"interruptId": "x", "status": "cancelled"});
    refused(json!([form, approval, stranger]), 404, "interaction_unknown").await;
    refused(json!([{"interruptId": "f"}]), 400, "bad_body").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_resume_goes_on_where_the_client_stopped_under_the_id_of_its_request() {
    let served = serving().await;
    with_two_questions(&served).await;
    let resume = json!([
        {"interruptId": "f", "status": "resolved", "payload": {"n": 1}},
        {"interruptId": "a", "status": "resolved", "payload": {"approved": false}},
    ]);
    let mut stream = open(&served, "/ag-ui/demo", &resuming("r2", &resume)).await;
    let head = stream.until(r#""runId":"r2""#).await;
    assert!(head.contains("RUN_STARTED") && !head.contains("MESSAGES_SNAPSHOT"), "{head}");
    for question in ["f", "a"] {
        stream.until(&format!(r#""interaction_id":"{question}""#)).await;
    }
    assert_eq!(statuses(&served).await, ["submitted", "rejected"]);
    // The same again, while the agent works and after its end: the present, and nothing is answered twice.
    let mut again = open(&served, "/ag-ui/demo", &resuming("r2", &resume)).await;
    again.until("MESSAGES_SNAPSHOT").await;
    served.post("/v1/runs/r/events?dialect=runwire", COMPLETED).await.written(1, 0);
    for stream in [&mut stream, &mut again] {
        let rest = stream.until("RUN_FINISHED").await + &stream.until("\n").await;
        assert!(rest.contains(r#""runId":"r2""#), "{rest}");
    }
    let over = frames(&served.post("/ag-ui/demo", &resuming("r3", &resume).to_string()).await);
    let last = over.last().unwrap();
    assert_eq!((&last["type"], &last["runId"]), (&"RUN_FINISHED".into(), &"r3".into()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_missed_records_before_its_answer_gets_a_snapshot() {
    let served = serving().await;
    with_two_questions(&served).await;
    let late = "{\"type\":\"text.delta\",\"message_id\":\"m\",\"content\":\"meanwhile\"}\n";
    served.post("/v1/runs/r/events?dialect=runwire", late).await.written(1, 0);
    let resume = json!([
        {"interruptId": "f", "status": "cancelled"},
        {"interruptId": "a", "status": "cancelled"},
    ]);
    let mut stream = open(&served, "/ag-ui/demo", &resuming("r2", &resume)).await;
    let told = stream.until("MESSAGES_SNAPSHOT").await + &stream.until("meanwhile").await;
    assert!(told.contains("RUN_STARTED"));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_after_a_restart_goes_on_with_the_same_run() {
    let served = serving().await;
    frames(&served.post("/ag-ui/demo", &input("r", "hi").to_string()).await);
    let served = served.restarted_with(|config| config.agents = demos(true)).await;
    let filled = json!({"name": "Ann", "email": "ann@example.com"});
    let resume = json!([{"interruptId": "trip", "status": "resolved", "payload": filled}]);
    let told = frames(&served.post("/ag-ui/demo", &resuming("r2", &resume).to_string()).await);
    assert_eq!((&told[0]["type"], &told[0]["runId"]), (&"RUN_STARTED".into(), &"r2".into()));
    assert_eq!(told.last().unwrap()["outcome"]["interrupts"][0]["id"], "booking");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invalid_run_agent_input_is_refused() {
    let served = serving().await;
    for body in ["{}", r#"{"threadId":"t"}"#, r#"{"threadId":"t","runId":"r","messages":1}"#, "[]"] {
        served.post("/ag-ui/demo", body).await.problem(400, "bad_body");
    }
    served.post("/ag-ui/demo", "{").await.problem(400, "not_json");
    served.post("/ag-ui/demo", r#"{"threadId":"","runId":"r"}"#).await.problem(400, "bad_id");
    served.post("/ag-ui/nobody", &input("r", "hi").to_string()).await.problem(404, "agent_unknown");
    let resume = json!([{"interruptId": "f", "status": "cancelled"}]);
    served.post("/ag-ui/demo", &resuming("r", &resume).to_string()).await.problem(404, "thread_unknown");
    let long = "x".repeat((1 << 20) + 1);
    served.post("/ag-ui/demo", &input("r", &long).to_string()).await.problem(422, "too_large");
    served.get("/v1/runs/r").await.problem(404, "run_unknown");
}

#[tokio::test(flavor = "multi_thread")]
async fn only_an_agent_of_the_server_or_of_the_thread_can_be_attached_to() {
    let served = serving().await;
    served.post("/v1/runs", r#"{"run_id":"r","thread_id":"t","agent":"mine"}"#).await;
    served.post("/v1/runs/r/events", COMPLETED).await.written(1, 0);
    for agent in ["demo", "mine"] {
        assert_eq!(served.get(&format!("/ag-ui/{agent}/t")).await.status.as_u16(), 200, "{agent}");
    }
    let refused = served.get("/ag-ui/nobody/t").await.problem(404, "agent_unknown");
    assert_eq!(refused["agents"][0], "demo");
    served.get("/ag-ui/mine/elsewhere").await.problem(404, "agent_unknown");
    served.get("/ag-ui/demo/elsewhere").await.problem(404, "thread_unknown");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_keeps_the_clients_own_id_in_every_dialect() {
    let served = serving().await;
    served.post("/ag-ui/failing", &input("r", "hi").to_string()).await;
    let start = frames(&served.get("/v1/runs/r/events?dialect=ag-ui&follow=false").await)[0].clone();
    let asked = json!({"id": "u", "role": "user", "content": "hi"});
    assert_eq!((&start["type"], &start["input"]["messages"]), (&"RUN_STARTED".into(), &json!([asked])));
    let attached = frames(&served.get("/ag-ui/failing/t").await);
    let snapshot = attached.iter().find(|frame| frame["type"] == "MESSAGES_SNAPSHOT").unwrap();
    assert_eq!(snapshot["messages"][0], asked);
    // Sent again in another run it is another message of the thread.
    served.post("/ag-ui/failing", &input("r2", "hi").to_string()).await;
    let attached = frames(&served.get("/ag-ui/failing/t").await);
    let snapshot = attached.iter().find(|frame| frame["type"] == "MESSAGES_SNAPSHOT").unwrap();
    let mut ids: Vec<_> =
        snapshot["messages"].as_array().unwrap().iter().map(|told| told["id"].to_string()).collect();
    let all = ids.len();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), all, "{snapshot}");
    // Over the interface of our own, too.
    served.post("/v1/runs", r#"{"run_id":"r3","thread_id":"t","message":"hi","message_id":"mine"}"#).await;
    served.post("/v1/runs/r3/events", COMPLETED).await.written(1, 0);
    let start = frames(&served.get("/v1/runs/r3/events?dialect=ag-ui&follow=false").await)[0].clone();
    assert_eq!(start["input"]["messages"][0]["id"], "mine");
    let other = r#"{"run_id":"r3","thread_id":"t","message":"hi","message_id":"other"}"#;
    served.post("/v1/runs", other).await.problem(409, "run_exists");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_conversation_is_taken_and_only_what_the_thread_does_not_know_is_stored() {
    let reply = "x".repeat(200 << 10);
    let agent = crate::agents::fake_agents::FakeHttpAgent::telling(
        "{\"type\":\"RUN_STARTED\",\"threadId\":\"t\",\"runId\":\"r\"}\n{\"type\":\"RUN_FINISHED\",\"threadId\":\"t\",\"runId\":\"r\"}",
    )
    .await;
    let served =
        Served::with(|config| config.agents = vec![agent.agent(runwire_model::dialect::Dialect::AgUi)]).await;
    // Sixteen runs of somebody else have made three megabytes of history.
    let mut messages = Vec::new();
    for turn in 0..16 {
        let (user, answer) = (format!("u{turn}"), format!("m{turn}"));
        let run =
            json!({"run_id": format!("r{turn}"), "thread_id": "t", "message": "more", "message_id": user});
        served.post("/v1/runs", &run.to_string()).await;
        let delta = json!({"type": "text.delta", "message_id": answer, "content": reply});
        let body = format!("{delta}\n{COMPLETED}");
        served.post(&format!("/v1/runs/r{turn}/events?dialect=runwire"), &body).await.written(2, 0);
        messages.push(json!({"id": user, "role": "user", "content": "more"}));
        messages.push(json!({"id": answer, "role": "assistant", "content": reply}));
    }
    messages.push(json!({"id": "s", "role": "tool", "content": "42", "toolCallId": "c"}));
    messages.push(json!({"id": "u", "role": "user", "content": "and now?"}));
    let body = json!({
        "threadId": "t", "runId": "r", "messages": messages, "tools": [], "context": [], "state": {"n": 1},
        "forwardedProps": {"k": "v"},
    });
    assert!(body.to_string().len() > 3 << 20);
    let told = served.post("/ag-ui/a", &body.to_string()).await;
    assert!(told.text.len() < 1 << 10, "{}", told.text.len());
    let told = frames(&told);
    assert_eq!(told.last().unwrap()["type"], "RUN_FINISHED", "{told:?}");
    // The agent has it all, the log and its readers what is new.
    let asked = &agent.asked()[0].body;
    assert_eq!(asked["messages"], json!(messages));
    assert_eq!((&asked["state"], &asked["forwardedProps"]), (&body["state"], &body["forwardedProps"]));
    let start = served.get("/v1/runs/r/events?follow=false&limit=1").await;
    assert!(start.text.len() < 4 << 10, "{}", start.text.len());
    let start = &frames(&start)[0];
    assert_eq!(start["input"]["messages"][31], json!({"id": "m15"}));
    assert_eq!(start["input"]["messages"][32], messages[32]);
    let shown = served.get("/v1/runs/r/events?dialect=ag-ui&follow=false&limit=1").await;
    assert!(shown.text.len() < 8 << 10, "{}", shown.text.len());
    assert_eq!(frames(&shown)[0]["input"]["messages"][0]["id"], "u");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conversation_that_the_thread_does_not_know_is_kept_as_far_as_there_is_room() {
    let served = serving().await;
    let long = "x".repeat(100 << 10);
    let old = |at: usize| json!({"id": format!("o{at}"), "role": "assistant", "content": long});
    let mut messages: Vec<_> = (0..32).map(old).collect();
    messages.push(json!({"id": "u", "role": "user", "content": "hi"}));
    let body = json!({"threadId": "t", "runId": "r", "messages": messages});
    let told = frames(&served.post("/ag-ui/failing", &body.to_string()).await);
    assert_eq!(told.last().unwrap()["type"], "RUN_ERROR");
    let start = frames(&served.get("/v1/runs/r/events?follow=false&limit=1").await)[0].clone();
    let kept = start["input"]["messages"].as_array().unwrap();
    assert_eq!((kept.len(), &kept[kept.len() - 1]), (11, &json!({"id": "u"})));
    assert_eq!(kept[9]["id"], "o31");
    // Beyond the body's own limit it is refused.
    let body = json!({"threadId": "t", "runId": "r2", "messages": vec![old(0); 90]});
    served.post("/ag-ui/failing", &body.to_string()).await.problem(413, "body_too_large");
}
