//! Questions: the inbox of those that are open, one of them, and its answer.

use std::sync::Arc;

use axum::Json;
use axum::extract::{RawQuery, State};
use axum::response::Response;
use http::HeaderMap;
use runwire_log::{Answer, InboxCursor, Interaction, InteractionQuery, Resolution};
use runwire_model::Timestamp;
use runwire_model::event::{Decision, InteractionKind, InteractionRequested};
use serde::{Deserialize, Serialize};

use super::fresh;
use crate::auth::tenant_of;
use crate::ids::{InteractionAt, RunAt, segment};
use crate::interactions::{self, decisions};
use crate::json_body::JsonBody;
use crate::problem::Problem;
use crate::query::Query;
use crate::{Wire, limits};

/// A question, as it is shown.
#[derive(Debug, Serialize)]
pub(crate) struct InteractionView {
    interaction_id: String,
    run_id: String,
    thread_id: String,
    agent: Option<String>,
    kind: InteractionKind,
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    schema: Option<runwire_model::Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ui: Option<runwire_model::Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    call_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    arguments: Option<runwire_model::Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    asked_at: String,
    expires_at: Option<String>,
    answer: Option<AnswerView>,
    /// How to answer, while it is open.
    #[serde(skip_serializing_if = "Option::is_none")]
    answer_with: Option<AnswerWith>,
}

/// The answer that a question has, as it is shown.
#[derive(Debug, Serialize)]
pub(crate) struct AnswerView {
    decision: Decision,
    #[serde(skip_serializing_if = "Option::is_none")]
    values: Option<runwire_model::Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<String>,
    at: String,
}

#[derive(Debug, Serialize)]
struct AnswerWith {
    method: &'static str,
    path: String,
    decisions: &'static [Decision],
}

impl From<Resolution> for AnswerView {
    fn from(answer: Resolution) -> Self {
        let Resolution { decision, values, reason, by, at } = answer;
        Self { decision, values, reason, by, at: at.to_string() }
    }
}

impl From<Interaction> for InteractionView {
    fn from(asked: Interaction) -> Self {
        let Interaction { run_id, thread_id, agent, question, asked_at, expires_at, answer } = asked;
        let InteractionRequested {
            interaction_id,
            kind,
            title,
            description,
            schema,
            ui,
            call_id,
            name,
            arguments,
            reason,
            expires_at: _,
        } = question;
        let answer_with = answer.is_none().then(|| AnswerWith {
            method: "POST",
            path: format!("/v1/runs/{}/interactions/{}", segment(&run_id), segment(&interaction_id)),
            decisions: decisions(kind),
        });
        Self {
            interaction_id,
            run_id,
            thread_id,
            agent,
            kind,
            status: answer.as_ref().map_or("open", |answer| answer.decision.as_str()),
            title,
            description,
            schema,
            ui,
            call_id,
            name,
            arguments,
            reason,
            asked_at: asked_at.to_string(),
            expires_at: expires_at.map(|at| at.to_string()),
            answer: answer.map(Into::into),
            answer_with,
        }
    }
}

/// A page of the inbox, newest first.
#[derive(Debug, Serialize)]
pub(crate) struct InteractionList {
    interactions: Vec<InteractionView>,
    /// Where to go on, as `before`.
    next: Option<String>,
}

/// Lists the questions that wait for a person.
pub(crate) async fn list(
    State(wire): State<Arc<Wire>>,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    let mut query = Query::parse(query.as_deref());
    if query.take("status")?.is_some_and(|status| status != "open") {
        let detail = "`status` is `open`: what is settled is listed with its run";
        return Err(Problem::bad_query("status", detail).with("expected", vec!["open"]));
    }
    let limit = query.number("limit", 1..=limits::LIST_ITEMS)?.unwrap_or(limits::LIST_ITEMS_DEFAULT);
    let tenant = tenant_of(&headers);
    let asked = InteractionQuery {
        tenant: tenant.to_string(),
        run: query.id("run")?,
        agent: query.id("agent")?,
        thread: query.id("thread")?,
        before: query.take("before")?.map(|place| place_of(&place)).transpose()?,
        limit,
    };
    query.finish()?;
    fresh::unless_known(&wire, &tenant, &headers, async {
        let page = wire.log.interactions(asked).await?;
        let next = page.next.map(|place| format!("{}-{}", place.asked_at.0, place.number));
        Ok(InteractionList { interactions: page.interactions.into_iter().map(Into::into).collect(), next })
    })
    .await
}

/// Reads a place in the inbox, as a page gave it.
fn place_of(text: &str) -> Result<InboxCursor, Problem> {
    let parts = text.split_once('-').and_then(|(at, number)| Some((at.parse().ok()?, number.parse().ok()?)));
    let place = parts.map(|(at, number)| InboxCursor { asked_at: Timestamp(at), number });
    place.ok_or_else(|| Problem::bad_query("before", "`before` is the `next` of another page"))
}

/// Shows a question, open or not.
pub(crate) async fn show(
    State(wire): State<Arc<Wire>>,
    RunAt(run): RunAt,
    InteractionAt(interaction): InteractionAt,
    RawQuery(query): RawQuery,
) -> Result<Json<InteractionView>, Problem> {
    Query::parse(query.as_deref()).finish()?;
    Ok(Json(wire.log.interaction(&run, &interaction).await?.into()))
}

/// What a person says.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct AnswerRequest {
    pub(crate) decision: Option<String>,
    pub(crate) values: Option<runwire_model::Json>,
    pub(crate) reason: Option<String>,
}

impl AnswerRequest {
    /// Reads what is said to a question.
    pub(crate) fn to(self, interaction: &str) -> Result<Answer, Problem> {
        let said = self.decision.unwrap_or_default();
        let Some(decision) = Decision::from_word(&said) else {
            let words: Vec<_> = PEOPLES.iter().map(|decision| decision.as_str()).collect();
            let detail = format!("`decision` is one of {}", words.join(", "));
            return Err(Problem::new("invalid_answer", detail)
                .with("field", "decision")
                .with("expected", words));
        };
        Ok(Answer {
            interaction_id: interaction.to_owned(),
            decision,
            values: self.values.filter(|values| !values.is_null()),
            reason: self.reason,
            // Known once requests carry tokens.
            by: None,
        })
    }
}

/// The decisions that are people's.
const PEOPLES: [Decision; 4] =
    [Decision::Submitted, Decision::Approved, Decision::Rejected, Decision::Cancelled];

/// Answers a question; the same answer again is told as it is.
pub(crate) async fn answer(
    State(wire): State<Arc<Wire>>,
    RunAt(run): RunAt,
    InteractionAt(interaction): InteractionAt,
    RawQuery(query): RawQuery,
    JsonBody(request): JsonBody<AnswerRequest>,
) -> Result<Json<InteractionView>, Problem> {
    Query::parse(query.as_deref()).finish()?;
    let (asked, _) = interactions::answer(&wire, &run, request.to(&interaction)?).await?;
    Ok(Json(asked.into()))
}
