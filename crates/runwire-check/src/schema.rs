//! JSON Schemas of the documents, ready to check frames.

use std::sync::OnceLock;

use jsonschema::Validator;
use runwire_model::Timestamp;
use runwire_model::dialect::Dialect;
use serde_json::Value;

use crate::finding::Finding;
use crate::quick_check::{QuickCheck, QuickTables};
use crate::rule::Rule;
use crate::{Side, explain, limits};

/// A dialect's schema, ready to check frames.
pub(crate) struct Schema {
    pub(crate) document: Value,
    validator: Validator,
    /// Kinds of event that it describes.
    kinds: Vec<String>,
    quick_tables: QuickTables,
}

/// Cache of the schemas, of both sides.
static SCHEMAS: [[OnceLock<Schema>; 2]; Dialect::ALL.len()] =
    [const { [const { OnceLock::new() }; 2] }; Dialect::ALL.len()];

impl Schema {
    /// Returns the schema of a dialect's frames.
    pub(crate) fn of(dialect: Dialect, side: Side) -> &'static Self {
        SCHEMAS[usize::from(dialect.number())][usize::from(side == Side::Producer)]
            .get_or_init(|| Self::new(dialect, side))
    }

    fn new(dialect: Dialect, side: Side) -> Self {
        let mut document: Value = serde_json::from_str(dialect.schema()).expect("a test parses every schema");
        if side == Side::Producer {
            (dialect.document().relax_for_producers)(&mut document);
        }
        mark_times(&mut document);
        let validator = jsonschema::options()
            .should_validate_formats(true)
            .with_format(IN_CALENDAR, is_in_calendar)
            .build(&document)
            .expect("a test compiles every schema");
        let kinds = cases(&document).filter_map(kind_of_case).collect();
        let quick_tables = QuickTables::of(&document);
        Self { document, validator, kinds, quick_tables }
    }

    /// Begins the quick check of a frame of a described kind.
    pub(crate) fn quick_check<'a>(&self, kind: &str) -> Option<QuickCheck<'_, 'a>> {
        self.quick_tables.check(kind)
    }

    /// Lists the findings of a frame.
    pub(crate) fn check(&self, kind: &str, frame: &Value) -> Vec<Finding> {
        let mut findings = Vec::new();
        if !self.validator.is_valid(frame) {
            // A frame may break the schema in as many places as it has values.
            let errors: Vec<_> = self.validator.iter_errors(frame).take(limits::EXPLAINED_ERRORS).collect();
            findings = explain::all(&errors, self);
        }
        for typo in self.quick_tables.typos(kind, frame) {
            let meant = Some(typo.meant_pointer());
            if !findings.iter().any(|known| known.rule == Rule::MissingField && known.pointer == meant) {
                let message = "is no field of the document";
                let finding = Finding::problem(Rule::LikelyTypo, message).at(&typo.pointer());
                let finding = finding.hint(format!("is `{}` meant?", typo.meant));
                findings.push(Finding { section: self.section_of_kind(kind), ..finding });
            }
        }
        findings
    }

    pub(crate) fn knows(&self, kind: &str) -> bool {
        self.kinds.iter().any(|known| known == kind)
    }

    pub(crate) fn kinds(&self) -> &[String] {
        &self.kinds
    }

    /// Returns the section for a path in the schema: the nearest one on the way of the validation.
    pub(crate) fn section(&self, evaluation_path: &str) -> Option<String> {
        let mut section = None;
        self.walk(evaluation_path, |node| {
            if let Some(own) = node.get("x-section").and_then(Value::as_str) {
                section = Some(own.to_owned());
            }
        });
        section
    }

    /// Returns the section that describes a kind of event.
    pub(crate) fn section_of_kind(&self, kind: &str) -> Option<String> {
        let definitions = self.document.get("$defs")?.as_object()?;
        let titled = |definition: &&Value| definition.get("title").is_some_and(|title| title == kind);
        let definition = definitions.get(kind).or_else(|| definitions.values().find(titled));
        let section = definition.unwrap_or(&self.document).get("x-section")?;
        section.as_str().map(str::to_owned)
    }

    /// Returns the node at an evaluation path.
    pub(crate) fn node(&self, evaluation_path: &str) -> Option<&Value> {
        let mut last = None;
        let whole = self.walk(evaluation_path, |node| last = Some(node));
        last.filter(|_| whole)
    }

    /// Visits the nodes on a path, through references; returns false if it leads nowhere.
    fn walk<'s>(&'s self, evaluation_path: &str, mut visit: impl FnMut(&'s Value)) -> bool {
        let mut node = &self.document;
        visit(node);
        for segment in evaluation_path.split('/').skip(1) {
            let segment = segment.replace("~1", "/").replace("~0", "~");
            let next = match (segment.as_str(), node) {
                ("$ref", _) => {
                    node.get("$ref").and_then(Value::as_str).and_then(|target| self.resolve(target))
                }
                (index, Value::Array(items)) => index.parse::<usize>().ok().and_then(|at| items.get(at)),
                (key, _) => node.get(key),
            };
            let Some(next) = next else { return false };
            node = next;
            visit(node);
        }
        true
    }

    /// Follows a reference, and those that it leads to.
    pub(crate) fn resolve(&self, target: &str) -> Option<&Value> {
        self.document.pointer(target.strip_prefix('#')?)
    }
}

