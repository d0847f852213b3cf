//! The errors of an engine: refused events, and failures that stop it.

use std::sync::Arc;
use std::time::Duration;

use runwire_model::json::FrameFault;
use runwire_model::run::Refusal;

use crate::{Error, Problem, RunStatus};

/// Why an event was refused. Nothing changed, and nothing was sent.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum EmitError {
    /// A field is missing or invalid.
    #[error("field `{field}`: {problem}")]
    Field {
        /// The field, by its name in the frame.
        field: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The event is too long or too deeply nested for one frame.
    #[error(transparent)]
    Frame(#[from] FrameFault),
    /// The run would exceed a limit.
    #[error(transparent)]
    Limit(Refusal),
    /// The session has ended.
    #[error("the session has ended; start a new run")]
    Ended,
    /// The engine was closed.
    #[error("the engine is closed")]
    Closed,
    /// The buffer is full, and the engine was told not to wait.
    #[error("the buffer is full: {events} events wait to be acknowledged")]
    Full {
        /// Number of unacknowledged events.
        events: u64,
    },
    /// The engine has stopped; unacknowledged events may be lost.
    #[error("the engine has stopped: {0}")]
    Failed(#[from] EngineFailure),
}

impl EmitError {
    pub(super) fn field(field: &str, problem: impl Into<String>) -> Self {
        Self::Field { field: field.to_owned(), problem: problem.into() }
    }
}

/// Why an engine stopped. Acknowledged events are written; the outcome of later ones is unknown.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum EngineFailure {
    /// The server refused a frame.
    #[error("{0}")]
    Refused(Arc<Problem>),
    /// An engine with a newer epoch of the producer has taken over.
    #[error("{0}")]
    Fenced(Arc<Problem>),
    /// The run was ended by someone else: cancelled, or its lease expired.
    #[error("the run is {status} and takes no more events")]
    RunClosed {
        /// The run's status.
        status: RunStatus,
    },
    /// The retry timeout expired.
    #[error("gave up after {attempts} attempts in {after:?}: {last}")]
    GaveUp {
        /// Time since the first attempt.
        after: Duration,
        /// Number of attempts.
        attempts: u32,
        /// The last error.
        last: Arc<Error>,
    },
    /// The server's response breaks the protocol.
    #[error("{0}")]
    Answer(Arc<Error>),
    /// Writing to the output failed.
    #[error("cannot write: {0}")]
    Write(Arc<std::io::Error>),
    /// The channel's receiver was dropped.
    #[error("nobody receives the frames any more")]
    ReceiverDropped,
    /// A custom sink failed.
    #[error("{0}")]
    Sink(Arc<dyn std::error::Error + Send + Sync>),
    /// The engine's task ended before everything was written: its runtime is gone, or the linger time is over.
    #[error("the engine was stopped before everything was written")]
    Stopped,
}

impl EngineFailure {
    /// Returns the server's problem, if the server refused.
    pub fn problem(&self) -> Option<&Problem> {
        match self {
            Self::Refused(problem) | Self::Fenced(problem) => Some(problem),
            _ => None,
        }
    }
}

impl From<std::io::Error> for EngineFailure {
    fn from(error: std::io::Error) -> Self {
        Self::Write(Arc::new(error))
    }
}
