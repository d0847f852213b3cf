//! Bounds what checking values against a schema costs, before it is done.
//!
//! A schema of a few hundred bytes can ask for more work than there is time: each of thirty definitions that refers
//! twice to the next doubles it. So the way that validation would go is walked first, without checking anything,
//! and given up when it gets too long.

use std::collections::HashMap;

use percent_encoding::percent_decode_str;
use serde_json::{Map, Value};

use super::pattern::{Patterns, Work};
use super::schema::anchors;
use crate::limits;

/// Validation would take too long.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooCostly;

/// Walks the way that validation goes.
pub(super) struct Meter<'s> {
    root: &'s Value,
    anchors: HashMap<&'s str, &'s Value>,
    patterns: &'s Patterns,
    left: usize,
    /// What is left of the work that matching patterns may take.
    work_left: u64,
    /// The work of one try of each pattern that is matched by trying.
    tried: u64,
}

/// What a place in a schema costs, beside one step.
const PATTERN_COST: usize = 100;

/// Keywords whose schemas apply to the same value.
const SAME_VALUE: [&str; 4] = ["not", "if", "then", "else"];
const SAME_VALUE_LISTS: [&str; 3] = ["allOf", "anyOf", "oneOf"];
const SAME_VALUE_MAPS: [&str; 2] = ["dependentSchemas", "dependencies"];
const REFERENCES: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];

impl<'s> Meter<'s> {
    pub(super) fn new(root: &'s Value, patterns: &'s Patterns) -> Self {
        let (left, work_left) = (limits::SCHEMA_STEPS, limits::PATTERN_WORK);
        Self { root, anchors: anchors(root), patterns, left, work_left, tried: 0 }
    }

    /// Tells whether checking a value keeps within the limits, and how often each pattern may be tried.
    pub(super) fn allows(mut self, value: &Value) -> Result<usize, TooCostly> {
        self.visit(self.root, value, 1, 0)?;
        match self.work_left.checked_div(self.tried) {
            None => Ok(limits::PATTERN_STEPS),
            Some(0) => Err(TooCostly),
            Some(tries) => Ok(usize::try_from(tries).unwrap_or(usize::MAX).min(limits::PATTERN_STEPS)),
        }
    }

    /// Pays for matching a pattern on a text.
    fn match_pattern(&mut self, pattern: &str, text: &str, weight: usize) -> Result<(), TooCostly> {
        self.pay(weight.saturating_mul(PATTERN_COST + text.len() / 64))?;
        let Work { steps, tries } = self.patterns.work(pattern, text.len());
        let steps = steps.saturating_mul(weight as u64);
        match tries {
            true => self.tried = self.tried.saturating_add(steps),
            false => self.work_left = self.work_left.checked_sub(steps).ok_or(TooCostly)?,
        }
        Ok(())
    }

    fn pay(&mut self, cost: usize) -> Result<(), TooCostly> {
        self.left = self.left.checked_sub(cost).ok_or(TooCostly)?;
        Ok(())
    }

    /// Walks a schema on a value. `weight` is how often validation comes by here.
    fn visit(
        &mut self,
        schema: &'s Value,
        value: &Value,
        weight: usize,
        depth: usize,
    ) -> Result<(), TooCostly> {
        if depth > limits::SCHEMA_DEPTH {
            return Err(TooCostly);
        }
        let Value::Object(schema) = schema else { return self.pay(weight) };
        self.pay(weight.saturating_mul(own_cost(schema, value)))?;
        if let (Some(Value::String(pattern)), Value::String(text)) = (schema.get("pattern"), value) {
            self.match_pattern(pattern, text, weight)?;
        }
        let depth = depth + 1;
        // What is not evaluated elsewhere is found out by going through everything else again.
        let again = schema.contains_key("unevaluatedProperties") || schema.contains_key("unevaluatedItems");
        let here = if again { weight.saturating_mul(2 + length(value)) } else { weight };
        for key in SAME_VALUE {
            if let Some(inner) = schema.get(key) {
                self.visit(inner, value, here, depth)?;
            }
        }
        for inner in SAME_VALUE_LISTS.iter().filter_map(|key| schema.get(*key)?.as_array()).flatten() {
            self.visit(inner, value, here, depth)?;
        }
        for inner in SAME_VALUE_MAPS.iter().filter_map(|key| schema.get(*key)?.as_object()) {
            for inner in inner.values() {
                self.visit(inner, value, here, depth)?;
            }
        }
        for target in REFERENCES.iter().filter_map(|key| schema.get(*key)?.as_str()) {
            if let Some(inner) = self.resolve(target) {
                self.visit(inner, value, here, depth)?;
            }
        }
        match value {
            Value::Object(object) => self.visit_fields(schema, object, here, depth),
            Value::Array(items) => self.visit_items(schema, items, here, depth),
            _ => Ok(()),
        }
    }

    fn visit_fields(
        &mut self,
        schema: &'s Map<String, Value>,
        object: &Map<String, Value>,
        weight: usize,
        depth: usize,
    ) -> Result<(), TooCostly> {
        let map = |key: &str| schema.get(key).and_then(Value::as_object);
        for (name, value) in object {
            if let Some(inner) = map("properties").and_then(|properties| properties.get(name)) {
                self.visit(inner, value, weight, depth)?;
            }
            for (pattern, inner) in map("patternProperties").into_iter().flatten() {
                self.match_pattern(pattern, name, weight)?;
                self.visit(inner, value, weight, depth)?;
            }
            for key in ["additionalProperties", "unevaluatedProperties"] {
                if let Some(inner) = schema.get(key) {
                    self.visit(inner, value, weight, depth)?;
                }
            }
            if let Some(inner) = schema.get("propertyNames") {
                self.visit(inner, &Value::String(name.clone()), weight, depth)?;
            }
        }
        Ok(())
    }

    fn visit_items(
        &mut self,
        schema: &'s Map<String, Value>,
        items: &[Value],
        weight: usize,
        depth: usize,
    ) -> Result<(), TooCostly> {
        for key in ["items", "prefixItems", "additionalItems", "contains", "unevaluatedItems"] {
            let Some(inner) = schema.get(key) else { continue };
            for (at, value) in items.iter().enumerate() {
                match inner {
                    Value::Array(each) => {
                        let Some(inner) = each.get(at) else { break };
                        self.visit(inner, value, weight, depth)?;
                    }
                    inner => self.visit(inner, value, weight, depth)?,
                }
            }
        }
        Ok(())
    }

    fn resolve(&self, target: &str) -> Option<&'s Value> {
        let fragment = percent_decode_str(target.strip_prefix('#')?).decode_utf8().ok()?;
        if fragment.is_empty() || fragment.starts_with('/') {
            return self.root.pointer(&fragment);
        }
        self.anchors.get(&*fragment).copied()
    }
}

fn length(value: &Value) -> usize {
    match value {
        Value::Object(object) => object.len(),
        Value::Array(items) => items.len(),
        _ => 0,
    }
}

/// Counts the steps of a schema's own keywords.
fn own_cost(schema: &Map<String, Value>, value: &Value) -> usize {
    let entries = |key: &str| schema.get(key).map_or(0, length);
    let mut cost = 1 + entries("enum") / 8 + entries("required") / 8;
    if let Value::String(text) = value {
        // A format is matched as a small pattern is.
        cost += usize::from(schema.contains_key("format")) * (PATTERN_COST + text.len() / 64);
    }
    if schema.contains_key("uniqueItems") {
        cost += length(value);
    }
    cost
}
