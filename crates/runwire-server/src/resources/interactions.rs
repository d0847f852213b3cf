//! Handlers of interactions: list the open ones (the inbox), show one, answer it.

use std::sync::Arc;

use axum::Json;
use axum::extract::{RawQuery, State};
use axum::response::Response;
use http::HeaderMap;
use runwire_log::{Answer, InboxCursor, Interaction, InteractionQuery, Resolution};
use runwire_model::event::{Decision, InteractionKind, InteractionRequested};
use runwire_model::{ErrorCode, Timestamp, percent_encoded};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::etag;
use crate::auth::tenant_of;
use crate::ids::{InteractionParam, RunParam};
use crate::interactions::{self, decisions};
use crate::json_body::JsonBody;
use crate::openapi::NotModified;
use crate::openapi::params::{IfNoneMatch, InboxQuery, ListLimit};
use crate::openapi::schemas::{DecisionSchema, HumanDecisionSchema, InteractionKindSchema};
use crate::problem::Problem;
use crate::query::Query;
use crate::{AppState, limits};

/// A question to a person: a form or an approval.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Interaction)]
pub(crate) struct InteractionView {
    interaction_id: String,
    run_id: String,
    thread_id: String,
    #[schema(required)]
    agent: Option<String>,
    #[schema(inline, value_type = InteractionKindSchema)]
    kind: InteractionKind,
    /// `open`, or the decision.
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    /// The JSON Schema that `values` must fit.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Value>)]
    schema: Option<runwire_model::Json>,
    /// Texts of the form.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Value>)]
    ui: Option<runwire_model::Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    call_id: Option<String>,
    /// The tool that is to be called.
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    /// What the tool would be given.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Value>)]
    arguments: Option<runwire_model::Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[schema(format = DateTime)]
    asked_at: String,
    #[schema(required, format = DateTime)]
    expires_at: Option<String>,
    #[schema(required)]
    answer: Option<AnswerView>,
    /// How to answer, while it is open.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(inline)]
    answer_with: Option<AnswerWith>,
}

/// The answer to a question.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Answer)]
pub(crate) struct AnswerView {
    #[schema(value_type = DecisionSchema)]
    decision: Decision,
    /// What was filled in.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Value>)]
    values: Option<runwire_model::Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<String>,
    #[schema(format = DateTime)]
    at: String,
}

#[derive(Debug, Serialize, ToSchema)]
struct AnswerWith {
    method: &'static str,
    path: String,
    #[schema(value_type = Vec<DecisionSchema>)]
    decisions: &'static [Decision],
}

impl AnswerView {
    /// Returns the JSON text, in which the values are as they were stored.
    pub(crate) fn to_json(&self) -> runwire_model::Json {
        serde_json::to_string(self).and_then(|text| runwire_model::Json::parse(&text)).unwrap_or_default()
    }
}

impl From<Resolution> for AnswerView {
    fn from(answer: Resolution) -> Self {
        let Resolution { decision, values, reason, by, at } = answer;
        Self { decision, values, reason, by, at: at.to_string() }
    }
}

impl From<Interaction> for InteractionView {
    fn from(interaction: Interaction) -> Self {
        let Interaction { run_id, thread_id, agent, question, asked_at, expires_at, answer } = interaction;
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
            path: format!(
                "/v1/runs/{}/interactions/{}",
                percent_encoded(&run_id),
                percent_encoded(&interaction_id)
            ),
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
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct InteractionList {
    interactions: Vec<InteractionView>,
    /// Where to go on, as `before`.
    #[schema(required)]
    next: Option<String>,
}

/// Lists the questions that wait for a person, newest first.
#[utoipa::path(
    get, path = "/v1/interactions", operation_id = "listInteractions", tag = "interactions",
    params(InboxQuery, ListLimit, IfNoneMatch),
    responses(
        (
            status = 200, body = InteractionList,
            description = "A page of the inbox; it has fewer questions than asked for where they are large.",
        ),
        NotModified,
    ),
)]
pub(crate) async fn list(
    State(state): State<Arc<AppState>>,
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
    let filter = InteractionQuery {
        tenant: tenant.to_string(),
        run: query.id("run")?,
        agent: query.id("agent")?,
        thread: query.id("thread")?,
        before: query.take("before")?.map(|position| parse_inbox_position(&position)).transpose()?,
        limit,
    };
    query.finish()?;
    etag::respond(&state, &tenant, &headers, async {
        let page = state.log.interactions(filter).await?;
        let next = page.next.map(|position| format!("{}-{}", position.asked_at.0, position.number));
        Ok(InteractionList { interactions: page.interactions.into_iter().map(Into::into).collect(), next })
    })
    .await
}

