//! Readers of threads and runs that are deleted, trimmed, ended or lost.

use std::time::Duration;

use http::{Method, StatusCode};
use runwire_log::RetentionLimits;
use runwire_log::sqlite::SqliteOptions;
use runwire_model::Timestamp;
use runwire_model::dialect::Dialect;
use serde_json::json;

use crate::harness::{COMPLETED, Served, delta};
use crate::reading::{JSON, NDJSON, SSE, Stream};

/// Removes every closed run.
async fn trim(served: &Served) {
    let ended_before = Some(Timestamp(u64::MAX));
    assert!(
        served.log.trim(RetentionLimits { ended_before, ..RetentionLimits::default() }).await.unwrap() > 0
    );
}

async fn delete(served: &Served, thread: &str, force: bool) -> StatusCode {
    let path = format!("/v1/threads/{thread}?force={force}");
    served.send(served.request(Method::DELETE, &path, &[]).body(bytes::Bytes::new()).unwrap()).await.status
}

/// More than sockets and readers hold: whoever reads none of it is still catching up.
fn much() -> String {
    delta(&"x".repeat(60_000)).repeat(100)
}

#[tokio::test(flavor = "multi_thread")]
async fn readers_of_a_thread_that_is_deleted_end_cleanly_and_find_it_gone() {
    let served = Served::start().await;
    served.post("/v1/runs/r/events?thread=t", &delta("a")).await.written(1, 0);
    served.post("/v1/runs/big/events?thread=u", &much()).await.written(100, 0);
    let mut caught_up: Vec<Stream> = Vec::new();
    for path in ["/v1/runs/r/events", "/v1/threads/t/events"] {
        let mut sse = served.read(path, &[SSE]).await;
        sse.comment("caught-up").await;
        let mut lines = served.read(path, &[NDJSON]).await;
        assert!(lines.line().await.is_some());
        caught_up.extend([sse, lines]);
    }
    let mut catching_up = Vec::new();
    for path in ["/v1/runs/big/events", "/v1/threads/u/events"] {
        for accept in [SSE, NDJSON] {
            catching_up.push(served.read(path, &[accept]).await);
        }
    }
    let mut socket = served.socket().await;
    socket.subscribe("run", json!({"run": "r"})).await;
    socket.frames_until("caught_up").await;
    socket.subscribe("thread", json!({"thread": "t"})).await;
    socket.frames_until("caught_up").await;

    assert_eq!(delete(&served, "t", false).await, 409, "a run is open");
    for thread in ["t", "u"] {
        assert_eq!(delete(&served, thread, true).await, 204);
    }
    for mut stream in caught_up {
        // Whoever was at the end sees how the run ended.
        let rest = stream.rest_of_bytes().await;
        assert!(rest.contains("run.cancelled"), "{rest}");
    }
    for mut stream in catching_up {
        // The connection is not broken off: the answer has a proper end.
        stream.rest_of_bytes().await;
    }
    for _ in 0..2 {
        socket.frames_until("end").await;
    }
    for path in ["/v1/runs/r/events", "/v1/threads/t/events", "/v1/runs/big/events", "/v1/threads/u/events"] {
        for accept in [SSE, NDJSON, JSON] {
            for headers in [vec![accept], vec![accept, ("last-event-id", "1-0")]] {
                served.get_with(path, &headers).await.problem(410, "thread_deleted");
            }
        }
    }
    socket.subscribe("again", json!({"run": "r"})).await;
    assert_eq!(socket.hear().await.unwrap()["code"], "thread_deleted");
}

