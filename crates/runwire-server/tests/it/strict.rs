//! Strict validation: violations of a dialect's document are refused with `strict`, else warnings of the run.

use runwire_agents::{Agent, AgentKind, ExecAgent, demos};
use runwire_model::dialect::Dialect;
use serde_json::{Value, json};

use crate::agents::fake_agents::RunAssertions;
use crate::harness::Served;

fn frame(sequence: u64, kind: &str, data: Value) -> String {
    let metadata = json!({"request_id": "q", "timestamp": 1, "sequence": sequence});
    json!({"type": kind, "data": data, "metadata": metadata}).to_string() + "\n"
}

fn start() -> String {
    frame(0, "session_start", json!({"session_id": "s", "request_id": "q"}))
}

fn odd(sequence: u64) -> String {
    frame(sequence, "content", json!({"content": "x", "format": "markdwon"}))
}

#[tokio::test]
async fn a_strict_write_is_refused_with_line_field_rule_and_section() {
    let served = Served::start().await;
    for path in ["/v1/runs/r/events", "/v1/threads/t/events"] {
        let body = start() + &odd(1) + &frame(2, "content", json!({"content": "never"}));
        let problem =
            served.post(&format!("{path}?strict=true"), &body).await.problem(422, "breaks_document");
        assert_eq!((&problem["line"], &problem["accepted"]), (&2.into(), &1.into()));
        assert_eq!((&problem["field"], &problem["pointer"]), (&"data.format".into(), &"/data/format".into()));
        assert_eq!((&problem["rule"], &problem["section"]), (&"bad_value".into(), &"§1.3".into()));
        assert_eq!(problem["dialect"], "streaming-engine");
        assert_eq!(problem["hint"], "is `markdown` meant?");
    }
    served.post("/v1/runs/r/events?strict=maybe", "").await.problem(400, "bad_query");
    // A body that stays open is checked as it comes.
    let mut body = served.open("/v1/runs/open/events?strict=true", &[]).await;
    body.chunk(&start()).await;
    served.until_records("open", 1).await;
    body.chunk(&odd(1)).await;
    body.answer().await.unwrap().problem(422, "breaks_document");
}

#[tokio::test]
async fn the_end_of_what_never_began_is_refused_or_a_warning() {
    let served = Served::start().await;
    let easyflow = |domain: &str, kind: &str, payload: Value| json!({"protocol": "easyflow-chat", "version": "1.1", "domain": domain, "type": kind, "conversation_id": "c", "payload": payload});
    let agio = |kind: &str, data: Value| json!({"type": kind, "run_id": "r", "timestamp": "2026-11-12T08:15:00.120Z", "data": data});
    let started = json!({"type": "RUN_STARTED", "threadId": "t", "runId": "r"});
    let cases = [
        (
            easyflow("system", "status", json!({"state": "running"})),
            easyflow("workflow", "status", json!({"node_id": "n", "state": "end"})),
            "payload.node_id",
        ),
        (
            json!({"type": "run_start", "run_id": "r", "message": "?", "agent": "a", "session_id": "s"}),
            json!({"type": "node_exit", "id": "n", "result": "Ok", "session_id": "s"}),
            "id",
        ),
        (agio("run_started", json!({"query": "?"})), agio("step_completed", json!({"step": 1})), "data.step"),
        (started.clone(), json!({"type": "STEP_FINISHED", "stepName": "n"}), "stepName"),
        (started, json!({"type": "TEXT_MESSAGE_END", "messageId": "m"}), "messageId"),
    ];
    for (at, (first, end, field)) in cases.into_iter().enumerate() {
        let body = format!("{first}\n{end}\n");
        let strict = served.post(&format!("/v1/runs/strict-{at}/events?strict=true"), &body).await;
        let problem = strict.problem(422, "breaks_document");
        assert_eq!((&problem["line"], &problem["accepted"]), (&2.into(), &1.into()), "{problem}");
        assert_eq!((&problem["field"], &problem["rule"]), (&field.into(), &"not_open".into()), "{problem}");
        served.post(&format!("/v1/runs/warned-{at}/events"), &body).await.written(2, 0);
        let warnings = &served.get(&format!("/v1/runs/warned-{at}")).await.json()["warnings"];
        assert_eq!((&warnings["count"], &warnings["first"][0]["code"]), (&1.into(), &"not_open".into()));
        assert_eq!(warnings["first"][0]["field"], field);
    }
}

