//! Draws data blocks: tables, charts, images, JSON.

use runwire_model::event::Data;
use serde_json::Value;

use super::chart::Chart;
use super::grid::Grid;
use super::line::PaintedLine;
use super::measure::fit;
use super::sanitize::cut;
use super::style::Paint;
use super::value::{first_text, short};

/// Longer image URLs are not shown.
const ADDRESS_BYTES: usize = 500;

/// Draws a block of data within a width.
pub(super) fn lines(block: &Data, width: usize) -> Vec<PaintedLine> {
    // Data that cannot be parsed is shown as text.
    let data = block.data.to_value().unwrap_or_default();
    let about = block.metadata.as_ref().and_then(|about| about.to_value().ok()).unwrap_or_default();
    let mut lines = heading(&data, &about, width);
    let drawn = match block.data_type.as_str() {
        "chart" => Chart::of(&data).map(|chart| chart.lines(width)).or_else(|| rows(&data, width)),
        "image" => return image(&data, &about, width),
        "dataframe" | "table" => rows(&data, width),
        // A custom block may be a table.
        _ if data.get("rows").is_some_and(Value::is_array) => rows(&data, width),
        _ => None,
    };
    match drawn {
        Some(drawn) => lines.extend(drawn),
        None => {
            let kind = format!("{}: ", block.data_type);
            let line = PaintedLine::of(Paint::Dim, &kind).and(Paint::Dim, cut(&short(&block.data), 2000));
            return vec![line.fitted(width)];
        }
    }
    lines
}

fn rows(data: &Value, width: usize) -> Option<Vec<PaintedLine>> {
    Grid::of(data).map(|grid| grid.lines(width))
}

/// Returns the heading: the block's name and description.
fn heading(data: &Value, about: &Value, width: usize) -> Vec<PaintedLine> {
    const NAMES: [&str; 4] = ["name", "title", "dataframe_name", "table_name"];
    let name = first_text(data, &NAMES).or_else(|| first_text(about, &NAMES));
    let described = first_text(about, &["description"]).or_else(|| first_text(data, &["description"]));
    let mut line = PaintedLine::new();
    if let Some(name) = name {
        line.push(Paint::Bold, cut(name, 400));
    }
    if let Some(described) = described {
        line.push(Paint::Dim, if name.is_some() { "  " } else { "" });
        line.push(Paint::Dim, cut(described, 400));
    }
    if line.max_width() == 0 { Vec::new() } else { vec![line.fitted(width)] }
}

/// Shows an image's name and URL; a long URL may wrap, so that it can be copied.
fn image(data: &Value, about: &Value, width: usize) -> Vec<PaintedLine> {
    const NAMES: [&str; 4] = ["name", "title", "alt", "description"];
    let name = first_text(data, &NAMES).or_else(|| first_text(about, &NAMES)).unwrap_or_default();
    let address =
        data.as_str().or_else(|| first_text(data, &["url", "src", "href", "path", "data", "base64"]));
    let line = PaintedLine::of(Paint::Dim, "image: ")
        .and(Paint::Bold, &fit(cut(name, 400), width.saturating_sub(7)));
    let line = if name.is_empty() { line } else { line.and(Paint::Plain, "  ") };
    vec![match address {
        Some(address) if is_address(address) => line.and(Paint::Accent, address),
        Some(inline) => {
            let kind = inline.strip_prefix("data:").and_then(|rest| rest.split([';', ',']).next());
            let kind = kind.map(|kind| format!("{}, ", cut(kind, 60))).unwrap_or_default();
            line.and(Paint::Dim, &format!("{kind}{} inside", size(inline.len())))
        }
        None => line.and(Paint::Dim, &fit(&cut(&data.to_string(), 400).replace('\n', " "), width / 2)),
    }]
}

fn is_address(text: &str) -> bool {
    text.len() <= ADDRESS_BYTES && !text.starts_with("data:") && !text.contains(char::is_whitespace)
}

fn size(bytes: usize) -> String {
    if bytes < 1024 { format!("{bytes} bytes") } else { format!("{} KiB", bytes.div_ceil(1024)) }
}
