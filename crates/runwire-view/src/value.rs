//! Short text of values: arguments, results, durations, counts.

use runwire_model::Json;
use serde_json::Value;

use super::sanitize::cut;

/// Limits the bytes of a value: only one line is shown.
const VALUE_BYTES: usize = 2000;

/// Formats a value on one line: a string as its text, anything else as JSON.
pub(super) fn short(json: &Json) -> String {
    let text = match json.as_string() {
        Some(text) => text,
        None => json.text().into(),
    };
    let text = text.trim();
    let shown = cut(text, VALUE_BYTES);
    if shown.len() < text.len() { format!("{shown}…") } else { shown.to_owned() }
}

/// Formats a parsed value on one line.
pub(super) fn short_value(value: &Value) -> String {
    let text = match value {
        Value::String(text) => text.trim().to_owned(),
        Value::Null => String::new(),
        other => other.to_string(),
    };
    let shown = cut(&text, VALUE_BYTES);
    if shown.len() < text.len() { format!("{shown}…") } else { text }
}

/// Formats the arguments of a call: `city: Paris, days: 3`.
pub(super) fn arguments(json: &Json) -> String {
    let Ok(Value::Object(object)) = json.to_value() else { return short(json) };
    let mut shown = String::new();
    for (name, value) in &object {
        if shown.len() > VALUE_BYTES {
            break;
        }
        if !shown.is_empty() {
            shown.push_str(", ");
        }
        shown.push_str(cut(name, 200));
        shown.push_str(": ");
        shown.push_str(cut(&short_value(value), 400));
    }
    shown
}

/// Returns the first of these members that is a non-empty string.
pub(super) fn first_text<'v>(value: &'v Value, names: &[&str]) -> Option<&'v str> {
    names.iter().filter_map(|name| value.get(name)?.as_str()).find(|text| !text.trim().is_empty())
}

/// Formats milliseconds in the two largest units.
pub(super) fn span(millis: u64) -> String {
    let seconds = millis / 1000;
    match seconds {
        0 => format!("{millis}ms"),
        1..60 => format!("{seconds}.{}s", millis % 1000 / 100),
        60..3600 => format!("{}m {}s", seconds / 60, seconds % 60),
        3600..86_400 => format!("{}h {}m", seconds / 3600, seconds % 3600 / 60),
        _ => format!("{}d {}h", seconds / 86_400, seconds % 86_400 / 3600),
    }
}

/// Formats a source's duration in milliseconds.
pub(super) fn source_span(millis: f64) -> Option<String> {
    (millis.is_finite() && millis >= 0.0).then(|| span(millis.round() as u64))
}

/// Formats a count: `1 token`, `1,234 tokens`.
pub(super) fn counted(count: u64, one: &str) -> String {
    let digits = count.to_string();
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    format!("{grouped} {one}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_shown_as_people_say_them() {
        let json = |text| Json::parse(text).unwrap();
        assert_eq!(
            arguments(&json(r#"{"city":"巴黎","days":3,"tags":["a"]}"#)),
            r#"city: 巴黎, days: 3, tags: ["a"]"#
        );
        assert_eq!(arguments(&json("{}")), "");
        assert_eq!(short(&json("\"done\\n\"")), "done");
        assert_eq!(counted(1, "token"), "1 token");
        assert_eq!(counted(1_234_567, "token"), "1,234,567 tokens");
        assert_eq!(source_span(812.5).unwrap(), "813ms");
        assert_eq!(source_span(-1.0), None);
        assert_eq!(span(61_000), "1m 1s");
        let huge = format!("\"{}\"", "天".repeat(100_000));
        assert!(short(&json(&huge)).len() < 3000);
    }
}
