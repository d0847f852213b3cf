//! Checks values against the schema of a question: JSON Schema 2020-12 (or the draft that it names), with `format`
//! asserted.
//!
//! A schema comes from an agent and may be anything, so it is bounded before it is compiled: nothing outside of it
//! is ever looked up, and neither its size nor what it costs to check grows beyond the limits (`limits.rs`).

use std::collections::HashMap;

use jsonschema::error::ValidationErrorKind;
use jsonschema::{PatternOptions, ValidationError, Validator};
use serde_json::{Map, Value};

use super::meter::Meter;
use super::pattern::Patterns;
use crate::limits;

/// The schema of a question, ready to check answers.
pub struct Schema {
    document: Value,
    patterns: Patterns,
    validator: Validator,
}

/// Why a schema cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unusable {
    /// It is not JSON Schema.
    #[error("it is no JSON Schema: {0}")]
    Invalid(String),
    /// It refers to something outside of itself.
    #[error("it refers to `{0}`, and only references within the schema are followed")]
    Reference(String),
    /// It is too large.
    #[error("it has more than {limit} {what}")]
    TooLarge {
        /// Of what it has too much.
        what: &'static str,
        /// How many there may be.
        limit: usize,
    },
    /// Checking these values would take too long.
    #[error("checking these values with it would take too long")]
    TooCostly,
}

/// What is wrong with a value.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Wrong {
    /// Where, as a JSON pointer into the values.
    pub pointer: String,
    /// The rule that is broken: a keyword of JSON Schema.
    pub keyword: String,
    /// What a person reads.
    pub message: String,
}

impl std::fmt::Debug for Schema {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Schema").field("document", &self.document).finish_non_exhaustive()
    }
}

impl Schema {
    /// Compiles a schema, if it keeps within the limits.
    pub fn compile(document: Value) -> Result<Self, Unusable> {
        let mut extent = Extent::new(&document);
        extent.measure(&document, true)?;
        let patterns = Patterns::measure(extent.patterns.into_iter())?;
        let validator = compiled(&document, limits::PATTERN_STEPS)?;
        Ok(Self { document, patterns, validator })
    }

    /// Lists what is wrong with values; nothing where they fit.
    pub fn check(&self, values: &Value) -> Result<Vec<Wrong>, Unusable> {
        let meter = Meter::new(&self.document, &self.patterns);
        let tries = meter.allows(values).map_err(|_| Unusable::TooCostly)?;
        let stricter;
        let validator = match tries < limits::PATTERN_STEPS {
            true => {
                stricter = compiled(&self.document, tries)?;
                &stricter
            }
            false => &self.validator,
        };
        let mut wrong = Vec::new();
        for error in validator.iter_errors(values) {
            explain(&error, &mut wrong)?;
            if wrong.len() >= limits::ANSWER_ERRORS {
                wrong.truncate(limits::ANSWER_ERRORS);
                break;
            }
        }
        Ok(wrong)
    }
}

/// Compiles a schema whose patterns may be tried so often.
fn compiled(document: &Value, tries: usize) -> Result<Validator, Unusable> {
    let patterns = PatternOptions::fancy_regex()
        .backtrack_limit(tries)
        .size_limit(limits::PATTERN_BYTES)
        .dfa_size_limit(limits::PATTERN_BYTES);
    jsonschema::options()
        .offline()
        .should_validate_formats(true)
        .should_ignore_unknown_formats(true)
        .with_pattern_options(patterns)
        .build(document)
        .map_err(|error| Unusable::Invalid(shortened(&error.to_string())))
}

/// Says what an error means for the field that it is about.
fn explain(error: &ValidationError<'_>, wrong: &mut Vec<Wrong>) -> Result<(), Unusable> {
    let at = error.instance_path().as_str();
    let keyword = error.kind().keyword().to_owned();
    let mut say = |pointer: String, message: String| {
        wrong.push(Wrong { pointer, keyword: keyword.clone(), message });
    };
    let inside = |name: &str| format!("{at}/{}", name.replace('~', "~0").replace('/', "~1"));
    match error.kind() {
        ValidationErrorKind::BacktrackLimitExceeded { .. }
        | ValidationErrorKind::RegexEngineFailure { .. } => {
            return Err(Unusable::TooCostly);
        }
        ValidationErrorKind::Required { property } => {
            say(inside(property.as_str().unwrap_or_default()), "is required".to_owned());
        }
        ValidationErrorKind::AdditionalProperties { unexpected }
        | ValidationErrorKind::UnevaluatedProperties { unexpected } => {
            for name in unexpected {
                say(inside(name), "is no field of this form".to_owned());
            }
        }
        ValidationErrorKind::Format { format } => say(at.to_owned(), format!("is no valid {format}")),
        kind => {
            // What the person typed is known to the person; repeating it could be long.
            let otherwise = || error.masked_with("").to_string();
            let message =
                choices_of(kind).map_or_else(otherwise, |choices| format!("is not one of {choices}"));
            say(at.to_owned(), shortened(message.trim_start()));
        }
    }
    Ok(())
}

