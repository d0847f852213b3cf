//! How answers and questions are put into words.

use runwire_client::{GivenAnswer, Json};
use serde_json::Value;

/// The longest value that is shown whole.
const SHOWN: usize = 2000;

/// Says the answer that a question has.
pub(super) fn given(answer: &GivenAnswer) -> String {
    let mut said = answer.decision.as_str().to_owned();
    if let Some(values) = answer.values.as_ref().map(Json::text) {
        said = format!("{said} {}", shortened(values));
    }
    if let Some(reason) = &answer.reason {
        said = format!("{said} ({})", shortened(reason));
    }
    if let Some(by) = &answer.by {
        said = format!("{said} by {by}");
    }
    said
}

/// Shows a value as a person would type it.
pub(super) fn typed(value: &Value) -> String {
    match value {
        Value::String(text) => shortened(text),
        Value::Array(items) if items.iter().all(|item| !item.is_array() && !item.is_object()) => {
            items.iter().map(typed).collect::<Vec<_>>().join(", ")
        }
        value => shortened(&value.to_string()),
    }
}

/// Cuts a text that is too long for a line or two.
pub(super) fn shortened(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}
