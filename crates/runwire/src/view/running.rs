//! What runs at the moment: calls, nodes of a thought graph, subagents, each a row that changes in place.

use runwire_model::Timestamp;

use super::clean::{cut, one_line};
use super::line::Line;
use super::measure::{fit, room};
use super::style::Paint;
use super::value::span;
use super::wrap::wrap;

/// What is remembered of the texts of one row, in bytes.
const TEXT_BYTES: usize = 512;

/// The things that can be open at a time; beyond, the oldest are forgotten.
const OPEN: usize = 4096;

/// The lines that an error takes under a row at most.
const ERROR_LINES: usize = 4;

const SPINNER: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];

/// What kind of thing runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A call of a tool.
    Call,
    /// A node of a thought graph.
    Node,
    /// Another agent.
    Subagent,
}

/// Something that has begun and not ended.
#[derive(Debug)]
pub(super) struct Task {
    run: String,
    kind: Kind,
    id: String,
    pub(super) name: String,
    arguments: String,
    since: Timestamp,
    progress: Option<f64>,
    message: String,
    output: String,
}

/// How a task ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// It did what it should.
    Done,
    /// It did a part.
    Partly,
    /// It failed.
    Failed,
}

impl Task {
    /// Makes a task that has just begun.
    pub(super) fn new(run: &str, kind: Kind, id: &str, name: &str, since: Timestamp) -> Self {
        Self {
            run: run.to_owned(),
            kind,
            id: id.to_owned(),
            name: cut(name, TEXT_BYTES).to_owned(),
            arguments: String::new(),
            since,
            progress: None,
            message: String::new(),
            output: String::new(),
        }
    }

    /// Takes what it is given.
    pub(super) fn set_arguments(&mut self, arguments: &str) {
        cut(arguments, TEXT_BYTES).clone_into(&mut self.arguments);
    }

    /// Takes a piece of what it is given.
    pub(super) fn add_arguments(&mut self, piece: &str) {
        let left = TEXT_BYTES.saturating_sub(self.arguments.len());
        self.arguments.push_str(cut(piece, left));
    }

    /// Takes how far it is.
    pub(super) fn set_progress(&mut self, progress: Option<f64>, message: Option<&str>) {
        self.progress = progress.filter(|progress| progress.is_finite()).or(self.progress);
        if let Some(message) = message {
            cut(message, TEXT_BYTES).clone_into(&mut self.message);
        }
    }

    /// Takes what it printed, of which the last line is kept.
    pub(super) fn add_output(&mut self, output: &str) {
        let ended = output.trim_end_matches(['\n', '\r']);
        match ended.rsplit_once(['\n', '\r']) {
            Some((_, last)) => self.output = cut(last, TEXT_BYTES).to_owned(),
            None => {
                if self.output.ends_with('\n') {
                    self.output.clear();
                }
                let left = TEXT_BYTES.saturating_sub(self.output.len());
                self.output.push_str(cut(ended, left));
            }
        }
        if ended.len() < output.len() && !self.output.is_empty() {
            self.output.push('\n');
        }
    }

    /// Shows the task while it runs.
    pub(super) fn row(&self, spin: usize, now: Timestamp, width: usize) -> Line {
        let mut tail = Line::new();
        if let Some(progress) = self.progress {
            let cells = if width < 50 { 6 } else { 12 };
            let (done, left) = bar(progress, cells);
            tail.push(Paint::Plain, "  ");
            tail.push(Paint::Accent, &done);
            tail.push(Paint::Dim, &left);
            tail.push(Paint::Plain, &format!(" {:.0}%", progress.clamp(0.0, 100.0)));
        }
        let said = if self.message.is_empty() { self.output.trim_end() } else { &self.message };
        let elapsed = Some(now.since(self.since)).filter(|elapsed| *elapsed >= 1000).map(span);
        let end = elapsed.map(|elapsed| format!("  {elapsed}")).unwrap_or_default();
        let head = Line::of(Paint::Accent, SPINNER[spin % SPINNER.len()]).and(Paint::Plain, " ");
        let name = fit(&self.name, width / 2).into_owned();
        let spent = head.room() + room(&name) + tail.room() + end.len();
        let left = width.saturating_sub(spent);
        // What it says matters more than what it was given, and both more than none.
        let said_room =
            if said.is_empty() { 0 } else { room(said).saturating_add(2).min(left.div_ceil(2).max(8)) };
        let mut line = head.and(Paint::Plain, &name);
        line.push(Paint::Dim, &self.shown_arguments(left.saturating_sub(said_room)));
        let mut line = line.join(tail);
        if said_room > 2 {
            line.push(Paint::Dim, "  ");
            line.push(Paint::Dim, &fit(said, said_room - 2));
        }
        line.push(Paint::Dim, &end);
        line.fitted(width)
    }

