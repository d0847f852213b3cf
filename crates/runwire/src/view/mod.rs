//! A run as a person reads it in a terminal.
//!
//! Canonical events in, terminal bytes out; nothing here reads a clock, a socket or the environment (but
//! [`Style::of_stdout`]). On a terminal, what runs stands in rows at the bottom that change in place, and text
//! streams above them. Elsewhere there is no escape code at all: a call is a line when it begins and a line
//! when it ends. What a run says can never drive the terminal ([`clean`]), no row is wider than the terminal
//! ([`canvas`]), and what is kept is what is open: texts, calls, questions.
//!
//! ```text
//! let mut view = View::new(Style::of_stdout(), std::io::stdout().lock());
//! view.event(run_id, at, &event)?;   // for each event that has come
//! view.flush()?;                     // once no more is there: draws, and lets the reader see it
//! view.tick(now)?;                   // ten times a second, while it waits
//! view.finish()?;
//! ```

pub(crate) mod answer;
mod canvas;
mod chart;
pub(crate) mod clean;
pub(crate) mod columns;
mod data;
mod dispatch;
mod grid;
mod line;
pub(crate) mod measure;
mod outcome;
mod question;
mod running;
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
use line::Line;
use outcome::Tally;
use running::Running;
use style::Paint;
pub(crate) use style::{Server, Style, terminal_columns_and_rows};
use texts::{OpenText, Source};

/// The runs that can be open at a time; beyond, the oldest are forgotten.
const OPEN_RUNS: usize = 1024;

/// A run, or several, as a person reads them.
pub(crate) struct View<W> {
    canvas: Canvas<W>,
    server: Option<Server>,
    runs: Vec<Tally>,
    running: Running,
    texts: Vec<OpenText>,
    /// The run that was drawn last.
    shown_run: String,
    /// Whose text the unfinished line is.
    source: Option<Source>,
    /// Lines that wait for the text's line to end.
    held: Vec<Line>,
    last: Block,
    now: Timestamp,
    spin: usize,
}

/// What was drawn last: it decides whether an empty line comes before what follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Block {
    /// Nothing, or the heading of what follows.
    Heading,
    /// Lines that stand close together.
    Lines,
    /// A thought.
    Thought,
    /// A text.
    Text,
    /// Something that stands alone: a table, a question, a run's beginning and end.
    Box,
}

impl<W: Write> View<W> {
    /// Makes an empty view.
    pub(crate) fn new(style: Style, out: W) -> Self {
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

    /// Takes in an event of a run, and draws it; [`View::flush`] shows it.
    pub(crate) fn event(&mut self, run: &str, at: Timestamp, event: &Event) -> io::Result<()> {
        self.now = self.now.max(at);
        self.name_run(run, event);
        self.draw(run, at, event);
        self.canvas.relieve()
    }

    /// Takes in an event of a type that this version does not know.
    pub(crate) fn unknown(&mut self, event_type: &str, frame: &str) -> io::Result<()> {
        self.aside(event_type, frame);
        self.canvas.relieve()
    }

    /// Says something that is not of the run: that the connection is gone, or that all has been read.
    pub(crate) fn notice(&mut self, text: &str) -> io::Result<()> {
        let line = Line::of(Paint::Dim, &format!("· {text}")).fitted(self.canvas.width());
        self.lines(Block::Lines, vec![line]);
        self.flush()
    }

    /// Moves what moves.
    ///
    /// The time is the run's: now for a run that goes on, of a replay the place that it plays.
    pub(crate) fn tick(&mut self, now: Timestamp) -> io::Result<()> {
        self.now = self.now.max(now);
        if !self.running.is_empty() {
            self.spin = self.spin.wrapping_add(1);
        }
        self.flush()
    }

    /// Takes the new size of the terminal.
    pub(crate) fn resize(&mut self, width: usize, height: usize) -> io::Result<()> {
        self.canvas.resize(width, height);
        self.flush()
    }

    /// Draws the rows and lets the reader see everything that has come.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        if self.canvas.is_live() {
            let most = self.canvas.rows_most();
            let mut rows: Vec<Line> = self.held.iter().take(most).cloned().collect();
            rows.extend(self.running.rows(self.spin, self.now, self.canvas.width(), most - rows.len()));
            if !rows.is_empty() && matches!(self.last, Block::Text | Block::Box | Block::Thought) {
                rows.insert(0, Line::new());
            }
            self.canvas.set_rows(rows);
        }
        self.canvas.flush()
    }

    /// Ends the view: what still runs is said, and the cursor stands on a line of its own.
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        self.settle_held();
        self.canvas.end_line();
        self.source = None;
        let width = self.canvas.width();
        let left: Vec<Line> = self.running.take_all().iter().map(|task| task.left_open(width)).collect();
        if self.canvas.is_live() && !left.is_empty() {
            self.lines(Block::Lines, left);
        }
        self.flush()
    }

    fn width(&self) -> usize {
        self.canvas.width()
    }

    /// Finds what is known of a run, from the first event of it on.
    fn tally(&mut self, run: &str) -> &mut Tally {
        let at = self.runs.iter().rposition(|tally| tally.run == run).unwrap_or_else(|| {
            if self.runs.len() >= OPEN_RUNS {
                self.runs.remove(0);
            }
            self.runs.push(Tally::new(run));
            self.runs.len() - 1
        });
        &mut self.runs[at]
    }

    /// Says which run what follows is of, where it is not the one before and does not begin here.
    fn name_run(&mut self, run: &str, event: &Event) {
        if self.shown_run == run || !dispatch::shows(&event.body) {
            return;
        }
        if !self.shown_run.is_empty() && !matches!(event.body, Body::RunStarted(_)) {
            let line = Line::of(Paint::Dim, &format!("── {run}")).fitted(self.width());
            self.lines(Block::Heading, vec![line]);
        }
        run.clone_into(&mut self.shown_run);
    }

    /// Draws whole lines.
    fn lines(&mut self, block: Block, lines: Vec<Line>) {
        if lines.is_empty() {
            return;
        }
        self.settle_held();
        self.canvas.end_line();
        self.source = None;
        self.space_before(block);
        for line in &lines {
            self.canvas.line(line);
        }
        self.last = block;
    }

    /// Draws a line that may wait until the text's line has ended, so that it does not cut a sentence.
    fn settle(&mut self, lines: Vec<Line>) {
        let text_goes_on = self.canvas.is_live() && self.source.is_some() && self.canvas.is_mid_line();
        if text_goes_on && self.held.len() + lines.len() <= self.canvas.rows_most() / 2 {
            self.held.extend(lines);
        } else {
            self.lines(Block::Lines, lines);
        }
    }

    /// Draws the lines that waited, now that the text's line has ended.
    fn settle_held(&mut self) {
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

    /// Leaves an empty line where one thing ends and another begins.
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

    /// Draws something beside the point, on one dim line.
    fn aside(&mut self, name: &str, value: &str) {
        let name = clean::cut(name, 200);
        let value = clean::cut(value, 2000);
        let separator = if value.is_empty() { "" } else { ": " };
        let line = Line::of(Paint::Dim, &format!("· {name}{separator}{value}"));
        let line = line.fitted(self.width());
        self.lines(Block::Lines, vec![line]);
    }
}
