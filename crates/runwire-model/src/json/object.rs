//! Objects read one level deep.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::scan::{FrameFault, check_frame};
use super::{Json, ObjectWriter};
use crate::event::Extra;
use crate::limits;

/// A declared field that is missing or of the wrong type.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("field `{field}`: {problem}")]
pub struct FieldError {
    /// The field, with dots between the levels (`data.tool_id`).
    pub field: String,
    /// What is wrong with it, and what is expected.
    pub problem: String,
}

impl FieldError {
    /// Makes an error about a field.
    pub fn new(field: impl Into<String>, problem: impl Into<String>) -> Self {
        Self { field: field.into(), problem: problem.into() }
    }

    /// Puts the name of the object around the field's.
    #[must_use]
    pub fn inside(mut self, outer: &str) -> Self {
        self.field = format!("{outer}.{}", self.field);
        self
    }
}

/// A JSON object of a frame, read one level deep: each value is still the text it came in.
///
/// Fields are taken out by name; the rest are fields that the model does not know ([`Object::rest`]). Of a duplicate
/// key the last value counts.
///
/// ```
/// use runwire_model::json::Object;
///
/// let mut object = Object::parse(br#"{"type":"usage","total_tokens":162,"new":[1]}"#).unwrap();
/// assert_eq!(object.take_str("type").unwrap(), "usage");
/// assert_eq!(object.take_opt::<u64>("total_tokens").unwrap(), Some(162));
/// assert_eq!(object.rest().get("new").unwrap().text(), "[1]");
/// ```
#[derive(Debug, Clone, Default)]
pub struct Object<'a> {
    fields: Vec<(Cow<'a, str>, &'a RawValue)>,
    /// Whether ids may have any length: stored ones may, with the suffixes that were added to them.
    long_ids: bool,
    has_duplicate_keys: bool,
}

