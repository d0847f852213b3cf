//! Streaming responses: frames as they are committed, with keep-alives between them.

use std::convert::Infallible;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderName, HeaderValue};
use runwire_log::LogError;
use runwire_model::dialect::Dialect;
use tokio::sync::watch;

use crate::feed::{FeedCursor, FeedPosition, FeedReader, Next, Segment, StreamFormat};
use crate::metrics::OpenReader;
use crate::socket_loop::CaughtUpStream;
use crate::{AppState, limits};

/// Response header with the start cursor of a stream that was requested with `after=end`.
const START_HEADER: HeaderName = HeaderName::from_static("runwire-cursor");

/// Writes the frames `from..to` of a segment in a form of its own instead of the shared bytes.
pub(crate) type FrameRewriter = Box<dyn Fn(&Segment, usize, usize) -> Bytes + Send + Sync>;

/// Responds with everything that a reader returns, until it ends.
pub(crate) fn stream(state: &Arc<AppState>, format: StreamFormat, reader: FeedReader) -> Response {
    stream_response(format, StreamBody::new(state, format, reader))
}

/// Responds with SSE whose frames a rewriter writes.
pub(crate) fn rewritten_stream(
    state: &Arc<AppState>,
    reader: FeedReader,
    rewriter: FrameRewriter,
) -> Response {
    let body = StreamBody { rewriter: Some(rewriter), ..StreamBody::new(state, StreamFormat::Sse, reader) };
    stream_response(StreamFormat::Sse, body)
}

fn stream_response(format: StreamFormat, body: StreamBody) -> Response {
    let start = body.start_header();
    let body = futures_util::stream::unfold(body, |mut body| async move {
        let bytes = body.next().await?;
        Some((Ok::<_, Infallible>(bytes), body))
    });
    let mut response = Body::from_stream(body).into_response();
    response.headers_mut().extend(headers(format));
    response.headers_mut().extend(start);
    response
}

