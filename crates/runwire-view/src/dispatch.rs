//! Draws each type of event.

use std::io::Write;

use runwire_model::event::{Body, RunStarted};
use runwire_model::{Event, Timestamp};

use super::line::PaintedLine;
use super::outcome::{self, RunEnd, in_short};
use super::running::{TaskEnd, TaskKind};
use super::sanitize::cut;
use super::style::Paint;
use super::tasks::EndedTask;
use super::value::{arguments, short};
use super::wrap::wrap;
use super::{Block, View, data, interaction, thoughts};

/// Limits the lines of the person's message.
const MESSAGE_LINES: usize = 12;

/// Limits the open interactions of a run; the oldest are evicted.
const MAX_INTERACTIONS: usize = 256;

/// Returns true if an event draws something above the rows.
pub(super) fn shows(body: &Body) -> bool {
    !matches!(
        body,
        Body::RunStatus(_)
            | Body::RunResumed(_)
            | Body::TextStarted(_)
            | Body::TextFinished(_)
            | Body::ThinkingStarted(_)
            | Body::ThinkingFinished(_)
            | Body::ToolArgsStarted(_)
            | Body::ToolArgsDelta(_)
            | Body::ToolStarted(_)
            | Body::ToolProgress(_)
            | Body::ToolOutput(_)
            | Body::StepFinished(_)
            | Body::StateSnapshot(_)
            | Body::StateUpdated(_)
            | Body::StatePatched(_)
            | Body::MessagesSnapshot(_)
            | Body::Checkpoint(_)
            | Body::ActivityPatched(_)
            | Body::Usage(_)
            | Body::Metrics(_)
    )
}