impl<'a> Object<'a> {
    /// Parses the bytes of a frame, which must be one JSON object within the limits.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, FrameFault> {
        Self::parse_checked(check_frame(bytes)?)
    }

    /// Parses a frame whose bytes were checked.
    pub(crate) fn parse_checked(text: &'a str) -> Result<Self, FrameFault> {
        Self::of_text(text).map_err(|error| match found(text) {
            Some(found) if !error.is_syntax() && !error.is_eof() => FrameFault::NotAnObject { found },
            _ => FrameFault::NotJson { reason: reason(&error) },
        })
    }

    pub(super) fn of_text(text: &'a str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }

    /// Reads an object that was written here and stored.
    pub fn of_stored(text: &'a str) -> Option<Self> {
        Self::of_text(text).ok().map(|object| Self { long_ids: true, ..object })
    }

    /// Reads a value as an object, if it is one.
    pub fn of(raw: &'a RawValue) -> Option<Self> {
        raw.get().starts_with('{').then(|| Self::of_text(raw.get()).ok()).flatten()
    }

    /// Reads a kept value as an object, if it is one.
    pub fn of_json(json: &'a Json) -> Option<Self> {
        json.is_object().then(|| Self::of_text(json.text()).ok()).flatten()
    }

    /// Returns true if the object has a field.
    pub fn has(&self, key: &str) -> bool {
        self.fields.iter().any(|(name, _)| name == key)
    }

    /// Returns a field without taking it.
    pub fn get(&self, key: &str) -> Option<&'a RawValue> {
        self.fields.iter().find(|(name, _)| name == key).map(|(_, value)| *value)
    }

    /// Returns a string field without taking it.
    pub fn get_str(&self, key: &str) -> Option<Cow<'a, str>> {
        self.get(key).and_then(read_str)
    }

    /// Lists the fields that were not taken, in their order.
    pub fn fields(&self) -> impl Iterator<Item = (&str, &'a RawValue)> {
        self.fields.iter().map(|(name, value)| (name.as_ref(), *value))
    }

    /// Lists the fields that are left, in their order.
    pub fn members(&self) -> impl Iterator<Item = (&Cow<'a, str>, &'a RawValue)> {
        self.fields.iter().map(|(name, value)| (name, *value))
    }

    /// Returns true if a key occurs twice.
    pub fn has_duplicate_keys(&self) -> bool {
        self.has_duplicate_keys
    }

    /// Takes a field.
    pub fn take(&mut self, key: &str) -> Option<&'a RawValue> {
        let at = self.fields.iter().position(|(name, _)| name == key)?;
        Some(self.fields.remove(at).1)
    }

    /// Takes a field; `null` counts as absent.
    pub fn take_present(&mut self, key: &str) -> Option<&'a RawValue> {
        self.take(key).filter(|raw| raw.get() != "null")
    }

    /// Takes a required string.
    pub fn take_str(&mut self, key: &str) -> Result<Cow<'a, str>, FieldError> {
        self.take_opt_str(key)?.ok_or_else(|| missing(key, "a string"))
    }

    /// Takes an optional string; `null` counts as absent.
    pub fn take_opt_str(&mut self, key: &str) -> Result<Option<Cow<'a, str>>, FieldError> {
        match self.take_present(key) {
            None => Ok(None),
            Some(raw) => read_str(raw).map(Some).ok_or_else(|| wrong(key, "a string", raw)),
        }
    }

    /// Takes an optional id or name; `null` counts as absent, a number as its digits.
    pub fn take_id(&mut self, key: &str) -> Result<Option<String>, FieldError> {
        let id = self.get_id(key);
        self.take(key);
        id
    }

    /// Returns an id or a name without taking it.
    pub fn get_id(&self, key: &str) -> Result<Option<String>, FieldError> {
        let Some(raw) = self.get(key).filter(|raw| raw.get() != "null") else { return Ok(None) };
        let id = match raw.get().as_bytes()[0] {
            b'0'..=b'9' => Cow::Borrowed(raw.get()),
            _ => read_str(raw).ok_or_else(|| wrong(key, "a string", raw))?,
        };
        if id.len() > limits::ID_BYTES && !self.long_ids {
            let problem = format!("has {} bytes; an id or a name has at most {}", id.len(), limits::ID_BYTES);
            return Err(FieldError::new(key, problem));
        }
        Ok(Some(id.into_owned()))
    }

    /// Takes a required id or name.
    pub fn take_required_id(&mut self, key: &str) -> Result<String, FieldError> {
        self.take_id(key)?.ok_or_else(|| missing(key, "a string"))
    }

    /// Takes an optional object; `null` counts as absent.
    pub fn take_object(&mut self, key: &str) -> Result<Option<Object<'a>>, FieldError> {
        match self.take_present(key) {
            None => Ok(None),
            Some(raw) => Object::of(raw).map(Some).ok_or_else(|| wrong(key, "an object", raw)),
        }
    }

    /// Takes a required value of any type; `null` is a value.
    pub fn take_json(&mut self, key: &str) -> Result<Json, FieldError> {
        self.take(key).map(Json::from_raw).ok_or_else(|| missing(key, "a JSON value"))
    }

    /// Takes a required field of a readable type.
    pub fn take_required<T: Field>(&mut self, key: &str) -> Result<T, FieldError> {
        match self.take_present(key) {
            None => Err(missing(key, T::EXPECTED)),
            Some(raw) => T::read(raw).map_err(|problem| problem.named(key, raw)),
        }
    }

    /// Takes an optional field of a readable type; `null` counts as absent.
    pub fn take_opt<T: Field>(&mut self, key: &str) -> Result<Option<T>, FieldError> {
        match self.take_present(key) {
            None => Ok(None),
            Some(raw) => T::read(raw).map(Some).map_err(|problem| problem.named(key, raw)),
        }
    }

    /// Renames a field.
    #[must_use]
    pub fn renamed(mut self, from: &str, to: &'static str) -> Self {
        if let Some(field) = self.fields.iter_mut().find(|(name, _)| name == from) {
            field.0 = Cow::Borrowed(to);
        }
        self
    }

    /// Returns the fields that were not taken.
    pub fn rest(self) -> Extra {
        let mut extra = Extra::default();
        for (name, raw) in self.fields {
            extra.set(name.into_owned(), Json::from_raw(raw));
        }
        extra
    }
}

