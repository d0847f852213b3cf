//! Finds duplicate keys, which readers of JSON treat differently.

use std::collections::HashSet;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// Returns the first duplicate key, as a JSON pointer.
pub(crate) fn doubled(data: &[u8]) -> Option<String> {
    let mut deserializer = serde_json::Deserializer::from_slice(data);
    // The frame's nesting has been checked before.
    deserializer.disable_recursion_limit();
    let mut found = None;
    // A doubled key ends the walk by an error; anything else that is wrong is told elsewhere.
    let _ = Walk { path: String::new(), found: &mut found }.deserialize(&mut deserializer);
    found
}

/// Escapes a key for a JSON pointer.
pub(crate) fn escaped(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

struct Walk<'f> {
    path: String,
    found: &'f mut Option<String>,
}

impl<'de> DeserializeSeed<'de> for Walk<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Walk<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut keys = HashSet::new();
        while let Some(key) = map.next_key::<String>()? {
            let path = format!("{}/{}", self.path, escaped(&key));
            if !keys.insert(key) {
                *self.found = Some(path);
                return Err(A::Error::custom("a key stands twice"));
            }
            map.next_value_seed(Walk { path, found: &mut *self.found })?;
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        for index in 0usize.. {
            let path = format!("{}/{index}", self.path);
            if items.next_element_seed(Walk { path, found: &mut *self.found })?.is_none() {
                break;
            }
        }
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        IgnoredAny.visit_newtype_struct(deserializer).map(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_stands_twice_is_found_at_any_depth() {
        assert_eq!(doubled(br#"{"a":1,"b":{"a":2}}"#), None);
        assert_eq!(doubled(br#"{"a":1,"a":2}"#).as_deref(), Some("/a"));
        assert_eq!(doubled(br#"{"a":[{}, {"b":{"c":1,"c":1}}]}"#).as_deref(), Some("/a/1/b/c"));
    }
}
