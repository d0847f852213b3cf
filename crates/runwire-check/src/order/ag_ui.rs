//! AG-UI: what the verifier of the official client (`@ag-ui/client` 1.0.0) refuses.
//!
//! Its chunks need no START, and the retired `THINKING_*` are not its own any more.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::open::{Open, Used, short};
use super::social_app::SocialApp;
use super::{ALREADY_OPEN, Seen, after_end, already_open, not_first, not_open};
use crate::finding::Finding;

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct AgUi {
    run: Run,
    has_frames: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct Run {
    id: String,
    is_active: bool,
    ended_by: Option<String>,
    steps: Open,
    texts: Open,
    spans: Open,
    thoughts: Open,
    calls: Open,
    subagents: Open,
    left_subagents: Used,
}

impl AgUi {
    pub(super) fn check(&mut self, frame: &Seen<'_>, findings: &mut Vec<Finding>) {
        self.check_run(frame, findings);
        self.run.check_parts(frame, findings);
    }

    pub(super) fn has_open_run(&self) -> bool {
        self.run.is_active
    }
}

impl AgUi {
    fn check_run(&mut self, frame: &Seen<'_>, findings: &mut Vec<Finding>) {
        let run = &mut self.run;
        match (frame.kind, run.ended_by.as_deref()) {
            ("RUN_STARTED", _) => {
                if run.is_active {
                    let finding = Finding::problem(ALREADY_OPEN, "a run starts while another is active");
                    let hint = "finish the run before with RUN_FINISHED";
                    findings.push(finding.section("RunStartedEvent").hint(hint));
                }
                let id = frame.text(&["runId"]).unwrap_or_default();
                *run = Run { id: short(&id).into_owned(), is_active: true, ..Run::default() };
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
        if matches!(frame.kind, "RUN_FINISHED" | "RUN_ERROR") {
            run.is_active = false;
            run.ended_by = Some(frame.kind.to_owned());
        }
    }
}

impl From<AgUi> for SocialApp {
    fn from(AgUi { run, has_frames }: AgUi) -> Self {
        if has_frames { Self::of_run(&run.id, run.ended_by, run.steps, run.calls) } else { Self::default() }
    }
}

impl Run {
    fn check_parts(&mut self, frame: &Seen<'_>, findings: &mut Vec<Finding>) {
        let kind = frame.kind;
        let subagent = frame.text(&["subagentRunId"]);
        let message = || frame.text(&["messageId"]);
        // The client keeps the steps of each subagent apart.
        let step = || {
            let step = frame.text(&["stepName"])?;
            Some(match &subagent {
                Some(id) => Cow::Owned(format!("{step} of {id}")),
                None => step,
            })
        };
        let (pointer, what, open, id) = match kind {
            "STEP_STARTED" | "STEP_FINISHED" => ("/stepName", "step", &mut self.steps, step()),
            "TEXT_MESSAGE_START" | "TEXT_MESSAGE_CONTENT" | "TEXT_MESSAGE_END" => {
                ("/messageId", "text message", &mut self.texts, message())
            }
            "REASONING_START" | "REASONING_END" => ("/messageId", "reasoning", &mut self.spans, message()),
            "REASONING_MESSAGE_START" | "REASONING_MESSAGE_CONTENT" | "REASONING_MESSAGE_END" => {
                ("/messageId", "reasoning message", &mut self.thoughts, message())
            }
            "TOOL_CALL_START" | "TOOL_CALL_ARGS" | "TOOL_CALL_END" => {
                ("/toolCallId", "tool call", &mut self.calls, frame.text(&["toolCallId"]))
            }
            "SUBAGENT_STARTED" | "SUBAGENT_FINISHED" | "SUBAGENT_ERROR" => {
                ("/subagentRunId", "subagent", &mut self.subagents, subagent)
            }
            "RUN_FINISHED" => return self.check_finished(findings),
            _ => return,
        };
        let Some(id) = id.as_deref() else { return };
        // Named only where something is wrong: this is the way of every frame.
        let section = || section(kind);
        if kind == "SUBAGENT_STARTED" && self.left_subagents.has(id) {
            let message =
                format!("the subagent `{id}` has been here before; each call of one has an id of its own");
            findings.push(Finding::problem("already_used", message).at(pointer).section(section()));
        } else if kind.ends_with("_START") || kind.ends_with("_STARTED") {
            if !open.open(id, frame.memory) {
                findings.push(already_open(&section(), pointer, what, id));
            }
        } else {
            let ends = kind.ends_with("_END") || kind.ends_with("_FINISHED") || kind == "SUBAGENT_ERROR";
            let was_open = if ends { open.close(id) } else { open.has(id) };
            if !was_open {
                findings.push(not_open(&section(), pointer, what, id));
            } else if ends && what == "subagent" {
                self.left_subagents.add(id, frame.memory);
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

/// Returns the official name of an event's definition: `TextMessageStartEvent` for `TEXT_MESSAGE_START`.
fn section(kind: &str) -> String {
    let words = kind.split('_').map(|word| {
        let (first, rest) = word.split_at(word.len().min(1));
        format!("{first}{}", rest.to_lowercase())
    });
    format!("{}Event", words.collect::<String>())
}
