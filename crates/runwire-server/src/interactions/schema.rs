//! Validates values against the schema of an interaction: JSON Schema 2020-12, or the draft that it names, with
//! `format` asserted.
//!
//! A schema is untrusted input of an agent, so its size and cost are limited (`limits.rs`), and external references
//! are not followed.

use std::collections::HashMap;

use jsonschema::error::ValidationErrorKind;
use jsonschema::{PatternOptions, ValidationError, Validator};
use serde_json::{Map, Value};

use super::cost::CostEstimator;
use super::pattern::Patterns;
use crate::limits;

/// The compiled schema of an interaction.
pub struct AnswerSchema {
    document: Value,
    patterns: Patterns,
    validator: Validator,
}

/// Why a schema cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnusableSchema {
    /// It is not JSON Schema.
    #[error("it is no JSON Schema: {0}")]
    Invalid(String),
    /// It has an external reference.
    #[error("it refers to `{0}`, and only references within the schema are followed")]
    Reference(String),
    /// It is too large.
    #[error("it has more than {limit} {what}")]
    TooLarge {
        /// What it has too much of.
        what: &'static str,
        /// The limit.
        limit: usize,
    },
    /// Validating these values would take too long.
    #[error("checking these values with it would take too long")]
    TooCostly,
}

/// A value that violates the schema.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct SchemaViolation {
    /// JSON pointer to the value.
    pub pointer: String,
    /// The violated keyword of JSON Schema.
    pub keyword: String,
    /// Message for people.
    pub message: String,
}

impl std::fmt::Debug for AnswerSchema {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AnswerSchema").field("document", &self.document).finish_non_exhaustive()
    }
}

impl AnswerSchema {
    /// Compiles a schema, within the limits.
    pub fn compile(document: Value) -> Result<Self, UnusableSchema> {
        let mut scan = SchemaScan::new(&document);
        scan.measure(&document, true)?;
        let patterns = Patterns::measure(scan.patterns.into_iter())?;
        let validator = compile_validator(&document, limits::PATTERN_STEPS)?;
        Ok(Self { document, patterns, validator })
    }

    /// Validates values; returns all violations.
    pub fn check(&self, values: &Value) -> Result<Vec<SchemaViolation>, UnusableSchema> {
        let estimator = CostEstimator::new(&self.document, &self.patterns);
        let backtrack_limit = estimator.backtrack_limit(values).map_err(|_| UnusableSchema::TooCostly)?;
        let stricter;
        let validator = match backtrack_limit < limits::PATTERN_STEPS {
            true => {
                stricter = compile_validator(&self.document, backtrack_limit)?;
                &stricter
            }
            false => &self.validator,
        };
        let mut violations = Vec::new();
        for error in validator.iter_errors(values) {
            explain(&error, &mut violations)?;
            if violations.len() >= limits::ANSWER_ERRORS {
                violations.truncate(limits::ANSWER_ERRORS);
                break;
            }
        }
        Ok(violations)
    }
}

/// Compiles a schema with a backtracking limit for its patterns.
fn compile_validator(document: &Value, backtrack_limit: usize) -> Result<Validator, UnusableSchema> {
    let patterns = PatternOptions::fancy_regex()
        .backtrack_limit(backtrack_limit)
        .size_limit(limits::PATTERN_BYTES)
        .dfa_size_limit(limits::PATTERN_BYTES);
    jsonschema::options()
        .offline()
        .should_validate_formats(true)
        .should_ignore_unknown_formats(true)
        .with_pattern_options(patterns)
        .build(document)
        .map_err(|error| UnusableSchema::Invalid(truncated(&error.to_string())))
}

