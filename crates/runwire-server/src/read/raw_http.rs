//! Streams served without hyper: most connections of a server that fans out are idle for minutes.
//!
//! hyper keeps a buffer of 8 KiB each way for the life of a connection, and the state machines of both HTTP
//! versions. A reader that follows a run needs neither once its request is parsed: its frames are shared bytes in
//! the feed. So the first request of a connection is peeked at before hyper sees it. If it asks for a stream that
//! follows a run or thread, the connection is served here: with the same parameters, the same reader and the same
//! frames, written to the socket as HTTP chunks.
//!
//! A task serves such a stream while it needs the store: it writes the head, and what the reader has missed. Once the reader
//! has caught up, the socket goes to a loop that serves many of them (`socket_loop`), and comes back when the stream needs
//! the store again, or has to end.
//!
//! Peeking does not consume the request, so anything unusual (a partial head, a body, a pipelined request, an error,
//! a response that is no stream) stays on the socket for hyper. Only an unavailable store is reported here: the
//! request has waited for it long enough.

use std::io::{self, ErrorKind, IoSlice, Write};
use std::net::Shutdown;
use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;
use http::header::CONTENT_LENGTH;
use http::request::Parts;
use http::{HeaderName, HeaderValue, StatusCode};
use runwire_log::{RunKey, ThreadKey};
use socket2::SockRef;
use tokio::net::TcpStream;
use tokio::sync::OwnedSemaphorePermit;

use super::stream::{StreamBody, headers};
use super::{ReadParams, ResponseFormat};
use crate::auth::tenant_of;
use crate::facade::social_app;
use crate::feed::{FeedReader, StreamFormat};
use crate::ids::from_path_segment;
use crate::problem::Problem;
use crate::raw_response::write_problem;
use crate::request_head::RequestHead;
use crate::routes::{self, HttpRoute, RUN_EVENTS, SOCIAL_APP_EVENTS, THREAD_EVENTS};
use crate::socket_loop::{CaughtUpStream, ReturnedStream};
use crate::{AppState, hosts, limits};

/// Upper bound for the bytes of a chunk's length line.
const LENGTH_BYTES: usize = 18;

/// A response that is written directly to the socket.
pub(crate) struct RawStream {
    /// The rest of a chunk that a socket loop has begun.
    rest: Bytes,
    /// Bytes to write before the next frames: first the response head, then the length of each chunk.
    unsent: Vec<u8>,
    /// The stream; none for an error response, which is all in `unsent`.
    body: Option<StreamBody>,
    /// The tenant that it belongs to.
    owner: Arc<str>,
}

/// What becomes of a stream when its task ends.
pub(crate) enum StreamOutcome {
    /// It is over.
    Over,
    /// A socket loop continues.
    CaughtUp(TcpStream, CaughtUpStream),
}

/// Waits for the first bytes of a connection and leaves them on the socket; empty if it was closed.
pub(crate) async fn peek(socket: &TcpStream) -> io::Result<Vec<u8>> {
    // No buffer is allocated before there is something to read.
    socket.readable().await?;
    let mut bytes = vec![0; limits::PEEKED_BYTES];
    let count = socket.peek(&mut bytes).await?;
    bytes.truncate(count);
    Ok(bytes)
}

/// Returns true if the first bytes of a connection may ask for a stream that is served here.
pub(crate) fn is_stream_request(peeked: &[u8]) -> bool {
    request_in(peeked)
        .and_then(|request| routes::find(&request.method, request.uri.path()))
        .is_some_and(is_stream)
}

fn is_stream(route: &HttpRoute) -> bool {
    matches!(route.path, RUN_EVENTS | THREAD_EVENTS | SOCIAL_APP_EVENTS)
}

