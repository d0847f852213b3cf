//! The bodies and filters of requests.

use runwire_model::Json;
use runwire_model::event::Decision;
use serde::Serialize;

use super::info::RunStatus;

/// A request to create a run; all fields are optional.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct NewRun {
    /// Its id; by default the server creates one. An identical request returns the same run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_id: Option<String>,
    /// Its thread; by default a new one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thread_id: Option<String>,
    /// Its agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The person's message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Id of that message; it must be new in the thread.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_id: Option<String>,
    /// Further input of the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<Json>,
}

/// A request to create a thread.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct NewThread {
    /// Its id; by default the server creates one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thread_id: Option<String>,
    /// Whether it may have several open runs at once.
    pub parallel: bool,
}

/// A person's answer to an interaction.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// The decision.
    pub decision: Decision,
    /// The values of a form.
    pub values: Option<Json>,
    /// The reason.
    pub reason: Option<String>,
}

impl Answer {
    /// Submits a form.
    pub fn submitted(values: Json) -> Self {
        Self { decision: Decision::Submitted, values: Some(values), reason: None }
    }

    /// Approves a request.
    pub fn approved() -> Self {
        Self { decision: Decision::Approved, values: None, reason: None }
    }

    /// Withdraws the interaction, so that the agent decides how to continue.
    pub fn cancelled() -> Self {
        Self { decision: Decision::Cancelled, values: None, reason: None }
    }

    /// Rejects a request.
    pub fn rejected(reason: impl Into<String>) -> Self {
        Self { decision: Decision::Rejected, values: None, reason: Some(reason.into()) }
    }
}

/// The JSON body of an answer.
#[derive(Debug, Serialize)]
pub(super) struct AnswerBody<'a> {
    decision: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    values: Option<&'a Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
}

impl<'a> From<&'a Answer> for AnswerBody<'a> {
    fn from(answer: &'a Answer) -> Self {
        let Answer { decision, values, reason } = answer;
        Self { decision: decision.as_str(), values: values.as_ref(), reason: reason.as_deref() }
    }
}

/// Filter of the list of runs, newest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunFilter {
    /// Only runs with this status.
    pub status: Option<RunStatus>,
    /// Only runs of this agent.
    pub agent: Option<String>,
    /// Only runs of this thread.
    pub thread: Option<String>,
    /// Only runs older than this one: the `next` of another page.
    pub before: Option<String>,
    /// Limits the page, up to 200.
    pub limit: Option<u32>,
}
