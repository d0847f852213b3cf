//! Draws trees and graphs of thoughts, one line per event.

use runwire_model::Json;
use runwire_model::event::{GotPlanned, TotEvaluated};
use serde_json::Value;

use super::line::PaintedLine;
use super::sanitize::cut;
use super::style::Paint;
use super::value::{counted, first_text, short, short_value};

/// Limits the remembered thoughts of a tree, which name the chosen one.
const MAX_THOUGHTS: usize = 32;

/// Limits the bytes of each.
const MAX_THOUGHT_BYTES: usize = 200;

/// Reads a tree's candidates, truncated.
pub(super) fn candidates(json: &Json) -> Vec<String> {
    let Ok(Value::Array(candidates)) = json.to_value() else {
        return vec![cut(&short(json), MAX_THOUGHT_BYTES).to_owned()];
    };
    let text = |candidate: &Value| {
        let named = first_text(candidate, &["thought", "content", "text", "name"]);
        cut(&named.map_or_else(|| short_value(candidate), str::to_owned), MAX_THOUGHT_BYTES).to_owned()
    };
    candidates.iter().take(MAX_THOUGHTS).map(text).collect()
}

/// Draws a tree's candidates.
pub(super) fn expanded(candidates: &[String], width: usize) -> Vec<PaintedLine> {
    candidates
        .iter()
        .map(|thought| PaintedLine::of(Paint::Dim, &format!("◇ {thought}")).fitted(width))
        .collect()
}

/// Draws the evaluation of a tree: the chosen thought and all scores.
pub(super) fn evaluated(judged: &TotEvaluated, thoughts: &[String], width: usize) -> PaintedLine {
    let scores = match judged.scores.to_value() {
        Ok(Value::Array(scores)) => scores.iter().take(MAX_THOUGHTS).map(short_value).collect(),
        Ok(other) => vec![short_value(&other)],
        Err(_) => vec![short(&judged.scores)],
    };
    let chosen = judged.chosen.text().parse::<usize>().ok();
    let name = chosen.and_then(|chosen| thoughts.get(chosen)).cloned();
    let name = name.unwrap_or_else(|| format!("thought {}", short(&judged.chosen)));
    let mut line = PaintedLine::of(Paint::Accent, "◆ ").and(Paint::Plain, &name);
    if let Some(score) = chosen.and_then(|chosen| scores.get(chosen)) {
        line.push(Paint::Plain, &format!("  {score}"));
    }
    let others = scores.iter().enumerate().filter(|(at, _)| Some(*at) != chosen);
    let others: Vec<&str> = others.map(|(_, score)| score.as_str()).collect();
    if !others.is_empty() {
        line.push(Paint::Dim, &format!(" over {}", others.join(", ")));
    }
    line.fitted(width)
}

/// Draws that a tree backtracks.
pub(super) fn backtracked(reason: Option<&str>, to_depth: &Json, width: usize) -> PaintedLine {
    let mut line = PaintedLine::of(Paint::Dim, &format!("↩ back to depth {}", short(to_depth)));
    if let Some(reason) = reason {
        line.push(Paint::Dim, &format!(": {}", cut(reason, 400)));
    }
    line.fitted(width)
}

/// Draws the plan of a thought graph.
pub(super) fn planned(planned: &GotPlanned, width: usize) -> PaintedLine {
    let number = |json: &Option<Json>| json.as_ref().and_then(|json| json.text().parse().ok());
    let counts = [(number(&planned.node_count), "node"), (number(&planned.edge_count), "edge")];
    let counts = counts.into_iter().filter_map(|(count, one)| Some(counted(count?, one)));
    let mut words = vec![counts.collect::<Vec<_>>().join(", ")];
    if let Some(Ok(Value::Array(ids))) = planned.node_ids.as_ref().map(Json::to_value) {
        words.push(ids.iter().take(MAX_THOUGHTS).map(short_value).collect::<Vec<_>>().join(", "));
    }
    words.retain(|word| !word.is_empty());
    PaintedLine::of(Paint::Dim, &format!("◇ graph: {}", words.join(": "))).fitted(width)
}

/// Draws nodes and edges added to a thought graph.
pub(super) fn grown(node: &str, nodes: Option<&Json>, edges: Option<&Json>, width: usize) -> PaintedLine {
    let part =
        |json: Option<&Json>, name: &str| json.map(|json| format!("{name} {}", cut(&short(json), 400)));
    let parts = [part(nodes, "nodes"), part(edges, "edges")].into_iter().flatten().collect::<Vec<_>>();
    PaintedLine::of(Paint::Dim, &format!("◇ {node} grows: {}", parts.join(", "))).fitted(width)
}
