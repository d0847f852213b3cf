//! The memory budget: what does not fit at once is served one after the other, and whoever takes nothing is cut off.
//!
//! `crates/runwire/tests/it/memory_budget.rs` measures the process.

use std::io::ErrorKind;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::join_all;
use http::{Method, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Barrier;
use tokio_tungstenite::tungstenite::Message;

use crate::harness::{Served, within_timeout};
use crate::reading::{JSON, SSE};

const MIB: usize = 1 << 20;
const NDJSON: (&str, &str) = ("content-type", "application/x-ndjson");
/// How long it takes until a client is cut off here.
const STALLED_TIME: Duration = Duration::from_secs(1);

/// Upper bound for waiting until others have given back their memory.
const PATIENCE: Duration = Duration::from_secs(120);

async fn server(budget: usize) -> Served {
    Served::with(|config| {
        config.memory_budget = budget as u64;
        config.stalled_time = STALLED_TIME;
    })
    .await
}

/// Writes a run of so many mebibytes of text.
async fn write_run(served: &Served, run: &str, size: usize) {
    let piece = "x".repeat(256 << 10);
    let mut body = String::from("{\"type\":\"run.started\"}\n");
    for at in 0..size * 4 {
        // A text has a limit of its own.
        let message = at / 16;
        body +=
            &format!("{{\"type\":\"text.delta\",\"message_id\":\"m{message}\",\"content\":\"{piece}\"}}\n");
    }
    body += "{\"type\":\"run.completed\"}\n";
    let path = format!("/v1/runs/{run}/events?thread=t");
    assert_eq!(served.post_with(&path, &[NDJSON], &body).await.status, 200);
}

/// Asks for a message until it is sent: for as long as others have the memory for it, it is refused.
async fn serves_the_message(served: &Served, run: &str) {
    let served_in_time = tokio::time::timeout(PATIENCE, async {
        loop {
            let answer = served.get(&format!("/v1/runs/{run}/message")).await;
            if answer.status == StatusCode::OK {
                assert!(answer.text.len() > 2 * MIB);
                return;
            }
            assert_eq!(answer.problem(503, "store_unavailable")["status"], 503);
        }
    });
    served_in_time.await.expect("the memory is given back");
}

/// Sends requests whose answers nobody reads, and serves another client; then the connections have been reset.
async fn resets_those_that_read_nothing(path: &str, clients: usize) {
    let served = server(12 * MIB).await;
    write_run(&served, "r", 4).await;
    let mut stalled = Vec::new();
    for _ in 0..clients {
        let mut client = TcpStream::connect(served.address).await.unwrap();
        client.write_all(format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n").as_bytes()).await.unwrap();
        stalled.push(client);
    }
    serves_the_message(&served, "r").await;
    for mut client in stalled {
        // What the kernel has of it comes before the error.
        let mut read = Vec::new();
        let ended = within_timeout(async {
            loop {
                match client.read_buf(&mut read).await {
                    Ok(0) => return None,
                    Ok(_) => {}
                    Err(error) => return Some(error.kind()),
                }
            }
        });
        let ended = ended.await;
        // A few are refused, because the others have all the memory, and a few get all of it in time.
        let is_refused = read.starts_with(b"HTTP/1.1 503");
        assert!(
            ended == Some(ErrorKind::ConnectionReset) || is_refused || read.len() > 4 * MIB,
            "{ended:?} after {}",
            read.len()
        );
    }
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn streams_that_nobody_reads_are_reset() {
    resets_those_that_read_nothing("/v1/runs/r/events?follow=false", 12).await;
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn snapshots_that_nobody_reads_are_reset() {
    resets_those_that_read_nothing("/v1/runs/r/events?attach=snapshot", 12).await;
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn exports_that_nobody_reads_are_reset() {
    resets_those_that_read_nothing("/v1/threads/t/records", 12).await;
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn messages_that_nobody_reads_are_reset() {
    resets_those_that_read_nothing("/v1/threads/t/messages", 6).await;
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn websockets_that_nobody_reads_are_reset() {
    let served = server(12 * MIB).await;
    write_run(&served, "r", 4).await;
    let mut sockets = Vec::new();
    for _ in 0..4 {
        let url = format!("ws://{}/v1/ws", served.address);
        let (mut socket, _) = tokio_tungstenite::connect_async(url).await.unwrap();
        for id in 0..8 {
            let subscribe = format!(r#"{{"op":"subscribe","id":"s{id}","run":"r"}}"#);
            futures_util::SinkExt::send(&mut socket, Message::Text(subscribe.into())).await.unwrap();
        }
        sockets.push(socket);
    }
    serves_the_message(&served, "r").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_of_http_2_that_nobody_reads_is_reset_and_its_connection_goes_on() {
    let served = server(12 * MIB).await;
    write_run(&served, "r", 4).await;
    let stream = TcpStream::connect(served.address).await.unwrap();
    let handshake = hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream));
    let (mut sender, connection) = handshake.await.unwrap();
    tokio::spawn(connection);
    let request = |path: &str| {
        let uri = format!("http://{}{path}", served.address);
        http::Request::builder().method(Method::GET).uri(uri).body(Full::<Bytes>::default()).unwrap()
    };
    let mut stalled = Vec::new();
    for _ in 0..4 {
        let answer =
            within_timeout(sender.send_request(request("/v1/runs/r/events?follow=false"))).await.unwrap();
        stalled.push(answer);
    }
    // Flow control stalls them until the server has had enough.
    let all_ended = async {
        while !served.get("/metrics").await.text.contains("runwire_readers_open{framing=\"sse\"} 0") {
            tokio::time::sleep(STALLED_TIME / 20).await;
        }
    };
    tokio::time::timeout(PATIENCE, all_ended).await.expect("the streams are reset");
    for answer in stalled {
        assert!(within_timeout(answer.into_body().collect()).await.is_err());
    }
    let answer = within_timeout(sender.send_request(request("/v1/runs/r"))).await.unwrap();
    assert_eq!(answer.status(), 200);
    serves_the_message(&served, "r").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_that_do_not_fit_at_once_are_whole() {
    let served = server(16 * MIB).await;
    // Two groups: the second is folded when the head of the response is sent.
    write_run(&served, "r", 3).await;
    write_run(&served, "s", 3).await;
    let answers = join_all((0..4).map(|_| served.get("/v1/threads/t/messages"))).await;
    for answer in answers {
        assert_eq!(answer.status, 200);
        assert_eq!(answer.json()["messages"].as_array().unwrap().len(), 2);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_that_do_not_fit_at_once_are_whole() {
    let served = server(16 * MIB).await;
    write_run(&served, "r", 4).await;
    let answers = join_all((0..8).map(|_| served.get_with("/v1/runs/r/events?limit=1000", &[JSON]))).await;
    for answer in answers {
        assert_eq!(answer.status, 200);
        assert!(answer.json()["frames"].as_array().unwrap().len() > 8);
    }
}

/// Sends bodies side by side: the first half of all of them, then the other halves. All are taken.
async fn takes_all(served: &Served, bodies: Vec<(String, Vec<u8>)>, media: &str) {
    let (halves, address) = (Barrier::new(bodies.len()), served.address);
    let sent = join_all(bodies.iter().map(|(path, body)| {
        let halves = &halves;
        async move {
            let mut client = TcpStream::connect(address).await.unwrap();
            // Its length is not known.
            let head = format!(
                "POST {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: {media}\r\n\
                 transfer-encoding: chunked\r\n\r\n"
            );
            client.write_all(head.as_bytes()).await.unwrap();
            for (half, part) in body.chunks(body.len() / 2 + 1).enumerate() {
                for piece in part.chunks(16 << 10) {
                    client.write_all(format!("{:x}\r\n", piece.len()).as_bytes()).await.unwrap();
                    client.write_all(piece).await.unwrap();
                    client.write_all(b"\r\n").await.unwrap();
                }
                if half == 0 {
                    halves.wait().await;
                }
            }
            client.write_all(b"0\r\n\r\n").await.unwrap();
            let mut answer = String::new();
            client.read_to_string(&mut answer).await.unwrap();
            answer
        }
    }));
    for answer in within_timeout(sent).await {
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn imported_lines_that_do_not_fit_at_once_are_all_taken() {
    let served = server(8 * MIB).await;
    let text = "x".repeat(800 << 10);
    let body = format!("{{\"type\":\"text.delta\",\"message_id\":\"m\",\"content\":\"{text}\"}}\n");
    let answer = served.post_with("/v1/runs/source/events?thread=whole&end=true", &[NDJSON], &body).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    let exported = served.get("/v1/threads/whole/records").await.text;
    let imports = (0..8).map(|at| {
        let lines = exported.replace("\"source\"", &format!("\"copy{at}\""));
        let lines = lines.replace("\"whole\"", &format!("\"i{at}\""));
        (format!("/v1/threads/i{at}/records"), lines.into_bytes())
    });
    takes_all(&served, imports.collect(), "application/x-ndjson").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn large_frames_that_do_not_fit_at_once_are_all_taken() {
    let served = server(8 * MIB).await;
    let text = "x".repeat(800 << 10);
    let frame = format!("{{\"type\":\"text.delta\",\"message_id\":\"m\",\"content\":\"{text}\"}}\n");
    let writes = (0..8).map(|at| (format!("/v1/runs/w{at}/events"), frame.clone().into_bytes()));
    takes_all(&served, writes.collect(), "application/x-ndjson").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_is_too_large_for_a_snapshot_is_replayed() {
    let served = server(256 * MIB).await;
    let content = "x".repeat(1000 << 10);
    for at in 0..18 {
        let frame = format!(
            "{{\"type\":\"activity.snapshot\",\"message_id\":\"a{at}\",\"activity_type\":\"x\",\
             \"content\":{{\"x\":\"{content}\"}}}}\n"
        );
        let answer = served.post_with("/v1/runs/r/events", &[NDJSON], &frame).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
    }
    let events = served.events("/v1/runs/r/events?attach=snapshot&follow=false", &[SSE]).await;
    let activities: Vec<_> = events
        .iter()
        .filter(|event| event.data.as_ref().is_some_and(|data| data.contains("activity.snapshot")))
        .collect();
    assert_eq!(activities.len(), 18);
    assert!(activities.iter().all(|event| event.id.is_some()), "only the last frame of a snapshot has an id");
}
