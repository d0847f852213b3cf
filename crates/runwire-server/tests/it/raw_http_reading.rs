//! Streams served without hyper: the same as with hyper, except for `connection: close`.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method};

use crate::harness::{Answer, COMPLETED, Raw, Served, delta, within_timeout};
use crate::reading::SSE;

const REQUEST: &[u8] =
    b"GET /v1/runs/r/events HTTP/1.1\r\nhost: localhost\r\naccept: text/event-stream\r\n\r\n";
const CAUGHT_UP: &str = ": caught-up\n\n\r\n";

/// Serves a run that goes on.
async fn with_a_run(configure: impl FnOnce(&mut runwire_server::Config)) -> Served {
    let served = Served::with(configure).await;
    served.post("/v1/runs/r/events?thread=t", &delta("a")).await.written(1, 0);
    served
}

async fn begun(raw: &mut Raw) -> Answer {
    let answer = raw.answer().await.unwrap();
    assert_eq!(answer.status, 200);
    raw.until(CAUGHT_UP).await;
    answer
}

fn is_raw_http(headers: &HeaderMap) -> bool {
    headers.get("connection").is_some_and(|connection| connection == "close")
}

#[tokio::test]
async fn a_stream_is_the_same_with_hyper_and_without() {
    let served = with_a_run(|_| {}).await;
    let (mut raw_http, mut ordinary) = (served.raw().await, served.raw().await);
    raw_http.send(REQUEST).await.unwrap();
    // A head in pieces is left to hyper.
    ordinary.send(&REQUEST[..40]).await.unwrap();
    assert!(ordinary.answer_or_silence(Duration::from_millis(100)).await);
    ordinary.send(&REQUEST[40..]).await.unwrap();
    let mut told = Vec::new();
    for (raw, expected) in [(&mut raw_http, true), (&mut ordinary, false)] {
        let mut headers = raw.answer().await.unwrap().headers;
        assert_eq!(is_raw_http(&headers), expected);
        assert!(headers.remove("date").is_some());
        headers.remove("connection");
        told.push((headers, raw.until(CAUGHT_UP).await));
    }
    assert_eq!(told[0], told[1]);
    served.post("/v1/runs/r/events", COMPLETED).await.written(1, 0);
    assert_eq!(raw_http.until("\r\n0\r\n\r\n").await, ordinary.until("\r\n0\r\n\r\n").await);
    assert!(raw_http.answer().await.is_none(), "the connection is closed after the last chunk");
}

#[tokio::test]
async fn every_path_to_a_stream_is_served_as_raw_http_and_other_answers_are_not() {
    let served = with_a_run(|_| {}).await;
    let streams = ["/v1/runs/r/events?limit=9", "/v1/threads/t/events", "/api/v1/agent/runs/t/events"];
    for path in streams {
        assert!(is_raw_http(&served.read(path, &[SSE]).await.headers), "{path}");
        assert!(is_raw_http(&served.read(path, &[]).await.headers), "{path}");
    }
    let others = [
        ("/v1/runs/r/events?follow=false", SSE, 200),
        ("/v1/runs/r/events", ("accept", "application/x-ndjson"), 200),
        ("/v1/runs/r/events", ("accept", "application/json"), 200),
        ("/v1/runs/r/events", ("content-length", "0"), 200),
        ("/v1/runs/r/events", ("accept", "image/png"), 406),
        ("/v1/runs/r/events?no=1", SSE, 400),
        ("/v1/runs/unknown/events", SSE, 404),
        ("/v1/runs/r/x/events", SSE, 404),
        ("/v1/runs//events", SSE, 400),
    ];
    for (path, header, status) in others {
        let stream = served.read(path, &[header]).await;
        assert_eq!(
            (stream.status.as_u16(), is_raw_http(&stream.headers)),
            (status, false),
            "{path} {header:?}"
        );
    }
}

#[tokio::test]
async fn a_second_request_behind_the_first_is_answered() {
    let served = with_a_run(|_| {}).await;
    served.post("/v1/runs/r/events", COMPLETED).await.written(1, 0);
    let mut raw = served.raw().await;
    raw.send(&[REQUEST, b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n"].concat()).await.unwrap();
    assert!(!is_raw_http(&raw.answer().await.unwrap().headers));
    raw.until("\r\n0\r\n\r\n").await;
    assert_eq!(raw.answer().await.unwrap().status, 200);
}

#[tokio::test]
async fn a_connection_that_was_used_before_becomes_a_stream() {
    let served = with_a_run(|_| {}).await;
    let mut raw = served.raw().await;
    raw.send(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    assert_eq!(raw.answer().await.unwrap().status, 200);
    raw.send(REQUEST).await.unwrap();
    assert!(!is_raw_http(&begun(&mut raw).await.headers));
}

#[tokio::test]
async fn http_2_reads_the_same_stream() {
    let served = with_a_run(|_| {}).await;
    served.post("/v1/runs/r/events", COMPLETED).await.written(1, 0);
    let request = || served.request(Method::GET, "/v1/runs/r/events", &[SSE]).body(Bytes::new()).unwrap();
    let (raw_http, over_h2) = (served.send(request()).await, served.send_h2(request()).await);
    assert!(is_raw_http(&raw_http.headers) && !raw_http.text.is_empty());
    assert_eq!((over_h2.status, over_h2.text), (raw_http.status, raw_http.text));
}

#[tokio::test]
async fn a_reader_that_disconnects_releases_its_connection_permit_at_once() {
    // Nothing is written to the reader that could tell that it is gone.
    let served = with_a_run(|config| {
        (config.connections, config.keep_alive) = (1, Duration::from_secs(3600));
    })
    .await;
    for sends_more in [false, true] {
        let mut reader = served.raw().await;
        reader.send(REQUEST).await.unwrap();
        assert!(is_raw_http(&begun(&mut reader).await.headers));
        let others = served.get("/healthz");
        let mut others = std::pin::pin!(others);
        let waiting = tokio::time::timeout(Duration::from_millis(100), others.as_mut()).await;
        assert!(waiting.is_err(), "there is one place, and the reader has it");
        if sends_more {
            reader.send(b"x").await.unwrap();
            assert_eq!(others.await.status, 200);
        } else {
            drop(reader);
            assert_eq!(others.await.status, 200);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_stood_still_misses_nothing_and_holds_up_no_stop() {
    let served = with_a_run(|config| config.grace = Duration::from_millis(300)).await;
    let mut slow = served.read("/v1/runs/r/events", &[SSE]).await;
    let mut stuck = served.raw().await;
    stuck.send(REQUEST).await.unwrap();
    assert!(is_raw_http(&slow.headers) && is_raw_http(&begun(&mut stuck).await.headers));
    // More than the kernel takes for a connection, on both of its ends.
    let piece = "x".repeat(64 << 10);
    for _ in 0..120 {
        served.post("/v1/runs/r/events", &delta(&piece)).await.written(1, 0);
    }
    let first = ["1-0", "1-1", "1-2"].map(str::to_owned);
    for id in first.into_iter().chain((2..=121).map(|seq| format!("{seq}-0"))) {
        assert_eq!(slow.event().await.unwrap().id, Some(id));
    }
    within_timeout(served.stopped()).await;
}
