//! Interactions with people: list, get, answer, and the field problems of an answer.

use futures_util::stream::{self, TryStreamExt};
use runwire_model::event::{Decision, InteractionKind};
use runwire_model::{Json, Timestamp};
use serde::{Deserialize, Serialize};

use super::info::time;
use super::lists::ListStream;
use super::requests::{Answer, AnswerBody};
use super::run::RunHandle;
use crate::client::Client;
use crate::error::Error;
use crate::problem::Problem;

/// An interaction with a person.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Interaction {
    /// Its id.
    pub interaction_id: String,
    /// Its run.
    pub run_id: String,
    /// Its thread.
    pub thread_id: String,
    /// Its agent.
    #[serde(default)]
    pub agent: Option<String>,
    /// A form or an approval.
    pub kind: InteractionKind,
    /// `open`, or its outcome.
    pub status: String,
    /// Its title.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Its description: the question itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The JSON Schema of the answer's values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<Json>,
    /// UI hints of the form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ui: Option<Json>,
    /// The tool call that needs approval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_id: Option<String>,
    /// The tool's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The tool's arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Json>,
    /// The reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// When it was requested.
    #[serde(default, with = "time")]
    pub asked_at: Option<Timestamp>,
    /// When it expires.
    #[serde(default, with = "time")]
    pub expires_at: Option<Timestamp>,
    /// Its answer, if it is resolved.
    #[serde(default)]
    pub answer: Option<GivenAnswer>,
}

impl Interaction {
    /// Returns true if it waits for an answer.
    pub fn is_open(&self) -> bool {
        self.answer.is_none()
    }
}

/// The answer of a resolved interaction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct GivenAnswer {
    /// The decision.
    pub decision: Decision,
    /// The values of a form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub values: Option<Json>,
    /// The reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Who answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// When.
    #[serde(default, with = "time")]
    pub at: Option<Timestamp>,
}

/// An invalid field of an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FieldProblem {
    /// JSON pointer into the values.
    pub pointer: String,
    /// The schema keyword that it violates.
    #[serde(default)]
    pub keyword: String,
    /// The message for people.
    #[serde(default)]
    pub message: String,
}

/// Filter of the list of open interactions, newest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InteractionFilter {
    /// Only interactions of this run.
    pub run: Option<String>,
    /// Only interactions of this agent's runs.
    pub agent: Option<String>,
    /// Only interactions of this thread.
    pub thread: Option<String>,
    /// Only interactions after another page: its `next`.
    pub before: Option<String>,
    /// Limits the page, up to 200.
    pub limit: Option<u32>,
}

/// A page of open interactions, newest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct InteractionPage {
    /// The interactions.
    pub interactions: Vec<Interaction>,
    /// The [`InteractionFilter::before`] of the next page; `None` at the end.
    #[serde(default)]
    pub next: Option<String>,
}

impl Client {
    /// Lists a page of open interactions.
    pub async fn interactions(&self, filter: &InteractionFilter) -> Result<InteractionPage, Error> {
        let endpoint = self.http.endpoint().segment("v1").segment("interactions");
        let endpoint = endpoint
            .parameter_if("run", filter.run.as_ref())
            .parameter_if("agent", filter.agent.as_ref())
            .parameter_if("thread", filter.thread.as_ref())
            .parameter_if("before", filter.before.as_ref())
            .parameter_if("limit", filter.limit);
        self.http.get_json(&endpoint).await
    }

    /// Lists all open interactions, page after page.
    pub fn all_interactions(&self, filter: InteractionFilter) -> ListStream<Interaction> {
        let client = self.clone();
        let pages = stream::try_unfold(Some(filter), move |filter| {
            let client = client.clone();
            async move {
                let Some(mut filter) = filter else { return Ok::<_, Error>(None) };
                let page = client.interactions(&filter).await?;
                let next = page.next.map(|next| {
                    filter.before = Some(next);
                    filter
                });
                Ok(Some((stream::iter(page.interactions.into_iter().map(Ok)), next)))
            }
        });
        Box::pin(pages.try_flatten())
    }
}

impl RunHandle {
    /// Returns an interaction of the run, open or resolved.
    pub async fn interaction(&self, interaction_id: &str) -> Result<Interaction, Error> {
        let endpoint = self.endpoint().segment("interactions").segment(interaction_id);
        self.client.http.get_json(&endpoint).await
    }

    /// Answers an interaction; idempotent.
    ///
    /// The first valid answer wins: a different later one is refused with it ([`Problem::answer`]). An invalid answer
    /// changes nothing, and is refused with each invalid field ([`Problem::field_problems`]).
    pub async fn answer(&self, interaction_id: &str, answer: &Answer) -> Result<Interaction, Error> {
        let endpoint = self.endpoint().segment("interactions").segment(interaction_id);
        self.client.http.post_json(&endpoint, &AnswerBody::from(answer)).await
    }
}

impl Problem {
    /// Returns the earlier answer of an interaction that was already resolved.
    pub fn answer(&self) -> Option<GivenAnswer> {
        serde_json::from_value(self.members().get("answer")?.clone()).ok()
    }

    /// Returns the invalid fields of an answer.
    pub fn field_problems(&self) -> Vec<FieldProblem> {
        let errors = self.members().get("errors").cloned().unwrap_or_default();
        serde_json::from_value(errors).unwrap_or_default()
    }
}
