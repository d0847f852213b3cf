//! social-app: `specs/social-app.md` §3.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::open::{Open, PerRun, Used};
use super::{Seen, after_end, already_open, not_first, not_open};
use crate::finding::Finding;

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct SocialApp {
    runs: PerRun<Run>,
    calls: Calls,
}

/// The calls of all runs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct Calls {
    /// Those without a result; a run may leave one to the next.
    unanswered: Open,
    /// The ids that were used: a client joins what belongs to a call by its id.
    used: Used,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct Run {
    has_frames: bool,
    ended_by: Option<String>,
    steps: Open,
    /// Calls whose arguments may still come.
    calls: Open,
}

impl SocialApp {
    pub(super) fn check(&mut self, frame: &Seen<'_>, findings: &mut Vec<Finding>) {
        check_name(frame, findings);
        let run = self.runs.of(frame.text(&["runId"]).as_deref());
        let starts = frame.kind == "RUN_STARTED";
        if starts && run.ended_by.is_some() {
            *run = Run::default();
        } else if let Some(ended_by) = &run.ended_by {
            findings.push(after_end("§3.1", frame.kind, ended_by, "only RUN_STARTED may follow"));
        } else if !run.has_frames && !starts && frame.kind != "RUN_ERROR" {
            findings.push(not_first("§3.1", frame.kind, "RUN_STARTED"));
        }
        run.has_frames = true;
        run.check_parts(frame, &mut self.calls, findings);
    }

    pub(super) fn has_open_run(&self) -> bool {
        self.runs.all().any(|run| run.has_frames && run.ended_by.is_none())
    }
}

impl SocialApp {
    /// Makes the rules for the next run, which may answer calls that this one leaves open.
    pub(super) fn next(&self) -> Self {
        Self { runs: PerRun::default(), calls: self.calls.clone() }
    }

    /// Goes on with what AG-UI's rules know of a run.
    pub(super) fn of_run(id: &str, ended_by: Option<String>, steps: Open, calls: Open) -> Self {
        let known = Calls { unanswered: calls.clone(), used: Used::default() };
        let run = Run { has_frames: true, ended_by, steps, calls };
        Self { runs: PerRun::with(id, run), calls: known }
    }
}

/// Checks that the SSE name is the type, where there is a name.
fn check_name(frame: &Seen<'_>, findings: &mut Vec<Finding>) {
    if let Some(name) = frame.name
        && name != frame.kind
    {
        let message =
            format!("the SSE event is named `{name}`, and its type is `{}`; they are the same", frame.kind);
        findings.push(Finding::problem("bad_event_name", message).field("event").section("§2"));
    }
}

/// Returns the step that a frame means: the step of another system is a worker by its own name.
fn step_of<'f>(frame: &Seen<'f>) -> Option<Cow<'f, str>> {
    frame.text(&["name"]).or_else(|| frame.text(&["stepName"]))
}

/// Steps of another system that have one name, each inside the one before it.
const NESTED_STEPS: usize = 8;

/// Lists the keys of steps of one name, outermost first; the document's own stages do not nest.
fn nested(step: &str) -> impl DoubleEndedIterator<Item = Cow<'_, str>> {
    let depth = if matches!(step, "router" | "worker") { 1 } else { NESTED_STEPS };
    (1..=depth).map(move |at| if at == 1 { step.into() } else { format!("{step}#{at}").into() })
}

impl Run {
    fn check_parts(&mut self, frame: &Seen<'_>, calls: &mut Calls, findings: &mut Vec<Finding>) {
        let call = frame.text(&["toolCallId"]);
        match (frame.kind, call.as_deref()) {
            ("RUN_FINISHED" | "RUN_ERROR", _) => self.ended_by = Some(frame.kind.to_owned()),
            ("STEP_STARTED", _) => {
                if let Some(step) = step_of(frame)
                    && !nested(&step).any(|step| self.steps.open(&step, frame.memory))
                {
                    findings.push(already_open("§3.2", "/stepName", "step", &step));
                }
            }
            ("STEP_FINISHED", _) => {
                if let Some(step) = step_of(frame)
                    && !nested(&step).rev().any(|step| self.steps.close(&step))
                {
                    findings.push(not_open("§3.2", "/stepName", "step", &step));
                }
            }
            ("TOOL_CALL_START", Some(call)) => {
                calls.unanswered.open(call, frame.memory);
                let is_new = calls.used.add(call, frame.memory);
                if !self.calls.open(call, frame.memory) {
                    findings.push(already_open("§3.3", "/toolCallId", "call", call));
                } else if !is_new {
                    let message = format!("`{call}` was used for another call before");
                    let finding = Finding::problem("already_used", message).at("/toolCallId").section("§3.3");
                    findings.push(finding.hint("each call has an id of its own"));
                }
            }
            ("TOOL_CALL_ARGS", Some(call)) if !self.calls.has(call) => {
                findings.push(not_open("§3.3", "/toolCallId", "call", call));
            }
            ("TOOL_CALL_END", Some(call)) if !self.calls.close(call) => {
                findings.push(not_open("§3.3", "/toolCallId", "call", call));
            }
            ("TOOL_CALL_RESULT", _) => {
                if let Some(call) = frame.text(&["tool_call_id"])
                    && !calls.unanswered.close(&call)
                {
                    let finding = not_open("§3.3", "/tool_call_id", "call without a result", &call);
                    findings.push(
                        finding.hint("tool_call_id equals the toolCallId of the call's TOOL_CALL_START"),
                    );
                }
            }
            _ => {}
        }
    }
}
