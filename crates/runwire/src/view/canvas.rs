//! Where a view draws: text that streams, and under it rows that change in place.
//!
//! On a terminal the cursor stands after the text, or at the end of the last row where rows are drawn. To go on
//! with the text, the rows are lifted: the cursor goes up, they are erased, the unfinished line is written
//! again, and the rows are drawn anew under whatever has come. No escape but these is used: up, erase the
//! line, erase what is below, colours. Text and rows stay one column short of the terminal's width, so that
//! no terminal wraps a line by itself and none has to agree with another on what happens at the edge.

use std::fmt::Write as _;
use std::io::{self, Write};

use super::clean::tame;
use super::line::{Line, paint_into};
use super::measure::room;
use super::style::{Paint, Style};
use super::wrap::{Filled, Filling};

/// Bytes that are gathered at most before they are written.
const GATHERED_BYTES: usize = 64 << 10;

/// Columns where nobody knows how many there are.
const UNKNOWN_WIDTH: usize = 80;

/// Rows where nobody knows how many there are.
const UNKNOWN_HEIGHT: usize = 24;

/// The columns under which rows that change in place make no sense.
const NARROWEST: usize = 20;

/// The widest that text is wrapped to.
const WIDEST: usize = 1000;

/// The rows that change in place, at most.
const ROWS: usize = 8;

/// The text and the rows under it.
pub(super) struct Canvas<W> {
    out: W,
    gathered: String,
    color: bool,
    live: bool,
    columns: usize,
    height: usize,
    /// The line that the text stands on, as far as it is not ended.
    filling: Filling,
    paint: Paint,
    indent: usize,
    /// Whether the text stands in the middle of a line; of use where lines are not kept.
    mid_line: bool,
    /// Whether anything was written, and whether it ended in an empty line.
    has_text: bool,
    ends_blank: bool,
    /// The rows on the screen, by the columns that each takes.
    drawn: Vec<usize>,
    rows: Vec<Line>,
    rows_changed: bool,
}

impl<W: Write> Canvas<W> {
    pub(super) fn new(style: &Style, out: W) -> Self {
        let mut canvas = Self {
            out,
            gathered: String::new(),
            color: style.color,
            live: style.live && (style.width == 0 || style.width >= NARROWEST),
            columns: 0,
            height: 0,
            filling: Filling::default(),
            paint: Paint::Plain,
            indent: 0,
            mid_line: false,
            has_text: false,
            ends_blank: false,
            drawn: Vec::new(),
            rows: Vec::new(),
            rows_changed: false,
        };
        canvas.set_size(style.width, style.height);
        canvas
    }

    fn set_size(&mut self, width: usize, height: usize) {
        self.columns = if width == 0 { UNKNOWN_WIDTH } else { width };
        self.height = if height == 0 { UNKNOWN_HEIGHT } else { height };
    }

    /// Tells whether rows can change in place.
    pub(super) fn is_live(&self) -> bool {
        self.live
    }

    /// Tells the columns that a line may take.
    pub(super) fn width(&self) -> usize {
        self.columns.clamp(NARROWEST, WIDEST) - 1
    }

    /// Tells how many rows can be drawn.
    pub(super) fn rows_most(&self) -> usize {
        if self.columns < NARROWEST { 0 } else { ROWS.min(self.height.saturating_sub(2) / 2) }
    }

    /// Tells whether the text stands in the middle of a line.
    pub(super) fn is_mid_line(&self) -> bool {
        self.mid_line
    }

    /// Takes the new size of the terminal, which may have wrapped what was drawn.
    pub(super) fn resize(&mut self, width: usize, height: usize) {
        if !self.live {
            return self.set_size(width, height);
        }
        self.set_size(width, height);
        let text = std::mem::take(&mut self.filling.text);
        let above = if text.is_empty() { 0 } else { lines_of(room(&text), self.columns) };
        self.go_up((self.drawn_rows() + above).saturating_sub(1));
        self.gathered.push_str("\r\x1b[J");
        self.drawn.clear();
        self.filling.clear();
        self.mid_line = false;
        self.rows_changed = true;
        let (paint, indent) = (self.paint, self.indent);
        let spaces = " ".repeat(indent);
        match text.strip_prefix(&spaces) {
            Some(text) => self.stream(text, paint, indent),
            // A line that begins with a label has no indent; only what wraps from it does.
            None => {
                let first = text.chars().next().map_or(0, char::len_utf8);
                self.stream(&text[..first], paint, 0);
                self.stream(&text[first..], paint, indent);
            }
        }
    }

    /// Streams a text on; its further lines begin with an indent.
    pub(super) fn stream(&mut self, text: &str, paint: Paint, indent: usize) {
        if text.is_empty() {
            return;
        }
        self.lift();
        (self.paint, self.indent) = (paint, indent);
        let colors = paint.colors();
        let painted = self.color && paint != Paint::Plain;
        if painted {
            let _ = write!(self.gathered, "{colors}");
        }
        if self.live {
            self.fill(text)
        } else {
            self.copy(text)
        }
        if painted {
            let _ = write!(self.gathered, "{colors:#}");
        }
    }

    /// Ends the line that the text stands on.
    pub(super) fn end_line(&mut self) {
        if self.mid_line {
            self.lift();
            self.line_end();
        }
    }

