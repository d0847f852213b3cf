//! HTTP agents: requests, streams, cancel.

use std::time::Duration;

use runwire_agents::HttpAgent;
use runwire_model::dialect::Dialect;
use serde_json::{Value, json};
use tokio::net::TcpStream;

use super::fake_agents::{
    FakeHttpAgent, ReceivedRequest, RunAssertions, begin_sse, chunk, count, sse, until_closed, whole,
};
use crate::harness::{Served, within_timeout};

const SHORT: Duration = Duration::from_millis(200);
const HELLO: &str = "{\"type\":\"run_start\",\"message\":\"x\"}\n{\"type\":\"message_chunk\",\"content\":\"hello\",\"id\":\"n\"}\n{\"reply\":\"hello\"}";

async fn serving(fake: &FakeHttpAgent, dialect: Dialect, change: impl FnOnce(&mut HttpAgent)) -> Served {
    let agent = fake.agent_with(dialect, change);
    Served::with(|config| {
        config.agents = vec![agent];
        config.agent_grace = SHORT;
    })
    .await
}

async fn start(served: &Served) {
    let body = json!({"run_id": "r", "thread_id": "t", "agent": "a", "message": "天气 怎么样?"});
    assert_eq!(served.post("/v1/runs", &body.to_string()).await.status.as_u16(), 201);
}

/// Runs a loom agent to the end of its run.
async fn run_of<F, R>(answer: F) -> (Value, Vec<Value>)
where
    F: Fn(ReceivedRequest, TcpStream) -> R + Send + Sync + 'static,
    R: Future<Output = ()> + Send + 'static,
{
    let fake = FakeHttpAgent::start(answer).await;
    let served = serving(&fake, Dialect::Loom, |agent| {
        (agent.answer_time, agent.silence_time) = (Duration::from_secs(5), SHORT);
    })
    .await;
    start(&served).await;
    let run = served.closed("r").await;
    (run, served.happened("r").await)
}

#[tokio::test]
async fn each_dialect_gets_requests_in_its_own_format() {
    let forms = [
        (Dialect::Agio, json!({"query": "天气 怎么样?"})),
        (Dialect::StreamingEngine, json!({"session_id": "t", "content": "天气 怎么样?"})),
        (Dialect::EasyflowChat, json!({"prompt": "天气 怎么样?", "botId": "a", "conversationId": "t"})),
        (
            Dialect::Loom,
            json!({"type": "run", "id": "r", "message": "天气 怎么样?", "agent": "a", "thread_id": "t"}),
        ),
    ];
    for (dialect, expected) in forms {
        let fake = FakeHttpAgent::telling("").await;
        let served = serving(&fake, dialect, |agent| {
            agent.headers = vec![("authorization".parse().unwrap(), "Bearer key".parse().unwrap())];
            agent.url.push_str("?q={message}");
        })
        .await;
        start(&served).await;
        assert_eq!(served.closed("r").await["error"]["code"], "agent_empty");
        let asked = fake.asked().remove(0);
        assert_eq!(asked.body, expected);
        assert_eq!(asked.path, "/run?q=%E5%A4%A9%E6%B0%94%20%E6%80%8E%E4%B9%88%E6%A0%B7%3F");
        assert!(asked.head.contains("authorization: Bearer key"), "{}", asked.head);
    }
}

#[tokio::test]
async fn an_ag_ui_agent_gets_the_whole_conversation() {
    let fake = FakeHttpAgent::start(|asked, mut stream| async move {
        let run = asked.body["runId"].as_str().unwrap().to_owned();
        let frames = format!(
            "{{\"type\":\"RUN_STARTED\",\"threadId\":\"t\",\"runId\":\"{run}\"}}\n\
             {{\"type\":\"TEXT_MESSAGE_START\",\"messageId\":\"m-{run}\",\"role\":\"assistant\"}}\n\
             {{\"type\":\"TEXT_MESSAGE_CONTENT\",\"messageId\":\"m-{run}\",\"delta\":\"hi\"}}\n\
             {{\"type\":\"TEXT_MESSAGE_END\",\"messageId\":\"m-{run}\"}}\n\
             {{\"type\":\"STATE_SNAPSHOT\",\"snapshot\":{{\"n\":1}}}}\n\
             {{\"type\":\"RUN_FINISHED\",\"threadId\":\"t\",\"runId\":\"{run}\"}}"
        );
        sse(&mut stream, &frames).await;
    })
    .await;
    let served = serving(&fake, Dialect::AgUi, |_| {}).await;
    for run in ["r1", "r2"] {
        let body = json!({"run_id": run, "thread_id": "t", "agent": "a", "message": "hello"});
        served.post("/v1/runs", &body.to_string()).await;
        assert_eq!(served.closed(run).await["status"], "completed");
    }
    let asked = fake.asked();
    let input = &asked[1].body;
    assert_eq!((&input["threadId"], &input["runId"]), (&"t".into(), &"r2".into()));
    let roles: Vec<_> =
        input["messages"].as_array().unwrap().iter().map(|said| said["role"].clone()).collect();
    assert_eq!(roles, ["user", "assistant", "user"]);
    assert_eq!(input["state"], json!({"n": 1}));
    for list in ["tools", "context"] {
        assert_eq!(input[list], json!([]));
    }
    assert_eq!(asked[0].body["messages"][0]["content"], "hello");
}

