//! Text of answers and values for the terminal.

use runwire_client::{GivenAnswer, Json};
use serde_json::Value;

/// Longer texts are truncated.
const MAX_CHARACTERS: usize = 2000;

/// Formats an answer on one line.
pub(super) fn format_answer(answer: &GivenAnswer) -> String {
    let mut text = answer.decision.as_str().to_owned();
    if let Some(values) = answer.values.as_ref().map(Json::text) {
        text = format!("{text} {}", shortened(values));
    }
    if let Some(reason) = &answer.reason {
        text = format!("{text} ({})", shortened(reason));
    }
    if let Some(by) = &answer.by {
        text = format!("{text} by {by}");
    }
    text
}

/// Formats a value as a person would type it.
pub(super) fn shown_value(value: &Value) -> String {
    match value {
        Value::String(text) => shortened(text),
        Value::Array(items) if items.iter().all(|item| !item.is_array() && !item.is_object()) => {
            items.iter().map(shown_value).collect::<Vec<_>>().join(", ")
        }
        value => shortened(&value.to_string()),
    }
}

/// Truncates a long text.
pub(super) fn shortened(text: &str) -> String {
    match text.char_indices().nth(MAX_CHARACTERS) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}
