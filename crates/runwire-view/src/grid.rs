//! Tables of data blocks: reads rows and columns, and draws them.

use serde_json::Value;

use super::columns::{BETWEEN, fitted};
use super::line::PaintedLine;
use super::measure::{fit, pad, width};
use super::sanitize::{cut, one_line};
use super::style::Paint;
use super::value::{counted, first_text, short_value};

/// Limits the rows shown.
const ROWS: usize = 20;

/// Limits the columns.
const COLUMNS: usize = 64;

/// Maximum width of a cell.
const CELL: usize = 60;

/// A table with headings.
#[derive(Debug, Default)]
pub(super) struct Grid {
    headings: Vec<String>,
    /// The shown rows.
    rows: Vec<Vec<String>>,
    /// For each column, whether all cells are numbers.
    numeric: Vec<bool>,
    /// Total number of rows.
    total: usize,
}

impl Grid {
    /// Reads a table from a data block: arrays with `columns`, or objects.
    pub(super) fn of(data: &Value) -> Option<Self> {
        let rows = match data {
            Value::Array(rows) => rows,
            data => {
                ["rows", "data", "records", "values"].iter().find_map(|name| data.get(name)?.as_array())?
            }
        };
        let named = data.get("columns").and_then(Value::as_array);
        let mut keys: Vec<String> = Vec::new();
        match named.filter(|columns| !columns.is_empty()) {
            Some(columns) => keys.extend(columns.iter().take(COLUMNS).map(column_key)),
            None => {
                let members = rows.iter().take(ROWS).filter_map(Value::as_object).flat_map(|row| row.keys());
                for member in members {
                    if keys.len() < COLUMNS && !keys.contains(member) {
                        keys.push(member.clone());
                    }
                }
            }
        }
        let headings = match named.filter(|columns| !columns.is_empty()) {
            Some(columns) => columns.iter().take(COLUMNS).map(column_title).collect(),
            None => keys.clone(),
        };
        let wide = rows.iter().take(ROWS).filter_map(Value::as_array).map(Vec::len).max().unwrap_or(0);
        let columns = keys.len().max(wide.min(COLUMNS));
        if columns == 0 && named.is_none() {
            return None;
        }
        let cells = |row: &Value| -> Vec<Value> {
            match row {
                Value::Array(cells) => cells.iter().take(columns).cloned().collect(),
                Value::Object(row) => {
                    keys.iter().map(|key| row.get(key).cloned().unwrap_or_default()).collect()
                }
                other => vec![other.clone()],
            }
        };
        let shown: Vec<Vec<Value>> = rows.iter().take(ROWS).map(cells).collect();
        let numeric = (0..columns)
            .map(|column| {
                let mut cells =
                    shown.iter().filter_map(|row| row.get(column)).filter(|cell| !cell.is_null()).peekable();
                cells.peek().is_some() && cells.all(Value::is_number)
            })
            .collect();
        let rows_of_text = shown.iter().map(|row| row.iter().map(cell_text).collect()).collect();
        Some(Self { headings, rows: rows_of_text, numeric, total: rows.len() })
    }

    /// Creates a table of a chart's series.
    pub(super) fn of_series(labels: &[String], series: &[(String, Vec<f64>)]) -> Self {
        let mut headings = vec![String::new()];
        headings.extend(series.iter().take(COLUMNS).map(|(name, _)| name.clone()));
        let row = |(at, label): (usize, &String)| {
            let mut row = vec![label.clone()];
            row.extend(
                series
                    .iter()
                    .take(COLUMNS)
                    .map(|(_, values)| values.get(at).map(f64::to_string).unwrap_or_default()),
            );
            row
        };
        let rows = labels.iter().enumerate().take(ROWS).map(row).collect();
        let numeric = (0..headings.len()).map(|column| column > 0).collect();
        Self { headings, rows, numeric, total: labels.len() }
    }

    /// Draws the table within a width.
    pub(super) fn lines(&self, max: usize) -> Vec<PaintedLine> {
        let heading = |column: usize| self.headings.get(column).map(String::as_str).unwrap_or_default();
        let natural: Vec<usize> = (0..self.numeric.len())
            .map(|column| {
                let cells = self.rows.iter().filter_map(|row| row.get(column)).map(|cell| width(cell));
                cells.chain([width(heading(column))]).max().unwrap_or(0).clamp(1, CELL)
            })
            .collect();
        let widths = fitted(&natural, max);
        let row = |cells: &dyn Fn(usize) -> String, paint: Paint| {
            let mut line = String::new();
            for (column, to) in widths.iter().enumerate() {
                let right = self.numeric[column];
                line.push_str(&pad(&fit(&cells(column), *to), *to, right));
                line.extend(std::iter::repeat_n(' ', BETWEEN));
            }
            PaintedLine::of(paint, line.trim_end())
        };
        let mut lines = Vec::with_capacity(self.rows.len() + 3);
        if self.headings.iter().any(|heading| !heading.is_empty()) {
            lines.push(row(&|column| heading(column).to_owned(), Paint::Bold));
            lines.push(row(&|column| "─".repeat(widths[column]), Paint::Dim));
        }
        for cells in &self.rows {
            lines.push(row(&|column| cells.get(column).cloned().unwrap_or_default(), Paint::Plain));
        }
        if let Some(note) = self.note(widths.len()) {
            lines.push(PaintedLine::of(Paint::Dim, &note));
        }
        lines
    }

    fn note(&self, columns: usize) -> Option<String> {
        let rows = self.total - self.rows.len();
        let left_out = self.numeric.len() - columns;
        let count = |count: usize, one: &str| format!("{} more", counted(count as u64, one));
        let words = [(rows, "row"), (left_out, "column")].into_iter().filter(|(left, _)| *left > 0);
        let words: Vec<String> = words.map(|(left, one)| count(left, one)).collect();
        if self.total == 0 {
            return Some("no rows".to_owned());
        }
        (!words.is_empty()).then(|| format!("… {}", words.join(", ")))
    }
}

/// Returns the key of a column's cells in row objects.
fn column_key(column: &Value) -> String {
    let named = first_text(column, &["key", "field", "dataIndex", "name", "title", "label"]);
    named.map_or_else(|| column_title(column), str::to_owned)
}

fn column_title(column: &Value) -> String {
    let titled = first_text(column, &["title", "label", "name", "key", "field", "dataIndex"]);
    let title = titled.map_or_else(|| short_value(column), str::to_owned);
    one_line(cut(&title, 400)).into_owned()
}

fn cell_text(cell: &Value) -> String {
    let text = short_value(cell);
    one_line(cut(&text, 400)).into_owned()
}
