//! Turns a schema's errors into findings for the person who must fix the frame.

use jsonschema::error::{TypeKind, ValidationErrorKind as Kind};
use jsonschema::{JsonType, ValidationError};
use serde_json::Value;

use crate::finding::Finding;
use crate::keys::escaped;
use crate::nearest::nearest;
use crate::rule::Rule;
use crate::schema::Schema;

/// Explains all errors of a frame, without repetitions.
pub(crate) fn all(errors: &[ValidationError<'_>], schema: &Schema) -> Vec<Finding> {
    let mut findings: Vec<Finding> = Vec::new();
    for error in errors {
        let finding = explain(error, schema);
        if !findings.iter().any(|known| (&known.field, known.rule) == (&finding.field, finding.rule)) {
            findings.push(finding);
        }
    }
    drop_echoes(findings)
}

/// Drops findings that only repeat another one.
fn drop_echoes(findings: Vec<Finding>) -> Vec<Finding> {
    let names_the_missing = findings.iter().any(|finding| finding.rule == Rule::MissingField);
    let wrong = findings.iter().filter(|finding| finding.rule == Rule::WrongType);
    let wrong: Vec<Option<String>> = wrong.map(|finding| finding.field.clone()).collect();
    let is_echo = |finding: &Finding| match finding.rule {
        Rule::MissingChoice => names_the_missing || wrong.contains(&finding.field),
        Rule::BadShape => wrong.contains(&finding.field),
        _ => false,
    };
    findings.into_iter().filter(|finding| !is_echo(finding)).collect()
}

fn explain(error: &ValidationError<'_>, schema: &Schema) -> Finding {
    let path = error.evaluation_path().as_str();
    let around = path.rsplit_once('/').map_or("", |(around, _)| around);
    let context = ErrorContext {
        pointer: error.instance_path().as_str().to_owned(),
        found: error.instance().as_ref(),
        around,
        schema,
    };
    let finding = context.explain(error);
    let section = match &finding.section {
        Some(section) => Some(section.clone()),
        None => schema.section(path),
    };
    Finding { section, ..finding }
}

/// Context of an error: the value at fault, and the schema around the broken keyword.
struct ErrorContext<'a> {
    /// JSON pointer to the value, empty for the whole frame.
    pointer: String,
    found: &'a Value,
    /// Evaluation path of the schema with the broken keyword.
    around: &'a str,
    schema: &'a Schema,
}

