//! The stream of a run or a thread: canonical events, frames of a dialect, or text.

use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_core::Stream;
use runwire_model::dialect::{Dialect, Slots};

use super::cursor::Cursor;
use super::event::CanonicalEvents;
use super::frame::ReceivedFrame;
use super::reconnect::{ReconnectingStream, StreamUpdate};
use super::request::{ReadRequest, Resource, Transport};
use crate::client::Client;
use crate::error::Error;

/// Decodes frames into the items of a stream.
pub trait FrameDecoder: Send + Unpin + sealed::Sealed {
    /// The item.
    type Item;

    /// Decodes a frame, or returns why it is invalid.
    #[doc(hidden)]
    fn read(&mut self, frame: ReceivedFrame) -> Result<Self::Item, String>;

    /// Returns true if the item ends a run.
    #[doc(hidden)]
    fn ends(_: &Self::Item) -> bool {
        false
    }
}

pub(super) mod sealed {
    /// Restricts decoders to those of this crate.
    pub trait Sealed {}
}

/// Returns frames unchanged.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct PassThrough;

/// Decodes frames of the `text` dialect.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct TextOnly;

/// A stream of frames of a dialect.
pub type FrameStream = RunStream<PassThrough>;

/// Canonical events.
pub type EventStream = RunStream<CanonicalEvents>;

/// A stream of the pieces of the answer's text.
pub type TextStream = RunStream<TextOnly>;

impl sealed::Sealed for PassThrough {}

impl FrameDecoder for PassThrough {
    type Item = ReceivedFrame;

    fn read(&mut self, frame: ReceivedFrame) -> Result<ReceivedFrame, String> {
        Ok(frame)
    }
}

impl sealed::Sealed for TextOnly {}

impl FrameDecoder for TextOnly {
    type Item = String;

    fn read(&mut self, frame: ReceivedFrame) -> Result<String, String> {
        Ok(frame.text().into_owned())
    }
}

/// A stream of a run or a thread that reconnects.
///
/// If a connection breaks or times out, or the server restarts, the stream reconnects and resumes after the last
/// delivered item: none is lost and none is delivered twice. The stream of a run ends with the run; that of a thread
/// waits for its next run. An error is the last item.
///
/// Set the options before polling. Dropping the stream closes its connection. Waiting for an item is cancel safe.
#[must_use = "a stream does nothing until it is read"]
pub struct RunStream<F> {
    stream: ReconnectingStream,
    decoder: F,
}

impl<F: FrameDecoder> RunStream<F> {
    pub(crate) fn new(client: &Client, resource: Resource, dialect: Dialect, decoder: F) -> Self {
        Self { stream: ReconnectingStream::new(client.clone(), ReadRequest::new(resource, dialect)), decoder }
    }

    /// Starts after a cursor instead of at the beginning.
    pub fn after(mut self, cursor: Cursor) -> Self {
        (self.stream.request.after, self.stream.request.from_end) = (Some(cursor), false);
        self
    }

    /// Starts with new events instead of at the beginning.
    ///
    /// A connection that breaks before the server has sent a cursor starts at the end again.
    pub fn from_end(mut self) -> Self {
        (self.stream.request.after, self.stream.request.from_end) = (None, true);
        self
    }

    /// Sets whether to wait for new items; default true.
    pub fn follow(mut self, follow: bool) -> Self {
        self.stream.request.follow = follow;
        self
    }

    /// Ends the stream after this many items.
    pub fn limit(mut self, limit: u64) -> Self {
        self.stream.request.limit = Some(limit);
        if limit == 0 {
            self.stream.finish();
        }
        self
    }

    /// Merges adjacent pieces of stored text into fewer items.
    pub fn compact(mut self, compact: bool) -> Self {
        self.stream.request.compact = compact;
        self
    }

    /// Starts with a snapshot of the current state instead of all past items, if the dialect has one.
    pub fn attach(mut self, attach: bool) -> Self {
        self.stream.request.attach = attach;
        self
    }

    /// Sets the transport; default server-sent events.
    pub fn transport(mut self, transport: Transport) -> Self {
        self.stream.request.transport = transport;
        self
    }

    /// Returns the cursor after the last delivered item, from which a new stream can resume.
    pub fn cursor(&self) -> Option<Cursor> {
        self.stream.cursor()
    }

    /// Returns true if all stored items have been delivered, so that further ones are live.
    pub fn is_caught_up(&self) -> bool {
        self.stream.is_caught_up()
    }

    /// Waits for the next item or news about the connection; `None` at the end.
    pub async fn next_update(&mut self) -> Option<Result<StreamUpdate<F::Item>, Error>> {
        poll_fn(|context| self.poll_update(context)).await
    }

    /// Polls for the next item or news about the connection.
    pub fn poll_update(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<StreamUpdate<F::Item>, Error>>> {
        let frame = match ready!(self.stream.poll_update(context)) {
            None => return Poll::Ready(None),
            Some(Err(error)) => return Poll::Ready(Some(Err(error))),
            Some(Ok(StreamUpdate::CaughtUp)) => return Poll::Ready(Some(Ok(StreamUpdate::CaughtUp))),
            Some(Ok(StreamUpdate::Interrupted(error))) => {
                return Poll::Ready(Some(Ok(StreamUpdate::Interrupted(error))));
            }
            Some(Ok(StreamUpdate::Item(frame))) => frame,
        };
        let item = match self.decoder.read(frame) {
            Ok(item) => item,
            Err(reason) => {
                self.stream.finish();
                return Poll::Ready(Some(Err(self.stream.protocol_error(reason))));
            }
        };
        if F::ends(&item) && self.stream.reads_run() {
            self.stream.finish();
        }
        Poll::Ready(Some(Ok(StreamUpdate::Item(item))))
    }
}

impl RunStream<PassThrough> {
    /// Adds residues: fields that the dialect cannot express natively.
    pub fn full(mut self, full: bool) -> Self {
        self.stream.request.full = full;
        self
    }

    /// Selects which extension frames (slots) are included.
    pub fn slots(mut self, slots: Slots) -> Self {
        self.stream.request.slots = slots;
        self
    }

    /// Returns the producer's frames byte for byte; records that the server wrote come as `runwire`.
    pub fn raw(mut self, raw: bool) -> Self {
        self.stream.request.raw = raw;
        self
    }
}

impl<F: FrameDecoder> Stream for RunStream<F> {
    type Item = Result<F::Item, Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            match ready!(self.poll_update(context)) {
                Some(Ok(StreamUpdate::Item(item))) => return Poll::Ready(Some(Ok(item))),
                Some(Ok(StreamUpdate::CaughtUp | StreamUpdate::Interrupted(_))) => {}
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => return Poll::Ready(None),
            }
        }
    }
}

impl<F> fmt::Debug for RunStream<F> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("RunStream").field("request", &self.stream.request).finish_non_exhaustive()
    }
}
