//! EasyFlow chat: `specs/easyflow-chat.md` §3, §4, §10, §11, §13, §14.

use serde::{Deserialize, Serialize};

use super::open::{Open, OpenNodes, PerRun, short};
use super::{Seen, after_end, not_increasing, not_open};
use crate::finding::Finding;

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct EasyflowChat {
    conversation: Option<String>,
    has_frames: bool,
    ended_by: Option<String>,
    messages: PerRun<Message>,
    nodes: OpenNodes,
    /// Forms that were asked; people answer them, which a producer's frames do not show.
    forms: Open,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct Message {
    last_index: Option<f64>,
}

impl EasyflowChat {
    pub(super) fn check(&mut self, frame: &Seen<'_>, findings: &mut Vec<Finding>) {
        check_name(frame, findings);
        let state = frame.text(&["payload", "state"]);
        let begins_run =
            frame.kind == "system/status" && matches!(state.as_deref(), Some("initializing" | "running"));
        if let Some(ended_by) = &self.ended_by {
            if begins_run {
                *self = Self { conversation: self.conversation.take(), ..Self::default() };
            } else {
                let instead = "a stream ends with its done or error; the next run begins with system/status";
                findings.push(after_end("§13", frame.kind, ended_by, instead));
            }
        }
        self.has_frames = true;
        self.check_conversation(frame, findings);
        self.check_index(frame, findings);
        self.check_ends(frame, state.as_deref(), findings);
        if is_done(frame) {
            self.ended_by = Some("system/done".to_owned());
        } else if is_terminal_error(frame) {
            self.ended_by = Some("system/error".to_owned());
        }
    }

    pub(super) fn has_open_run(&self) -> bool {
        self.has_frames && self.ended_by.is_none()
    }
}

impl EasyflowChat {
    fn check_conversation(&mut self, frame: &Seen<'_>, findings: &mut Vec<Finding>) {
        let Some(id) = frame.text(&["conversation_id"]) else { return };
        match &self.conversation {
            Some(conversation) if *conversation != short(&id) => {
                let message = format!("is `{id}`; the stream is of the conversation `{conversation}`");
                findings.push(Finding::problem("changed", message).at("/conversation_id").section("§4.2"));
            }
            Some(_) => {}
            None => self.conversation = Some(short(&id).into_owned()),
        }
    }

    fn check_index(&mut self, frame: &Seen<'_>, findings: &mut Vec<Finding>) {
        let Some(index) = frame.number(&["index"]) else { return };
        let message = self.messages.of(Some(&frame.text(&["message_id"]).unwrap_or_default()));
        if let Some(last) = message.last_index.replace(index)
            && index <= last
        {
            findings.push(not_increasing("§4.2", "/index", index, last));
        }
    }
}

impl EasyflowChat {
    /// Checks that what ends has begun: a node, and a form that is withdrawn.
    fn check_ends(&mut self, frame: &Seen<'_>, state: Option<&str>, findings: &mut Vec<Finding>) {
        let named = |snake: &str, camel: &str| {
            frame.text(&["payload", snake]).or_else(|| frame.text(&["payload", camel]))
        };
        match (frame.kind, state.map(str::to_lowercase).as_deref()) {
            ("workflow/status", Some(state @ ("start" | "end"))) => {
                let Some(node) = named("node_id", "nodeId") else { return };
                if state == "start" {
                    self.nodes.enter(&node, frame.memory);
                } else if !self.nodes.exit(&node) {
                    findings.push(not_open("§10", "/payload/node_id", "node", &node));
                }
            }
            ("interaction/form_request", _) => {
                if let Some(form) = named("form_id", "formId") {
                    self.forms.open(&form, frame.memory);
                }
            }
            ("interaction/form_cancel", _) => {
                if let Some(form) = named("form_id", "formId")
                    && !self.forms.has(&form)
                {
                    findings.push(not_open("§11.2", "/payload/form_id", "form", &form));
                }
            }
            _ => {}
        }
    }
}

/// Checks the SSE name, where there is one: it says only whether the stream goes on.
fn check_name(frame: &Seen<'_>, findings: &mut Vec<Finding>) {
    let Some(name) = frame.name else { return };
    let problem = match name {
        "message" if is_done(frame) => "the end of the stream is named `done`".to_owned(),
        "done" if !is_done(frame) => format!("`done` is the end of the stream, and this is `{}`", frame.kind),
        "error" if !frame.kind.ends_with("/error") => {
            format!("`error` is for an error that ends the stream, and this is `{}`", frame.kind)
        }
        "message" | "done" | "error" => return,
        _ => format!("the SSE event is named `{name}`; it is one of `message`, `error`, `done`"),
    };
    findings.push(Finding::problem("bad_event_name", problem).field("event").section("§3.1"));
}

fn is_done(frame: &Seen<'_>) -> bool {
    frame.kind == "system/done"
}

fn is_terminal_error(frame: &Seen<'_>) -> bool {
    let goes_on = frame.at(&["meta", "terminal"]).is_some_and(|terminal| terminal == "false");
    match frame.name {
        Some("error") => frame.kind.ends_with("/error"),
        _ => frame.kind == "system/error" && !goes_on,
    }
}
