//! The SSE transport of a stream.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use http::header::CONTENT_TYPE;
use http::{Method, StatusCode};
use http_body::Body;
use hyper::body::Incoming;

use super::connection::TransportEvent;
use super::frame::ReceivedFrame;
use super::request::ReadRequest;
use super::sse_parser::{SseEvent, SseParser};
use crate::error::Error;
use crate::http::Http;

const EVENT_STREAM: &str = "text/event-stream";

/// An open SSE response.
pub(super) struct Sse {
    body: Incoming,
    sse_parser: SseParser,
}

impl Sse {
    /// Requests the stream; `None` if there is nothing more to read.
    pub(super) async fn open(http: &Http, request: &ReadRequest) -> Result<Option<Self>, Error> {
        let response = http.request(Method::GET, &request.endpoint(http), ReadRequest::headers()).await?;
        match response.status() {
            StatusCode::NO_CONTENT => return Ok(None),
            StatusCode::OK => {}
            _ => return Err(http.refusal(response).await),
        }
        let media = response.headers().get(CONTENT_TYPE).and_then(|media| media.to_str().ok());
        let media = media.unwrap_or("nothing");
        if !media.starts_with(EVENT_STREAM) {
            let media: String = media.chars().take(80).collect();
            return Err(
                http.protocol_error(format!("it answers with {media} where {EVENT_STREAM} was asked for"))
            );
        }
        Ok(Some(Self { body: response.into_body(), sse_parser: SseParser::default() }))
    }

    pub(super) fn poll_event(
        &mut self,
        http: &Http,
        context: &mut Context<'_>,
    ) -> Poll<Result<TransportEvent, Error>> {
        loop {
            match self.sse_parser.next() {
                Ok(Some(event)) => match transport_event(event) {
                    Some(event) => return Poll::Ready(Ok(event)),
                    None => continue,
                },
                Ok(None) => {}
                Err(fault) => return Poll::Ready(Err(http.protocol_error(fault.to_string()))),
            }
            match ready!(Pin::new(&mut self.body).poll_frame(context)) {
                Some(Ok(piece)) => {
                    let Ok(bytes) = piece.into_data() else { continue };
                    if let Err(fault) = self.sse_parser.push(&bytes) {
                        return Poll::Ready(Err(http.protocol_error(fault.to_string())));
                    }
                }
                Some(Err(error)) => return Poll::Ready(Err(http.broken(&error))),
                None => return Poll::Ready(Ok(TransportEvent::Ended)),
            }
        }
    }
}

fn transport_event(event: SseEvent) -> Option<TransportEvent> {
    match event {
        SseEvent { data: Some(data), id, name, .. } => {
            Some(TransportEvent::Frame(ReceivedFrame::new(id, name, data)))
        }
        SseEvent { is_caught_up: true, id, .. } => Some(TransportEvent::CaughtUp(id)),
        SseEvent { is_end: true, .. } => Some(TransportEvent::Finished),
        SseEvent { retry: Some(millis), .. } => Some(TransportEvent::Stopping(Duration::from_millis(millis))),
        SseEvent { id: Some(id), .. } => Some(TransportEvent::Heartbeat(Some(id))),
        SseEvent { .. } => None,
    }
}
