//! Thought trees and thought graphs, a line each.

use runwire_model::Json;
use runwire_model::event::{GotPlanned, TotEvaluated};
use serde_json::Value;

use super::clean::cut;
use super::line::Line;
use super::style::Paint;
use super::value::{counted, first_text, short, short_value};

/// The thoughts that are kept of a tree, to name them when they are judged.
const KEPT: usize = 32;

/// Bytes that are kept of each.
const KEPT_BYTES: usize = 200;

/// Reads the thoughts that a tree has grown, shortened.
pub(super) fn candidates(json: &Json) -> Vec<String> {
    let Ok(Value::Array(candidates)) = json.to_value() else {
        return vec![cut(&short(json), KEPT_BYTES).to_owned()];
    };
    let text = |candidate: &Value| {
        let named = first_text(candidate, &["thought", "content", "text", "name"]);
        cut(&named.map_or_else(|| short_value(candidate), str::to_owned), KEPT_BYTES).to_owned()
    };
    candidates.iter().take(KEPT).map(text).collect()
}

/// Draws the thoughts that a tree has grown.
pub(super) fn expanded(candidates: &[String], width: usize) -> Vec<Line> {
    candidates.iter().map(|thought| Line::of(Paint::Dim, &format!("◇ {thought}")).fitted(width)).collect()
}

/// Draws how the thoughts of a tree are judged: the chosen one, and the scores of all.
pub(super) fn evaluated(judged: &TotEvaluated, thoughts: &[String], width: usize) -> Line {
    let scores = match judged.scores.to_value() {
        Ok(Value::Array(scores)) => scores.iter().take(KEPT).map(short_value).collect(),
        Ok(other) => vec![short_value(&other)],
        Err(_) => vec![short(&judged.scores)],
    };
    let chosen = judged.chosen.text().parse::<usize>().ok();
    let name = chosen.and_then(|chosen| thoughts.get(chosen)).cloned();
    let name = name.unwrap_or_else(|| format!("thought {}", short(&judged.chosen)));
    let mut line = Line::of(Paint::Accent, "◆ ").and(Paint::Plain, &name);
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

/// Draws that a tree goes back.
pub(super) fn backtracked(reason: Option<&str>, to_depth: &Json, width: usize) -> Line {
    let mut line = Line::of(Paint::Dim, &format!("↩ back to depth {}", short(to_depth)));
    if let Some(reason) = reason {
        line.push(Paint::Dim, &format!(": {}", cut(reason, 400)));
    }
    line.fitted(width)
}

/// Draws the layout of a thought graph.
pub(super) fn planned(planned: &GotPlanned, width: usize) -> Line {
    let number = |json: &Option<Json>| json.as_ref().and_then(|json| json.text().parse().ok());
    let counts = [(number(&planned.node_count), "node"), (number(&planned.edge_count), "edge")];
    let counts = counts.into_iter().filter_map(|(count, one)| Some(counted(count?, one)));
    let mut words = vec![counts.collect::<Vec<_>>().join(", ")];
    if let Some(Ok(Value::Array(ids))) = planned.node_ids.as_ref().map(Json::to_value) {
        words.push(ids.iter().take(KEPT).map(short_value).collect::<Vec<_>>().join(", "));
    }
    words.retain(|word| !word.is_empty());
    Line::of(Paint::Dim, &format!("◇ graph: {}", words.join(": "))).fitted(width)
}

/// Draws that a thought graph grows.
pub(super) fn grown(node: &str, nodes: Option<&Json>, edges: Option<&Json>, width: usize) -> Line {
    let part =
        |json: Option<&Json>, name: &str| json.map(|json| format!("{name} {}", cut(&short(json), 400)));
    let parts = [part(nodes, "nodes"), part(edges, "edges")].into_iter().flatten().collect::<Vec<_>>();
    Line::of(Paint::Dim, &format!("◇ {node} grows: {}", parts.join(", "))).fitted(width)
}