#[tokio::test(flavor = "multi_thread")]
async fn readers_of_a_trimmed_thread_continue_or_get_the_oldest_cursor() {
    let served = Served::start().await;
    served.post("/v1/runs/old/events?thread=t", &(much() + COMPLETED)).await.written(101, 0);
    served.post("/v1/runs/new/events?thread=t", &delta("a")).await.written(1, 0);
    let mut behind = served.read("/v1/threads/t/events?raw=true", &[SSE]).await;
    let first = behind.event().await.unwrap();
    assert_eq!(first.id.as_deref(), Some("1-0"));
    let mut live = served.read("/v1/threads/t/events?after=101", &[SSE]).await;
    live.comment("caught-up").await;
    let mut socket = served.socket().await;
    socket.subscribe("live", json!({"thread": "t", "after": "101"})).await;
    socket.frames_until("caught_up").await;

    trim(&served).await;
    served.post("/v1/runs/new/events", &delta("b")).await.written(1, 0);
    assert_eq!(live.event().await.unwrap().json()["content"], "b", "whoever was at the end is not disturbed");
    assert_eq!(socket.hear().await.unwrap()["frame"]["content"], "b");

    // What was on its way comes in order and without a gap, then the answer ends.
    let mut seen = 1;
    for event in behind.rest().await {
        seen += 1;
        assert_eq!(event.id, Some(format!("{seen}-0")));
    }
    assert!(seen < 101, "the reader was not behind");
    let last = behind.last_id.unwrap();
    for headers in [[SSE, ("last-event-id", &last)], [NDJSON, ("last-event-id", "0")]] {
        let gone = served.get_with("/v1/threads/t/events", &headers).await.problem(410, "cursor_trimmed");
        assert_eq!(gone["oldest"], 102, "{gone}");
    }
    let gone = served.get_with("/v1/runs/old/events", &[SSE]).await.problem(410, "run_trimmed");
    assert_eq!(gone["oldest"], 102, "{gone}");
    socket.subscribe("late", json!({"thread": "t", "after": last})).await;
    let gone = socket.hear().await.unwrap();
    assert_eq!((&gone["code"], &gone["oldest"]), (&"cursor_trimmed".into(), &102.into()), "{gone}");

    // Without a cursor the thread begins with the oldest that is kept.
    let kept = served.events("/v1/threads/t/events?follow=false", &[SSE]).await;
    assert_eq!(kept[0].id.as_deref(), Some("102-0"));
    let kept = served.events("/v1/threads/t/events?follow=false&after=101", &[SSE]).await;
    assert_eq!(kept[0].id.as_deref(), Some("102-0"));
}

