//! Test doubles: a proxy that breaks connections, and a server that plays scripted responses.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures_util::{Stream, StreamExt, stream};
use runwire_client::{Client, ClientBuilder, Cursor, Error, ReceivedFrame, RunHandle, UploadReceipt};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::test_server::within_timeout;

/// Returns a client with short retry delays.
pub(crate) fn fast_retry_client(address: SocketAddr) -> ClientBuilder {
    let wait = Duration::from_millis(5);
    Client::builder().url(format!("http://{address}")).retry_delays(wait, 4 * wait)
}

/// Writes frames of the `runwire` dialect.
pub(crate) async fn write(run: &RunHandle, frames: &str) -> UploadReceipt {
    let bytes = stream::iter([Ok::<_, std::io::Error>(Bytes::copy_from_slice(frames.as_bytes()))]);
    within_timeout(run.upload().dialect(runwire_client::Dialect::Runwire).send(bytes)).await.unwrap()
}

pub(crate) fn delta(content: &str) -> String {
    format!("{{\"type\":\"text.delta\",\"message_id\":\"m1\",\"content\":\"{content}\"}}\n")
}

pub(crate) const COMPLETED: &str = "{\"type\":\"run.completed\"}\n";

/// A frame's cursor and text.
pub(crate) type CursorAndText = (Option<Cursor>, String);

pub(crate) fn cursor_and_text(frame: &ReceivedFrame) -> CursorAndText {
    (frame.cursor, frame.text().into_owned())
}

/// Reads a stream of frames to its end.
pub(crate) async fn all(frames: impl Stream<Item = Result<ReceivedFrame, Error>>) -> Vec<CursorAndText> {
    within_timeout(frames.map(|frame| cursor_and_text(&frame.unwrap())).collect()).await
}

/// A deterministic random number generator.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SeededRandom(pub(crate) u64);

impl SeededRandom {
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % bound as u64).unwrap()
    }
}

/// A proxy that breaks each connection after some bytes of the response.
pub(crate) struct BreakingProxy {
    pub(crate) address: SocketAddr,
    connections: Arc<AtomicUsize>,
    task: tokio::task::JoinHandle<()>,
}

impl BreakingProxy {
    /// Breaks each connection after at most this many bytes.
    pub(crate) async fn to(server: SocketAddr, mut seed: SeededRandom, max_bytes: usize) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let connections = Arc::new(AtomicUsize::new(0));
        let count = connections.clone();
        let task = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                count.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(forward(client, server, seed.below(max_bytes)));
            }
        });
        Self { address, connections, task }
    }

    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

impl Drop for BreakingProxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn forward(mut client: TcpStream, server: SocketAddr, mut left: usize) {
    let Ok(mut server) = TcpStream::connect(server).await else { return };
    let ((mut from_client, mut to_client), (mut from_server, mut to_server)) =
        (client.split(), server.split());
    let there = async {
        let _ = tokio::io::copy(&mut from_client, &mut to_server).await;
    };
    let back = async {
        let mut bytes = vec![0; 4096];
        while left > 0 {
            let max_bytes = left.min(bytes.len());
            let count = from_server.read(&mut bytes[..max_bytes]).await.unwrap_or(0);
            if count == 0 || to_client.write_all(&bytes[..count]).await.is_err() {
                return;
            }
            left -= count;
        }
    };
    tokio::select! { () = there => {}, () = back => {} }
}

/// A server that plays scripted responses, one per connection, and then stops listening.
pub(crate) struct ScriptedServer {
    pub(crate) address: SocketAddr,
    task: tokio::task::JoinHandle<Vec<String>>,
}

/// What follows a response.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Ending {
    Close,
    Silence,
}

impl ScriptedServer {
    pub(crate) async fn play(answers: Vec<(String, Ending)>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let task = tokio::spawn(async move {
            let (mut requests, mut silent) = (Vec::new(), Vec::new());
            for (answer, then) in answers {
                let (mut stream, _) = listener.accept().await.unwrap();
                requests.push(head(&mut stream).await);
                stream.write_all(answer.as_bytes()).await.unwrap();
                match then {
                    Ending::Close => stream.shutdown().await.unwrap(),
                    Ending::Silence => silent.push(stream),
                }
            }
            requests
        });
        Self { address, task }
    }

    pub(crate) fn client(&self) -> ClientBuilder {
        fast_retry_client(self.address)
    }

    /// Returns the requests, after all responses were played.
    pub(crate) async fn requests(self) -> Vec<String> {
        within_timeout(self.task).await.unwrap()
    }
}

async fn head(stream: &mut TcpStream) -> String {
    let mut read = Vec::new();
    let mut bytes = [0; 1024];
    while !read.windows(4).any(|four| four == b"\r\n\r\n") {
        match stream.read(&mut bytes).await.unwrap() {
            0 => break,
            count => read.extend_from_slice(&bytes[..count]),
        }
    }
    String::from_utf8(read).unwrap()
}

/// Returns an event stream that ends after the text.
pub(crate) fn events(text: &str) -> String {
    answer("200 OK", "text/event-stream", text)
}

/// Returns an event stream that is truncated.
pub(crate) fn cut(text: &str) -> String {
    format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n{:x}\r\n{text}\r\n",
        text.len()
    )
}

pub(crate) fn over() -> String {
    "HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n".to_owned()
}

pub(crate) fn answer(status: &str, media: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: {media}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
    )
}
