//! A stream: frames as they come, with signs of life between them.

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

use crate::feed::{FeedCursor, FeedReader, Next, Segment, StreamFormat};
use crate::metrics::OpenReader;
use crate::{AppState, limits};

/// The header that tells where a stream begins which was asked for from the end.
const START_HEADER: HeaderName = HeaderName::from_static("runwire-cursor");

/// Writes frames of a segment otherwise than all other readers get them.
pub(crate) type Retell = Box<dyn Fn(&Segment, usize, usize) -> Bytes + Send + Sync>;

/// Answers with everything that a reader gets, until it ends.
pub(crate) fn stream(state: &Arc<AppState>, shape: StreamFormat, reader: FeedReader) -> Response {
    respond(shape, Streaming::new(state, shape, reader))
}

/// Answers with the SSE of a reader, whose frames are told in a way of its own.
pub(crate) fn retold(state: &Arc<AppState>, reader: FeedReader, retell: Retell) -> Response {
    let streaming = Streaming { retell: Some(retell), ..Streaming::new(state, StreamFormat::Sse, reader) };
    respond(StreamFormat::Sse, streaming)
}

fn respond(shape: StreamFormat, streaming: Streaming) -> Response {
    let start = streaming.start_header();
    let body = futures_util::stream::unfold(streaming, |mut streaming| async move {
        let bytes = streaming.next().await?;
        Some((Ok::<_, Infallible>(bytes), streaming))
    });
    let mut response = Body::from_stream(body).into_response();
    response.headers_mut().extend(headers(shape));
    response.headers_mut().extend(start);
    response
}

/// Lists what the head of a stream's answer says.
pub(super) fn headers(shape: StreamFormat) -> [(HeaderName, HeaderValue); 3] {
    let media = match shape {
        StreamFormat::Sse => "text/event-stream",
        StreamFormat::Ndjson | StreamFormat::NdjsonWithCursors => "application/x-ndjson",
        StreamFormat::Plain => "text/plain; charset=utf-8",
    };
    [
        (CONTENT_TYPE, HeaderValue::from_static(media)),
        (CACHE_CONTROL, HeaderValue::from_static("no-cache, no-store")),
        // Proxies that gather answers before they pass them on are asked not to.
        (HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no")),
    ]
}

enum Woke {
    Next(Result<Next, LogError>),
    Stop,
    Beat,
}

/// What a stream says, piece by piece.
pub(super) struct Streaming {
    reader: FeedReader,
    shape: StreamFormat,
    shutdown: watch::Receiver<bool>,
    keep_alive: Duration,
    /// The last cursor that the client was told.
    told: FeedCursor,
    ended: bool,
    /// Counted for as long as it is read.
    _open: OpenReader,
    retell: Option<Retell>,
}

impl Streaming {
    pub(super) fn new(state: &Arc<AppState>, shape: StreamFormat, reader: FeedReader) -> Self {
        let (shutdown, keep_alive) = (state.shutdown.clone(), state.config.keep_alive);
        let open = state.metrics.reader(shape.into());
        // What the client does not know counts as not told.
        let told = if reader.start_to_announce().is_some() { FeedCursor::START } else { reader.at() };
        let reader = reader.wait_out_outages();
        Self { reader, shape, shutdown, keep_alive, told, ended: false, _open: open, retell: None }
    }

    /// Makes the header that tells a client where its stream begins, if it does not know.
    pub(super) fn start_header(&self) -> Option<(HeaderName, HeaderValue)> {
        let start = self.reader.start_to_announce()?.to_string();
        Some((START_HEADER, HeaderValue::try_from(start).ok()?))
    }

    /// Waits for the next piece; nothing at the end. May be dropped and asked again.
    pub(super) async fn next(&mut self) -> Option<Bytes> {
        while !self.ended {
            let woke = tokio::select! {
                biased;
                _ = self.shutdown.wait_for(|stops| *stops) => Woke::Stop,
                next = self.reader.next() => Woke::Next(next),
                () = tokio::time::sleep(self.keep_alive) => Woke::Beat,
            };
            let next = match woke {
                Woke::Next(next) => next,
                Woke::Stop => {
                    self.ended = true;
                    return self.farewell();
                }
                Woke::Beat => match self.beat() {
                    Some(beat) => return Some(beat),
                    None => continue,
                },
            };
            match next {
                Ok(Next::Frames { segment, from, to }) => {
                    if let Some(last) = segment.frames(to - 1).next() {
                        self.told = last.cursor.unwrap_or(self.told);
                    }
                    return Some(match &self.retell {
                        Some(retell) => retell(&segment, from, to),
                        None => segment.bytes(self.shape, from, to),
                    });
                }
                Ok(Next::CaughtUp) if self.shape == StreamFormat::Sse => {
                    return Some(match self.reader.start_to_announce() {
                        // Else a client that is cut off before the next frame would not know where it was.
                        Some(at) if self.told == FeedCursor::START => {
                            self.told = at;
                            format!("id: {at}\n\n: caught-up\n\n").into()
                        }
                        _ => Bytes::from_static(b": caught-up\n\n"),
                    });
                }
                Ok(Next::CaughtUp) => {}
                Ok(Next::Ended) => {
                    self.ended = true;
                    return self.last_words();
                }
                Err(error) => {
                    // The status has been sent; coming back tells the reason.
                    tracing::debug!(%error, "a stream was cut");
                    self.ended = true;
                }
            }
        }
        None
    }

    /// Shows that the stream lives, and where it is: a dialect may have had nothing to say for long.
    fn beat(&mut self) -> Option<Bytes> {
        match self.shape {
            // social-app's document has the comment alone (§2).
            StreamFormat::Sse if self.reader.dialect() == Some(Dialect::SocialApp) => {
                Some(Bytes::from_static(b": keep-alive\n\n"))
            }
            StreamFormat::Sse => {
                self.told = self.reader.at();
                Some(format!(": keep-alive\nid: {}\n\n", self.told).into())
            }
            StreamFormat::Ndjson | StreamFormat::NdjsonWithCursors => Some(Bytes::from_static(b"\n")),
            StreamFormat::Plain => None,
        }
    }

    /// Tells the last place, where the last frame did not: else a browser would come back for nothing. And that the
    /// run is over: else a client that must not miss anything would come back to hear it.
    fn last_words(&self) -> Option<Bytes> {
        let at = self.reader.at();
        let untold = at.seq > self.told.seq;
        match (self.shape, untold, self.reader.is_run_over()) {
            (StreamFormat::Sse, true, true) => Some(format!("id: {at}\n\n: end\n\n").into()),
            (StreamFormat::Sse, true, false) => Some(format!("id: {at}\n\n").into()),
            (StreamFormat::Sse, false, true) => Some(Bytes::from_static(b": end\n\n")),
            _ => None,
        }
    }

    /// Asks the reader to come back, each at another moment.
    fn farewell(&self) -> Option<Bytes> {
        let span = limits::RETRY_MILLIS.end - limits::RETRY_MILLIS.start;
        let millis = limits::RETRY_MILLIS.start + RandomState::new().hash_one(self.told.seq) % span;
        (self.shape == StreamFormat::Sse).then(|| format!("retry: {millis}\n\n").into())
    }
}