impl<W: Write> View<W> {
    /// Draws an event.
    pub(super) fn draw(&mut self, run: &str, at: Timestamp, event: &Event) {
        let width = self.width();
        let subagent = event.subagent_run_id.as_deref();
        match &event.body {
            Body::RunStarted(started) => self.run_started(run, at, started),
            Body::RunCompleted(completed) => {
                let reply = completed.reply.as_deref().filter(|reply| !reply.is_empty());
                if let Some(reply) = reply.filter(|_| !self.open_run(run).has_text) {
                    self.piece(run, "", Block::Text, reply);
                    self.text_finished(run, "", Block::Text, None);
                }
                if let Some(result) = completed.result.as_ref().filter(|result| !result.is_null()) {
                    self.aside("result", &short(result));
                }
                self.close(run, at, RunEnd::Completed, completed.summary.as_ref());
            }
            Body::RunFailed(failed) => {
                self.close(run, at, RunEnd::Failed(&failed.error), failed.summary.as_ref())
            }
            Body::RunCancelled(cancelled) => {
                let reason = cancelled.reason.as_deref();
                self.close(run, at, RunEnd::Cancelled(reason), cancelled.summary.as_ref());
            }
            Body::RunSuspended(suspended) => {
                self.suspended(run, &suspended.interaction_ids, suspended.reason.as_deref())
            }
            Body::RunCancelRequested(requested) => {
                let mut line = PaintedLine::of(Paint::Warn, "■ cancel asked for");
                if let Some(by) = &requested.by {
                    line.push(Paint::Warn, &format!(" by {by}"));
                }
                if let Some(reason) = &requested.reason {
                    line.push(Paint::Plain, &format!(": {}", cut(reason, 400)));
                }
                self.draw_or_hold(vec![line.fitted(width)]);
            }
            Body::StepStarted(step) => {
                let line = PaintedLine::of(Paint::Dim, &format!("── {}", cut(&step.name, 400))).fitted(width);
                self.lines(Block::Heading, vec![line]);
            }
            Body::StepFinished(step) => {
                let Some(error) = &step.error else { return };
                let mut line = PaintedLine::of(Paint::Bad, &format!("✗ {}", cut(&step.name, 400)));
                if self.open_run(run).is_new_error(&error.message) {
                    line.push(Paint::Bad, &format!("  {}", in_short(error)));
                }
                self.lines(Block::Lines, vec![line.fitted(width)]);
            }
            Body::TextStarted(text) => {
                let speaker = subagent.and_then(|id| self.running.find(run, TaskKind::Subagent, id));
                let speaker = speaker.map(|task| task.name.clone());
                self.text_started(run, &text.message_id, text.role.as_deref(), speaker.as_deref());
            }
            Body::TextDelta(delta) => self.piece(run, &delta.message_id, Block::Text, &delta.content),
            Body::TextFinished(text) => {
                self.text_finished(run, &text.message_id, Block::Text, text.content.as_deref());
                self.text_said_more(text);
            }
            Body::ThinkingStarted(thought) => {
                self.thinking_started(run, &thought.message_id, thought.stage.as_deref());
            }
            Body::ThinkingDelta(delta) => self.piece(run, &delta.message_id, Block::Thought, &delta.content),
            Body::ThinkingFinished(thought) => {
                self.text_finished(run, &thought.message_id, Block::Thought, thought.content.as_deref());
            }
            Body::ToolArgsStarted(call) => {
                self.task_started(run, TaskKind::Call, &call.call_id, call.name.as_deref(), at);
            }
            Body::ToolArgsDelta(call) => {
                if let Some(task) = self.running.find(run, TaskKind::Call, &call.call_id) {
                    task.add_arguments(&call.delta);
                }
            }
            Body::ToolCalled(call) => self.called(run, call, at),
            Body::ToolStarted(call) => {
                self.task_started(run, TaskKind::Call, &call.call_id, call.name.as_deref(), at)
            }
            Body::ToolProgress(call) => {
                if let Some(task) = self.running.find(run, TaskKind::Call, &call.call_id) {
                    task.set_progress(call.progress, call.message.as_deref());
                }
            }
            Body::ToolOutput(call) => {
                if let Some(task) = self.running.find(run, TaskKind::Call, &call.call_id) {
                    task.add_output(&call.content);
                }
            }
            Body::ToolFinished(call) => self.finished(run, call, at),
            Body::InteractionRequested(requested) => {
                let title = requested.title.clone().or_else(|| requested.name.clone());
                let title = title.map(|title| cut(&title, 400).to_owned());
                let interactions = &mut self.open_run(run).interactions;
                if interactions.len() >= MAX_INTERACTIONS {
                    interactions.remove(0);
                }
                interactions.push((requested.interaction_id.clone(), title));
                let lines = interaction::lines(run, requested, self.server.as_ref(), width);
                self.lines(Block::Box, lines);
            }
            Body::InteractionResolved(resolved) => {
                let interactions = &mut self.open_run(run).interactions;
                let known = interactions.iter().rposition(|(id, _)| *id == resolved.interaction_id);
                let title = known.and_then(|known| interactions.remove(known).1);
                self.lines(Block::Lines, vec![interaction::settled(resolved, title.as_deref(), width)]);
            }
            Body::TotExpanded(grown) => {
                let candidates = thoughts::candidates(&grown.candidates);
                self.lines(Block::Lines, thoughts::expanded(&candidates, width));
                self.open_run(run).thoughts = candidates;
            }
            Body::TotEvaluated(judged) => {
                let line = thoughts::evaluated(judged, &self.open_run(run).thoughts, width);
                self.lines(Block::Lines, vec![line]);
            }
            Body::TotBacktracked(back) => {
                let line = thoughts::backtracked(back.reason.as_deref(), &back.to_depth, width);
                self.lines(Block::Lines, vec![line]);
            }
            Body::GotPlanned(planned) => self.lines(Block::Lines, vec![thoughts::planned(planned, width)]),
            Body::GotNodeStarted(node) => {
                self.task_started(run, TaskKind::Node, &node.node_id, Some(&node.node_id), at);
            }
            Body::GotNodeCompleted(node) => {
                let said = node.result_summary.as_deref().unwrap_or_default();
                self.other_ended(run, at, TaskKind::Node, &node.node_id, TaskEnd::Done, said);
            }
            Body::GotNodeFailed(node) => {
                self.other_ended(run, at, TaskKind::Node, &node.node_id, TaskEnd::Failed, &node.error);
            }
            Body::GotExpanded(grown) => {
                let (nodes, edges) = (grown.nodes_added.as_ref(), grown.edges_added.as_ref());
                self.lines(Block::Lines, vec![thoughts::grown(&grown.node_id, nodes, edges, width)]);
            }
            Body::Data(block) => {
                let lines = data::lines(block, width);
                self.lines(if lines.len() > 1 { Block::Box } else { Block::Lines }, lines);
            }
            Body::SubagentStarted(agent) => {
                let name = agent.name.as_deref().or(subagent);
                self.task_started(run, TaskKind::Subagent, subagent.unwrap_or_default(), name, at);
            }
            Body::SubagentFinished(agent) => {
                let id = subagent.unwrap_or_default();
                let said = agent.result.as_ref().filter(|result| !result.is_null()).map(short);
                self.other_ended(run, at, TaskKind::Subagent, id, TaskEnd::Done, &said.unwrap_or_default());
            }
            Body::SubagentFailed(agent) => {
                let id = subagent.unwrap_or_default();
                let code = agent.code.as_ref().map(|code| format!(" [{code}]")).unwrap_or_default();
                let said = format!("{}{code}", agent.message);
                self.other_ended(run, at, TaskKind::Subagent, id, TaskEnd::Failed, &said);
            }
            Body::ActivitySnapshot(activity) => {
                self.aside(&activity.activity_type, &arguments(&activity.content))
            }
            Body::Usage(usage) => {
                self.open_run(run).count_tokens(
                    usage.prompt_tokens,
                    usage.completion_tokens,
                    usage.total_tokens,
                );
            }
            Body::Notice(notice) => {
                self.open_run(run).is_new_error(&notice.message);
                self.lines(Block::Lines, outcome::notice(notice, width));
            }
            Body::Custom(custom) => {
                self.aside(custom.name.as_deref().unwrap_or("custom"), &short(&custom.value))
            }
            Body::Foreign(foreign) => {
                let name = foreign.name.as_deref().unwrap_or("frame");
                self.aside(&format!("{} {name}", foreign.dialect), &short(&foreign.frame));
            }
            // Not shown to people.
            Body::RunStatus(_)
            | Body::RunResumed(_)
            | Body::StateSnapshot(_)
            | Body::StateUpdated(_)
            | Body::StatePatched(_)
            | Body::MessagesSnapshot(_)
            | Body::Checkpoint(_)
            | Body::ActivityPatched(_)
            | Body::Metrics(_) => {}
            // A type that this view does not know yet.
            other => self.aside(other.type_name(), ""),
        }
    }

