//! The rules of `specs/agio.md`, whose sections are its headings.

use crate::dialect::document::PartPhase::{self, Begins, Ends};
use crate::dialect::document::{
    DocumentRules, LifeRules, OrderRules, OtherForm, PartRule, RunNaming, RunPart, SecondStart,
};

const EVENT_TYPES: &str = "事件类型";
const TOOL: &[&str] = &["/data/tool_call_id"];
const STEP: &[&str] = &["/data/step"];

pub(super) const DOCUMENT: DocumentRules = DocumentRules {
    kind: |fields, name| fields.text("/type").or(name.map(Into::into)).unwrap_or_default(),
    // Some servers send an event's data alone over SSE.
    form: |frame| {
        let is_data_alone = frame.name.is_some() && !frame.fields.has("/type");
        is_data_alone.then_some(OtherForm::NoEnvelope {
            section: "统一事件模型",
            message: "the frame holds only the event's data; the document's has type, run_id, timestamp and data",
        })
    },
    ..DocumentRules::with_order(ORDER)
};

const ORDER: OrderRules = OrderRules::new(
    LifeRules {
        run: RunNaming::EachFrame(&["/run_id"]),
        first: Some(("run_started", EVENT_TYPES)),
        second_start: SecondStart::Refused {
            section: "事件详细说明 1", noun: "run", pointer: "/run_id"
        },
        restarts: &[],
        ..LifeRules::new(
            EVENT_TYPES,
            &["run_started"],
            &[
                ("run_completed", "run_completed"),
                ("run_failed", "run_failed"),
                ("run_cancelled", "run_cancelled"),
            ],
            "a new run has a run_id of its own",
        )
    },
    &[
        PartRule::new("tool_call_started", Begins, RunPart::Call, "call", TOOL, "事件详细说明 3"),
        PartRule::new("tool_call_completed", Ends, RunPart::Call, "call", TOOL, "事件详细说明 4"),
        PartRule::new("tool_call_failed", Ends, RunPart::Call, "call", TOOL, "事件详细说明 4"),
        step("step_started", Begins),
        step("step_completed", Ends),
    ],
);

const fn step(word: &'static str, phase: PartPhase) -> PartRule {
    PartRule { has_number: true, ..PartRule::new(word, phase, RunPart::Step, "step", STEP, EVENT_TYPES) }
}
