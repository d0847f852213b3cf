//! Requests to HTTP agents, in the format of each dialect's own system.

use std::collections::BTreeMap;

use bytes::Bytes;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use runwire_log::LogError;
use runwire_model::Json;
use runwire_model::dialect::{AgentStart, Dialect, StartRequest};
use runwire_model::event::{Decision, InteractionResolved};
use runwire_model::json::Object;
use runwire_model::record::History;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use crate::ag_ui_messages;
use crate::config::HttpAgent;
use crate::job::Job;

/// A request to an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct AgentRequest {
    pub(super) url: String,
    pub(super) body: Bytes,
    /// Whether a response without a stream is accepted.
    pub(super) takes_acknowledgement: bool,
}

/// The fields of a body. Values stay raw text, so that numbers keep their digits.
type Fields = BTreeMap<String, Json>;

/// Returns true if the dialect's own request carries answers.
pub(super) fn has_resume(dialect: Dialect) -> bool {
    matches!(dialect.start_request(), Some(StartRequest::RunAgentInput))
}

/// Creates the request that starts an agent.
pub(super) async fn start_request(job: &Job, agent: &HttpAgent) -> Result<AgentRequest, LogError> {
    let start = AgentStart {
        thread: &job.thread.id,
        run: &job.run.id,
        agent: &job.agent.name,
        message: job.input.message.as_deref(),
    };
    let body = match agent.dialect.start_request() {
        Some(StartRequest::RunAgentInput) => run_agent_input(job, &job.run.id, None).await?,
        Some(StartRequest::Flat(fields)) => with_input(job.full_input().await?, fields(&start)),
        Some(StartRequest::Nested(fields)) => {
            let mut fields = fields_of(&Json::from_value(&fields(&start))).unwrap_or_default();
            fields.insert("input".into(), job.full_input().await?.unwrap_or_default());
            fields
        }
        None => Fields::new(),
    };
    Ok(agent_request(job, &agent.url, &body, false))
}

/// Creates the requests that carry answers; `seq` is the record that settled the last interaction.
pub(super) async fn answer_requests(
    job: &Job,
    agent: &HttpAgent,
    answers: &[InteractionResolved],
    seq: u64,
) -> Result<Vec<AgentRequest>, LogError> {
    if has_resume(agent.dialect) {
        // AG-UI clients give every request a run id of its own.
        let run = format!("{}.{seq}", job.run.id);
        let resume = answers.iter().map(resume_entry).collect();
        let body = run_agent_input(job, &run, Some(resume)).await?;
        return Ok(vec![agent_request(job, &agent.url, &body, false)]);
    }
    let Some(url) = &agent.answer_url else { return Ok(Vec::new()) };
    let form = |answer: &InteractionResolved| agent_request(job, url, &form_answer(job, answer), true);
    Ok(answers.iter().map(form).collect())
}

/// Creates the cancel request.
pub(super) fn cancel_request(job: &Job, agent: &HttpAgent, reason: Option<&str>) -> Option<AgentRequest> {
    let (thread, run) = (&*job.thread.id, &*job.run.id);
    let body = json!({"thread_id": thread, "run_id": run, "reason": reason});
    agent.cancel_url.as_ref().map(|url| agent_request(job, url, &body, true))
}

fn agent_request(job: &Job, url: &str, body: &impl Serialize, takes_acknowledgement: bool) -> AgentRequest {
    let message = job.input.message.as_deref().unwrap_or_default();
    let mut url = url.to_owned();
    for (name, value) in [("{message}", message), ("{run}", &job.run.id), ("{thread}", &job.thread.id)] {
        if url.contains(name) {
            url = url.replace(name, &utf8_percent_encode(value, NON_ALPHANUMERIC).to_string());
        }
    }
    AgentRequest { url, body: json_of(body).text().to_owned().into(), takes_acknowledgement }
}

/// Merges the run's input with the dialect's fields, which win.
fn with_input(run_input: Option<Json>, own: Value) -> Fields {
    let mut fields = match run_input {
        Some(run_input) => {
            fields_of(&run_input).unwrap_or_else(|| Fields::from([("input".to_owned(), run_input)]))
        }
        None => Fields::new(),
    };
    for (name, value) in fields_of(&Json::from_value(&own)).unwrap_or_default() {
        // A run without a message may have it in its input.
        let says_nothing = value.text() == "\"\"" && fields.contains_key(&name);
        if !says_nothing {
            fields.insert(name, value);
        }
    }
    fields
}

/// Returns the fields of an object.
fn fields_of(json: &Json) -> Option<Fields> {
    let object = Object::of_json(json)?;
    Some(object.fields().map(|(name, value)| (name.to_owned(), Json::from_raw(value))).collect())
}

/// Serializes a value as raw JSON.
fn json_of(value: &impl Serialize) -> Json {
    to_raw_value(value).map(|raw| Json::from_raw(&raw)).unwrap_or_default()
}

