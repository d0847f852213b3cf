//! A JSON value that stays text.

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::Object;
use super::write::write_str;
use crate::limits;

/// A JSON value, kept as the text it came in.
///
/// Numbers keep their digits, objects their order. The text holds no line break, so that it can be
/// copied into a line of NDJSON or a `data:` line of SSE as it is.
///
/// ```
/// use runwire_model::Json;
///
/// let big = Json::parse("{\"n\": 123456789012345678901234567890}").unwrap();
/// assert_eq!(big.text(), "{\"n\": 123456789012345678901234567890}");
/// assert!(Json::parse("{").is_err());
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Json(Box<str>);

impl Json {
    /// Parses a text that must be exactly one JSON value.
    pub fn parse(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str::<&RawValue>(text).map(Self::from_raw)
    }

    /// Copies a value out of a parsed frame.
    pub fn from_raw(raw: &RawValue) -> Self {
        Self::from_valid(raw.get())
    }

    /// Makes a value of a text that is known to be JSON.
    pub(crate) fn from_valid(text: &str) -> Self {
        if memchr::memchr2(b'\n', b'\r', text.as_bytes()).is_some() {
            return Self(join_lines(text).into_boxed_str());
        }
        Self(text.into())
    }

    /// Makes a value of bytes that this crate wrote as JSON.
    pub(crate) fn from_written(bytes: Vec<u8>) -> Self {
        Self(String::from_utf8(bytes).unwrap_or_default().into_boxed_str())
    }

    /// Makes a JSON string.
    pub fn string(text: &str) -> Self {
        let mut out = Vec::with_capacity(text.len() + 2);
        write_str(&mut out, text);
        Self::from_written(out)
    }

    /// Makes `null`.
    pub fn null() -> Self {
        Self("null".into())
    }

    /// Makes `{}`.
    pub fn empty_object() -> Self {
        Self("{}".into())
    }

    /// Returns the value's JSON text.
    pub fn text(&self) -> &str {
        &self.0
    }

    /// Returns whether the value is `null`.
    pub fn is_null(&self) -> bool {
        &*self.0 == "null"
    }

    /// Returns whether the value is an object.
    pub fn is_object(&self) -> bool {
        self.0.starts_with('{')
    }

    /// Returns the value of a JSON string, and nothing for any other value.
    pub fn as_string(&self) -> Option<Cow<'_, str>> {
        if !self.0.starts_with('"') {
            return None;
        }
        let inner = &self.0[1..self.0.len() - 1];
        if memchr::memchr(b'\\', inner.as_bytes()).is_none() {
            return Some(Cow::Borrowed(inner));
        }
        serde_json::from_str(&self.0).ok().map(Cow::Owned)
    }

    /// Returns the text form of the value: a string's content, any other value's compact JSON.
    pub fn text_form(&self) -> Cow<'_, str> {
        if let Some(content) = self.as_string() {
            return content;
        }
        // Most values are compact already, and need not be parsed.
        if !self.0.contains(' ') {
            return Cow::Borrowed(&self.0);
        }
        match serde_json::from_str::<serde_json::Value>(&self.0) {
            Ok(value) => Cow::Owned(value.to_string()),
            Err(_) => Cow::Borrowed(&self.0),
        }
    }

    /// Parses the value into a tree, for the few uses that look inside.
    ///
    /// Fails where the text holds something that a tree cannot, such as a number beyond `f64`.
    ///
    /// ```
    /// use runwire_model::Json;
    ///
    /// let error = Json::parse(r#"{"a": [1, 1e999]}"#).unwrap().to_value().unwrap_err();
    /// assert_eq!(error.to_string(), "/a/1: number out of range");
    /// ```
    pub fn to_value(&self) -> Result<serde_json::Value, ValueError> {
        serde_json::from_str(&self.0).map_err(|error| ValueError::locate(&self.0, error))
    }

    /// Returns whether two texts mean the same value, however they are laid out.
    pub fn is_same_value(&self, other: &Self) -> bool {
        self == other || self.to_value().is_ok_and(|value| other.to_value().is_ok_and(|other| value == other))
    }

    /// Takes a tree's text.
    pub fn from_value(value: &serde_json::Value) -> Self {
        Self(value.to_string().into_boxed_str())
    }
}

