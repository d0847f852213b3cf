//! Readers stay connected through an outage and miss nothing.

use std::time::Duration;

use serde_json::{Value, json};

use super::flaky_log::Outage;
use super::serving;
use crate::agents::fake_agents::RunAssertions;
use crate::harness::{COMPLETED, delta};
use crate::reading::{NDJSON, SSE};

#[tokio::test(flavor = "multi_thread")]
async fn readers_stay_connected_through_an_outage_and_go_on_after_it() {
    let (served, store) = serving(|config| config.keep_alive = Duration::from_millis(50)).await;
    served.post("/v1/runs/r/events?thread=t", &delta("a")).await.written(1, 0);
    let mut stream_of_run = served.read("/v1/runs/r/events", &[SSE]).await;
    let mut thread = served.read("/v1/threads/t/events?dialect=agio", &[SSE]).await;
    let mut lines = served.read("/v1/runs/r/events", &[NDJSON]).await;
    let mut socket = served.socket().await;
    socket.subscribe("s", json!({"run": "r"})).await;
    for stream in [&mut stream_of_run, &mut thread] {
        stream.comment("caught-up").await;
    }
    let first = lines.line().await.unwrap();
    let mut frames = socket.frames_until("caught_up").await;

    store.fail(Outage::Everything);
    store.until_refused("sweep", 1).await;
    for stream in [&mut stream_of_run, &mut thread] {
        stream.comment("keep-alive").await;
        stream.comment("keep-alive").await;
    }
    socket.say(json!({"op": "ping"})).await;
    assert_eq!(socket.hear().await.unwrap()["op"], "pong");
    served.get_with("/v1/runs/r/events", &[SSE]).await.problem(503, "store_unavailable");
    socket.subscribe("new", json!({"run": "r"})).await;
    let refused = socket.hear().await.unwrap();
    assert_eq!((&refused["op"], &refused["code"]), (&json!("error"), &json!("store_unavailable")));

    store.recover();
    served.post("/v1/runs/r/events", &(delta("b") + COMPLETED)).await.written(2, 0);
    let expected = served.happened("r").await;
    let rest: Vec<_> = stream_of_run.rest().await.iter().map(crate::reading::Event::json).collect();
    assert_eq!(rest, expected[expected.len() - rest.len()..]);
    let told: Vec<Value> = std::iter::once(first)
        .chain(lines.lines().await)
        .map(|line| serde_json::from_str(&line).unwrap())
        .collect();
    assert_eq!(told, expected);
    frames.extend(socket.frames_until("end").await);
    let frames: Vec<_> = frames.into_iter().map(|frame| frame["frame"].clone()).collect();
    assert_eq!(frames, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replay_that_an_outage_interrupts_goes_on_where_it_stopped() {
    let (served, store) = serving(|_| {}).await;
    let filler = "x".repeat(1000);
    for part in 0..20 {
        let frames: String = (0..200).map(|number| delta(&format!("{part}.{number} {filler}"))).collect();
        served.post("/v1/runs/r/events", &frames).await.written(200, 0);
    }
    served.post("/v1/runs/r/events", COMPLETED).await.written(1, 0);
    for (path, accept) in [
        ("/v1/runs/r/events", SSE),
        ("/v1/runs/r/events?dialect=agio&follow=false", SSE),
        ("/v1/runs/r/events?dialect=loom&compact=true", NDJSON),
    ] {
        let whole = served.read(path, &[accept]).await.rest_of_bytes().await;
        store.fail_after(3, "read");
        let mut stream = served.read(path, &[accept]).await;
        let reading = tokio::spawn(async move { stream.rest_of_bytes().await });
        store.until_refused("read", 1).await;
        store.recover();
        let told = reading.await.unwrap();
        assert!(told.replace(": caught-up\n\n", "") == whole.replace(": caught-up\n\n", ""), "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_readers_of_one_view_wait_for_the_store_together() {
    const READERS: usize = 60;
    let (served, store) = serving(|_| {}).await;
    served.post("/v1/runs/r/events", &delta("a")).await.written(1, 0);
    let mut readers = Vec::new();
    for _ in 0..READERS {
        let mut reader = served.read("/v1/runs/r/events?dialect=agio", &[SSE]).await;
        reader.comment("caught-up").await;
        readers.push(reader);
    }
    served.post("/v1/runs/r/events", &delta("b")).await.written(1, 0);
    for reader in &mut readers {
        while !reader.event().await.unwrap().data.unwrap().contains("\"b\"") {}
    }
    store.fail(Outage::Reads);
    // The whole text is asked for, whose beginning lies in the store.
    let finished = "{\"type\":\"text.finished\",\"message_id\":\"m1\"}\n";
    served.post("/v1/runs/r/events", &(finished.to_owned() + &delta("c") + COMPLETED)).await.written(3, 0);
    let asked = || store.refused("read") + store.refused("spans") + store.refused("checkpoint");
    store.until_refused("spans", 4).await;
    assert!(asked() < READERS / 2, "{READERS} readers have asked {} times", asked());
    store.recover();
    let expected = served.events("/v1/runs/r/events?dialect=agio", &[SSE]).await;
    for mut reader in readers {
        let rest = reader.rest().await;
        assert!(!rest.is_empty() && rest.len() < expected.len());
        assert_eq!(rest, expected[expected.len() - rest.len()..]);
    }
}
