//! The rules of `specs/social-app.md` §2 and §3.

use crate::dialect::document::PartPhase::{self, Begins, Ends, GoesOn};
use crate::dialect::document::{
    DocumentRules, EventNameRule, LifeRules, OrderRules, PartRule, RunNaming, RunPart, SecondBegin, UniqueIds,
};

/// Steps of another system that have one name, each inside the one before it.
const NESTED_STEPS: usize = 8;

pub(super) const DOCUMENT: DocumentRules = DocumentRules {
    relax_for_producers: |schema| {
        // The backend's own figures are not shown to readers, but the backend may write them.
        if let Some(properties) = schema["properties"].as_object_mut() {
            properties.retain(|_, property| *property != false);
        }
    },
    ..DocumentRules::with_order(ORDER)
};

const ORDER: OrderRules = OrderRules {
    event_name: Some(EventNameRule {
        section: "§2",
        problem: |frame, name| {
            let kind = frame.kind;
            (name != kind).then(|| {
                format!("the SSE event is named `{name}`, and its type is `{kind}`; they are the same")
            })
        },
    }),
    ..OrderRules::new(
        LifeRules {
            run: RunNaming::EachFrame(&["/runId"]),
            first: Some(("RUN_STARTED", "§3.1")),
            may_be_first: |frame| frame.kind == "RUN_ERROR",
            ..LifeRules::new(
                "§3.1",
                &["RUN_STARTED"],
                &[("RUN_FINISHED", "RUN_FINISHED"), ("RUN_ERROR", "RUN_ERROR")],
                "only RUN_STARTED may follow",
            )
        },
        &[
            step("STEP_STARTED", Begins),
            step("STEP_FINISHED", Ends),
            // A client joins what belongs to a call by its id.
            PartRule { unique: Some(UniqueIds::InThread), ..arguments("TOOL_CALL_START", Begins) },
            arguments("TOOL_CALL_ARGS", GoesOn),
            arguments("TOOL_CALL_END", Ends),
            PartRule { again: SecondBegin::Ignored, ..call("TOOL_CALL_START", Begins, &["/toolCallId"]) },
            PartRule {
                hint: Some("tool_call_id equals the toolCallId of the call's TOOL_CALL_START"),
                ..call("TOOL_CALL_RESULT", Ends, &["/tool_call_id"])
            },
        ],
    )
};

/// The step of another system is a worker by its own name; the document's own stages do not nest.
const fn step(word: &'static str, phase: PartPhase) -> PartRule {
    PartRule {
        pointer: "/stepName",
        again: SecondBegin::Nested(|step| {
            if matches!(step, super::ROUTER | super::WORKER) { 1 } else { NESTED_STEPS }
        }),
        ..PartRule::new(word, phase, RunPart::Step, "step", &["/name", "/stepName"], "§3.2")
    }
}

const fn arguments(word: &'static str, phase: PartPhase) -> PartRule {
    PartRule::new(word, phase, RunPart::Arguments, "call", &["/toolCallId"], "§3.3")
}

const fn call(word: &'static str, phase: PartPhase, id: &'static [&'static str]) -> PartRule {
    PartRule::new(word, phase, RunPart::Call, "call without a result", id, "§3.3")
}