    /// Writes a whole line.
    pub(super) fn line(&mut self, line: &Line) {
        self.end_line();
        self.lift();
        line.write(self.color, &mut self.gathered);
        self.ends_blank = line.room() == 0;
        self.has_text = true;
        self.newline();
    }

    /// Makes sure that an empty line comes before what follows.
    pub(super) fn gap(&mut self) {
        self.end_line();
        if self.has_text && !self.ends_blank {
            self.line(&Line::new());
        }
    }

    /// Says which rows stand under the text.
    pub(super) fn set_rows(&mut self, rows: Vec<Line>) {
        if self.live && rows != self.rows {
            self.rows = rows;
            self.rows_changed = true;
        }
    }

    /// Writes what was gathered, once it is much.
    pub(super) fn relieve(&mut self) -> io::Result<()> {
        if self.gathered.len() < GATHERED_BYTES { Ok(()) } else { self.write_out() }
    }

    /// Draws the rows and lets a reader see everything.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        if self.live && (self.rows_changed || self.drawn.is_empty() && !self.rows.is_empty()) {
            self.draw_rows();
        }
        if self.gathered.is_empty() {
            return Ok(());
        }
        self.write_out()?;
        self.out.flush()
    }

    fn write_out(&mut self) -> io::Result<()> {
        let gathered = std::mem::take(&mut self.gathered);
        self.out.write_all(gathered.as_bytes())?;
        self.gathered = gathered;
        self.gathered.clear();
        self.gathered.shrink_to(2 * GATHERED_BYTES);
        Ok(())
    }

    fn draw_rows(&mut self) {
        self.rows_changed = false;
        if self.drawn.is_empty() {
            if self.rows.is_empty() {
                return;
            }
            if !self.filling.is_empty() {
                self.newline();
            }
        } else {
            self.go_up(self.drawn_rows() - 1);
            self.gathered.push_str("\r\x1b[J");
            if self.rows.is_empty() {
                self.drawn.clear();
                self.rewrite_line_above();
                return;
            }
        }
        self.drawn.clear();
        let most = self.width();
        for (at, row) in std::mem::take(&mut self.rows).into_iter().enumerate() {
            if at > 0 {
                self.newline();
            }
            let row = row.fitted(most);
            row.write(self.color, &mut self.gathered);
            self.drawn.push(row.room());
            self.rows.push(row);
        }
    }

    /// Takes the rows off the screen, and goes back to the end of the text.
    fn lift(&mut self) {
        if self.drawn.is_empty() {
            return;
        }
        self.go_up(self.drawn_rows() - 1);
        self.gathered.push_str("\r\x1b[J");
        self.drawn.clear();
        self.rows_changed = true;
        self.rewrite_line_above();
    }

    fn rewrite_line_above(&mut self) {
        if !self.filling.is_empty() {
            self.go_up(1);
            self.gathered.push_str("\r\x1b[K");
            paint_into(self.paint, &self.filling.text, self.color, &mut self.gathered);
        }
    }

    /// Counts the rows that the drawn ones take, also where a narrower terminal has wrapped them.
    fn drawn_rows(&self) -> usize {
        self.drawn.iter().map(|room| lines_of(*room, self.columns)).sum()
    }

    fn go_up(&mut self, rows: usize) {
        if rows > 0 {
            let _ = write!(self.gathered, "\x1b[{rows}A");
        }
    }

    fn newline(&mut self) {
        self.gathered.push_str(if self.live { "\r\n" } else { "\n" });
    }

    fn line_end(&mut self) {
        // An empty line in the text is one, whatever came before it.
        self.ends_blank = !self.mid_line;
        self.newline();
        self.filling.clear();
        self.mid_line = false;
    }

    /// Copies a text where nothing is wrapped.
    fn copy(&mut self, text: &str) {
        for letter in text.chars() {
            match letter {
                '\r' => {}
                '\n' => self.line_end(),
                letter => {
                    if !self.mid_line {
                        self.gathered.extend(std::iter::repeat_n(' ', self.indent));
                    }
                    self.gathered.push(if letter == '\t' { letter } else { tame(letter) });
                    self.begun();
                }
            }
        }
    }

    fn begun(&mut self) {
        self.mid_line = true;
        self.has_text = true;
        self.ends_blank = false;
    }

    /// Wraps a text as it comes.
    fn fill(&mut self, text: &str) {
        for letter in text.chars() {
            match letter {
                '\r' => {}
                '\n' => self.line_end(),
                '\t' => (0..self.filling.tab(self.indent)).for_each(|_| self.put(' ')),
                letter => self.put(letter),
            }
        }
    }

    fn put(&mut self, letter: char) {
        if self.filling.is_empty() {
            self.filling.indent(self.indent);
            self.gathered.extend(std::iter::repeat_n(' ', self.indent));
        }
        match self.filling.push(letter, self.width(), self.indent) {
            Filled::Added => self.gathered.push(tame(letter)),
            Filled::Dropped => {}
            Filled::Broken { full, moved } => {
                if moved {
                    self.gathered.push_str("\r\x1b[K");
                    self.gathered.push_str(&full);
                }
                self.newline();
                self.gathered.push_str(&self.filling.text);
            }
        }
        self.begun();
    }
}

/// Counts the lines of a terminal that a line of some width takes.
fn lines_of(room: usize, columns: usize) -> usize {
    room.div_ceil(columns.max(1)).max(1)
}
