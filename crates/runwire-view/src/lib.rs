//! Draws a run for people, on a terminal or as plain text.
//!
//! Canonical events in, terminal bytes out; nothing here reads a clock, a socket or the environment (but
//! [`Style::of_stdout`]). On a terminal, running tasks are rows at the bottom that change in place, and text streams
//! above them. Elsewhere there are no escape codes: a call is a line when it starts and a line when it ends. Untrusted
//! text cannot act on the terminal ([`sanitize`]), no row is wider than the terminal (`canvas`), and only open texts,
//! calls and interactions are kept in memory.
//!
//! ```text
//! let mut view = View::new(Style::of_stdout(), std::io::stdout().lock());
//! view.event(run_id, at, &event)?;   // for each event that has come
//! view.flush()?;                     // once no more is there: draws, and lets the reader see it
//! view.tick(now)?;                   // ten times a second, while it waits
//! view.finish()?;
//! ```

pub mod answer;
mod canvas;
mod chart;
pub mod columns;
mod data;
mod dispatch;
mod grid;
mod interaction;
mod line;
pub mod measure;
mod outcome;
mod running;
pub mod sanitize;
mod style;
mod tasks;
mod texts;
mod thoughts;
mod value;
mod wrap;

#[cfg(test)]
mod tests;

use std::io::{self, Write};

use runwire_model::{Body, Event, Timestamp};

use canvas::Canvas;
use line::PaintedLine;
use outcome::OpenRun;
use running::Running;
use style::Paint;
pub use style::{ServerHint, Style, terminal_columns_and_rows};
use texts::{StreamedText, TextSource};

/// Limits the open runs; the oldest are evicted.
const MAX_RUNS: usize = 1024;

/// Draws one run or several.
pub struct View<W> {
    canvas: Canvas<W>,
    server: Option<ServerHint>,
    runs: Vec<OpenRun>,
    running: Running,
    texts: Vec<StreamedText>,
    /// The run drawn last.
    shown_run: String,
    /// The source of the unfinished line's text.
    source: Option<TextSource>,
    /// Lines that wait until the unfinished line of text ends.
    held: Vec<PaintedLine>,
    last: Block,
    now: Timestamp,
    spin: usize,
}

/// The kind of what was drawn last, which decides whether an empty line follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Block {
    /// Nothing, or the heading of what follows.
    Heading,
    /// Lines without gaps.
    Lines,
    /// A thought.
    Thought,
    /// A text.
    Text,
    /// A block with gaps around it: a table, an interaction, a run's start or end.
    Box,
}

impl<W: Write> View<W> {
    /// Creates an empty view.
    pub fn new(style: Style, out: W) -> Self {
        Self {
            canvas: Canvas::new(&style, out),
            server: style.server,
            runs: Vec::new(),
            running: Running::default(),
            texts: Vec::new(),
            shown_run: String::new(),
            source: None,
            held: Vec::new(),
            last: Block::Heading,
            now: Timestamp::default(),
            spin: 0,
        }
    }

    /// Draws an event of a run; [`View::flush`] shows it.
    pub fn event(&mut self, run: &str, at: Timestamp, event: &Event) -> io::Result<()> {
        self.now = self.now.max(at);
        self.name_run(run, event);
        self.draw(run, at, event);
        self.canvas.write_if_full()
    }

    /// Draws an event of an unknown type.
    pub fn unknown(&mut self, event_type: &str, frame: &str) -> io::Result<()> {
        self.aside(event_type, frame);
        self.canvas.write_if_full()
    }

    /// Draws a note that is not part of the run.
    pub fn notice(&mut self, text: &str) -> io::Result<()> {
        let line = PaintedLine::of(Paint::Dim, &format!("· {text}")).fitted(self.canvas.width());
        self.lines(Block::Lines, vec![line]);
        self.flush()
    }

    /// Advances the animation.
    ///
    /// The time is the run's: now for a live run, the played time for a replay.
    pub fn tick(&mut self, now: Timestamp) -> io::Result<()> {
        self.now = self.now.max(now);
        if !self.running.is_empty() {
            self.spin = self.spin.wrapping_add(1);
        }
        self.flush()
    }

