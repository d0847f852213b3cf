//! The request that starts an agent, `RunAgentInput`: it carries the whole conversation.
//!
//! The input of a run is stored and limited in size, but a conversation grows without bound. So a message that the
//! thread has is stored as a reference (`{"id": "m1"}`), which is resolved when the input goes to an agent. Other
//! messages are stored in full, as far as the limit allows.

use std::borrow::Cow;
use std::collections::HashMap;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::dialect::start::{
    ConversationStart, RequestFields, StoredInput, answered_values, raw_json, request_fields,
};
use crate::event::InteractionResolved;
use crate::json::{Json, Object, ObjectWriter};
use crate::record::ChatMessage;

pub(super) const STORED_INPUT: StoredInput =
    StoredInput { abridge: abridge_input, restore: restore_input, has_messages };

const MESSAGES: &str = "messages";

/// Creates a `RunAgentInput`: the thread's messages and state, and the run's input.
pub(in crate::dialect) fn run_agent_input(start: &ConversationStart<'_>) -> RequestFields {
    let run_input = start.input.map(|input| restore_input(input, start.messages));
    // A façade passes on the whole body of its request.
    let mut input = match run_input {
        Some(run_input) => request_fields(&run_input).unwrap_or_else(|| {
            let props = raw_json(&RequestFields::from([("input".to_owned(), run_input)]));
            RequestFields::from([("forwardedProps".to_owned(), props)])
        }),
        None => RequestFields::new(),
    };
    input.insert("threadId".into(), Json::string(start.thread));
    input.insert("runId".into(), Json::string(start.run));
    let own_messages = input.get(MESSAGES).and_then(whole_messages).filter(|_| start.answers.is_none());
    let messages = own_messages
        .unwrap_or_else(|| raw_json(&start.messages.iter().map(ag_ui_message).collect::<Vec<_>>()));
    input.insert(MESSAGES.into(), messages);
    if start.answers.is_some() || !input.contains_key("state") {
        input.insert("state".into(), start.state.cloned().unwrap_or_else(Json::empty_object));
    }
    for (name, default) in [("tools", json!([])), ("context", json!([])), ("forwardedProps", json!({}))] {
        input.entry(name.to_owned()).or_insert_with(|| Json::from_value(&default));
    }
    match start.answers {
        Some(answers) => {
            let entries: Vec<RequestFields> = answers.iter().map(resume_entry).collect();
            input.insert("resume".into(), raw_json(&entries))
        }
        None => input.remove("resume"),
    };
    input
}

/// Drops references whose message retention has removed; none if no message is left.
fn whole_messages(run_input: &Json) -> Option<Json> {
    let mut messages: Vec<&RawValue> = serde_json::from_str(run_input.text()).ok()?;
    messages.retain(|message| Object::of(message).is_some_and(|message| message.has("role")));
    (!messages.is_empty()).then(|| raw_json(&messages))
}

/// Creates an entry of `resume`.
fn resume_entry(answer: &InteractionResolved) -> RequestFields {
    let payload = answered_values(answer);
    let status = if payload.is_some() { "resolved" } else { "cancelled" };
    let mut entry = RequestFields::from([
        ("interruptId".to_owned(), Json::string(&answer.interaction_id)),
        ("status".to_owned(), Json::string(status)),
    ]);
    entry.extend(payload.map(|payload| ("payload".to_owned(), payload)));
    entry
}

/// The id of a message, whatever other fields it has.
#[derive(Deserialize)]
struct MessageId<'a> {
    #[serde(borrow, default)]
    id: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Reference<'a> {
    #[serde(borrow)]
    id: Cow<'a, str>,
}

