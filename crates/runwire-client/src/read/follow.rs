//! A stream over as many connections as it takes: nothing twice, nothing missing.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use tokio::time::Sleep;

use super::ask::{Ask, Place, Transport};
use super::cursor::Cursor;
use super::cutter::EVENT_BYTES;
use super::frame::Frame;
use super::link::{Heard, Link};
use crate::backoff::Backoff;
use crate::client::Client;
use crate::error::Error;

/// What a stream tells beside what it hands out.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Signal<T> {
    /// The next of what was asked for.
    Item(T),
    /// Everything up to now has been handed out; what follows happens as it comes.
    CaughtUp,
    /// The connection is gone and will be tried again. Nothing is lost by it.
    Interrupted(Error),
}

enum State {
    Start,
    Connecting(BoxFuture<'static, Result<Option<Link>, Error>>),
    Open(Link),
    Waiting(Pin<Box<Sleep>>),
    Done,
}

/// Follows a run or a thread.
pub(super) struct Follow {
    client: Client,
    /// Its cursor moves with what is handed out.
    pub(super) ask: Ask,
    state: State,
    backoff: Backoff,
    /// Attempts that failed before the first connection.
    tries: u32,
    was_connected: bool,
    /// When the connection was lost, if nothing has been heard since.
    lost: Option<Instant>,
    is_caught_up: bool,
    /// What the server asks to wait before the next connection.
    leaving: Option<Duration>,
    /// Whether anything was heard over this connection.
    has_progressed: bool,
    /// Whether this connection has moved the cursor.
    has_advanced: bool,
    /// Frames without a cursor: handed out earlier, they would come twice if the connection broke.
    held: Vec<Frame>,
    held_bytes: usize,
    ready: VecDeque<Frame>,
}

impl Follow {
    pub(super) fn new(client: Client, ask: Ask) -> Self {
        Self {
            backoff: Backoff::new(&client.patience),
            client,
            ask,
            state: State::Start,
            tries: 0,
            was_connected: false,
            lost: None,
            is_caught_up: false,
            leaving: None,
            has_progressed: false,
            has_advanced: false,
            held: Vec::new(),
            held_bytes: 0,
            ready: VecDeque::new(),
        }
    }

    /// Tells the place after everything that was handed out.
    pub(super) fn cursor(&self) -> Option<Cursor> {
        self.ask.after
    }

    pub(super) fn is_caught_up(&self) -> bool {
        self.is_caught_up
    }

    /// Tells whether a whole run is read, which a terminal event ends.
    pub(super) fn is_of_run(&self) -> bool {
        matches!(self.ask.place, Place::Run(_))
    }

    /// Says that a frame makes no sense.
    pub(super) fn strange(&self, reason: String) -> Error {
        self.client.http.strange(reason)
    }

    /// Ends the stream: there is nothing more.
    pub(super) fn finish(&mut self) {
        self.state = State::Done;
    }

    pub(super) fn poll_signal(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Signal<Frame>, Error>>> {
        loop {
            if let Some(frame) = self.ready.pop_front() {
                return Poll::Ready(self.hand_out(frame));
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
                    Ok(Some(link)) => {
                        self.state = State::Open(link);
                        self.was_connected = true;
                        continue;
                    }
                    Ok(None) => {
                        self.finish();
                        continue;
                    }
                    Err(error) => self.lose(error),
                },
                State::Open(link) => match ready!(link.poll_heard(context)) {
                    Ok(Heard::Frame(frame)) if frame.cursor.is_some() && self.held.is_empty() => {
                        return Poll::Ready(self.hand_out(frame));
                    }
                    Ok(heard) => self.take(heard),
                    Err(error) => self.lose(error),
                },
            };
            if let Some(next) = next {
                return Poll::Ready(Some(next));
            }
        }
    }

    fn hand_out(&mut self, frame: Frame) -> Option<Result<Signal<Frame>, Error>> {
        if frame.cursor.is_some() {
            self.progress(frame.cursor);
        }
        if let Some(left) = &mut self.ask.limit {
            *left = left.saturating_sub(1);
            if *left == 0 {
                self.ready.clear();
                self.finish();
            }
        }
        Some(Ok(Signal::Item(frame)))
    }

    fn take(&mut self, heard: Heard) -> Option<Result<Signal<Frame>, Error>> {
        match heard {
            Heard::Frame(frame) => return self.hold(frame).map(Err),
            Heard::Place(place) => self.progress(place.or(self.ask.after)),
            Heard::CaughtUp(place) => {
                if place.is_some() {
                    self.progress(place);
                }
                self.is_caught_up = true;
                // A WebSocket cannot be asked to end at what is there.
                if !self.ask.follow && self.ask.transport == Transport::WebSocket {
                    self.finish();
                }
                return Some(Ok(Signal::CaughtUp));
            }
            Heard::Leaving(wait) => self.leaving = Some(wait),
            Heard::Finished => self.release(),
            Heard::Ended if self.leaving.is_some() => {
                return self.lose(self.client.http.closed("it is stopping"));
            }
            Heard::Ended if !self.ask.follow => self.release(),
            // The end of the run, which the next answer confirms, or of the server.
            Heard::Ended if self.has_advanced => self.connect(),
            Heard::Ended => return self.lose(self.client.http.closed("it ended the stream")),
        }
        None
    }

    /// Keeps a frame until the place after it is known.
    fn hold(&mut self, frame: Frame) -> Option<Error> {
        self.held_bytes += frame.data.len();
        if self.held_bytes > EVENT_BYTES {
            self.finish();
            return Some(self.client.http.strange(format!("a snapshot has more than {EVENT_BYTES} bytes")));
        }
        let is_last = frame.cursor.is_some();
        self.held.push(frame);
        if is_last {
            self.ready.extend(self.held.drain(..));
            self.held_bytes = 0;
        }
        None
    }

    /// Ends the stream after what is held.
    fn release(&mut self) {
        self.ready.extend(self.held.drain(..));
        self.finish();
    }

    fn progress(&mut self, cursor: Option<Cursor>) {
        self.has_advanced |= self.ask.after != cursor;
        self.ask.after = cursor;
        if !std::mem::replace(&mut self.has_progressed, true) {
            self.backoff.reset();
            self.lost = None;
        }
    }

    fn connect(&mut self) {
        self.has_progressed = false;
        self.has_advanced = false;
        self.leaving = None;
        self.held.clear();
        self.held_bytes = 0;
        let http = self.client.http.clone();
        let opening = Link::open(http, self.ask.clone(), self.client.patience.silence);
        self.state = State::Connecting(Box::pin(opening));
    }

    /// Gives up, or waits for another attempt.
    fn lose(&mut self, error: Error) -> Option<Result<Signal<Frame>, Error>> {
        let patience = &self.client.patience;
        let is_over = if self.was_connected {
            let lost = *self.lost.get_or_insert_with(Instant::now);
            patience.give_up_after.is_some_and(|time| lost.elapsed() >= time)
        } else {
            self.tries += 1;
            self.tries >= patience.first_tries
        };
        self.is_caught_up = false;
        if is_over || !error.is_temporary() {
            self.finish();
            return Some(Err(error));
        }
        let asked = self.leaving.take().or(error.retry_after());
        let wait = self.backoff.next_wait(asked);
        tracing::debug!(%error, ?wait, "a stream is interrupted");
        self.state = State::Waiting(Box::pin(tokio::time::sleep(wait)));
        Some(Ok(Signal::Interrupted(error)))
    }
}