/// Lists the values of a choice: an `enum`, or branches that are one titled constant each.
fn choices_of(kind: &ValidationErrorKind) -> Option<String> {
    let value = |errors: &Vec<ValidationError<'_>>| match errors.as_slice() {
        [error] => match error.kind() {
            ValidationErrorKind::Constant { expected_value } => Some(expected_value.to_string()),
            _ => None,
        },
        _ => None,
    };
    let values = match kind {
        ValidationErrorKind::OneOfNotValid { context } | ValidationErrorKind::AnyOf { context } => {
            context.iter().map(value).collect::<Option<Vec<_>>>()?
        }
        ValidationErrorKind::Enum { options } => options.as_array()?.iter().map(Value::to_string).collect(),
        _ => return None,
    };
    let more = values.len().saturating_sub(limits::CHOICES_TOLD);
    match values.as_slice() {
        values if more > 0 => Some(format!("{} or {more} others", values[..limits::CHOICES_TOLD].join(", "))),
        [first @ .., last] if !first.is_empty() => Some(format!("{} or {last}", first.join(", "))),
        _ => Some(values.concat()),
    }
}

/// Cuts a message that quotes something long.
fn shortened(message: &str) -> String {
    match message.char_indices().nth(300) {
        Some((at, _)) => format!("{}…", &message[..at]),
        None => message.to_owned(),
    }
}

/// How much a schema has of what makes it expensive.
struct Extent<'d> {
    nodes: usize,
    patterns: Vec<&'d str>,
    /// Patterns that count for more than one, since they are long.
    long_patterns: usize,
    /// What the draft calls the address of a part.
    address: &'static str,
}

impl<'d> Extent<'d> {
    fn new(document: &Value) -> Self {
        let draft = document.get("$schema").and_then(Value::as_str).unwrap_or_default();
        let address = if draft.contains("draft-04") { "id" } else { "$id" };
        Self { nodes: 0, patterns: Vec::new(), long_patterns: 0, address }
    }

    fn note_patterns(&mut self, object: &'d Map<String, Value>) {
        if let Some(Value::String(pattern)) = object.get("pattern") {
            self.patterns.push(pattern);
            self.long_patterns += pattern.len() / 1024;
        }
        if let Some(Value::Object(patterns)) = object.get("patternProperties") {
            self.patterns.extend(patterns.keys().map(String::as_str));
        }
    }

    /// Notes the patterns in a value, as deep as they may be.
    fn search_patterns(&mut self, value: &'d Value) {
        let mut left = vec![value];
        while let Some(value) = left.pop() {
            match value {
                Value::Object(object) => {
                    self.note_patterns(object);
                    left.extend(object.values());
                }
                Value::Array(items) => left.extend(items),
                _ => {}
            }
        }
    }

    fn measure(&mut self, schema: &'d Value, root: bool) -> Result<(), Unusable> {
        match schema {
            Value::Object(object) => {
                self.nodes += 1;
                self.note_patterns(object);
                for (key, value) in object {
                    match (key.as_str(), value) {
                        ("$ref" | "$dynamicRef" | "$recursiveRef", Value::String(to)) => {
                            if !to.starts_with('#') {
                                return Err(Unusable::Reference(shortened(to)));
                            }
                        }
                        // A part with an address of its own gives references another meaning.
                        (key, Value::String(address)) if key == self.address && !root => {
                            return Err(Unusable::Reference(shortened(address)));
                        }
                        // These hold values, not schemas; but a reference may lead into them.
                        ("const" | "enum" | "default" | "examples", value) => self.search_patterns(value),
                        (_, value) => self.measure(value, false)?,
                    }
                }
            }
            Value::Array(items) => items.iter().try_for_each(|item| self.measure(item, false))?,
            _ => {}
        }
        if self.nodes > limits::SCHEMA_NODES {
            return Err(Unusable::TooLarge { what: "parts", limit: limits::SCHEMA_NODES });
        }
        if self.patterns.len() + self.long_patterns > limits::SCHEMA_PATTERNS {
            return Err(Unusable::TooLarge { what: "patterns", limit: limits::SCHEMA_PATTERNS });
        }
        Ok(())
    }
}

/// Finds the parts of a schema that have a name of their own.
pub(super) fn anchors(schema: &Value) -> HashMap<&str, &Value> {
    let mut found = HashMap::new();
    let mut left = vec![schema];
    while let Some(value) = left.pop() {
        match value {
            Value::Object(object) => {
                for key in ["$anchor", "$dynamicAnchor"] {
                    if let Some(Value::String(name)) = object.get(key) {
                        found.insert(name.as_str(), value);
                    }
                }
                left.extend(object.values());
            }
            Value::Array(items) => left.extend(items),
            _ => {}
        }
    }
    found
}
