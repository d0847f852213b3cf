//! Which dialect a stream speaks, judged by its first frames.

use super::Dialect;
use crate::json::Object;

/// A frame that could be of several dialects, or of none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Ambiguous(String);

impl Ambiguous {
    /// Tells the stable code.
    pub fn code(&self) -> &'static str {
        "dialect_ambiguous"
    }
}

const LOOM_TYPES: &[&str] = &[
    "run_start",
    "node_enter",
    "node_exit",
    "message_chunk",
    "thought_chunk",
    "usage",
    "values",
    "updates",
    "custom",
    "checkpoint",
    "tot_expand",
    "tot_evaluate",
    "tot_backtrack",
    "got_plan",
    "got_node_start",
    "got_node_complete",
    "got_node_failed",
    "got_expand",
    "tool_call_chunk",
    "tool_call",
    "tool_start",
    "tool_output",
    "tool_end",
    "tool_approval",
];

/// Finds the dialect of a stream's first frame.
///
/// `text` is never guessed. A stream of AG-UI may turn out to be social-app's later; the decoder sees to it.
///
/// ```
/// use runwire_model::dialect::{Dialect, detect};
/// use runwire_model::json::Object;
///
/// let frame = Object::parse(br#"{"type":"node_enter","id":"think"}"#).unwrap();
/// assert_eq!(detect(&frame), Ok(Dialect::Loom));
/// ```
pub fn detect(object: &Object<'_>) -> Result<Dialect, Ambiguous> {
    let kind = object.get_str("type");
    let kind = kind.as_deref();
    let has = |key: &str| object.has(key);
    if has("protocol") || has("domain") {
        return Ok(Dialect::EasyflowChat);
    }
    if (has("seq") && has("at")) || kind.is_some_and(|kind| kind.contains('.')) {
        return Ok(Dialect::Runwire);
    }
    if kind.is_some_and(is_upper_snake) {
        return Ok(if super::social_app::shows(object) { Dialect::SocialApp } else { Dialect::AgUi });
    }
    if has("run_id") && has("timestamp") && has("data") {
        return Ok(Dialect::Agio);
    }
    if has("data") && has("metadata") {
        return Ok(Dialect::StreamingEngine);
    }
    let data = object.get("data").and_then(Object::of);
    let tool_id = has("tool_id") || data.is_some_and(|data| data.has("tool_id"));
    if tool_id || matches!(kind, Some("token" | "final_answer" | "done")) {
        return Ok(Dialect::StreamingEngine);
    }
    let mut fields = object.fields();
    if let (Some((key, _)), None) = (fields.next(), fields.next())
        && is_camel(key)
    {
        return Ok(Dialect::LoomExport);
    }
    if has("reply") || kind.is_some_and(|kind| LOOM_TYPES.contains(&kind)) {
        return Ok(Dialect::Loom);
    }
    let shown = match kind {
        Some(kind) => format!("type `{kind}`"),
        None => format!(
            "the keys {}",
            object.fields().map(|(key, _)| format!("`{key}`")).take(8).collect::<Vec<_>>().join(", ")
        ),
    };
    Err(Ambiguous(format!(
        "cannot tell the dialect of a first frame with {shown}; name it, one of: {}",
        Dialect::READABLE.map(Dialect::name).join(", ")
    )))
}

fn is_upper_snake(kind: &str) -> bool {
    let mut bytes = kind.bytes();
    bytes.next().is_some_and(|byte| byte.is_ascii_uppercase())
        && kind.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_' || byte.is_ascii_digit())
}

fn is_camel(key: &str) -> bool {
    key.bytes().next().is_some_and(|byte| byte.is_ascii_uppercase())
        && key.bytes().any(|byte| byte.is_ascii_lowercase())
        && key.bytes().all(|byte| byte.is_ascii_alphanumeric())
}
