//! Charts of data blocks, drawn as bars of text.

use serde_json::Value;

use super::grid::Grid;
use super::line::PaintedLine;
use super::measure::{fit, pad, width};
use super::sanitize::{cut, one_line};
use super::style::Paint;
use super::value::{counted, first_text, short_value};

/// Limits the bars of a series.
const BARS: usize = 16;

/// Limits the series of a bar chart; more become a table.
const SERIES: usize = 3;

/// Limits the points.
const POINTS: usize = 1000;

/// A chart: labels, and named series of values.
#[derive(Debug)]
pub(super) struct Chart {
    labels: Vec<String>,
    series: Vec<(String, Vec<f64>)>,
}

impl Chart {
    /// Reads a chart from a data block, in the formats of common chart libraries.
    pub(super) fn of(data: &Value) -> Option<Self> {
        let inner = data.get("data").filter(|inner| inner.is_object()).unwrap_or(data);
        let labels = ["labels", "categories", "x"].iter().find_map(|name| inner.get(name)?.as_array());
        let series = ["series", "datasets"].iter().find_map(|name| inner.get(name)?.as_array());
        if let (Some(labels), Some(series)) = (labels, series) {
            let series: Option<Vec<_>> = series.iter().take(64).map(named_series).collect();
            return Self { labels: texts(labels), series: series? }.checked();
        }
        if let (Some(labels), Some(values)) =
            (labels, ["values", "y", "data"].iter().find_map(|name| inner.get(name)?.as_array()))
        {
            return Self { labels: texts(labels), series: vec![(String::new(), numbers(values)?)] }.checked();
        }
        let points = match data {
            Value::Array(points) => points,
            data => {
                ["data", "points", "values", "items"].iter().find_map(|name| data.get(name)?.as_array())?
            }
        };
        Self::of_points(points)?.checked()
    }

    /// Reads points that each have a label and a value.
    fn of_points(points: &[Value]) -> Option<Self> {
        let mut labels = Vec::new();
        let mut values = Vec::new();
        for point in points.iter().take(POINTS) {
            let label = ["label", "name", "category", "x", "key"].iter().find_map(|name| point.get(name))?;
            let value =
                ["value", "y", "count", "amount"].iter().find_map(|name| point.get(name)?.as_f64())?;
            labels.push(one_line(cut(&short_value(label), 200)).into_owned());
            values.push(value);
        }
        Some(Self { labels, series: vec![(String::new(), values)] })
    }

    fn checked(self) -> Option<Self> {
        let whole = self.series.iter().all(|(_, values)| values.len() == self.labels.len());
        (!self.labels.is_empty() && !self.series.is_empty() && whole).then_some(self)
    }

    /// Draws the chart within a width: bars if possible, else a table.
    pub(super) fn lines(&self, max: usize) -> Vec<PaintedLine> {
        let drawable = self.series.iter().flat_map(|(_, values)| values).all(|value| *value >= 0.0);
        if !drawable || self.series.len() > SERIES || max < 30 {
            return Grid::of_series(&self.labels, &self.series).lines(max);
        }
        let named = self.series.len() > 1;
        let mut lines = Vec::new();
        for (name, values) in &self.series {
            if named {
                lines.push(PaintedLine::of(Paint::Dim, &fit(name, max)));
            }
            lines.extend(self.bars(values, max));
        }
        let hidden = self.labels.len().saturating_sub(BARS);
        if hidden > 0 {
            lines.push(PaintedLine::of(Paint::Dim, &format!("… {} more", counted(hidden as u64, "bar"))));
        }
        lines
    }

    fn bars(&self, values: &[f64], max: usize) -> Vec<PaintedLine> {
        let largest = values.iter().copied().fold(0.0, f64::max);
        let shown = || self.labels.iter().zip(values).take(BARS);
        let label_width = shown().map(|(label, _)| width(label)).max().unwrap_or(0).min(max / 3);
        let figures: Vec<String> = shown().map(|(_, value)| value.to_string()).collect();
        let figure_width = figures.iter().map(String::len).max().unwrap_or(0).min(max / 3);
        let cells = max.saturating_sub(label_width + figure_width + 4).min(40);
        let bar = |((label, value), figure): ((&String, &f64), &String)| {
            PaintedLine::of(Paint::Plain, &pad(&fit(label, label_width), label_width, false))
                .and(Paint::Plain, "  ")
                .and(Paint::Accent, &pad(&blocks(*value, largest, cells), cells, false))
                .and(Paint::Plain, "  ")
                .and(Paint::Plain, &pad(&fit(figure, figure_width), figure_width, true))
        };
        shown().zip(&figures).map(bar).collect()
    }
}

/// Draws a bar in eighths of a cell.
fn blocks(value: f64, largest: f64, cells: usize) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let part = if largest > 0.0 { (value / largest).clamp(0.0, 1.0) } else { 0.0 };
    let eighths = (part * cells as f64 * 8.0).round() as usize;
    format!("{}{}", "█".repeat(eighths / 8), EIGHTHS[eighths % 8])
}

fn named_series(series: &Value) -> Option<(String, Vec<f64>)> {
    if let Value::Array(values) = series {
        return Some((String::new(), numbers(values)?));
    }
    let values = ["data", "values", "y"].iter().find_map(|name| series.get(name)?.as_array())?;
    let name = first_text(series, &["name", "label", "title"]).unwrap_or_default();
    Some((one_line(cut(name, 200)).into_owned(), numbers(values)?))
}

fn numbers(values: &[Value]) -> Option<Vec<f64>> {
    values.iter().take(POINTS).map(Value::as_f64).collect()
}

fn texts(values: &[Value]) -> Vec<String> {
    let text = |value| one_line(cut(&short_value(value), 200)).into_owned();
    values.iter().take(POINTS).map(text).collect()
}