impl<'de> Deserialize<'de> for Object<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields;
        impl<'de> Visitor<'de> for Fields {
            type Value = Object<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Object<'de>, A::Error> {
                let mut fields: Vec<(Cow<'de, str>, &'de RawValue)> = Vec::with_capacity(12);
                let mut has_duplicate_keys = false;
                while let Some((Key(name), value)) = map.next_entry::<Key<'de>, &'de RawValue>()? {
                    match fields.iter_mut().take(SMALL).find(|(history, _)| *history == name) {
                        Some(twice) => {
                            twice.1 = value;
                            has_duplicate_keys = true;
                        }
                        None => fields.push((name, value)),
                    }
                }
                if fields.len() > SMALL {
                    let all = fields.len();
                    fields = last_of_each(fields);
                    has_duplicate_keys |= fields.len() < all;
                }
                Ok(Object { fields, long_ids: false, has_duplicate_keys })
            }
        }
        deserializer.deserialize_map(Fields)
    }
}

/// Limits the objects whose keys are compared one by one to find duplicates.
const SMALL: usize = 32;

fn last_of_each<'a>(fields: Vec<(Cow<'a, str>, &'a RawValue)>) -> Vec<(Cow<'a, str>, &'a RawValue)> {
    let mut places = std::collections::HashMap::with_capacity(fields.len());
    let mut kept: Vec<(Cow<'a, str>, &'a RawValue)> = Vec::with_capacity(fields.len());
    for (name, value) in fields {
        match places.get(&name) {
            Some(&at) => {
                let twice: &mut (Cow<'a, str>, &'a RawValue) = &mut kept[at];
                twice.1 = value;
            }
            None => {
                places.insert(name.clone(), kept.len());
                kept.push((name, value));
            }
        }
    }
    kept
}

/// Returns the parser's message. Most frames are one line, so only the column is of use.
fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.rsplit_once(" at line ") {
        Some((problem, _)) if error.line() == 1 => format!("{problem} at column {}", error.column()),
        _ => text,
    }
}

/// A key, borrowed where it has no escapes.
struct Key<'a>(Cow<'a, str>);

impl<'de> Deserialize<'de> for Key<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl<'de> Visitor<'de> for Text {
            type Value = Key<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_str(Text)
    }
}

/// Reads a raw JSON string, borrowed where it has no escapes.
fn read_str(raw: &RawValue) -> Option<Cow<'_, str>> {
    let text = raw.get();
    let inner = text.strip_prefix('"')?.strip_suffix('"')?;
    if memchr::memchr(b'\\', inner.as_bytes()).is_none() {
        return Some(Cow::Borrowed(inner));
    }
    serde_json::from_str(text).ok().map(Cow::Owned)
}

fn missing(key: &str, expected: &str) -> FieldError {
    FieldError::new(key, format!("is missing; {expected} is required"))
}

fn wrong(key: &str, expected: &str, raw: &RawValue) -> FieldError {
    let is = found(raw.get()).unwrap_or("something else");
    FieldError::new(key, format!("must be {expected}, and is {is}"))
}

fn found(text: &str) -> Option<&'static str> {
    Some(match text.trim_start().as_bytes().first()? {
        b'{' => "an object",
        b'[' => "an array",
        b'"' => "a string",
        b't' | b'f' => "a boolean",
        b'n' => "null",
        b'-' | b'0'..=b'9' => "a number",
        _ => return None,
    })
}

/// Reason why a field could not be read.
pub enum FieldFault {
    /// It has another type; this one is expected.
    Type(&'static str),
    /// A field inside it is at fault.
    Inside(FieldError),
    /// It has the right type, but not an allowed value.
    Value(String),
}

impl FieldFault {
    fn named(self, key: &str, raw: &RawValue) -> FieldError {
        match self {
            Self::Type(expected) => wrong(key, expected, raw),
            Self::Inside(error) => error.inside(key),
            Self::Value(problem) => FieldError::new(key, problem),
        }
    }
}

/// A type of fields.
pub trait Field: Sized {
    /// Expected type, for messages.
    const EXPECTED: &'static str;

    /// Reads the value.
    fn read(raw: &RawValue) -> Result<Self, FieldFault>;

    /// Writes the value under a name.
    fn write(&self, key: &str, object: &mut ObjectWriter<'_>);
}

impl Field for String {
    const EXPECTED: &'static str = "a string";

    fn read(raw: &RawValue) -> Result<Self, FieldFault> {
        read_str(raw).map(Cow::into_owned).ok_or(FieldFault::Type(Self::EXPECTED))
    }

    fn write(&self, key: &str, object: &mut ObjectWriter<'_>) {
        object.str(key, self);
    }
}

impl Field for u64 {
    const EXPECTED: &'static str = "a whole number from 0 to 2^64 - 1";

