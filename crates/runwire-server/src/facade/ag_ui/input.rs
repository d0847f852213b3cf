//! Parses the fields of AG-UI's `RunAgentInput` that the server needs.

use runwire_model::json::{FieldError, Object};
use runwire_model::{ErrorCode, Json};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::facade::start_run::missing_field;
use crate::ids;
use crate::problem::Problem;

/// The request to start or resume a run.
#[derive(Debug)]
pub(super) struct RunInput {
    pub(super) thread: String,
    pub(super) run: String,
    /// The last message, if its role is user.
    pub(super) message: Option<String>,
    /// The client's id of that message.
    pub(super) message_id: Option<String>,
    /// Answers to the open interactions of the thread's run.
    pub(super) resume: Vec<ResumeEntry>,
    /// The whole body, for the agent.
    pub(super) whole: Json,
}

/// The answer to one interaction.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ResumeEntry {
    pub(super) interrupt_id: String,
    pub(super) status: ResumeStatus,
    #[serde(default)]
    pub(super) payload: Option<Json>,
}

/// The status of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum ResumeStatus {
    Resolved,
    Cancelled,
}

impl RunInput {
    /// Parses the body of a request.
    pub(super) fn read(whole: Json) -> Result<Self, Problem> {
        let wrong = |error: FieldError| Problem::new(ErrorCode::BadBody, error.to_string());
        let Some(mut fields) = Object::of_json(&whole) else {
            return Err(Problem::new(ErrorCode::BadBody, "the body is no RunAgentInput"));
        };
        let thread = fields.take_id("threadId").map_err(wrong)?.ok_or_else(|| missing_field("threadId"))?;
        let run = fields.take_id("runId").map_err(wrong)?.ok_or_else(|| missing_field("runId"))?;
        let messages: Vec<&RawValue> = match fields.take_present("messages") {
            None => Vec::new(),
            Some(messages) => serde_json::from_str(messages.get())
                .map_err(|_| Problem::new(ErrorCode::BadBody, "`messages` must be an array"))?,
        };
        let last = messages.last().map(|last| Json::from_raw(last).to_value()).transpose();
        let last = last.map_err(|error| {
            Problem::new(ErrorCode::BadBody, format!("the last message cannot be read: {error}"))
                .with("field", "messages")
        })?;
        let last = last.unwrap_or_default();
        let message = user_text(&last);
        let message_id = last["id"].as_str().filter(|id| message.is_some() && ids::check("id", id).is_ok());
        let message_id = message_id.map(ToOwned::to_owned);
        let resume = match fields.take_present("resume") {
            None => Vec::new(),
            Some(resume) => serde_json::from_str(resume.get()).map_err(|error| {
                let detail = format!(
                    "`resume` must be a list of `{{interruptId, status: resolved|cancelled, payload?}}`: {error}"
                );
                Problem::new(ErrorCode::BadBody, detail).with("field", "resume")
            })?,
        };
        Ok(Self { thread, run, message, message_id, resume, whole })
    }
}

/// Returns the text of a user message, whose content may have parts.
fn user_text(message: &Value) -> Option<String> {
    match message.get("content").filter(|_| message["role"] == "user")? {
        Value::String(text) => Some(text.clone()),
        Value::Array(parts) => {
            Some(parts.iter().filter_map(|part| part["text"].as_str()).collect::<Vec<_>>().join("\n"))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<RunInput, Problem> {
        RunInput::read(Json::parse(text).unwrap())
    }

    #[test]
    fn the_last_message_is_the_input_if_its_role_is_user() {
        let asked = |messages: &str| {
            read(&format!(r#"{{"threadId":"t","runId":"r","messages":{messages}}}"#)).unwrap().message
        };
        assert_eq!(asked(r#"[{"role":"user","content":"a"},{"role":"user","content":"b"}]"#).unwrap(), "b");
        let parts =
            r#"[{"role":"user","content":[{"type":"text","text":"a"},{"type":"image"},{"text":"b"}]}]"#;
        assert_eq!(asked(parts).unwrap(), "a\nb");
        assert_eq!(asked(r#"[{"role":"user","content":"a"},{"role":"tool","content":"1"}]"#), None);
        assert_eq!(asked("[]"), None);
    }

    #[test]
    fn the_input_message_keeps_the_clients_own_id() {
        let id = |messages: &str| {
            read(&format!(r#"{{"threadId":"t","runId":"r","messages":{messages}}}"#)).unwrap().message_id
        };
        assert_eq!(id(r#"[{"id":"u","role":"user","content":"a"}]"#).as_deref(), Some("u"));
        for none in [
            "[]",
            r#"[{"role":"user","content":"a"}]"#,
            r#"[{"id":"","role":"user","content":"a"}]"#,
            r#"[{"id":7,"role":"user","content":"a"}]"#,
            r#"[{"id":"t","role":"tool","content":"1"}]"#,
        ] {
            assert_eq!(id(none), None, "{none}");
        }
    }

    #[test]
    fn invalid_inputs_are_refused() {
        for wrong in [
            r#"{"runId":"r"}"#,
            r#"{"threadId":"t"}"#,
            r#"{"threadId":"t","runId":"r","messages":{}}"#,
            r#"{"threadId":"t","runId":"r","messages":[{"role":"user","content":"a","n":1e999}]}"#,
            r#"{"threadId":"t","runId":"r","resume":[{"interruptId":"a"}]}"#,
            r#"{"threadId":"t","runId":"r","resume":[{"interruptId":"a","status":"maybe"}]}"#,
        ] {
            assert_eq!(read(wrong).unwrap_err().code(), ErrorCode::BadBody, "{wrong}");
        }
    }
}
