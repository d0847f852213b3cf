//! Messages of the WebSocket endpoint: one JSON object per message.

use runwire_log::{Appended, FrameBatch};
use runwire_model::dialect::{Dialect, EncoderOptions, Fidelity, Slots};
use runwire_model::json::{Object, check_nested};
use runwire_model::limits::JSON_DEPTH;
use runwire_model::run::WholePolicy;
use runwire_model::{ErrorCode, Json};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::feed::FeedCursor;
use crate::limits::MESSAGE_ID_BYTES;
use crate::problem::Problem;
use crate::read::after_of;

/// The operations of client messages.
pub(super) const OPS: [&str; 7] = ["subscribe", "unsubscribe", "write", "answer", "cancel", "retry", "ping"];

/// The fields that an error response needs, also of a message that cannot be parsed.
#[derive(Debug, Deserialize)]
struct Envelope<'a> {
    #[serde(borrow, default)]
    op: Option<&'a RawValue>,
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
}

/// A message from the client.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ClientMessage {
    pub(super) op: String,
    #[serde(default)]
    pub(super) id: Option<Box<RawValue>>,
    #[serde(default)]
    pub(super) run: Option<String>,
    #[serde(default)]
    pub(super) run_id: Option<String>,
    #[serde(default)]
    pub(super) thread: Option<String>,
    #[serde(default)]
    dialect: Option<String>,
    #[serde(default)]
    fidelity: Option<String>,
    #[serde(default)]
    slots: Option<String>,
    #[serde(default)]
    pub(super) raw: bool,
    #[serde(default)]
    pub(super) compact: bool,
    #[serde(default)]
    after: Option<String>,
    #[serde(default)]
    attach: Option<String>,
    #[serde(default)]
    pub(super) producer: Option<String>,
    #[serde(default)]
    pub(super) epoch: u64,
    #[serde(default)]
    pub(super) seq: Option<u64>,
    #[serde(default)]
    frames: Vec<Box<RawValue>>,
    #[serde(default)]
    pub(super) end: bool,
    #[serde(default)]
    pub(super) strict: bool,
    #[serde(default)]
    pub(super) whole: Option<WholePolicy>,
    #[serde(default)]
    pub(super) interaction: Option<String>,
    #[serde(default)]
    pub(super) decision: Option<String>,
    #[serde(default)]
    pub(super) values: Option<Json>,
    #[serde(default)]
    pub(super) reason: Option<String>,
}

