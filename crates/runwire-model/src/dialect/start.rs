//! What the request that starts an agent over HTTP is made from.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::value::to_raw_value;

use super::Dialect;
use crate::event::{Decision, InteractionResolved};
use crate::json::{Json, Object};
use crate::record::ChatMessage;

/// The body of the request that starts an agent over HTTP.
#[derive(Debug, Clone, Copy)]
pub enum StartRequest {
    /// These fields, with those of the run's input beside them.
    Flat(fn(&AgentStart<'_>) -> serde_json::Value),
    /// These fields, with the run's input as `input`.
    Nested(fn(&AgentStart<'_>) -> serde_json::Value),
    /// The thread's messages and state with the run's input. The same request carries people's answers later.
    Conversation(fn(&ConversationStart<'_>) -> RequestFields),
}

/// Values for the fields of a request that starts an agent.
#[derive(Debug, Clone, Copy)]
pub struct AgentStart<'a> {
    /// Id of the thread.
    pub thread: &'a str,
    /// Id of the run.
    pub run: &'a str,
    /// Name of the agent in the configuration.
    pub agent: &'a str,
    /// The user's message.
    pub message: Option<&'a str>,
}

/// Values for a request that has the whole conversation.
#[derive(Debug, Clone, Copy)]
pub struct ConversationStart<'a> {
    /// Id of the thread.
    pub thread: &'a str,
    /// Id of the run, or another one for the answers to its questions.
    pub run: &'a str,
    /// The run's input, as it is stored.
    pub input: Option<&'a Json>,
    /// The thread's messages.
    pub messages: &'a [ChatMessage],
    /// The thread's state.
    pub state: Option<&'a Json>,
    /// The answers that resume the run; `None` if it starts.
    pub answers: Option<&'a [InteractionResolved]>,
}

/// The fields of a body. Values stay raw text, so that numbers keep their digits.
pub type RequestFields = BTreeMap<String, Json>;

/// Returns the fields of an object.
pub fn request_fields(json: &Json) -> Option<RequestFields> {
    let object = Object::of_json(json)?;
    Some(object.fields().map(|(name, value)| (name.to_owned(), Json::from_raw(value))).collect())
}

/// Serializes a value as raw JSON.
pub fn raw_json(value: &impl Serialize) -> Json {
    to_raw_value(value).map(|raw| Json::from_raw(&raw)).unwrap_or_default()
}

/// Returns the answered values as agents get them; `None` if nobody answered.
pub fn answered_values(answer: &InteractionResolved) -> Option<Json> {
    let approved = match answer.decision {
        Decision::Submitted => return Some(answer.values.clone().unwrap_or_else(Json::empty_object)),
        Decision::Approved => true,
        Decision::Rejected => false,
        Decision::Cancelled | Decision::Expired => return None,
    };
    let mut values = answer.values.as_ref().and_then(request_fields).unwrap_or_default();
    values.insert("approved".into(), Json::parse(if approved { "true" } else { "false" }).ok()?);
    Some(raw_json(&values))
}

/// How the input of a run is stored whose client sends the whole conversation with each request.
pub(super) struct StoredInput {
    /// Replaces messages that the thread has by references, up to a limit of bytes.
    pub(super) abridge: fn(Json, &[ChatMessage], usize) -> Json,
    /// Resolves the references, as far as the messages are known.
    pub(super) restore: fn(&Json, &[ChatMessage]) -> Json,
    /// Returns true if an input may have references.
    pub(super) has_messages: fn(&Json) -> bool,
}

impl Dialect {
    /// Abridges the input of a run to a limit of bytes, where clients of the dialect send whole conversations.
    pub fn abridge_input(self, input: Json, known: &[ChatMessage], limit: usize) -> Json {
        match self.stored_input() {
            Some(stored) => (stored.abridge)(input, known, limit),
            None => input,
        }
    }
}

/// Returns true if a stored input may refer to messages of its thread.
pub fn refers_to_messages(input: &Json) -> bool {
    stored_inputs().any(|stored| (stored.has_messages)(input))
}

/// Resolves the references of a stored input to messages of its thread.
pub fn restore_input(input: &Json, known: &[ChatMessage]) -> Json {
    stored_inputs().fold(input.clone(), |input, stored| (stored.restore)(&input, known))
}

fn stored_inputs() -> impl Iterator<Item = &'static StoredInput> {
    Dialect::READABLE.into_iter().filter_map(Dialect::stored_input)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_submitted_number_of_any_size_stays_as_it_came() {
        let values = Json::parse("1e999").ok();
        let submitted = InteractionResolved { decision: Decision::Submitted, values, ..Default::default() };
        assert_eq!(answered_values(&submitted).unwrap().text(), "1e999");
    }
}
