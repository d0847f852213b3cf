//! Writes served without hyper: for a producer that sends one event per request, HTTP costs more than the append.
//!
//! A connection that starts with a write to a run is served here while it does nothing else: each request is read
//! completely, appended, and answered with one write. As soon as a request is unusual (another path, a body that is
//! long, chunked or late, a head that hyper should parse), the connection is handed over to hyper for good, with the
//! bytes that were read and not yet answered.

use std::cell::RefCell;
use std::io::{self, Write};
use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::response::IntoResponse;
use http::StatusCode;
use http::request::Parts;
use http_body_util::BodyExt;
use runwire_log::{RunKey, Target};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep_until, timeout};

use super::WriteParams;
use super::body_writer::{BodyWriter, WriteSummary};
use crate::auth::tenant_of;
use crate::metrics::RouteClass;
use crate::problem::Problem;
use crate::request_head::{RequestHead, body_length};
use crate::{AppState, hosts, ids, limits, origin};

/// The first bytes of every request that can be served here.
const REQUEST_PREFIX: &[u8] = b"POST /v1/runs/";

/// Returns true if a connection with these first bytes can be served here.
pub(crate) fn accepts(first_bytes: &[u8]) -> bool {
    first_bytes.starts_with(REQUEST_PREFIX)
}

/// What to do with the buffered bytes.
#[expect(
    clippy::large_enum_variant,
    reason = "it lives for a moment, and a box for every request would cost"
)]
enum NextAction {
    Answer {
        request: Parts,
        body: std::ops::Range<usize>,
    },
    /// Wait for more bytes, of the head or of the body.
    Wait {
        head: bool,
    },
    HandOver,
}

/// Serves a connection until it ends, or returns the unanswered bytes for hyper to continue with.
pub(crate) async fn serve(state: &Arc<AppState>, socket: &mut TcpStream) -> io::Result<Option<Vec<u8>>> {
    let local = socket.local_addr().ok().map(|local| local.ip());
    let mut stopping = state.shutdown.clone();
    let mut stopped = pin!(stopping.wait_for(|stopping| *stopping));
    let mut bytes = Vec::with_capacity(limits::PEEKED_BYTES);
    let mut answer = Vec::new();
    let mut begun = Instant::now();
    // Reset only when it fires: a timer for every request would cost more than its parsing.
    let mut timer = pin!(sleep_until(begun + state.config.header_time));
    loop {
        let in_head = match next(&bytes) {
            NextAction::HandOver => return Ok(Some(bytes)),
            NextAction::Answer { request, body } => {
                let end = body.end;
                let summary = append_body(state, local, &request, &bytes[body]).await;
                let status = summary.as_ref().map_or_else(Problem::status, |_| StatusCode::OK);
                state.metrics.count_request(RouteClass::Write, status);
                let last = *state.shutdown.borrow();
                answer.clear();
                write_response(&mut answer, summary, last).await?;
                send(socket, &answer, state.config.header_time).await?;
                if last {
                    return Ok(None);
                }
                bytes.drain(..end);
                bytes.shrink_to(limits::PEEKED_BYTES);
                begun = Instant::now();
                continue;
            }
            NextAction::Wait { head } => head,
        };
        bytes.reserve(limits::PEEKED_BYTES);
        if !in_head {
            // hyper's path appends the complete frames of a slow body before the rest arrives.
            match timeout(limits::LATE_BODY_TIME, socket.read_buf(&mut bytes)).await {
                Ok(Ok(1..)) => continue,
                Ok(Err(error)) => return Err(error),
                Ok(Ok(0)) | Err(_) => return Ok(Some(bytes)),
            }
        }
        let was_idle = bytes.is_empty();
        tokio::select! {
            biased;
            count = socket.read_buf(&mut bytes) => match count? {
                // hyper answers a request that is cut off in the middle.
                0 if was_idle => return Ok(None),
                0 => return Ok(Some(bytes)),
                _ if was_idle => begun = Instant::now(),
                _ => {}
            },
            () = &mut timer => {
                let timeout_after = if was_idle { limits::IDLE_TIME } else { state.config.header_time };
                let due = begun + timeout_after;
                if Instant::now() >= due {
                    return Ok(None);
                }
                timer.as_mut().reset(due);
            }
            _ = &mut stopped => return Ok((!was_idle).then_some(bytes)),
        }
    }
}