/// Abridges the messages of an input to a limit of bytes.
///
/// If the messages that the thread does not have exceed the limit, the oldest are shortened first: to a reference if
/// the thread has a message of that id, else dropped. The newest stays in full, so that a too large one is refused
/// instead of lost.
fn abridge_input(input: Json, known: &[ChatMessage], limit: usize) -> Json {
    let Some(messages) = messages_of(&input) else { return input };
    let known: HashMap<&str, &ChatMessage> =
        known.iter().map(|message| (message.id.as_str(), message)).collect();
    let others = input.text().len() - messages.iter().map(|message| message.get().len()).sum::<usize>();
    let mut bytes_left = limit.saturating_sub(others);
    let mut kept: Vec<Cow<'_, str>> = Vec::new();
    for (age, message) in messages.iter().rev().enumerate() {
        let whole = message.get();
        let stored = serde_json::from_str::<MessageId<'_>>(whole).ok().and_then(|named| named.id);
        let stored = stored.and_then(|id| known.get(&*id).copied());
        let reference = || stored.map(|stored| json!({"id": stored.id}).to_string());
        let is_known = stored.is_some_and(|stored| is_same(whole, stored));
        let short = if is_known { reference() } else { None };
        let fits = |text: &str| text.len() < bytes_left;
        let abridged = match short {
            Some(short) => Some(Cow::Owned(short)).filter(|short| fits(short)),
            None if fits(whole) || age == 0 => Some(Cow::Borrowed(whole)),
            None => reference().map(Cow::Owned).filter(|short| fits(short)),
        };
        let Some(abridged) = abridged else { continue };
        bytes_left = bytes_left.saturating_sub(abridged.len() + 1);
        kept.push(abridged);
    }
    kept.reverse();
    with_messages(&input, &kept)
}

/// Resolves the message references of an input, where the messages are known.
fn restore_input(input: &Json, known: &[ChatMessage]) -> Json {
    let Some(messages) = messages_of(input) else { return input.clone() };
    let referred = |message: &RawValue| {
        let reference = serde_json::from_str::<Reference<'_>>(message.get()).ok()?;
        known.iter().rfind(|known| known.id == reference.id)
    };
    let mut is_whole = true;
    let mut restored: Vec<Cow<'_, str>> = Vec::new();
    for message in messages {
        restored.push(match referred(message) {
            Some(known) => {
                is_whole = false;
                Cow::Owned(ag_ui_message(known).to_string())
            }
            None => Cow::Borrowed(message.get()),
        });
    }
    if is_whole { input.clone() } else { with_messages(input, &restored) }
}

/// Returns true if an input has messages.
fn has_messages(input: &Json) -> bool {
    messages_of(input).is_some_and(|messages| !messages.is_empty())
}

/// Converts a message of a thread to AG-UI's format.
fn ag_ui_message(message: &ChatMessage) -> Value {
    let mut ag_ui = json!({"id": message.id, "role": message.role, "content": message.content});
    if !message.tool_calls.is_empty() {
        let call = |(id, name, arguments): &(String, String, String)| json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}});
        ag_ui["toolCalls"] = message.tool_calls.iter().map(call).collect();
    }
    if let Some(call) = &message.tool_call_id {
        ag_ui["toolCallId"] = call.as_str().into();
    }
    ag_ui
}

fn messages_of(input: &Json) -> Option<Vec<&RawValue>> {
    let fields = Object::of_json(input)?;
    let messages = fields.fields().find(|(name, _)| *name == MESSAGES).map(|(_, value)| value.get())?;
    serde_json::from_str(messages).ok()
}