#[tokio::test]
async fn what_is_streamed_is_the_run_in_every_framing() {
    let (run, events) = run_of(|_, mut stream| async move { sse(&mut stream, HELLO).await }).await;
    assert_eq!((&run["status"], count(&events, "text.delta")), (&"completed".into(), 1));
    let lines =
        |_, mut stream| async move { whole(&mut stream, "200 OK", "application/x-ndjson", HELLO).await };
    assert_eq!(run_of(lines).await.1.len(), events.len());
    let array = format!("[{}]", HELLO.replace('\n', ","));
    let array = move |_, mut stream| {
        let array = array.clone();
        async move { whole(&mut stream, "200 OK", "application/json", &array).await }
    };
    assert_eq!(run_of(array).await.1.len(), events.len());
}

#[tokio::test]
async fn an_error_page_becomes_a_failure_that_helps() {
    let page = "<html><head><title>Oops</title></head><body>database <b>down</b></body></html>";
    let (run, events) = run_of(move |_, mut stream| async move {
        whole(&mut stream, "500 Internal Server Error", "text/html", page).await
    })
    .await;
    assert_eq!(run["error"]["code"], "agent_refused");
    assert_eq!(run["error"]["message"], "the agent answered 500 Internal Server Error: Oops database down");
    assert_eq!(events.last().unwrap()["error"]["details"]["status"], 500);
}

#[tokio::test]
async fn a_page_for_people_is_no_run() {
    let (run, _) = run_of(|_, mut stream| async move {
        whole(&mut stream, "200 OK", "text/html", "<h1>Welcome</h1>").await
    })
    .await;
    assert_eq!(run["error"]["code"], "agent_not_a_stream");
    assert!(run["error"]["message"].as_str().unwrap().contains("Welcome"));
    let (run, _) = run_of(|_, mut stream| async move {
        use tokio::io::AsyncWriteExt;
        let answer = b"HTTP/1.1 307 Temporary Redirect\r\nlocation: http://169.254.169.254/\r\ncontent-length: 0\r\n\r\n";
        let _ = stream.write_all(answer).await;
    })
    .await;
    assert!(run["error"]["message"].as_str().unwrap().contains("169.254.169.254"), "{run}");
}

#[tokio::test]
async fn garbage_is_kept_as_foreign_and_bytes_that_are_no_http_fail_the_run() {
    let (run, events) =
        run_of(|_, mut stream| async move { sse(&mut stream, "garbage\n{\"x\":\n{\"reply\":\"ok\"}").await })
            .await;
    assert_eq!((&run["status"], count(&events, "foreign")), (&"completed".into(), 2));
    let (run, _) = run_of(|_, mut stream| async move {
        use tokio::io::AsyncWriteExt;
        let _ = stream.write_all(b"\x00\x01SSH-2.0-nothing\r\n\r\n").await;
    })
    .await;
    assert_eq!(run["error"]["code"], "agent_broken_off");
    let broken =
        |_, mut stream| async move { whole(&mut stream, "200 OK", "application/json", "[{} {}]").await };
    assert_eq!(run_of(broken).await.0["error"]["code"], "agent_garbled");
}

#[tokio::test]
async fn a_connection_that_is_reset_in_the_middle_fails_the_run_and_keeps_what_came() {
    let (run, events) = run_of(|_, mut stream| async move {
        begin_sse(&mut stream).await;
        chunk(
            &mut stream,
            "data: {\"type\":\"message_chunk\",\"content\":\"half\",\"id\":\"n\"}\n\ndata: {\"ty",
        )
        .await;
        stream.set_zero_linger().unwrap();
    })
    .await;
    assert_eq!((&run["status"], &run["error"]["code"]), (&"failed".into(), &"agent_broken_off".into()));
    assert_eq!(count(&events, "text.delta"), 1);
}

#[tokio::test]
async fn an_agent_that_stalls_fails_its_run() {
    let (run, _) = run_of(|_, mut stream| async move {
        begin_sse(&mut stream).await;
        chunk(&mut stream, "data: {\"type\":\"run_start\"}\n\n").await;
        until_closed(&mut stream).await;
    })
    .await;
    assert_eq!(run["error"]["code"], "agent_silent");
    let fake = FakeHttpAgent::start(|_, mut stream| async move { until_closed(&mut stream).await }).await;
    let served = serving(&fake, Dialect::Loom, |agent| agent.answer_time = SHORT).await;
    start(&served).await;
    assert_eq!(served.closed("r").await["error"]["code"], "agent_silent");
    assert_eq!(fake.asked().len(), 1, "an agent that may be at work is not asked twice");
}

#[tokio::test]
async fn comments_keep_a_silent_agent_alive() {
    let (run, _) = run_of(|_, mut stream| async move {
        begin_sse(&mut stream).await;
        for _ in 0..10 {
            chunk(&mut stream, ": ping\n\n").await;
            tokio::time::sleep(SHORT / 4).await;
        }
        chunk(&mut stream, "data: {\"reply\":\"there\"}\n\n").await;
        until_closed(&mut stream).await;
    })
    .await;
    assert_eq!(run["status"], "completed");
}

