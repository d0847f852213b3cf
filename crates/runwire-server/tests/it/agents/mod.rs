//! Agents that the server runs: each run ends once, with a helpful error, and leaves no process.

mod demo;
mod exec;
mod exec_faults;
pub(crate) mod fake_agents;
mod http;
pub(crate) mod http_answers;
mod http_faults;
mod recovery;
mod tls;

use std::time::Duration;

use runwire_agents::{Agent, AgentKind, ExecAgent, demos};
use runwire_model::ErrorCode;
use runwire_server::Config;
use serde_json::json;

use crate::harness::Served;
use fake_agents::{RunAssertions, exec_agent};

/// A server with a program as its only agent, called `a`.
fn with_program(config: &mut Config, script: &str) {
    config.agents = vec![exec_agent(script)];
}

#[tokio::test]
async fn the_agents_are_listed_without_where_they_are() {
    let served = Served::with(|config| {
        config.agents = demos(true);
        config.agents.push(exec_agent("echo secret"));
    })
    .await;
    let answer = served.get("/v1/agents").await;
    let agents = answer.json()["agents"].clone();
    assert_eq!(agents[0]["name"], "demo");
    assert_eq!(agents[0]["kind"], "demo");
    assert!(agents[0]["title"]["zh"].is_string());
    assert_eq!(agents[5]["dialect"], "loom");
    assert!(!answer.text.contains("secret"));
}

