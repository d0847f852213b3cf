//! EasyFlow: its chat, and the answer to a form (§12 of its document).

use std::sync::Arc;

use axum::extract::{RawQuery, State};
use axum::response::Response;
use axum::routing::post;
use axum::{Json, Router};
use http::HeaderMap;
use runwire_log::{InteractionInfo, LogError, NewRun, RunInfo, RunKey, ThreadKey};
use runwire_model::dialect::Dialect;
use serde::Serialize;

use super::answers::{answer_of, withdrawal_of};
use super::refusal;
use super::start::{
    Fields, From, agent_in_query, agent_of, follow, missing_field, newest_run, start, tenant,
};
use crate::auth::tenant_of;
use crate::json_body::JsonBody;
use crate::problem::Problem;
use crate::read::last_event_id;
use crate::{Wire, ids, interactions};

pub(super) fn routes() -> Router<Arc<Wire>> {
    Router::new().route("/api/v1/bot/chat", post(chat)).route("/api/v1/bot/form", post(form))
}

/// Starts a run on a prompt, or attaches to the conversation's newest run where there is none.
///
/// The stream stays open while the run waits for a form, and goes on after its answer.
async fn chat(
    State(wire): State<Arc<Wire>>,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
    body: Result<JsonBody<Fields>, Problem>,
) -> Response {
    let mut conversation = None;
    let answered = async {
        let JsonBody(mut fields) = body?;
        conversation = conversation_in(&mut fields)?;
        let bot = fields.id(&["botId", "bot_id"])?.or(agent_in_query(query.as_deref())?);
        match fields.text(&["prompt"])? {
            Some(prompt) => {
                let run = NewRun {
                    tenant: tenant(&headers),
                    run_id: None,
                    thread_id: conversation.clone(),
                    agent: Some(agent_of(&wire, bot)?),
                    message: Some(prompt),
                    message_id: None,
                    input: fields.into_input(),
                    ..NewRun::default()
                };
                let (run, _) = start(&wire, run).await?;
                follow(wire, Dialect::EasyflowChat, &run, From::Cursor(None)).await
            }
            None => attach(wire, &headers, conversation.as_deref()).await,
        }
    };
    let answered = answered.await;
    answered.unwrap_or_else(|problem| refusal::easyflow(problem, conversation.as_deref().unwrap_or_default()))
}

async fn attach(
    wire: Arc<Wire>,
    headers: &HeaderMap,
    conversation: Option<&str>,
) -> Result<Response, Problem> {
    let thread = thread_of(headers, conversation)?;
    let run = newest_run(&wire, &thread).await?;
    let run = RunKey { tenant: thread.tenant, id: run.run_id.into() };
    let after = last_event_id(headers)?;
    let from = after.map_or(From::Present, |after| From::Cursor(Some(after)));
    follow(wire, Dialect::EasyflowChat, &run, from).await
}

/// What became of a form, as its sender is told.
#[derive(Debug, Serialize)]
struct FormAnswered {
    conversation_id: String,
    form_id: String,
    run_id: String,
    decision: &'static str,
    /// How far the run is.
    status: &'static str,
}

/// Answers a form; the conversation's stream goes on with it.
async fn form(
    State(wire): State<Arc<Wire>>,
    headers: HeaderMap,
    JsonBody(mut fields): JsonBody<Fields>,
) -> Result<Json<FormAnswered>, Problem> {
    let conversation = conversation_in(&mut fields)?;
    let thread = thread_of(&headers, conversation.as_deref())?;
    let form_id = fields.text(&["form_id", "formId"])?.ok_or_else(|| missing_field("form_id"))?;
    let (run, asked) = find(&wire, &thread, &form_id).await?;
    let answer = match fields.text(&["decision"])?.as_deref() {
        Some("cancelled") => withdrawal_of(&asked.interaction_id),
        _ => answer_of(asked.kind, &asked.interaction_id, fields.json("values"))?,
    };
    let key = RunKey { tenant: thread.tenant.clone(), id: run.run_id.into() };
    let (_, answered) = interactions::answer(&wire, &key, answer).await?;
    Ok(Json(FormAnswered {
        conversation_id: thread.id.to_string(),
        form_id: asked.interaction_id,
        run_id: answered.run.run_id,
        decision: answered.answer.decision.as_str(),
        status: answered.run.status.as_str(),
    }))
}

/// Finds the question that a form's id means: the newest that is open, else the newest of that name.
async fn find(wire: &Wire, thread: &ThreadKey, form_id: &str) -> Result<(RunInfo, InteractionInfo), Problem> {
    let mut runs = Vec::new();
    for id in wire.log.thread(thread).await?.open_runs.into_iter().rev() {
        runs.push(wire.log.run(&RunKey { tenant: thread.tenant.clone(), id: id.into() }).await?);
    }
    if runs.is_empty() {
        runs.push(newest_run(wire, thread).await?);
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

/// Tells whether a question is that of a form, which may have been asked again as `form_id.2`.
fn is_form(interaction: &str, form_id: &str) -> bool {
    let rest = interaction.strip_prefix(form_id);
    let again = rest.and_then(|rest| rest.strip_prefix('.'));
    rest == Some("")
        || again.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}

fn conversation_in(fields: &mut Fields) -> Result<Option<String>, Problem> {
    fields.id(&["conversationId", "conversation_id"])
}

fn thread_of(headers: &HeaderMap, conversation: Option<&str>) -> Result<ThreadKey, Problem> {
    let conversation = conversation.ok_or_else(|| missing_field("conversation_id"))?;
    ids::check("conversation_id", conversation)?;
    Ok(ThreadKey { tenant: tenant_of(headers), id: conversation.into() })
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
