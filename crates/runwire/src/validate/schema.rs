//! Each document's JSON Schema, and what it says about a frame.

use jsonschema::Validator;
use runwire_model::dialect::Dialect;
use serde_json::Value;

use super::explain;
use super::finding::Finding;

/// A dialect's schema, ready to check frames.
pub(super) struct Schema {
    pub(super) document: Value,
    validator: Validator,
    /// The kinds of event that it describes.
    kinds: Vec<String>,
}

fn text(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Loom => include_str!("../../../../vectors/loom/schema.json"),
        Dialect::LoomExport => include_str!("../../../../vectors/loom-export/schema.json"),
        Dialect::StreamingEngine => include_str!("../../../../vectors/streaming-engine/schema.json"),
        Dialect::Agio => include_str!("../../../../vectors/agio/schema.json"),
        Dialect::AgUi => include_str!("../../../../vectors/ag-ui/schema.json"),
        Dialect::SocialApp => include_str!("../../../../vectors/social-app/schema.json"),
        Dialect::EasyflowChat => include_str!("../../../../vectors/easyflow-chat/schema.json"),
        // `text` is never read.
        Dialect::Runwire | Dialect::Text => include_str!("../../../../vectors/runwire/schema.json"),
    }
}

impl Schema {
    pub(super) fn of(dialect: Dialect) -> Self {
        let document: Value = serde_json::from_str(text(dialect)).expect("a test parses every schema");
        let validator = jsonschema::validator_for(&document).expect("a test compiles every schema");
        let kinds = kinds(&document);
        Self { document, validator, kinds }
    }

    /// Lists what a frame breaks.
    pub(super) fn check(&self, frame: &Value) -> Vec<Finding> {
        if self.validator.is_valid(frame) {
            return Vec::new();
        }
        let errors: Vec<_> = self.validator.iter_errors(frame).collect();
        explain::all(&errors, self)
    }

    pub(super) fn knows(&self, kind: &str) -> bool {
        self.kinds.iter().any(|known| known == kind)
    }

    pub(super) fn kinds(&self) -> &[String] {
        &self.kinds
    }

    /// Finds the section for a place in the schema: the nearest one on the way that validation took to it.
    pub(super) fn section(&self, evaluation_path: &str) -> Option<String> {
        let mut section = None;
        self.walk(evaluation_path, |node| {
            if let Some(own) = node.get("x-section").and_then(Value::as_str) {
                section = Some(own.to_owned());
            }
        });
        section
    }

    /// Finds the section that describes a kind of event.
    pub(super) fn section_of_kind(&self, kind: &str) -> Option<String> {
        let definitions = self.document.get("$defs")?.as_object()?;
        let titled = |definition: &&Value| definition.get("title").is_some_and(|title| title == kind);
        let definition = definitions.get(kind).or_else(|| definitions.values().find(titled));
        let section = definition.unwrap_or(&self.document).get("x-section")?;
        section.as_str().map(str::to_owned)
    }

    /// Finds the node that an evaluation path leads to.
    pub(super) fn node(&self, evaluation_path: &str) -> Option<&Value> {
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
    pub(super) fn resolve(&self, target: &str) -> Option<&Value> {
        self.document.pointer(target.strip_prefix('#')?)
    }
}

/// Reads the kinds of event from the schema's cases.
fn kinds(document: &Value) -> Vec<String> {
    let cases = document.get("allOf").and_then(Value::as_array).into_iter().flatten();
    let kind = |case: &Value| {
        let condition = case.get("if")?;
        let constant = |key: &str| condition.pointer(&format!("/properties/{key}/const"))?.as_str();
        match (constant("domain"), constant("type")) {
            (Some(domain), Some(kind)) => Some(format!("{domain}/{kind}")),
            (None, Some(kind)) => Some(kind.to_owned()),
            _ if condition.get("not").is_some() => Some("reply".to_owned()),
            _ => condition.pointer("/required/0")?.as_str().map(str::to_owned),
        }
    };
    cases.filter_map(kind).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_schema_compiles_and_names_its_kinds_of_event() {
        for dialect in Dialect::READABLE {
            let schema = Schema::of(dialect);
            assert!(schema.kinds.len() >= 10, "{dialect}: {:?}", schema.kinds);
            for kind in &schema.kinds {
                assert!(schema.section_of_kind(kind).is_some(), "{dialect}: {kind} has no section");
            }
        }
    }
}
