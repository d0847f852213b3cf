//! The order of the canonical events, as `docs/dialects/runwire.md` has it.

use serde::{Deserialize, Serialize};

use super::open::{Open, PerRun};
use super::{NOT_INCREASING, Seen, after_end, already_open, not_first, not_open, run_already_open};
use crate::Side;
use crate::finding::Finding;

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Runwire {
    threads: PerRun<Thread>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct Thread {
    seq: Option<f64>,
    at: String,
    /// A call that a run leaves open may be answered in the next.
    calls: Open,
    runs: PerRun<Run>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct Run {
    has_frames: bool,
    ended_by: Option<String>,
    texts: Open,
    thoughts: Open,
    arguments: Open,
    steps: Open,
    questions: Open,
}

impl Runwire {
    pub(super) fn check(&mut self, frame: &Seen<'_>, findings: &mut Vec<Finding>) {
        let thread = self.threads.of(frame.text(&["thread_id"]).as_deref());
        thread.check_seq(frame, findings);
        thread.check_at(frame, findings);
        let run = thread.runs.of(frame.text(&["run_id"]).as_deref());
        run.check_life(frame, findings);
        run.check_parts(frame, &mut thread.calls, findings);
    }

    pub(super) fn has_open_run(&self) -> bool {
        let mut runs = self.threads.all().flat_map(|thread| thread.runs.all());
        runs.any(|run| run.has_frames && run.ended_by.is_none())
    }

    /// Makes the rules for the next run, which may answer calls that this one leaves open.
    pub(super) fn next(&self) -> Self {
        let calls = self.threads.all().last().map(|thread| thread.calls.clone()).unwrap_or_default();
        Self { threads: PerRun::with("", Thread { calls, ..Thread::default() }) }
    }
}

impl Thread {
    fn check_seq(&mut self, frame: &Seen<'_>, findings: &mut Vec<Finding>) {
        let Some(seq) = frame.number(&["seq"]) else { return };
        // Records without events leave gaps in what a reader sees.
        if let Some(last) = self.seq.replace(seq)
            && seq < last
        {
            let message = format!("is {seq} after {last}; it never goes backwards in a thread");
            findings.push(Finding::problem(NOT_INCREASING, message).at("/seq").section("§3"));
        }
    }

    fn check_at(&mut self, frame: &Seen<'_>, findings: &mut Vec<Finding>) {
        let Some(at) = frame.text(&["at"]).filter(|at| at.len() <= 64) else { return };
        // Times of one form compare as their text does.
        if at.len() == self.at.len() && *at < *self.at {
            let message = format!("is {at} after {}; time never goes backwards in a thread", self.at);
            findings.push(Finding::problem(NOT_INCREASING, message).at("/at").section("§3"));
        }
        self.at = at.into_owned();
    }
}

impl Run {
    fn check_life(&mut self, frame: &Seen<'_>, findings: &mut Vec<Finding>) {
        let starts = frame.kind == "run.started";
        if let Some(ended_by) = &self.ended_by {
            findings.push(after_end(
                "§5",
                frame.kind,
                ended_by,
                "a run has exactly one terminal event, its last",
            ));
        } else if !self.has_frames && !starts && frame.side == Side::Reader {
            findings.push(not_first("§5", frame.kind, "run.started"));
        } else if self.has_frames && starts {
            let run = frame.text(&["run_id"]);
            findings.push(run_already_open("§5", "run", run.as_deref(), "/run_id"));
        }
        self.has_frames = true;
        if matches!(frame.kind, "run.completed" | "run.failed" | "run.cancelled") {
            self.ended_by.get_or_insert_with(|| frame.kind.to_owned());
        }
    }

    fn check_parts(&mut self, frame: &Seen<'_>, calls: &mut Open, findings: &mut Vec<Finding>) {
        use Phase::{Begins, Ends, GoesOn};
        let (phase, pointer, what, open) = match frame.kind {
            "text.started" => (Begins, "/message_id", "text", &mut self.texts),
            "text.delta" => (GoesOn, "/message_id", "text", &mut self.texts),
            "text.finished" => (Ends, "/message_id", "text", &mut self.texts),
            "thinking.started" => (Begins, "/message_id", "thinking", &mut self.thoughts),
            "thinking.delta" => (GoesOn, "/message_id", "thinking", &mut self.thoughts),
            "thinking.finished" => (Ends, "/message_id", "thinking", &mut self.thoughts),
            "step.started" => (Begins, "/step_id", "step", &mut self.steps),
            "step.finished" => (Ends, "/step_id", "step", &mut self.steps),
            "tool.args_started" => (Begins, "/call_id", "call with streamed arguments", &mut self.arguments),
            "tool.args_delta" => (GoesOn, "/call_id", "call with streamed arguments", &mut self.arguments),
            "tool.called" => (Begins, "/call_id", "call", &mut *calls),
            "tool.started" | "tool.progress" | "tool.output" => (GoesOn, "/call_id", "call", &mut *calls),
            "tool.finished" => (Ends, "/call_id", "call", &mut *calls),
            "interaction.requested" => (Begins, "/interaction_id", "question", &mut self.questions),
            "interaction.resolved" => (Ends, "/interaction_id", "question", &mut self.questions),
            _ => return,
        };
        let Some(id) = frame.text(&[&pointer[1..]]) else { return };
        let id = &*id;
        if frame.side == Side::Producer {
            match what {
                // People answer it, which the producer's frames do not show.
                "question" => return,
                // A producer may leave the starts out; the guard adds them before the first piece.
                "text" | "thinking" if matches!(phase, GoesOn) => {
                    open.open(id, frame.memory);
                }
                _ => {}
            }
        }
        // A whole text that differs from its pieces replaces them, also after their end.
        let replaces = frame.kind == "text.finished" && frame.at(&["content"]).is_some();
        let finding = match phase {
            Ends if replaces => {
                open.close(id);
                None
            }
            Begins => (!open.open(id, frame.memory)).then(|| already_open("§4", pointer, what, id)),
            GoesOn => (!open.has(id)).then(|| not_open("§4", pointer, what, id)),
            Ends => (!open.close(id)).then(|| not_open("§4", pointer, what, id)),
        };
        findings.extend(finding);
        if frame.kind == "tool.called" {
            self.arguments.close(id);
        }
    }
}

/// Where in the life of a thing an event stands.
enum Phase {
    Begins,
    GoesOn,
    Ends,
}
