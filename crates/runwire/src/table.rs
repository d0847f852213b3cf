//! Tables of text, fitted to the terminal.

use std::fmt::{self, Display};

use runwire_view::columns::{self, BETWEEN};
use runwire_view::measure::{fit, pad, width};
pub(crate) use runwire_view::sanitize::sanitize;

/// Columns that the cells beside the first need to be readable.
const BESIDE_COLUMNS: usize = 20;

/// A table with headings; columns are as wide as their widest cell, or as the terminal allows.
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
    width: Option<usize>,
    widest: Option<usize>,
}

impl Table {
    pub(crate) fn new<const N: usize>(headings: [&str; N]) -> Self {
        let headings = headings.iter().map(|heading| heading.to_uppercase()).collect();
        Self { rows: vec![headings], width: None, widest: None }
    }

    pub(crate) fn row<const N: usize>(&mut self, cells: [String; N]) {
        // Cells are untrusted: they must not move the cursor or end the row.
        let cells = cells.iter().map(|cell| cell.chars().map(sanitize).collect());
        self.rows.push(cells.collect());
    }

    /// Fits the table to the columns of a terminal; 0 if there is none.
    ///
    /// The first column is for copying and never truncated; if it leaves too little space, the others go below it.
    pub(crate) fn fitted(mut self, columns: usize) -> Self {
        self.width = (columns > 0).then_some(columns);
        self
    }

    /// Limits the width of columns; a longer cell overflows to the right.
    pub(crate) fn overflowing(mut self, widest: usize) -> Self {
        self.widest = Some(widest);
        self
    }

    /// Returns the width of each column, and whether the others go below the first.
    fn widths(&self) -> (Vec<usize>, bool) {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let natural = |column: usize| {
            let widths = self.rows.iter().filter_map(|row| row.get(column)).map(|cell| width(cell));
            widths.filter(|width| self.widest.is_none_or(|widest| *width <= widest)).max().unwrap_or(0)
        };
        let natural: Vec<usize> = (0..columns).map(natural).collect();
        match (self.width, natural.split_first()) {
            (Some(max), Some((first, others))) => {
                let beside = max.saturating_sub(first + BETWEEN);
                let is_below = beside < BESIDE_COLUMNS.min(others.iter().sum());
                let left = if is_below { max.saturating_sub(BETWEEN) } else { beside };
                let others = if left == 0 { Vec::new() } else { columns::readable(others, left) };
                ([vec![*first], others].concat(), is_below)
            }
            _ => (natural, false),
        }
    }
}

impl Display for Table {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (widths, is_below) = self.widths();
        for row in &self.rows {
            let mut line = String::new();
            for (at, (cell, column)) in row.iter().zip(&widths).enumerate() {
                if at == 1 && is_below {
                    writeln!(formatter, "{}", line.trim_end())?;
                    line = " ".repeat(BETWEEN);
                }
                match self.widest {
                    None => line.push_str(&pad(&fit(cell, *column), column + BETWEEN, false)),
                    Some(_) => line.push_str(&pad(cell, width(cell).max(*column) + BETWEEN, false)),
                }
            }
            writeln!(formatter, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_cells_sanitized() {
        let mut table = Table::new(["run", "agent"]);
        table.row(["天气".to_owned(), "a".to_owned()]);
        table.row(["evil\x1b[2J\nrow".to_owned(), String::new()]);
        assert_eq!(table.to_string(), "RUN           AGENT\n天气          a\nevil\u{fffd}[2J\u{fffd}row\n");
    }

    #[test]
    fn a_long_cell_overflows_only_its_row() {
        let mut table = Table::new(["key", "value", "from"]);
        table.row(["a".to_owned(), "short".to_owned(), "here".to_owned()]);
        table.row(["b".to_owned(), "long ".repeat(4), "there".to_owned()]);
        assert_eq!(
            table.overflowing(10).to_string(),
            "KEY  VALUE  FROM\na    short  here\nb    long long long long   there\n"
        );
    }

    #[test]
    fn a_table_fits_the_terminal_without_truncating_the_first_column() {
        let mut table = Table::new(["run", "status", "agent", "started"]);
        let id = "0afc80bf-ee23-4662";
        let started = "2026-11-15 02:44:33 UTC".to_owned();
        table.row([id.to_owned(), "completed".to_owned(), "茶师傅与他的朋友们".to_owned(), started]);
        let table = table.fitted(60);
        assert_eq!(
            table.to_string(),
            "RUN                 STATUS     AGENT          STARTED\n\
             0afc80bf-ee23-4662  completed  茶师傅与他的…  2026-11-15 02…\n"
        );
        let table = table.fitted(40);
        assert_eq!(
            table.to_string(),
            "RUN                 STATUS     AGENT\n0afc80bf-ee23-4662  completed  茶师傅与…\n"
        );
        let table = table.fitted(24);
        assert_eq!(table.to_string(), format!("RUN\n  STATUS     AGENT\n{id}\n  completed  茶师傅与他…\n"));
    }
}
