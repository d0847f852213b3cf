//! A line of styled spans.

use std::fmt::Write as _;

use super::measure::{fit_max_width, max_width};
use super::sanitize::one_line;
use super::style::Paint;

/// A line of styled spans, sanitized.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct PaintedLine {
    spans: Vec<(Paint, String)>,
}

impl PaintedLine {
    /// Creates an empty line.
    pub(super) fn new() -> Self {
        Self::default()
    }

    /// Creates a line of one span.
    pub(super) fn of(paint: Paint, text: &str) -> Self {
        Self::new().and(paint, text)
    }

    /// Adds a sanitized span.
    #[must_use]
    pub(super) fn and(mut self, paint: Paint, text: &str) -> Self {
        self.push(paint, text);
        self
    }

    /// Adds a sanitized span.
    pub(super) fn push(&mut self, paint: Paint, text: &str) {
        if !text.is_empty() {
            self.spans.push((paint, one_line(text).into_owned()));
        }
    }

    /// Appends the spans of another line.
    #[must_use]
    pub(super) fn join(mut self, other: Self) -> Self {
        self.spans.extend(other.spans);
        self
    }

    /// Returns the maximum width of the line.
    pub(super) fn max_width(&self) -> usize {
        self.spans.iter().map(|(_, text)| max_width(text)).sum()
    }

    /// Truncates the line to a width.
    #[must_use]
    pub(super) fn fitted(mut self, max: usize) -> Self {
        if self.max_width() <= max {
            return self;
        }
        let mut left = max;
        for at in 0..self.spans.len() {
            let takes = max_width(&self.spans[at].1);
            // The ellipsis needs a column, even if the span just fits.
            if takes < left {
                left -= takes;
                continue;
            }
            let text = fit_max_width(&format!("{}  ", self.spans[at].1), left).into_owned();
            self.spans[at].1 = text;
            self.spans.truncate(at + 1);
            break;
        }
        self
    }

    /// Writes the line.
    pub(super) fn write(&self, color: bool, out: &mut String) {
        for (paint, text) in &self.spans {
            paint_into(*paint, text, color, out);
        }
    }
}

/// Writes a styled text.
pub(super) fn paint_into(paint: Paint, text: &str, color: bool, out: &mut String) {
    let colors = paint.colors();
    if color && paint != Paint::Plain {
        // Writing to a string cannot fail.
        let _ = write!(out, "{colors}{text}{colors:#}");
    } else {
        out.push_str(text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(line: &PaintedLine) -> String {
        let mut out = String::new();
        line.write(false, &mut out);
        out
    }

    #[test]
    fn a_line_is_truncated_across_its_spans() {
        let line = PaintedLine::of(Paint::Good, "✓ ").and(Paint::Plain, "天气查询").and(Paint::Dim, "  done");
        assert_eq!(text(&line.clone().fitted(16)), "✓ 天气查询  done");
        assert_eq!(text(&line.clone().fitted(9)), "✓ 天气查…");
        assert_eq!(text(&line.clone().fitted(1)), "…");
        for max in 0..20 {
            assert!(line.clone().fitted(max).max_width() <= max);
        }
    }
}
