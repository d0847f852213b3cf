//! One connection of a stream, over either transport, with its idle timeout.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::time::{Instant, Sleep};

use super::cursor::Cursor;
use super::frame::ReceivedFrame;
use super::request::{ReadRequest, Transport};
use super::sse::Sse;
use super::websocket::WebSocket;
use crate::error::Error;
use crate::http::Http;

/// An event of a connection.
#[derive(Debug)]
pub(super) enum TransportEvent {
    Frame(ReceivedFrame),
    /// A keep-alive, with the current cursor if the transport carries it.
    Heartbeat(Option<Cursor>),
    /// Everything stored so far has been sent.
    CaughtUp(Option<Cursor>),
    /// The server shuts down, and asks to reconnect after this time.
    Stopping(Duration),
    /// The connection was closed: the run may have ended, or only this connection.
    Ended,
    /// The run has ended, and everything of it was sent.
    Finished,
}

enum OpenTransport {
    Sse(Sse),
    WebSocket(Box<WebSocket>),
}

/// An open connection; dropping it closes it.
pub(super) struct StreamConnection {
    http: Arc<Http>,
    transport: OpenTransport,
    idle_timeout: Duration,
    /// When the idle timeout expires.
    deadline: Pin<Box<Sleep>>,
    /// Whether the deadline is armed: it only runs while the connection is polled.
    is_armed: bool,
}

impl StreamConnection {
    /// Connects; `None` if there is nothing more to read.
    pub(super) async fn open(
        http: Arc<Http>,
        request: ReadRequest,
        idle_timeout: Duration,
    ) -> Result<Option<Self>, Error> {
        let transport = match request.transport {
            Transport::Sse => Sse::open(&http, &request).await?.map(OpenTransport::Sse),
            Transport::WebSocket => {
                Some(OpenTransport::WebSocket(Box::new(WebSocket::open(&http, &request).await?)))
            }
        };
        let Some(transport) = transport else { return Ok(None) };
        let deadline = Box::pin(tokio::time::sleep(idle_timeout));
        Ok(Some(Self { http, transport, idle_timeout, deadline, is_armed: false }))
    }

    /// Polls for the next event; fails after the idle timeout.
    pub(super) fn poll_event(&mut self, context: &mut Context<'_>) -> Poll<Result<TransportEvent, Error>> {
        let event = match &mut self.transport {
            OpenTransport::Sse(sse) => sse.poll_event(&self.http, context),
            OpenTransport::WebSocket(socket) => socket.poll_event(&self.http, context),
        };
        if event.is_ready() {
            self.is_armed = false;
            return event;
        }
        if !std::mem::replace(&mut self.is_armed, true) {
            self.deadline.as_mut().reset(Instant::now() + self.idle_timeout);
        }
        ready!(self.deadline.as_mut().poll(context));
        Poll::Ready(Err(self.http.idle_error()))
    }
}
