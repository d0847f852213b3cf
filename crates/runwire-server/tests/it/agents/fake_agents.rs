//! Fake agents, and assertions on their runs.

use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::Method;
use runwire_agents::{Agent, AgentKind, ExecAgent, HttpAgent};
use runwire_model::dialect::Dialect;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::harness::{Served, within_timeout};

/// A program of the shell, called `a`, that speaks `loom`.
pub(crate) fn exec_agent(script: &str) -> Agent {
    Agent { name: "a".into(), kind: AgentKind::Exec(ExecAgent::new(["sh", "-c", script], Dialect::Loom)) }
}

/// Assertions on the run of an agent.
pub(crate) trait RunAssertions {
    /// Waits for the end of a run and asserts that there is one.
    async fn closed(&self, run: &str) -> Value;
    async fn until_status(&self, run: &str, status: &str) -> Value;
    async fn happened(&self, run: &str) -> Vec<Value>;
    async fn one_end(&self, run: &str);
    /// Returns the text of the answer.
    async fn texts(&self, run: &str) -> String;
}

impl RunAssertions for Served {
    async fn closed(&self, run: &str) -> Value {
        let path = format!("/v1/runs/{run}");
        let closed = within_timeout(async {
            loop {
                let run = self.get(&path).await.json();
                if run["ended_at"].is_string() {
                    return run;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
        .await;
        self.one_end(run).await;
        closed
    }

    async fn until_status(&self, run: &str, status: &str) -> Value {
        let path = format!("/v1/runs/{run}");
        within_timeout(async {
            loop {
                let run = self.get(&path).await.json();
                if run["status"] == status {
                    return run;
                }
                assert!(run["ended_at"].is_null() || status == run["status"], "{run}");
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
        .await
    }

    async fn happened(&self, run: &str) -> Vec<Value> {
        let mut events = Vec::new();
        let mut after = "0".to_owned();
        loop {
            let path = format!("/v1/runs/{run}/events?dialect=runwire&limit=1000&after={after}");
            let accept = [("accept", "application/json")];
            let request = self.request(Method::GET, &path, &accept).body("").unwrap();
            let answer = self.send(request).await;
            if answer.status.as_u16() == 204 {
                return events;
            }
            let page = answer.json();
            events.extend(page["frames"].as_array().unwrap().iter().map(|item| item["frame"].clone()));
            match page["next"].as_str() {
                Some(next) => after = next.to_owned(),
                None => return events,
            }
        }
    }

    async fn one_end(&self, run: &str) {
        let events = self.happened(run).await;
        let ends = ["run.completed", "run.failed", "run.cancelled"];
        let is_end = |event: &&Value| ends.contains(&event["type"].as_str().unwrap());
        assert_eq!(events.iter().filter(is_end).count(), 1, "{events:#?}");
        assert!(is_end(&events.last().unwrap()));
    }

    async fn texts(&self, run: &str) -> String {
        let events = self.happened(run).await;
        let texts = events.iter().filter(|event| event["type"] == "text.delta");
        texts.map(|event| event["content"].as_str().unwrap()).collect()
    }
}

/// Counts the events of a type.
pub(crate) fn count(events: &[Value], kind: &str) -> usize {
    events.iter().filter(|event| event["type"] == kind).count()
}

/// A request that an agent received.
#[derive(Debug, Clone)]
pub(crate) struct ReceivedRequest {
    pub(crate) path: String,
    pub(crate) head: String,
    pub(crate) body: Value,
}

/// A fake HTTP agent with full control of the connection.
pub(crate) struct FakeHttpAgent {
    pub(crate) url: String,
    asked: Arc<Mutex<Vec<ReceivedRequest>>>,
}

impl FakeHttpAgent {
    pub(crate) async fn start<F, R>(answer: F) -> Self
    where
        F: Fn(ReceivedRequest, TcpStream) -> R + Send + Sync + 'static,
        R: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/run", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (noted, answer) = (asked.clone(), Arc::new(answer));
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let (noted, answer) = (noted.clone(), answer.clone());
                tokio::spawn(async move {
                    let Some(request) = request(&mut stream).await else { return };
                    noted.lock().unwrap().push(request.clone());
                    answer(request, stream).await;
                });
            }
        });
        Self { url, asked }
    }

    /// An agent that answers everything with the same frames, as SSE.
    pub(crate) async fn telling(frames: &'static str) -> Self {
        Self::start(move |_, mut stream| async move { sse(&mut stream, frames).await }).await
    }

    pub(crate) fn agent(&self, dialect: Dialect) -> Agent {
        self.agent_with(dialect, |_| {})
    }

    pub(crate) fn agent_with(&self, dialect: Dialect, change: impl FnOnce(&mut HttpAgent)) -> Agent {
        let mut agent = HttpAgent::new(self.url.as_str(), dialect);
        change(&mut agent);
        Agent { name: "a".into(), kind: AgentKind::Http(agent) }
    }

    pub(crate) fn asked(&self) -> Vec<ReceivedRequest> {
        self.asked.lock().unwrap().clone()
    }
}

async fn request(stream: &mut TcpStream) -> Option<ReceivedRequest> {
    let mut read = Vec::new();
    let mut bytes = [0; 4096];
    loop {
        if let Some(at) = read.windows(4).position(|four| four == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&read[..at]).into_owned();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            let length: usize = length.map_or(0, |length| length.parse().unwrap());
            if read.len() >= at + 4 + length {
                let body = serde_json::from_slice(&read[at + 4..]).unwrap_or(Value::Null);
                let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
                return Some(ReceivedRequest { path, head, body });
            }
        }
        match stream.read(&mut bytes).await {
            Ok(0) | Err(_) => return None,
            Ok(count) => read.extend_from_slice(&bytes[..count]),
        }
    }
}

/// Answers with frames, one a line, as SSE, and closes properly.
pub(crate) async fn sse(stream: &mut TcpStream, frames: &str) {
    begin_sse(stream).await;
    for frame in frames.lines() {
        chunk(stream, &format!("data: {frame}\n\n")).await;
    }
    let _ = stream.write_all(b"0\r\n\r\n").await;
}

/// Answers that a stream of SSE follows.
pub(crate) async fn begin_sse(stream: &mut TcpStream) {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
    let _ = stream.write_all(head.as_bytes()).await;
}

pub(crate) async fn chunk(stream: &mut TcpStream, data: &str) {
    let _ = stream.write_all(format!("{:x}\r\n{data}\r\n", data.len()).as_bytes()).await;
}

/// Answers with a whole body.
pub(crate) async fn whole(stream: &mut TcpStream, status: &str, media: &str, body: &str) {
    let length = body.len();
    let answer =
        format!("HTTP/1.1 {status}\r\ncontent-type: {media}\r\ncontent-length: {length}\r\n\r\n{body}");
    let _ = stream.write_all(answer.as_bytes()).await;
}

/// Waits until the other side closes the connection.
pub(crate) async fn until_closed(stream: &mut TcpStream) {
    let mut bytes = [0; 64];
    while matches!(stream.read(&mut bytes).await, Ok(count) if count > 0) {}
}