    /// Shows that the task has begun, where rows cannot change.
    pub(super) fn beginning(&self, width: usize) -> Line {
        let line = Line::of(Paint::Accent, "› ").and(Paint::Plain, &self.name);
        let left = width.saturating_sub(line.room());
        line.and(Paint::Dim, &self.shown_arguments(left)).fitted(width)
    }

    /// Shows how the task ended: what it gave back in a line, or what went wrong in a few.
    pub(super) fn ending(&self, end: End, duration: Option<String>, said: &str, width: usize) -> Vec<Line> {
        let (paint, sign) = match end {
            End::Done => (Paint::Good, "✓ "),
            End::Partly => (Paint::Warn, "~ "),
            End::Failed => (Paint::Bad, "✗ "),
        };
        let mut line = Line::of(paint, sign).and(Paint::Plain, &self.name);
        line.push(Paint::Dim, &self.shown_arguments(width * 2 / 5));
        if let Some(duration) = duration {
            line.push(Paint::Dim, &format!("  {duration}"));
        }
        if said.is_empty() {
            return vec![line.fitted(width)];
        }
        let left = width.saturating_sub(line.room());
        let paint = if end == End::Failed { Paint::Bad } else { Paint::Dim };
        let arrow = if end == End::Failed { "  " } else { " → " };
        if end != End::Failed || room(said) + arrow.len() <= left {
            line.push(Paint::Dim, arrow);
            return vec![line.and(paint, said).fitted(width)];
        }
        let mut lines = vec![line.fitted(width)];
        for text in wrap(said, width.saturating_sub(2), ERROR_LINES) {
            lines.push(Line::of(Paint::Plain, "  ").and(paint, &text));
        }
        lines
    }

    /// Shows that nobody knows how the task ended.
    pub(super) fn left_open(&self, width: usize) -> Line {
        let line = Line::of(Paint::Dim, "· ").and(Paint::Dim, &self.name);
        line.and(Paint::Dim, &self.shown_arguments(width / 2)).and(Paint::Dim, "  left open").fitted(width)
    }

    /// Tells how long it ran.
    pub(super) fn lasted(&self, at: Timestamp) -> u64 {
        at.since(self.since)
    }

    fn shown_arguments(&self, room: usize) -> String {
        if self.arguments.is_empty() || room < 5 {
            return String::new();
        }
        format!("({})", fit(&one_line(&self.arguments), room - 2))
    }
}

/// Draws how far something is, as what is done and what is left.
fn bar(progress: f64, cells: usize) -> (String, String) {
    let done = (progress.clamp(0.0, 100.0) / 100.0 * cells as f64).round() as usize;
    ("━".repeat(done), "─".repeat(cells - done))
}

/// Everything that runs.
#[derive(Debug, Default)]
pub(super) struct Running {
    tasks: Vec<Task>,
}

impl Running {
    /// Finds a task that runs.
    pub(super) fn find(&mut self, run: &str, kind: Kind, id: &str) -> Option<&mut Task> {
        self.tasks.iter_mut().rfind(|task| task.is(run, kind, id))
    }

    /// Adds a task.
    pub(super) fn add(&mut self, task: Task) {
        if self.tasks.len() >= OPEN {
            self.tasks.remove(0);
        }
        self.tasks.push(task);
    }

    /// Takes a task out.
    pub(super) fn take(&mut self, run: &str, kind: Kind, id: &str) -> Option<Task> {
        let at = self.tasks.iter().rposition(|task| task.is(run, kind, id))?;
        Some(self.tasks.remove(at))
    }

    /// Takes out everything that a run has left.
    pub(super) fn take_run(&mut self, run: &str) -> Vec<Task> {
        self.tasks.extract_if(.., |task| task.run == run).collect()
    }

    /// Takes out everything.
    pub(super) fn take_all(&mut self) -> Vec<Task> {
        std::mem::take(&mut self.tasks)
    }

    /// Tells whether nothing runs.
    pub(super) fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }

    /// Shows what runs, in so many rows at most.
    pub(super) fn rows(&self, spin: usize, now: Timestamp, width: usize, most: usize) -> Vec<Line> {
        let shown = if self.tasks.len() > most { most.saturating_sub(1) } else { self.tasks.len() };
        let rows = self.tasks.iter().take(shown).map(|task| task.row(spin, now, width));
        let mut rows: Vec<Line> = rows.collect();
        let hidden = self.tasks.len() - shown;
        if hidden > 0 && most > 0 {
            rows.push(Line::of(Paint::Dim, &format!("  and {hidden} more")).fitted(width));
        }
        rows
    }
}

impl Task {
    fn is(&self, run: &str, kind: Kind, id: &str) -> bool {
        self.kind == kind && self.id == id && self.run == run
    }
}