#[tokio::test(flavor = "multi_thread")]
async fn cursors_that_cannot_be_are_refused() {
    let served = Served::start().await;
    served.post("/v1/runs/r/events?thread=t", &delta("a")).await.written(1, 0);
    for path in ["/v1/runs/r/events", "/v1/threads/t/events"] {
        for bad in ["x", "1-", "-1", "1-2-3", "1.5", "18446744073709551616", "%201"] {
            served.get_with(&format!("{path}?after={bad}"), &[SSE]).await.problem(400, "bad_cursor");
        }
        served.get_with(path, &[SSE, ("last-event-id", "nonsense")]).await.problem(400, "bad_cursor");
        for future in ["2", "2-0", "9223372036854775807", "18446744073709551615-7"] {
            let problem = served.get_with(&format!("{path}?after={future}"), &[NDJSON]).await;
            assert_eq!(problem.problem(400, "cursor_beyond_end")["last_seq"], 1);
        }
        // An empty `Last-Event-ID` is what a browser sends that has seen no id.
        let events = served.events(&format!("{path}?follow=false"), &[SSE, ("last-event-id", "")]).await;
        assert_eq!(events.len(), 3);
    }
    let mut socket = served.socket().await;
    for (after, code) in [("x", "bad_cursor"), ("7", "cursor_beyond_end")] {
        socket.subscribe("s", json!({"run": "r", "after": after})).await;
        assert_eq!(socket.hear().await.unwrap()["code"], code);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cursor_of_another_stream_is_valid_in_the_same_thread() {
    let served = Served::start().await;
    for run in ["one", "two", "three"] {
        let body = delta("a") + &delta("b") + COMPLETED;
        served.post(&format!("/v1/runs/{run}/events?thread=t"), &body).await.written(3, 0);
    }
    let all = served.events("/v1/runs/two/events", &[SSE]).await;
    // Of an earlier run: everything. Of a later one: nothing.
    assert_eq!(served.events("/v1/runs/two/events?after=2-0", &[SSE]).await, all);
    assert_eq!(served.get_with("/v1/runs/two/events?after=8-0", &[SSE]).await.status, 204);
    // Of a dialect with more frames in a record: after the whole of it.
    let rest = served.events("/v1/runs/two/events?dialect=text&after=4-2", &[SSE]).await;
    assert_eq!(rest.iter().map(|event| event.data.clone().unwrap()).collect::<String>(), "b");
}

/// Reads like an `EventSource` until it is told to stop, and gives what it saw.
async fn event_source(served: &Served, path: &str) -> Vec<String> {
    let (mut last, mut seen) = (None::<String>, Vec::new());
    for _ in 0..5 {
        let mut headers = vec![SSE];
        headers.extend(last.as_deref().map(|last| ("last-event-id", last)));
        let mut stream = served.read(path, &headers).await;
        if stream.status == StatusCode::NO_CONTENT {
            return seen;
        }
        assert_eq!(stream.status, 200);
        seen.extend(stream.rest().await.into_iter().map(|event| event.data.unwrap()));
        last = stream.last_id.or(last);
    }
    panic!("{path}: a browser would come back for ever after {last:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_source_stops_at_the_end_of_a_run_in_every_dialect() {
    let served = Served::start().await;
    let tools = "{\"type\":\"tool.called\",\"call_id\":\"c\",\"name\":\"n\",\"arguments\":{}}\n";
    let bodies = [delta("a") + COMPLETED, tools.to_owned() + COMPLETED, COMPLETED.to_owned()];
    for (at, body) in bodies.iter().enumerate() {
        let run = format!("r{at}");
        served.post(&format!("/v1/runs/{run}/events"), body).await;
        let head = served.get(&format!("/v1/runs/{run}")).await.json()["cursor"].as_str().unwrap().to_owned();
        for dialect in
            Dialect::ALL.map(|dialect| format!("dialect={dialect}")).into_iter().chain(["raw=true".into()])
        {
            let path = format!("/v1/runs/{run}/events?{dialect}");
            let seen = event_source(&served, &path).await;
            let mut lines = served.read(&path, &[NDJSON]).await;
            assert_eq!(lines.lines().await.len(), seen.len(), "nothing came twice");
            for accept in [SSE, NDJSON] {
                for after in [head.clone(), format!("{head}-99")] {
                    let over = served.get_with(&format!("{path}&after={after}"), &[accept]).await;
                    assert_eq!(
                        (over.status, over.text.as_str()),
                        (StatusCode::NO_CONTENT, ""),
                        "{path} {after}"
                    );
                }
            }
            let page = served.get_with(&format!("{path}&after={head}"), &[JSON]).await.json();
            assert_eq!(page, json!({"frames": [], "next": null}));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_whose_producer_is_lost_ends_for_every_reader() {
    let options = SqliteOptions { lease: Duration::from_millis(300), ..SqliteOptions::default() };
    let served = Served::with_store(options, |_| {}).await;
    served.post("/v1/runs/r/events?thread=t", &delta("a")).await.written(1, 0);
    let mut readers = Vec::new();
    for dialect in Dialect::ALL {
        let path = format!("/v1/runs/r/events?dialect={dialect}");
        readers.push((dialect, served.read(&path, &[SSE]).await, served.read(&path, &[NDJSON]).await));
    }
    let mut socket = served.socket().await;
    socket.subscribe("s", json!({"run": "r"})).await;
    for (dialect, mut sse, mut ndjson) in readers {
        let events: Vec<_> = sse.rest().await.into_iter().map(|event| event.data.unwrap()).collect();
        let lines = ndjson.lines().await;
        if dialect == Dialect::Text {
            assert_eq!((events, lines), (vec!["a".to_owned()], vec!["\"a\"".to_owned()]));
        } else {
            assert!(events.iter().any(|event| event.contains("producer_lost")), "{dialect}: {events:?}");
            assert_eq!(events, lines);
        }
        let path = format!("/v1/runs/r/events?dialect={dialect}");
        let over = served.get_with(&path, &[SSE, ("last-event-id", &sse.last_id.unwrap())]).await;
        assert_eq!(over.status, StatusCode::NO_CONTENT);
    }
    let frames = socket.frames_until("end").await;
    assert_eq!(frames.last().unwrap()["frame"]["type"], "run.failed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancel_ends_the_stream_and_leaving_does_not() {
    let served = Served::with_store(
        SqliteOptions { cancel_grace: Duration::from_millis(200), ..SqliteOptions::default() },
        |_| {},
    )
    .await;
    served.post("/v1/runs/r/events", &delta("a")).await.written(1, 0);
    let mut leaver = served.read("/v1/runs/r/events", &[SSE]).await;
    leaver.comment("caught-up").await;
    drop(leaver);
    let mut stays = served.read("/v1/runs/r/events", &[SSE]).await;
    stays.comment("caught-up").await;
    assert_eq!(served.get("/v1/runs/r").await.json()["status"], "running");
    served.post("/v1/runs/r/cancel", "{}").await;
    let types: Vec<_> = stays.rest().await.iter().map(|event| event.json()["type"].clone()).collect();
    assert_eq!(types.first().unwrap(), "run.cancel_requested", "{types:?}");
    assert_eq!(types.last().unwrap(), "run.cancelled");
}
