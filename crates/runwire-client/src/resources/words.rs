//! What can be asked of a server, beside reading and writing events.

use runwire_model::Json;
use runwire_model::event::Decision;
use serde::Serialize;

use super::info::RunStatus;

/// What a new run is said to be; all of it may be left out.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct NewRun {
    /// Its id; the server makes one up without it. The same words again give the same run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_id: Option<String>,
    /// The thread; without it the run gets one of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thread_id: Option<String>,
    /// Who shall work on it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// What the person asks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The id of that message, where the caller has given it one; it must be new in the thread.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_id: Option<String>,
    /// What else the agent is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<Json>,
}

/// What a new thread is said to be.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct NewThread {
    /// Its id; the server makes one up without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thread_id: Option<String>,
    /// Whether it may have several open runs.
    pub parallel: bool,
}

/// What a person says to a question.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// What becomes of the question.
    pub decision: Decision,
    /// What was filled in.
    pub values: Option<Json>,
    /// Why.
    pub reason: Option<String>,
}

impl Answer {
    /// Fills in a form.
    pub fn submitted(values: Json) -> Self {
        Self { decision: Decision::Submitted, values: Some(values), reason: None }
    }

    /// Allows what was asked.
    pub fn approved() -> Self {
        Self { decision: Decision::Approved, values: None, reason: None }
    }

    /// Withdraws the question, so that the agent decides how to go on.
    pub fn cancelled() -> Self {
        Self { decision: Decision::Cancelled, values: None, reason: None }
    }

    /// Forbids what was asked.
    pub fn rejected(reason: impl Into<String>) -> Self {
        Self { decision: Decision::Rejected, values: None, reason: Some(reason.into()) }
    }
}

/// An answer as it is sent.
#[derive(Debug, Serialize)]
pub(super) struct AnswerRequest<'a> {
    decision: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    values: Option<&'a Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
}

impl<'a> From<&'a Answer> for AnswerRequest<'a> {
    fn from(answer: &'a Answer) -> Self {
        let Answer { decision, values, reason } = answer;
        Self { decision: decision.as_str(), values: values.as_ref(), reason: reason.as_deref() }
    }
}

/// Which runs are listed, newest first; all without it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunFilter {
    /// Only runs that stand like this.
    pub status: Option<RunStatus>,
    /// Only runs of this agent.
    pub agent: Option<String>,
    /// Only runs of this thread.
    pub thread: Option<String>,
    /// Only runs older than this one: the `next` of the page before.
    pub before: Option<String>,
    /// How many a page has at most, up to 200.
    pub limit: Option<u32>,
}
