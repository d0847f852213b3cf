//! The rules of `specs/loom.md` §2–§6 for the single-key form; those of both forms are Loom's.

use crate::dialect::document::PartPhase::{Begins, Ends};
use crate::dialect::document::{DocumentRules, KindHint, OrderRules};
use crate::dialect::loom::document::{COUNTERS, life, node};

pub(super) const DOCUMENT: DocumentRules = DocumentRules {
    kind: |fields, _| fields.first_key().unwrap_or_default().into(),
    kind_hint: KindHint::Unknown,
    kind_pointer: "",
    ..DocumentRules::with_order(OrderRules {
        // What RunStart cannot say goes before it, in an extension slot.
        word: |frame| match frame.fields.text("/Custom/runwire/type").as_deref() {
            Some("run.started") if frame.kind == "Custom" => "RunStart",
            _ => frame.kind,
        },
        counters: COUNTERS,
        ..OrderRules::new(
            life(&["RunStart"], &["RunStart", "TaskStart"], &[("Reply", "reply")]),
            &[
                node("TaskStart", Begins, &["/TaskStart/node_id"]),
                node("TaskEnd", Ends, &["/TaskEnd/node_id"]),
            ],
        )
    })
};
