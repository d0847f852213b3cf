//! Signals from people to the agent (answers, cancel requests), read from the run's events.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_core::Stream;
use futures_util::{StreamExt, stream};
use runwire_model::Json;
use runwire_model::event::{Body, Decision};
use runwire_producer::Backoff;

use tokio::time::sleep;

use super::StreamingEngine;
use super::shared::Shared;
use crate::{Client, Error, EventStream, RunHandle};

/// A signal from people to the agent.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Signal {
    /// A request to cancel the run. The agent has a grace period to end it; then the server does.
    Cancel {
        /// Why.
        reason: Option<String>,
        /// Who.
        by: Option<String>,
    },
    /// An interaction was resolved, also by expiry or withdrawal. (Interactions that end with the run are not
    /// reported.)
    Answer {
        /// Id of the interaction.
        interaction_id: String,
        /// The decision.
        decision: Decision,
        /// The values of a form.
        values: Option<Json>,
        /// Why.
        reason: Option<String>,
        /// Who.
        by: Option<String>,
    },
}

/// A stream of [`Signal`]s; see [`StreamingEngine::signals`].
#[must_use = "a stream does nothing until it is read"]
pub struct Signals(Pin<Box<dyn Stream<Item = Result<Signal, Error>> + Send>>);

impl Signals {
    pub(super) fn of(engine: &StreamingEngine) -> Self {
        let Some(client) = engine.client.clone() else { return Self(Box::pin(stream::empty())) };
        let backoff = client.backoff();
        let listener =
            Listener { shared: engine.shared.clone(), client, events: None, backoff, cancelled: false };
        Self(Box::pin(stream::unfold(listener, Listener::next)))
    }

    /// Waits for the next signal; `None` after the run has ended.
    pub async fn next(&mut self) -> Option<Result<Signal, Error>> {
        self.0.next().await
    }
}

impl Stream for Signals {
    type Item = Result<Signal, Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.as_mut().poll_next(context)
    }
}

impl fmt::Debug for Signals {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Signals").finish_non_exhaustive()
    }
}

/// Follows the run once it exists.
struct Listener {
    shared: Arc<Shared>,
    client: Client,
    events: Option<EventStream>,
    backoff: Backoff,
    cancelled: bool,
}

impl Listener {
    async fn next(mut self) -> Option<(Result<Signal, Error>, Self)> {
        if self.events.is_none() && !self.shared.has_written().await {
            return None;
        }
        let run = self.client.run(&self.shared.request_id);
        loop {
            let events = self.events.get_or_insert_with(|| run.events());
            let received = match events.next().await? {
                Ok(received) => received,
                // Streams give up sooner than the engine: retry as long as the engine does.
                Err(error) if error.is_temporary() && !self.shared.is_over() => {
                    let again = run.events();
                    let again = match events.cursor() {
                        Some(cursor) => again.after(cursor),
                        None => again,
                    };
                    self.events = Some(again);
                    sleep(self.backoff.next_delay_or(error.retry_after())).await;
                    continue;
                }
                Err(error) => return Some((Err(error), self)),
            };
            self.backoff.reset();
            let signal = match received.event.body {
                Body::RunCancelRequested(asked) => Signal::Cancel { reason: asked.reason, by: asked.by },
                // A suspended run is cancelled without a request event.
                Body::RunCancelled(cancelled) if !self.cancelled && !self.shared.has_ended() => {
                    Signal::Cancel { reason: cancelled.reason, by: None }
                }
                Body::InteractionResolved(resolved)
                    if resolved.decision == Decision::Cancelled && is_closed(run.clone()).await =>
                {
                    continue;
                }
                Body::InteractionResolved(resolved) => Signal::Answer {
                    interaction_id: resolved.interaction_id,
                    decision: resolved.decision,
                    values: resolved.values,
                    reason: resolved.reason,
                    by: resolved.by,
                },
                _ => continue,
            };
            if matches!(signal, Signal::Cancel { .. }) {
                self.cancelled = true;
                self.shared.set_cancel_requested();
            }
            return Some((Ok(signal), self));
        }
    }
}

/// Returns true if a run has ended. Its open interactions are then resolved as cancelled, which is not a signal.
async fn is_closed(run: RunHandle) -> bool {
    run.info().await.is_ok_and(|info| info.ended_at.is_some())
}