#[tokio::test]
async fn a_strict_write_over_the_websocket_is_refused_too() {
    let served = Served::start().await;
    let mut socket = served.socket().await;
    let frames: Vec<Value> =
        [start(), odd(1)].iter().map(|frame| serde_json::from_str(frame).unwrap()).collect();
    socket.say(json!({"op": "write", "id": "w", "run": "r", "frames": frames, "strict": true})).await;
    let answer = socket.hear().await.unwrap();
    assert_eq!((&answer["op"], &answer["code"]), (&"error".into(), &"breaks_document".into()));
    assert_eq!((&answer["line"], &answer["accepted"]), (&2.into(), &1.into()));
}

#[tokio::test]
async fn without_strict_what_breaks_the_document_is_a_warning_of_the_run() {
    let served = Served::start().await;
    let body = start() + &odd(1) + &odd(2);
    for _ in 0..2 {
        served.write_as("/v1/runs/r/events", ("p", 0, 0), &body).await;
    }
    let run = served.get("/v1/runs/r").await.json();
    assert_eq!(run["warnings"]["count"], 2);
    let warning = &run["warnings"]["first"][0];
    assert_eq!((&warning["seq"], &warning["times"]), (&2.into(), &2.into()));
    assert_eq!((&warning["code"], &warning["pointer"]), (&"bad_value".into(), &"/data/format".into()));
    let listed = &served.get("/v1/runs").await.json()["runs"][0];
    assert_eq!(listed["warnings"], json!({"count": 2, "first": []}));
    served.post("/v1/runs/fine/events", &start()).await.written(1, 0);
    assert!(served.get("/v1/runs/fine").await.json().get("warnings").is_none());
}

#[tokio::test]
async fn a_strict_agent_loses_the_frames_that_its_document_does_not_allow() {
    let script = r#"echo '{"type":"run_start","run_id":"x","message":"?","agent":"a"}'
        echo '{"type":"message_chunk","content":"kept","id":"n","event_id":-1}'
        echo '{"type":"node_exit","id":"think","result":"Ok"}'
        echo '{"type":"message_chunk","content":"said","id":"n"}'"#;
    let served = Served::with(|config| {
        let strict = ExecAgent { strict: true, ..ExecAgent::new(["sh", "-c", script], Dialect::Loom) };
        let lenient = ExecAgent::new(["sh", "-c", script], Dialect::Loom);
        config.agents = [("strict", strict), ("lenient", lenient)]
            .map(|(name, agent)| Agent { name: name.to_owned(), kind: AgentKind::Exec(agent) })
            .into();
    })
    .await;
    for name in ["strict", "lenient"] {
        let body = json!({"run_id": name, "agent": name, "message": "?"});
        served.post("/v1/runs", &body.to_string()).await;
        let run = served.closed(name).await;
        assert_eq!(run["status"], "completed");
        let events = served.happened(name).await;
        let refused = events.iter().filter(|event| event["type"] == "foreign").count();
        let told = events.iter().filter(|event| event["code"] == "breaks_document").count();
        let is_strict = name == "strict";
        // The exit of a node that was never entered is foreign either way.
        assert_eq!((refused, told), if is_strict { (2, 2) } else { (1, 0) }, "{events:?}");
        assert_eq!(run.get("warnings").is_some(), !is_strict, "{run}");
    }
}

#[tokio::test]
async fn the_built_in_agents_break_no_document() {
    let served = Served::with(|config| config.agents = demos(true)).await;
    for agent in ["thought-tree", "thought-graph", "failing"] {
        let body = json!({"run_id": agent, "agent": agent, "message": "go"});
        served.post("/v1/runs", &body.to_string()).await;
        let run = served.closed(agent).await;
        assert_eq!(run.get("warnings"), None, "{run}");
    }
}
