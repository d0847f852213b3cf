//! The outcome of an agent's run that the server decides, because the agent has not ended the run itself.

use runwire_model::event::{ErrorInfo, Event, RunCancelled, RunFailed};
use runwire_model::{Json, RunFailureCode};
use serde_json::Value;

/// The outcome of a run.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum AgentOutcome {
    /// The output has ended: the run completes, or fails with its last fatal notice.
    Complete,
    /// The agent failed.
    Failed(Box<ErrorInfo>),
    /// The run was cancelled.
    Cancelled {
        /// The reason of the cancel request.
        reason: Option<String>,
    },
}

impl AgentOutcome {
    /// Creates a failure from an error.
    pub(super) fn of(error: ErrorInfo) -> Self {
        Self::Failed(Box::new(error))
    }

    /// Creates a failure with a code and a message.
    pub(super) fn failed(code: RunFailureCode, message: impl Into<String>) -> Self {
        Self::of(code.error(message))
    }

    /// Creates the failure of a run whose output the store permanently refuses.
    pub(super) fn store_damaged() -> Self {
        Self::failed(RunFailureCode::StoreDamaged, "the store cannot hold what the agent says")
    }

    /// Creates the failure of a run whose server stops.
    pub(super) fn server_stopped() -> Self {
        let error = RunFailureCode::ServerStopped.error("the server that ran the agent has stopped");
        Self::of(ErrorInfo { retryable: Some(true), ..error })
    }

    /// Creates the failure of an orphaned run.
    pub(super) fn producer_lost() -> Self {
        let message = "the server that ran the agent ended before the agent did";
        Self::of(ErrorInfo { retryable: Some(true), ..RunFailureCode::ProducerLost.error(message) })
    }

    /// Returns the terminal event; none for completion, which the log writes itself.
    pub(super) fn event(self) -> Option<Event> {
        match self {
            Self::Complete => None,
            Self::Failed(error) => Some(Event::new(RunFailed { error: *error, ..Default::default() })),
            Self::Cancelled { reason } => Some(Event::new(RunCancelled { reason, ..Default::default() })),
        }
    }
}

/// Adds details to an error.
pub(super) fn with_details(error: ErrorInfo, details: &Value) -> ErrorInfo {
    ErrorInfo { details: Some(Json::from_value(details)), ..error }
}
