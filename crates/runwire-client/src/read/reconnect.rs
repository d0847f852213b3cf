//! Frames over as many connections as needed: reconnects with backoff and resumes at the cursor, so that no frame is
//! lost or delivered twice.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::time::Sleep;

use super::connection::{StreamConnection, TransportEvent};
use super::cursor::Cursor;
use super::frame::ReceivedFrame;
use super::request::{ReadRequest, Resource, Transport};
use super::sse_parser::MAX_EVENT_BYTES;
use crate::attempts::Attempts;
use crate::client::Client;
use crate::error::Error;

/// An item of a stream, or news about its connection.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum StreamUpdate<T> {
    /// The next item.
    Item(T),
    /// Everything stored so far has been delivered; further items are live.
    CaughtUp,
    /// The connection was lost; the stream reconnects and resumes.
    Interrupted(Error),
}

enum State {
    Start,
    Connecting(BoxFuture<'static, Result<Option<StreamConnection>, Error>>),
    Open(StreamConnection),
    Waiting(Pin<Box<Sleep>>),
    Done,
}

/// Reads the frames of a run or a thread, and reconnects.
pub(super) struct ReconnectingStream {
    client: Client,
    /// Its cursor advances with each delivered frame.
    pub(super) request: ReadRequest,
    state: State,
    attempts: Attempts,
    is_caught_up: bool,
    /// Delay that a server that shuts down asked for.
    retry_after: Option<Duration>,
    /// Whether anything was received over this connection.
    has_progressed: bool,
    /// Whether this connection has advanced the cursor.
    has_advanced: bool,
    /// Frames of a snapshot that wait for its cursor: without it they would be delivered again after a reconnect.
    held: Vec<ReceivedFrame>,
    held_bytes: usize,
    ready: VecDeque<ReceivedFrame>,
}

impl ReconnectingStream {
    pub(super) fn new(client: Client, request: ReadRequest) -> Self {
        Self {
            attempts: Attempts::new(&client),
            client,
            request,
            state: State::Start,
            is_caught_up: false,
            retry_after: None,
            has_progressed: false,
            has_advanced: false,
            held: Vec::new(),
            held_bytes: 0,
            ready: VecDeque::new(),
        }
    }

    /// Returns the cursor after everything that was delivered.
    pub(super) fn cursor(&self) -> Option<Cursor> {
        self.request.after
    }

    pub(super) fn is_caught_up(&self) -> bool {
        self.is_caught_up
    }

    /// Returns true if a run is read, which a terminal event ends.
    pub(super) fn reads_run(&self) -> bool {
        matches!(self.request.resource, Resource::Run(_))
    }

    /// Returns the error of a frame that breaks the protocol.
    pub(super) fn protocol_error(&self, reason: String) -> Error {
        self.client.http.protocol_error(reason)
    }

    /// Ends the stream.
    pub(super) fn finish(&mut self) {
        self.state = State::Done;
    }

