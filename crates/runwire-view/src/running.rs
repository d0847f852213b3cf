//! Running tasks: tool calls, nodes of a thought graph, subagents; each is a row that changes in place.

use runwire_model::Timestamp;

use super::line::PaintedLine;
use super::measure::{fit, max_width};
use super::sanitize::{cut, one_line};
use super::style::Paint;
use super::value::span;
use super::wrap::wrap;

/// Limits the bytes of a row's texts.
const TEXT_BYTES: usize = 512;

/// Limits the running tasks; the oldest are evicted.
const MAX_OPEN: usize = 4096;

/// Limits the lines of an error.
const ERROR_LINES: usize = 4;

const SPINNER: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];

/// The kind of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TaskKind {
    /// A tool call.
    Call,
    /// A node of a thought graph.
    Node,
    /// A subagent.
    Subagent,
}

/// A running task.
#[derive(Debug)]
pub(super) struct RunningTask {
    run: String,
    kind: TaskKind,
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
pub(super) enum TaskEnd {
    /// It completed.
    Done,
    /// It completed partially.
    Partly,
    /// It failed.
    Failed,
}

impl RunningTask {
    /// Creates a task that has just started.
    pub(super) fn new(run: &str, kind: TaskKind, id: &str, name: &str, since: Timestamp) -> Self {
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

    /// Sets its arguments.
    pub(super) fn set_arguments(&mut self, arguments: &str) {
        cut(arguments, TEXT_BYTES).clone_into(&mut self.arguments);
    }

    /// Appends a piece of its arguments.
    pub(super) fn add_arguments(&mut self, piece: &str) {
        let left = TEXT_BYTES.saturating_sub(self.arguments.len());
        self.arguments.push_str(cut(piece, left));
    }

    /// Sets its progress.
    pub(super) fn set_progress(&mut self, progress: Option<f64>, message: Option<&str>) {
        self.progress = progress.filter(|progress| progress.is_finite()).or(self.progress);
        if let Some(message) = message {
            cut(message, TEXT_BYTES).clone_into(&mut self.message);
        }
    }

    /// Sets its output, of which the last line is kept.
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

    /// Draws the row of the task.
    pub(super) fn row(&self, spin: usize, now: Timestamp, width: usize) -> PaintedLine {
        let mut tail = PaintedLine::new();
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
        let head = PaintedLine::of(Paint::Accent, SPINNER[spin % SPINNER.len()]).and(Paint::Plain, " ");
        let name = fit(&self.name, width / 2).into_owned();
        let spent = head.max_width() + max_width(&name) + tail.max_width() + end.len();
        let left = width.saturating_sub(spent);
        // Output has priority over arguments.
        let said_width =
            if said.is_empty() { 0 } else { max_width(said).saturating_add(2).min(left.div_ceil(2).max(8)) };
        let mut line = head.and(Paint::Plain, &name);
        line.push(Paint::Dim, &self.shown_arguments(left.saturating_sub(said_width)));
        let mut line = line.join(tail);
        if said_width > 2 {
            line.push(Paint::Dim, "  ");
            line.push(Paint::Dim, &fit(said, said_width - 2));
        }
        line.push(Paint::Dim, &end);
        line.fitted(width)
    }

    /// Draws the start of the task, if rows cannot change.
    pub(super) fn beginning(&self, width: usize) -> PaintedLine {
        let line = PaintedLine::of(Paint::Accent, "› ").and(Paint::Plain, &self.name);
        let left = width.saturating_sub(line.max_width());
        line.and(Paint::Dim, &self.shown_arguments(left)).fitted(width)
    }

    /// Draws the end of the task: its result on one line, or its error on a few.
    pub(super) fn ending(
        &self,
        end: TaskEnd,
        duration: Option<String>,
        said: &str,
        width: usize,
    ) -> Vec<PaintedLine> {
        let (paint, sign) = match end {
            TaskEnd::Done => (Paint::Good, "✓ "),
            TaskEnd::Partly => (Paint::Warn, "~ "),
            TaskEnd::Failed => (Paint::Bad, "✗ "),
        };
        let mut line = PaintedLine::of(paint, sign).and(Paint::Plain, &self.name);
        line.push(Paint::Dim, &self.shown_arguments(width * 2 / 5));
        if let Some(duration) = duration {
            line.push(Paint::Dim, &format!("  {duration}"));
        }
        if said.is_empty() {
            return vec![line.fitted(width)];
        }
        let left = width.saturating_sub(line.max_width());
        let paint = if end == TaskEnd::Failed { Paint::Bad } else { Paint::Dim };
        let arrow = if end == TaskEnd::Failed { "  " } else { " → " };
        if end != TaskEnd::Failed || max_width(said) + arrow.len() <= left {
            line.push(Paint::Dim, arrow);
            return vec![line.and(paint, said).fitted(width)];
        }
        let mut lines = vec![line.fitted(width)];
        for text in wrap(said, width.saturating_sub(2), ERROR_LINES) {
            lines.push(PaintedLine::of(Paint::Plain, "  ").and(paint, &text));
        }
        lines
    }

    /// Draws a task that did not end.
    pub(super) fn left_open(&self, width: usize) -> PaintedLine {
        let line = PaintedLine::of(Paint::Dim, "· ").and(Paint::Dim, &self.name);
        line.and(Paint::Dim, &self.shown_arguments(width / 2)).and(Paint::Dim, "  left open").fitted(width)
    }

    /// Returns its duration.
    pub(super) fn lasted(&self, at: Timestamp) -> u64 {
        at.since(self.since)
    }

    fn shown_arguments(&self, max_width: usize) -> String {
        if self.arguments.is_empty() || max_width < 5 {
            return String::new();
        }
        format!("({})", fit(&one_line(&self.arguments), max_width - 2))
    }
}

/// Draws a progress bar: the done and the remaining part.
fn bar(progress: f64, cells: usize) -> (String, String) {
    let done = (progress.clamp(0.0, 100.0) / 100.0 * cells as f64).round() as usize;
    ("━".repeat(done), "─".repeat(cells - done))
}

/// All running tasks.
#[derive(Debug, Default)]
pub(super) struct Running {
    tasks: Vec<RunningTask>,
}

impl Running {
    /// Finds a task.
    pub(super) fn find(&mut self, run: &str, kind: TaskKind, id: &str) -> Option<&mut RunningTask> {
        self.tasks.iter_mut().rfind(|task| task.is(run, kind, id))
    }

