//! Requests in the form that each dialect's own system has.

use bytes::Bytes;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use runwire_log::LogError;
use runwire_model::Json;
use runwire_model::dialect::Dialect;
use runwire_model::event::{Decision, InteractionResolved};
use runwire_model::record::Earlier;
use serde_json::{Map, Value, json};

use crate::agents::config::HttpAgent;
use crate::agents::conversation;
use crate::agents::job::Job;

/// A request that is ready to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Prepared {
    pub(super) url: String,
    pub(super) body: Bytes,
    /// Whether an answer that is no stream of frames is fine.
    pub(super) takes_acknowledgement: bool,
}

/// Tells whether a dialect's own request carries answers.
pub(super) fn resumes(dialect: Dialect) -> bool {
    matches!(dialect, Dialect::AgUi | Dialect::SocialApp)
}

/// Prepares the request that starts an agent.
pub(super) async fn start(job: &Job, agent: &HttpAgent) -> Result<Prepared, LogError> {
    if !resumes(agent.dialect) {
        let input = job.given().await?;
        return Ok(prepared(job, &agent.url, &plain_start(job, agent, input), false));
    }
    let body = run_agent_input(job, &job.run.id, None).await?;
    Ok(prepared(job, &agent.url, &body, false))
}

/// Makes the request of a system that has no `RunAgentInput`.
fn plain_start(job: &Job, agent: &HttpAgent, input: Option<Json>) -> Value {
    let (thread, run) = (&*job.thread.id, &*job.run.id);
    let message = job.input.message.as_deref();
    let said = message.unwrap_or_default();
    match agent.dialect {
        Dialect::Agio => with_input(input, json!({"query": said})),
        Dialect::StreamingEngine => with_input(input, json!({"session_id": thread, "content": said})),
        Dialect::EasyflowChat => {
            with_input(input, json!({"prompt": said, "botId": job.agent.name, "conversationId": thread}))
        }
        Dialect::Loom | Dialect::LoomExport => with_input(
            input,
            json!({"type": "run", "id": run, "message": said, "agent": job.agent.name, "thread_id": thread}),
        ),
        // Those of `RunAgentInput` do not come here.
        Dialect::Runwire | Dialect::Text | Dialect::AgUi | Dialect::SocialApp => json!({
            "thread_id": thread,
            "run_id": run,
            "agent": job.agent.name,
            "message": message,
            "input": input.as_ref().map(Json::to_value),
        }),
    }
}

/// Prepares the requests that tell an agent what people answered; `seq` is the record that settled it.
pub(super) async fn answers(
    job: &Job,
    agent: &HttpAgent,
    answers: &[InteractionResolved],
    seq: u64,
) -> Result<Vec<Prepared>, LogError> {
    if resumes(agent.dialect) {
        // Its clients call every request another run.
        let run = format!("{}.{seq}", job.run.id);
        let resume = answers.iter().map(resume_entry).collect();
        let body = run_agent_input(job, &run, Some(resume)).await?;
        return Ok(vec![prepared(job, &agent.url, &body, false)]);
    }
    let Some(url) = &agent.answer_url else { return Ok(Vec::new()) };
    let form = |answer: &InteractionResolved| prepared(job, url, &form_answer(job, answer), true);
    Ok(answers.iter().map(form).collect())
}

/// Prepares the request that tells an agent to stop.
pub(super) fn cancel(job: &Job, agent: &HttpAgent, reason: Option<&str>) -> Option<Prepared> {
    let (thread, run) = (&*job.thread.id, &*job.run.id);
    let body = json!({"thread_id": thread, "run_id": run, "reason": reason});
    agent.cancel_url.as_ref().map(|url| prepared(job, url, &body, true))
}

fn prepared(job: &Job, url: &str, body: &Value, takes_acknowledgement: bool) -> Prepared {
    let message = job.input.message.as_deref().unwrap_or_default();
    let mut url = url.to_owned();
    for (name, value) in [("{message}", message), ("{run}", &job.run.id), ("{thread}", &job.thread.id)] {
        if url.contains(name) {
            url = url.replace(name, &utf8_percent_encode(value, NON_ALPHANUMERIC).to_string());
        }
    }
    Prepared { url, body: body.to_string().into(), takes_acknowledgement }
}

