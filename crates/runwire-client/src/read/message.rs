//! A run's message as it grows.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_core::Stream;
use runwire_model::fold::MessageState;

use super::ask::Transport;
use super::follow::Signal;
use super::reading::Events;
use crate::error::Error;

/// The state of a run's message, again whenever it has changed.
///
/// What arrives together is taken in together: there is one state for it. A state that is dropped before the
/// next is asked for is grown in place, without a copy.
#[derive(Debug)]
#[must_use = "a stream does nothing until it is read"]
pub struct MessageStates {
    events: Events,
    state: Arc<MessageState>,
    has_changed: bool,
    failure: Option<Error>,
}

impl MessageStates {
    pub(crate) fn new(run_id: &str, events: Events) -> Self {
        // Pieces that lie behind would only be put together here again.
        let events = events.compact(true);
        Self { events, state: Arc::new(MessageState::new(run_id)), has_changed: false, failure: None }
    }

    /// Sets whether to wait for more; without it, the stream does.
    pub fn follow(mut self, follow: bool) -> Self {
        self.events = self.events.follow(follow);
        self
    }

    /// Sets what carries the stream; server-sent events without it.
    pub fn transport(mut self, transport: Transport) -> Self {
        self.events = self.events.transport(transport);
        self
    }

    /// Tells whether everything that was there has been taken in.
    pub fn is_caught_up(&self) -> bool {
        self.events.is_caught_up()
    }

    /// Gives the state as far as it has been read.
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
            match self.events.poll_signal(context) {
                Poll::Ready(Some(Ok(Signal::Item(received)))) => {
                    let state = Arc::make_mut(&mut self.state);
                    state.apply(&received.event, received.at);
                    self.has_changed = true;
                }
                Poll::Ready(Some(Ok(Signal::CaughtUp | Signal::Interrupted(_)))) => {}
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
