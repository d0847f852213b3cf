//! Reading with `after=end`: the stream starts at the end and sends its start cursor.

use serde_json::{Value, json};

use crate::harness::{COMPLETED, Served, delta};
use crate::reading::{JSON, NDJSON, SSE};

/// A run `r` in the thread `t` with three records.
async fn begun() -> Served {
    let served = Served::start().await;
    served.post("/v1/runs/r/events?dialect=runwire&thread=t", &delta("old").repeat(3)).await.written(3, 0);
    served
}

async fn write(served: &Served, content: &str) {
    served.post("/v1/runs/r/events", &delta(content)).await.written(1, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_from_the_end_sends_its_start_cursor_and_then_new_frames() {
    let served = begun().await;
    // The second is served by hyper: its request is unusual.
    for (place, more) in [("runs/r", ""), ("runs/r", "x"), ("threads/t", "")] {
        let unusual = [("content-length", "0")];
        let headers: Vec<_> =
            [SSE].into_iter().chain(unusual.into_iter().filter(|_| !more.is_empty())).collect();
        let mut stream = served.read(&format!("/v1/{place}/events?after=end"), &headers).await;
        let start = stream.headers["runwire-cursor"].to_str().unwrap().to_owned();
        let first = stream.block().await.unwrap();
        assert_eq!((first.id.as_deref(), first.data), (Some(&*start), None), "{place}");
        assert_eq!(stream.block().await.unwrap().comment.as_deref(), Some("caught-up"));
        // Cut off now, a reader comes back with what it knows, and loses nothing.
        write(&served, "new").await;
        let again = format!("/v1/{place}/events?after=end");
        let mut again = served.read(&again, &[SSE, ("last-event-id", &start)]).await;
        assert!(!again.headers.contains_key("runwire-cursor"));
        for stream in [&mut stream, &mut again] {
            let event = stream.event().await.unwrap();
            assert_eq!(event.json()["content"], "new", "{place}");
            assert!(event.id.is_some());
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn lines_and_pages_from_the_end_have_their_start_cursor() {
    let served = begun().await;
    for place in ["runs/r", "threads/t"] {
        let path = format!("/v1/{place}/events?after=end&dialect=loom");
        let head = served.get("/v1/threads/t").await.json()["cursor"].as_str().unwrap().to_owned();
        let mut lines = served.read(&path, &[NDJSON]).await;
        let mut wrapped = served.read(&format!("{path}&cursors=true"), &[NDJSON]).await;
        for stream in [&lines, &wrapped] {
            assert_eq!(stream.headers["runwire-cursor"].to_str().unwrap(), head, "{place}");
        }
        let page = served.get_with(&path, &[JSON]).await.json();
        assert_eq!(page, json!({"frames": [], "next": head}), "{place}");
        write(&served, "new").await;
        assert!(lines.line().await.unwrap().contains("new"));
        let told: Value = serde_json::from_str(&wrapped.line().await.unwrap()).unwrap();
        assert!(told["frame"].to_string().contains("new"), "{told}");
        let next =
            served.get_with(&format!("/v1/{place}/events?dialect=loom&after={head}"), &[JSON]).await.json();
        assert_eq!((next["frames"].as_array().unwrap().len(), &next["next"]), (1, &Value::Null), "{next}");
        assert_eq!(next["frames"][0], told);
    }
    // Without following, a stream tells the place and nothing else.
    let head = served.get("/v1/threads/t").await.json()["cursor"].as_str().unwrap().to_owned();
    let mut stream = served.read("/v1/runs/r/events?after=end&follow=false", &[SSE]).await;
    assert_eq!(stream.rest_of_bytes().await, format!("id: {head}\n\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subscription_from_the_end_sends_its_start_cursor() {
    let served = begun().await;
    for place in [json!({"run": "r"}), json!({"thread": "t"})] {
        let head = served.get("/v1/threads/t").await.json()["cursor"].as_str().unwrap().to_owned();
        let mut socket = served.socket().await;
        let mut what = place.clone();
        what["after"] = json!("end");
        socket.subscribe("a", what).await;
        assert_eq!(socket.hear().await.unwrap(), json!({"op": "caught_up", "id": "a", "cursor": head}));
        write(&served, "new").await;
        let frame = socket.hear().await.unwrap();
        assert_eq!((&frame["op"], &frame["frame"]["content"]), (&json!("frame"), &json!("new")));
        let mut again = place;
        again["after"] = json!(head);
        socket.subscribe("b", again).await;
        assert_eq!(socket.hear().await.unwrap()["frame"], frame["frame"]);
        assert_eq!(socket.hear().await.unwrap(), json!({"op": "caught_up", "id": "b"}));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_a_closed_run_is_its_end() {
    let served = begun().await;
    served.post("/v1/runs/r/events", COMPLETED).await.written(1, 0);
    for dialect in ["runwire", "ag-ui", "text"] {
        let path = format!("/v1/runs/r/events?dialect={dialect}&after=end");
        for accept in [SSE, NDJSON] {
            if (dialect, accept) != ("text", NDJSON) {
                assert_eq!(served.get_with(&path, &[accept]).await.status, 204, "{dialect}");
            }
        }
    }
    let page = served.get_with("/v1/runs/r/events?after=end", &[JSON]).await.json();
    assert_eq!(page, json!({"frames": [], "next": null}));
    let mut socket = served.socket().await;
    socket.subscribe("a", json!({"run": "r", "after": "end"})).await;
    assert_eq!(socket.hear().await.unwrap(), json!({"op": "end", "id": "a"}));
    // Its thread goes on.
    let mut thread = served.read("/v1/threads/t/events?after=end", &[SSE]).await;
    thread.comment("caught-up").await;
    served.post("/v1/runs/r2/events?dialect=runwire&thread=t", &delta("next")).await.written(1, 0);
    let first = thread.event().await.unwrap().json();
    assert_eq!((&first["type"], &first["run_id"]), (&json!("run.started"), &json!("r2")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_has_not_begun_is_read_from_its_start_at_the_end() {
    let served = begun().await;
    served.post("/v1/runs/r/events", COMPLETED).await.written(1, 0);
    assert_eq!(served.post("/v1/runs", r#"{"run_id":"r2","thread_id":"t"}"#).await.status, 201);
    let mut stream = served.read("/v1/runs/r2/events?after=end", &[SSE]).await;
    stream.comment("caught-up").await;
    served.post("/v1/runs/r2/events?dialect=runwire", &delta("a")).await.written(1, 0);
    assert_eq!(stream.event().await.unwrap().json()["type"], "run.started");
    let wrong = served.get_with("/v1/runs/r/events?after=End", &[SSE]).await;
    assert_eq!(wrong.problem(400, "bad_cursor")["parameter"], "after");
}