/// Takes over a connection whose first bytes ask for a stream; otherwise leaves them on the socket.
pub(crate) async fn open(
    state: &Arc<AppState>,
    socket: &TcpStream,
    mut peeked: Vec<u8>,
) -> io::Result<Option<RawStream>> {
    let Some(request) = request_in(&peeked) else { return Ok(None) };
    let local = socket.local_addr().ok().map(|local| local.ip());
    let named = (request.version, &request.uri, &request.headers);
    if hosts::check(&state.config.allowed_hosts, local, named).is_err() {
        return Ok(None);
    }
    let Some(route) = routes::find(&request.method, request.uri.path()) else { return Ok(None) };
    let reader = match reader_for(state, route, &request).await {
        Ok(Some(reader)) => Ok(reader),
        Err(problem) if problem.is_outage() => Err(problem),
        Ok(None) | Err(_) => return Ok(None),
    };
    consume(socket, &mut peeked).await?;
    let status = reader.as_ref().map_or_else(Problem::status, |_| StatusCode::OK);
    state.metrics.count_request(route.class, status);
    let owner = tenant_of(&request.headers);
    let (unsent, body) = match reader {
        Ok(reader) => {
            let body = StreamBody::new(state, StreamFormat::Sse, reader);
            (head(body.start_header()), Some(body))
        }
        Err(problem) => {
            let mut unsent = Vec::new();
            write_problem(&mut unsent, problem, "connection: close\r\n");
            (unsent, None)
        }
    };
    Ok(Some(RawStream { rest: Bytes::new(), unsent, body, owner }))
}

/// Parses a request that is complete, not pipelined, without a body, and needs nothing of hyper.
fn request_in(bytes: &[u8]) -> Option<Parts> {
    if !bytes.starts_with(b"GET /") {
        return None;
    }
    match RequestHead::of(bytes) {
        RequestHead::Whole(request, end)
            if end == bytes.len() && !request.headers.contains_key(CONTENT_LENGTH) =>
        {
            Some(request)
        }
        _ => None,
    }
}

/// Creates the reader of a request; none if the response is not a stream. Errors are left to hyper, too: the router
/// gets to them again.
async fn reader_for(
    state: &Arc<AppState>,
    route: &HttpRoute,
    request: &Parts,
) -> Result<Option<FeedReader>, Problem> {
    let params = match route.path {
        RUN_EVENTS | THREAD_EVENTS => ReadParams::of_request(request)?,
        SOCIAL_APP_EVENTS => social_app::events_params(state, request)?,
        _ => return Ok(None),
    };
    if !follows(&params) {
        return Ok(None);
    }
    let (tenant, id) = (tenant_of(&request.headers), route.parameter(request.uri.path()));
    let reader = match route.path {
        RUN_EVENTS => params.read_run(state, &RunKey { tenant, id: from_path_segment("run", id)? }).await?,
        _ => {
            let key = ThreadKey { tenant, id: from_path_segment("thread", id)? };
            Some(params.read_thread(state, &key).await?)
        }
    };
    Ok(reader.map(|reader| reader.limit(params.limit)))
}

/// Returns true if the response is a stream that follows. One that ends by itself would gain nothing here, and would
/// lose its keep-alive connection.
fn follows(params: &ReadParams) -> bool {
    params.format == ResponseFormat::Stream(StreamFormat::Sse) && params.follow
}

