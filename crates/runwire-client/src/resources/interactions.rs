//! Questions to people: the inbox, one of them, and what is wrong with an answer.

use futures_util::stream::{self, TryStreamExt};
use runwire_model::event::{Decision, InteractionKind};
use runwire_model::{Json, Timestamp};
use serde::{Deserialize, Serialize};

use super::info::time;
use super::lists::ListStream;
use super::run::RunHandle;
use super::words::{Answer, AnswerRequest};
use crate::client::Client;
use crate::error::Error;
use crate::problem::Problem;

/// A question to a person.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Interaction {
    /// Its id.
    pub interaction_id: String,
    /// The run that asks.
    pub run_id: String,
    /// The run's thread.
    pub thread_id: String,
    /// The run's agent.
    #[serde(default)]
    pub agent: Option<String>,
    /// A form or an approval.
    pub kind: InteractionKind,
    /// `open`, or what became of it.
    pub status: String,
    /// Its title.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The JSON Schema that the answer's values must fit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<Json>,
    /// Texts of the form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ui: Option<Json>,
    /// The call that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_id: Option<String>,
    /// The tool that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What the tool would be given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Json>,
    /// Why it is asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// When it was asked.
    #[serde(default, with = "time")]
    pub asked_at: Option<Timestamp>,
    /// When it is too late to answer.
    #[serde(default, with = "time")]
    pub expires_at: Option<Timestamp>,
    /// The answer that it has.
    #[serde(default)]
    pub answer: Option<GivenAnswer>,
}

impl Interaction {
    /// Tells whether it waits for an answer.
    pub fn is_open(&self) -> bool {
        self.answer.is_none()
    }
}

/// The answer that a question has.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct GivenAnswer {
    /// What became of the question.
    pub decision: Decision,
    /// What was filled in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub values: Option<Json>,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Who answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// When.
    #[serde(default, with = "time")]
    pub at: Option<Timestamp>,
}

/// What is wrong with a field of an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct WrongField {
    /// Where, as a JSON pointer into the values.
    pub pointer: String,
    /// The keyword of the schema that is broken.
    #[serde(default)]
    pub keyword: String,
    /// What a person reads.
    #[serde(default)]
    pub message: String,
}

/// Which open questions are listed, newest first; all without it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InteractionFilter {
    /// Only questions of this run.
    pub run: Option<String>,
    /// Only questions of this agent's runs.
    pub agent: Option<String>,
    /// Only questions of this thread.
    pub thread: Option<String>,
    /// Only questions after those of another page: its `next`.
    pub before: Option<String>,
    /// How many a page has at most, up to 200.
    pub limit: Option<u32>,
}

/// A page of open questions, newest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct InteractionPage {
    /// The questions.
    pub interactions: Vec<Interaction>,
    /// What to go on from, as [`InteractionFilter::before`]; nothing at the end.
    #[serde(default)]
    pub next: Option<String>,
}

impl Client {
    /// Lists a page of the inbox: the questions that wait for a person.
    pub async fn interactions(&self, filter: &InteractionFilter) -> Result<InteractionPage, Error> {
        let target = self.http.target().segment("v1").segment("interactions");
        let target = target
            .parameter_if("run", filter.run.as_ref())
            .parameter_if("agent", filter.agent.as_ref())
            .parameter_if("thread", filter.thread.as_ref())
            .parameter_if("before", filter.before.as_ref())
            .parameter_if("limit", filter.limit);
        self.http.get_json(&target).await
    }

    /// Lists the inbox, as many pages as there are.
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
    /// Shows a question of the run, open or not.
    pub async fn interaction(&self, interaction_id: &str) -> Result<Interaction, Error> {
        let target = self.target().segment("interactions").segment(interaction_id);
        self.client.http.get_json(&target).await
    }

    /// Answers a question; repeating one's answer is safe.
    ///
    /// The first valid answer wins: a later one is refused with it ([`Problem::answer`]). One that does not fit
    /// changes nothing, and each field that is wrong is told ([`Problem::wrong_fields`]).
    pub async fn answer(&self, interaction_id: &str, answer: &Answer) -> Result<Interaction, Error> {
        let target = self.target().segment("interactions").segment(interaction_id);
        self.client.http.post_json(&target, &AnswerRequest::from(answer)).await
    }
}

impl Problem {
    /// Tells the answer that won, where a question had one already.
    pub fn answer(&self) -> Option<GivenAnswer> {
        serde_json::from_value(self.members().get("answer")?.clone()).ok()
    }

    /// Lists what is wrong with the fields of an answer.
    pub fn wrong_fields(&self) -> Vec<WrongField> {
        let errors = self.members().get("errors").cloned().unwrap_or_default();
        serde_json::from_value(errors).unwrap_or_default()
    }
}
