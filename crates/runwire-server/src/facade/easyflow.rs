//! The façade of EasyFlow: chat, and the answer to a form (§12 of its document).

pub(crate) mod socket;

use std::sync::Arc;

use axum::Json;
use axum::extract::{RawQuery, State};
use axum::response::Response;
use http::header::{CACHE_CONTROL, CONNECTION, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Version};
use runwire_log::{InteractionInfo, LogError, NewRun, RunInfo, RunKey, ThreadKey};
use runwire_model::dialect::Dialect;
use serde::Serialize;
use serde_json::json;
use utoipa::ToSchema;

use super::answers::{answer_of, withdrawal_of};
use super::error_frame;
use super::start_run::{
    BodyFields, StartAt, agent_in_query, agent_of, follow, missing_field, newest_run, start,
};
use crate::auth::tenant_of;
use crate::json_body::JsonBody;
use crate::openapi::params::{FacadeAgent, LastEventId};
use crate::openapi::schemas::{DecisionSchema, EasyflowForm, EasyflowRequest, StatusSchema};
use crate::problem::{Problem, text_of};
use crate::read::last_event_id;
use crate::{AppState, ids, interactions};

/// Starts a run, or attaches to one, as EasyFlow's front end does.
///
/// Without `prompt` it attaches to the conversation's newest run, or goes on after `Last-Event-ID`. The stream stays open
/// while the run waits for a form. Fields that are not listed are handed on to the agent.
#[utoipa::path(
    post, path = "/api/v1/bot/chat", operation_id = "easyflowChat", tag = "façades",
    params(FacadeAgent, LastEventId),
    request_body = inline(EasyflowRequest),
    responses(
        (
            status = 200, description = "The run's events, to its end.", body = String, content_type = "text/event-stream",
            headers(
                ("Cache-Control" = String, description = "`no-cache`, as EasyFlow's document lists it."),
                ("Connection" = String, description = "`keep-alive`, on HTTP/1.1; HTTP/2 forbids it."),
            ),
        ),
        (status = "default", description = "EasyFlow's `system/error`, which carries the problem.", body = String, content_type = "text/event-stream"),
    ),
)]
pub(crate) async fn chat(
    State(state): State<Arc<AppState>>,
    version: Version,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
    body: Result<JsonBody<BodyFields>, Problem>,
) -> Response {
    let mut conversation = None;
    let answered = async {
        let JsonBody(mut fields) = body?;
        conversation = conversation_in(&mut fields)?;
        let agent = agent_in_query(query.as_deref())?;
        let (run, begun) =
            chat_run(&state, &tenant_of(&headers), agent, conversation.clone(), fields).await?;
        let after = if begun { None } else { last_event_id(&headers)? };
        let from = if begun || after.is_some() { StartAt::Cursor(after) } else { StartAt::Snapshot };
        follow(state, Dialect::EasyflowChat, &run, from).await
    };
    let answered = answered.await;
    let answered = answered.unwrap_or_else(|problem| {
        error_frame::easyflow(problem, conversation.as_deref().unwrap_or_default())
    });
    as_documented(answered, version, &headers)
}

/// Starts a run on a prompt, else returns the conversation's newest; the flag is true for a new run.
async fn chat_run(
    state: &AppState,
    tenant: &Arc<str>,
    agent: Option<String>,
    conversation: Option<String>,
    mut fields: BodyFields,
) -> Result<(RunKey, bool), Problem> {
    let bot = fields.id(&["botId", "bot_id"])?.or(agent);
    let Some(prompt) = fields.text(&["prompt"])? else {
        let thread = thread_of(tenant, conversation.as_deref())?;
        let run = newest_run(state, &thread).await?;
        return Ok((RunKey { tenant: thread.tenant, id: run.run_id.into() }, false));
    };
    let run = NewRun {
        tenant: tenant.to_string(),
        run_id: None,
        thread_id: conversation,
        agent: Some(agent_of(state, bot)?),
        message: Some(prompt),
        message_id: None,
        input: fields.into_input(),
        ..NewRun::default()
    };
    Ok((start(state, run).await?.0, true))
}

/// Sets the response headers that the document lists (§2).
fn as_documented(mut response: Response, version: Version, request: &HeaderMap) -> Response {
    let closes = request
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|option| option.trim().eq_ignore_ascii_case("close"));
    let headers = response.headers_mut();
    if headers.get(CONTENT_TYPE).is_some_and(|media| media == "text/event-stream") {
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        // HTTP/2 forbids the header, HTTP/1.0 has connections of its own, and a client may ask to close its own.
        if version == Version::HTTP_11 && !closes {
            headers.insert(CONNECTION, HeaderValue::from_static("keep-alive"));
        }
    }
    response
}

/// The response to the answer of a form.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct FormAnswered {
    conversation_id: String,
    /// The id that the sender named.
    form_id: String,
    run_id: String,
    /// The interaction that the id meant: `form_id`, or `form_id.2` and so on where the form was asked again.
    interaction_id: String,
    #[schema(value_type = DecisionSchema)]
    decision: &'static str,
    /// How far the run is.
    #[schema(value_type = StatusSchema)]
    status: &'static str,
}