    /// Adds a task.
    pub(super) fn add(&mut self, task: RunningTask) {
        if self.tasks.len() >= MAX_OPEN {
            self.tasks.remove(0);
        }
        self.tasks.push(task);
    }

    /// Removes a task.
    pub(super) fn take(&mut self, run: &str, kind: TaskKind, id: &str) -> Option<RunningTask> {
        let at = self.tasks.iter().rposition(|task| task.is(run, kind, id))?;
        Some(self.tasks.remove(at))
    }

    /// Removes all tasks of a run.
    pub(super) fn take_run(&mut self, run: &str) -> Vec<RunningTask> {
        self.tasks.extract_if(.., |task| task.run == run).collect()
    }

    /// Removes all tasks.
    pub(super) fn take_all(&mut self) -> Vec<RunningTask> {
        std::mem::take(&mut self.tasks)
    }

    /// Returns true if no task is running.
    pub(super) fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }

    /// Draws the tasks in at most this many rows.
    pub(super) fn rows(&self, spin: usize, now: Timestamp, width: usize, max: usize) -> Vec<PaintedLine> {
        let shown = if self.tasks.len() > max { max.saturating_sub(1) } else { self.tasks.len() };
        let rows = self.tasks.iter().take(shown).map(|task| task.row(spin, now, width));
        let mut rows: Vec<PaintedLine> = rows.collect();
        let hidden = self.tasks.len() - shown;
        if hidden > 0 && max > 0 {
            rows.push(PaintedLine::of(Paint::Dim, &format!("  and {hidden} more")).fitted(width));
        }
        rows
    }
}

impl RunningTask {
    fn is(&self, run: &str, kind: TaskKind, id: &str) -> bool {
        self.kind == kind && self.id == id && self.run == run
    }
}