/// Creates AG-UI's `RunAgentInput`: the thread's messages and state, and the run's input.
async fn run_agent_input(job: &Job, run: &str, resume: Option<Vec<Fields>>) -> Result<Fields, LogError> {
    let window = job.window().await?;
    let mut messages = window.messages();
    if resume.is_none() {
        messages.extend(job.user_message());
    }
    let run_input = job.input.input.as_ref().map(|input| ag_ui_messages::restore_input(input, &messages));
    // A façade passes on the whole body of its request.
    let mut input = match run_input {
        Some(run_input) => fields_of(&run_input).unwrap_or_else(|| {
            let props = json_of(&Fields::from([("input".to_owned(), run_input)]));
            Fields::from([("forwardedProps".to_owned(), props)])
        }),
        None => Fields::new(),
    };
    input.insert("threadId".into(), Json::string(&job.thread.id));
    input.insert("runId".into(), Json::string(run));
    let run_input = input.get("messages").and_then(whole_messages);
    let messages_json = match run_input {
        Some(run_input) if resume.is_none() => run_input,
        _ => json_of(&messages.iter().map(ag_ui_messages::ag_ui_message).collect::<Vec<_>>()),
    };
    input.insert("messages".into(), messages_json);
    if resume.is_some() || !input.contains_key("state") {
        input.insert("state".into(), window.state().unwrap_or_else(Json::empty_object));
    }
    for (name, default) in [("tools", json!([])), ("context", json!([])), ("forwardedProps", json!({}))] {
        input.entry(name.to_owned()).or_insert_with(|| Json::from_value(&default));
    }
    match resume {
        Some(resume) => input.insert("resume".into(), json_of(&resume)),
        None => input.remove("resume"),
    };
    Ok(input)
}

/// Drops references whose message retention has removed; none if no message is left.
fn whole_messages(run_input: &Json) -> Option<Json> {
    let mut messages: Vec<&RawValue> = serde_json::from_str(run_input.text()).ok()?;
    messages.retain(|message| Object::of(message).is_some_and(|message| message.has("role")));
    (!messages.is_empty()).then(|| json_of(&messages))
}

/// Creates an entry of AG-UI's `resume`.
fn resume_entry(answer: &InteractionResolved) -> Fields {
    let payload = answered_values(answer);
    let status = if payload.is_some() { "resolved" } else { "cancelled" };
    let mut entry = Fields::from([
        ("interruptId".to_owned(), Json::string(&answer.interaction_id)),
        ("status".to_owned(), Json::string(status)),
    ]);
    entry.extend(payload.map(|payload| ("payload".to_owned(), payload)));
    entry
}

/// Creates EasyFlow's answer to a form (§12 of its document), with the decision.
fn form_answer(job: &Job, answer: &InteractionResolved) -> Fields {
    let own = json!({
        "conversation_id": &*job.thread.id,
        "form_id": answer.interaction_id,
        "decision": answer.decision.as_str(),
        "reason": answer.reason,
        "run_id": &*job.run.id,
    });
    let mut fields = fields_of(&Json::from_value(&own)).unwrap_or_default();
    fields.insert("values".into(), answered_values(answer).unwrap_or_else(Json::empty_object));
    fields
}

/// Returns the answered values; none if nobody answered.
fn answered_values(answer: &InteractionResolved) -> Option<Json> {
    let approved = match answer.decision {
        Decision::Submitted => return Some(answer.values.clone().unwrap_or_else(Json::empty_object)),
        Decision::Approved => true,
        Decision::Rejected => false,
        Decision::Cancelled | Decision::Expired => return None,
    };
    let mut values = answer.values.as_ref().and_then(fields_of).unwrap_or_default();
    values.insert("approved".into(), Json::parse(if approved { "true" } else { "false" }).ok()?);
    Some(json_of(&values))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_any_size_reach_an_agent_as_they_came() {
        let run_input = |text: &str| Json::parse(text).ok();
        let written = |fields: &Fields| json_of(fields).text().to_owned();
        let own = json!({"query": ""});
        let body = with_input(run_input(r#"{"n":1e999,"query":"hi"}"#), own.clone());
        assert_eq!(written(&body), r#"{"n":1e999,"query":"hi"}"#);
        assert_eq!(written(&with_input(run_input("[1.50]"), own)), r#"{"input":[1.50],"query":""}"#);
        let answer = |decision, values| InteractionResolved {
            interaction_id: "q".into(),
            decision,
            values: run_input(values),
            ..InteractionResolved::default()
        };
        let resumed = resume_entry(&answer(Decision::Approved, r#"{"n":1e999}"#));
        assert_eq!(
            written(&resumed),
            r#"{"interruptId":"q","payload":{"approved":true,"n":1e999},"status":"resolved"}"#
        );
        let submitted = answered_values(&answer(Decision::Submitted, "1e999"));
        assert_eq!(submitted.unwrap().text(), "1e999");
    }

    #[test]
    fn references_to_removed_messages_are_dropped() {
        let whole =
            |text: &str| whole_messages(&Json::parse(text).unwrap()).map(|json| json.text().to_owned());
        let messages_json = r#"[{"id":"a"},{"id":"b","role":"user","n":1e999},7]"#;
        assert_eq!(whole(messages_json).as_deref(), Some(r#"[{"id":"b","role":"user","n":1e999}]"#));
        assert_eq!(whole(r#"[{"id":"a"}]"#), None);
        assert_eq!(whole("{}"), None);
    }
}
