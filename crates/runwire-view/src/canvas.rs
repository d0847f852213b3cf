//! The drawing area of a view: streaming text, and below it rows that change in place.
//!
//! On a terminal the cursor is after the text, or at the end of the last row. To continue the text, the rows are erased,
//! the unfinished line is rewritten, and the rows are drawn again below the new text. The only escapes are: cursor up,
//! erase line, erase below, colours. Text and rows stay one column short of the terminal's width, so that the terminal
//! never wraps a line itself: terminals differ at the edge.

use std::fmt::Write as _;
use std::io::{self, Write};

use super::line::{PaintedLine, paint_into};
use super::measure::max_width;
use super::sanitize::sanitize;
use super::style::{Paint, Style};
use super::wrap::{LineBuffer, PushedCharacter};

/// Bytes that are buffered before they are written.
const MAX_BUFFER_BYTES: usize = 64 << 10;

/// Width if it is unknown.
const DEFAULT_WIDTH: usize = 80;

/// Height if it is unknown.
const DEFAULT_HEIGHT: usize = 24;

/// Minimum width for rows that change in place.
const MIN_COLUMNS: usize = 20;

/// Maximum width of wrapped text.
const MAX_COLUMNS: usize = 1000;

/// Limits the rows that change in place.
const ROWS: usize = 8;

/// The text and the rows below it.
pub(super) struct Canvas<W> {
    out: W,
    buffer: String,
    color: bool,
    live: bool,
    columns: usize,
    height: usize,
    /// The unfinished line of text.
    line_buffer: LineBuffer,
    paint: Paint,
    indent: usize,
    /// Whether the last line of text is unfinished.
    mid_line: bool,
    /// Whether anything was written, and whether the last line is empty.
    has_text: bool,
    ends_blank: bool,
    /// Widths of the rows on the screen.
    drawn: Vec<usize>,
    rows: Vec<PaintedLine>,
    rows_changed: bool,
}

