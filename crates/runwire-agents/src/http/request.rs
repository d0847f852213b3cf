//! Requests to HTTP agents, in the format of each dialect's own system.

use bytes::Bytes;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use runwire_log::LogError;
use runwire_model::Json;
use runwire_model::dialect::start::{
    AgentStart, ConversationStart, RequestFields, StartRequest, answered_values, raw_json, request_fields,
};
use runwire_model::event::InteractionResolved;
use runwire_model::record::History;
use serde::Serialize;
use serde_json::{Value, json};

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

/// Creates the request that starts an agent.
pub(super) async fn start_request(job: &Job, agent: &HttpAgent) -> Result<AgentRequest, LogError> {
    let start = AgentStart {
        thread: &job.thread.id,
        run: &job.run.id,
        agent: &job.agent.name,
        message: job.input.message.as_deref(),
    };
    let body = match agent.dialect.start_request() {
        Some(StartRequest::Conversation(fields)) => conversation(job, fields, &job.run.id, None).await?,
        Some(StartRequest::Flat(fields)) => with_input(job.full_input().await?, fields(&start)),
        Some(StartRequest::Nested(fields)) => {
            let mut fields = request_fields(&Json::from_value(&fields(&start))).unwrap_or_default();
            fields.insert("input".into(), job.full_input().await?.unwrap_or_default());
            fields
        }
        None => RequestFields::new(),
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
    if let Some(StartRequest::Conversation(fields)) = agent.dialect.start_request() {
        // Clients of such dialects give every request a run id of its own.
        let run = format!("{}.{seq}", job.run.id);
        let body = conversation(job, fields, &run, Some(answers)).await?;
        return Ok(vec![agent_request(job, &agent.url, &body, false)]);
    }
    let Some(url) = &agent.answer_url else { return Ok(Vec::new()) };
    let form = |answer: &InteractionResolved| agent_request(job, url, &form_answer(job, answer), true);
    Ok(answers.iter().map(form).collect())
}

/// Creates the body of a request with the whole conversation.
async fn conversation(
    job: &Job,
    fields: fn(&ConversationStart<'_>) -> RequestFields,
    run: &str,
    answers: Option<&[InteractionResolved]>,
) -> Result<RequestFields, LogError> {
    let window = job.window().await?;
    let mut messages = window.messages();
    if answers.is_none() {
        messages.extend(job.user_message());
    }
    let (input, state) = (job.input.input.as_ref(), window.state());
    Ok(fields(&ConversationStart {
        thread: &job.thread.id,
        run,
        input,
        messages: &messages,
        state: state.as_ref(),
        answers,
    }))
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
    AgentRequest { url, body: raw_json(body).text().to_owned().into(), takes_acknowledgement }
}

/// Merges the run's input with the dialect's fields, which win.
fn with_input(run_input: Option<Json>, own: Value) -> RequestFields {
    let mut fields = match run_input {
        Some(run_input) => request_fields(&run_input)
            .unwrap_or_else(|| RequestFields::from([("input".to_owned(), run_input)])),
        None => RequestFields::new(),
    };
    for (name, value) in request_fields(&Json::from_value(&own)).unwrap_or_default() {
        // A run without a message may have it in its input.
        let says_nothing = value.text() == "\"\"" && fields.contains_key(&name);
        if !says_nothing {
            fields.insert(name, value);
        }
    }
    fields
}

/// Creates EasyFlow's answer to a form (§12 of its document), with the decision.
fn form_answer(job: &Job, answer: &InteractionResolved) -> RequestFields {
    let own = json!({
        "conversation_id": &*job.thread.id,
        "form_id": answer.interaction_id,
        "decision": answer.decision.as_str(),
        "reason": answer.reason,
        "run_id": &*job.run.id,
    });
    let mut fields = request_fields(&Json::from_value(&own)).unwrap_or_default();
    fields.insert("values".into(), answered_values(answer).unwrap_or_else(Json::empty_object));
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_any_size_reach_an_agent_as_they_came() {
        let run_input = |text: &str| Json::parse(text).ok();
        let written = |fields: &RequestFields| raw_json(fields).text().to_owned();
        let own = json!({"query": ""});
        let body = with_input(run_input(r#"{"n":1e999,"query":"hi"}"#), own.clone());
        assert_eq!(written(&body), r#"{"n":1e999,"query":"hi"}"#);
        assert_eq!(written(&with_input(run_input("[1.50]"), own)), r#"{"input":[1.50],"query":""}"#);
    }
}