    pub(super) fn poll_update(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<StreamUpdate<ReceivedFrame>, Error>>> {
        loop {
            if let Some(frame) = self.ready.pop_front() {
                return Poll::Ready(self.deliver(frame));
            }
            let next = match &mut self.state {
                State::Done => return Poll::Ready(None),
                State::Start => {
                    self.connect();
                    continue;
                }
                State::Waiting(sleep) => {
                    ready!(sleep.as_mut().poll(context));
                    self.connect();
                    continue;
                }
                State::Connecting(connecting) => match ready!(connecting.as_mut().poll(context)) {
                    Ok(Some(connection)) => {
                        self.state = State::Open(connection);
                        self.attempts.connected();
                        continue;
                    }
                    Ok(None) => {
                        self.finish();
                        continue;
                    }
                    Err(error) => self.retry_or_fail(error),
                },
                State::Open(connection) => match ready!(connection.poll_event(context)) {
                    Ok(TransportEvent::Frame(frame)) if frame.cursor.is_some() && self.held.is_empty() => {
                        return Poll::Ready(self.deliver(frame));
                    }
                    Ok(event) => self.handle(event),
                    Err(error) => self.retry_or_fail(error),
                },
            };
            if let Some(next) = next {
                return Poll::Ready(Some(next));
            }
        }
    }

    fn deliver(&mut self, frame: ReceivedFrame) -> Option<Result<StreamUpdate<ReceivedFrame>, Error>> {
        if frame.cursor.is_some() {
            self.progress(frame.cursor);
        }
        if let Some(left) = &mut self.request.limit {
            *left = left.saturating_sub(1);
            if *left == 0 {
                self.ready.clear();
                self.finish();
            }
        }
        Some(Ok(StreamUpdate::Item(frame)))
    }

    fn handle(&mut self, event: TransportEvent) -> Option<Result<StreamUpdate<ReceivedFrame>, Error>> {
        match event {
            TransportEvent::Frame(frame) => return self.hold(frame).map(Err),
            TransportEvent::Heartbeat(cursor) => self.progress(cursor.or(self.request.after)),
            TransportEvent::CaughtUp(cursor) => {
                if cursor.is_some() {
                    self.progress(cursor);
                }
                self.is_caught_up = true;
                // The WebSocket has no `follow=false`.
                if !self.request.follow && self.request.transport == Transport::WebSocket {
                    self.finish();
                }
                return Some(Ok(StreamUpdate::CaughtUp));
            }
            TransportEvent::Stopping(wait) => self.retry_after = Some(wait),
            TransportEvent::Finished => self.release(),
            TransportEvent::Ended if self.retry_after.is_some() => {
                return self.retry_or_fail(self.client.http.closed_error("it is stopping"));
            }
            TransportEvent::Ended if !self.request.follow => self.release(),
            // The run has ended, which the next response confirms, or the server has.
            TransportEvent::Ended if self.has_advanced => self.connect(),
            TransportEvent::Ended => {
                return self.retry_or_fail(self.client.http.closed_error("it ended the stream"));
            }
        }
        None
    }

    /// Buffers a frame until its cursor is known.
    fn hold(&mut self, frame: ReceivedFrame) -> Option<Error> {
        self.held_bytes += frame.data.len();
        if self.held_bytes > MAX_EVENT_BYTES {
            self.finish();
            return Some(
                self.client.http.protocol_error(format!("a snapshot has more than {MAX_EVENT_BYTES} bytes")),
            );
        }
        let is_last = frame.cursor.is_some();
        self.held.push(frame);
        if is_last {
            self.ready.extend(self.held.drain(..));
            self.held_bytes = 0;
        }
        None
    }

    /// Ends the stream after the buffered frames.
    fn release(&mut self) {
        self.ready.extend(self.held.drain(..));
        self.finish();
    }

    fn progress(&mut self, cursor: Option<Cursor>) {
        self.has_advanced |= self.request.after != cursor;
        self.request.after = cursor;
        if !std::mem::replace(&mut self.has_progressed, true) {
            self.attempts.progressed();
        }
    }

    fn connect(&mut self) {
        self.has_progressed = false;
        self.has_advanced = false;
        self.retry_after = None;
        self.held.clear();
        self.held_bytes = 0;
        let http = self.client.http.clone();
        let opening = StreamConnection::open(http, self.request.clone(), self.client.retry.idle_timeout);
        self.state = State::Connecting(Box::pin(opening));
    }

    /// Schedules a reconnect, or returns the error that ends the stream.
    fn retry_or_fail(&mut self, error: Error) -> Option<Result<StreamUpdate<ReceivedFrame>, Error>> {
        self.is_caught_up = false;
        let Some(wait) = self.attempts.next_delay(&error, self.retry_after.take()) else {
            self.finish();
            return Some(Err(error));
        };
        tracing::debug!(%error, ?wait, "a stream is interrupted");
        self.state = State::Waiting(Box::pin(tokio::time::sleep(wait)));
        Some(Ok(StreamUpdate::Interrupted(error)))
    }
}
