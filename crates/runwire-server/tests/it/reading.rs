//! Readers over real connections: SSE, NDJSON and WebSocket.

use futures_util::{SinkExt, StreamExt};
use http::{HeaderMap, Method, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

use crate::harness::{Answer, Served, within_timeout};

pub(crate) const SSE: (&str, &str) = ("accept", "text/event-stream");
pub(crate) const NDJSON: (&str, &str) = ("accept", "application/x-ndjson");
pub(crate) const JSON: (&str, &str) = ("accept", "application/json");

/// What one block of an event stream says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) id: Option<String>,
    pub(crate) name: Option<String>,
    pub(crate) data: Option<String>,
    pub(crate) comment: Option<String>,
    pub(crate) retry: Option<u64>,
}

impl Event {
    fn of(block: &str) -> Self {
        let mut event = Self::default();
        for line in block.lines() {
            let (field, value) = line.split_once(':').unwrap_or((line, ""));
            let value = value.strip_prefix(' ').unwrap_or(value).to_owned();
            match field {
                "" => event.comment = Some(value),
                "id" => event.id = Some(value),
                "event" => event.name = Some(value),
                "retry" => event.retry = Some(value.parse().unwrap()),
                "data" => match &mut event.data {
                    Some(data) => data.push_str(&format!("\n{value}")),
                    none => *none = Some(value),
                },
                _ => panic!("no field of an event stream: {line}"),
            }
        }
        event
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(self.data.as_deref().unwrap()).unwrap()
    }
}

/// An answer that goes on.
#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    body: Incoming,
    buffer: Vec<u8>,
    /// The last `id` that was seen, as an `EventSource` remembers it.
    pub(crate) last_id: Option<String>,
}

impl Served {
    /// Begins to read.
    pub(crate) async fn read(&self, path: &str, headers: &[(&str, &str)]) -> Stream {
        let stream = TcpStream::connect(self.address).await.unwrap();
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        let request = self.request(Method::GET, path, headers).body(Full::<bytes::Bytes>::default()).unwrap();
        let (parts, body) = within_timeout(sender.send_request(request)).await.unwrap().into_parts();
        Stream { status: parts.status, headers: parts.headers, body, buffer: Vec::new(), last_id: None }
    }

    /// Reads an answer to its end.
    pub(crate) async fn get_with(&self, path: &str, headers: &[(&str, &str)]) -> Answer {
        self.send(self.request(Method::GET, path, headers).body(bytes::Bytes::new()).unwrap()).await
    }

    /// Reads events to the end of the answer.
    pub(crate) async fn events(&self, path: &str, headers: &[(&str, &str)]) -> Vec<Event> {
        let mut stream = self.read(path, headers).await;
        assert_eq!(stream.status, 200, "{path}");
        assert_eq!(stream.headers["content-type"], "text/event-stream");
        stream.rest().await
    }

    pub(crate) async fn socket(&self) -> Socket {
        Socket::connect(&format!("ws://{}/v1/ws", self.address)).await
    }
}

impl Stream {
    async fn until(&mut self, end: &[u8]) -> Option<String> {
        loop {
            if let Some(at) = self.buffer.windows(end.len()).position(|bytes| bytes == end) {
                let block: Vec<u8> = self.buffer.drain(..at + end.len()).collect();
                return Some(String::from_utf8(block).unwrap());
            }
            match within_timeout(self.body.frame()).await {
                Some(frame) => self.buffer.extend_from_slice(frame.unwrap().data_ref().unwrap()),
                None => return None,
            }
        }
    }

    /// Waits for the next block of an event stream; nothing at its end.
    pub(crate) async fn block(&mut self) -> Option<Event> {
        let block = self.until(b"\n\n").await?;
        let event = Event::of(block.trim_end_matches('\n'));
        self.last_id = event.id.clone().or(self.last_id.take());
        Some(event)
    }

    /// Waits for the next block that carries data.
    pub(crate) async fn event(&mut self) -> Option<Event> {
        loop {
            let event = self.block().await?;
            if event.data.is_some() {
                return Some(event);
            }
        }
    }

    /// Waits for a comment.
    pub(crate) async fn comment(&mut self, text: &str) -> Event {
        loop {
            let event = self.block().await.expect("the stream ended");
            if event.comment.as_deref() == Some(text) {
                return event;
            }
        }
    }

    /// Reads the events to the end.
    pub(crate) async fn rest(&mut self) -> Vec<Event> {
        let mut events = Vec::new();
        while let Some(event) = self.event().await {
            events.push(event);
        }
        events
    }

    /// Waits for the next line that is not blank; nothing at the end.
    pub(crate) async fn line(&mut self) -> Option<String> {
        loop {
            let line = self.until(b"\n").await?;
            if line != "\n" {
                return Some(line.trim_end().to_owned());
            }
        }
    }

    pub(crate) async fn lines(&mut self) -> Vec<String> {
        let mut lines = Vec::new();
        while let Some(line) = self.line().await {
            lines.push(line);
        }
        lines
    }

    pub(crate) async fn rest_of_bytes(&mut self) -> String {
        while let Some(frame) = within_timeout(self.body.frame()).await {
            self.buffer.extend_from_slice(frame.unwrap().data_ref().unwrap());
        }
        String::from_utf8(std::mem::take(&mut self.buffer)).unwrap()
    }
}

/// A WebSocket.
pub(crate) struct Socket(WebSocketStream<MaybeTlsStream<TcpStream>>);

impl Socket {
    pub(crate) async fn connect(url: &str) -> Self {
        Self(within_timeout(connect_async(url)).await.unwrap().0)
    }

    pub(crate) async fn say(&mut self, message: Value) {
        self.0.send(Message::text(message.to_string())).await.unwrap();
    }

    /// Waits for the next message; nothing once the socket is closed.
    pub(crate) async fn hear(&mut self) -> Option<Value> {
        loop {
            match within_timeout(self.0.next()).await?.ok()? {
                Message::Text(text) => return Some(serde_json::from_str(&text).unwrap()),
                Message::Close(_) => return None,
                _ => {}
            }
        }
    }

    /// Waits for a message with an `op`, and gives the frames before it.
    pub(crate) async fn frames_until(&mut self, op: &str) -> Vec<Value> {
        let mut frames = Vec::new();
        loop {
            let message = self.hear().await.expect("the socket was closed");
            match message["op"].as_str().unwrap() {
                said if said == op => return frames,
                "frame" => frames.push(message),
                "caught_up" | "pong" | "ack" | "signal" => {}
                _ => panic!("{message}"),
            }
        }
    }

    pub(crate) async fn subscribe(&mut self, id: &str, what: Value) {
        let mut message = json!({"op": "subscribe", "id": id});
        message.as_object_mut().unwrap().extend(what.as_object().unwrap().clone());
        self.say(message).await;
    }
}
