//! Loom, in its typed and its export form: `specs/loom.md` §2–§6.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::open::OpenNodes;
use super::{Seen, after_end, not_increasing, not_open};
use crate::finding::Finding;

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Loom {
    form: Form,
    run: Run,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct Run {
    has_frames: bool,
    has_replied: bool,
    last_event_id: Option<f64>,
    nodes: OpenNodes,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
enum Form {
    #[default]
    Typed,
    Export,
}

/// What an event of Loom's means for the order.
enum Event<'a> {
    RunStart,
    NodeEnter(Option<Cow<'a, str>>),
    NodeExit(Option<Cow<'a, str>>),
    Reply,
    Other,
}

impl Loom {
    pub(super) fn typed() -> Self {
        Self::default()
    }

    pub(super) fn export() -> Self {
        Self { form: Form::Export, run: Run::default() }
    }

    pub(super) fn is_export(&self) -> bool {
        self.form == Form::Export
    }

    fn event<'a>(&self, frame: &Seen<'a>) -> Event<'a> {
        match (self.form, frame.kind) {
            (Form::Typed, "run_start") | (Form::Export, "RunStart") => Event::RunStart,
            // What RunStart cannot say goes before it, in an extension slot.
            (Form::Export, "Custom")
                if frame.text(&["Custom", "runwire", "type"]).as_deref() == Some("run.started") =>
            {
                Event::RunStart
            }
            (Form::Typed, "reply") | (Form::Export, "Reply") => Event::Reply,
            (Form::Typed, "node_enter") => Event::NodeEnter(frame.text(&["id"])),
            (Form::Typed, "node_exit") => Event::NodeExit(frame.text(&["id"])),
            (Form::Export, "TaskStart") => Event::NodeEnter(frame.text(&["TaskStart", "node_id"])),
            (Form::Export, "TaskEnd") => Event::NodeExit(frame.text(&["TaskEnd", "node_id"])),
            _ => Event::Other,
        }
    }
}

impl Loom {
    pub(super) fn check(&mut self, frame: &Seen<'_>, findings: &mut Vec<Finding>) {
        let event = self.event(frame);
        let may_begin = matches!(event, Event::RunStart | Event::NodeEnter(_));
        if matches!(event, Event::RunStart) || (self.run.has_replied && may_begin) {
            // The next run may count on, or from the start again.
            self.run = Run::default();
        } else if self.run.has_replied {
            let instead = "the reply is a run's last frame; a run_start or a node_enter begins the next";
            findings.push(after_end("§5", frame.kind, "reply", instead));
        }
        let run = &mut self.run;
        run.has_frames = true;

        if let Some(event_id) = frame.number(&["event_id"])
            && let Some(last) = run.last_event_id.replace(event_id)
            && event_id <= last
        {
            findings.push(not_increasing("§2", "/event_id", event_id, last));
        }
        match event {
            Event::Reply => run.has_replied = true,
            Event::NodeEnter(Some(node)) => run.nodes.enter(&node, frame.memory),
            Event::NodeExit(Some(node)) if !run.nodes.exit(&node) => {
                let pointer = if self.form == Form::Typed { "/id" } else { "/TaskEnd/node_id" };
                findings.push(not_open("§4.2", pointer, "node", &node));
            }
            _ => {}
        }
    }

    pub(super) fn has_open_run(&self) -> bool {
        self.run.has_frames && !self.run.has_replied
    }

    /// Makes the rules for the next run.
    pub(super) fn next(&self) -> Self {
        Self { form: self.form, run: Run::default() }
    }
}
