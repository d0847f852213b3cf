//! The fields of a form, derived from its JSON Schema, and the parsing of typed values.

use runwire_client::Interaction;
use runwire_server::interactions::AnswerSchema;
use serde_json::{Map, Value, json};

use super::text::shown_value;

/// Limits the fields of a prompt; a larger form needs `--values`.
const MAX_FIELDS: usize = 200;
/// Limits the nesting of fields; deeper objects are typed as JSON.
const MAX_NESTING: usize = 4;
/// Limits the chain of `$ref`s.
const MAX_REFERENCES: usize = 16;

/// A form: its schema and fields.
pub(super) struct AnswerForm {
    root: Value,
    pub(super) fields: Vec<FormField>,
}

/// A field of a form.
pub(super) struct FormField {
    /// Its path of property names.
    pub(super) path: Vec<String>,
    pub(super) required: bool,
    /// Its schema, with references resolved.
    schema: Value,
}

/// The type of a field's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FieldKind {
    Text,
    Integer,
    Number,
    Boolean,
    List,
    Json,
}

impl AnswerForm {
    pub(super) fn of(interaction: &Interaction) -> Self {
        // An invalid schema is left to the server.
        let root = interaction.schema.as_ref().and_then(|schema| schema.to_value().ok());
        let root = root.unwrap_or_else(|| json!({}));
        let mut form = Self { root, fields: Vec::new() };
        let root = form.resolve(&form.root.clone());
        form.gather(&root, &[], true);
        form
    }

    /// Resolves `$ref`s within the schema.
    fn resolve(&self, schema: &Value) -> Value {
        let mut schema = schema;
        for _ in 0..MAX_REFERENCES {
            let target =
                schema.get("$ref").and_then(Value::as_str).and_then(|target| target.strip_prefix('#'));
            match target.and_then(|target| self.root.pointer(target)) {
                Some(next) => schema = next,
                None => break,
            }
        }
        schema.clone()
    }

    fn gather(&mut self, schema: &Value, path: &[String], needed: bool) {
        let Some(Value::Object(properties)) = schema.get("properties") else { return };
        let required = schema.get("required").and_then(Value::as_array);
        for (name, property) in properties {
            let property = self.resolve(property);
            let path = [path, std::slice::from_ref(name)].concat();
            let required = needed && required.is_some_and(|names| names.iter().any(|one| one == name));
            let is_object = property
                .get("properties")
                .is_some_and(|inner| inner.as_object().is_some_and(|all| !all.is_empty()));
            if is_object && path.len() <= MAX_NESTING {
                self.gather(&property, &path, required);
            } else if self.fields.len() < MAX_FIELDS {
                self.fields.push(FormField { path, required, schema: property });
            }
        }
    }

    /// Sets a field given on the command line: `name`, or `outer.inner`.
    pub(super) fn set(&self, values: &mut Map<String, Value>, name: &str, text: &str) -> Result<(), String> {
        let known = self.fields.iter().find(|field| field.path.join(".") == name || field.path == [name]);
        let (path, value) = match known {
            Some(field) => (field.path.clone(), field.read(text)?),
            // An unknown field is parsed by its look; the server validates it.
            None => (vec![name.to_owned()], guessed(text)),
        };
        put(values, &path, value);
        Ok(())
    }

    /// Finds the field that a JSON pointer refers to.
    pub(super) fn field_at(&self, pointer: &str) -> Option<usize> {
        let names: Vec<String> =
            pointer.split('/').skip(1).map(|name| name.replace("~1", "/").replace("~0", "~")).collect();
        let leads = |field: &FormField| {
            let common = field.path.len().min(names.len());
            common > 0 && field.path[..common] == names[..common]
        };
        self.fields.iter().position(leads)
    }

    /// Returns why a value is invalid for a field.
    pub(super) fn wrong(&self, field: &FormField, value: &Value) -> Option<String> {
        let mut alone = json!({"allOf": [field.schema]});
        for shared in ["$schema", "$defs", "definitions"] {
            if let Some(part) = self.root.get(shared) {
                alone[shared] = part.clone();
            }
        }
        // An error of compilation is found when the whole form is validated.
        let found = AnswerSchema::compile(alone).and_then(|schema| schema.check(value)).unwrap_or_default();
        let first = found.into_iter().next()?;
        Some(if first.pointer.is_empty() {
            first.message
        } else {
            format!("{}: {}", first.pointer, first.message)
        })
    }

    /// Validates all values; returns pointers and messages.
    pub(super) fn check(&self, values: &Value) -> Vec<(String, String)> {
        let found = AnswerSchema::compile(self.root.clone()).and_then(|schema| schema.check(values));
        found.unwrap_or_default().into_iter().map(|wrong| (wrong.pointer, wrong.message)).collect()
    }
}

