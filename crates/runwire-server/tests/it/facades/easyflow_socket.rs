//! EasyFlow over a WebSocket: chats, and the answer to a form as its §12 has it.

use serde_json::{Value, json};

use super::serving;
use crate::harness::Served;
use crate::reading::Socket;

const FORM: &str = r#"{"protocol":"easyflow-chat","version":"1.1","domain":"interaction","type":"form_request","conversation_id":"c","payload":{"form_id":"f","title":"Who?","schema":{"type":"object","required":["n"],"properties":{"n":{"type":"integer"}}}}}"#;

async fn connect(served: &Served, path: &str) -> Socket {
    Socket::connect(&format!("ws://{}{path}", served.address)).await
}

async fn ask(served: &Served) {
    served.post("/v1/runs/r/events?dialect=easyflow-chat&thread=c", FORM).await.written(1, 0);
}

fn answer(values: Value) -> Value {
    json!({"conversation_id": "c", "form_id": "f", "values": values})
}

/// Reads frames up to one of a domain and type.
async fn until(socket: &mut Socket, domain: &str, kind: &str) -> Vec<Value> {
    let mut frames = Vec::new();
    loop {
        let frame = socket.hear().await.expect("the socket was closed");
        let is_it = frame["domain"] == domain && frame["type"] == kind;
        frames.push(frame);
        if is_it {
            return frames;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_form_is_answered_over_either_socket_as_the_document_says() {
    for path in ["/api/v1/bot/ws", "/v1/ws"] {
        let served = serving().await;
        ask(&served).await;
        let mut socket = connect(&served, path).await;
        let mut talk = async |message: Value| -> Value {
            socket.say(message).await;
            socket.hear().await.expect("the socket was closed")
        };
        let wrong = talk(answer(json!({"n": "one"}))).await;
        assert_eq!(
            (&wrong["op"], &wrong["form_id"], &wrong["code"], &wrong["errors"][0]["pointer"]),
            (&json!("error"), &json!("f"), &json!("invalid_answer"), &json!("/n")),
            "{path}"
        );
        let ack = talk(answer(json!({"n": 1}))).await;
        let expected = json!({
            "op": "ack", "form_id": "f", "conversation_id": "c", "run_id": "r", "interaction_id": "f",
            "decision": "submitted", "status": "running",
        });
        assert_eq!(ack, expected, "{path}");
        // The same again is fine, another is too late.
        assert_eq!(talk(answer(json!({"n": 1}))).await, expected, "{path}");
        assert_eq!(talk(answer(json!({"n": 2}))).await["code"], "interaction_closed", "{path}");
        // A form that is asked again is answered under its own id.
        ask(&served).await;
        let again = talk(json!({"conversationId": "c", "formId": "f", "values": {"n": 3}})).await;
        assert_eq!((&again["form_id"], &again["interaction_id"]), (&json!("f"), &json!("f.2")), "{path}");
        let nobody = talk(json!({"conversation_id": "nobody", "form_id": "f", "values": {}})).await;
        assert_eq!((&nobody["op"], &nobody["code"]), (&json!("error"), &json!("thread_unknown")), "{path}");
        assert_eq!(talk(json!({"conversation_id": "c", "form_id": 1})).await["code"], "bad_body", "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conversation_is_held_over_one_socket() {
    let served = serving().await;
    let mut socket = connect(&served, "/api/v1/bot/ws").await;
    socket.say(json!({"prompt": "hi", "botId": "demo", "conversationId": "c"})).await;
    let asked = until(&mut socket, "interaction", "form_request").await;
    assert!(asked[0]["meta"]["run_id"].is_string(), "{}", asked[0]);
    assert!(
        asked.iter().all(|frame| frame["protocol"] == "easyflow-chat" && frame["conversation_id"] == "c")
    );
    let filled = json!({"name": "Ann", "email": "ann@example.com"});
    socket.say(json!({"conversation_id": "c", "form_id": "trip", "values": filled})).await;
    let mut acknowledged = false;
    loop {
        let message = socket.hear().await.expect("the socket was closed");
        acknowledged |= message["op"] == "ack" && message["form_id"] == "trip";
        if message["type"] == "form_request" {
            break;
        }
    }
    assert!(acknowledged, "the answer is acknowledged");
    // A page that is loaded anew attaches without a prompt.
    let mut other = connect(&served, "/api/v1/bot/ws").await;
    other.say(json!({"conversationId": "c"})).await;
    let present = until(&mut other, "interaction", "form_request").await;
    assert_eq!(present[0]["meta"]["run_id"], asked[0]["meta"]["run_id"]);
    until(&mut other, "system", "status").await;
    other.say(json!({"conversation_id": "c", "form_id": "booking", "values": {"approved": false}})).await;
    for socket in [&mut socket, &mut other] {
        until(socket, "system", "done").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_socket_stays_open_after_an_error() {
    let served = serving().await;
    served.get("/api/v1/bot/ws").await.problem(426, "not_a_websocket");
    let mut socket = connect(&served, "/api/v1/bot/ws").await;
    for wrong in [json!({}), json!([1]), json!("x"), json!({"values": {}})] {
        socket.say(wrong.clone()).await;
        let told = socket.hear().await.unwrap();
        assert_eq!((&told["op"], &told["code"]), (&json!("error"), &json!("bad_message")), "{wrong}");
    }
    // A chat that is refused gets what it gets over HTTP: an error of the protocol.
    for (wrong, code) in [
        (json!({"conversationId": "nobody"}), "thread_unknown"),
        (json!({"prompt": 1, "conversationId": "c"}), "bad_body"),
        (json!({"prompt": "hi", "botId": "nobody", "conversationId": "c"}), "agent_unknown"),
    ] {
        socket.say(wrong.clone()).await;
        let told = socket.hear().await.unwrap();
        assert_eq!((&told["domain"], &told["type"]), (&json!("system"), &json!("error")), "{wrong}");
        assert_eq!(
            (&told["payload"]["code"], &told["conversation_id"]),
            (&json!(code), &wrong["conversationId"])
        );
    }
    let mut plain = connect(&served, "/v1/ws").await;
    for wrong in [
        json!({"form_id": "f"}),
        json!({"conversation_id": "c"}),
        json!({"op": 1, "conversation_id": "c", "form_id": "f"}),
    ] {
        plain.say(wrong.clone()).await;
        assert_eq!(plain.hear().await.unwrap()["code"], "bad_message", "{wrong}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_socket_names_the_agent_of_chats_that_name_none() {
    let served = serving().await;
    let mut socket = connect(&served, "/api/v1/bot/ws?agent=failing").await;
    socket.say(json!({"prompt": "hi"})).await;
    let frames = until(&mut socket, "business", "error").await;
    assert!(frames[0]["meta"]["run_id"].is_string(), "{frames:?}");
}
