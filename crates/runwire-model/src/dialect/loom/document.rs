//! The rules of `specs/loom.md` §2–§6, for both forms of Loom's output; what only `loom-export` has is in its folder.

use crate::dialect::document::PartPhase::{self, Begins, Ends};
use crate::dialect::document::{
    CounterRule, DocumentRules, Growth, KindHint, LifeRules, OrderRules, PartRule, RunPart, SecondBegin,
    SecondStart,
};

pub(super) const DOCUMENT: DocumentRules = DocumentRules {
    kind: |fields, _| match fields.text("/type") {
        None if !fields.has("/type") && fields.has("/reply") => "reply".into(),
        kind => kind.unwrap_or_default(),
    },
    kind_hint: KindHint::TypeOr("reply"),
    has_envelope: false,
    ..DocumentRules::with_order(OrderRules {
        counters: COUNTERS,
        ..OrderRules::new(
            life(&["run_start"], &["run_start", "node_enter"], &[("reply", "reply")]),
            &[node("node_enter", Begins, &["/id"]), node("node_exit", Ends, &["/id"])],
        )
    })
};

pub(in crate::dialect) const COUNTERS: &[CounterRule] =
    &[CounterRule { pointer: "/event_id", section: "§2", growth: Growth::IncreasesEachFrame, within: None }];

pub(in crate::dialect) const fn life(
    starts: &'static [&'static str],
    restarts: &'static [&'static str],
    ends: &'static [(&'static str, &'static str)],
) -> LifeRules {
    let after_end = "the reply is a run's last frame; a run_start or a node_enter begins the next";
    LifeRules {
        second_start: SecondStart::Restarts,
        restarts,
        ..LifeRules::new("§5", starts, ends, after_end)
    }
}

/// A node may run inside itself.
pub(in crate::dialect) const fn node(
    word: &'static str,
    phase: PartPhase,
    id: &'static [&'static str],
) -> PartRule {
    PartRule {
        again: SecondBegin::Nested(|_| usize::MAX),
        ..PartRule::new(word, phase, RunPart::Step, "node", id, "§4.2")
    }
}
