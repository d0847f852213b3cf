//! The floor: the server's HTTP stack with nothing behind it.
//!
//! It neither decodes nor stores; fan-out goes from body to body through memory. So it shows the cost of HTTP alone.

use std::convert::Infallible;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, Path, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::serve::ListenerExt;
use futures_util::{StreamExt, stream};
use tokio::net::TcpListener;
use tokio::sync::{RwLock, broadcast};

use crate::Failure;

/// Frames that a slow reader may lag behind.
const MAX_LAG: usize = 16 << 10;
/// Stored bytes are sent in chunks of this size.
const CHUNK_BYTES: usize = 64 << 10;

#[derive(Clone)]
struct Floor {
    lines: broadcast::Sender<Bytes>,
    stored: std::sync::Arc<RwLock<Bytes>>,
}

/// Serves until the process is killed.
pub(crate) fn serve() -> Result<(), Failure> {
    tokio::runtime::Runtime::new()?.block_on(async {
        let floor = Floor { lines: broadcast::Sender::new(MAX_LAG), stored: std::sync::Arc::default() };
        let router = Router::new()
            .route("/v1/runs/{run}/events", post(discard))
            .route("/broadcast", get(listen).post(say))
            .route("/stored", get(read).post(store))
            .layer(DefaultBodyLimit::disable())
            .with_state(floor);
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        println!("listening on http://{}", listener.local_addr()?);
        let listener = listener.tap_io(|stream| {
            // Without it the floor is only slower.
            let _ = stream.set_nodelay(true);
        });
        axum::serve(listener, router).await?;
        Ok(())
    })
}

async fn discard(Path(_run): Path<String>, body: Body) -> Response {
    let mut pieces = body.into_data_stream();
    while let Some(Ok(_)) = pieces.next().await {}
    accepted()
}

fn accepted() -> Response {
    let answer = r#"{"accepted":1,"duplicates":0,"last_seq":1}"#;
    ([(header::CONTENT_TYPE, "application/json")], answer).into_response()
}

async fn say(State(floor): State<Floor>, body: Body) -> Response {
    let mut pieces = body.into_data_stream();
    let mut line = Vec::new();
    while let Some(Ok(piece)) = pieces.next().await {
        for part in piece.split_inclusive(|byte| *byte == b'\n') {
            line.extend_from_slice(part);
            if part.ends_with(b"\n") {
                let frame = [b"data: ", line.as_slice(), b"\n"].concat();
                // There are no readers.
                let _ = floor.lines.send(frame.into());
                line.clear();
            }
        }
    }
    accepted()
}

async fn listen(State(floor): State<Floor>) -> Response {
    let hello = stream::once(async { Ok(Bytes::from_static(b": caught-up\n\n")) });
    let frames = stream::unfold(floor.lines.subscribe(), async |mut lines| {
        let frame = lines.recv().await.ok()?;
        Some((Ok::<_, Infallible>(frame), lines))
    });
    ([(header::CONTENT_TYPE, "text/event-stream")], Body::from_stream(hello.chain(frames))).into_response()
}

async fn store(State(floor): State<Floor>, body: Bytes) -> StatusCode {
    *floor.stored.write().await = body;
    StatusCode::NO_CONTENT
}

async fn read(State(floor): State<Floor>) -> Response {
    let stored = floor.stored.read().await.clone();
    let pieces = stream::unfold(stored, async |mut left| {
        let piece = left.split_to(CHUNK_BYTES.min(left.len()));
        if piece.is_empty() { None } else { Some((Ok::<_, Infallible>(piece), left)) }
    });
    ([(header::CONTENT_TYPE, "text/event-stream")], Body::from_stream(pieces)).into_response()
}