#[tokio::test]
async fn a_name_that_is_no_agent_is_a_label_of_a_pushed_run() {
    let served = Served::with(|config| config.agents = demos(true)).await;
    let run = served.post("/v1/runs", r#"{"run_id":"r","agent":"mine"}"#).await;
    assert_eq!((run.status.as_u16(), &run.json()["status"]), (201, &"pending".into()));
    served.post("/v1/runs/r/events?end=true", "{\"reply\":\"hi\"}\n").await.written(1, 0);
    let run = served.get("/v1/runs/r").await.json();
    assert_eq!((&run["agent"], &run["status"]), (&"mine".into(), &"completed".into()));
    let refused = served.post("/v1/runs/r/retry", "").await.problem(404, "agent_unknown");
    assert_eq!(refused["agents"][0], "demo");
}

#[tokio::test]
async fn a_label_similar_to_an_agent_gets_a_hint_and_a_run_without_a_producer_fails() {
    let options =
        runwire_log::sqlite::SqliteOptions { lease: Duration::from_millis(50), ..Default::default() };
    let served = Served::with_store(options, |config| config.agents = demos(true)).await;
    let hint_of = async |run: &str, agent: &str| {
        let words = json!({"run_id": run, "agent": agent}).to_string();
        served.post("/v1/runs", &words).await.json()["hint"].clone()
    };
    let hint = hint_of("slip", "demmo").await;
    assert!(hint.as_str().unwrap().contains("is `demo` meant?"), "{hint}");
    assert_eq!(hint_of("mine", "my-own-agent").await, json!(null), "a label is no mistake");
    assert_eq!(hint_of("demo", "demo").await, json!(null));
    let lost = served.closed("slip").await;
    assert_eq!((&lost["error"]["code"], &lost["hint"]), (&json!("producer_lost"), &json!(null)));
    let message = lost["error"]["message"].as_str().unwrap();
    assert!(message.contains("nothing was written") && message.contains("`demmo`"), "{message}");
}

#[tokio::test]
async fn the_same_words_again_start_nothing() {
    let served = Served::with(|config| with_program(config, r#"echo '{"reply":"once"}'"#)).await;
    let words = r#"{"run_id":"r","agent":"a","message":"hi"}"#;
    assert_eq!(served.post("/v1/runs", words).await.status.as_u16(), 201);
    assert_eq!(served.post("/v1/runs", words).await.status.as_u16(), 200);
    let run = served.closed("r").await;
    assert_eq!(run["status"], "completed");
    assert_eq!(served.post("/v1/runs", words).await.status.as_u16(), 200);
    assert_eq!(served.texts("r").await, "once");
}

#[tokio::test]
async fn retry_runs_the_same_agent_on_the_same_input_in_the_same_thread() {
    let script = r#"read line; echo "{\"reply\":\"$RUNWIRE_MESSAGE\"}"; test -e "$FLAG" || { touch "$FLAG"; exit 3; }"#;
    let directory = tempfile::tempdir().unwrap();
    let flag = directory.path().join("flag").to_str().unwrap().to_owned();
    let served = Served::with(|config| {
        let mut agent = exec_of(script);
        agent.env = vec![("FLAG".into(), flag)];
        config.agents = vec![Agent { name: "a".into(), kind: AgentKind::Exec(agent) }];
    })
    .await;
    let body = json!({"run_id": "r1", "thread_id": "t", "agent": "a", "message": "hello", "input": {"n": 1}});
    served.post("/v1/runs", &body.to_string()).await;
    served.closed("r1").await;
    let again = served.post("/v1/runs/r1/retry", r#"{"run_id":"r2"}"#).await;
    assert_eq!(again.status.as_u16(), 201);
    assert_eq!((&again.json()["thread_id"], &again.json()["agent"]), (&"t".into(), &"a".into()));
    assert_eq!(served.closed("r2").await["status"], "completed");
    let start = served.happened("r2").await[0].clone();
    assert_eq!((&start["message"], &start["input"]["n"]), (&"hello".into(), &1.into()));
    assert_eq!(served.texts("r2").await, "hello");
}

#[tokio::test]
async fn a_run_that_is_open_or_has_no_agent_is_not_retried() {
    let served = Served::with(|config| with_program(config, "sleep 60")).await;
    served.post("/v1/runs", r#"{"run_id":"r","agent":"a"}"#).await;
    served.post("/v1/runs/r/retry", "").await.problem(409, "run_open");
    served.post("/v1/runs/p/events?end=true", "{\"reply\":\"hi\"}\n").await.written(1, 0);
    served.post("/v1/runs/p/retry", "").await.problem(422, "no_agent");
    served.post("/v1/runs/none/retry", "").await.problem(404, "run_unknown");
    assert!("too_many_agents".parse::<ErrorCode>().is_ok());
    served.post("/v1/runs/r/cancel", "").await;
    assert_eq!(served.closed("r").await["status"], "cancelled");
    served.stopped().await;
}

#[tokio::test]
async fn a_run_without_a_permit_waits_pending_and_can_be_cancelled() {
    let served = Served::with(|config| {
        with_program(config, r#"echo '{"type":"run_start"}'; sleep 60"#);
        config.agents_at_once = 1;
        config.agent_grace = Duration::from_millis(100);
    })
    .await;
    served.post("/v1/runs", r#"{"run_id":"r1","agent":"a"}"#).await;
    served.until_status("r1", "running").await;
    for run in ["r2", "r3"] {
        served.post("/v1/runs", &json!({"run_id": run, "agent": "a"}).to_string()).await;
    }
    assert_eq!(served.get("/v1/runs/r2").await.json()["status"], "pending");
    let cancelled = served.post("/v1/runs/r2/cancel", "").await.json();
    assert_eq!(cancelled["status"], "cancelled");
    served.post("/v1/runs/r1/cancel", "").await;
    served.closed("r1").await;
    served.until_status("r3", "running").await;
    served.one_end("r1").await;
    served.one_end("r2").await;
    served.stopped().await;
}

#[tokio::test]
async fn open_runs_are_limited_and_an_ended_run_releases_its_permit() {
    let served = Served::with(|config| {
        with_program(config, r#"echo '{"type":"run_start"}'; sleep 60"#);
        (config.agents_at_once, config.agents_open) = (1, 2);
        config.agent_grace = Duration::from_millis(100);
    })
    .await;
    for run in ["r1", "r2"] {
        let started = served.post("/v1/runs", &json!({"run_id": run, "agent": "a"}).to_string()).await;
        assert_eq!(started.status.as_u16(), 201);
        // The turn is the first one's before there is a second.
        served.until_status("r1", "running").await;
    }
    let third = r#"{"run_id":"r3","agent":"a"}"#;
    let refused = served.post("/v1/runs", third).await;
    assert_eq!(refused.headers["retry-after"], "1");
    assert_eq!(refused.problem(503, "too_many_agents")["limit"], 2);
    let shaped = served.post("/agent/stream?query=hi", "").await;
    assert_eq!((shaped.status.as_u16(), shaped.headers["retry-after"].as_bytes()), (503, &b"1"[..]));
    assert!(shaped.text.contains("too_many_agents"), "{shaped:?}");
    // Nothing is left of what was refused, and runs of others are not counted.
    served.get("/v1/runs/r3").await.problem(404, "run_unknown");
    assert_eq!(served.post("/v1/runs", r#"{"agent":"other"}"#).await.status.as_u16(), 201);
    served.post("/v1/runs/r1/cancel", "").await;
    served.closed("r1").await;
    crate::harness::within_timeout(async {
        while served.post("/v1/runs", third).await.status.as_u16() != 201 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    served.until_status("r2", "running").await;
    served.stopped().await;
}

#[test]
fn an_unknown_default_agent_is_refused_at_startup() {
    let directory = tempfile::tempdir().unwrap();
    let log = runwire_log::sqlite::SqliteLog::open(&directory.path().join("runwire.db"), Default::default());
    let config = Config { agents: demos(true), default_agent: Some("nobody".into()), ..Config::default() };
    let refused = runwire_server::Server::bind(config, std::sync::Arc::new(log.unwrap())).err().unwrap();
    assert_eq!(refused.kind(), std::io::ErrorKind::InvalidInput);
    assert!(refused.to_string().contains("`nobody`"), "{refused}");
}

fn exec_of(script: &str) -> ExecAgent {
    let AgentKind::Exec(agent) = exec_agent(script).kind else { unreachable!("it is a program") };
    agent
}
