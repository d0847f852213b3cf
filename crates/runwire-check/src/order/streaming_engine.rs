//! StreamingEngineOrder: `specs/streaming-engine.md` §1.

use serde::{Deserialize, Serialize};

use super::open::{Open, PerRun};
use super::{Seen, after_end, already_open, not_first, not_increasing, not_open, run_already_open};
use crate::finding::Finding;

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct StreamingEngineOrder {
    requests: PerRun<Request>,
    /// A call that a request leaves open may be answered in the next.
    tools: Open,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct Request {
    has_frames: bool,
    has_ended: bool,
    last_sequence: Option<f64>,
}

impl StreamingEngineOrder {
    pub(super) fn check(&mut self, frame: &Seen<'_>, findings: &mut Vec<Finding>) {
        let in_metadata = frame.text(&["metadata", "request_id"]);
        let named = in_metadata.or_else(|| frame.text(&["data", "request_id"]));
        let request = self.requests.of(named.as_deref());
        let starts = frame.kind == "session_start";
        // A frame without metadata is of the legacy form, which has no start.
        let is_legacy = frame.at(&["metadata"]).is_none();
        if starts && request.has_ended {
            *request = Request::default();
        } else if request.has_ended {
            let instead = "send it before session_end, or under the request_id of the next request";
            findings.push(after_end("§1.1", frame.kind, "session_end", instead));
        } else if !request.has_frames && !starts && !is_legacy {
            findings.push(not_first("§1.1", frame.kind, "session_start"));
        } else if request.has_frames && starts {
            findings.push(run_already_open("§1.1", "session of request", named.as_deref(), "/type"));
        }
        request.has_frames = true;

        if let Some(sequence) = frame.number(&["metadata", "sequence"])
            && let Some(last) = request.last_sequence.replace(sequence)
            && sequence <= last
        {
            findings.push(not_increasing("§1.2", "/metadata/sequence", sequence, last));
        }
        let nested = frame.text(&["data", "tool_id"]);
        let tool = nested.or_else(|| frame.text(&["tool_id"]));
        match (frame.kind, tool.as_deref()) {
            ("tool_call_start" | "tool_call", Some(tool)) if !self.tools.open(tool, frame.memory) => {
                findings.push(already_open("§1.3", "/data/tool_id", "call", tool));
            }
            ("tool_call_progress", Some(tool)) if !self.tools.has(tool) => {
                findings.push(not_open("§1.3", "/data/tool_id", "call", tool));
            }
            ("tool_call_end" | "tool_result", Some(tool)) if !self.tools.close(tool) => {
                findings.push(not_open("§1.3", "/data/tool_id", "call", tool));
            }
            ("session_end" | "done", _) => request.has_ended = true,
            _ => {}
        }
    }

    pub(super) fn has_open_run(&self) -> bool {
        self.requests.all().any(|request| request.has_frames && !request.has_ended)
    }

    /// Makes the rules for the next request, which may answer calls that this one leaves open.
    pub(super) fn next(&self) -> Self {
        Self { requests: PerRun::default(), tools: self.tools.clone() }
    }
}
