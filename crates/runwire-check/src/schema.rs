//! Each document's JSON Schema, and what it says about a frame.

use std::sync::OnceLock;

use jsonschema::Validator;
use runwire_model::dialect::Dialect;
use serde_json::{Value, json};

use crate::finding::Finding;
use crate::quick::{Look, Quick};
use crate::{Side, explain, limits};

/// A dialect's schema, ready to check frames.
pub(crate) struct Schema {
    pub(crate) document: Value,
    validator: Validator,
    /// The kinds of event that it describes.
    kinds: Vec<String>,
    quick: Quick,
}

/// The schemas that were needed so far, of both sides.
static SCHEMAS: [[OnceLock<Schema>; 2]; Dialect::ALL.len()] =
    [const { [const { OnceLock::new() }; 2] }; Dialect::ALL.len()];

impl Schema {
    /// Finds the schema of a dialect's frames.
    pub(crate) fn of(dialect: Dialect, side: Side) -> &'static Self {
        SCHEMAS[usize::from(dialect.number())][usize::from(side == Side::Producer)]
            .get_or_init(|| Self::new(dialect, side))
    }

    fn new(dialect: Dialect, side: Side) -> Self {
        let mut document: Value = serde_json::from_str(dialect.schema()).expect("a test parses every schema");
        if dialect == Dialect::Runwire && side == Side::Producer {
            // The server stamps the envelope.
            document["required"] = json!(["type"]);
        }
        if dialect == Dialect::SocialApp
            && side == Side::Producer
            && let Some(properties) = document["properties"].as_object_mut()
        {
            // The backend's own figures are not shown to readers, but the backend may write them.
            properties.retain(|_, property| *property != false);
        }
        let validator = jsonschema::validator_for(&document).expect("a test compiles every schema");
        let kinds = cases(&document).filter_map(kind_of_case).collect();
        let quick = Quick::of(&document);
        Self { document, validator, kinds, quick }
    }

    /// Begins a quick look at a frame of a kind that the document describes.
    pub(crate) fn look(&self, kind: &str) -> Option<Look<'_, '_>> {
        self.quick.look(kind)
    }

    /// Lists what a frame breaks.
    pub(crate) fn check(&self, kind: &str, frame: &Value) -> Vec<Finding> {
        let mut findings = Vec::new();
        if !self.validator.is_valid(frame) {
            // A frame may break the schema in as many places as it has values.
            let errors: Vec<_> = self.validator.iter_errors(frame).take(limits::EXPLAINED_ERRORS).collect();
            findings = explain::all(&errors, self);
        }
        for slip in self.quick.slips(kind, frame) {
            let meant = Some(slip.meant_pointer());
            if !findings.iter().any(|known| known.code == "missing_field" && known.pointer == meant) {
                let message = "is no field of the document";
                let finding = Finding::problem("likely_typo", message).at(&slip.pointer());
                let finding = finding.hint(format!("is `{}` meant?", slip.meant));
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

    /// Finds the section for a place in the schema: the nearest one on the way that validation took to it.
    pub(crate) fn section(&self, evaluation_path: &str) -> Option<String> {
        let mut section = None;
        self.walk(evaluation_path, |node| {
            if let Some(own) = node.get("x-section").and_then(Value::as_str) {
                section = Some(own.to_owned());
            }
        });
        section
    }

    /// Finds the section that describes a kind of event.
    pub(crate) fn section_of_kind(&self, kind: &str) -> Option<String> {
        let definitions = self.document.get("$defs")?.as_object()?;
        let titled = |definition: &&Value| definition.get("title").is_some_and(|title| title == kind);
        let definition = definitions.get(kind).or_else(|| definitions.values().find(titled));
        let section = definition.unwrap_or(&self.document).get("x-section")?;
        section.as_str().map(str::to_owned)
    }

    /// Finds the node that an evaluation path leads to.
    pub(crate) fn node(&self, evaluation_path: &str) -> Option<&Value> {
        let mut last = None;
        let whole = self.walk(evaluation_path, |node| last = Some(node));
        last.filter(|_| whole)
    }

    /// Visits the nodes on a path, through references; false means that the path leads nowhere.
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

/// Lists the schema's cases, one a kind of event.
pub(crate) fn cases(document: &Value) -> impl Iterator<Item = &Value> {
    document.get("allOf").and_then(Value::as_array).into_iter().flatten()
}

/// Reads the kind of event that a case of the schema is about.
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
