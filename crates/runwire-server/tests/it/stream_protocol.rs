//! The protocol of streams: keep-alives, caught-up, end marks, framings, limits.

use std::time::Duration;

use http::Method;
use serde_json::{Value, json};

use crate::harness::{COMPLETED, Served, delta, within_timeout};
use crate::reading::{JSON, NDJSON, SSE};

const QUESTION: &str =
    "{\"type\":\"interaction.requested\",\"interaction_id\":\"i\",\"kind\":\"approval\",\"title\":\"ok?\"}\n";

fn types(events: &[crate::reading::Event]) -> Vec<String> {
    events.iter().map(|event| event.json()["type"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idle_stream_shows_that_it_lives_and_where_it_is() {
    let served = Served::with(|config| config.keep_alive = Duration::from_millis(50)).await;
    served.post("/v1/runs/r/events?thread=t", &delta("a")).await.written(1, 0);
    let mut text = served.read("/v1/runs/r/events?dialect=text", &[SSE]).await;
    assert_eq!(text.event().await.unwrap().data.as_deref(), Some("a"));
    text.comment("caught-up").await;
    text.comment("keep-alive").await;
    // A call is no text: the cursor advances all the same.
    let call = "{\"type\":\"tool.called\",\"call_id\":\"c\",\"name\":\"n\",\"arguments\":{}}\n";
    served.post("/v1/runs/r/events", call).await.written(1, 0);
    within_timeout(async { while text.comment("keep-alive").await.id.as_deref() != Some("2") {} }).await;
    assert_eq!(text.last_id.as_deref(), Some("2"));
    let mut lines = served.read("/v1/runs/r/events?dialect=text", &[NDJSON]).await;
    assert_eq!(lines.line().await.as_deref(), Some("\"a\""));
    served.post("/v1/runs/r/events", COMPLETED).await.written(1, 0);
    assert_eq!(
        lines.rest_of_bytes().await.trim_matches('\n'),
        "",
        "blank lines are all that an idle stream says"
    );
    // Signs of life do not hold up a reader that catches up, however often they come.
    let hasty = Served::with(|config| config.keep_alive = Duration::from_micros(1)).await;
    hasty.post("/v1/runs/r/events", &(delta("a").repeat(3000) + COMPLETED)).await.written(3001, 0);
    let events = hasty.events("/v1/runs/r/events?dialect=loom", &[SSE]).await;
    assert!(events.len() >= 3000);
}

#[tokio::test(flavor = "multi_thread")]
async fn social_apps_keep_alive_stands_alone() {
    let served = Served::with(|config| config.keep_alive = Duration::from_millis(50)).await;
    served.post("/v1/runs/r/events?thread=t", &delta("a")).await.written(1, 0);
    for path in ["/api/v1/agent/runs/t/events", "/v1/runs/r/events?dialect=social-app"] {
        let mut stream = served.read(path, &[SSE]).await;
        for _ in 0..2 {
            assert_eq!(stream.comment("keep-alive").await.id, None, "{path}");
        }
        assert_eq!(stream.last_id.as_deref(), Some("1-0"), "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_gets_caught_up_once() {
    let served = Served::start().await;
    served.post("/v1/runs/r/events", &delta("a")).await.written(1, 0);
    let mut stream = served.read("/v1/runs/r/events", &[SSE]).await;
    stream.comment("caught-up").await;
    served.post("/v1/runs/r/events", &delta("b")).await.written(1, 0);
    assert_eq!(stream.event().await.unwrap().json()["content"], "b");
    served.post("/v1/runs/r/events", COMPLETED).await.written(1, 0);
    let mut comments = Vec::new();
    while let Some(block) = stream.block().await {
        comments.extend(block.comment);
    }
    assert_eq!(comments, ["end"], "and once that the run is over");
}

#[tokio::test(flavor = "multi_thread")]
async fn only_an_ended_run_that_was_read_completely_has_an_end_mark() {
    let served = Served::start().await;
    served.post("/v1/runs/open/events?thread=t", &delta("a")).await.written(1, 0);
    served.post("/v1/runs/r/events", &(delta("a") + COMPLETED)).await.written(2, 0);
    let said = async |path: &str| served.read(path, &[SSE]).await.rest_of_bytes().await.contains(": end\n");
    for dialect in ["runwire", "ag-ui", "text", "loom"] {
        assert!(said(&format!("/v1/runs/r/events?dialect={dialect}")).await, "{dialect}");
    }
    assert!(said("/v1/runs/r/events?follow=false").await);
    assert!(said("/v1/runs/r/events?attach=snapshot").await);
    assert!(!said("/v1/runs/r/events?limit=1").await);
    assert!(!said("/v1/runs/open/events?follow=false").await);
    assert!(!said("/v1/threads/t/events?follow=false").await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_stops_asks_its_readers_to_come_back() {
    let mut served = Served::start().await;
    served.post("/v1/runs/r/events", &delta("a")).await.written(1, 0);
    let mut stream = served.read("/v1/runs/r/events", &[SSE]).await;
    stream.comment("caught-up").await;
    let mut lines = served.read("/v1/runs/r/events", &[NDJSON]).await;
    lines.line().await.unwrap();
    let mut socket = served.socket().await;
    socket.subscribe("s", json!({"run": "r"})).await;
    socket.frames_until("caught_up").await;
    served.begin_to_stop();
    let farewell = stream.block().await.unwrap();
    assert!((500..5000).contains(&farewell.retry.unwrap()), "{farewell:?}");
    assert_eq!(stream.block().await, None);
    lines.rest_of_bytes().await;
    assert_eq!(socket.hear().await, None);
    served.stopped().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_ag_ui_response_ends_at_every_end_and_threads_and_sockets_go_on() {
    let served = Served::start().await;
    served.post("/v1/runs", r#"{"run_id":"r","thread_id":"t","agent":"agent"}"#).await;
    served.post("/v1/runs/r/events", &delta("a")).await.written(1, 0);
    let mut run = served.read("/v1/runs/r/events?dialect=ag-ui", &[SSE]).await;
    let mut thread = served.read("/v1/threads/t/events?dialect=ag-ui", &[SSE]).await;
    let mut attached = served.read("/ag-ui/agent/t", &[SSE]).await;
    let mut socket = served.socket().await;
    socket.subscribe("s", json!({"run": "r", "dialect": "ag-ui"})).await;
    served.post("/v1/runs/r/events", QUESTION).await.written(1, 0);
    for stream in [&mut run, &mut attached] {
        let events = stream.rest().await;
        let last = events.last().unwrap().json();
        assert_eq!((&last["type"], &last["outcome"]["type"]), (&"RUN_FINISHED".into(), &"interrupt".into()));
    }
    let last = run.last_id.clone().unwrap();
    // Whoever comes back waits for what follows.
    let mut again = served.read("/v1/runs/r/events?dialect=ag-ui", &[SSE, ("last-event-id", &last)]).await;
    again.comment("caught-up").await;
    served.post("/v1/runs/r/events", &(delta("b") + COMPLETED)).await.written(2, 0);
    let rest = types(&again.rest().await);
    assert_eq!(
        (rest.first().unwrap().as_str(), rest.last().unwrap().as_str()),
        ("RUN_STARTED", "RUN_FINISHED")
    );
    assert_eq!(
        served
            .get_with("/v1/runs/r/events?dialect=ag-ui", &[SSE, ("last-event-id", &again.last_id.unwrap())])
            .await
            .status,
        204
    );

    let count = |types: &[String]| types.iter().filter(|kind| *kind == "RUN_FINISHED").count();
    let frames = socket.frames_until("end").await;
    let told: Vec<String> =
        frames.iter().map(|frame| frame["frame"]["type"].as_str().unwrap().to_owned()).collect();
    assert_eq!(count(&told), 2);
    served.post("/v1/runs/next/events?thread=t", &(delta("c") + COMPLETED)).await.written(2, 0);
    let mut told = Vec::new();
    while count(&told) < 3 {
        told.extend(types(&[thread.event().await.unwrap()]));
    }
    assert_eq!(told.iter().filter(|kind| *kind == "RUN_STARTED").count(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_ag_ui_response_ends_however_the_producer_writes_its_end() {
    let served = Served::start().await;
    let started = "{\"runId\":\"x\", \"threadId\":\"y\", \"type\":\"RUN_STARTED\"}\n";
    let interrupt = "{\"outcome\":{\"interrupts\":[{\"id\":\"i\",\"reason\":\"input_required\"}],\"type\":\"interrupt\"}, \
                     \"runId\":\"x\", \"threadId\":\"y\", \"type\" : \"RUN_FINISHED\"}\n";
    served.post("/v1/runs/r/events", &format!("{started}{interrupt}")).await.written(2, 0);
    let events = served.events("/v1/runs/r/events?dialect=ag-ui", &[SSE]).await;
    assert_eq!(types(&events), ["RUN_STARTED", "RUN_FINISHED"]);
    assert_eq!(served.get("/v1/runs/r").await.json()["status"], "suspended");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_gets_as_much_as_it_asks_for() {
    let served = Served::start().await;
    served.post("/v1/runs/r/events?thread=t", &(delta("a") + &delta("b"))).await.written(2, 0);
    for path in ["/v1/runs/r/events", "/v1/threads/t/events"] {
        let all = served.events(&format!("{path}?follow=false"), &[SSE]).await;
        assert_eq!(all.len(), 4);
        for limit in 1..=4 {
            let some = served.events(&format!("{path}?limit={limit}"), &[SSE]).await;
            assert_eq!(some, all[..limit]);
        }
        served.get_with(&format!("{path}?limit=0"), &[SSE]).await.problem(400, "bad_query");
        let page = served.get_with(&format!("{path}?limit=3"), &[JSON]).await.json();
        assert_eq!(
            (page["frames"].as_array().unwrap().len(), &page["next"]),
            (3, &page["frames"][2]["cursor"])
        );
        served.get_with(&format!("{path}?limit=1001"), &[JSON]).await.problem(400, "bad_query");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_framing_is_what_the_reader_accepts() {
    let served = Served::start().await;
    served.post("/v1/runs/r/events", &(delta("a\\nb") + COMPLETED)).await.written(2, 0);
    let kind = async |path: &str, headers: &[(&str, &str)]| {
        served.get_with(path, headers).await.headers["content-type"].to_str().unwrap().to_owned()
    };
    let path = "/v1/runs/r/events";
    assert_eq!(kind(path, &[]).await, "text/event-stream");
    assert_eq!(kind(path, &[("accept", "*/*")]).await, "text/event-stream");
    assert_eq!(kind(path, &[NDJSON]).await, "application/x-ndjson");
    assert_eq!(
        kind(path, &[("accept", "text/html, application/json;q=0.9, */*;q=0.1")]).await,
        "application/json"
    );
    served.get_with(path, &[("accept", "image/png")]).await.problem(406, "not_acceptable");
    served.get_with(path, &[("accept", "text/plain")]).await.problem(406, "not_acceptable");
    let text = "/v1/runs/r/events?dialect=text";
    assert_eq!(kind(text, &[("accept", "text/plain")]).await, "text/plain; charset=utf-8");
    assert_eq!(served.get_with(text, &[("accept", "text/plain")]).await.text, "a\nb");
    assert_eq!(served.get_with(text, &[NDJSON]).await.text, "\"a\\nb\"\n");
    assert_eq!(served.events(text, &[SSE]).await[0].data.as_deref(), Some("a\nb"));
    let wrapped = served.get_with("/v1/runs/r/events?dialect=text&cursors=true", &[NDJSON]).await.text;
    assert_eq!(wrapped, "{\"cursor\":\"1-0\",\"frame\":\"a\\nb\"}\n");
    served
        .get_with("/v1/runs/r/events?attach=snapshot&dialect=loom", &[SSE])
        .await
        .problem(400, "attach_not_offered");
}

#[tokio::test(flavor = "multi_thread")]
async fn raw_gives_the_bytes_back_one_frame_a_line() {
    let served = Served::start().await;
    let pretty = "[\n  {\n    \"type\": \"custom\",\n    \"value\": 1\n  }\n]";
    let headers = [("content-type", "application/json")];
    served.post_with("/v1/runs/r/events?end=true", &headers, pretty).await.written(1, 0);
    let mut lines = served.read("/v1/runs/r/events?raw=true", &[NDJSON]).await;
    let lines = lines.lines().await;
    let parsed: Vec<Value> = lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(parsed.len(), 2, "{lines:?}");
    assert_eq!((&parsed[0]["value"], &parsed[1]["type"]), (&1.into(), &"run.completed".into()));
    let events = served.events("/v1/runs/r/events?raw=true", &[SSE]).await;
    assert_eq!(events[0].data.as_deref(), Some("{\n    \"type\": \"custom\",\n    \"value\": 1\n  }"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cursor_outweighs_attaching() {
    let served = Served::start().await;
    served.post("/v1/runs/r/events", &(delta("a") + &delta("b"))).await.written(2, 0);
    let path = "/v1/runs/r/events?attach=snapshot&follow=false";
    let snapshot = served.events(path, &[SSE]).await;
    let (last, before) = snapshot.split_last().unwrap();
    assert_eq!(last.id.as_deref(), Some("2"));
    assert!(before.iter().all(|event| event.id.is_none()), "only the last frame of a snapshot has an id");
    for headers in [vec![SSE, ("last-event-id", "1")], vec![SSE]] {
        let after = if headers.len() == 1 { "&after=1" } else { "" };
        let rest = served.events(&format!("{path}{after}"), &headers).await;
        assert_eq!(rest.len(), 1);
        assert_eq!(rest[0].json()["content"], "b");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn social_app_reads_its_events_and_its_history() {
    let served = Served::start().await;
    for run in ["one", "two"] {
        let body = delta("a") + &delta("b") + COMPLETED;
        served.post(&format!("/v1/runs/{run}/events?thread=t"), &body).await.written(3, 0);
    }
    let all = served.events("/v1/threads/t/events?dialect=social-app&follow=false", &[SSE]).await;
    let events = "/api/v1/agent/runs/t/events";
    let mut stream = served.read(events, &[]).await;
    for expected in &all {
        assert_eq!(stream.event().await.unwrap(), *expected);
        assert!(expected.name.is_some() && expected.id.as_deref().unwrap().contains('-'));
    }
    stream.comment("caught-up").await;
    served.post("/v1/runs/three/events?thread=t", &delta("c")).await.written(1, 0);
    assert!(stream.event().await.is_some(), "the stream stays open across runs");
    let middle = all[2].id.clone().unwrap();
    let mut stream = served.read(events, &[("last-event-id", &middle)]).await;
    assert_eq!(stream.event().await.unwrap(), all[3]);

    let (mut history, mut after) = (Vec::new(), String::new());
    for _ in 0..100 {
        let page = served.get(&format!("/api/v1/agent/runs/t/history?limit=2{after}")).await.json();
        assert_eq!(page["thread_id"], "t");
        history.extend(page["events"].as_array().unwrap().clone());
        match page["next"].as_str() {
            Some(next) => after = format!("&after={next}"),
            None => break,
        }
    }
    let expected: Vec<Value> = all.iter().map(crate::reading::Event::json).collect();
    assert_eq!(history[..all.len()], expected);
    served.get("/api/v1/agent/runs/nowhere/history").await.problem(404, "thread_unknown");
}

#[tokio::test(flavor = "multi_thread")]
async fn agio_pages_through_a_run_to_its_end() {
    let served = Served::start().await;
    served.post("/v1/runs/r/events", &(delta("a") + &delta("b") + COMPLETED)).await.written(3, 0);
    let all = served.events("/v1/runs/r/events?dialect=agio", &[SSE]).await;
    let expected: Vec<Value> = all.iter().map(crate::reading::Event::json).collect();
    for limit in 1..=expected.len() + 1 {
        let (mut found, mut offset) = (Vec::new(), 0);
        loop {
            let page = served.get(&format!("/api/runs/r/events?offset={offset}&limit={limit}")).await.json();
            assert_eq!((&page["run_id"], &page["offset"]), (&"r".into(), &offset.into()));
            found.extend(page["events"].as_array().unwrap().clone());
            match page["next_offset"].as_u64() {
                Some(next) => offset = next,
                None => break,
            }
        }
        assert_eq!(found, expected, "{limit} a page");
    }
    let beyond = served.get("/api/runs/r/events?offset=1000").await.json();
    assert_eq!((&beyond["events"], &beyond["next_offset"]), (&json!([]), &Value::Null));
    let stream = served.events("/v1/runs/r/events?dialect=agio&slots=asks", &[SSE]).await;
    assert_eq!(served.events("/api/runs/r/events", &[SSE]).await, stream);
}

#[tokio::test(flavor = "multi_thread")]
async fn parallel_runs_are_read_only_in_dialects_that_name_their_run() {
    let served = Served::start().await;
    served.post("/v1/threads", r#"{"thread_id":"p","parallel":true}"#).await;
    for run in ["p1", "p2"] {
        served.post(&format!("/v1/runs/{run}/events?thread=p"), &delta("a")).await.written(1, 0);
    }
    for dialect in ["runwire", "loom", "agio", "streaming-engine", "social-app"] {
        let path = format!("/v1/threads/p/events?follow=false&dialect={dialect}");
        assert_eq!(served.get_with(&path, &[SSE]).await.status, 200);
    }
    for dialect in ["ag-ui", "loom-export", "easyflow-chat", "text"] {
        let path = format!("/v1/threads/p/events?follow=false&dialect={dialect}");
        served.get_with(&path, &[SSE]).await.problem(409, "needs_run");
        let path = format!("/v1/runs/p1/events?follow=false&dialect={dialect}");
        assert_eq!(served.get_with(&path, &[SSE]).await.status, 200);
    }
    assert_eq!(served.get_with("/v1/threads/p/events?follow=false&raw=true", &[SSE]).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_over_http_2_are_the_same() {
    let served = Served::start().await;
    served.post("/v1/runs/r/events", &(delta("a") + COMPLETED)).await.written(2, 0);
    for accept in [SSE, NDJSON, JSON] {
        let request =
            || served.request(Method::GET, "/v1/runs/r/events", &[accept]).body(bytes::Bytes::new()).unwrap();
        assert_eq!(served.send_h2(request()).await.text, served.send(request()).await.text);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_socket_reads_and_writes_several_runs() {
    let served = Served::start().await;
    let mut socket = served.socket().await;
    let frame: Value = serde_json::from_str(delta("a").trim()).unwrap();
    for run in ["r1", "r2"] {
        socket
            .say(json!({"op": "write", "id": run, "run": run, "dialect": "runwire", "frames": [frame]}))
            .await;
        let ack = socket.hear().await.unwrap();
        assert_eq!((&ack["op"], &ack["id"], &ack["accepted"]), (&"ack".into(), &run.into(), &1.into()));
        socket.subscribe(run, json!({"run": run, "dialect": "text"})).await;
        let frames = socket.frames_until("caught_up").await;
        assert_eq!((&frames[0]["id"], &frames[0]["frame"]), (&run.into(), &"a".into()));
    }
    socket.subscribe("r1", json!({"run": "r1"})).await;
    assert_eq!(socket.hear().await.unwrap()["code"], "bad_message", "an id names one subscription");
    socket.say(json!({"op": "unsubscribe", "id": "r1"})).await;
    assert_eq!(socket.hear().await.unwrap(), json!({"op": "end", "id": "r1"}));
    socket.say(json!({"op": "ping"})).await;
    assert_eq!(socket.hear().await.unwrap(), json!({"op": "pong"}));
    socket.say(json!({"op": "cancel", "id": 7, "run": "r2", "reason": "enough"})).await;
    socket.frames_until("ack").await;
    served.post("/v1/runs/r2/events", COMPLETED).await.written(1, 0);
    socket.frames_until("end").await;
    socket.subscribe("over", json!({"run": "r2", "after": "3"})).await;
    assert_eq!(socket.hear().await.unwrap(), json!({"op": "end", "id": "over"}));
}