/// Parses a cursor of the inbox.
fn parse_inbox_position(text: &str) -> Result<InboxCursor, Problem> {
    let parts = text.split_once('-').and_then(|(at, number)| Some((at.parse().ok()?, number.parse().ok()?)));
    let position = parts.map(|(at, number)| InboxCursor { asked_at: Timestamp(at), number });
    position.ok_or_else(|| Problem::bad_query("before", "`before` is the `next` of another page"))
}

/// Shows a question, open or not.
#[utoipa::path(
    get, path = "/v1/runs/{run}/interactions/{interaction}", operation_id = "getInteraction", tag = "interactions",
    params(RunParam, InteractionParam),
    responses((status = 200, description = "The question, with its answer if it has one.", body = InteractionView)),
)]
pub(crate) async fn show(
    State(state): State<Arc<AppState>>,
    RunParam(run): RunParam,
    InteractionParam(interaction): InteractionParam,
    RawQuery(query): RawQuery,
) -> Result<Json<InteractionView>, Problem> {
    Query::parse(query.as_deref()).finish()?;
    Ok(Json(state.log.interaction(&run, &interaction).await?.into()))
}

/// The body of an answer.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
#[schema(as = NewAnswer)]
pub(crate) struct PostedAnswer {
    #[schema(inline, required, value_type = HumanDecisionSchema)]
    pub(crate) decision: Option<String>,
    /// What is filled in; it must fit the question's schema.
    #[schema(value_type = Value)]
    pub(crate) values: Option<runwire_model::Json>,
    pub(crate) reason: Option<String>,
}

impl PostedAnswer {
    /// Converts the body to the answer of an interaction.
    pub(crate) fn to(self, interaction: &str) -> Result<Answer, Problem> {
        let word = self.decision.unwrap_or_default();
        let Some(decision) = Decision::from_word(&word) else {
            let words: Vec<_> = HUMAN_DECISIONS.iter().map(|decision| decision.as_str()).collect();
            let detail = format!("`decision` is one of {}", words.join(", "));
            return Err(Problem::new(ErrorCode::InvalidAnswer, detail)
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

/// The decisions that people can make.
pub(crate) const HUMAN_DECISIONS: [Decision; 4] =
    [Decision::Submitted, Decision::Approved, Decision::Rejected, Decision::Cancelled];

/// Answers a form or an approval.
///
/// The first valid answer wins. The same one again is told as it is; another is 409 `interaction_closed` with the one that
/// won. One that does not fit is 422 `invalid_answer` and changes nothing.
#[utoipa::path(
    post, path = "/v1/runs/{run}/interactions/{interaction}", operation_id = "answerInteraction", tag = "interactions",
    params(RunParam, InteractionParam),
    request_body = PostedAnswer,
    responses((
        status = 200, body = InteractionView,
        description = "The question with its answer, which is durable and in the run's log.",
    )),
)]
pub(crate) async fn answer(
    State(state): State<Arc<AppState>>,
    RunParam(run): RunParam,
    InteractionParam(interaction): InteractionParam,
    RawQuery(query): RawQuery,
    JsonBody(request): JsonBody<PostedAnswer>,
) -> Result<Json<InteractionView>, Problem> {
    Query::parse(query.as_deref()).finish()?;
    let (answered, _) = interactions::answer(&state, &run, request.to(&interaction)?).await?;
    Ok(Json(answered.into()))
}
