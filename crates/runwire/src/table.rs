//! Columns of text for a person.

use std::fmt::{self, Display};

/// Rows under a heading, each column as wide as its widest cell.
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new<const N: usize>(headings: [&str; N]) -> Self {
        Self { rows: vec![headings.iter().map(|heading| heading.to_uppercase()).collect()] }
    }

    pub(crate) fn row<const N: usize>(&mut self, cells: [String; N]) {
        // What stands in a cell came from outside; nothing in it may move the cursor or end the row.
        let cells = cells.iter().map(|cell| cell.chars().map(tame).collect());
        self.rows.push(cells.collect());
    }
}

impl Display for Table {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width_of =
            |column: usize| self.rows.iter().filter_map(|row| row.get(column)).map(|cell| width(cell)).max();
        let widths: Vec<usize> = (0..columns).map(|column| width_of(column).unwrap_or(0)).collect();
        for row in &self.rows {
            let mut line = String::new();
            for (cell, most) in row.iter().zip(&widths) {
                line.push_str(cell);
                line.extend(std::iter::repeat_n(' ', most - width(cell) + 2));
            }
            writeln!(formatter, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

/// Replaces a character that would act on a terminal.
pub(crate) fn tame(letter: char) -> char {
    if letter.is_control() { '\u{fffd}' } else { letter }
}

/// Counts the columns that a text takes: most East Asian characters take two.
fn width(text: &str) -> usize {
    text.chars().map(|letter| if is_wide(letter) { 2 } else { 1 }).sum()
}

fn is_wide(letter: char) -> bool {
    matches!(letter,
        '\u{1100}'..='\u{115f}' | '\u{2e80}'..='\u{303e}' | '\u{3041}'..='\u{a4cf}' | '\u{ac00}'..='\u{d7a3}'
        | '\u{f900}'..='\u{faff}' | '\u{fe30}'..='\u{fe6f}' | '\u{ff00}'..='\u{ff60}' | '\u{ffe0}'..='\u{ffe6}'
        | '\u{1f300}'..='\u{1faff}' | '\u{20000}'..='\u{3fffd}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_whatever_stands_in_them() {
        let mut table = Table::new(["run", "agent"]);
        table.row(["天气".to_owned(), "a".to_owned()]);
        table.row(["evil\x1b[2J\nrow".to_owned(), String::new()]);
        assert_eq!(table.to_string(), "RUN           AGENT\n天气          a\nevil\u{fffd}[2J\u{fffd}row\n");
    }
}