/// Adds what the run was given beside its message; the dialect's own fields win.
fn with_input(given: Option<Json>, own: Value) -> Value {
    let given = given.as_ref().map(Json::to_value);
    let mut fields = match given {
        Some(Value::Object(fields)) => fields,
        Some(other) => Map::from_iter([("input".to_owned(), other)]),
        None => Map::new(),
    };
    let Value::Object(own) = own else { return own };
    for (name, value) in own {
        // A run without a message may have said it in its input.
        let says_nothing = value.as_str() == Some("") && fields.contains_key(&name);
        if !says_nothing {
            fields.insert(name, value);
        }
    }
    Value::Object(fields)
}

/// Makes AG-UI's `RunAgentInput`: the thread's messages and state, and what the run was given.
async fn run_agent_input(job: &Job, run: &str, resume: Option<Vec<Value>>) -> Result<Value, LogError> {
    let window = job.window().await?;
    let mut messages = window.messages();
    if resume.is_none() {
        messages.extend(job.asked());
    }
    let given = job.input.input.as_ref().map(|input| conversation::restored(input, &messages).to_value());
    // A façade hands on the whole input of its own request.
    let mut input = match given {
        Some(Value::Object(fields)) => fields,
        Some(other) => Map::from_iter([("forwardedProps".to_owned(), json!({"input": other}))]),
        None => Map::new(),
    };
    input.insert("threadId".into(), (&*job.thread.id).into());
    input.insert("runId".into(), run.into());
    let given = input.get_mut("messages").and_then(Value::as_array_mut);
    let has_messages = given.is_some_and(|given| {
        // Of one that has only its id, retention has removed the rest.
        given.retain(|message| message.get("role").is_some());
        !given.is_empty()
    });
    if !has_messages || resume.is_some() {
        input.insert("messages".into(), messages.iter().map(conversation::told_in_full).collect());
    }
    let state = window.state().map_or_else(|| json!({}), |state| state.to_value());
    if resume.is_some() || !input.contains_key("state") {
        input.insert("state".into(), state);
    }
    for (name, default) in [("tools", json!([])), ("context", json!([])), ("forwardedProps", json!({}))] {
        input.entry(name).or_insert(default);
    }
    match resume {
        Some(resume) => input.insert("resume".into(), resume.into()),
        None => input.remove("resume"),
    };
    Ok(Value::Object(input))
}

/// Makes an entry of AG-UI's `resume`.
fn resume_entry(answer: &InteractionResolved) -> Value {
    let id = &answer.interaction_id;
    match answered_values(answer) {
        Some(payload) => json!({"interruptId": id, "status": "resolved", "payload": payload}),
        None => json!({"interruptId": id, "status": "cancelled"}),
    }
}

/// Makes EasyFlow's answer to a form (its §12), with what became of the question.
fn form_answer(job: &Job, answer: &InteractionResolved) -> Value {
    json!({
        "conversation_id": &*job.thread.id,
        "form_id": answer.interaction_id,
        "values": answered_values(answer).unwrap_or_else(|| json!({})),
        "decision": answer.decision.as_str(),
        "reason": answer.reason,
        "run_id": &*job.run.id,
    })
}

/// Tells what was answered; nothing where nobody has.
fn answered_values(answer: &InteractionResolved) -> Option<Value> {
    let approved = match answer.decision {
        Decision::Submitted => return Some(answer.values.as_ref().map_or_else(|| json!({}), Json::to_value)),
        Decision::Approved => true,
        Decision::Rejected => false,
        Decision::Cancelled | Decision::Expired => return None,
    };
    let mut values = match answer.values.as_ref().map(Json::to_value) {
        Some(Value::Object(values)) => values,
        _ => Map::new(),
    };
    values.insert("approved".into(), approved.into());
    Some(Value::Object(values))
}