/// Converts a validation error to violations with messages for people.
fn explain(error: &ValidationError<'_>, violations: &mut Vec<SchemaViolation>) -> Result<(), UnusableSchema> {
    let at = error.instance_path().as_str();
    let keyword = error.kind().keyword().to_owned();
    let mut push = |pointer: String, message: String| {
        violations.push(SchemaViolation { pointer, keyword: keyword.clone(), message });
    };
    let inside = |name: &str| format!("{at}/{}", name.replace('~', "~0").replace('/', "~1"));
    match error.kind() {
        ValidationErrorKind::BacktrackLimitExceeded { .. }
        | ValidationErrorKind::RegexEngineFailure { .. } => {
            return Err(UnusableSchema::TooCostly);
        }
        ValidationErrorKind::Required { property } => {
            push(inside(property.as_str().unwrap_or_default()), "is required".to_owned());
        }
        ValidationErrorKind::AdditionalProperties { unexpected }
        | ValidationErrorKind::UnevaluatedProperties { unexpected } => {
            for name in unexpected {
                push(inside(name), "is no field of this form".to_owned());
            }
        }
        ValidationErrorKind::Format { format } => push(at.to_owned(), format!("is no valid {format}")),
        kind => {
            // The value itself is left out: the person knows it, and it may be long.
            let otherwise = || error.masked_with("").to_string();
            let message =
                choices_of(kind).map_or_else(otherwise, |choices| format!("is not one of {choices}"));
            push(at.to_owned(), truncated(message.trim_start()));
        }
    }
    Ok(())
}

/// Lists the allowed values of a choice: an `enum`, or branches with one constant each.
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
    let more = values.len().saturating_sub(limits::CHOICES_SHOWN);
    match values.as_slice() {
        values if more > 0 => {
            Some(format!("{} or {more} others", values[..limits::CHOICES_SHOWN].join(", ")))
        }
        [first @ .., last] if !first.is_empty() => Some(format!("{} or {last}", first.join(", "))),
        _ => Some(values.concat()),
    }
}

/// Truncates a long message.
fn truncated(message: &str) -> String {
    match message.char_indices().nth(300) {
        Some((at, _)) => format!("{}…", &message[..at]),
        None => message.to_owned(),
    }
}

/// Counts of the parts that make a schema expensive.
struct SchemaScan<'d> {
    nodes: usize,
    patterns: Vec<&'d str>,
    /// Additional counts for long patterns.
    long_patterns: usize,
    /// The keyword for a subschema's own URI: `$id`, or `id` in draft 4.
    address: &'static str,
}

impl<'d> SchemaScan<'d> {
    fn new(document: &Value) -> Self {
        let draft = document.get("$schema").and_then(Value::as_str).unwrap_or_default();
        let address = if draft.contains("draft-04") { "id" } else { "$id" };
        Self { nodes: 0, patterns: Vec::new(), long_patterns: 0, address }
    }

    fn add_patterns(&mut self, object: &'d Map<String, Value>) {
        if let Some(Value::String(pattern)) = object.get("pattern") {
            self.patterns.push(pattern);
            self.long_patterns += pattern.len() / 1024;
        }
        if let Some(Value::Object(patterns)) = object.get("patternProperties") {
            self.patterns.extend(patterns.keys().map(String::as_str));
        }
    }

    /// Adds the patterns anywhere in a value.
    fn search_patterns(&mut self, value: &'d Value) {
        let mut left = vec![value];
        while let Some(value) = left.pop() {
            match value {
                Value::Object(object) => {
                    self.add_patterns(object);
                    left.extend(object.values());
                }
                Value::Array(items) => left.extend(items),
                _ => {}
            }
        }
    }

    fn measure(&mut self, schema: &'d Value, root: bool) -> Result<(), UnusableSchema> {
        match schema {
            Value::Object(object) => {
                self.nodes += 1;
                self.add_patterns(object);
                for (key, value) in object {
                    match (key.as_str(), value) {
                        ("$ref" | "$dynamicRef" | "$recursiveRef", Value::String(to)) => {
                            if !to.starts_with('#') {
                                return Err(UnusableSchema::Reference(truncated(to)));
                            }
                        }
                        // A subschema with a URI of its own changes the base of references.
                        (key, Value::String(address)) if key == self.address && !root => {
                            return Err(UnusableSchema::Reference(truncated(address)));
                        }
                        // These hold values, not schemas; but a reference may point into them.
                        ("const" | "enum" | "default" | "examples", value) => self.search_patterns(value),
                        (_, value) => self.measure(value, false)?,
                    }
                }
            }
            Value::Array(items) => items.iter().try_for_each(|item| self.measure(item, false))?,
            _ => {}
        }
        if self.nodes > limits::SCHEMA_NODES {
            return Err(UnusableSchema::TooLarge { what: "parts", limit: limits::SCHEMA_NODES });
        }
        if self.patterns.len() + self.long_patterns > limits::SCHEMA_PATTERNS {
            return Err(UnusableSchema::TooLarge { what: "patterns", limit: limits::SCHEMA_PATTERNS });
        }
        Ok(())
    }
}

/// Returns the subschemas with an anchor.
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