impl ErrorContext<'_> {
    fn explain(&self, error: &ValidationError<'_>) -> Finding {
        match error.kind() {
            Kind::Required { property } => self.missing(property.as_str().unwrap_or_default()),
            Kind::Type { kind } => self.wrong_type(kind),
            Kind::Enum { options } => self.not_one_of(options),
            Kind::Constant { expected_value } => {
                self.bad_value(format!("must be {}, and is {}", shown(expected_value), shown(self.found)))
            }
            Kind::Pattern { pattern } => self.bad_form(pattern),
            Kind::Format { .. } => {
                self.bad_value(format!("is {}, and the calendar has no such day", shown(self.found)))
            }
            Kind::Minimum { limit } => {
                self.bad_value(format!("must be at least {limit}, and is {}", shown(self.found)))
            }
            Kind::Maximum { limit } => {
                self.bad_value(format!("must be at most {limit}, and is {}", shown(self.found)))
            }
            Kind::MinLength { .. } | Kind::MinItems { limit: 1 } => self.bad_value("must not be empty"),
            Kind::MinItems { limit } => self.bad_value(format!("must have at least {limit} elements")),
            Kind::FalseSchema => {
                self.named(Finding::problem(Rule::UnexpectedField, "must not be here").hint("leave it out"))
            }
            Kind::Not { schema } => self.forbidden(schema),
            Kind::AnyOf { .. } | Kind::OneOfNotValid { .. } => self.no_form(error),
            Kind::OneOfMultipleValid { .. } => {
                let message = match self.alternatives(error) {
                    Some(names) => format!("only one of {names} may stand here"),
                    None => "fits several of the forms allowed, and must fit one".to_owned(),
                };
                self.named(Finding::problem(Rule::BadShape, message))
            }
            Kind::MinProperties { .. } | Kind::MaxProperties { .. } => {
                let count = self.found.as_object().map_or(0, serde_json::Map::len);
                let message = format!("a frame has exactly one key, the event's name; this has {count}");
                self.named(Finding::problem(Rule::BadShape, message))
            }
            Kind::PropertyNames { error } => {
                let name = shown(error.instance());
                let message = format!("the key {name} is no event's name, which is written in CamelCase");
                self.named(Finding::problem(Rule::BadValue, message))
            }
            _ => self.named(Finding::problem(Rule::BadValue, error.to_string())),
        }
    }

    fn named(&self, finding: Finding) -> Finding {
        if self.pointer.is_empty() { finding } else { finding.at(&self.pointer) }
    }

    fn bad_value(&self, message: impl Into<String>) -> Finding {
        self.named(Finding::problem(Rule::BadValue, message))
    }

    fn missing(&self, property: &str) -> Finding {
        let pointer = format!("{}/{}", self.pointer, escaped(property));
        let path = format!("{}/properties/{property}", self.around);
        let message = match self.schema.node(&path).and_then(|node| self.expected(node)) {
            Some(expected) => format!("is missing; {expected} is required"),
            None => "is missing".to_owned(),
        };
        let keys = self.undeclared_keys();
        let hint = nearest(property, &keys).map(|key| format!("`{key}` is there; is it meant?"));
        let finding = Finding::problem(Rule::MissingField, message).at(&pointer).maybe_hint(hint);
        match self.schema.section(&path) {
            Some(section) => finding.section(section),
            None => finding,
        }
    }

    /// Lists the keys that the schema does not declare: one of them may be a typo.
    fn undeclared_keys(&self) -> Vec<&str> {
        let declared = |around: &str, key: &str| {
            let properties = self.schema.node(&format!("{around}/properties"));
            properties.is_some_and(|properties| properties.get(key).is_some())
        };
        let keys = self.found.as_object().into_iter().flat_map(serde_json::Map::keys);
        let is_known =
            |key: &str| declared(self.around, key) || (self.pointer.is_empty() && declared("", key));
        keys.map(String::as_str).filter(|key| !is_known(key)).collect()
    }

    /// Returns true if the object around the field requires it.
    fn is_required(&self) -> bool {
        let Some((around, property)) = self.around.rsplit_once("/properties/") else { return false };
        let required = self.schema.node(around).and_then(|node| node.get("required")?.as_array());
        required.is_some_and(|required| required.iter().any(|name| name == property))
    }

    fn wrong_type(&self, kind: &TypeKind) -> Finding {
        let expected: Vec<&str> = match kind {
            TypeKind::Single(one) => vec![type_name(*one)],
            TypeKind::Multiple(many) => many.iter().map(type_name).collect(),
        };
        let expected = either(&expected);
        let is = match self.found {
            Value::Number(_) if expected.contains("an integer") => shown(self.found),
            found => found_name(found).to_owned(),
        };
        let finding = Finding::problem(Rule::WrongType, format!("must be {expected}, and is {is}"));
        self.named(finding.maybe_hint(self.type_hint(&expected)))
    }

    fn type_hint(&self, expected: &str) -> Option<&'static str> {
        match self.found {
            Value::Null if !self.is_required() => Some("leave the field out instead of sending null"),
            Value::String(text) if expected == "an object" => serde_json::from_str::<Value>(text)
                .is_ok_and(|value| value.is_object())
                .then_some("send the object itself, not its JSON text"),
            Value::String(text) if expected == "an integer" || expected == "a number" => {
                text.parse::<f64>().is_ok().then_some("send the number without quotes")
            }
            Value::Number(_) if expected == "a string" => Some("put it in quotes"),
            _ => None,
        }
    }

    fn not_one_of(&self, options: &Value) -> Finding {
        let options: Vec<&Value> = options.as_array().into_iter().flatten().collect();
        let listed: Vec<String> = options.iter().map(|option| shown(option)).collect();
        let message = format!("is {}; it is one of {}", shown(self.found), listed.join(", "));
        let names: Vec<&str> = options.iter().filter_map(|option| option.as_str()).collect();
        let near = self.found.as_str().and_then(|found| nearest(found, &names));
        self.bad_value(message).maybe_hint(near.map(|near| format!("is `{near}` meant?")))
    }

    fn bad_form(&self, pattern: &str) -> Finding {
        let described = self.description();
        let expected = match described {
            Some(description) => description.to_owned(),
            None if pattern.starts_with("^[0-9]{4}-") => {
                "a UTC time like 2026-11-15T02:44:33.123Z".to_owned()
            }
            None => format!("the form {pattern}"),
        };
        self.bad_value(format!("is {}; expected: {expected}", shown(self.found)))
    }

    fn forbidden(&self, schema: &Value) -> Finding {
        if schema.get("type").is_some_and(|kind| kind == "null") {
            let finding = Finding::problem(Rule::WrongType, "must not be null");
            return self.named(finding.hint("leave the field out instead of sending null"));
        }
        if let Some(field) = schema.pointer("/required/0").and_then(Value::as_str) {
            let pointer = format!("{}/{}", self.pointer, escaped(field));
            return Finding::problem(Rule::UnexpectedField, "must not be here").at(&pointer);
        }
        let lower = self.found.as_str().map(str::to_lowercase);
        let message = format!("is {}, which is not allowed", shown(self.found));
        self.bad_value(message).maybe_hint(lower.map(|lower| format!("the document writes `{lower}`")))
    }

    /// Explains a value that fits none of several forms.
    fn no_form(&self, error: &ValidationError<'_>) -> Finding {
        if let Some(names) = self.alternatives(error) {
            return self.named(Finding::problem(Rule::MissingChoice, format!("one of {names} is required")));
        }
        let message = match (self.description().filter(|_| !self.pointer.is_empty()), self.forms(error)) {
            (Some(description), _) => format!("is {}; expected: {description}", shown(self.found)),
            (None, Some(forms)) => format!("must be {forms}, and is {}", found_name(self.found)),
            (None, None) => "fits none of the forms allowed".to_owned(),
        };
        self.named(Finding::problem(Rule::BadShape, message))
    }

    /// Lists the fields of forms that each only require one field.
    fn alternatives(&self, error: &ValidationError<'_>) -> Option<String> {
        let forms = self.schema.node(error.evaluation_path().as_str())?.as_array()?;
        let name = |form: &Value| {
            let only = form.as_object().is_some_and(|form| form.len() == 1);
            form.pointer("/required/0")
                .and_then(Value::as_str)
                .filter(|_| only)
                .map(|name| format!("`{name}`"))
        };
        let names: Option<Vec<String>> = forms.iter().map(name).collect();
        names.map(|names| names.join(", "))
    }

    /// Lists what each form expects.
    fn forms(&self, error: &ValidationError<'_>) -> Option<String> {
        let forms = self.schema.node(error.evaluation_path().as_str())?.as_array()?;
        let expected: Option<Vec<String>> = forms.iter().map(|form| self.expected(form)).collect();
        expected.map(|expected| either(&expected.iter().map(String::as_str).collect::<Vec<_>>()))
    }

    fn description(&self) -> Option<&str> {
        let node = self.schema.node(self.around)?;
        node.get("description").and_then(Value::as_str).map(|text| text.trim_end_matches('.'))
    }

    /// Returns what a schema expects, in a few words.
    fn expected(&self, node: &Value) -> Option<String> {
        if let Some(target) = node.get("$ref").and_then(Value::as_str) {
            return self.expected(self.schema.resolve(target)?);
        }
        if let Some(constant) = node.get("const") {
            return Some(shown(constant));
        }
        if let Some(options) = node.get("enum").and_then(Value::as_array) {
            return Some(format!("one of {}", options.iter().map(shown).collect::<Vec<_>>().join(", ")));
        }
        match node.get("type")? {
            Value::String(name) => named_type(name).map(str::to_owned),
            Value::Array(names) => {
                let names: Vec<&str> =
                    names.iter().filter_map(Value::as_str).filter_map(named_type).collect();
                Some(either(&names))
            }
            _ => None,
        }
    }
}

/// Shows a value in a few words.
fn shown(value: &Value) -> String {
    const LONGEST: usize = 60;
    let text = match value {
        Value::String(text) => format!("`{text}`"),
        Value::Object(_) | Value::Array(_) => return found_name(value).to_owned(),
        other => format!("`{other}`"),
    };
    if text.chars().count() <= LONGEST {
        return text;
    }
    let start: String = text.chars().take(LONGEST).collect();
    format!("{start}…`")
}

fn either(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [rest @ .., last] => format!("{} or {last}", rest.join(", ")),
    }
}

fn type_name(kind: JsonType) -> &'static str {
    match kind {
        JsonType::Array => "an array",
        JsonType::Boolean => "a boolean",
        JsonType::Integer => "an integer",
        JsonType::Null => "null",
        JsonType::Number => "a number",
        JsonType::Object => "an object",
        JsonType::String => "a string",
    }
}

fn named_type(name: &str) -> Option<&'static str> {
    Some(match name {
        "array" => "an array",
        "boolean" => "a boolean",
        "integer" => "an integer",
        "null" => "null",
        "number" => "a number",
        "object" => "an object",
        "string" => "a string",
        _ => return None,
    })
}

fn found_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}
