//! The outbox: events for subscribers such as webhooks, committed with the event and kept until they are delivered.

use std::time::Duration;

use runwire_model::event::Body;
use runwire_model::{Json, Timestamp};

use crate::key::RunKey;

/// The kinds of events that subscribers can receive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OutboxKind {
    /// A run has requested an interaction.
    InteractionRequested,
    /// A run has completed.
    RunCompleted,
    /// A run has failed.
    RunFailed,
    /// A run was cancelled.
    RunCancelled,
}

impl OutboxKind {
    /// All of them.
    pub const ALL: [Self; 4] =
        [Self::InteractionRequested, Self::RunCompleted, Self::RunFailed, Self::RunCancelled];

    /// Returns the type of the event.
    pub fn name(self) -> &'static str {
        match self {
            Self::InteractionRequested => "interaction.requested",
            Self::RunCompleted => "run.completed",
            Self::RunFailed => "run.failed",
            Self::RunCancelled => "run.cancelled",
        }
    }

    /// Parses the type of an event.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Returns the kind of an event, if subscribers can receive it.
    pub(crate) fn of(body: &Body) -> Option<Self> {
        match body {
            Body::InteractionRequested(_) => Some(Self::InteractionRequested),
            Body::RunCompleted(_) => Some(Self::RunCompleted),
            Body::RunFailed(_) => Some(Self::RunFailed),
            Body::RunCancelled(_) => Some(Self::RunCancelled),
            _ => None,
        }
    }
}

/// A subscriber of events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subscriber {
    /// Its unique name.
    pub name: String,
    /// The events that it receives.
    pub kinds: Vec<OutboxKind>,
}

/// An event that is not delivered to its subscriber yet.
#[derive(Debug, Clone, PartialEq)]
pub struct OutboxMessage {
    /// Its number in this store.
    pub number: u64,
    /// Its globally unique id, the same for every attempt.
    pub id: String,
    /// The kind of the event.
    pub kind: OutboxKind,
    /// The run.
    pub run: RunKey,
    /// The run's thread.
    pub thread_id: String,
    /// The run's agent.
    pub agent: Option<String>,
    /// The record that the event is in.
    pub seq: u64,
    /// When that was written.
    pub at: Timestamp,
    /// The event, without an envelope.
    pub event: Json,
    /// The number of failed attempts.
    pub attempts: u32,
    /// Time until the next attempt; zero once it is due.
    pub wait: Duration,
}

/// The outcome of an attempt to deliver a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeliveryOutcome {
    /// It was delivered, or never will be: it is removed.
    Done,
    /// It failed, and is due again after this time.
    Retry(Duration),
}