/// Sets the value at a path.
pub(super) fn put(values: &mut Map<String, Value>, path: &[String], value: Value) {
    match path {
        [] => {}
        [name] => drop(values.insert(name.clone(), value)),
        [name, rest @ ..] => {
            let inner = values.entry(name.clone()).or_insert_with(|| Value::Object(Map::new()));
            if let Value::Object(inner) = inner {
                put(inner, rest, value);
            }
        }
    }
}

/// Removes the value at a path, and objects that become empty.
pub(super) fn remove(values: &mut Map<String, Value>, path: &[String]) {
    match path {
        [] => {}
        [name] => drop(values.shift_remove(name)),
        [name, rest @ ..] => {
            if let Some(Value::Object(inner)) = values.get_mut(name) {
                remove(inner, rest);
                if inner.is_empty() {
                    values.shift_remove(name);
                }
            }
        }
    }
}

impl FormField {
    pub(super) fn name(&self) -> String {
        self.path.join(".")
    }

    pub(super) fn text(&self, key: &str) -> Option<&str> {
        self.schema.get(key).and_then(Value::as_str)
    }

    pub(super) fn default(&self) -> Option<&Value> {
        self.schema.get("default")
    }

    /// Returns the choices: values and titles.
    pub(super) fn choices(&self) -> Vec<(Value, String)> {
        let schema =
            if self.kind() == FieldKind::List { self.schema.get("items") } else { Some(&self.schema) };
        let Some(schema) = schema else { return Vec::new() };
        if let Some(Value::Array(listed)) = schema.get("enum") {
            return listed.iter().map(|choice| (choice.clone(), shown_value(choice))).collect();
        }
        let titled = ["oneOf", "anyOf"].iter().find_map(|key| schema.get(*key)?.as_array());
        let choice = |choice: &Value| {
            let value = choice.get("const")?;
            let title =
                choice.get("title").and_then(Value::as_str).map_or_else(|| shown_value(value), str::to_owned);
            Some((value.clone(), title))
        };
        let all: Option<Vec<_>> =
            titled.map(|titled| titled.iter().map(choice).collect()).unwrap_or_default();
        all.unwrap_or_default()
    }

    /// Returns a description of the expected value.
    pub(super) fn expects(&self) -> String {
        let kind = match self.kind() {
            FieldKind::Text => "text",
            FieldKind::Integer => "whole number",
            FieldKind::Number => "number",
            FieldKind::Boolean => "yes or no",
            FieldKind::List => "list, with commas between",
            FieldKind::Json => "JSON",
        };
        match self.text("format") {
            Some(format) => format.to_owned(),
            None => kind.to_owned(),
        }
    }

    /// Parses a value of the command line.
    pub(super) fn read(&self, text: &str) -> Result<Value, String> {
        self.read_with(text, chosen)
    }

    /// Parses a typed value, where choices are shown with numbers.
    pub(super) fn read_typed(&self, text: &str) -> Result<Value, String> {
        // A choice that is a number is matched by value first.
        self.read_with(text, |text, choices| chosen(text, choices).or_else(|| numbered(text, choices)))
    }

    fn read_with(
        &self,
        text: &str,
        choose: impl Fn(&str, &[(Value, String)]) -> Option<Value>,
    ) -> Result<Value, String> {
        let choices = self.choices();
        if self.kind() != FieldKind::List {
            return choose(text, &choices).map_or_else(|| read_as(self.kind(), text), Ok);
        }
        if let Ok(Value::Array(items)) = serde_json::from_str(text) {
            return Ok(Value::Array(items));
        }
        let kind = self.schema.get("items").map_or(FieldKind::Text, kind_of);
        let items = text.split(',').map(str::trim).filter(|item| !item.is_empty());
        items.map(|item| choose(item, &choices).map_or_else(|| read_as(kind, item), Ok)).collect()
    }

    fn kind(&self) -> FieldKind {
        kind_of(&self.schema)
    }
}

/// Finds a choice by its value or its title.
fn chosen(text: &str, choices: &[(Value, String)]) -> Option<Value> {
    let is_chosen = |(value, title): &&(Value, String)| shown_value(value) == text || title == text;
    choices.iter().find(is_chosen).map(|(value, _)| value.clone())
}

/// Finds a choice by its number, from 1.
fn numbered(text: &str, choices: &[(Value, String)]) -> Option<Value> {
    let at: usize = text.parse().ok()?;
    choices.get(at.checked_sub(1)?).map(|(value, _)| value.clone())
}