    /// Ends a node or a subagent.
    fn other_ended(&mut self, run: &str, at: Timestamp, kind: TaskKind, id: &str, end: TaskEnd, said: &str) {
        self.task_ended(run, at, EndedTask { kind, id, name: id, end, duration: None, said });
    }

    fn run_started(&mut self, run: &str, at: Timestamp, started: &RunStarted) {
        let width = self.width();
        self.open_run(run).started = Some(at);
        let agent = started.agent.as_ref().map(|agent| format!(" · {agent}")).unwrap_or_default();
        let mut lines = vec![PaintedLine::of(Paint::Dim, &format!("{run}{agent}")).fitted(width)];
        if let Some(message) = started.message.as_deref().filter(|message| !message.trim().is_empty()) {
            for (at, text) in wrap(message, width.saturating_sub(2), MESSAGE_LINES).iter().enumerate() {
                lines.push(
                    PaintedLine::of(Paint::Accent, if at == 0 { "> " } else { "  " }).and(Paint::Bold, text),
                );
            }
        } else if let Some(input) = started.input.as_ref().filter(|input| !input.is_null()) {
            lines.push(PaintedLine::of(Paint::Accent, "> ").and(Paint::Dim, &arguments(input)).fitted(width));
        }
        self.lines(Block::Box, lines);
    }

    fn suspended(&mut self, run: &str, ids: &[String], reason: Option<&str>) {
        let width = self.width();
        let interactions = &self.open_run(run).interactions;
        let name = |id: &String| {
            let title =
                interactions.iter().find(|(known, _)| known == id).and_then(|(_, title)| title.clone());
            title.unwrap_or_else(|| id.clone())
        };
        let names: Vec<String> = ids.iter().take(16).map(name).collect();
        let what = if names.is_empty() { "a person".to_owned() } else { names.join(", ") };
        let mut line = PaintedLine::of(Paint::Warn, &format!("? waits for {what}"));
        if let Some(reason) = reason {
            line.push(Paint::Dim, &format!(": {}", cut(reason, 400)));
        }
        self.lines(Block::Lines, vec![line.fitted(width)]);
    }

    fn close(
        &mut self,
        run: &str,
        at: Timestamp,
        end: RunEnd<'_>,
        summary: Option<&runwire_model::event::Summary>,
    ) {
        self.leave_open(run);
        self.forget_texts(run);
        let width = self.width();
        let lines = self.open_run(run).closing(end, summary, at, width);
        self.lines(Block::Box, lines);
        self.runs.retain(|open_run| open_run.run != run);
    }
}
