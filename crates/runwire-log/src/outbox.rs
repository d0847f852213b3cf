//! OutboxRows: events that somebody outside is to be told of, kept until they were.

use std::time::Duration;

use runwire_model::event::Body;
use runwire_model::{Json, Timestamp};

use crate::key::RunKey;

/// What can be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OutboxKind {
    /// A run asks a person.
    InteractionRequested,
    /// A run has done its work.
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

    /// Finds the one for a type of event.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Returns what an event is to be told as, if at all.
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

/// Somebody who is to be told of events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subscriber {
    /// What tells it from others.
    pub name: String,
    /// Of which events.
    pub kinds: Vec<OutboxKind>,
}

/// An event that a subscriber has not been told of yet.
#[derive(Debug, Clone, PartialEq)]
pub struct OutboxMessage {
    /// Tells it from all others of this store.
    pub number: u64,
    /// Tells it from all others anywhere; the same however often it is told.
    pub id: String,
    /// What it tells.
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
    /// How often it was tried in vain to tell it.
    pub attempts: u32,
    /// How long to wait before it is tried again; nothing once it is due.
    pub wait: Duration,
}

/// What became of telling a notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeliveryOutcome {
    /// It was told, or never will be: it is removed.
    Done,
    /// It was tried in vain, and is due again after a while.
    Retry(Duration),
}