/// Format of times: a pattern cannot limit the days of a month.
pub(crate) const IN_CALENDAR: &str = "in-calendar";

/// Fields of times that are strings in the document.
const EXPIRIES: [&str; 2] = ["expires_at", "expiresAt"];

/// Adds the format of times to their fields.
fn mark_times(schema: &mut Value) {
    match schema {
        Value::Array(items) => items.iter_mut().for_each(mark_times),
        Value::Object(object) => {
            for (name, property) in
                object.get_mut("properties").and_then(Value::as_object_mut).into_iter().flatten()
            {
                let pattern = property.get("pattern").and_then(Value::as_str);
                let is_time = EXPIRIES.contains(&name.as_str())
                    || pattern.is_some_and(|pattern| pattern.starts_with("^[0-9]{4}-"));
                if let Some(property) = property.as_object_mut().filter(|_| is_time) {
                    property.insert("format".into(), IN_CALENDAR.into());
                }
            }
            object.values_mut().for_each(mark_times);
        }
        _ => {}
    }
}

/// Returns true if a text that begins with a date begins with one of the calendar, in any year.
pub(crate) fn is_in_calendar(text: &str) -> bool {
    let Some(date) = text.get(..10) else { return true };
    let form = b"0000-00-00";
    let fits = |(byte, form): (u8, &u8)| if *form == b'0' { byte.is_ascii_digit() } else { byte == *form };
    if !date.bytes().zip(form).all(fits) {
        return true;
    }
    // The calendar repeats itself every 400 years, and moments begin in 1970.
    let year = 2000 + date[..4].parse::<u32>().unwrap_or_default() % 400;
    Timestamp::parse(&format!("{year}{}T00:00:00Z", &date[4..])).is_some()
}

/// Lists the schema's cases, one for each kind of event.
pub(crate) fn cases(document: &Value) -> impl Iterator<Item = &Value> {
    document.get("allOf").and_then(Value::as_array).into_iter().flatten()
}

/// Returns the kind of event of a case of the schema.
pub(crate) fn kind_of_case(case: &Value) -> Option<String> {
    let condition = case.get("if")?;
    let constant = |key: &str| condition.pointer(&format!("/properties/{key}/const"))?.as_str();
    match (constant("domain"), constant("type")) {
        (Some(domain), Some(kind)) => Some(format!("{domain}/{kind}")),
        (None, Some(kind)) => Some(kind.to_owned()),
        _ if condition.get("not").is_some() => Some("reply".to_owned()),
        _ => condition.pointer("/required/0")?.as_str().map(str::to_owned),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_schema_compiles_and_names_its_kinds_of_event() {
        for dialect in Dialect::READABLE {
            let schema = Schema::of(dialect, Side::Reader);
            assert!(schema.kinds.len() >= 10, "{dialect}: {:?}", schema.kinds);
            for kind in &schema.kinds {
                assert!(schema.section_of_kind(kind).is_some(), "{dialect}: {kind} has no section");
            }
        }
    }
}