fn with_messages(input: &Json, messages: &[Cow<'_, str>]) -> Json {
    let Some(fields) = Object::of_json(input) else { return input.clone() };
    let mut out = Vec::new();
    let mut object = ObjectWriter::begin(&mut out);
    for (name, value) in fields.fields() {
        match name {
            MESSAGES => object.raw(name, &format!("[{}]", messages.join(","))),
            _ => object.raw(name, value.get()),
        }
    }
    object.end();
    let written = String::from_utf8(out).ok().and_then(|text| Json::parse(&text).ok());
    // Parts of JSON that was parsed are JSON.
    written.unwrap_or_else(|| input.clone())
}

/// Returns true if a message equals the thread's message, with no further fields.
fn is_same(message: &str, known: &ChatMessage) -> bool {
    let Ok(mut message) = serde_json::from_str::<Value>(message) else { return false };
    let mut known = ag_ui_message(known);
    for message in [&mut message, &mut known] {
        let Some(fields) = message.as_object_mut() else { return false };
        // Clients differ in how they omit empty fields.
        fields.retain(|name, value| {
            let is_empty = value.is_null() || *value == json!("") || *value == json!([]);
            !(is_empty && matches!(name.as_str(), "content" | "toolCalls"))
        });
    }
    message == known
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Decision;

    fn known() -> Vec<ChatMessage> {
        let message = |id: &str, role: &str, content: &str| ChatMessage {
            id: id.into(),
            role: role.into(),
            content: content.into(),
            ..Default::default()
        };
        let call = ("c".to_owned(), "look".to_owned(), "{}".to_owned());
        let mut calling = message("m2", "assistant", "");
        calling.tool_calls = vec![call];
        vec![message("u1", "user", "hi"), message("m1", "assistant", "Hello"), calling]
    }

    fn input(messages: &Value) -> Json {
        Json::parse(&format!(r#"{{"state":{{"n":1.50}},"messages":{messages},"tools":[]}}"#)).unwrap()
    }

    #[test]
    fn messages_of_the_thread_are_stored_as_references_and_restored() {
        let calls = json!([{"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}]);
        let sent = json!([
            {"id": "s", "role": "system", "content": "Be brief."},
            {"id": "u1", "role": "user", "content": "hi"},
            {"id": "m1", "role": "assistant", "content": "Hello"},
            {"id": "m2", "role": "assistant", "toolCalls": calls},
            {"id": "t1", "role": "tool", "content": "1", "toolCallId": "c"},
        ]);
        let stored = abridge_input(input(&sent), &known(), 1 << 20);
        let expected = json!([sent[0], {"id": "u1"}, {"id": "m1"}, {"id": "m2"}, sent[4]]);
        assert_eq!(stored.to_value().unwrap()["messages"], expected);
        assert!(stored.text().starts_with(r#"{"state":{"n":1.50},"#), "{}", stored.text());
        let restored = restore_input(&stored, &known()).to_value().unwrap();
        assert_eq!(
            restored["messages"][3],
            json!({"id": "m2", "role": "assistant", "content": "", "toolCalls": calls})
        );
        for same in [0, 1, 2, 4] {
            assert_eq!(restored["messages"][same], sent[same]);
        }
    }

    #[test]
    fn a_message_with_more_than_the_thread_has_stays_whole() {
        let sent = json!([
            {"id": "u1", "role": "user", "content": "hi!"},
            {"id": "m1", "role": "assistant", "content": "Hello", "name": "Ann"},
            {"role": "user", "content": "hi"},
        ]);
        assert_eq!(abridge_input(input(&sent), &known(), 1 << 20).to_value().unwrap()["messages"], sent);
    }

    #[test]
    fn above_the_limit_the_oldest_are_shortened_and_the_newest_stays() {
        let long = "x".repeat(400);
        let sent = json!([
            {"id": "a", "role": "user", "content": long},
            {"id": "u1", "role": "user", "content": "hi", "image": long},
            {"id": "b", "role": "user", "content": long},
            {"id": "c", "role": "user", "content": long},
        ]);
        let stored = abridge_input(input(&sent), &known(), 1000);
        assert!(stored.text().len() <= 1000);
        assert_eq!(stored.to_value().unwrap()["messages"], json!([{"id": "u1"}, sent[2], sent[3]]));
        let stored = abridge_input(input(&sent), &known(), 10);
        assert_eq!(stored.to_value().unwrap()["messages"], json!([sent[3]]));
    }

    #[test]
    fn inputs_of_another_shape_are_left_alone() {
        for text in ["7", "{}", r#"{"messages":{}}"#, r#"{"messages":[{"id":"else"},{"id":7},1]}"#] {
            let input = Json::parse(text).unwrap();
            assert_eq!(abridge_input(input.clone(), &known(), 1 << 20).text(), text);
            assert_eq!(restore_input(&input, &known()).text(), text);
        }
    }

    #[test]
    fn numbers_of_an_answer_stay_as_they_came() {
        let values = Json::parse(r#"{"n":1e999}"#).ok();
        let answer = InteractionResolved {
            interaction_id: "q".into(),
            decision: Decision::Approved,
            values,
            ..Default::default()
        };
        assert_eq!(
            raw_json(&resume_entry(&answer)).text(),
            r#"{"interruptId":"q","payload":{"approved":true,"n":1e999},"status":"resolved"}"#
        );
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
