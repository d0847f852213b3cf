//! Why an event was not taken, and why an engine stopped.

use std::sync::Arc;
use std::time::Duration;

use runwire_model::json::FrameFault;
use runwire_model::run::Refusal;

use crate::{Error, Problem};

/// Why an event was not taken. Nothing has changed, and nothing was sent.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum EmitError {
    /// A field is missing or wrong.
    #[error("field `{field}`: {problem}")]
    Field {
        /// The field, by its name in the frame.
        field: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The event is too long or too deep for one frame.
    #[error(transparent)]
    Frame(#[from] FrameFault),
    /// The run would gather too much.
    #[error(transparent)]
    Limit(Refusal),
    /// The session has ended, and nothing may follow.
    #[error("the session has ended; start a new run")]
    Ended,
    /// The engine was closed.
    #[error("the engine is closed")]
    Closed,
    /// As much as the buffer takes is waiting, and the engine was told not to wait.
    #[error("the buffer is full: {events} events wait to be acknowledged")]
    Full {
        /// How many events wait.
        events: u64,
    },
    /// The engine has stopped; what was not acknowledged may not be written.
    #[error("the engine has stopped: {0}")]
    Failed(#[from] Failure),
}

impl EmitError {
    pub(super) fn field(field: &str, problem: impl Into<String>) -> Self {
        Self::Field { field: field.to_owned(), problem: problem.into() }
    }
}

/// Why an engine stopped. What was acknowledged is written; whatever came later is not, or is not known to be.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Failure {
    /// The server refused a frame.
    #[error("{0}")]
    Refused(Arc<Problem>),
    /// A newer incarnation of the producer has taken over: this one is a zombie and must stop.
    #[error("{0}")]
    Fenced(Arc<Problem>),
    /// The run was ended by somebody else: cancelled, or given up by the server.
    #[error("the run is {status} and takes no more events")]
    RunClosed {
        /// How the run stands.
        status: String,
    },
    /// The server could not be reached, or did not answer usefully, for as long as the engine was told to try.
    #[error("gave up after {attempts} attempts in {after:?}: {last}")]
    GaveUp {
        /// How long it was tried.
        after: Duration,
        /// How often it was tried.
        attempts: u32,
        /// What went wrong last.
        last: Arc<Error>,
    },
    /// The server's answer makes no sense.
    #[error("{0}")]
    Answer(Arc<Error>),
    /// What was written could not be stored.
    #[error("cannot write: {0}")]
    Write(Arc<std::io::Error>),
    /// Nobody receives from the channel any more.
    #[error("nobody receives the frames any more")]
    Unheard,
    /// A sink of somebody's own has failed.
    #[error("{0}")]
    Sink(Arc<dyn std::error::Error + Send + Sync>),
    /// The engine's task was ended before everything was written: its runtime is gone, or the time to flush is up.
    #[error("the engine was stopped before everything was written")]
    Stopped,
}

impl Failure {
    /// Tells what the server said, if it was the server.
    pub fn problem(&self) -> Option<&Problem> {
        match self {
            Self::Refused(problem) | Self::Fenced(problem) => Some(problem),
            _ => None,
        }
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::Write(Arc::new(error))
    }
}