impl ClientMessage {
    /// Parses a message; an error carries the message's id, if it has one. Returns none for an answer in EasyFlow's
    /// format, which has no `op`.
    pub(super) fn read(text: &str) -> Result<Option<Self>, Box<(Option<String>, Problem)>> {
        let unreadable = |detail: String| Box::new((None, bad(detail)));
        // Values stay raw text, so their depth is checked here.
        check_nested(text.as_bytes(), JSON_DEPTH).map_err(|fault| unreadable(fault.to_string()))?;
        let envelope = match serde_json::from_str::<Envelope<'_>>(text) {
            Ok(envelope) if text.trim_start().starts_with('{') => envelope,
            Err(error) if !error.is_data() => {
                return Err(unreadable(format!("the message is no JSON: {error}")));
            }
            _ => return Err(unreadable("a message is a JSON object with an `op`".to_owned())),
        };
        let id = envelope.id.map(RawValue::get).filter(|id| is_id(id) && id.len() <= MESSAGE_ID_BYTES);
        let wrong = |detail: String| Box::new((id.map(ToOwned::to_owned), bad(detail)));
        match envelope.op.and_then(|op| serde_json::from_str::<String>(op.get()).ok()).as_deref() {
            Some(op) if OPS.contains(&op) => {}
            Some(op) => return Err(wrong(format!("there is no op `{op}`; known are {}", OPS.join(", ")))),
            None if envelope.op.is_none() && is_form_answer(text) => return Ok(None),
            None => return Err(wrong("the message has no `op`".to_owned())),
        }
        let read = serde_json::from_str(text).map(Some);
        read.map_err(|error| wrong(format!("the message cannot be read: {error}")))
    }

    /// Returns the id of a subscription or request: a string or a whole number, as JSON.
    pub(super) fn id(&self) -> Result<&str, Problem> {
        match self.id.as_ref().map(|id| id.get()).filter(|id| is_id(id)) {
            Some(id) if id.len() <= MESSAGE_ID_BYTES => Ok(id),
            Some(_) => Err(bad(format!("`id` has more than {MESSAGE_ID_BYTES} bytes"))),
            None => Err(bad(format!("`{}` needs an `id`: a string or a whole number", self.op))),
        }
    }

    pub(super) fn dialect(&self, allowed: &[Dialect]) -> Result<Option<Dialect>, Problem> {
        let Some(name) = &self.dialect else { return Ok(None) };
        let known = Dialect::from_name(name).filter(|dialect| allowed.contains(dialect));
        let names: Vec<_> = allowed.iter().map(|dialect| dialect.name()).collect();
        known.map(Some).ok_or_else(|| bad(format!("`dialect` is one of {}", names.join(", "))))
    }

    pub(super) fn options(&self) -> Result<EncoderOptions, Problem> {
        let fidelity = self.fidelity.as_deref().map_or(Some(Fidelity::default()), Fidelity::from_name);
        let slots = self.slots.as_deref().map_or(Some(Slots::default()), Slots::from_name);
        Ok(EncoderOptions {
            fidelity: fidelity.ok_or_else(|| bad("`fidelity` is `native` or `full`"))?,
            slots: slots.ok_or_else(|| bad("`slots` is `all`, `asks` or `none`"))?,
        })
    }

    pub(super) fn after(&self) -> Result<Option<FeedCursor>, Problem> {
        self.after.as_deref().map(after_of).transpose()
    }

    pub(super) fn attach(&self) -> Result<bool, Problem> {
        match self.attach.as_deref() {
            None => Ok(false),
            Some("snapshot") => Ok(true),
            Some(_) => Err(bad("`attach` is `snapshot`, or left out")),
        }
    }

    /// Returns the frames as a batch; their lines are their positions in the list, from 1.
    pub(super) fn frames(&self) -> FrameBatch {
        let mut batch = FrameBatch::default();
        for (at, frame) in self.frames.iter().enumerate() {
            batch.push(at as u64 + 1, None, frame.get().as_bytes());
        }
        batch
    }
}

/// Returns whether a message is an answer as EasyFlow's document has it (§12), in either case of its names.
fn is_form_answer(text: &str) -> bool {
    let has = |object: &Object<'_>, names: [&str; 2]| names.iter().any(|name| object.has(name));
    let message = serde_json::from_str::<&RawValue>(text).ok().and_then(Object::of);
    message.is_some_and(|message| {
        has(&message, ["conversation_id", "conversationId"]) && has(&message, ["form_id", "formId"])
    })
}

/// Returns true if a JSON text is a string or a whole number.
fn is_id(text: &str) -> bool {
    text.starts_with('"') || text.parse::<i64>().is_ok()
}

/// Creates a `bad_message` problem.
pub(super) fn bad(detail: impl Into<String>) -> Problem {
    Problem::new(ErrorCode::BadMessage, detail)
}

/// Writes `{op, id}`.
pub(super) fn signal(op: &str, id: Option<&str>) -> String {
    match id {
        Some(id) => format!(r#"{{"op":"{op}","id":{id}}}"#),
        None => format!(r#"{{"op":"{op}"}}"#),
    }
}

pub(super) fn acknowledgement(id: &str, appended: &Appended) -> String {
    let Appended { accepted, duplicates, last_seq, .. } = appended;
    format!(
        r#"{{"op":"ack","id":{id},"accepted":{accepted},"duplicates":{duplicates},"last_seq":{last_seq}}}"#
    )
}

pub(super) fn error(id: Option<&str>, problem: Problem) -> String {
    let members = problem.to_text();
    let id = id.map(|id| format!(r#""id":{id},"#)).unwrap_or_default();
    // The members are an object: its fields are spliced into this one.
    format!(r#"{{"op":"error",{id}{}"#, &members[1..])
}
