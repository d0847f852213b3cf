//! Writes served without hyper: the same responses as with hyper, however requests are split.

use std::time::Duration;

use crate::harness::{Answer, Raw, Served, delta, within_timeout};

fn request(path: &str, fields: &str, body: &str) -> String {
    let length = body.len();
    format!("POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {length}\r\n{fields}\r\n{body}")
}

async fn ask(raw: &mut Raw, request: &str) -> Answer {
    raw.send(request.as_bytes()).await.unwrap();
    raw.answer().await.unwrap()
}

#[tokio::test]
async fn requests_of_one_connection_are_answered_in_order_however_they_are_cut() {
    let served = Served::start().await;
    let one = |content: &str| request("/v1/runs/r/events", "", &delta(content));
    let mut raw = served.raw().await;
    // Together, and the last in two pieces of which neither is whole.
    let several = one("a") + &one("b") + &one("c");
    let (first, rest) = several.split_at(several.len() - 7);
    raw.send(first.as_bytes()).await.unwrap();
    for seq in 1..=2 {
        assert_eq!(raw.answer().await.unwrap().written(1, 0)["last_seq"], seq);
    }
    raw.send(rest.as_bytes()).await.unwrap();
    assert_eq!(raw.answer().await.unwrap().written(1, 0)["last_seq"], 3);
    // Byte by byte, head and all.
    let mut raw = served.raw().await;
    for byte in one("d").bytes() {
        raw.send(&[byte]).await.unwrap();
    }
    assert_eq!(raw.answer().await.unwrap().written(1, 0)["last_seq"], 4);
    assert_eq!(served.get("/v1/runs/r/message").await.json()["mainContent"], "abcd");
}

#[tokio::test]
async fn a_connection_that_writes_may_go_on_with_anything_else() {
    let served = Served::start().await;
    let write = request("/v1/runs/r/events", "", &delta("a"));
    let get = "GET /v1/runs/r HTTP/1.1\r\nhost: localhost\r\n\r\n";
    let chunked = format!(
        "POST /v1/runs/r/events HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n{:x}\r\n{}\r\n0\r\n\r\n",
        delta("a").len(),
        delta("a")
    );
    let mut raw = served.raw().await;
    ask(&mut raw, &write).await.written(1, 0);
    // The next request has come before the answer to this one was read.
    raw.send((write.clone() + get).as_bytes()).await.unwrap();
    raw.answer().await.unwrap().written(1, 0);
    assert_eq!(raw.answer().await.unwrap().json()["counts"]["records"], 2);
    ask(&mut raw, &chunked).await.written(1, 0);
    ask(&mut raw, &write).await.written(1, 0);
    let heartbeat = request("/v1/runs/r/heartbeat", "", "");
    assert_eq!(ask(&mut raw, &heartbeat).await.status, 200);
    let last = request("/v1/runs/r/events", "connection: close\r\n", &delta("b"));
    ask(&mut raw, &last).await.written(1, 0);
    assert!(raw.answer().await.is_none(), "the connection was asked to be closed");
}

#[tokio::test]
async fn refusals_are_the_same_with_hyper_and_without() {
    let served = Served::start().await;
    served.post("/v1/runs/r/events", &delta("a")).await.written(1, 0);
    let cases = [
        ("/v1/runs/r/events?dialct=loom", "", "{}", 400, "bad_query"),
        ("/v1/runs/r/events", "content-type: text/plain\r\n", "{}", 415, "unsupported_media_type"),
        ("/v1/runs/r/events", "content-encoding: gzip\r\n", "{}", 415, "unsupported_media_type"),
        ("/v1/runs/r/events", "producer-seq: 1\r\n", "{}", 400, "bad_header"),
        ("/v1/runs/r/events", "origin: https://evil.example\r\n", "{}", 403, "origin_refused"),
        ("/v1/runs/r/events", "", "{\"type\":", 400, "not_json"),
        ("/v1/runs/%00/events", "", "{}", 400, "bad_id"),
        ("/v1/runs/r/events?dialect=loom", "", "{\"type\":\"x\"}", 409, "dialect_pinned"),
    ];
    for (path, fields, body, status, code) in cases {
        let (mut raw_http, mut ordinary) = (served.raw().await, served.raw().await);
        let raw_http_answer = ask(&mut raw_http, &request(path, fields, body)).await;
        let ordinary_answer =
            ask(&mut ordinary, &request(path, &format!("{fields}expect: x\r\n"), body)).await;
        let problem = raw_http_answer.problem(status, code);
        assert_eq!(problem, ordinary_answer.problem(status, code), "{path}");
        let names = |answer: &Answer| {
            let mut names: Vec<_> = answer.headers.keys().map(|name| name.as_str().to_owned()).collect();
            names.sort();
            names
        };
        assert_eq!(names(&raw_http_answer), names(&ordinary_answer), "{path}");
        // A refusal costs nobody the connection.
        ask(&mut raw_http, &request("/v1/runs/other/events", "", &delta("a"))).await.written(1, 0);
    }
    let refused = request("/v1/runs/r/events?dialect=runwire", "", "{\"type\":");
    let problem = ask(&mut served.raw().await, &refused).await.problem(400, "not_json");
    assert_eq!(problem["last_seq"], 1, "a refusal tells how far the run is");
}

#[tokio::test]
async fn a_server_that_stops_lets_go_of_idle_writers_and_answers_busy_ones() {
    let mut served = Served::start().await;
    let (mut idle, mut busy) = (served.raw().await, served.raw().await);
    let write = request("/v1/runs/r/events", "", &delta("a"));
    ask(&mut idle, &write).await.written(1, 0);
    ask(&mut busy, &write).await.written(1, 0);
    busy.send(&write.as_bytes()[..write.len() - 3]).await.unwrap();
    assert!(busy.answer_or_silence(Duration::from_millis(100)).await);
    served.begin_to_stop();
    // The rest may come too late; what is answered is true.
    let _ = busy.send(&write.as_bytes()[write.len() - 3..]).await;
    let answer = busy.answer().await.unwrap();
    match answer.status.as_u16() {
        200 => drop(answer.written(1, 0)),
        _ => drop(answer.problem(503, "shutting_down")),
    }
    assert!(within_timeout(idle.answer()).await.is_none());
    served.stopped().await;
}
