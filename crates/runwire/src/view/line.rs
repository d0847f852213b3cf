//! One line of painted pieces.

use std::fmt::Write as _;

use super::clean::one_line;
use super::measure::{fit_room, room};
use super::style::Paint;

/// A line of painted pieces, safe to print.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Line {
    spans: Vec<(Paint, String)>,
}

impl Line {
    /// Makes an empty line.
    pub(super) fn new() -> Self {
        Self::default()
    }

    /// Makes a line of one piece.
    pub(super) fn of(paint: Paint, text: &str) -> Self {
        Self::new().and(paint, text)
    }

    /// Adds a piece; what would act on a terminal is replaced.
    #[must_use]
    pub(super) fn and(mut self, paint: Paint, text: &str) -> Self {
        self.push(paint, text);
        self
    }

    /// Adds a piece; what would act on a terminal is replaced.
    pub(super) fn push(&mut self, paint: Paint, text: &str) {
        if !text.is_empty() {
            self.spans.push((paint, one_line(text).into_owned()));
        }
    }

    /// Adds the pieces of another line.
    #[must_use]
    pub(super) fn join(mut self, other: Self) -> Self {
        self.spans.extend(other.spans);
        self
    }

    /// Counts the columns that the line takes at most.
    pub(super) fn room(&self) -> usize {
        self.spans.iter().map(|(_, text)| room(text)).sum()
    }

    /// Cuts the line to the columns it may take.
    #[must_use]
    pub(super) fn fitted(mut self, most: usize) -> Self {
        if self.room() <= most {
            return self;
        }
        let mut left = most;
        for at in 0..self.spans.len() {
            let takes = room(&self.spans[at].1);
            // The sign that something is missing needs a column, also where a piece just fits.
            if takes < left {
                left -= takes;
                continue;
            }
            let text = fit_room(&format!("{}  ", self.spans[at].1), left).into_owned();
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

/// Writes a painted text.
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

    fn text(line: &Line) -> String {
        let mut out = String::new();
        line.write(false, &mut out);
        out
    }

    #[test]
    fn a_line_is_cut_across_its_pieces() {
        let line = Line::of(Paint::Good, "✓ ").and(Paint::Plain, "天气查询").and(Paint::Dim, "  done");
        assert_eq!(text(&line.clone().fitted(16)), "✓ 天气查询  done");
        assert_eq!(text(&line.clone().fitted(9)), "✓ 天气查…");
        assert_eq!(text(&line.clone().fitted(1)), "…");
        for most in 0..20 {
            assert!(line.clone().fitted(most).room() <= most);
        }
    }
}
