//! Test harness: a server on a free port with its own store, and HTTP and raw clients.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper_util::rt::{TokioExecutor, TokioIo};
use runwire_log::Log;
use runwire_log::sqlite::{SqliteLog, SqliteOptions};
use runwire_model::ErrorCode;
use runwire_server::{Config, Server};
use serde_json::Value;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// Upper bound for any passing test step.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(20);

pub(crate) struct Served {
    pub(crate) address: SocketAddr,
    pub(crate) log: Arc<dyn Log>,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<std::io::Result<()>>,
    directory: TempDir,
}

impl Served {
    pub(crate) async fn start() -> Self {
        Self::with(|_| {}).await
    }

    pub(crate) async fn with(configure: impl FnOnce(&mut Config)) -> Self {
        Self::with_store(SqliteOptions::default(), configure).await
    }

    pub(crate) async fn with_store(options: SqliteOptions, configure: impl FnOnce(&mut Config)) -> Self {
        Self::on(tempfile::tempdir().unwrap(), options, configure)
    }

    /// Stops the server and starts another one on the same store.
    pub(crate) async fn restarted(mut self) -> Self {
        self.begin_to_stop();
        within_timeout(self.task).await.unwrap().unwrap();
        Self::on(self.directory, SqliteOptions::default(), |_| {})
    }

    /// Stops the server and starts another one on the same store, configured differently.
    pub(crate) async fn restarted_with(mut self, configure: impl FnOnce(&mut Config)) -> Self {
        self.begin_to_stop();
        within_timeout(self.task).await.unwrap().unwrap();
        Self::on(self.directory, SqliteOptions::default(), configure)
    }

    /// Stops the server and starts another one on the same store, which is opened differently.
    pub(crate) async fn restarted_on(mut self, options: SqliteOptions) -> Self {
        self.begin_to_stop();
        within_timeout(self.task).await.unwrap().unwrap();
        Self::on(self.directory, options, |_| {})
    }

    /// Starts a server that has its store only through something else.
    pub(crate) async fn through<L: Log>(
        wrap: impl FnOnce(Arc<dyn Log>) -> Arc<L>,
        configure: impl FnOnce(&mut Config),
    ) -> (Self, Arc<L>) {
        let directory = tempfile::tempdir().unwrap();
        let store = SqliteLog::open(&directory.path().join("runwire.db"), SqliteOptions::default()).unwrap();
        let log = wrap(Arc::new(store));
        (Self::with_log(directory, log.clone(), configure), log)
    }

    fn on(directory: TempDir, options: SqliteOptions, configure: impl FnOnce(&mut Config)) -> Self {
        let log = SqliteLog::open(&directory.path().join("runwire.db"), options).unwrap();
        Self::with_log(directory, Arc::new(log), configure)
    }

    fn with_log(directory: TempDir, log: Arc<dyn Log>, configure: impl FnOnce(&mut Config)) -> Self {
        let mut config = Config { listen: ([127, 0, 0, 1], 0).into(), ..Config::default() };
        configure(&mut config);
        let server = Server::bind(config, log.clone()).unwrap();
        let address = server.address();
        let (stop, stopped) = oneshot::channel::<()>();
        let task = tokio::spawn(server.run(async { drop(stopped.await) }));
        Self { address, log, stop: Some(stop), task, directory }
    }

    /// Asks the server to stop and does not wait.
    pub(crate) fn begin_to_stop(&mut self) {
        drop(self.stop.take());
    }

    /// Waits until the server has stopped.
    pub(crate) async fn stopped(mut self) {
        self.begin_to_stop();
        within_timeout(self.task).await.unwrap().unwrap();
    }

    /// Waits until the server has ended by itself.
    pub(crate) async fn ended(self) -> std::io::Result<()> {
        within_timeout(self.task).await.unwrap()
    }

    pub(crate) async fn send(&self, request: Request<impl Into<Bytes>>) -> Answer {
        let stream = TcpStream::connect(self.address).await.unwrap();
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        let request = request.map(|body| Full::new(body.into()));
        Answer::of(within_timeout(sender.send_request(request)).await.unwrap()).await
    }

