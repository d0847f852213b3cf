//! Interactions: questions of a run to a person, and their answers. The first valid answer wins.

use runwire_model::event::{Decision, InteractionRequested, InteractionResolved};
use runwire_model::{Json, Timestamp};

use crate::info::RunInfo;

/// A person's answer to an interaction.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Answer {
    /// The interaction.
    pub interaction_id: String,
    /// The decision.
    pub decision: Decision,
    /// What was filled in.
    pub values: Option<Json>,
    /// Why.
    pub reason: Option<String>,
    /// Who answers.
    pub by: Option<String>,
}

/// The answer that an interaction has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolution {
    /// The decision.
    pub decision: Decision,
    /// What was filled in.
    pub values: Option<Json>,
    /// Why.
    pub reason: Option<String>,
    /// Who answered.
    pub by: Option<String>,
    /// When.
    pub at: Timestamp,
}

/// The result of an answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Answered {
    /// The run after the answer.
    pub run: RunInfo,
    /// The answer that the interaction has.
    pub answer: Resolution,
    /// Whether this request has given it, rather than an equal one before.
    pub new: bool,
}

/// An interaction with its request and its answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Interaction {
    /// The run.
    pub run_id: String,
    /// Its thread.
    pub thread_id: String,
    /// Its agent.
    pub agent: Option<String>,
    /// The event that requested it.
    pub question: InteractionRequested,
    /// When it was requested.
    pub asked_at: Timestamp,
    /// When it expires: as requested, or after a week.
    pub expires_at: Option<Timestamp>,
    /// The answer; `None` while it is open.
    pub answer: Option<Resolution>,
}

/// Filters and page of a list of open interactions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InteractionQuery {
    /// Whose.
    pub tenant: String,
    /// Of which run.
    pub run: Option<String>,
    /// Of which agent.
    pub agent: Option<String>,
    /// Of which thread.
    pub thread: Option<String>,
    /// Only interactions before this cursor.
    pub before: Option<InboxCursor>,
    /// How many at most; fewer where they are large.
    pub limit: usize,
}

/// A page of open interactions, newest first.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct InteractionPage {
    /// The interactions.
    pub interactions: Vec<Interaction>,
    /// The cursor of the next page; `None` at the end.
    pub next: Option<InboxCursor>,
}

/// A position among all interactions, in the order they were requested. It stays valid after its interaction is
/// resolved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct InboxCursor {
    /// When the interaction at this position was requested.
    pub asked_at: Timestamp,
    /// Breaks ties between interactions of the same time.
    pub number: u64,
}

impl Answer {
    /// Returns whether this answer equals the one that won; the layout of its JSON does not matter.
    pub fn equals(&self, won: &Resolution) -> bool {
        self.decision == won.decision
            && self.reason == won.reason
            && self.by == won.by
            && match (&self.values, &won.values) {
                (Some(values), Some(won)) => values.is_same_value(won),
                (values, won) => values.is_none() && won.is_none(),
            }
    }

    /// Converts the answer to its event.
    pub(crate) fn into_event(self) -> InteractionResolved {
        let Self { interaction_id, decision, values, reason, by } = self;
        InteractionResolved { interaction_id, decision, values, reason, by }
    }
}

impl Resolution {
    pub(crate) fn of(resolved: &InteractionResolved, at: Timestamp) -> Self {
        let InteractionResolved { decision, values, reason, by, .. } = resolved.clone();
        Self { decision, values, reason, by, at }
    }
}
