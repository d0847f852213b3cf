//! AG-UI: what the verifier of the official client (`@ag-ui/client` 1.0.0) refuses.
//!
//! Its chunks need no START, and the retired `THINKING_*` are not its own any more.

use super::open::Open;
use super::{Rules, Seen, after_end, already_open, not_first, not_open};
use crate::validate::finding::Finding;

#[derive(Default)]
pub(super) struct AgUi {
    run: Run,
    has_frames: bool,
}

#[derive(Default)]
struct Run {
    is_active: bool,
    ended_by: Option<&'static str>,
    steps: Open,
    texts: Open,
    spans: Open,
    thoughts: Open,
    calls: Open,
    subagents: Open,
    left_subagents: Open,
}

impl Rules for AgUi {
    fn check(&mut self, frame: &Seen<'_>, findings: &mut Vec<Finding>) {
        self.check_run(frame, findings);
        self.run.check_parts(frame, findings);
    }

    fn has_open_run(&self) -> bool {
        self.run.is_active
    }
}

impl AgUi {
    fn check_run(&mut self, frame: &Seen<'_>, findings: &mut Vec<Finding>) {
        let run = &mut self.run;
        match (frame.kind, run.ended_by) {
            ("RUN_STARTED", _) => {
                if run.is_active {
                    let finding = Finding::problem("already_open", "a run starts while another is active");
                    let hint = "finish the run before with RUN_FINISHED";
                    findings.push(finding.section("RunStartedEvent").hint(hint));
                }
                *run = Run { is_active: true, ..Run::default() };
            }
            // The one thing that the client still takes after RUN_FINISHED.
            ("RUN_ERROR", None | Some("RUN_FINISHED")) => {}
            (kind, Some(ended_by)) => {
                findings.push(after_end("RunFinishedEvent", kind, ended_by, "only RUN_STARTED may follow"));
            }
            (kind, None) if !self.has_frames => {
                findings.push(not_first("RunStartedEvent", kind, "RUN_STARTED"));
            }
            _ => {}
        }
        self.has_frames = true;
        match frame.kind {
            "RUN_FINISHED" => run.end("RUN_FINISHED"),
            "RUN_ERROR" => run.end("RUN_ERROR"),
            _ => {}
        }
    }
}

impl Run {
    fn end(&mut self, by: &'static str) {
        self.is_active = false;
        self.ended_by = Some(by);
    }

    fn check_parts(&mut self, frame: &Seen<'_>, findings: &mut Vec<Finding>) {
        let kind = frame.kind;
        let subagent = frame.text(&["subagentRunId"]);
        // The client keeps the steps of each subagent apart.
        let step = frame.text(&["stepName"]);
        let own_step =
            step.map(|step| format!("{step}{}", subagent.map(|id| format!(" of {id}")).unwrap_or_default()));
        let (field, what, open, id) = match kind {
            "STEP_STARTED" | "STEP_FINISHED" => ("stepName", "step", &mut self.steps, own_step.as_deref()),
            "TEXT_MESSAGE_START" | "TEXT_MESSAGE_CONTENT" | "TEXT_MESSAGE_END" => {
                ("messageId", "text message", &mut self.texts, frame.text(&["messageId"]))
            }
            "REASONING_START" | "REASONING_END" => {
                ("messageId", "reasoning", &mut self.spans, frame.text(&["messageId"]))
            }
            "REASONING_MESSAGE_START" | "REASONING_MESSAGE_CONTENT" | "REASONING_MESSAGE_END" => {
                ("messageId", "reasoning message", &mut self.thoughts, frame.text(&["messageId"]))
            }
            "TOOL_CALL_START" | "TOOL_CALL_ARGS" | "TOOL_CALL_END" => {
                ("toolCallId", "tool call", &mut self.calls, frame.text(&["toolCallId"]))
            }
            "SUBAGENT_STARTED" | "SUBAGENT_FINISHED" | "SUBAGENT_ERROR" => {
                ("subagentRunId", "subagent", &mut self.subagents, subagent)
            }
            "RUN_FINISHED" => return self.check_finished(findings),
            _ => return,
        };
        let Some(id) = id else { return };
        let section = section(kind);
        if kind == "SUBAGENT_STARTED" && self.left_subagents.has(id) {
            let message =
                format!("the subagent `{id}` has been here before; each call of one has an id of its own");
            findings.push(Finding::problem("already_used", message).field(field).section(section));
        } else if kind.ends_with("_START") || kind.ends_with("_STARTED") {
            if !open.open(id) {
                findings.push(already_open(&section, field, what, id));
            }
        } else {
            let ends = kind.ends_with("_END") || kind.ends_with("_FINISHED") || kind == "SUBAGENT_ERROR";
            let was_open = if ends { open.close(id) } else { open.has(id) };
            if !was_open {
                findings.push(not_open(&section, field, what, id));
            } else if ends && what == "subagent" {
                self.left_subagents.open(id);
            }
        }
    }

    fn check_finished(&mut self, findings: &mut Vec<Finding>) {
        for (what, open) in [
            ("steps", &mut self.steps),
            ("text messages", &mut self.texts),
            ("reasoning messages", &mut self.thoughts),
            ("reasoning", &mut self.spans),
            ("tool calls", &mut self.calls),
            ("subagents", &mut self.subagents),
        ] {
            if !open.is_empty() {
                let message = format!("the run finishes while {what} are open: {}", open.listed());
                let finding = Finding::problem("still_open", message).section("RunFinishedEvent");
                findings.push(finding.hint("end everything before RUN_FINISHED"));
                open.clear();
            }
        }
    }
}

/// Tells the official name of an event's definition: `TextMessageStartEvent` for `TEXT_MESSAGE_START`.
fn section(kind: &str) -> String {
    let words = kind.split('_').map(|word| {
        let (first, rest) = word.split_at(word.len().min(1));
        format!("{first}{}", rest.to_lowercase())
    });
    format!("{}Event", words.collect::<String>())
}