impl<W: Write> Canvas<W> {
    pub(super) fn new(style: &Style, out: W) -> Self {
        let mut canvas = Self {
            out,
            buffer: String::new(),
            color: style.color,
            live: style.live && (style.width == 0 || style.width >= MIN_COLUMNS),
            columns: 0,
            height: 0,
            line_buffer: LineBuffer::default(),
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
        self.columns = if width == 0 { DEFAULT_WIDTH } else { width };
        self.height = if height == 0 { DEFAULT_HEIGHT } else { height };
    }

    /// Returns true if rows can change in place.
    pub(super) fn is_live(&self) -> bool {
        self.live
    }

    /// Returns the maximum width of a line.
    pub(super) fn width(&self) -> usize {
        self.columns.clamp(MIN_COLUMNS, MAX_COLUMNS) - 1
    }

    /// Returns the maximum number of rows.
    pub(super) fn max_rows(&self) -> usize {
        if self.columns < MIN_COLUMNS { 0 } else { ROWS.min(self.height.saturating_sub(2) / 2) }
    }

    /// Returns true if the last line of text is unfinished.
    pub(super) fn is_mid_line(&self) -> bool {
        self.mid_line
    }

    /// Redraws after a change of the terminal's size, which may have wrapped lines.
    pub(super) fn resize(&mut self, width: usize, height: usize) {
        if !self.live {
            return self.set_size(width, height);
        }
        self.set_size(width, height);
        let text = std::mem::take(&mut self.line_buffer.text);
        let above = if text.is_empty() { 0 } else { lines_of(max_width(&text), self.columns) };
        self.go_up((self.drawn_rows() + above).saturating_sub(1));
        self.buffer.push_str("\r\x1b[J");
        self.drawn.clear();
        self.line_buffer.clear();
        self.mid_line = false;
        self.rows_changed = true;
        let (paint, indent) = (self.paint, self.indent);
        let spaces = " ".repeat(indent);
        match text.strip_prefix(&spaces) {
            Some(text) => self.stream(text, paint, indent),
            // A line that starts with a label has no indent; only its wrapped lines do.
            None => {
                let first = text.chars().next().map_or(0, char::len_utf8);
                self.stream(&text[..first], paint, 0);
                self.stream(&text[first..], paint, indent);
            }
        }
    }

    /// Appends text; further lines are indented.
    pub(super) fn stream(&mut self, text: &str, paint: Paint, indent: usize) {
        if text.is_empty() {
            return;
        }
        self.erase_rows();
        (self.paint, self.indent) = (paint, indent);
        let colors = paint.colors();
        let painted = self.color && paint != Paint::Plain;
        if painted {
            let _ = write!(self.buffer, "{colors}");
        }
        if self.live {
            self.fill(text)
        } else {
            self.copy(text)
        }
        if painted {
            let _ = write!(self.buffer, "{colors:#}");
        }
    }

    /// Ends the unfinished line of text.
    pub(super) fn end_line(&mut self) {
        if self.mid_line {
            self.erase_rows();
            self.line_end();
        }
    }

    /// Writes a whole line.
    pub(super) fn line(&mut self, line: &PaintedLine) {
        self.end_line();
        self.erase_rows();
        line.write(self.color, &mut self.buffer);
        self.ends_blank = line.max_width() == 0;
        self.has_text = true;
        self.newline();
    }

    /// Adds an empty line, unless there is one.
    pub(super) fn gap(&mut self) {
        self.end_line();
        if self.has_text && !self.ends_blank {
            self.line(&PaintedLine::new());
        }
    }

    /// Sets the rows below the text.
    pub(super) fn set_rows(&mut self, rows: Vec<PaintedLine>) {
        if self.live && rows != self.rows {
            self.rows = rows;
            self.rows_changed = true;
        }
    }

    /// Writes the buffer if it is full.
    pub(super) fn write_if_full(&mut self) -> io::Result<()> {
        if self.buffer.len() < MAX_BUFFER_BYTES { Ok(()) } else { self.write_out() }
    }

    /// Draws the rows and flushes the output.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        if self.live && (self.rows_changed || self.drawn.is_empty() && !self.rows.is_empty()) {
            self.draw_rows();
        }
        if self.buffer.is_empty() {
            return Ok(());
        }
        self.write_out()?;
        self.out.flush()
    }

    fn write_out(&mut self) -> io::Result<()> {
        let buffer = std::mem::take(&mut self.buffer);
        self.out.write_all(buffer.as_bytes())?;
        self.buffer = buffer;
        self.buffer.clear();
        self.buffer.shrink_to(2 * MAX_BUFFER_BYTES);
        Ok(())
    }

    fn draw_rows(&mut self) {
        self.rows_changed = false;
        if self.drawn.is_empty() {
            if self.rows.is_empty() {
                return;
            }
            if !self.line_buffer.is_empty() {
                self.newline();
            }
        } else {
            self.go_up(self.drawn_rows() - 1);
            self.buffer.push_str("\r\x1b[J");
            if self.rows.is_empty() {
                self.drawn.clear();
                self.rewrite_line_above();
                return;
            }
        }
        self.drawn.clear();
        let max = self.width();
        for (at, row) in std::mem::take(&mut self.rows).into_iter().enumerate() {
            if at > 0 {
                self.newline();
            }
            let row = row.fitted(max);
            row.write(self.color, &mut self.buffer);
            self.drawn.push(row.max_width());
            self.rows.push(row);
        }
    }

    /// Erases the rows, and moves the cursor to the end of the text.
    fn erase_rows(&mut self) {
        if self.drawn.is_empty() {
            return;
        }
        self.go_up(self.drawn_rows() - 1);
        self.buffer.push_str("\r\x1b[J");
        self.drawn.clear();
        self.rows_changed = true;
        self.rewrite_line_above();
    }

    fn rewrite_line_above(&mut self) {
        if !self.line_buffer.is_empty() {
            self.go_up(1);
            self.buffer.push_str("\r\x1b[K");
            paint_into(self.paint, &self.line_buffer.text, self.color, &mut self.buffer);
        }
    }

    /// Counts the screen rows of the drawn rows, which a narrower terminal may have wrapped.
    fn drawn_rows(&self) -> usize {
        self.drawn.iter().map(|max_width| lines_of(*max_width, self.columns)).sum()
    }

    fn go_up(&mut self, rows: usize) {
        if rows > 0 {
            let _ = write!(self.buffer, "\x1b[{rows}A");
        }
    }

    fn newline(&mut self) {
        self.buffer.push_str(if self.live { "\r\n" } else { "\n" });
    }

    fn line_end(&mut self) {
        // An empty line of text counts as a gap.
        self.ends_blank = !self.mid_line;
        self.newline();
        self.line_buffer.clear();
        self.mid_line = false;
    }

    /// Appends text without wrapping.
    fn copy(&mut self, text: &str) {
        for letter in text.chars() {
            match letter {
                '\r' => {}
                '\n' => self.line_end(),
                letter => {
                    if !self.mid_line {
                        self.buffer.extend(std::iter::repeat_n(' ', self.indent));
                    }
                    self.buffer.push(if letter == '\t' { letter } else { sanitize(letter) });
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

    /// Appends text with wrapping.
    fn fill(&mut self, text: &str) {
        for letter in text.chars() {
            match letter {
                '\r' => {}
                '\n' => self.line_end(),
                '\t' => (0..self.line_buffer.tab(self.indent)).for_each(|_| self.put(' ')),
                letter => self.put(letter),
            }
        }
    }

    fn put(&mut self, letter: char) {
        if self.line_buffer.is_empty() {
            self.line_buffer.indent(self.indent);
            self.buffer.extend(std::iter::repeat_n(' ', self.indent));
        }
        match self.line_buffer.push(letter, self.width(), self.indent) {
            PushedCharacter::Added => self.buffer.push(sanitize(letter)),
            PushedCharacter::Dropped => {}
            PushedCharacter::Broken { full, moved } => {
                if moved {
                    self.buffer.push_str("\r\x1b[K");
                    self.buffer.push_str(&full);
                }
                self.newline();
                self.buffer.push_str(&self.line_buffer.text);
            }
        }
        self.begun();
    }
}

/// Counts the screen rows of a line of this width.
fn lines_of(max_width: usize, columns: usize) -> usize {
    max_width.div_ceil(columns.max(1)).max(1)
}
