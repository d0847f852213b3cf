//! A JSON value that stays text.

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::write::write_str;

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

    /// Takes a text that is known to be one JSON value.
    pub(crate) fn from_valid(text: &str) -> Self {
        if memchr::memchr2(b'\n', b'\r', text.as_bytes()).is_some() {
            return Self(join_lines(text).into_boxed_str());
        }
        Self(text.into())
    }

    /// Takes bytes that this crate wrote as one JSON value.
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

    /// Tells the value's JSON text.
    pub fn text(&self) -> &str {
        &self.0
    }

    /// Tells whether the value is `null`.
    pub fn is_null(&self) -> bool {
        &*self.0 == "null"
    }

    /// Tells whether the value is an object.
    pub fn is_object(&self) -> bool {
        self.0.starts_with('{')
    }

    /// Tells the value of a JSON string, and nothing for any other value.
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

    /// Tells the text form of the value: a string's content, any other value's compact JSON.
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

    /// Builds the tree, for the few places that must look inside.
    pub fn to_value(&self) -> serde_json::Value {
        serde_json::from_str(&self.0).unwrap_or(serde_json::Value::Null)
    }

    /// Takes a tree's text.
    pub fn from_value(value: &serde_json::Value) -> Self {
        Self(value.to_string().into_boxed_str())
    }
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
