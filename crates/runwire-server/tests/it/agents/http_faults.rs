//! Faulty HTTP agents: the run ends once, keeps the received frames, and has a helpful error.

use std::time::Duration;

use runwire_model::dialect::Dialect;
use serde_json::Value;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};

use super::fake_agents::{
    FakeHttpAgent, ReceivedRequest, RunAssertions, begin_sse, chunk, count, until_closed, whole,
};
use crate::harness::Served;

const SHORT: Duration = Duration::from_millis(200);

async fn serving(fake: &FakeHttpAgent) -> Served {
    let agent = fake.agent_with(Dialect::Loom, |agent| {
        (agent.answer_time, agent.silence_time) = (Duration::from_secs(5), SHORT);
    });
    Served::with(|config| {
        config.agents = vec![agent];
        config.agent_grace = SHORT;
    })
    .await
}

/// Runs an agent to the end of its run, which it must have once.
async fn run_of<F, R>(answer: F) -> (Value, Vec<Value>)
where
    F: Fn(ReceivedRequest, TcpStream) -> R + Send + Sync + 'static,
    R: Future<Output = ()> + Send + 'static,
{
    let fake = FakeHttpAgent::start(answer).await;
    let served = serving(&fake).await;
    served.post("/v1/runs", r#"{"run_id":"r","agent":"a","message":"hi"}"#).await;
    let run = served.closed("r").await;
    (run, served.happened("r").await)
}

/// Asserts a failure with a code, whose message has some words.
#[track_caller]
fn failed(run: &Value, code: &str, words: &[&str]) {
    assert_eq!((&run["status"], &run["error"]["code"]), (&"failed".into(), &code.into()), "{run}");
    let message = run["error"]["message"].as_str().unwrap();
    for word in words {
        assert!(message.contains(word), "`{word}` is missing in: {message}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn frames_are_whole_wherever_the_network_cuts_them() {
    let frames = "event: x\r\ndata: {\"type\":\"message_chunk\",\"content\":\"晴 ☀\",\"id\":\"n\"}\r\n\r\n: ping\n\ndata: {\"reply\":\"晴 ☀\"}\n\n";
    let fake = FakeHttpAgent::start(move |asked: ReceivedRequest, mut stream| async move {
        let cut: usize = asked.body["message"].as_str().unwrap().parse().unwrap();
        begin_sse(&mut stream).await;
        let bytes = frames.as_bytes();
        // One byte for 0; else two pieces that meet anywhere, also within a character.
        let pieces: Vec<&[u8]> = match cut {
            0 => bytes.chunks(1).collect(),
            cut => vec![&bytes[..cut], &bytes[cut..]],
        };
        for piece in pieces {
            let head = format!("{:x}\r\n", piece.len());
            let _ = stream.write_all(head.as_bytes()).await;
            let _ = stream.write_all(piece).await;
            let _ = stream.write_all(b"\r\n").await;
            let _ = stream.flush().await;
            tokio::task::yield_now().await;
        }
        let _ = stream.write_all(b"0\r\n\r\n").await;
    })
    .await;
    let served = serving(&fake).await;
    for cut in (0..frames.len()).step_by(3) {
        let run = format!("r{cut}");
        served.post("/v1/runs", &format!(r#"{{"run_id":"{run}","agent":"a","message":"{cut}"}}"#)).await;
        assert_eq!(served.closed(&run).await["status"], "completed", "{cut}");
        assert_eq!(served.texts(&run).await, "晴 ☀", "{cut}");
        assert_eq!(count(&served.happened(&run).await, "foreign"), 0, "{cut}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_without_anything_in_it_says_that_it_is_empty() {
    for head in [
        "200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 0",
        "200 OK\r\ncontent-type: application/x-ndjson\r\ntransfer-encoding: chunked\r\n\r\n0",
        "200 OK\r\ncontent-length: 0",
        "204 No Content",
    ] {
        let answer = format!("HTTP/1.1 {head}\r\n\r\n");
        let (run, _) = run_of(move |_, mut stream| {
            let answer = answer.clone();
            async move { drop(stream.write_all(answer.as_bytes()).await) }
        })
        .await;
        failed(&run, "agent_empty", &["empty"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_response_that_is_no_event_stream_is_reported() {
    for (media, body, words) in [
        ("text/html; charset=utf-8", "<h1>Sign in</h1>", &["text/html", "Sign in"][..]),
        ("image/png", "\u{1}PNG", &["image/png"]),
        ("application/pdf", "%PDF-1.7", &["application/pdf"]),
    ] {
        let (run, _) =
            run_of(move |_, mut stream| async move { whole(&mut stream, "200 OK", media, body).await }).await;
        failed(&run, "agent_not_a_stream", words);
    }
    for (status, body, words) in [
        ("500 Internal Server Error", r#"{"detail":"no model loaded"}"#, &["500", "no model loaded"][..]),
        ("404 Not Found", "<html><title>404</title><p>nginx</p></html>", &["404 Not Found", "nginx"]),
        ("599 Whatever", "", &["599"]),
    ] {
        let (run, _) =
            run_of(move |_, mut stream| async move { whole(&mut stream, status, "text/html", body).await })
                .await;
        failed(&run, "agent_refused", words);
        assert!(run["error"]["details"]["status"].is_u64(), "{run}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redirect_is_reported_and_not_followed() {
    let elsewhere = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let location = format!("http://{}/steal", elsewhere.local_addr().unwrap());
    for status in ["301 Moved Permanently", "302 Found", "307 Temporary Redirect", "308 Permanent Redirect"] {
        let answer = format!("HTTP/1.1 {status}\r\nlocation: {location}\r\ncontent-length: 0\r\n\r\n");
        let (run, _) = run_of(move |_, mut stream| {
            let answer = answer.clone();
            async move { drop(stream.write_all(answer.as_bytes()).await) }
        })
        .await;
        failed(&run, "agent_refused", &[&status[..3], &location, "`url`"]);
    }
    assert!(futures_util::FutureExt::now_or_never(elsewhere.accept()).is_none(), "it was followed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_breaks_says_when_it_did() {
    // Before anything was answered: closed, and reset.
    for is_reset in [false, true] {
        let (run, _) = run_of(move |_, stream| async move {
            if is_reset {
                stream.set_zero_linger().unwrap();
            }
            drop(stream);
        })
        .await;
        failed(&run, "agent_broken_off", &["before it answered"]);
    }
    // Within a body that promised more, and within a chunk.
    let text = r#"data: {"type":"message_chunk","content":"kept","id":"n"}"#;
    for head in ["content-length: 5000\r\n\r\n", "transfer-encoding: chunked\r\n\r\n5000\r\n"] {
        let answer = format!("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n{head}{text}\n\n");
        let (run, events) = run_of(move |_, mut stream| {
            let answer = answer.clone();
            async move { drop(stream.write_all(answer.as_bytes()).await) }
        })
        .await;
        failed(&run, "agent_broken_off", &["broke off"]);
        assert_eq!(count(&events, "text.delta"), 1, "what came whole is kept");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_stalls_says_for_how_long() {
    let (run, events) = run_of(|_, mut stream| async move {
        begin_sse(&mut stream).await;
        chunk(&mut stream, "data: {\"type\":\"run_start\"}\n\ndata: {\"half").await;
        until_closed(&mut stream).await;
    })
    .await;
    failed(&run, "agent_silent", &["silent for"]);
    assert_eq!(count(&events, "foreign"), 0, "half a frame is none");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_never_ends_is_silence() {
    for (media, first, more) in [
        ("text/event-stream", "data: ", "x"),
        ("text/event-stream", "event: x\n", "data: x\n"),
        ("application/x-ndjson", "", "x"),
        ("application/json", "[\"", "x"),
        ("text/plain", "", "x"),
    ] {
        let (run, events) = run_of(move |_, mut stream| async move {
            let head = format!("HTTP/1.1 200 OK\r\ncontent-type: {media}\r\n\r\n{first}");
            let more = more.repeat((64 << 10) / more.len());
            let mut sent = stream.write_all(head.as_bytes()).await;
            while sent.is_ok() {
                sent = stream.write_all(more.as_bytes()).await;
            }
        })
        .await;
        failed(&run, "agent_silent", &["silent for"]);
        assert!(events.len() <= 4, "{media}: {events:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_that_is_no_frame_is_reported_with_the_agents_message() {
    for media in ["application/json", "application/x-ndjson", "text/plain"] {
        let (run, _) = run_of(move |_, mut stream| async move {
            whole(&mut stream, "200 OK", media, r#"{"error":"model overloaded"}"#).await;
        })
        .await;
        failed(&run, "agent_garbled", &["loom", "model overloaded"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unreachable_agent_is_reported_with_its_host_and_without_secrets() {
    let at = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let url = format!("http://{at}/run?key=secret");
    let agent = FakeHttpAgent::telling("").await.agent_with(Dialect::Loom, |agent| agent.url = url);
    let served = Served::with(|config| config.agents = vec![agent]).await;
    served.post("/v1/runs", r#"{"run_id":"r","agent":"a"}"#).await;
    let run = served.closed("r").await;
    failed(&run, "agent_unreachable", &[&format!("at {at}:")]);
    assert!(!run.to_string().contains("secret"), "{run}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_end_in_a_later_piece_is_no_second_end() {
    let (run, events) = run_of(|_, mut stream| async move {
        begin_sse(&mut stream).await;
        chunk(&mut stream, "data: {\"reply\":\"one\"}\n\n").await;
        for _ in 0..20 {
            chunk(&mut stream, "data: {\"reply\":\"two\"}\n\ndata: {\"type\":\"run_start\"}\n\n").await;
        }
        until_closed(&mut stream).await;
    })
    .await;
    assert_eq!((&run["status"], count(&events, "run.completed")), (&"completed".into(), 1));
    assert!(!events.iter().any(|event| event.to_string().contains("two")));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_that_speaks_no_tls_says_so() {
    // Servers answer what they take for a broken request.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}/run", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.readable().await;
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n").await;
        }
    });
    let agent = FakeHttpAgent::telling("").await.agent_with(Dialect::Loom, |agent| agent.url = url);
    let served = Served::with(|config| config.agents = vec![agent]).await;
    served.post("/v1/runs", r#"{"run_id":"r","agent":"a"}"#).await;
    let run = served.closed("r").await;
    failed(&run, "agent_unreachable", &["cannot be reached", "may speak `http`, not `https`"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_stream_without_events_is_reported_with_its_text() {
    for (text, says) in [
        ("<html><body>proxy error</body></html>", "proxy error"),
        (": ping\n\n{\"type\":\"run_start\"}\n{\"reply\":\"x\"}\n", "run_start"),
    ] {
        let (run, _) = run_of(move |_, mut stream| async move {
            whole(&mut stream, "200 OK", "text/event-stream", text).await
        })
        .await;
        failed(&run, "agent_not_a_stream", &["no whole event", says]);
    }
    let (run, _) = run_of(|_, mut stream| async move {
        whole(&mut stream, "200 OK", "text/event-stream", ": ping\n\n").await
    })
    .await;
    failed(&run, "agent_empty", &["empty"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_of_which_nothing_can_be_read_is_no_success() {
    let text = "Traceback (most recent call last):\nKeyError: 'messages'\n";
    for media in ["text/plain", "application/x-ndjson", "application/octet-stream"] {
        let (run, events) =
            run_of(move |_, mut stream| async move { whole(&mut stream, "200 OK", media, text).await }).await;
        failed(&run, "agent_garbled", &["loom", "line 1"]);
        assert_eq!(count(&events, "foreign"), 2, "it is kept for whoever looks for the reason");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_ignores_a_cancel_request_is_cut_off() {
    // It takes note, refuses, or does not even answer.
    for says in ["202 Accepted", "500 Internal Server Error", ""] {
        let (closed, mut was_closed) = tokio::sync::watch::channel(false);
        let fake = FakeHttpAgent::start(move |asked: ReceivedRequest, mut stream| {
            let closed = closed.clone();
            async move {
                match asked.path.as_str() {
                    "/cancel" if says.is_empty() => until_closed(&mut stream).await,
                    "/cancel" => whole(&mut stream, says, "application/json", "{}").await,
                    _ => {
                        begin_sse(&mut stream).await;
                        chunk(&mut stream, "data: {\"type\":\"run_start\"}\n\n").await;
                        until_closed(&mut stream).await;
                        closed.send_replace(true);
                    }
                }
            }
        })
        .await;
        let agent = fake.agent_with(Dialect::Loom, |agent| {
            agent.cancel_url = Some(agent.url.replace("/run", "/cancel"));
        });
        let served = Served::with(|config| {
            config.agents = vec![agent];
            config.agent_grace = SHORT;
        })
        .await;
        served.post("/v1/runs", r#"{"run_id":"r","agent":"a"}"#).await;
        served.until_status("r", "running").await;
        served.post("/v1/runs/r/cancel", r#"{"reason":"enough"}"#).await;
        assert_eq!(served.closed("r").await["status"], "cancelled", "{says}");
        assert_eq!(served.happened("r").await.last().unwrap()["reason"], "enough", "{says}");
        crate::harness::within_timeout(was_closed.wait_for(|closed| *closed)).await.unwrap();
    }
}
