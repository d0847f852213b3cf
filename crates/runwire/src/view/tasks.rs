//! Calls, nodes and subagents: rows while they run, a line when they have ended.

use std::io::Write;

use runwire_model::Timestamp;
use runwire_model::event::{ToolCalled, ToolFinished, ToolStatus};

use super::clean::cut;
use super::line::Line;
use super::outcome::in_short;
use super::running::{End, Kind, Task};
use super::value::{arguments, short, span, told_span};
use super::{Block, View};

/// What is told of a task that has ended.
pub(super) struct Ended<'e> {
    /// What kind of thing it was.
    pub(super) kind: Kind,
    /// Its id.
    pub(super) id: &'e str,
    /// Its name, for one whose beginning was not seen.
    pub(super) name: &'e str,
    /// How it ended.
    pub(super) end: End,
    /// How long it took, where the source says it.
    pub(super) told: Option<String>,
    /// What it gave back, or what went wrong.
    pub(super) said: &'e str,
}

impl<W: Write> View<W> {
    /// Begins a task, or goes on with one that has begun.
    pub(super) fn task_started(
        &mut self,
        run: &str,
        kind: Kind,
        id: &str,
        name: Option<&str>,
        at: Timestamp,
    ) {
        if let Some(task) = self.running.find(run, kind, id) {
            if let Some(name) = name.filter(|_| task.name.is_empty()) {
                task.name = cut(name, 400).to_owned();
            }
            return;
        }
        let task = Task::new(run, kind, id, name.unwrap_or_default(), at);
        if kind != Kind::Call {
            self.say_beginning(&task);
        }
        self.running.add(task);
    }

    /// Takes a call that is whole.
    pub(super) fn called(&mut self, run: &str, called: &ToolCalled, at: Timestamp) {
        self.tally(run).count_call();
        self.task_started(run, Kind::Call, &called.call_id, Some(&called.name), at);
        let Some(task) = self.running.find(run, Kind::Call, &called.call_id) else { return };
        task.name = cut(&called.name, 400).to_owned();
        let shown = arguments(&called.arguments);
        let text =
            called.arguments_text.as_deref().filter(|_| shown.is_empty() || called.incomplete == Some(true));
        task.set_arguments(text.unwrap_or(&shown));
        let beginning = task.beginning(self.canvas.width());
        if !self.canvas.is_live() {
            self.lines(Block::Lines, vec![beginning]);
        }
    }

    fn say_beginning(&mut self, task: &Task) {
        if !self.canvas.is_live() {
            let line = task.beginning(self.width());
            self.lines(Block::Lines, vec![line]);
        }
    }

    /// Ends a call.
    pub(super) fn finished(&mut self, run: &str, finished: &ToolFinished, at: Timestamp) {
        let end = match finished.status {
            ToolStatus::Success => End::Done,
            ToolStatus::Partial => End::Partly,
            ToolStatus::Failure => End::Failed,
        };
        let said = match (&finished.error, &finished.result) {
            (Some(error), _) if end != End::Done => {
                self.tally(run).is_news(&error.message);
                in_short(error)
            }
            (_, Some(result)) if !result.is_null() => short(result),
            (Some(error), _) => in_short(error),
            _ => String::new(),
        };
        let told = finished.duration_ms.and_then(told_span);
        let name = finished.name.as_deref().unwrap_or(&finished.call_id);
        let id = &finished.call_id;
        self.task_ended(run, at, Ended { kind: Kind::Call, id, name, end, told, said: &said });
    }

    /// Ends a task, also one whose beginning was not seen.
    pub(super) fn task_ended(&mut self, run: &str, at: Timestamp, ended: Ended<'_>) {
        let Ended { kind, id, name, end, told, said } = ended;
        let task = self.running.take(run, kind, id);
        let measured = task.as_ref().map(|task| task.lasted(at)).filter(|millis| *millis > 0).map(span);
        let mut task = task.unwrap_or_else(|| Task::new(run, kind, id, name, at));
        if task.name.is_empty() {
            task.name = name.to_owned();
        }
        let lines: Vec<Line> = task.ending(end, told.or(measured), said, self.width());
        self.settle(lines);
    }

    /// Says what a run leaves open at its end.
    pub(super) fn leave_open(&mut self, run: &str) {
        let width = self.width();
        let lines = self.running.take_run(run).iter().map(|task| task.left_open(width)).collect();
        self.lines(Block::Lines, lines);
    }
}
