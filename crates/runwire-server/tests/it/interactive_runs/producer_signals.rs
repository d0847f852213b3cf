//! Signals to producers: cancel requests and answers reach every kind of producer.

use std::time::Duration;

use runwire_log::sqlite::SqliteOptions;
use serde_json::{Value, json};

use super::{FORM, submit, write};
use crate::agents::fake_agents::{RunAssertions, exec_agent};
use crate::harness::Served;
use crate::reading::Socket;

const STARTED: &str = r#"{"type":"run.started"}"#;

/// Writes over a socket, and waits until that is acknowledged.
async fn push(socket: &mut Socket, to: Value, frames: &[&str]) {
    let frames: Vec<Value> = frames.iter().map(|frame| serde_json::from_str(frame).unwrap()).collect();
    let mut message = json!({"op": "write", "id": "w", "dialect": "runwire", "frames": frames});
    message.as_object_mut().unwrap().extend(to.as_object().unwrap().clone());
    socket.say(message).await;
    assert_eq!(hear(socket, "ack").await["accepted"], frames.len());
}

/// Waits for a message with an `op`.
async fn hear(socket: &mut Socket, op: &str) -> Value {
    loop {
        let message = socket.hear().await.expect("the socket was closed");
        assert_ne!(message["op"], "error", "{message}");
        if message["op"] == op {
            return message;
        }
    }
}

async fn signal(socket: &mut Socket, run: &str, kind: &str) -> Value {
    let told = hear(socket, "signal").await;
    assert_eq!((&told["run"], &told["frame"]["type"]), (&json!(run), &json!(kind)), "{told}");
    assert_eq!(told["frame"]["run_id"], run);
    told["frame"].clone()
}