    /// Sends over HTTP/2 without TLS.
    pub(crate) async fn send_h2(&self, request: Request<impl Into<Bytes>>) -> Answer {
        let stream = TcpStream::connect(self.address).await.unwrap();
        let handshake = hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream));
        let (mut sender, connection) = handshake.await.unwrap();
        tokio::spawn(connection);
        let mut request = request.map(|body| Full::new(body.into()));
        *request.uri_mut() = format!("http://{}{}", self.address, request.uri()).parse().unwrap();
        request.headers_mut().remove("host");
        Answer::of(within_timeout(sender.send_request(request)).await.unwrap()).await
    }

    pub(crate) fn request(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
    ) -> http::request::Builder {
        let mut builder = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            builder = builder.header(*name, *value);
        }
        builder.header("host", self.address.to_string())
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send(self.request(Method::GET, path, &[]).body(Bytes::new()).unwrap()).await
    }

    pub(crate) async fn post(&self, path: &str, body: &str) -> Answer {
        self.post_with(path, &[], body).await
    }

    pub(crate) async fn post_with(&self, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        self.send(self.request(Method::POST, path, headers).body(body.to_owned()).unwrap()).await
    }

    /// Writes a body as a producer that says who it is.
    pub(crate) async fn write_as(&self, path: &str, producer: (&str, u64, u64), body: &str) -> Answer {
        let (epoch, seq) = (producer.1.to_string(), producer.2.to_string());
        let headers = [("producer-id", producer.0), ("producer-epoch", &epoch), ("producer-seq", &seq)];
        self.post_with(path, &headers, body).await
    }

    /// Waits until a run has so many records.
    pub(crate) async fn until_records(&self, run: &str, records: u64) {
        let path = format!("/v1/runs/{run}");
        within_timeout(async {
            loop {
                let run = self.get(&path).await;
                if run.status == StatusCode::OK && run.json()["counts"]["records"].as_u64() >= Some(records) {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
        .await;
    }

    pub(crate) async fn raw(&self) -> Raw {
        Raw { stream: TcpStream::connect(self.address).await.unwrap(), read: Vec::new() }
    }

    /// Opens a body that stays open.
    pub(crate) async fn open(&self, path: &str, headers: &[(&str, &str)]) -> Raw {
        let mut raw = self.raw().await;
        let mut head = format!("POST {path} HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n");
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        raw.send(format!("{head}\r\n").as_bytes()).await.unwrap();
        raw
    }
}

/// An answer, read to its end.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
}

impl Answer {
    async fn of(response: http::Response<hyper::body::Incoming>) -> Self {
        let (parts, body) = response.into_parts();
        let bytes = within_timeout(body.collect()).await.unwrap().to_bytes();
        Self {
            status: parts.status,
            headers: parts.headers,
            text: String::from_utf8(bytes.to_vec()).unwrap(),
        }
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Asserts a problem with a code, well formed and documented, and gives it.
    #[track_caller]
    pub(crate) fn problem(&self, status: u16, code: &str) -> Value {
        assert_eq!(self.headers["content-type"], "application/problem+json", "{self:?}");
        let problem = self.json();
        assert_eq!((self.status.as_u16(), &problem["code"]), (status, &code.into()), "{self:?}");
        assert_eq!(problem["status"], status);
        let known: ErrorCode = code.parse().unwrap();
        assert_eq!((&problem["type"], &problem["title"]), (&known.page().into(), &known.title().into()));
        assert!(problem["detail"].is_string() && problem["hint"].is_string());
        problem
    }

    /// Asserts the counts of a write.
    #[track_caller]
    pub(crate) fn written(&self, accepted: u64, duplicates: u64) -> Value {
        assert_eq!(self.status, StatusCode::OK, "{self:?}");
        let counts = self.json();
        assert_eq!(
            (&counts["accepted"], &counts["duplicates"]),
            (&accepted.into(), &duplicates.into()),
            "{counts}"
        );
        counts
    }
}

/// A connection without an HTTP client, for what no client would send.
pub(crate) struct Raw {
    stream: TcpStream,
    read: Vec<u8>,
}

impl Raw {
    pub(crate) async fn send(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        within_timeout(self.stream.write_all(bytes)).await
    }

    pub(crate) async fn chunk(&mut self, data: &str) {
        self.send(format!("{:x}\r\n{data}\r\n", data.len()).as_bytes()).await.unwrap();
    }

    pub(crate) async fn end(&mut self) {
        self.send(b"0\r\n\r\n").await.unwrap();
    }

    /// Reads an answer; nothing if the connection was closed without one.
    pub(crate) async fn answer(&mut self) -> Option<Answer> {
        let head = loop {
            if let Some(at) = self.read.windows(4).position(|four| four == b"\r\n\r\n") {
                break String::from_utf8(self.read.drain(..at + 4).collect()).unwrap();
            }
            self.more().await?;
        };
        let mut lines = head.lines();
        let status = lines.next()?.split(' ').nth(1)?.parse().unwrap();
        let headers: HeaderMap = lines
            .filter_map(|line| line.split_once(": "))
            .map(|(name, value)| (name.parse::<http::HeaderName>().unwrap(), value.parse().unwrap()))
            .collect();
        let length =
            headers.get("content-length").map_or(0, |length| length.to_str().unwrap().parse().unwrap());
        while self.read.len() < length {
            self.more().await?;
        }
        let text = String::from_utf8(self.read.drain(..length).collect()).unwrap();
        Some(Answer { status, headers, text })
    }

    /// Returns true if the connection stays open and silent for a time.
    pub(crate) async fn answer_or_silence(&mut self, time: Duration) -> bool {
        tokio::time::timeout(time, self.more()).await.is_err()
    }

    /// Reads up to the end of a text that must come.
    pub(crate) async fn until(&mut self, text: &str) -> String {
        loop {
            if let Some(at) = self.read.windows(text.len()).position(|bytes| bytes == text.as_bytes()) {
                return String::from_utf8(self.read.drain(..at + text.len()).collect()).unwrap();
            }
            self.more().await.expect("the connection was closed");
        }
    }

    async fn more(&mut self) -> Option<()> {
        let mut bytes = [0; 4096];
        match within_timeout(self.stream.read(&mut bytes)).await {
            Ok(0) | Err(_) => None,
            Ok(count) => {
                self.read.extend_from_slice(&bytes[..count]);
                Some(())
            }
        }
    }
}

/// Fails if a future takes longer than any passing step.
pub(crate) async fn within_timeout<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(TIMEOUT, future).await.expect("nothing happened for a long time")
}

/// A piece of text as a `runwire` frame, with its line end.
pub(crate) fn delta(content: &str) -> String {
    format!("{{\"type\":\"text.delta\",\"message_id\":\"m1\",\"content\":\"{content}\"}}\n")
}

pub(crate) const COMPLETED: &str = "{\"type\":\"run.completed\"}\n";
