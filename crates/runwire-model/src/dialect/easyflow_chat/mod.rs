//! `easyflow-chat`: EasyFlow's chat protocol, version 1.1 (`docs/dialects/easyflow-chat.md`).

mod decode;
mod document;
mod encode;

use decode::{decode, open};
pub(super) use encode::Encoder;

use serde_json::{Value, json};

use crate::dialect::registry::{DetectionRule, Ending, NamedIds, Quirks, Read, Spec};
use crate::dialect::start::{AgentStart, StartRequest};
use crate::json::Object;

/// Suffix of the id of a message's thinking, which is a message of its own here.
const THINKING: &str = ":thinking";

/// Extension field: the id of a form in its own dialect, where it was requested before.
const FORM_ID: &str = "own.form_id";

/// Extension field: the message that a frame names without being a piece of it.
const MESSAGE_ID: &str = "own.message_id";

/// Extension field: the error of a call or a node in its original form.
const ERROR: &str = "own.error";

/// Field of `run.status`: its node.
const NODE_ID: &str = "node_id";

/// Field of `run.status`: why a node waits or continues.
const REASON: &str = "reason";

/// The reason of a node that waits for a person.
const INTERACTION: &str = "interaction";

pub(super) const SPEC: Spec = Spec {
    name: "easyflow-chat",
    read: Some(Read {
        open,
        decode,
        detect: &[DetectionRule { rank: 1, matches: is_easyflow }],
        ending,
        refinement: None,
        resumes_as_new_run: false,
        start: StartRequest::Flat(start_request),
    }),
    ids: NamedIds::Session,
    thread_field: "conversation_id",
    schema: include_str!("schema.json"),
    frames_section: "§2",
    document: document::DOCUMENT,
    offers_attach: true,
    has_unnamed_pieces: false,
    has_extensions: true,
    quirks: Quirks::NONE,
};

fn is_easyflow(frame: &Object<'_>) -> bool {
    frame.has("protocol") || frame.has("domain")
}

/// The body of `POST /api/v1/bot/chat`.
fn start_request(start: &AgentStart<'_>) -> Value {
    json!({
        "prompt": start.message.unwrap_or_default(),
        "botId": start.agent,
        "conversationId": start.thread,
    })
}

fn ending(frame: &Object<'_>, name: Option<&str>) -> Option<Ending> {
    let is_system = word(frame, "domain").as_deref() == Some("system");
    match (is_system, word(frame, "type").as_deref(), name) {
        (true, Some("done") | None, _) | (_, None, Some("done")) => Some(Ending::Over),
        (true, Some("error"), _) | (_, _, Some("error")) => Some(Ending::Failed),
        _ => None,
    }
}

/// Lookup of a field under its documented name, or under the camelCase one that is seen in the wild.
trait EitherCase<'a> {
    fn name_of(&self, snake: &'static str, camel: &'static str) -> &'static str;
}

impl EitherCase<'_> for Object<'_> {
    fn name_of(&self, snake: &'static str, camel: &'static str) -> &'static str {
        if !self.has(snake) && self.has(camel) { camel } else { snake }
    }
}

/// Reads a word that is upper case in the wild.
fn word(object: &Object<'_>, key: &str) -> Option<String> {
    object.get_str(key).map(|word| word.to_lowercase())
}

/// Returns true if an interaction is that of a form: a repeated one has the form's id and a number.
fn is_form(id: &str, form_id: &str) -> bool {
    id == form_id || id.strip_prefix(form_id).is_some_and(|rest| rest.starts_with('.'))
}