fn kind_of(schema: &Value) -> FieldKind {
    let words: Vec<&str> = match schema.get("type") {
        Some(Value::String(word)) => vec![word],
        Some(Value::Array(words)) => words.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    match words.iter().find(|word| **word != "null") {
        Some(&"string") => FieldKind::Text,
        Some(&"integer") => FieldKind::Integer,
        Some(&"number") => FieldKind::Number,
        Some(&"boolean") => FieldKind::Boolean,
        Some(&"array") => FieldKind::List,
        Some(_) => FieldKind::Json,
        // Without a type, these keywords suggest a string.
        None if ["enum", "oneOf", "anyOf", "const", "pattern", "format", "minLength", "maxLength"]
            .iter()
            .any(|key| schema.get(*key).is_some()) =>
        {
            FieldKind::Text
        }
        None => FieldKind::Json,
    }
}

fn read_as(kind: FieldKind, text: &str) -> Result<Value, String> {
    let json = || serde_json::from_str::<Value>(text);
    match kind {
        FieldKind::Text => Ok(Value::String(text.to_owned())),
        FieldKind::Integer | FieldKind::Number => match json() {
            Ok(number @ Value::Number(_)) => Ok(number),
            _ => Err("is no number".to_owned()),
        },
        FieldKind::Boolean => match text.to_lowercase().as_str() {
            "true" | "yes" | "y" | "是" => Ok(true.into()),
            "false" | "no" | "n" | "否" => Ok(false.into()),
            _ => Err("is neither yes nor no".to_owned()),
        },
        FieldKind::List | FieldKind::Json => Ok(guessed(text)),
    }
}

/// Parses JSON; anything else is a string.
fn guessed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(schema: Value) -> AnswerForm {
        let mut form = AnswerForm { root: schema, fields: Vec::new() };
        let root = form.resolve(&form.root.clone());
        form.gather(&root, &[], true);
        form
    }

    fn filled(form: &AnswerForm, words: &[(&str, &str)]) -> Result<Value, String> {
        let mut values = Map::new();
        for (name, text) in words {
            form.set(&mut values, name, text)?;
        }
        Ok(Value::Object(values))
    }

    #[test]
    fn a_value_is_read_as_the_form_has_its_field() {
        let form = form(json!({
            "$defs": {"place": {"type": "object", "required": ["zip"], "properties": {"zip": {"type": "string"}}}},
            "properties": {
                "name": {"type": ["string", "null"]}, "zip": {"type": "string"}, "n": {"type": "integer"},
                "x": {"type": "number"}, "ok": {"type": "boolean"}, "ns": {"type": "array", "items": {"type": "integer"}},
                "size": {"oneOf": [{"const": 1, "title": "small"}, {"const": 2, "title": "large"}]},
                "home": {"$ref": "#/$defs/place"}, "any": {}
            }
        }));
        let words = [
            ("name", "3"),
            ("zip", "010"),
            ("n", "-7"),
            ("x", "2.5"),
            ("ok", "yes"),
            ("ns", "1, 2"),
            ("size", "large"),
            ("home.zip", "99"),
            ("any", "[true]"),
            ("other", "text"),
            ("more", "1"),
        ];
        let expected = json!({
            "name": "3", "zip": "010", "n": -7, "x": 2.5, "ok": true, "ns": [1, 2], "size": 2,
            "home": {"zip": "99"}, "any": [true], "other": "text", "more": 1
        });
        assert_eq!(filled(&form, &words), Ok(expected));
        for wrong in [("n", "many"), ("ok", "perhaps"), ("ns", "1,b")] {
            assert!(filled(&form, &[wrong]).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn choices_are_taken_by_number_only_where_numbers_are_shown() {
        let form = form(json!({"properties": {"a": {"enum": ["x", "y"]}, "b": {"enum": [2, 1]}}}));
        assert_eq!(form.fields[0].read_typed("2"), Ok(json!("y")));
        assert_eq!(form.fields[0].read("2"), Ok(json!("2")));
        assert_eq!(form.fields[1].read_typed("2"), Ok(json!(2)), "what it says comes before where it stands");
    }

    #[test]
    fn a_pointer_leads_to_the_field_to_ask_for_again() {
        let form = form(json!({"properties": {
            "a/b": {"type": "string"}, "in": {"properties": {"c": {"type": "array"}}}
        }}));
        assert_eq!(form.field_at("/a~1b"), Some(0));
        assert_eq!((form.field_at("/in"), form.field_at("/in/c/3")), (Some(1), Some(1)));
        assert_eq!((form.field_at(""), form.field_at("/other")), (None, None));
    }

    #[test]
    fn an_endless_schema_makes_a_form_that_ends() {
        let tree = json!({"properties": {"a": {"$ref": "#"}, "b": {"$ref": "#"}}});
        assert!(form(tree).fields.len() <= MAX_FIELDS);
        assert!(form(json!({"$ref": "#"})).fields.is_empty());
    }
}
