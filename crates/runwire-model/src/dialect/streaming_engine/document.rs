//! The rules of `specs/streaming-engine.md` §1 and §6.

use crate::dialect::document::PartPhase::{self, Begins, Ends, GoesOn};
use crate::dialect::document::{
    CounterRule, DocumentRules, Growth, LifeRules, OrderRules, OtherForm, PartRule, RunNaming, RunPart,
    SecondStart,
};

const LEGACY_EVENTS: &[&str] =
    &["token", "tool_call", "tool_result", "thinking", "final_answer", "dataframe_data", "done", "error"];

pub(super) const DOCUMENT: DocumentRules = DocumentRules {
    form: |frame| {
        let is_legacy = !frame.fields.has("/metadata") && LEGACY_EVENTS.contains(&frame.kind);
        let message = "is of the legacy form, which is still read";
        is_legacy.then_some(OtherForm::Legacy { section: "§6", message })
    },
    left_out: &[("session_start", "metadata.request_id")],
    ..DocumentRules::with_order(ORDER)
};

const ORDER: OrderRules = OrderRules {
    counters: &[CounterRule {
        pointer: "/metadata/sequence",
        section: "§1.2",
        growth: Growth::IncreasesEachFrame,
        within: None,
    }],
    ..OrderRules::new(
        LifeRules {
            run: RunNaming::EachFrame(&["/metadata/request_id", "/data/request_id"]),
            first: Some(("session_start", "§1.1")),
            // A frame without metadata is of the legacy form, which has no start.
            may_be_first: |frame| !frame.fields.has("/metadata"),
            second_start: SecondStart::Refused {
                section: "§1.1",
                noun: "session of request",
                pointer: "/type",
            },
            ..LifeRules::new(
                "§1.1",
                &["session_start"],
                &[("session_end", "session_end"), ("done", "session_end")],
                "send it before session_end, or under the request_id of the next request",
            )
        },
        &[
            call("tool_call_start", Begins),
            call("tool_call", Begins),
            call("tool_call_progress", GoesOn),
            call("tool_call_end", Ends),
            call("tool_result", Ends),
        ],
    )
};

const fn call(word: &'static str, phase: PartPhase) -> PartRule {
    PartRule::new(word, phase, RunPart::Call, "call", &["/data/tool_id", "/tool_id"], "§1.3")
}
