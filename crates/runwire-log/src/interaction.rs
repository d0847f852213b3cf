//! Questions to people, and their answers: the first valid answer wins.

use runwire_model::event::{Decision, InteractionRequested, InteractionResolved};
use runwire_model::{Json, Timestamp};

use crate::info::RunInfo;

/// What a person says to a question.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Answer {
    /// RunFilter question.
    pub interaction_id: String,
    /// What becomes of it.
    pub decision: Decision,
    /// What was filled in.
    pub values: Option<Json>,
    /// Why.
    pub reason: Option<String>,
    /// Who answers.
    pub by: Option<String>,
}

/// The answer that a question has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolution {
    /// What became of the question.
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

/// What came of an answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Answered {
    /// The run, after it.
    pub run: RunInfo,
    /// The answer that the question has.
    pub answer: Resolution,
    /// Whether it was given just now, and not before in the same words by the same person.
    pub new: bool,
}

/// A question with everything that is known of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Interaction {
    /// The run that asks.
    pub run_id: String,
    /// Its thread.
    pub thread_id: String,
    /// Its agent.
    pub agent: Option<String>,
    /// The question, as it was asked.
    pub question: InteractionRequested,
    /// When it was asked.
    pub asked_at: Timestamp,
    /// When it is too late to answer: when it says, or after a week.
    pub expires_at: Option<Timestamp>,
    /// What became of it; nothing while it is open.
    pub answer: Option<Resolution>,
}

/// RunFilter open questions are asked for.
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
    /// Those asked before this place.
    pub before: Option<InboxCursor>,
    /// How many at most; fewer where they are large.
    pub limit: usize,
}

/// Open questions, newest first.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct InteractionPage {
    /// The questions.
    pub interactions: Vec<Interaction>,
    /// Where to go on; nothing at the end.
    pub next: Option<InboxCursor>,
}

/// A place among all questions, in the order they were asked. It stays valid when its question is settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct InboxCursor {
    /// When the question there was asked.
    pub asked_at: Timestamp,
    /// Tells it from others of that moment.
    pub number: u64,
}

impl Answer {
    /// Returns whether somebody has said just this before; how the JSON is laid out does not matter.
    pub fn is(&self, won: &Resolution) -> bool {
        self.decision == won.decision
            && self.reason == won.reason
            && self.by == won.by
            && match (&self.values, &won.values) {
                (Some(values), Some(won)) => values.is_same_value(won),
                (values, won) => values.is_none() && won.is_none(),
            }
    }

    /// Makes the event that it becomes.
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
