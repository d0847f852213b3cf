//! One connection that frames come over, whatever carries them.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::time::{Instant, Sleep};

use super::ask::{Ask, Transport};
use super::cursor::Cursor;
use super::frame::Frame;
use super::sse::Sse;
use super::websocket::WebSocket;
use crate::error::Error;
use crate::http::Http;

/// What is heard over a connection.
#[derive(Debug)]
pub(super) enum Heard {
    Frame(Frame),
    /// The server lives, and this is where the stream is.
    Place(Option<Cursor>),
    /// Everything up to now has been sent; the place is told where it may not be known.
    CaughtUp(Option<Cursor>),
    /// The server is about to stop, and asks to come back after this time.
    Leaving(Duration),
    /// The server ended the stream: the run may have ended, or only this connection.
    Ended,
    /// There is nothing more, ever.
    Finished,
}

enum Carrier {
    Sse(Sse),
    WebSocket(Box<WebSocket>),
}

/// A connection that is read; dropped, it is closed.
pub(super) struct Link {
    http: Arc<Http>,
    carrier: Carrier,
    silence: Duration,
    /// When the server will have been silent for too long.
    deadline: Pin<Box<Sleep>>,
    /// Whether the deadline stands: only while the connection is waited for does silence count.
    is_waiting: bool,
}

impl Link {
    /// Connects; nothing if there is nothing more to read.
    pub(super) async fn open(http: Arc<Http>, ask: Ask, silence: Duration) -> Result<Option<Self>, Error> {
        let carrier = match ask.transport {
            Transport::Sse => Sse::open(&http, &ask).await?.map(Carrier::Sse),
            Transport::WebSocket => Some(Carrier::WebSocket(Box::new(WebSocket::open(&http, &ask).await?))),
        };
        let Some(carrier) = carrier else { return Ok(None) };
        let deadline = Box::pin(tokio::time::sleep(silence));
        Ok(Some(Self { http, carrier, silence, deadline, is_waiting: false }))
    }

    /// Waits for what comes next.
    pub(super) fn poll_heard(&mut self, context: &mut Context<'_>) -> Poll<Result<Heard, Error>> {
        let heard = match &mut self.carrier {
            Carrier::Sse(sse) => sse.poll_heard(&self.http, context),
            Carrier::WebSocket(socket) => socket.poll_heard(&self.http, context),
        };
        if heard.is_ready() {
            self.is_waiting = false;
            return heard;
        }
        if !std::mem::replace(&mut self.is_waiting, true) {
            self.deadline.as_mut().reset(Instant::now() + self.silence);
        }
        ready!(self.deadline.as_mut().poll(context));
        Poll::Ready(Err(self.http.silent()))
    }
}
