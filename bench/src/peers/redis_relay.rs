//! A minimal relay in front of Redis, as many teams build one: `XADD` to publish, one `XREAD` a stream for its readers.
//!
//! Redis runs as a child of the relay, so that its CPU time and memory are counted with it, and waits for the disk
//! (`appendfsync always`).

use std::collections::HashMap;
use std::convert::Infallible;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Query, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use futures_util::{StreamExt, stream};
use redis::aio::MultiplexedConnection;
use redis::streams::{StreamReadOptions, StreamReadReply};
use redis::{AsyncCommands, Client};
use tokio::sync::broadcast;

use super::launch::free_address;
use crate::Failure;

/// Events that a slow reader may be behind.
const BUFFERED: usize = 4096;

#[derive(Clone)]
struct Relay {
    client: Client,
    commands: MultiplexedConnection,
    followed: Arc<Mutex<HashMap<String, broadcast::Sender<Bytes>>>>,
}

/// Serves until it is killed; Redis ends with it.
pub(crate) fn serve(arguments: &[String]) -> Result<(), Failure> {
    let [program, port] = arguments else { return Err("it is started with a program and a port".into()) };
    let port: u16 = port.parse()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let engine = free_address()?.port();
        // The relay is killed at the end, and Redis must not outlive it.
        let mut redis = Command::new("setpriv");
        redis.args(["--pdeathsig", "KILL", program]);
        redis.args(["--port", &engine.to_string(), "--bind", "127.0.0.1", "--save", ""]);
        redis.args(["--appendonly", "yes", "--appendfsync", "always", "--maxclients", "1000"]);
        let _redis = redis.stdin(Stdio::null()).stdout(Stdio::null()).spawn()?;
        let client = Client::open(format!("redis://127.0.0.1:{engine}"))?;
        let commands = loop {
            match client.get_multiplexed_async_connection().await {
                Ok(commands) => break commands,
                Err(_) => tokio::time::sleep(std::time::Duration::from_millis(20)).await,
            }
        };
        let relay = Relay { client, commands, followed: Arc::default() };
        let router =
            Router::new().route("/pub", post(publish)).route("/sub", get(subscribe)).with_state(relay);
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await?;
        axum::serve(listener, router).await?;
        Ok(())
    })
}

async fn publish(
    State(mut relay): State<Relay>,
    Query(query): Query<HashMap<String, String>>,
    body: Bytes,
) -> StatusCode {
    let id = query.get("id").map_or("", String::as_str);
    let added: redis::RedisResult<String> = relay.commands.xadd(id, "*", &[("d", &body[..])]).await;
    added.map_or(StatusCode::BAD_GATEWAY, |_| StatusCode::ACCEPTED)
}

async fn subscribe(State(relay): State<Relay>, Query(query): Query<HashMap<String, String>>) -> Response {
    let id = query.get("id").cloned().unwrap_or_default();
    let hello = stream::once(async { Ok(Bytes::from_static(b": hello\n\n")) });
    let frames = stream::unfold(relay.follow(id), async |mut frames| {
        let frame = frames.recv().await.ok()?;
        Some((Ok::<_, Infallible>(frame), frames))
    });
    ([(header::CONTENT_TYPE, "text/event-stream")], Body::from_stream(hello.chain(frames))).into_response()
}

impl Relay {
    fn follow(&self, id: String) -> broadcast::Receiver<Bytes> {
        let mut followed = self.followed.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(frames) = followed.get(&id) {
            return frames.subscribe();
        }
        let (frames, receiver) = broadcast::channel(BUFFERED);
        followed.insert(id.clone(), frames.clone());
        tokio::spawn(pass_on(self.client.clone(), id, frames));
        receiver
    }
}

/// Reads a stream from its end on, and passes each entry to its readers.
async fn pass_on(client: Client, id: String, frames: broadcast::Sender<Bytes>) -> Result<(), Failure> {
    let mut connection = client.get_multiplexed_async_connection().await?;
    connection.set_response_timeout(std::time::Duration::MAX);
    let mut last = "$".to_owned();
    let options = StreamReadOptions::default().block(0).count(256);
    loop {
        let reply: Option<StreamReadReply> = connection.xread_options(&[&id], &[&last], &options).await?;
        for entry in reply.into_iter().flat_map(|reply| reply.keys).flat_map(|key| key.ids) {
            let data: Vec<u8> = entry.get("d").unwrap_or_default();
            let frame = [b"data: ", data.trim_ascii_end(), b"\n\n"].concat();
            // There may be no reader any more.
            let _ = frames.send(frame.into());
            last = entry.id;
        }
    }
}