/// Parses the buffered bytes.
fn next(bytes: &[u8]) -> NextAction {
    let (known, begins) = (bytes.len().min(REQUEST_PREFIX.len()), REQUEST_PREFIX);
    if bytes[..known] != begins[..known] {
        return NextAction::HandOver;
    }
    match RequestHead::of(bytes) {
        RequestHead::Whole(request, end) => match body_length(&request.headers) {
            Some(length) if end.saturating_add(length) > limits::WHOLE_REQUEST_BYTES => NextAction::HandOver,
            Some(_) if super::fast_path_run(&request.method, &request.uri).is_none() => NextAction::HandOver,
            Some(length) if end + length <= bytes.len() => {
                NextAction::Answer { request, body: end..end + length }
            }
            Some(_) => NextAction::Wait { head: false },
            None => NextAction::HandOver,
        },
        RequestHead::Partial if bytes.len() < limits::HEAD_BYTES => NextAction::Wait { head: true },
        RequestHead::Partial | RequestHead::Unusual => NextAction::HandOver,
    }
}

async fn append_body(
    state: &AppState,
    local: Option<IpAddr>,
    request: &Parts,
    body: &[u8],
) -> Result<WriteSummary, Problem> {
    hosts::check(&state.config.allowed_hosts, local, (request.version, &request.uri, &request.headers))?;
    origin::check(&request.headers)?;
    let run = super::fast_path_run(&request.method, &request.uri).unwrap_or_default();
    let run = RunKey { tenant: tenant_of(&request.headers), id: ids::from_path_segment("run", run)? };
    let params = WriteParams::of(Target::Run(run), request.uri.query(), &request.headers)?;
    BodyWriter::new(state, params).write_whole_body(body).await
}

async fn write_response(
    answer: &mut Vec<u8>,
    summary: Result<WriteSummary, Problem>,
    last: bool,
) -> io::Result<()> {
    let closing = if last { "connection: close\r\n" } else { "" };
    match summary {
        Ok(summary) => {
            let json = summary.to_json();
            write!(
                answer,
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n",
                json.len()
            )?;
            write_date(answer)?;
            write!(answer, "{closing}\r\n{json}")
        }
        Err(problem) => write_problem(answer, problem, closing).await,
    }
}

/// Writes an error response; `closing` is its `Connection` header line, if any.
pub(crate) async fn write_problem(answer: &mut Vec<u8>, problem: Problem, closing: &str) -> io::Result<()> {
    let (parts, body) = problem.into_response().into_parts();
    let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
    let reason = parts.status.canonical_reason().unwrap_or_default();
    write!(answer, "HTTP/1.1 {} {reason}\r\n", parts.status.as_u16())?;
    for (name, value) in &parts.headers {
        for piece in [name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"] {
            answer.extend_from_slice(piece);
        }
    }
    if !parts.headers.contains_key(http::header::CONTENT_LENGTH) {
        write!(answer, "content-length: {}\r\n", body.len())?;
    }
    write_date(answer)?;
    write!(answer, "{closing}\r\n")?;
    answer.extend_from_slice(&body);
    Ok(())
}

/// Sends a response, with a timeout for clients that do not read. Most fit into the socket buffer at once.
async fn send(socket: &mut TcpStream, answer: &[u8], timeout_after: Duration) -> io::Result<()> {
    let sent = match socket.try_write(answer) {
        Ok(sent) => sent,
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
        Err(error) => return Err(error),
    };
    if sent < answer.len() {
        let rest = timeout(timeout_after, socket.write_all(&answer[sent..])).await;
        rest.map_err(|_| io::ErrorKind::TimedOut)??;
    }
    Ok(())
}

/// Writes the `Date` header, formatted once per second.
fn write_date(answer: &mut Vec<u8>) -> io::Result<()> {
    thread_local! {
        static DATE: RefCell<(u64, String)> = const { RefCell::new((0, String::new())) };
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    DATE.with_borrow_mut(|(second, date)| {
        if *second != now {
            *second = now;
            *date = httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(now));
        }
        write!(answer, "date: {date}\r\n")
    })
}
