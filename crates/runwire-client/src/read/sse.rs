//! Frames as server-sent events.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use http::header::CONTENT_TYPE;
use http::{Method, StatusCode};
use http_body::Body;
use hyper::body::Incoming;

use super::ask::Ask;
use super::cutter::{Block, Cutter};
use super::frame::Frame;
use super::link::Heard;
use crate::error::Error;
use crate::http::Http;

const EVENT_STREAM: &str = "text/event-stream";

/// The answer to one request.
pub(super) struct Sse {
    body: Incoming,
    cutter: Cutter,
}

impl Sse {
    /// Asks for the stream; nothing if there is nothing more to read.
    pub(super) async fn open(http: &Http, ask: &Ask) -> Result<Option<Self>, Error> {
        let response = http.ask(Method::GET, &ask.target(http), Ask::headers()).await?;
        match response.status() {
            StatusCode::NO_CONTENT => return Ok(None),
            StatusCode::OK => {}
            _ => return Err(http.refusal(response).await),
        }
        let media = response.headers().get(CONTENT_TYPE).and_then(|media| media.to_str().ok());
        let media = media.unwrap_or("nothing");
        if !media.starts_with(EVENT_STREAM) {
            let media: String = media.chars().take(80).collect();
            return Err(http.strange(format!("it answers with {media} where {EVENT_STREAM} was asked for")));
        }
        Ok(Some(Self { body: response.into_body(), cutter: Cutter::default() }))
    }

    pub(super) fn poll_heard(
        &mut self,
        http: &Http,
        context: &mut Context<'_>,
    ) -> Poll<Result<Heard, Error>> {
        loop {
            match self.cutter.next() {
                Ok(Some(block)) => match heard(block) {
                    Some(heard) => return Poll::Ready(Ok(heard)),
                    None => continue,
                },
                Ok(None) => {}
                Err(fault) => return Poll::Ready(Err(http.strange(fault.to_string()))),
            }
            match ready!(Pin::new(&mut self.body).poll_frame(context)) {
                Some(Ok(piece)) => {
                    let Ok(bytes) = piece.into_data() else { continue };
                    if let Err(fault) = self.cutter.push(&bytes) {
                        return Poll::Ready(Err(http.strange(fault.to_string())));
                    }
                }
                Some(Err(error)) => return Poll::Ready(Err(http.broken(&error))),
                None => return Poll::Ready(Ok(Heard::Ended)),
            }
        }
    }
}

fn heard(block: Block) -> Option<Heard> {
    match block {
        Block { data: Some(data), id, name, .. } => Some(Heard::Frame(Frame::new(id, name, data))),
        Block { is_caught_up: true, id, .. } => Some(Heard::CaughtUp(id)),
        Block { is_end: true, .. } => Some(Heard::Finished),
        Block { retry: Some(millis), .. } => Some(Heard::Leaving(Duration::from_millis(millis))),
        Block { id: Some(id), .. } => Some(Heard::Place(Some(id))),
        Block { .. } => None,
    }
}