#[tokio::test]
async fn the_first_end_counts_and_a_stream_that_goes_on_is_left() {
    let (run, events) = run_of(|_, mut stream| async move {
        begin_sse(&mut stream).await;
        chunk(&mut stream, "data: {\"reply\":\"one\"}\n\ndata: {\"reply\":\"two\"}\n\n").await;
        until_closed(&mut stream).await;
    })
    .await;
    assert_eq!((&run["status"], count(&events, "run.completed")), (&"completed".into(), 1));
}

#[tokio::test]
async fn an_agent_that_never_ends_is_cut_off_when_it_is_cancelled() {
    let (closed, was_closed) = tokio::sync::watch::channel(false);
    let closed = std::sync::Arc::new(closed);
    let fake = FakeHttpAgent::start(move |_, mut stream| {
        let closed = closed.clone();
        async move {
            begin_sse(&mut stream).await;
            chunk(&mut stream, "data: {\"type\":\"run_start\"}\n\n").await;
            until_closed(&mut stream).await;
            closed.send_replace(true);
        }
    })
    .await;
    let served = serving(&fake, Dialect::Loom, |_| {}).await;
    start(&served).await;
    served.until_status("r", "running").await;
    served.post("/v1/runs/r/cancel", r#"{"reason":"enough"}"#).await;
    assert_eq!(served.closed("r").await["status"], "cancelled");
    let mut was_closed = was_closed;
    within_timeout(was_closed.wait_for(|closed| *closed)).await.unwrap();
}

#[tokio::test]
async fn an_agent_with_a_cancel_url_gets_the_request_and_may_end_its_run_itself() {
    let (cancel, _) = tokio::sync::broadcast::channel::<()>(4);
    let cancel = std::sync::Arc::new(cancel);
    let fake = FakeHttpAgent::start(move |asked: ReceivedRequest, mut stream| {
        let cancel = cancel.clone();
        async move {
            if asked.path == "/cancel" {
                assert_eq!(asked.body["reason"], "enough");
                let _ = cancel.send(());
                return whole(&mut stream, "202 Accepted", "application/json", "{}").await;
            }
            let mut cancelled = cancel.subscribe();
            begin_sse(&mut stream).await;
            chunk(&mut stream, "data: {\"type\":\"run_start\"}\n\n").await;
            cancelled.recv().await.unwrap();
            chunk(&mut stream, "data: {\"reply\":\"tidied\",\"stop_reason\":\"cancelled\"}\n\n").await;
        }
    })
    .await;
    let url = fake.url.replace("/run", "/cancel");
    let served = serving(&fake, Dialect::Loom, |agent| agent.cancel_url = Some(url)).await;
    start(&served).await;
    served.until_status("r", "running").await;
    served.post("/v1/runs/r/cancel", r#"{"reason":"enough"}"#).await;
    assert_eq!(served.closed("r").await["status"], "cancelled");
    assert_eq!(served.texts("r").await, "tidied");
}

#[tokio::test]
async fn a_busy_agent_is_retried_and_one_that_refuses_is_not() {
    let tries = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let counted = tries.clone();
    let (run, _) = run_of(move |_, mut stream| {
        let attempt = counted.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        async move {
            match attempt {
                0 => whole(&mut stream, "503 Service Unavailable", "text/plain", "later").await,
                _ => sse(&mut stream, HELLO).await,
            }
        }
    })
    .await;
    assert_eq!((&run["status"], tries.load(std::sync::atomic::Ordering::SeqCst)), (&"completed".into(), 2));
    let fake = FakeHttpAgent::start(|_, mut stream| async move {
        whole(&mut stream, "401 Unauthorized", "text/plain", "who?").await
    })
    .await;
    let served = serving(&fake, Dialect::Loom, |_| {}).await;
    start(&served).await;
    assert_eq!(served.closed("r").await["error"]["message"], "the agent answered 401 Unauthorized: who?");
    assert_eq!(fake.asked().len(), 1);
}

#[tokio::test]
async fn an_agent_that_is_not_there_fails_its_run() {
    let fake = FakeHttpAgent::telling("").await;
    let served = serving(&fake, Dialect::Loom, |agent| agent.url = "http://127.0.0.1:1/x".into()).await;
    start(&served).await;
    assert_eq!(served.closed("r").await["error"]["code"], "agent_unreachable");
}

#[tokio::test]
async fn a_server_that_stops_ends_the_runs_of_its_streams() {
    let fake = FakeHttpAgent::start(|_, mut stream| async move {
        begin_sse(&mut stream).await;
        chunk(&mut stream, "data: {\"type\":\"run_start\"}\n\n").await;
        until_closed(&mut stream).await;
    })
    .await;
    let served = serving(&fake, Dialect::Loom, |_| {}).await;
    start(&served).await;
    served.until_status("r", "running").await;
    let served = served.restarted().await;
    assert_eq!(served.closed("r").await["error"]["code"], "server_stopped");
}
