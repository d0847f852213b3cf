//! How the run of an agent ends whose agent has not said so itself.

use runwire_model::Json;
use runwire_model::event::{ErrorInfo, Event, RunCancelled, RunFailed};
use serde_json::Value;

/// The end of a run.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum AgentOutcome {
    /// The input has ended: the run is complete, or fails with its last fatal notice.
    Complete,
    /// The agent failed.
    Failed(Box<ErrorInfo>),
    /// Someone wanted it to stop.
    Cancelled {
        /// Why.
        reason: Option<String>,
    },
}

impl AgentOutcome {
    /// Makes the failure of an error.
    pub(super) fn of(error: ErrorInfo) -> Self {
        Self::Failed(Box::new(error))
    }

    /// Makes a failure.
    pub(super) fn failed(code: &str, message: impl Into<String>) -> Self {
        Self::of(ErrorInfo::coded(code, message))
    }

    /// Makes the failure of a run that the store refuses for good.
    pub(super) fn store_damaged() -> Self {
        Self::failed("store_damaged", "the store cannot hold what the agent says")
    }

    /// Makes the failure of a run whose server stops.
    pub(super) fn server_stopped() -> Self {
        let error = ErrorInfo::coded("server_stopped", "the server that ran the agent has stopped");
        Self::of(ErrorInfo { retryable: Some(true), ..error })
    }

    /// Makes the failure of a run whose server was gone before its agent had ended.
    pub(super) fn producer_lost() -> Self {
        let message = "the server that ran the agent ended before the agent did";
        Self::of(ErrorInfo { retryable: Some(true), ..ErrorInfo::coded("producer_lost", message) })
    }

    /// Writes the event; the completion of a run is the log's to say.
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
