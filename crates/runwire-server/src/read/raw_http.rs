//! Readers without hyper: most connections of a server that fans out are streams that say nothing for minutes.
//!
//! hyper keeps a buffer of 8 KiB each way for as long as a connection lives, and its state machine for both
//! versions beside it. A reader that follows a run needs none of it once its request is read: its frames are
//! shared bytes that lie in the feed. So the first request of a connection is looked at before hyper is, and if
//! it asks for nothing but a stream of events that goes on, the connection is served here: with the same
//! question, the same reader and the same frames, written straight to the socket in chunks.
//!
//! Only what is beyond doubt is taken. The request is looked at without being consumed, so whatever is unusual
//! about it (a head in pieces, a body, a second request behind it, a refusal, an answer that is no stream) is
//! left on the socket as it came, and hyper answers it in the ordinary way. Only that the store is away is said
//! here: it has been waited for long enough.

use std::io::{self, ErrorKind, IoSlice, Write};
use std::net::Shutdown;
use std::sync::Arc;
use std::time::SystemTime;

use http::header::CONTENT_LENGTH;
use http::request::Parts;
use http::{HeaderName, HeaderValue, StatusCode};
use runwire_log::{RunKey, ThreadKey};
use socket2::SockRef;
use tokio::net::TcpStream;

use super::stream::{Streaming, headers};
use super::{Answer, Ask};
use crate::auth::tenant_of;
use crate::facade::social_app;
use crate::feed::{FeedReader, StreamFormat};
use crate::head::Head;
use crate::ids::from_segment;
use crate::metrics::RouteClass;
use crate::problem::Problem;
use crate::write::raw_http::write_problem;
use crate::{AppState, hosts, limits};

/// Bytes that the length of a chunk takes at most, with its line end.
const LENGTH_BYTES: usize = 18;

/// An answer that only has to be written.
pub(crate) struct RawStream {
    /// What goes out before the next frames: at first the head of the answer, then the length of each chunk.
    unsent: Vec<u8>,
    /// The stream that has its reader; without one, what goes out first is all.
    body: Option<Streaming>,
}

/// Waits for the first bytes of a connection and leaves them on the socket; there are none if it was closed.
pub(crate) async fn peek(socket: &TcpStream) -> io::Result<Vec<u8>> {
    // A connection that says nothing does not get a buffer yet.
    socket.readable().await?;
    let mut bytes = vec![0; limits::PEEKED_BYTES];
    let count = socket.peek(&mut bytes).await?;
    bytes.truncate(count);
    Ok(bytes)
}

/// Takes a connection over if the bytes that came first ask for a stream; else leaves them on the socket.
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
    let reader = match reader_for(state, &request).await {
        Ok(Some(reader)) => Ok(reader),
        Err(problem) if problem.is_outage() => Err(problem),
        Ok(None) | Err(_) => return Ok(None),
    };
    consume(socket, &mut peeked).await?;
    let class = RouteClass::of(&request.method, request.uri.path());
    state.metrics.answered(class, reader.as_ref().map_or_else(Problem::status, |_| StatusCode::OK));
    Ok(Some(match reader {
        Ok(reader) => {
            let body = Streaming::new(state, StreamFormat::Sse, reader);
            RawStream { unsent: head(body.start_header()), body: Some(body) }
        }
        Err(problem) => {
            let mut unsent = Vec::new();
            write_problem(&mut unsent, problem, "connection: close\r\n").await?;
            RawStream { unsent, body: None }
        }
    }))
}

/// Reads the request if it is whole, alone, without a body, and asks for nothing that hyper would have to do.
fn request_in(bytes: &[u8]) -> Option<Parts> {
    if !bytes.starts_with(b"GET /") {
        return None;
    }
    match Head::of(bytes) {
        Head::Whole(request, end) if end == bytes.len() && !request.headers.contains_key(CONTENT_LENGTH) => {
            Some(request)
        }
        _ => None,
    }
}

/// Makes the reader that a request asks for. There is none where anything but a stream is the answer: a refusal
/// too is hyper's to write, after the router has come to it once more.
async fn reader_for(state: &Arc<AppState>, request: &Parts) -> Result<Option<FeedReader>, Problem> {
    let Some(path) = request.uri.path().strip_suffix("/events") else { return Ok(None) };
    let named = |prefix| path.strip_prefix(prefix).filter(|id| !id.is_empty() && !id.contains('/'));
    let tenant = tenant_of(&request.headers);
    if let Some(run) = named("/v1/runs/") {
        let ask = Ask::of_request(request)?;
        let key = RunKey { tenant, id: from_segment("run", run)? };
        let reader = if follows(&ask) { ask.read_run(state, &key).await? } else { None };
        return Ok(reader.map(|reader| reader.limit(ask.limit)));
    }
    let (ask, thread) = match (named("/v1/threads/"), named(social_app::THREADS)) {
        (Some(thread), _) => (Ask::of_request(request)?, thread),
        (None, Some(thread)) => (social_app::ask_for_events(state, request)?, thread),
        (None, None) => return Ok(None),
    };
    if !follows(&ask) {
        return Ok(None);
    }
    let key = ThreadKey { tenant, id: from_segment("thread", thread)? };
    let reader = ask.read_thread(state, &key).await?;
    Ok(Some(reader.limit(ask.limit)))
}

/// Tells whether the answer is a stream that waits for more. What ends by itself would gain nothing here, and
/// lose its connection.
fn follows(ask: &Ask) -> bool {
    ask.answer == Answer::Stream(StreamFormat::Sse) && ask.follow
}

/// Takes bytes off a socket that were seen there.
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

/// Writes the head of the answer.
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
    // Nothing reads a second request from this socket.
    field("connection", b"close");
    field("date", httpdate::fmt_http_date(SystemTime::now()).as_bytes());
    head.extend_from_slice(b"\r\n");
    head
}

impl RawStream {
    /// Writes what the reader gets until it ends, or until the client leaves.
    pub(crate) async fn run(mut self, socket: TcpStream) -> io::Result<()> {
        let Some(body) = &mut self.body else {
            // Rare, and every reader would be as large as this.
            Box::pin(write_all(&socket, [&self.unsent, b"", b""])).await?;
            return SockRef::from(&socket).shutdown(Shutdown::Write);
        };
        loop {
            let frames = tokio::select! {
                biased;
                frames = body.next() => frames,
                () = client_leaves(&socket) => return Ok(()),
            };
            let Some(frames) = frames else { break };
            write!(self.unsent, "{:X}\r\n", frames.len())?;
            write_all(&socket, [&self.unsent, &frames, b"\r\n"]).await?;
            self.unsent.clear();
            self.unsent.shrink_to(LENGTH_BYTES);
        }
        write_all(&socket, [&self.unsent, b"0\r\n\r\n", b""]).await?;
        SockRef::from(&socket).shutdown(Shutdown::Write)
    }
}

/// Writes pieces one after the other; a reader that stands still waits here, alone.
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

/// Waits until the client is gone. One that sends more counts as gone: nothing it could say is expected.
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
    fn a_request_that_is_whole_and_alone_is_read() {
        let request = request_in(HEAD.as_bytes()).unwrap();
        assert_eq!(request.uri, "/v1/runs/r/events?after=1");
        assert_eq!(request.headers["host"], "x");
        assert_eq!(request.headers["last-event-id"], "2");
    }

    #[test]
    fn whatever_is_unusual_is_left_to_hyper() {
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