/// The ways to stop a run that somebody else has started.
async fn cancel(served: &Served, channel: &str, run: &str) {
    match channel {
        "http" => {
            let told = served.post(&format!("/v1/runs/{run}/cancel"), r#"{"reason":"enough"}"#).await;
            assert_eq!(told.status.as_u16(), 200, "{told:?}");
        }
        _ => {
            let mut socket = served.socket().await;
            socket.say(json!({"op": "cancel", "id": 1, "run": run, "reason": "enough"})).await;
            hear(&mut socket, "ack").await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_producer_on_a_socket_hears_of_cancel_without_subscribing() {
    let served = Served::start().await;
    for channel in ["http", "socket"] {
        let mut socket = served.socket().await;
        push(&mut socket, json!({"run": channel}), &[STARTED]).await;
        cancel(&served, channel, channel).await;
        assert_eq!(signal(&mut socket, channel, "run.cancel_requested").await["reason"], "enough");
        push(&mut socket, json!({"run": channel}), &[r#"{"type":"run.cancelled","reason":"tidied up"}"#])
            .await;
        assert_eq!(served.closed(channel).await["status"], "cancelled");
        assert_eq!(served.happened(channel).await.last().unwrap()["reason"], "tidied up");
        // What it says itself is no news to it.
        socket.say(json!({"op": "ping"})).await;
        assert_eq!(socket.hear().await.unwrap()["op"], "pong");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_producer_on_a_socket_hears_answers_and_the_end_that_is_not_its_own() {
    let served = Served::start().await;
    let mut socket = served.socket().await;
    for run in ["answered", "stopped"] {
        push(&mut socket, json!({"run": run}), &[STARTED, FORM]).await;
    }
    assert_eq!(submit(&served, "answered", 7).await.status.as_u16(), 200);
    let told = signal(&mut socket, "answered", "interaction.resolved").await;
    assert_eq!((&told["interaction_id"], &told["values"]), (&json!("q"), &json!({"n": 7})));
    cancel(&served, "http", "stopped").await;
    assert_eq!(signal(&mut socket, "stopped", "interaction.resolved").await["decision"], "cancelled");
    signal(&mut socket, "stopped", "run.cancelled").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reconnecting_producer_gets_the_signals_that_it_missed() {
    let served = Served::start().await;
    let mut socket = served.socket().await;
    push(&mut socket, json!({"run": "r"}), &[STARTED, FORM]).await;
    drop(socket);
    submit(&served, "r", 7).await;
    cancel(&served, "http", "r").await;
    let served = served.restarted().await;
    let mut socket = served.socket().await;
    push(&mut socket, json!({"run": "r"}), &[r#"{"type":"usage","total_tokens":1}"#]).await;
    signal(&mut socket, "r", "interaction.resolved").await;
    signal(&mut socket, "r", "run.cancel_requested").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_producer_of_a_thread_gets_the_signals_of_its_runs_and_its_pings_renew_them() {
    let lease = Duration::from_millis(1500);
    let served = Served::with_store(SqliteOptions { lease, ..SqliteOptions::default() }, |_| {}).await;
    let mut socket = served.socket().await;
    let started = r#"{"type":"run.started","run_id":"mine"}"#;
    push(&mut socket, json!({"thread": "t"}), &[started]).await;
    // A run that nobody keeps, and that began later, is lost before this one.
    write(&served, "silent", &[STARTED]).await;
    while served.get("/v1/runs/silent").await.json()["status"] == "running" {
        socket.say(json!({"op": "ping"})).await;
        hear(&mut socket, "pong").await;
        tokio::time::sleep(lease / 15).await;
    }
    assert_eq!(served.get("/v1/runs/mine").await.json()["status"], "running");
    cancel(&served, "http", "mine").await;
    signal(&mut socket, "mine", "run.cancel_requested").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_producer_whose_body_is_open_hears_of_cancel_from_its_heartbeat_and_ends_in_its_own_words() {
    let served = Served::start().await;
    let mut body = served.open("/v1/runs/r/events?dialect=runwire", &[]).await;
    body.chunk(&format!("{STARTED}\n")).await;
    served.until_records("r", 1).await;
    let beat = async || served.post("/v1/runs/r/heartbeat", "").await.json();
    assert_eq!(beat().await, json!({"status": "running", "cancel_requested": false}));
    cancel(&served, "http", "r").await;
    assert_eq!(beat().await, json!({"status": "running", "cancel_requested": true}));
    body.chunk("{\"type\":\"run.cancelled\",\"reason\":\"tidied up\"}\n").await;
    body.end().await;
    body.answer().await.unwrap().written(2, 0);
    assert_eq!(served.closed("r").await["status"], "cancelled");
    assert_eq!(beat().await["status"], "cancelled");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_producer_that_ignores_cancel_is_ended_after_the_grace_period_and_gets_a_signal() {
    let options = SqliteOptions { cancel_grace: Duration::from_millis(50), ..SqliteOptions::default() };
    let served = Served::with_store(options, |_| {}).await;
    let mut body = served.open("/v1/runs/r/events?dialect=runwire", &[]).await;
    body.chunk(&format!("{STARTED}\n")).await;
    served.until_records("r", 1).await;
    cancel(&served, "http", "r").await;
    assert_eq!(served.closed("r").await["status"], "cancelled");
    body.chunk("{\"type\":\"run.completed\"}\n").await;
    body.answer().await.unwrap().problem(409, "run_closed");
    served.one_end("r").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_of_the_server_hears_of_cancel_through_every_channel() {
    let script = r#"read start; echo '{"type":"run_start"}'; read cancel
        case "$cancel" in *run.cancel_requested*) echo '{"reply":"heard","stop_reason":"cancelled"}';; esac"#;
    let served = Served::with(|config| config.agents = vec![exec_agent(script)]).await;
    for channel in ["http", "socket"] {
        served.post("/v1/runs", &json!({"run_id": channel, "agent": "a"}).to_string()).await;
        served.until_status(channel, "running").await;
        cancel(&served, channel, channel).await;
        assert_eq!(served.closed(channel).await["status"], "cancelled");
        assert_eq!(served.texts(channel).await, "heard");
    }
    let mut loom = Socket::connect(&format!("ws://{}/loom", served.address)).await;
    loom.say(json!({"type": "run", "id": 1, "message": "hi", "run_id": "loom"})).await;
    assert_eq!(loom.hear().await.unwrap()["event"]["type"], "run_start");
    loom.say(json!({"type": "cancel", "id": 1})).await;
    let end = loop {
        let message = loom.hear().await.unwrap();
        if message["type"] == "run_end" {
            break message;
        }
    };
    assert_eq!((&end["reply"], &end["stop_reason"]), (&json!("heard"), &json!("cancelled")), "{end}");
    assert_eq!(served.closed("loom").await["status"], "cancelled");
    served.stopped().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_done_again_over_a_socket_too() {
    let served = Served::with(|config| config.agents = vec![exec_agent(r#"echo '{"reply":"done"}'"#)]).await;
    served.post("/v1/runs", r#"{"run_id":"r","agent":"a","message":"hi"}"#).await;
    served.closed("r").await;
    let mut socket = served.socket().await;
    for (accepted, duplicates) in [(1, 0), (0, 1)] {
        socket.say(json!({"op": "retry", "id": 1, "run": "r", "run_id": "again"})).await;
        let ack = hear(&mut socket, "ack").await;
        assert_eq!((&ack["accepted"], &ack["duplicates"]), (&json!(accepted), &json!(duplicates)), "{ack}");
        assert_eq!(ack["run"], "again");
    }
    let again = served.closed("again").await;
    assert_eq!((&again["thread_id"], &again["message"]), (&json!("r"), &json!("hi")));
    socket.say(json!({"op": "retry", "id": 2, "run": "nobody"})).await;
    assert_eq!(socket.hear().await.unwrap()["code"], "run_unknown");
    served.stopped().await;
}