/// A part of a JSON text that a tree cannot hold.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: {problem}", if pointer.is_empty() { "the value" } else { pointer })]
pub struct ValueError {
    /// JSON pointer to the part.
    pub pointer: String,
    /// What is wrong with it.
    pub problem: String,
}

impl ValueError {
    /// Finds the innermost part of a text that cannot be parsed into a tree.
    fn locate(text: &str, error: serde_json::Error) -> Self {
        let (mut text, mut error, mut pointer) = (text, error, String::new());
        for _ in 0..limits::JSON_DEPTH {
            let inner = parts(text).into_iter().find_map(|(name, part)| {
                let error = serde_json::from_str::<serde_json::Value>(part.get()).err()?;
                Some((name, part.get(), error))
            });
            let Some((name, part, inner)) = inner else { break };
            pointer.push('/');
            pointer.push_str(&name.replace('~', "~0").replace('/', "~1"));
            (text, error) = (part, inner);
        }
        let problem = error.to_string();
        let problem = problem.split(" at line ").next().unwrap_or_default().to_owned();
        Self { pointer, problem }
    }
}

/// Lists the members of an object or the items of an array, with their names in a JSON pointer.
fn parts(text: &str) -> Vec<(Cow<'_, str>, &RawValue)> {
    if let Ok(items) = serde_json::from_str::<Vec<&RawValue>>(text) {
        return items.into_iter().enumerate().map(|(at, item)| (at.to_string().into(), item)).collect();
    }
    let members = Object::of_text(text).unwrap_or_default();
    members.fields().map(|(name, value)| (name.to_owned().into(), value)).collect()
}

impl Default for Json {
    fn default() -> Self {
        Self::null()
    }
}

impl std::fmt::Debug for Json {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl serde::Serialize for Json {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match RawValue::from_string(self.0.clone().into_string()) {
            Ok(raw) => raw.serialize(serializer),
            Err(error) => Err(serde::ser::Error::custom(error)),
        }
    }
}

impl<'de> serde::Deserialize<'de> for Json {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Box::<RawValue>::deserialize(deserializer).map(|raw| Self::from_raw(&raw))
    }
}

/// Replaces line breaks by spaces. Inside strings JSON has none, so only white space is touched.
fn join_lines(text: &str) -> String {
    text.chars().filter(|c| *c != '\r').map(|c| if c == '\n' { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_tree_cannot_hold_is_an_error_with_its_place() {
        for (text, pointer) in [
            ("1e999", ""),
            ("[0,-1e999]", "/1"),
            (r#"{"a":{"b/c":[{},{"d~":1e400}]}}"#, "/a/b~1c/1/d~0"),
            // The second one counts, but the first is no number either.
            (r#"{"a":1e999,"a":1}"#, ""),
            (r#"{"a":"\ud800"}"#, "/a"),
        ] {
            assert_eq!(Json::parse(text).unwrap().to_value().unwrap_err().pointer, pointer, "{text}");
        }
        let deep = format!("{}1e999{}", "[".repeat(1000), "]".repeat(1000));
        assert!(Json::parse(&deep).unwrap().to_value().is_err());
    }

    #[test]
    fn the_same_value_may_be_laid_out_differently() {
        let same = |one, other| Json::parse(one).unwrap().is_same_value(&Json::parse(other).unwrap());
        assert!(same(r#"{"a":1,"b":2}"#, r#"{ "b": 2, "a": 1 }"#));
        assert!(same("1e999", "1e999"));
        assert!(!same("1e999", "null") && !same("1e999", "1e998") && !same("1", "2"));
    }
}
