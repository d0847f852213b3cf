//! Threads, runs, messages: created, listed, shown, cancelled, deleted.

use bytes::Bytes;
use http::Method;
use serde_json::json;

use crate::harness::{Answer, COMPLETED, Served, delta};

async fn delete(served: &Served, path: &str) -> Answer {
    served.send(served.request(Method::DELETE, path, &[]).body(Bytes::new()).unwrap()).await
}

#[tokio::test]
async fn the_same_words_create_the_same_run_and_others_are_refused() {
    let served = Served::start().await;
    let words = r#"{"run_id":"r","thread_id":"t","agent":"demo","message":"hi","input":{"n":1}}"#;
    let created = served.post("/v1/runs", words).await;
    assert_eq!(created.status, 201);
    let run = created.json();
    assert_eq!(
        (&run["run_id"], &run["thread_id"], &run["status"]),
        (&"r".into(), &"t".into(), &"pending".into())
    );
    assert_eq!((&run["cursor"], &run["agent"], &run["usage"]), (&"0".into(), &"demo".into(), &json!(null)));
    let again = served.post("/v1/runs", words).await;
    assert_eq!((again.status.as_u16(), &again.json()["run_id"]), (200, &"r".into()));
    let other = served.post("/v1/runs", r#"{"run_id":"r","thread_id":"t","message":"ho"}"#).await;
    assert_eq!(other.problem(409, "run_exists")["run_id"], "r");
    // Also with a number that nothing can calculate with.
    for status in [201, 200] {
        let beyond = served.post("/v1/runs", r#"{"run_id":"beyond","input":{"n":1e999}}"#).await;
        assert_eq!(beyond.status, status);
    }
    let minted = served.post("/v1/runs", "").await;
    assert_eq!(minted.status, 201);
    assert!(minted.json()["run_id"].as_str().is_some_and(|id| !id.is_empty()));
}

#[tokio::test]
async fn a_run_shows_what_was_written() {
    let served = Served::start().await;
    let body = delta("Hello")
        + "{\"type\":\"tool.called\",\"call_id\":\"c1\",\"name\":\"search\",\"arguments\":{}}\n"
        + "{\"type\":\"usage\",\"prompt_tokens\":3,\"completion_tokens\":4}\n"
        + "{\"type\":\"run.failed\",\"error\":{\"code\":\"E1\",\"message\":\"no luck\"}}\n";
    served.post("/v1/runs/r/events?thread=t", &body).await.written(4, 0);
    let run = served.get("/v1/runs/r").await.json();
    assert_eq!((&run["status"], &run["cursor"]), (&"failed".into(), &"4".into()));
    assert_eq!((&run["counts"]["records"], &run["counts"]["tool_calls"]), (&4.into(), &1.into()));
    assert_eq!(run["usage"], json!({"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}));
    assert_eq!(run["error"], json!({"code": "E1", "message": "no luck"}));
    assert!(run["ended_at"].as_str().is_some_and(|at| at.ends_with('Z')));
    let message = served.get("/v1/runs/r/message").await.json();
    assert_eq!((&message["mainContent"], &message["hasError"]), (&"Hello".into(), &true.into()));
    assert_eq!(message["toolCalls"][0]["toolName"], "search");
}

#[tokio::test]
async fn lists_are_newest_first_and_paged() {
    let served = Served::start().await;
    for at in 0..5 {
        let path = format!("/v1/runs/r{at}/events?thread=t{at}");
        served.post(&path, &(delta("a") + if at % 2 == 0 { COMPLETED } else { "" })).await;
    }
    let ids = |page: &serde_json::Value, of: &str, id: &str| -> Vec<String> {
        let items = page[of].as_array().unwrap();
        items.iter().map(|item| item[id].as_str().unwrap().to_owned()).collect()
    };
    let first = served.get("/v1/runs?limit=2").await.json();
    assert_eq!(
        (ids(&first, "runs", "run_id"), &first["next"]),
        (vec!["r4".into(), "r3".into()], &"r3".into())
    );
    let second = served.get("/v1/runs?limit=3&before=r3").await.json();
    assert_eq!(ids(&second, "runs", "run_id"), ["r2", "r1", "r0"]);
    assert_eq!(second["next"], json!(null));
    let open = served.get("/v1/runs?status=running").await.json();
    assert_eq!(ids(&open, "runs", "run_id"), ["r3", "r1"]);
    assert_eq!(ids(&served.get("/v1/runs?thread=t1").await.json(), "runs", "run_id"), ["r1"]);
    let threads = served.get("/v1/threads?limit=2").await.json();
    assert_eq!(
        (ids(&threads, "threads", "thread_id"), &threads["next"]),
        (vec!["t4".into(), "t3".into()], &"t3".into())
    );
}

#[tokio::test]
async fn a_threads_messages_come_in_order_and_in_pages() {
    let served = Served::start().await;
    for at in 0..4 {
        let path = format!("/v1/runs/r{at}/events?thread=t");
        served.post(&path, &(delta(&format!("answer {at}")) + COMPLETED)).await.written(2, 0);
    }
    let texts = |page: &serde_json::Value| -> Vec<String> {
        let messages = page["messages"].as_array().unwrap();
        messages.iter().map(|message| message["mainContent"].as_str().unwrap().to_owned()).collect()
    };
    let all = served.get("/v1/threads/t/messages").await.json();
    assert_eq!(texts(&all), ["answer 0", "answer 1", "answer 2", "answer 3"]);
    assert_eq!(all["next"], json!(null));
    let newest = served.get("/v1/threads/t/messages?limit=2").await.json();
    assert_eq!((texts(&newest), &newest["next"]), (vec!["answer 2".into(), "answer 3".into()], &"r2".into()));
    let older = served.get("/v1/threads/t/messages?limit=2&before=r2").await.json();
    assert_eq!(texts(&older), ["answer 0", "answer 1"]);
    served.get("/v1/threads/t/messages?before=other").await.problem(404, "run_unknown");
    served.get("/v1/threads/nothing/messages").await.problem(404, "thread_unknown");
}

#[tokio::test]
async fn a_threads_messages_include_user_messages_in_order() {
    let served = Served::start().await;
    let text = |id: &str, role: &str, content: &str| {
        format!(
            "{{\"type\":\"text.started\",\"message_id\":\"{id}\",\"role\":\"{role}\"}}\n\
             {{\"type\":\"text.delta\",\"message_id\":\"{id}\",\"content\":\"{content}\"}}\n\
             {{\"type\":\"text.finished\",\"message_id\":\"{id}\"}}\n"
        )
    };
    let asked = json!({"run_id": "r1", "thread_id": "t", "message": "Where am I?"});
    assert_eq!(served.post("/v1/runs", &asked.to_string()).await.status, 201);
    let frames = text("a1", "assistant", "In Paris.") + &text("u1", "user", "In French, please.");
    let frames = frames + &text("a2", "assistant", "À Paris.") + COMPLETED;
    served.post("/v1/runs/r1/events?dialect=runwire", &frames).await.written(10, 0);
    let started = r#"{"type":"run.started","message":"Thanks","message_id":"m2"}"#;
    // The agent repeats what it was asked, and is told something before it says its first word.
    let frames =
        text("m2", "user", "Thanks") + &text("u2", "user", "Be brief.") + &text("a3", "assistant", "OK");
    let body = format!("{started}\n{frames}{COMPLETED}");
    served.post("/v1/runs/r2/events?thread=t&dialect=runwire", &body).await.written(11, 0);

    let said = |page: &serde_json::Value| -> Vec<(String, String, String)> {
        let text = |message: &serde_json::Value, key: &str| message[key].as_str().unwrap().to_owned();
        let messages = page["messages"].as_array().unwrap().iter();
        messages.map(|m| (text(m, "role"), text(m, "messageId"), text(m, "mainContent"))).collect()
    };
    let of = |role: &str, id: &str, content: &str| (role.to_owned(), id.to_owned(), content.to_owned());
    let first = [
        of("user", "r1:user", "Where am I?"),
        of("assistant", "r1", "In Paris."),
        of("user", "u1", "In French, please."),
        of("assistant", "r1#2", "À Paris."),
    ];
    let second = [of("user", "m2", "Thanks"), of("user", "u2", "Be brief."), of("assistant", "r2", "OK")];
    let all = served.get("/v1/threads/t/messages").await.json();
    assert_eq!(said(&all), [&first[..], &second[..]].concat());
    for message in all["messages"].as_array().unwrap() {
        assert_eq!((&message["isStreaming"], &message["status"]), (&json!(false), &"completed".into()));
        assert!(message["metadata"]["startTime"].as_u64() <= message["metadata"]["endTime"].as_u64());
    }
    // Pages are counted in runs, whose messages stay together.
    let newest = served.get("/v1/threads/t/messages?limit=1").await.json();
    assert_eq!((said(&newest), &newest["next"]), (second.to_vec(), &"r2".into()));
    let older = served.get("/v1/threads/t/messages?limit=1&before=r2").await.json();
    assert_eq!(said(&older), first);
    // A run's own message is the assistant's, whole.
    let whole = served.get("/v1/runs/r1/message").await.json();
    assert_eq!(
        (&whole["role"], &whole["mainContent"]),
        (&"assistant".into(), &"In Paris.\n\nÀ Paris.".into())
    );
    let asked = json!({"run_id": "r3", "thread_id": "t", "message": "Still there?"});
    assert_eq!(served.post("/v1/runs", &asked.to_string()).await.status, 201);
    let page = served.get("/v1/threads/t/messages").await.json();
    assert_eq!(said(&page).last().unwrap(), &of("user", "r3:user", "Still there?"));
    // Of a run that goes on, the assistant's turn comes after what people said last.
    let frames = text("a4", "assistant", "Where to?") + &text("u4", "user", "Home.");
    served.post("/v1/runs/live/events?thread=live&dialect=runwire", &frames).await.written(6, 0);
    let page = served.get("/v1/threads/live/messages").await.json();
    let expected = [("live", "Where to?", false), ("u4", "Home.", false), ("live#2", "", true)];
    for (message, (id, content, streaming)) in page["messages"].as_array().unwrap().iter().zip(expected) {
        assert_eq!((&message["messageId"], &message["mainContent"]), (&id.into(), &content.into()));
        assert_eq!(message["isStreaming"], streaming);
    }
    assert_eq!(page["messages"].as_array().unwrap().len(), 3);
    // A person's message keeps an id that a part of the run would have.
    let frames = text("a5", "assistant", "One.") + &text("own#2", "user", "Two.");
    let frames = frames + &text("a6", "assistant", "Three.") + COMPLETED;
    served.post("/v1/runs/own/events?thread=own&dialect=runwire", &frames).await.written(10, 0);
    let page = served.get("/v1/threads/own/messages").await.json();
    let ids: Vec<String> = said(&page).into_iter().map(|(_, id, _)| id).collect();
    assert_eq!(ids, ["own", "own#2", "own#3"]);
}

#[tokio::test]
async fn a_cancel_stops_what_waits_and_asks_what_runs() {
    let served = Served::start().await;
    served.post("/v1/runs", r#"{"run_id":"waiting"}"#).await;
    let cancelled = served.post("/v1/runs/waiting/cancel", "").await;
    assert_eq!((cancelled.status.as_u16(), &cancelled.json()["status"]), (200, &"cancelled".into()));

    served.post("/v1/runs/r/events", &delta("a")).await.written(1, 0);
    assert_eq!(served.post("/v1/runs/r/heartbeat", "").await.json()["cancel_requested"], false);
    let asked = served.post("/v1/runs/r/cancel", r#"{"reason":"enough"}"#).await.json();
    assert_eq!((&asked["status"], &asked["cancel_requested"]), (&"running".into(), &true.into()));
    let beat = served.post("/v1/runs/r/heartbeat", "").await.json();
    assert_eq!(beat, json!({"status": "running", "cancel_requested": true}));
    served.post("/v1/runs/r/events", "{\"type\":\"run.cancelled\"}\n").await.written(1, 0);
    assert_eq!(served.post("/v1/runs/r/cancel", "").await.json()["status"], "cancelled");
    served.post("/v1/runs/unknown/cancel", "").await.problem(404, "run_unknown");
    served.post("/v1/runs/unknown/heartbeat", "").await.problem(404, "run_unknown");
}

#[tokio::test]
async fn a_deleted_thread_is_gone_and_its_id_used_up() {
    let served = Served::start().await;
    served.post("/v1/runs/r/events?thread=t", &delta("a")).await.written(1, 0);
    assert_eq!(delete(&served, "/v1/threads/t").await.problem(409, "run_open")["run_id"], "r");
    assert_eq!(delete(&served, "/v1/threads/t?force=true").await.status, 204);
    served.get("/v1/threads/t").await.problem(410, "thread_deleted");
    served.post("/v1/runs/q/events?thread=t", &delta("a")).await.problem(410, "thread_deleted");
    delete(&served, "/v1/threads/nothing").await.problem(404, "thread_unknown");
}

#[tokio::test]
async fn a_thread_is_created_once_and_shown() {
    let served = Served::start().await;
    assert_eq!(served.post("/v1/threads", r#"{"thread_id":"t","parallel":true}"#).await.status, 201);
    assert_eq!(served.post("/v1/threads", r#"{"thread_id":"t","parallel":true}"#).await.status, 200);
    let other = served.post("/v1/threads", r#"{"thread_id":"t"}"#).await;
    assert_eq!(other.problem(409, "thread_exists")["thread_id"], "t");
    let thread = served.get("/v1/threads/t").await.json();
    assert_eq!((&thread["parallel"], &thread["cursor"]), (&true.into(), &"0".into()));
    served.get("/v1/threads/nothing").await.problem(404, "thread_unknown");
}

#[tokio::test]
async fn the_server_says_that_it_lives_and_is_ready() {
    let served = Served::start().await;
    assert_eq!(served.get("/healthz").await.json(), json!({"status": "ok"}));
    let ready = json!({"ready": true, "store": {"kind": "sqlite", "state": "up"}});
    assert_eq!(served.get("/readyz").await.json(), ready);
}
