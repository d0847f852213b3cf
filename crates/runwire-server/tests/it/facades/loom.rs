//! The façade of Loom: limits, retries, disconnects.

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

use super::serving;
use crate::harness::{Served, within_timeout};

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

async fn connect(served: &Served, query: &str) -> Socket {
    within_timeout(connect_async(format!("ws://{}/loom{query}", served.address))).await.unwrap().0
}

async fn send(socket: &mut Socket, message: Value) {
    socket.send(Message::text(message.to_string())).await.unwrap();
}

async fn next(socket: &mut Socket) -> Value {
    within_timeout(async {
        loop {
            if let Message::Text(text) = socket.next().await.unwrap().unwrap() {
                return serde_json::from_str(&text).unwrap();
            }
        }
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_over_one_socket_end_once_each_and_the_id_is_free_again() {
    let served = serving().await;
    let mut socket = connect(&served, "?agent=failing").await;
    for _ in 0..2 {
        send(&mut socket, json!({"type": "run", "id": "a", "message": "hi", "agent": "endless"})).await;
        send(&mut socket, json!({"type": "run", "id": "b", "message": "hi"})).await;
        send(&mut socket, json!({"type": "run", "id": "a", "message": "hi"})).await;
        // The other run may end before it is said that the id is taken.
        let mut failed = None;
        let taken = loop {
            match next(&mut socket).await {
                message if message["type"] == "run_end" => failed = Some(message),
                message if message["type"] == "error" => break message,
                _ => {}
            }
        };
        assert_eq!((&taken["type"], &taken["problem"]["code"]), (&"error".into(), &"bad_message".into()));
        send(&mut socket, json!({"type": "cancel", "id": "a"})).await;
        let mut reasons = Vec::from_iter(failed.take().map(|end: Value| end["stop_reason"].to_string()));
        while reasons.len() < 2 {
            let message = next(&mut socket).await;
            if message["type"] == "run_end" {
                reasons.push(message["stop_reason"].to_string());
            }
        }
        reasons.sort();
        assert_eq!(reasons, [r#""cancelled""#, r#""error""#]);
    }
    send(&mut socket, json!({"type": "ping"})).await;
    assert_eq!(next(&mut socket).await, json!({"type": "pong"}));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_socket_that_closes_leaves_its_run_to_go_on() {
    let served = serving().await;
    let mut socket = connect(&served, "").await;
    let run =
        json!({"type": "run", "id": 1, "message": "hi", "agent": "endless", "run_id": "r", "thread_id": "t"});
    send(&mut socket, run.clone()).await;
    assert_eq!(next(&mut socket).await["event"]["run_id"], "r");
    socket.close(None).await.unwrap();
    served.until_records("r", 30).await;
    // The same words again are told the same run, from its beginning.
    let mut socket = connect(&served, "").await;
    send(&mut socket, run).await;
    assert_eq!(next(&mut socket).await["event"]["type"], "run_start");
    send(&mut socket, json!({"type": "cancel", "id": 1})).await;
    while next(&mut socket).await["type"] != "run_end" {}
    assert_eq!(served.get("/v1/runs/r").await.json()["status"], "cancelled");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_socket_stays_open_after_an_error() {
    let served = serving().await;
    served.get("/loom").await.problem(426, "not_a_websocket");
    let mut socket = connect(&served, "").await;
    let long = "x".repeat(300);
    for (message, code) in [
        ("{".to_owned(), "bad_message"),
        (r#"{"type":"run","id":[],"message":"hi"}"#.to_owned(), "bad_message"),
        (format!(r#"{{"type":"run","id":"{long}","message":"hi"}}"#), "bad_message"),
        (r#"{"type":"run","id":"a","message":"hi"}"#.to_owned(), "agent_needed"),
        (r#"{"type":"run","id":"a","message":1,"agent":"demo"}"#.to_owned(), "bad_body"),
        (r#"{"type":"run","id":"a","message":"hi","agent":"demo","thread_id":"\n"}"#.to_owned(), "bad_id"),
        ("[".repeat(1000), "bad_message"),
    ] {
        socket.send(Message::text(message.clone())).await.unwrap();
        let told = next(&mut socket).await;
        assert_eq!((&told["type"], &told["problem"]["code"]), (&"error".into(), &code.into()), "{message}");
    }
    socket.send(Message::binary(vec![1])).await.unwrap();
    assert_eq!(next(&mut socket).await["type"], "error");
    let foreign = http::Request::builder().uri(format!("ws://{}/loom", served.address));
    let foreign = foreign.header("origin", "https://evil.example").header("host", served.address.to_string());
    let foreign = foreign.header("connection", "upgrade").header("upgrade", "websocket");
    let foreign =
        foreign.header("sec-websocket-version", "13").header("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==");
    match within_timeout(connect_async(foreign.body(()).unwrap())).await {
        Err(Error::Http(answer)) => assert_eq!(answer.status().as_u16(), 403),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn interactions_are_answered_over_the_socket_that_started_the_run() {
    let served = Served::with(|config| {
        let script = r#"echo '{"type":"tool_approval","call_id":"c1","name":"pay","arguments":{"sum":1}}'
            echo '{"type":"tool_approval","call_id":"c2","name":"ship","arguments":{}}'
            read start; read first; read second; echo '{"reply":"done"}'"#;
        config.agents = vec![crate::agents::fake_agents::exec_agent(script)];
    })
    .await;
    let mut socket = connect(&served, "").await;
    send(&mut socket, json!({"type": "run", "id": "a", "message": "hi", "run_id": "r"})).await;
    let mut asked = 0;
    while asked < 2 {
        asked += usize::from(next(&mut socket).await["event"]["type"] == "tool_approval");
    }
    // Several wait, so one must be named.
    let refused = |answer: &Value| {
        let (answer, mut message) = (answer.clone(), json!({"type": "answer", "id": "a"}));
        message.as_object_mut().unwrap().extend(answer.as_object().unwrap().clone());
        message
    };
    for (wrong, code) in [
        (json!({"approved": true}), "bad_message"),
        (json!({"approved": "yes", "call_id": "c1"}), "bad_body"),
        (json!({"call_id": "c1"}), "invalid_answer"),
        (json!({"call_id": "c3", "approved": true}), "interaction_unknown"),
        (json!({"interaction_id": "nobody", "approved": true}), "interaction_unknown"),
        (json!({"id": "b", "approved": true}), "bad_message"),
    ] {
        send(&mut socket, refused(&wrong)).await;
        let told = next(&mut socket).await;
        assert_eq!((&told["type"], &told["problem"]["code"]), (&"error".into(), &code.into()), "{wrong}");
    }
    let beyond = r#"{"type":"answer","id":"a","call_id":"c1","approved":true,"values":{"n":1e999}}"#;
    socket.send(Message::text(beyond)).await.unwrap();
    assert_eq!(next(&mut socket).await["problem"]["errors"][0]["pointer"], "/n");
    // The same answer again is fine, and another is told which one won.
    for (approved, told) in [(true, "answered"), (true, "answered"), (false, "error")] {
        send(&mut socket, json!({"type": "answer", "id": "a", "call_id": "c1", "approved": approved})).await;
        let message = loop {
            let message = next(&mut socket).await;
            if message["type"] != "run_stream_event" {
                break message;
            }
        };
        assert_eq!(message["type"], told, "{message}");
        let decision = message.get("decision").unwrap_or(&message["problem"]["answer"]["decision"]);
        assert_eq!(decision, "approved", "{message}");
    }
    // Of the last one it is clear which is meant.
    send(&mut socket, json!({"type": "answer", "id": "a", "approved": false, "reason": "too late"})).await;
    let end = loop {
        let message = next(&mut socket).await;
        if message["type"] == "run_end" {
            break message;
        }
    };
    assert_eq!(end["reply"], "done");
    let run = served.get("/v1/runs/r").await.json();
    let statuses: Vec<_> =
        run["interactions"].as_array().unwrap().iter().map(|asked| &asked["status"]).collect();
    assert_eq!(statuses, ["approved", "rejected"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn plain_frames_are_those_of_the_document() {
    let served = Served::with(|config| {
        let script = r#"read start; echo '{"type":"message_chunk","content":"hi","id":"agent"}'; echo '{"reply":"hi"}'"#;
        config.agents = vec![crate::agents::fake_agents::exec_agent(script)];
    })
    .await;
    let mut socket = connect(&served, "?frames=plain").await;
    let mut ids: Vec<u64> = Vec::new();
    for id in ["a", "b"] {
        send(&mut socket, json!({"type": "run", "id": id, "message": "hi", "thread_id": "t"})).await;
        let frames = [next(&mut socket).await, next(&mut socket).await, next(&mut socket).await];
        assert_eq!((&frames[0]["type"], &frames[1]["type"]), (&"run_start".into(), &"message_chunk".into()));
        assert_eq!(frames[2]["reply"], "hi");
        assert!(frames.iter().all(|frame| frame["session_id"] == "t"), "{frames:?}");
        ids.extend(frames.iter().map(|frame| frame["event_id"].as_u64().unwrap()));
    }
    assert!(ids.is_sorted_by(|one, next| one < next), "over both runs of the session: {ids:?}");
    // Everything else stays a message.
    send(&mut socket, json!({"type": "ping", "id": 1})).await;
    assert_eq!(next(&mut socket).await, json!({"type": "pong", "id": 1}));
    served.get("/loom").await.problem(426, "not_a_websocket");
    served.get("/loom?frames=bare").await.problem(400, "bad_query");
}
