//! Hostile and broken clients.

use std::time::{Duration, Instant};

use crate::harness::{Served, delta, within_timeout};

/// The healthy request that must work whatever others do.
async fn still_serves(served: &Served) {
    assert_eq!(served.get("/healthz").await.status, 200);
}

#[tokio::test]
async fn a_head_that_never_ends_is_given_up() {
    let served = Served::with(|config| config.header_time = Duration::from_millis(300)).await;
    for beginning in
        ["", "P", "GET /hea", "GET /healthz HTTP/1.1\r\nhost: localhost\r\nx-slow: ", "PRI * HTTP/2.0\r\n"]
    {
        let mut raw = served.raw().await;
        raw.send(beginning.as_bytes()).await.unwrap();
        let begun = Instant::now();
        // One byte now and then keeps nothing alive.
        while within_timeout(raw.answer_or_silence(Duration::from_millis(50))).await {
            if raw.send(b"x").await.is_err() {
                break;
            }
            assert!(begun.elapsed() < Duration::from_secs(5), "{beginning:?} is still open");
        }
        still_serves(&served).await;
    }
}

#[tokio::test]
async fn a_hundred_thousand_headers_are_refused() {
    let served = Served::start().await;
    let mut raw = served.raw().await;
    raw.send(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n").await.unwrap();
    let some = "x-header: 1\r\n".repeat(1000);
    for _ in 0..100 {
        if raw.send(some.as_bytes()).await.is_err() {
            break;
        }
    }
    // The reset of the connection may overtake the answer.
    if let Some(answer) = raw.answer().await {
        assert_eq!(answer.status, 431);
    }
    still_serves(&served).await;
}

#[tokio::test]
async fn a_head_that_is_too_large_is_refused() {
    let served = Served::start().await;
    for head in [
        format!("GET /healthz HTTP/1.1\r\nhost: localhost\r\nx-long: {}\r\n\r\n", "y".repeat(200 << 10)),
        format!("GET /{} HTTP/1.1\r\nhost: localhost\r\n\r\n", "y".repeat(200 << 10)),
        format!("GET /healthz HTTP/1.1\r\n{}\r\n", "x-many: 1\r\n".repeat(120)),
    ] {
        let mut raw = served.raw().await;
        // The answer may come before everything is sent.
        let _ = raw.send(head.as_bytes()).await;
        if let Some(answer) = raw.answer().await {
            assert!([414, 431].contains(&answer.status.as_u16()), "{answer:?}");
        }
        still_serves(&served).await;
    }
}

#[tokio::test]
async fn bad_chunking_breaks_the_body_off_and_keeps_what_came() {
    let served = Served::start().await;
    for (at, bad) in ["zz\r\n", "-1\r\n", "fffffffffffffffff\r\n", "5;\r\nhello"].into_iter().enumerate() {
        let run = format!("r{at}");
        let mut body = served.open(&format!("/v1/runs/{run}/events?end=true"), &[]).await;
        body.chunk(&delta("a")).await;
        served.until_records(&run, 1).await;
        body.send(bad.as_bytes()).await.unwrap();
        body.send(b"\r\nzz\r\n\r\n").await.unwrap();
        if let Some(answer) = body.answer().await {
            assert_eq!(answer.problem(400, "body_broken")["accepted"], 1);
        }
        assert_eq!(served.get(&format!("/v1/runs/{run}")).await.json()["status"], "running");
    }
}

#[tokio::test]
async fn bytes_that_are_not_http_are_refused() {
    let served = Served::start().await;
    for bytes in [
        &b"\x16\x03\x01\x02\x00\x01\x00\x01"[..],
        b"hello\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"\0\0\0\0\r\n\r\n",
    ] {
        let mut raw = served.raw().await;
        raw.send(bytes).await.unwrap();
        raw.send(b"\r\n\r\n").await.ok();
        if let Some(answer) = raw.answer().await {
            assert!(answer.status.is_client_error(), "{answer:?}");
        }
        still_serves(&served).await;
    }
}

#[tokio::test]
async fn an_endless_line_is_refused_at_a_megabyte_and_takes_no_memory() {
    let served = Served::start().await;
    let mut body = served.open("/v1/runs/r/events", &[("content-type", "application/x-ndjson")]).await;
    body.chunk(&delta("a")).await;
    let before = resident_bytes();
    let piece = "x".repeat(64 << 10);
    for _ in 0..(64 << 20) / piece.len() {
        let chunk = format!("{:x}\r\n{piece}\r\n", piece.len());
        if body.send(chunk.as_bytes()).await.is_err() {
            break;
        }
    }
    if let Some(answer) = body.answer().await {
        let problem = answer.problem(413, "frame_too_long");
        assert_eq!((&problem["line"], &problem["accepted"]), (&2.into(), &1.into()));
    }
    assert!(resident_bytes().saturating_sub(before) < 48 << 20);
    still_serves(&served).await;
}

#[tokio::test]
async fn an_endless_body_takes_no_memory() {
    let served = Served::start().await;
    let mut body = served.open("/v1/runs/r/events", &[]).await;
    let frame = "{\"type\":\"custom\",\"value\":1}\n";
    let piece = format!("{}\n{frame}", " ".repeat(64 << 10));
    body.chunk(&piece).await;
    let before = resident_bytes();
    let count = (64 << 20) / piece.len();
    for _ in 0..count {
        body.chunk(&piece).await;
    }
    body.end().await;
    body.answer().await.unwrap().written(count as u64 + 1, 0);
    assert!(resident_bytes().saturating_sub(before) < 48 << 20);
}

#[tokio::test]
async fn bodies_that_are_too_large_for_what_they_ask_are_refused() {
    let served = Served::start().await;
    let large = format!("{{\"message\":\"{}\"}}", "x".repeat(3 << 20));
    served.post("/v1/runs", &large).await.problem(413, "body_too_large");
    let input = format!("{{\"input\":\"{}\"}}", "x".repeat(3 << 19));
    assert_eq!(served.post("/v1/runs", &input).await.problem(422, "too_large")["field"], "input");
    let deep = format!("{{\"input\":{}1{}}}", "[".repeat(50_000), "]".repeat(50_000));
    served.post("/v1/runs", &deep).await.problem(422, "too_deep");
}

#[tokio::test]
async fn connections_beyond_the_limit_wait_for_their_turn() {
    let served = Served::with(|config| config.connections = 2).await;
    let first = served.open("/v1/runs/r/events", &[]).await;
    let second = served.open("/v1/runs/q/events", &[]).await;
    let mut third = served.raw().await;
    third.send(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    assert!(third.answer_or_silence(Duration::from_millis(100)).await);
    drop(first);
    assert_eq!(third.answer().await.unwrap().status, 200);
    drop(second);
}

/// Returns the resident memory of the process; comparisons need a margin for tests in parallel.
fn resident_bytes() -> usize {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    pages.split(' ').nth(1).and_then(|pages| pages.parse::<usize>().ok()).unwrap_or(0) * 4096
}