    /// Redraws after a change of the terminal's size.
    pub fn resize(&mut self, width: usize, height: usize) -> io::Result<()> {
        self.canvas.resize(width, height);
        self.flush()
    }

    /// Draws the rows and flushes the output.
    pub fn flush(&mut self) -> io::Result<()> {
        if self.canvas.is_live() {
            let max = self.canvas.max_rows();
            let mut rows: Vec<PaintedLine> = self.held.iter().take(max).cloned().collect();
            rows.extend(self.running.rows(self.spin, self.now, self.canvas.width(), max - rows.len()));
            if !rows.is_empty() && matches!(self.last, Block::Text | Block::Box | Block::Thought) {
                rows.insert(0, PaintedLine::new());
            }
            self.canvas.set_rows(rows);
        }
        self.canvas.flush()
    }

    /// Ends the view: lists what still runs, and leaves the cursor on an empty line.
    pub fn finish(&mut self) -> io::Result<()> {
        self.draw_held();
        self.canvas.end_line();
        self.source = None;
        let width = self.canvas.width();
        let left: Vec<PaintedLine> =
            self.running.take_all().iter().map(|task| task.left_open(width)).collect();
        if self.canvas.is_live() && !left.is_empty() {
            self.lines(Block::Lines, left);
        }
        self.flush()
    }

    fn width(&self) -> usize {
        self.canvas.width()
    }

    /// Returns the state of a run; creates it at the first event.
    fn open_run(&mut self, run: &str) -> &mut OpenRun {
        let at = self.runs.iter().rposition(|open_run| open_run.run == run).unwrap_or_else(|| {
            if self.runs.len() >= MAX_RUNS {
                self.runs.remove(0);
            }
            self.runs.push(OpenRun::new(run));
            self.runs.len() - 1
        });
        &mut self.runs[at]
    }

    /// Draws the run's id if it differs from the last one and the run does not start here.
    fn name_run(&mut self, run: &str, event: &Event) {
        if self.shown_run == run || !dispatch::shows(&event.body) {
            return;
        }
        if !self.shown_run.is_empty() && !matches!(event.body, Body::RunStarted(_)) {
            let line = PaintedLine::of(Paint::Dim, &format!("── {run}")).fitted(self.width());
            self.lines(Block::Heading, vec![line]);
        }
        run.clone_into(&mut self.shown_run);
    }

    /// Draws whole lines.
    fn lines(&mut self, block: Block, lines: Vec<PaintedLine>) {
        if lines.is_empty() {
            return;
        }
        self.draw_held();
        self.canvas.end_line();
        self.source = None;
        self.space_before(block);
        for line in &lines {
            self.canvas.line(line);
        }
        self.last = block;
    }

    /// Draws lines, or holds them until the unfinished line of text ends, so that they do not split a sentence.
    fn draw_or_hold(&mut self, lines: Vec<PaintedLine>) {
        let text_goes_on = self.canvas.is_live() && self.source.is_some() && self.canvas.is_mid_line();
        if text_goes_on && self.held.len() + lines.len() <= self.canvas.max_rows() / 2 {
            self.held.extend(lines);
        } else {
            self.lines(Block::Lines, lines);
        }
    }

    /// Draws the held lines.
    fn draw_held(&mut self) {
        if self.held.is_empty() {
            return;
        }
        self.canvas.end_line();
        self.source = None;
        self.space_before(Block::Lines);
        for line in std::mem::take(&mut self.held) {
            self.canvas.line(&line);
        }
        self.last = Block::Lines;
    }

    /// Adds an empty line between different blocks.
    fn space_before(&mut self, block: Block) {
        let close = matches!(
            (self.last, block),
            (Block::Heading, _)
                | (Block::Lines | Block::Thought, Block::Lines)
                | (Block::Lines, Block::Thought)
        );
        if !close {
            self.canvas.gap();
        }
    }

    /// Draws something minor on one dim line.
    fn aside(&mut self, name: &str, value: &str) {
        let name = sanitize::cut(name, 200);
        let value = sanitize::cut(value, 2000);
        let separator = if value.is_empty() { "" } else { ": " };
        let line = PaintedLine::of(Paint::Dim, &format!("· {name}{separator}{value}"));
        let line = line.fitted(self.width());
        self.lines(Block::Lines, vec![line]);
    }
}