/// Consumes the peeked bytes.
async fn consume(socket: &TcpStream, mut seen: &mut [u8]) -> io::Result<()> {
    while !seen.is_empty() {
        match socket.try_read(seen) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(count) => seen = &mut seen[count..],
            Err(error) if error.kind() == ErrorKind::WouldBlock => socket.readable().await?,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Writes the response head.
fn head(start: Option<(HeaderName, HeaderValue)>) -> Vec<u8> {
    let mut head = b"HTTP/1.1 200 OK\r\n".to_vec();
    let mut field = |name: &str, value: &[u8]| {
        for piece in [name.as_bytes(), b": ", value, b"\r\n"] {
            head.extend_from_slice(piece);
        }
    };
    for (name, value) in headers(StreamFormat::Sse).into_iter().chain(start) {
        field(name.as_str(), value.as_bytes());
    }
    field("transfer-encoding", b"chunked");
    // No second request is read from this socket.
    field("connection", b"close");
    field("date", httpdate::fmt_http_date(SystemTime::now()).as_bytes());
    head.extend_from_slice(b"\r\n");
    head
}

impl RawStream {
    /// Continues a stream that a socket loop has given up.
    pub(crate) fn resume(state: &AppState, ReturnedStream { stream, unsent }: ReturnedStream) -> Self {
        let owner = stream.owner.clone();
        let body = Some(StreamBody::resume(state, stream));
        Self { rest: unsent, unsent: Vec::new(), body, owner }
    }

    /// Writes the stream until it ends, the client disconnects, or a socket loop can continue.
    ///
    /// Its place among the streams that are being opened is free as soon as the first frames are made: it never waits for
    /// the client with it.
    pub(crate) async fn run(
        mut self,
        socket: TcpStream,
        mut place: Option<OwnedSemaphorePermit>,
    ) -> io::Result<StreamOutcome> {
        let rest = std::mem::take(&mut self.rest);
        write_all(&socket, [&rest, b"", b""]).await?;
        drop(rest);
        while let Some(body) = &mut self.body {
            let frames = tokio::select! {
                biased;
                frames = body.next() => frames,
                () = client_leaves(&socket) => return Ok(StreamOutcome::Over),
            };
            drop(place.take());
            let Some(frames) = frames else {
                self.unsent.extend_from_slice(b"0\r\n\r\n");
                break;
            };
            write!(self.unsent, "{:X}\r\n", frames.len())?;
            write_all(&socket, [&self.unsent, &frames, b"\r\n"]).await?;
            self.unsent.clear();
            self.unsent.shrink_to(LENGTH_BYTES);
            if let Some(position) = body.caught_up_position()
                && let Some(body) = self.body.take()
            {
                return Ok(StreamOutcome::CaughtUp(socket, body.into_caught_up(position, self.owner)));
            }
        }
        write_all(&socket, [&self.unsent, b"", b""]).await?;
        SockRef::from(&socket).shutdown(Shutdown::Write)?;
        Ok(StreamOutcome::Over)
    }
}

/// Writes all pieces; backpressure of a slow client stops only its own stream here.
async fn write_all(socket: &TcpStream, pieces: [&[u8]; 3]) -> io::Result<()> {
    let mut slices = pieces.map(IoSlice::new);
    let mut left = &mut slices[..];
    IoSlice::advance_slices(&mut left, 0);
    while !left.is_empty() {
        match socket.try_write_vectored(left) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(count) => IoSlice::advance_slices(&mut left, count),
            Err(error) if error.kind() == ErrorKind::WouldBlock => tokio::select! {
                writable = socket.writable() => writable?,
                () = client_leaves(socket) => return Err(ErrorKind::ConnectionAborted.into()),
            },
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Waits until the client disconnects. One that sends more bytes counts as disconnected: none are expected.
async fn client_leaves(socket: &TcpStream) {
    while socket.readable().await.is_ok() {
        match socket.try_read(&mut [0]) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            _ => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "GET /v1/runs/r/events?after=1 HTTP/1.1\r\nHost: x\r\nLast-Event-ID: 2\r\n\r\n";

    #[test]
    fn a_complete_request_without_a_follower_is_parsed() {
        let request = request_in(HEAD.as_bytes()).unwrap();
        assert_eq!(request.uri, "/v1/runs/r/events?after=1");
        assert_eq!(request.headers["host"], "x");
        assert_eq!(request.headers["last-event-id"], "2");
    }

    #[test]
    fn unusual_requests_are_left_to_hyper() {
        let unusual = [
            HEAD[..HEAD.len() - 1].to_owned(),
            format!("{HEAD}G"),
            HEAD.replace("GET", "HEAD"),
            HEAD.replace("Host: x", "Content-Length: 0"),
            HEAD.replace("Host: x", "Upgrade: h2c"),
            String::new(),
        ];
        for head in unusual {
            assert!(request_in(head.as_bytes()).is_none(), "{head}");
        }
    }
}
