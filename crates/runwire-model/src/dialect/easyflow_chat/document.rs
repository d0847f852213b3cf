//! The rules of `specs/easyflow-chat.md` §3, §4, §10, §11, §13 and §14.

use crate::dialect::document::PartPhase::{self, Begins, Ends, GoesOn};
use crate::dialect::document::{
    ConstantRule, CounterRule, DocumentRules, EventNameRule, FrameView, Growth, KindHint, LifeRules,
    OrderRules, PartRule, RunPart, SecondBegin,
};

const DONE: &str = "system/done";
/// A `system/status` that begins a run.
const RUN_BEGINS: &str = "run begins";
/// An error that ends its stream.
const TERMINAL_ERROR: &str = "terminal error";
const NODE_STARTS: &str = "node starts";
const NODE_ENDS: &str = "node ends";

pub(super) const DOCUMENT: DocumentRules = DocumentRules {
    kind: |fields, _| match (fields.text("/domain"), fields.text("/type")) {
        (Some(domain), Some(kind)) => format!("{domain}/{kind}").to_lowercase().into(),
        // In the wild the end of a stream has no type.
        (Some(domain), None) if domain.eq_ignore_ascii_case("system") => DONE.into(),
        (domain, kind) => domain.or(kind).unwrap_or_default(),
    },
    kind_hint: KindHint::Pair(["domain", "type"]),
    left_out: &[(DONE, "payload")],
    ..DocumentRules::with_order(ORDER)
};

const ORDER: OrderRules = OrderRules {
    word,
    counters: &[CounterRule {
        pointer: "/index",
        section: "§4.2",
        growth: Growth::IncreasesEachFrame,
        within: Some("/message_id"),
    }],
    constant: Some(ConstantRule { pointer: "/conversation_id", section: "§4.2", noun: "conversation" }),
    event_name: Some(EventNameRule { section: "§3.1", problem: wrong_name }),
    ..OrderRules::new(
        LifeRules {
            restarts: &[RUN_BEGINS],
            ..LifeRules::new(
                "§13",
                &[],
                &[(DONE, DONE), (TERMINAL_ERROR, "system/error")],
                "a stream ends with its done or error; the next run begins with system/status",
            )
        },
        &[
            node(NODE_STARTS, Begins),
            node(NODE_ENDS, Ends),
            // People answer a form, which a producer's frames do not show: it may be asked and withdrawn again.
            PartRule { again: SecondBegin::Ignored, ..form("interaction/form_request", Begins) },
            form("interaction/form_cancel", GoesOn),
        ],
    )
};

fn word<'f>(frame: &FrameView<'f>) -> &'f str {
    let state = || frame.fields.text("/payload/state").unwrap_or_default();
    let is_state = |word: &str| state().eq_ignore_ascii_case(word);
    match frame.kind {
        "system/status" if matches!(&*state(), "initializing" | "running") => RUN_BEGINS,
        "workflow/status" if is_state("start") => NODE_STARTS,
        "workflow/status" if is_state("end") => NODE_ENDS,
        kind if kind.ends_with("/error") && is_terminal(frame) => TERMINAL_ERROR,
        kind => kind,
    }
}

/// Returns whether an error ends its stream.
fn is_terminal(frame: &FrameView<'_>) -> bool {
    let goes_on = || frame.fields.json("/meta/terminal") == Some("false");
    frame.name == Some("error") || (frame.kind == "system/error" && !goes_on())
}

/// Returns the problem of an SSE name, which only marks whether the stream ends.
fn wrong_name(frame: &FrameView<'_>, name: &str) -> Option<String> {
    let kind = frame.kind;
    match name {
        "message" if kind == DONE => Some("the end of the stream is named `done`".to_owned()),
        "done" if kind != DONE => Some(format!("`done` is the end of the stream, and this is `{kind}`")),
        "error" if !kind.ends_with("/error") => {
            Some(format!("`error` is for an error that ends the stream, and this is `{kind}`"))
        }
        "message" | "done" | "error" => None,
        _ => Some(format!("the SSE event is named `{name}`; it is one of `message`, `error`, `done`")),
    }
}

/// A node may run inside itself.
const fn node(word: &'static str, phase: PartPhase) -> PartRule {
    let id = &["/payload/node_id", "/payload/nodeId"];
    let rule = PartRule::new(word, phase, RunPart::Step, "node", id, "§10");
    PartRule { again: SecondBegin::Nested(|_| usize::MAX), ..rule }
}

const fn form(word: &'static str, phase: PartPhase) -> PartRule {
    let id = &["/payload/form_id", "/payload/formId"];
    PartRule::new(word, phase, RunPart::Interaction, "form", id, "§11.2")
}