    fn read(raw: &RawValue) -> Result<Self, FieldFault> {
        if let Ok(number) = raw.get().parse() {
            return Ok(number);
        }
        match raw.get().parse::<f64>() {
            Ok(number) if number >= 0.0 && number.fract() == 0.0 && number < 9.007_199_254_740_992e15 => {
                Ok(number as u64)
            }
            _ => Err(FieldFault::Type(Self::EXPECTED)),
        }
    }

    fn write(&self, key: &str, object: &mut ObjectWriter<'_>) {
        object.u64(key, *self);
    }
}

impl Field for f64 {
    const EXPECTED: &'static str = "a number";

    fn read(raw: &RawValue) -> Result<Self, FieldFault> {
        match serde_json::from_str::<f64>(raw.get()) {
            Ok(number) if number.is_finite() => Ok(number),
            _ => Err(FieldFault::Type(Self::EXPECTED)),
        }
    }

    fn write(&self, key: &str, object: &mut ObjectWriter<'_>) {
        object.f64(key, *self);
    }
}

impl Field for bool {
    const EXPECTED: &'static str = "true or false";

    fn read(raw: &RawValue) -> Result<Self, FieldFault> {
        match raw.get() {
            "true" => Ok(true),
            "false" => Ok(false),
            _ => Err(FieldFault::Type(Self::EXPECTED)),
        }
    }

    fn write(&self, key: &str, object: &mut ObjectWriter<'_>) {
        object.bool(key, *self);
    }
}

impl Field for Json {
    const EXPECTED: &'static str = "a JSON value";

    fn read(raw: &RawValue) -> Result<Self, FieldFault> {
        Ok(Json::from_raw(raw))
    }

    fn write(&self, key: &str, object: &mut ObjectWriter<'_>) {
        object.json(key, self);
    }
}

impl Field for Vec<String> {
    const EXPECTED: &'static str = "an array of strings";

    fn read(raw: &RawValue) -> Result<Self, FieldFault> {
        serde_json::from_str(raw.get()).map_err(|_| FieldFault::Type(Self::EXPECTED))
    }

    fn write(&self, key: &str, object: &mut ObjectWriter<'_>) {
        object.array(key, self, |out, text| super::write_str(out, text));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_stands_twice_counts_once_with_its_last_value() {
        let mut object = Object::parse(br#"{"a":1,"b":2,"a":3}"#).unwrap();
        assert_eq!(object.take_opt::<u64>("a").unwrap(), Some(3));
        assert!(!object.has("a") && object.has_duplicate_keys());

        let many: Vec<String> = (0..100).chain(0..100).map(|n| format!("\"k{n}\":{n}")).collect();
        let text = format!("{{{}}}", many.join(","));
        let object = Object::parse(text.as_bytes()).unwrap();
        assert!(object.fields().count() == 100 && object.has_duplicate_keys());
        assert!(!Object::parse(br#"{"a":1,"b":{"a":1,"a":2}}"#).unwrap().has_duplicate_keys());
    }

    #[test]
    fn what_is_no_object_is_named() {
        assert_eq!(Object::parse(b"[1]").unwrap_err(), FrameFault::NotAnObject { found: "an array" });
        assert_eq!(Object::parse(b"\"x\"").unwrap_err(), FrameFault::NotAnObject { found: "a string" });
        assert!(matches!(Object::parse(b"{\"a\":").unwrap_err(), FrameFault::NotJson { .. }));
        assert!(matches!(Object::parse(b"").unwrap_err(), FrameFault::NotJson { .. }));
        assert!(matches!(Object::parse(b"{\"a\":\0}").unwrap_err(), FrameFault::NotJson { .. }));
    }

    #[test]
    fn null_is_absent_for_declared_fields_and_a_value_for_any_json() {
        let mut object = Object::parse(br#"{"a":null,"b":null}"#).unwrap();
        assert_eq!(object.take_opt_str("a").unwrap(), None);
        assert!(object.take_json("b").unwrap().is_null());
    }

    #[test]
    fn a_wrong_type_says_what_is_expected_and_what_it_is() {
        let mut object = Object::parse(br#"{"a":1,"n":123456789012345678901234567890}"#).unwrap();
        assert_eq!(
            object.take_str("a").unwrap_err().to_string(),
            "field `a`: must be a string, and is a number"
        );
        assert!(object.take_opt::<u64>("n").is_err());
    }
}
