//! social-app: `specs/social-app.md` §3.

use super::open::{Open, PerRun};
use super::{Rules, Seen, after_end, already_open, not_first, not_open};
use crate::validate::finding::Finding;

#[derive(Default)]
pub(super) struct SocialApp {
    runs: PerRun<Run>,
    /// Calls without a result; a run may leave one to the next.
    unanswered: Open,
}

#[derive(Default)]
struct Run {
    has_frames: bool,
    ended_by: Option<&'static str>,
    steps: Open,
    /// Calls whose arguments may still come.
    calls: Open,
}

impl Rules for SocialApp {
    fn check(&mut self, frame: &Seen<'_>, findings: &mut Vec<Finding>) {
        check_name(frame, findings);
        let run = self.runs.of(frame.text(&["runId"]).unwrap_or_default());
        let starts = frame.kind == "RUN_STARTED";
        if starts && run.ended_by.is_some() {
            *run = Run::default();
        } else if let Some(ended_by) = run.ended_by {
            findings.push(after_end("§3.1", frame.kind, ended_by, "only RUN_STARTED may follow"));
        } else if !run.has_frames && !starts && frame.kind != "RUN_ERROR" {
            findings.push(not_first("§3.1", frame.kind, "RUN_STARTED"));
        }
        run.has_frames = true;
        run.check_parts(frame, &mut self.unanswered, findings);
    }

    fn has_open_run(&self) -> bool {
        self.runs.all().any(|run| run.has_frames && run.ended_by.is_none())
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

/// Tells which step a frame means: the step of another system is a worker by its own name.
fn step_of<'f>(frame: &Seen<'f>) -> Option<&'f str> {
    frame.text(&["name"]).or_else(|| frame.text(&["stepName"]))
}

impl Run {
    fn check_parts(&mut self, frame: &Seen<'_>, unanswered: &mut Open, findings: &mut Vec<Finding>) {
        let call = frame.text(&["toolCallId"]);
        match (frame.kind, call) {
            ("RUN_FINISHED", _) => self.ended_by = Some("RUN_FINISHED"),
            ("RUN_ERROR", _) => self.ended_by = Some("RUN_ERROR"),
            ("STEP_STARTED", _) => {
                if let Some(step) = step_of(frame)
                    && !self.steps.open(step)
                {
                    findings.push(already_open("§3.2", "stepName", "step", step));
                }
            }
            ("STEP_FINISHED", _) => {
                if let Some(step) = step_of(frame)
                    && !self.steps.close(step)
                {
                    findings.push(not_open("§3.2", "stepName", "step", step));
                }
            }
            ("TOOL_CALL_START", Some(call)) => {
                unanswered.open(call);
                if !self.calls.open(call) {
                    findings.push(already_open("§3.3", "toolCallId", "call", call));
                }
            }
            ("TOOL_CALL_ARGS", Some(call)) if !self.calls.has(call) => {
                findings.push(not_open("§3.3", "toolCallId", "call", call));
            }
            ("TOOL_CALL_END", Some(call)) if !self.calls.close(call) => {
                findings.push(not_open("§3.3", "toolCallId", "call", call));
            }
            ("TOOL_CALL_RESULT", _) => {
                if let Some(call) = frame.text(&["tool_call_id"])
                    && !unanswered.close(call)
                {
                    let finding = not_open("§3.3", "tool_call_id", "call without a result", call);
                    findings.push(
                        finding.hint("tool_call_id equals the toolCallId of the call's TOOL_CALL_START"),
                    );
                }
            }
            _ => {}
        }
    }
}