/// Answers a form as EasyFlow's front end does.
///
/// Goes to the newest open question of that id. `approved` among the values decides an approval.
#[utoipa::path(
    post, path = "/api/v1/bot/form", operation_id = "easyflowForm", tag = "façades",
    request_body = inline(EasyflowForm),
    responses((
        status = 200, body = inline(FormAnswered),
        description = "The answer is taken; the conversation's stream goes on.",
    )),
)]
pub(crate) async fn form(
    State(state): State<Arc<AppState>>,
    headers: HeaderMap,
    JsonBody(mut fields): JsonBody<BodyFields>,
) -> Result<Json<FormAnswered>, Problem> {
    let form_id = form_in(&mut fields)?;
    answer_form(&state, &tenant_of(&headers), form_id, fields).await.map(Json)
}

/// Answers a form over a socket; returns the reply.
pub(crate) async fn answer_message(state: &AppState, tenant: &Arc<str>, mut fields: BodyFields) -> String {
    let form_id = match form_in(&mut fields) {
        Ok(form_id) => form_id,
        Err(problem) => return error_message(None, problem),
    };
    match answer_form(state, tenant, form_id.clone(), fields).await {
        Ok(answered) => json!({
            "op": "ack",
            "form_id": form_id,
            "conversation_id": answered.conversation_id,
            "run_id": answered.run_id,
            "interaction_id": answered.interaction_id,
            "decision": answered.decision,
            "status": answered.status,
        })
        .to_string(),
        Err(problem) => error_message(Some(&form_id), problem),
    }
}

/// Writes the error reply to a socket message.
fn error_message(form_id: Option<&str>, problem: Problem) -> String {
    text_of(|object| {
        problem.write(object);
        object.str("op", "error");
        object.opt_str("form_id", form_id);
    })
}

async fn answer_form(
    state: &AppState,
    tenant: &Arc<str>,
    form_id: String,
    mut fields: BodyFields,
) -> Result<FormAnswered, Problem> {
    let conversation = conversation_in(&mut fields)?;
    let thread = thread_of(tenant, conversation.as_deref())?;
    let (run, asked) = find(state, &thread, &form_id).await?;
    let answer = match fields.text(&["decision"])?.as_deref() {
        Some("cancelled") => withdrawal_of(&asked.interaction_id),
        _ => answer_of(asked.kind, &asked.interaction_id, fields.json("values"))?,
    };
    let key = RunKey { tenant: thread.tenant.clone(), id: run.run_id.into() };
    let (_, answered) = interactions::answer(state, &key, answer).await?;
    Ok(FormAnswered {
        conversation_id: thread.id.to_string(),
        form_id,
        run_id: answered.run.run_id,
        interaction_id: asked.interaction_id,
        decision: answered.answer.decision.as_str(),
        status: answered.run.status.as_str(),
    })
}

/// Returns the interaction of a form: the newest open one, else the newest.
async fn find(
    state: &AppState,
    thread: &ThreadKey,
    form_id: &str,
) -> Result<(RunInfo, InteractionInfo), Problem> {
    let mut runs = Vec::new();
    for id in state.log.thread(thread).await?.open_runs.into_iter().rev() {
        runs.push(state.log.run(&RunKey { tenant: thread.tenant.clone(), id: id.into() }).await?);
    }
    if runs.is_empty() {
        runs.push(newest_run(state, thread).await?);
    }
    for must_be_open in [true, false] {
        for run in &runs {
            let mut asked = run.summary.interactions.iter().rev();
            let meant = |asked: &&InteractionInfo| {
                is_form(&asked.interaction_id, form_id) && (asked.is_open() || !must_be_open)
            };
            if let Some(asked) = asked.find(meant) {
                return Ok((run.clone(), asked.clone()));
            }
        }
    }
    let run = runs.swap_remove(0).run_id;
    Err(LogError::InteractionUnknown { run, interaction: form_id.to_owned() }.into())
}

/// Returns true if an interaction belongs to a form, which may have been asked again as `form_id.2`.
fn is_form(interaction: &str, form_id: &str) -> bool {
    let rest = interaction.strip_prefix(form_id);
    let again = rest.and_then(|rest| rest.strip_prefix('.'));
    rest == Some("")
        || again.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}

fn conversation_in(fields: &mut BodyFields) -> Result<Option<String>, Problem> {
    fields.id(&["conversationId", "conversation_id"])
}

fn form_in(fields: &mut BodyFields) -> Result<String, Problem> {
    fields.text(&["form_id", "formId"])?.ok_or_else(|| missing_field("form_id"))
}

fn thread_of(tenant: &Arc<str>, conversation: Option<&str>) -> Result<ThreadKey, Problem> {
    let conversation = conversation.ok_or_else(|| missing_field("conversation_id"))?;
    ids::check("conversation_id", conversation)?;
    Ok(ThreadKey { tenant: tenant.clone(), id: conversation.into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_that_was_asked_again_is_still_that_form() {
        for (interaction, form) in [("f", "f"), ("f.2", "f"), ("f.12", "f"), ("f.2", "f.2")] {
            assert!(is_form(interaction, form), "{interaction} {form}");
        }
        for (interaction, form) in [("f.", "f"), ("f.x", "f"), ("ff", "f"), ("g", "f"), ("f", "f.2")] {
            assert!(!is_form(interaction, form), "{interaction} {form}");
        }
    }
}
