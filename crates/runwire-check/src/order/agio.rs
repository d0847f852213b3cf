//! Agio: `specs/agio.md`, whose sections are its headings.

use serde::{Deserialize, Serialize};

use super::open::{Open, PerRun};
use super::{Seen, after_end, already_open, not_first, not_open, run_already_open};
use crate::finding::Finding;

const TYPES: &str = "事件类型";

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Agio {
    runs: PerRun<Run>,
    /// A call that a run leaves open may be answered in the next.
    tools: Open,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct Run {
    has_frames: bool,
    ended_by: Option<String>,
    steps: Open,
}

impl Agio {
    pub(super) fn check(&mut self, frame: &Seen<'_>, findings: &mut Vec<Finding>) {
        let id = frame.text(&["run_id"]);
        let run = self.runs.of(id.as_deref());
        let starts = frame.kind == "run_started";
        if let Some(ended_by) = &run.ended_by {
            findings.push(after_end(TYPES, frame.kind, ended_by, "a new run has a run_id of its own"));
        } else if !run.has_frames && !starts {
            findings.push(not_first(TYPES, frame.kind, "run_started"));
        } else if run.has_frames && starts {
            findings.push(run_already_open("事件详细说明 1", "run", id.as_deref(), "/run_id"));
        }
        run.has_frames = true;

        let tool = frame.text(&["data", "tool_call_id"]);
        let step = frame.at(&["data", "step"]);
        match (frame.kind, tool.as_deref(), step) {
            ("tool_call_started", Some(tool), _) if !self.tools.open(tool, frame.memory) => {
                findings.push(already_open("事件详细说明 3", "/data/tool_call_id", "call", tool));
            }
            ("tool_call_completed" | "tool_call_failed", Some(tool), _) if !self.tools.close(tool) => {
                findings.push(not_open("事件详细说明 4", "/data/tool_call_id", "call", tool));
            }
            ("step_started", _, Some(step)) if !run.steps.open(step, frame.memory) => {
                findings.push(already_open(TYPES, "/data/step", "step", step));
            }
            ("step_completed", _, Some(step)) if !run.steps.close(step) => {
                findings.push(not_open(TYPES, "/data/step", "step", step));
            }
            ("run_completed" | "run_failed" | "run_cancelled", ..) => {
                run.ended_by.get_or_insert_with(|| frame.kind.to_owned());
            }
            _ => {}
        }
    }

    pub(super) fn has_open_run(&self) -> bool {
        self.runs.all().any(|run| run.has_frames && run.ended_by.is_none())
    }

    /// Makes the rules for the next run, which may answer calls that this one leaves open.
    pub(super) fn next(&self) -> Self {
        Self { runs: PerRun::default(), tools: self.tools.clone() }
    }
}
