//! A stream of the folded message of a run.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_core::Stream;
use runwire_model::fold::MessageState;

use super::reconnect::StreamUpdate;
use super::request::Transport;
use super::run_stream::EventStream;
use crate::error::Error;

/// A stream of a run's message state, with an item for each change.
///
/// Events that arrive together give one item. A state that is dropped before the next one is polled is changed
/// in place, without a copy.
#[derive(Debug)]
#[must_use = "a stream does nothing until it is read"]
pub struct MessageStates {
    events: EventStream,
    state: Arc<MessageState>,
    has_changed: bool,
    failure: Option<Error>,
}

impl MessageStates {
    pub(crate) fn new(run_id: &str, events: EventStream) -> Self {
        // The fold would merge past pieces anyway.
        let events = events.compact(true);
        Self { events, state: Arc::new(MessageState::new(run_id)), has_changed: false, failure: None }
    }

    /// Sets whether to wait for new events; default true.
    pub fn follow(mut self, follow: bool) -> Self {
        self.events = self.events.follow(follow);
        self
    }

    /// Sets the transport; default server-sent events.
    pub fn transport(mut self, transport: Transport) -> Self {
        self.events = self.events.transport(transport);
        self
    }

    /// Returns true if all stored events have been folded.
    pub fn is_caught_up(&self) -> bool {
        self.events.is_caught_up()
    }

    /// Returns the current state.
    pub fn current(&self) -> &Arc<MessageState> {
        &self.state
    }

    fn changed(&mut self) -> Option<Result<Arc<MessageState>, Error>> {
        std::mem::take(&mut self.has_changed).then(|| Ok(self.state.clone()))
    }
}

impl Stream for MessageStates {
    type Item = Result<Arc<MessageState>, Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if let Some(error) = self.failure.take() {
            return Poll::Ready(Some(Err(error)));
        }
        loop {
            match self.events.poll_update(context) {
                Poll::Ready(Some(Ok(StreamUpdate::Item(received)))) => {
                    let state = Arc::make_mut(&mut self.state);
                    state.apply(&received.event, received.at);
                    self.has_changed = true;
                }
                Poll::Ready(Some(Ok(StreamUpdate::CaughtUp | StreamUpdate::Interrupted(_)))) => {}
                Poll::Ready(Some(Err(error))) => {
                    let changed = self.changed();
                    if changed.is_none() {
                        return Poll::Ready(Some(Err(error)));
                    }
                    self.failure = Some(error);
                    return Poll::Ready(changed);
                }
                Poll::Ready(None) => return Poll::Ready(self.changed()),
                Poll::Pending if self.has_changed => return Poll::Ready(self.changed()),
                Poll::Pending => return Poll::Pending,
            }
        }
    }
}
