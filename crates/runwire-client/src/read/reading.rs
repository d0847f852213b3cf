//! A stream of what is read, in whichever form.

use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_core::Stream;
use runwire_model::dialect::{Dialect, Slots};

use super::ask::{Ask, Place, Transport};
use super::cursor::Cursor;
use super::event::Canonical;
use super::follow::{Follow, Signal};
use super::frame::Frame;
use crate::client::Client;
use crate::error::Error;

/// What frames are turned into for the reader.
pub trait Form: Send + Unpin + sealed::Sealed {
    /// What the reader gets.
    type Item;

    /// Reads a frame, or says why it makes no sense.
    #[doc(hidden)]
    fn read(&mut self, frame: Frame) -> Result<Self::Item, String>;

    /// Tells whether a run has nothing to say after this.
    #[doc(hidden)]
    fn ends(_: &Self::Item) -> bool {
        false
    }
}

pub(super) mod sealed {
    /// Keeps the forms to those of this crate.
    pub trait Sealed {}
}

/// Frames as they came.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct AsTheyCome;

/// The answer's text alone, piece by piece.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct TextAlone;

/// Frames of any dialect, as they came.
pub type Frames = Reading<AsTheyCome>;

/// Canonical events.
pub type Events = Reading<Canonical>;

/// Pieces of the answer's text.
pub type Texts = Reading<TextAlone>;

impl sealed::Sealed for AsTheyCome {}

impl Form for AsTheyCome {
    type Item = Frame;

    fn read(&mut self, frame: Frame) -> Result<Frame, String> {
        Ok(frame)
    }
}

impl sealed::Sealed for TextAlone {}

impl Form for TextAlone {
    type Item = String;

    fn read(&mut self, frame: Frame) -> Result<String, String> {
        Ok(frame.text().into_owned())
    }
}

/// A run or a thread as a stream: from any place, over as many connections as it takes.
///
/// Where a connection breaks, falls silent, or the server restarts, reading goes on after the last item that was
/// handed out: none is missing and none comes twice. A run's stream ends with the run; a thread's goes on with
/// its next run. An error is the last item.
///
/// What is asked for is said before the first item is. Dropping the stream closes its connection; asking for an
/// item and dropping the question (`select!`) loses nothing.
#[must_use = "a stream does nothing until it is read"]
pub struct Reading<F> {
    follow: Follow,
    form: F,
}

impl<F: Form> Reading<F> {
    pub(crate) fn new(client: &Client, place: Place, dialect: Dialect, form: F) -> Self {
        Self { follow: Follow::new(client.clone(), Ask::new(place, dialect)), form }
    }

    /// Begins after this place instead of at the start.
    pub fn after(mut self, cursor: Cursor) -> Self {
        (self.follow.ask.after, self.follow.ask.from_end) = (Some(cursor), false);
        self
    }

    /// Begins with what happens from now on, instead of at the start.
    ///
    /// A connection that breaks before the server has told the place begins at the end again.
    pub fn from_end(mut self) -> Self {
        (self.follow.ask.after, self.follow.ask.from_end) = (None, true);
        self
    }

    /// Sets whether to wait for more; without it, the stream does.
    pub fn follow(mut self, follow: bool) -> Self {
        self.follow.ask.follow = follow;
        self
    }

    /// Ends after so many items.
    pub fn limit(mut self, limit: u64) -> Self {
        self.follow.ask.limit = Some(limit);
        if limit == 0 {
            self.follow.finish();
        }
        self
    }

    /// Merges neighbouring pieces of text that lie behind into fewer items.
    pub fn compact(mut self, compact: bool) -> Self {
        self.follow.ask.compact = compact;
        self
    }

    /// Begins with the present in one go instead of all that led to it, where the dialect offers that.
    pub fn attach(mut self, attach: bool) -> Self {
        self.follow.ask.attach = attach;
        self
    }

    /// Sets what carries the stream; server-sent events without it.
    pub fn transport(mut self, transport: Transport) -> Self {
        self.follow.ask.transport = transport;
        self
    }

    /// Tells the place after everything that was handed out; a new stream can go on from there.
    pub fn cursor(&self) -> Option<Cursor> {
        self.follow.cursor()
    }

    /// Tells whether everything that was there has been handed out, and items now come as they happen.
    pub fn is_caught_up(&self) -> bool {
        self.follow.is_caught_up()
    }

    /// Waits for the next item, or for news about the stream itself; nothing at the end.
    pub async fn signal(&mut self) -> Option<Result<Signal<F::Item>, Error>> {
        poll_fn(|context| self.poll_signal(context)).await
    }

    /// Polls for the next item, or for news about the stream itself.
    pub fn poll_signal(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Signal<F::Item>, Error>>> {
        let frame = match ready!(self.follow.poll_signal(context)) {
            None => return Poll::Ready(None),
            Some(Err(error)) => return Poll::Ready(Some(Err(error))),
            Some(Ok(Signal::CaughtUp)) => return Poll::Ready(Some(Ok(Signal::CaughtUp))),
            Some(Ok(Signal::Interrupted(error))) => {
                return Poll::Ready(Some(Ok(Signal::Interrupted(error))));
            }
            Some(Ok(Signal::Item(frame))) => frame,
        };
        let item = match self.form.read(frame) {
            Ok(item) => item,
            Err(reason) => {
                self.follow.finish();
                return Poll::Ready(Some(Err(self.follow.strange(reason))));
            }
        };
        if F::ends(&item) && self.follow.is_of_run() {
            self.follow.finish();
        }
        Poll::Ready(Some(Ok(Signal::Item(item))))
    }
}

impl Reading<AsTheyCome> {
    /// Carries what the dialect cannot say natively beside each frame.
    pub fn full(mut self, full: bool) -> Self {
        self.follow.ask.full = full;
        self
    }

    /// Chooses the extension frames: what the dialect cannot say natively.
    pub fn slots(mut self, slots: Slots) -> Self {
        self.follow.ask.slots = slots;
        self
    }

    /// Gives the frames byte for byte as the producer sent them; what the server wrote comes as `runwire`.
    pub fn raw(mut self, raw: bool) -> Self {
        self.follow.ask.raw = raw;
        self
    }
}

impl<F: Form> Stream for Reading<F> {
    type Item = Result<F::Item, Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            match ready!(self.poll_signal(context)) {
                Some(Ok(Signal::Item(item))) => return Poll::Ready(Some(Ok(item))),
                Some(Ok(Signal::CaughtUp | Signal::Interrupted(_))) => {}
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => return Poll::Ready(None),
            }
        }
    }
}

impl<F> fmt::Debug for Reading<F> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Reading").field("ask", &self.follow.ask).finish_non_exhaustive()
    }
}
