//! Starts and ends tasks: tool calls, nodes and subagents.

use std::io::Write;

use runwire_model::Timestamp;
use runwire_model::event::{ToolCalled, ToolFinished, ToolStatus};

use super::line::PaintedLine;
use super::outcome::in_short;
use super::running::{RunningTask, TaskEnd, TaskKind};
use super::sanitize::cut;
use super::value::{arguments, short, source_span, span};
use super::{Block, View};

/// The end of a task.
pub(super) struct EndedTask<'e> {
    /// Its kind.
    pub(super) kind: TaskKind,
    /// Its id.
    pub(super) id: &'e str,
    /// Its name, if its start was not seen.
    pub(super) name: &'e str,
    /// How it ended.
    pub(super) end: TaskEnd,
    /// Its duration, if the source has it.
    pub(super) duration: Option<String>,
    /// Its result or error.
    pub(super) said: &'e str,
}

impl<W: Write> View<W> {
    /// Starts a task, or updates a running one.
    pub(super) fn task_started(
        &mut self,
        run: &str,
        kind: TaskKind,
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
        let task = RunningTask::new(run, kind, id, name.unwrap_or_default(), at);
        if kind != TaskKind::Call {
            self.say_beginning(&task);
        }
        self.running.add(task);
    }

    /// Starts a call with complete arguments.
    pub(super) fn called(&mut self, run: &str, called: &ToolCalled, at: Timestamp) {
        self.open_run(run).count_call();
        self.task_started(run, TaskKind::Call, &called.call_id, Some(&called.name), at);
        let Some(task) = self.running.find(run, TaskKind::Call, &called.call_id) else { return };
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

    fn say_beginning(&mut self, task: &RunningTask) {
        if !self.canvas.is_live() {
            let line = task.beginning(self.width());
            self.lines(Block::Lines, vec![line]);
        }
    }

    /// Ends a call.
    pub(super) fn finished(&mut self, run: &str, finished: &ToolFinished, at: Timestamp) {
        let end = match finished.status {
            ToolStatus::Success => TaskEnd::Done,
            ToolStatus::Partial => TaskEnd::Partly,
            ToolStatus::Failure => TaskEnd::Failed,
        };
        let said = match (&finished.error, &finished.result) {
            (Some(error), _) if end != TaskEnd::Done => {
                self.open_run(run).is_new_error(&error.message);
                in_short(error)
            }
            (_, Some(result)) if !result.is_null() => short(result),
            (Some(error), _) => in_short(error),
            _ => String::new(),
        };
        let duration = finished.duration_ms.and_then(source_span);
        let name = finished.name.as_deref().unwrap_or(&finished.call_id);
        let id = &finished.call_id;
        self.task_ended(run, at, EndedTask { kind: TaskKind::Call, id, name, end, duration, said: &said });
    }

    /// Ends a task, even if its start was not seen.
    pub(super) fn task_ended(&mut self, run: &str, at: Timestamp, ended: EndedTask<'_>) {
        let EndedTask { kind, id, name, end, duration, said } = ended;
        let task = self.running.take(run, kind, id);
        let measured = task.as_ref().map(|task| task.lasted(at)).filter(|millis| *millis > 0).map(span);
        let mut task = task.unwrap_or_else(|| RunningTask::new(run, kind, id, name, at));
        if task.name.is_empty() {
            task.name = name.to_owned();
        }
        let lines: Vec<PaintedLine> = task.ending(end, duration.or(measured), said, self.width());
        self.draw_or_hold(lines);
    }

    /// Draws the tasks that a run leaves open at its end.
    pub(super) fn leave_open(&mut self, run: &str) {
        let width = self.width();
        let lines = self.running.take_run(run).iter().map(|task| task.left_open(width)).collect();
        self.lines(Block::Lines, lines);
    }
}