/// Returns the response headers of a stream.
pub(super) fn headers(format: StreamFormat) -> [(HeaderName, HeaderValue); 3] {
    let media = match format {
        StreamFormat::Sse => "text/event-stream",
        StreamFormat::Ndjson | StreamFormat::NdjsonWithCursors => "application/x-ndjson",
        StreamFormat::Plain => "text/plain; charset=utf-8",
    };
    [
        (CONTENT_TYPE, HeaderValue::from_static(media)),
        (CACHE_CONTROL, HeaderValue::from_static("no-cache, no-store")),
        // Asks nginx not to buffer the response.
        (HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no")),
    ]
}

enum Wakeup {
    Next(Result<Next, LogError>),
    Stop,
    KeepAlive,
}

/// The body of a streaming response, chunk by chunk.
pub(super) struct StreamBody {
    reader: FeedReader,
    format: StreamFormat,
    shutdown: watch::Receiver<bool>,
    keep_alive: Duration,
    /// The last cursor that was sent to the client.
    sent_cursor: FeedCursor,
    ended: bool,
    /// Keeps the reader counted in the metrics.
    open: OpenReader,
    rewriter: Option<FrameRewriter>,
}

impl StreamBody {
    pub(super) fn new(state: &Arc<AppState>, format: StreamFormat, reader: FeedReader) -> Self {
        let (shutdown, keep_alive) = (state.shutdown.clone(), state.config.keep_alive);
        let open = state.metrics.reader(format.into());
        // A start cursor that the client does not know yet counts as unsent.
        let sent_cursor = if reader.start_to_announce().is_some() { FeedCursor::START } else { reader.at() };
        let reader = reader.wait_out_outages();
        Self { reader, format, shutdown, keep_alive, sent_cursor, ended: false, open, rewriter: None }
    }

    /// Continues a stream that a socket loop has served.
    pub(super) fn resume(state: &AppState, stream: CaughtUpStream) -> Self {
        let CaughtUpStream { position, sent, open, .. } = stream;
        Self {
            reader: FeedReader::resume(position).wait_out_outages(),
            format: StreamFormat::Sse,
            shutdown: state.shutdown.clone(),
            keep_alive: state.config.keep_alive,
            sent_cursor: FeedCursor::after(sent),
            ended: false,
            open,
            rewriter: None,
        }
    }

    /// Returns where a socket loop can continue: nothing comes any more but what the feed has for all of its readers.
    pub(super) fn caught_up_position(&self) -> Option<FeedPosition> {
        let is_plain = self.format == StreamFormat::Sse && self.rewriter.is_none() && !self.ended;
        is_plain.then(|| self.reader.caught_up_position()).flatten()
    }

    /// Returns what a socket loop continues with.
    pub(super) fn into_caught_up(self, position: FeedPosition, owner: Arc<str>) -> CaughtUpStream {
        CaughtUpStream { position, sent: self.sent_cursor.seq, owner, open: self.open }
    }

    /// Returns the header with the start cursor, if the client does not know it.
    pub(super) fn start_header(&self) -> Option<(HeaderName, HeaderValue)> {
        let start = self.reader.start_to_announce()?.to_string();
        Some((START_HEADER, HeaderValue::try_from(start).ok()?))
    }

    /// Waits for the next chunk; none at the end. Cancel-safe.
    pub(super) async fn next(&mut self) -> Option<Bytes> {
        while !self.ended {
            let wakeup = tokio::select! {
                biased;
                _ = self.shutdown.wait_for(|stops| *stops) => Wakeup::Stop,
                next = self.reader.next() => Wakeup::Next(next),
                () = tokio::time::sleep(self.keep_alive) => Wakeup::KeepAlive,
            };
            let next = match wakeup {
                Wakeup::Next(next) => next,
                Wakeup::Stop => {
                    self.ended = true;
                    return self.retry_hint();
                }
                Wakeup::KeepAlive => match self.keep_alive_bytes() {
                    Some(bytes) => return Some(bytes),
                    None => continue,
                },
            };
            match next {
                Ok(Next::Frames { segment, from, to }) => {
                    if let Some(last) = segment.frames(to - 1).next() {
                        self.sent_cursor = last.cursor.unwrap_or(self.sent_cursor);
                    }
                    return Some(match &self.rewriter {
                        Some(rewriter) => segment.hold(rewriter(&segment, from, to)),
                        None => segment.bytes(self.format, from, to),
                    });
                }
                Ok(Next::CaughtUp) if self.format == StreamFormat::Sse => {
                    return Some(match self.reader.start_to_announce() {
                        // Otherwise a client that is cut off before the next frame could not resume.
                        Some(at) if self.sent_cursor == FeedCursor::START => {
                            self.sent_cursor = at;
                            format!("id: {at}\n\n: caught-up\n\n").into()
                        }
                        _ => Bytes::from_static(b": caught-up\n\n"),
                    });
                }
                Ok(Next::CaughtUp) => {}
                Ok(Next::Ended) => {
                    self.ended = true;
                    return self.closing_bytes();
                }
                Err(error) => {
                    // The status line has been sent; a reconnect gets the error.
                    tracing::debug!(%error, "a stream was cut");
                    self.ended = true;
                }
            }
        }
        None
    }

    /// Returns a keep-alive with the current cursor, which moves even while the dialect emits no frame.
    fn keep_alive_bytes(&mut self) -> Option<Bytes> {
        match self.format {
            StreamFormat::Sse if self.reader.dialect().is_some_and(Dialect::has_bare_keep_alive) => {
                Some(Bytes::from_static(b": keep-alive\n\n"))
            }
            StreamFormat::Sse => {
                self.sent_cursor = self.reader.at();
                Some(format!(": keep-alive\nid: {}\n\n", self.sent_cursor).into())
            }
            StreamFormat::Ndjson | StreamFormat::NdjsonWithCursors => Some(Bytes::from_static(b"\n")),
            StreamFormat::Plain => None,
        }
    }

    /// Returns the last bytes of a stream: the final cursor if it was not sent, so that a browser does not reconnect for
    /// nothing, and `: end` if the run is over, so that clients need not reconnect to find out.
    fn closing_bytes(&self) -> Option<Bytes> {
        let at = self.reader.at();
        let is_unsent = at.seq > self.sent_cursor.seq;
        match (self.format, is_unsent, self.reader.is_run_over()) {
            (StreamFormat::Sse, true, true) => Some(format!("id: {at}\n\n: end\n\n").into()),
            (StreamFormat::Sse, true, false) => Some(format!("id: {at}\n\n").into()),
            (StreamFormat::Sse, false, true) => Some(Bytes::from_static(b": end\n\n")),
            _ => None,
        }
    }

    /// Returns a random reconnect delay, so that the readers of a stopping server do not all reconnect at once.
    fn retry_hint(&self) -> Option<Bytes> {
        let span = limits::RETRY_MILLIS.end - limits::RETRY_MILLIS.start;
        let millis = limits::RETRY_MILLIS.start + RandomState::new().hash_one(self.sent_cursor.seq) % span;
        (self.format == StreamFormat::Sse).then(|| format!("retry: {millis}\n\n").into())
    }
}
