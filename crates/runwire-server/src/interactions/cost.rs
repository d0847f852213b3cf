//! Estimates the cost of validating values against a schema, and refuses it above a limit.
//!
//! Validation can be exponential in the size of a schema: thirty definitions, each referring twice to the next, take
//! 2³⁰ steps. So the same traversal is made first without validating anything, and stopped at a limit.

use std::collections::HashMap;

use percent_encoding::percent_decode_str;
use serde_json::{Map, Value};

use super::pattern::{MatchCost, Patterns};
use super::schema::anchors;
use crate::limits;

/// Validation would exceed the limit.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooCostly;

/// Traverses schema and values like validation does, and counts steps.
pub(super) struct CostEstimator<'s> {
    root: &'s Value,
    anchors: HashMap<&'s str, &'s Value>,
    patterns: &'s Patterns,
    steps_left: usize,
    /// Remaining steps for matching patterns.
    match_steps_left: u64,
    /// Steps of one attempt of all backtracking patterns.
    backtracking_steps: u64,
}

/// Steps of matching a pattern, beside those for its text.
const PATTERN_COST: usize = 100;

/// Keywords whose schemas apply to the same value.
const SAME_VALUE: [&str; 4] = ["not", "if", "then", "else"];
const SAME_VALUE_LISTS: [&str; 3] = ["allOf", "anyOf", "oneOf"];
const SAME_VALUE_MAPS: [&str; 2] = ["dependentSchemas", "dependencies"];
const REFERENCES: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];

impl<'s> CostEstimator<'s> {
    pub(super) fn new(root: &'s Value, patterns: &'s Patterns) -> Self {
        let (steps_left, match_steps_left) = (limits::SCHEMA_STEPS, limits::PATTERN_MATCH_STEPS);
        Self { root, anchors: anchors(root), patterns, steps_left, match_steps_left, backtracking_steps: 0 }
    }

    /// Returns the backtracking limit of each pattern; fails if validating a value exceeds the limits.
    pub(super) fn backtrack_limit(mut self, value: &Value) -> Result<usize, TooCostly> {
        self.visit(self.root, value, 1, 0)?;
        match self.match_steps_left.checked_div(self.backtracking_steps) {
            None => Ok(limits::PATTERN_STEPS),
            Some(0) => Err(TooCostly),
            Some(backtracks) => {
                Ok(usize::try_from(backtracks).unwrap_or(usize::MAX).min(limits::PATTERN_STEPS))
            }
        }
    }

    /// Charges the cost of matching a pattern on a text.
    fn match_pattern(&mut self, pattern: &str, text: &str, weight: usize) -> Result<(), TooCostly> {
        self.charge(weight.saturating_mul(PATTERN_COST + text.len() / 64))?;
        let MatchCost { steps, backtracks } = self.patterns.match_cost(pattern, text.len());
        let steps = steps.saturating_mul(weight as u64);
        match backtracks {
            true => self.backtracking_steps = self.backtracking_steps.saturating_add(steps),
            false => self.match_steps_left = self.match_steps_left.checked_sub(steps).ok_or(TooCostly)?,
        }
        Ok(())
    }

    fn charge(&mut self, cost: usize) -> Result<(), TooCostly> {
        self.steps_left = self.steps_left.checked_sub(cost).ok_or(TooCostly)?;
        Ok(())
    }

    /// Traverses a schema on a value. `weight` is the number of times that validation gets here.
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
        let Value::Object(schema) = schema else { return self.charge(weight) };
        self.charge(weight.saturating_mul(own_cost(schema, value)))?;
        if let (Some(Value::String(pattern)), Value::String(text)) = (schema.get("pattern"), value) {
            self.match_pattern(pattern, text, weight)?;
        }
        let depth = depth + 1;
        // Finding unevaluated parts validates everything else again.
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
        // A format costs as much as a small pattern.
        cost += usize::from(schema.contains_key("format")) * (PATTERN_COST + text.len() / 64);
    }
    if schema.contains_key("uniqueItems") {
        cost += length(value);
    }
    cost
}
