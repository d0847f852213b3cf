//! Agents during an outage of the store.

use std::sync::Arc;
use std::time::Duration;

use runwire_agents::demos;
use runwire_log::{Append, FrameBatch, LogEvents, RunKey, Stamp, Target};
use runwire_model::dialect::Dialect;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::sync::Notify;

use super::flaky_log::Outage;
use super::serving;
use crate::agents::fake_agents::{FakeHttpAgent, RunAssertions, begin_sse, chunk, count, exec_agent};
use crate::harness::{Served, within_timeout};

/// Events as any other run of the same script has them.
fn told(mut events: Vec<Value>) -> Vec<Value> {
    for event in &mut events {
        event.as_object_mut().unwrap().remove("at");
    }
    events
}

/// Approves what a run of the demo asks, and waits for its end.
async fn approve_to_the_end(served: &Served, run: &str) {
    within_timeout(async {
        loop {
            let info = served.get(&format!("/v1/runs/{run}")).await.json();
            if info["ended_at"].is_string() {
                break;
            }
            let asked = info["interactions"].as_array().into_iter().flatten();
            for asked in asked.filter(|asked| asked["status"] == "open") {
                let decision = if asked["kind"] == "approval" { "approved" } else { "cancelled" };
                let path =
                    format!("/v1/runs/{run}/interactions/{}", asked["interaction_id"].as_str().unwrap());
                served.post(&path, &json!({"decision": decision}).to_string()).await;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    served.one_end(run).await;
}

const DEMO: &str = r#"{"run_id":"r","agent":"demo","message":"hello"}"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_demo_goes_on_after_outages_as_if_there_had_been_none() {
    let (steady, _) = serving(|config| config.agents = demos(true)).await;
    steady.post("/v1/runs", DEMO).await;
    approve_to_the_end(&steady, "r").await;
    let expected = told(steady.happened("r").await);

    let (served, store) = serving(|config| config.agents = demos(true)).await;
    // It is not even begun when nothing can be read.
    store.fail(Outage::Reads);
    assert_eq!(served.post("/v1/runs", DEMO).await.status, 201);
    store.until_refused("thread", 3).await;
    store.recover();
    for records in [2, 30] {
        served.until_records("r", records).await;
        store.fail(Outage::Everything);
        store.until_refused("append", 4).await;
        store.recover();
    }
    // What was written is not written again because nobody said so.
    store.fail(Outage::Acknowledgements);
    store.until_refused("acknowledgement", 3).await;
    store.recover();
    approve_to_the_end(&served, "r").await;
    assert_eq!(told(served.happened("r").await), expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_form_that_is_open_during_an_outage_is_answered_after_it() {
    let (served, store) = serving(|config| config.agents = demos(true)).await;
    served.post("/v1/runs", DEMO).await;
    let asked = served.until_status("r", "suspended").await["interactions"][0].clone();
    let path = format!("/v1/runs/r/interactions/{}", asked["interaction_id"].as_str().unwrap());
    store.fail(Outage::Everything);
    store.until_refused("sweep", 2).await;
    let answer = json!({"decision": "cancelled"}).to_string();
    served.post(&path, &answer).await.problem(503, "store_unavailable");
    store.recover();
    assert_eq!(served.post(&path, &answer).await.status, 200);
    approve_to_the_end(&served, "r").await;
    assert_eq!(served.get("/v1/runs/r").await.json()["status"], "completed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_whose_output_cannot_be_written_waits_and_loses_nothing() {
    // More than a pipe holds, so that the program really has to wait.
    let script = r#"echo '{"type":"run_start"}'
        for n in $(seq 1 3000); do echo "{\"type\":\"message_chunk\",\"content\":\"$n \",\"id\":\"n\"}"; done"#;
    let (served, store) = serving(|config| config.agents = vec![exec_agent(script)]).await;
    served.post("/v1/runs", r#"{"run_id":"r","agent":"a"}"#).await;
    served.until_records("r", 1).await;
    store.fail(Outage::Writes);
    store.until_refused("append", 5).await;
    assert!(store.refused("append") < 20, "the store is not run over");
    store.recover();
    assert_eq!(served.closed("r").await["status"], "completed");
    let expected: String = (1..=3000).map(|number| format!("{number} ")).collect();
    assert_eq!(served.texts("r").await, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_outage_is_not_taken_for_the_end_of_a_run() {
    let script = r#"read start; read line
        case "$line" in *cancel_requested*) echo '{"type":"message_chunk","content":"bye","id":"n"}';; esac; exec sleep 60"#;
    let (served, store) = serving(|config| config.agents = vec![exec_agent(script)]).await;
    // Whoever follows the run, the agent's program and the server itself, begins with a look at it.
    store.fail_after(0, "read");
    served.post("/v1/runs", r#"{"run_id":"r","agent":"a"}"#).await;
    store.until_refused("read", 6).await;
    store.recover();
    served.post("/v1/runs/r/events?dialect=loom", "{\"type\":\"run_start\"}\n").await.written(1, 0);
    assert_eq!(served.post("/v1/runs/r/cancel", "").await.status, 200);
    assert_eq!(served.closed("r").await["status"], "cancelled");
    assert_eq!(served.texts("r").await, "bye");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_whose_conversation_cannot_be_read_yet_is_sent_later() {
    let fake = crate::agents::http_answers::greeter().await;
    let (served, store) = serving(|config| config.agents = vec![fake.agent(Dialect::AgUi)]).await;
    served.post("/v1/runs", r#"{"run_id":"r","thread_id":"t","agent":"a","message":"hi"}"#).await;
    served.until_status("r", "suspended").await;
    store.fail_after(0, "before");
    let answer = r#"{"decision":"submitted","values":{"name":"Ada"}}"#;
    assert_eq!(served.post("/v1/runs/r/interactions/i1", answer).await.status, 200);
    store.until_refused("before", 3).await;
    store.recover();
    assert_eq!(served.closed("r").await["status"], "completed");
    assert_eq!(served.texts("r").await, "hello Ada");
    assert_eq!(fake.asked().len(), 2, "it is told once");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_ends_during_an_outage_ends_its_run_after_it() {
    let fake = Stage::start().await;
    let (served, store) =
        serving(|config| config.agents = vec![fake.http.agent(Dialect::Loom), program_called("b")]).await;
    for (run, agent) in [("http", "a"), ("exec", "b")] {
        served.post("/v1/runs", &json!({"run_id": run, "agent": agent}).to_string()).await;
        served.until_records(run, 1).await;
    }
    store.fail(Outage::Everything);
    fake.goes_on.notify_one();
    store.until_refused("append", 6).await;
    store.recover();
    for run in ["http", "exec"] {
        let closed = served.closed(run).await;
        assert_eq!(closed["status"], "completed", "{closed}");
        assert_eq!(served.texts(run).await, "abc");
    }
}

/// A program that ends at a moment that nobody knows.
fn program_called(name: &str) -> runwire_agents::Agent {
    let script = r#"for c in a b c; do echo "{\"type\":\"message_chunk\",\"content\":\"$c\",\"id\":\"n\"}"; sleep 0.2; done"#;
    runwire_agents::Agent { name: name.into(), ..exec_agent(script) }
}

/// An HTTP agent that says `a`, waits, and says the rest.
struct Stage {
    http: FakeHttpAgent,
    goes_on: Arc<Notify>,
}

impl Stage {
    async fn start() -> Self {
        let goes_on = Arc::new(Notify::new());
        let waits = goes_on.clone();
        let http = FakeHttpAgent::start(move |_, mut stream| {
            let waits = waits.clone();
            async move {
                begin_sse(&mut stream).await;
                let say = |text: &str| {
                    format!("data: {{\"type\":\"message_chunk\",\"content\":\"{text}\",\"id\":\"n\"}}\n\n")
                };
                chunk(&mut stream, &say("a")).await;
                waits.notified().await;
                for text in ["b", "c"] {
                    chunk(&mut stream, &say(text)).await;
                }
                let _ = stream.write_all(b"0\r\n\r\n").await;
            }
        });
        Self { http: http.await, goes_on }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancel_that_an_outage_refused_is_repeated_after_it() {
    let script = r#"echo '{"type":"run_start"}'; sleep 60"#;
    let (served, store) = serving(|config| config.agents = vec![exec_agent(script)]).await;
    served.post("/v1/runs", r#"{"run_id":"r","agent":"a"}"#).await;
    served.until_records("r", 1).await;
    store.fail(Outage::Everything);
    served.post("/v1/runs/r/cancel", "").await.problem(503, "store_unavailable");
    store.recover();
    assert_eq!(served.post("/v1/runs/r/cancel", "").await.status, 200);
    assert_eq!(served.closed("r").await["status"], "cancelled");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_can_stop_while_the_store_is_away() {
    let script = r#"while :; do echo '{"type":"message_chunk","content":"a","id":"n"}'; sleep 0.01; done"#;
    let (served, store) = serving(|config| {
        config.agents = demos(true);
        config.agents.push(exec_agent(script));
        (config.grace, config.agent_grace) = (Duration::from_millis(500), Duration::from_millis(500));
    })
    .await;
    for agent in ["a", "endless"] {
        served.post("/v1/runs", &json!({"run_id": agent, "agent": agent}).to_string()).await;
        served.until_records(agent, 2).await;
    }
    store.fail(Outage::Everything);
    store.until_refused("append", 2).await;
    served.stopped().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_whose_run_another_has_taken_over_stops_its_program_and_writes_nothing_more() {
    let directory = tempfile::tempdir().unwrap();
    let (flag, ended) = (directory.path().join("flag"), directory.path().join("ended"));
    let script = format!(
        r#"trap 'touch "{}"; exit 1' TERM
        echo '{{"type":"message_chunk","content":"a","id":"n"}}'
        while ! test -e "{}"; do sleep 0.02; done
        echo '{{"type":"message_chunk","content":"b","id":"n"}}'
        while :; do sleep 0.02; done"#,
        ended.display(),
        flag.display()
    );
    let (served, store) = serving(|config| config.agents = vec![exec_agent(&script)]).await;
    served.post("/v1/runs", r#"{"run_id":"r","agent":"a"}"#).await;
    served.until_records("r", 1).await;
    // As another server would, it takes over both producers without a word.
    for producer in ["runwire-agent", "runwire-agent-own"] {
        let stamp = Stamp { producer: producer.into(), epoch: 2, index: 0 };
        let append = Append {
            target: Target::Run(RunKey::new("default", "r")),
            thread: None,
            dialect: None,
            stamp: Some(stamp),
            frames: FrameBatch::default(),
            end: false,
            check: Default::default(),
            whole: Default::default(),
            parallel: false,
        };
        assert_eq!(store.append(append).await.unwrap().accepted, 0);
    }
    std::fs::write(&flag, "").unwrap();
    within_timeout(async {
        while !ended.exists() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    // Without agents: nobody takes up what is open.
    let served = served.restarted().await;
    let events = served.happened("r").await;
    let ends = ["run.completed", "run.failed", "run.cancelled"];
    assert!(ends.iter().all(|end| count(&events, end) == 0), "{events:#?}");
    assert_eq!(served.texts("r").await, "a");
}
