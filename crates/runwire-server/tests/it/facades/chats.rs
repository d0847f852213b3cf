//! The façades of Agio, StreamingEngine and EasyFlow: agent, run, and error frames.

use runwire_agents::demos;
use serde_json::{Value, json};

use super::{frames, open, serving};
use crate::harness::Served;

#[tokio::test(flavor = "multi_thread")]
async fn the_only_agent_needs_no_name() {
    let served = Served::with(|config| config.agents = demos(true).split_off(3)[..1].to_vec()).await;
    let agio = frames(&served.post("/agent/stream?query=hi", "").await);
    assert_eq!(agio.last().unwrap()["type"], "run_failed");
    let engine = frames(&served.post("/api/chat", r#"{"session_id":"s","content":"hi"}"#).await);
    assert_eq!(engine.last().unwrap()["data"]["status"], "error");
    let easyflow = served.post("/api/v1/bot/chat", r#"{"prompt":"hi"}"#).await;
    assert!(easyflow.text.contains("event: error\n"), "{easyflow:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn among_several_agents_one_must_be_named() {
    let served = serving().await;
    let agio = served.post("/api/agent/stream", r#"{"query":"hi"}"#).await;
    assert_eq!(
        (agio.status.as_u16(), &agio.headers["content-type"]),
        (422, &"text/event-stream".parse().unwrap())
    );
    assert_eq!(frames(&agio)[0]["metadata"]["problem"]["agents"][0], "demo");
    let engine = served.post("/api/chat", r#"{"content":"hi"}"#).await;
    assert_eq!(
        (engine.status.as_u16(), &frames(&engine)[0]["data"]["details"]["code"]),
        (422, &"agent_needed".into())
    );
    let named = served.post("/api/chat?agent=failing", r#"{"content":"hi"}"#).await;
    assert_eq!(named.status.as_u16(), 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_default_agent_is_used_if_none_is_named() {
    let served = Served::with(|config| {
        config.agents = demos(true);
        config.default_agent = Some("failing".into());
    })
    .await;
    let agents = served.get("/v1/agents").await.json();
    let defaults: Vec<_> =
        agents["agents"].as_array().unwrap().iter().map(|agent| &agent["default"]).collect();
    assert_eq!(defaults, [false, false, false, true, false]);
    let agio = frames(&served.post("/agent/stream?query=hi", "").await);
    assert_eq!(agio.last().unwrap()["type"], "run_failed");
    let engine = frames(&served.post("/api/chat", r#"{"session_id":"s","content":"hi"}"#).await);
    assert_eq!(engine.last().unwrap()["data"]["status"], "error");
    let easyflow = served.post("/api/v1/bot/chat", r#"{"prompt":"hi"}"#).await;
    assert!(easyflow.text.contains("event: error\n"), "{easyflow:?}");
    let named = served.post("/api/chat", r#"{"content":"hi","agent":"nobody"}"#).await;
    assert_eq!(frames(&named)[0]["data"]["details"]["code"], "agent_unknown");
    // A run that names no agent is still one that somebody else writes.
    let run = served.post("/v1/runs", r#"{"message":"hi"}"#).await.json();
    assert_eq!((&run["agent"], &run["status"]), (&Value::Null, &"pending".into()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_request_with_an_id_of_its_own_starts_nothing() {
    let served = serving().await;
    let body = r#"{"query":"hi","agent":"failing","run_id":"r"}"#;
    let first = frames(&served.post("/agent/stream", body).await);
    assert_eq!(frames(&served.post("/agent/stream", body).await), first);
    let body = r#"{"session_id":"s","content":"hi","agent":"failing","request_id":"q"}"#;
    let first = frames(&served.post("/api/chat", body).await);
    assert_eq!(frames(&served.post("/api/chat", body).await), first);
    let other = served.post("/api/chat", &body.replace("hi", "bye")).await;
    assert_eq!(
        (other.status.as_u16(), &frames(&other)[0]["data"]["details"]["code"]),
        (409, &"run_exists".into())
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_fields_of_a_request_become_the_agents_input() {
    let served = serving().await;
    let body = r#"{"query":"hi","agent":"failing","run_id":"r","model":"m","top":[1.50]}"#;
    served.post("/agent/stream", body).await;
    let start = served.get("/v1/runs/r/events?follow=false&limit=1").await;
    assert!(start.text.contains(r#""input":{"model":"m","top":[1.50]}"#), "{start:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_with_a_request_comes_in_the_systems_own_shape() {
    let served = serving().await;
    let code = |frame: &Value, pointer: &str| frame.pointer(pointer).unwrap().as_str().unwrap().to_owned();
    for (body, expected) in [("{", "not_json"), ("[]", "bad_body"), (r#"{"agent":"demo"}"#, "bad_body")] {
        let agio = served.post("/agent/stream", body).await;
        assert_eq!(
            (agio.status.as_u16(), code(&frames(&agio)[0], "/data/error_type")),
            (400, expected.into())
        );
        let engine = served.post("/api/chat", body).await;
        assert_eq!(code(&frames(&engine)[0], "/data/details/code"), expected);
    }
    let easyflow = served.post("/api/v1/bot/chat", r#"{"prompt":1}"#).await;
    assert!(easyflow.text.starts_with("event: error\n"), "{easyflow:?}");
    assert_eq!(code(&frames(&easyflow)[0], "/payload/code"), "bad_body");
    let without = served.post("/api/v1/bot/chat", "{}").await;
    assert_eq!(code(&frames(&without)[0], "/payload/message"), "`conversation_id` is missing");
}

const FORM: &str = r#"{"protocol":"easyflow-chat","version":"1.1","domain":"interaction","type":"form_request","conversation_id":"c","payload":{"form_id":"f","title":"Who?","schema":{"type":"object","required":["n"],"properties":{"n":{"type":"integer"}}}}}"#;

fn answer(values: &Value) -> String {
    json!({"conversation_id": "c", "form_id": "f", "values": values}).to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_goes_to_the_newest_open_form_of_its_name() {
    let served = serving().await;
    let write = async |frame: &str| {
        served.post("/v1/runs/r/events?dialect=easyflow-chat&thread=c", frame).await.written(1, 0);
    };
    served.post("/api/v1/bot/form", &answer(&json!({"n": 1}))).await.problem(404, "thread_unknown");
    write(FORM).await;
    served.post("/api/v1/bot/form", &answer(&json!({}))).await.problem(422, "invalid_answer");
    let first = served.post("/api/v1/bot/form", &answer(&json!({"n": 1}))).await.json();
    assert_eq!(
        (&first["form_id"], &first["decision"], &first["status"]),
        (&"f".into(), &"submitted".into(), &"running".into())
    );
    // The same again is fine, another is too late.
    assert_eq!(served.post("/api/v1/bot/form", &answer(&json!({"n": 1}))).await.json()["form_id"], "f");
    served.post("/api/v1/bot/form", &answer(&json!({"n": 2}))).await.problem(409, "interaction_closed");
    write(FORM).await;
    let second = served.post("/api/v1/bot/form", &answer(&json!({"n": 2}))).await.json();
    assert_eq!((&second["form_id"], &second["interaction_id"]), (&json!("f"), &json!("f.2")));
    let unknown = json!({"conversation_id": "c", "form_id": "g", "values": {}}).to_string();
    served.post("/api/v1/bot/form", &unknown).await.problem(404, "interaction_unknown");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conversation_stays_open_while_its_form_is() {
    let served = serving().await;
    let body = json!({"prompt": "hi", "botId": "demo", "conversationId": "c"});
    let mut stream = open(&served, "/api/v1/bot/chat", &body).await;
    stream.until("form_request").await;
    stream.until("suspended").await;
    let filled = json!({"name": "Ann", "email": "ann@example.com"});
    let body = json!({"conversation_id": "c", "form_id": "trip", "values": filled}).to_string();
    assert_eq!(served.post("/api/v1/bot/form", &body).await.status.as_u16(), 200);
    stream.until("resumed").await;
    stream.until("form_request").await;
    let body =
        json!({"conversation_id": "c", "form_id": "booking", "values": {"approved": false}}).to_string();
    assert_eq!(served.post("/api/v1/bot/form", &body).await.json()["decision"], "rejected");
    stream.until("event: done").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn easyflows_streams_have_the_head_that_its_document_lists() {
    let served = serving().await;
    let body = json!({"prompt": "hi", "botId": "failing", "conversationId": "c"}).to_string();
    let attach = json!({"conversationId": "c"}).to_string();
    let refused = json!({"conversationId": "nobody"}).to_string();
    for (body, status) in [(body, 200), (attach.clone(), 200), (refused, 404)] {
        let answer = served.post("/api/v1/bot/chat", &body).await;
        assert_eq!(answer.status.as_u16(), status);
        let head = ["content-type", "cache-control", "connection"].map(|name| answer.headers[name].clone());
        assert_eq!(head, ["text/event-stream", "no-cache", "keep-alive"]);
    }
    let head = [("content-type", "application/json"), ("connection", "close")];
    let request = served.request(http::Method::POST, "/api/v1/bot/chat", &head);
    let answer = served.send(request.body(attach.clone()).unwrap()).await;
    let connection: Vec<_> = answer.headers.get_all("connection").iter().collect();
    assert_eq!(connection, ["close"], "the client asked for it");
    let request =
        served.request(http::Method::POST, "/api/v1/bot/chat", &[("content-type", "application/json")]);
    let answer = served.send_h2(request.body(attach).unwrap()).await;
    assert_eq!(
        (answer.status.as_u16(), &answer.headers["cache-control"]),
        (200, &"no-cache".parse().unwrap())
    );
    assert!(!answer.headers.contains_key("connection"), "HTTP/2 forbids it");
}
