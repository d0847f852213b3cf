//! The order of the canonical events, as `docs/dialects/runwire.md` has it.
//!
//! This is the order that the guard keeps in every run: it adds what a frame leaves out here, or drops the frame.

use serde_json::json;

use crate::dialect::document::PartPhase::{self, Begins, Ends, GoesOn};
use crate::dialect::document::{
    CounterRule, DocumentRules, Growth, LifeRules, OrderRules, PartRule, ProducerRule, QuietEnd, RunNaming,
    RunPart, SecondStart,
};

pub(crate) const DOCUMENT: DocumentRules = DocumentRules {
    // The server stamps the envelope.
    relax_for_producers: |schema| schema["required"] = json!(["type"]),
    ..DocumentRules::with_order(ORDER)
};

const ORDER: OrderRules = OrderRules {
    counters: &[
        // Records without events leave gaps in what a reader sees.
        CounterRule { pointer: "/seq", section: "§3", growth: Growth::NeverDecreases, within: None },
        CounterRule { pointer: "/at", section: "§3", growth: Growth::TimeNeverDecreases, within: None },
    ],
    ..OrderRules::new(
        LifeRules {
            thread: Some("/thread_id"),
            run: RunNaming::EachFrame(&["/run_id"]),
            first: Some(("run.started", "§5")),
            // The guard starts the run of a producer.
            may_be_first: |frame| frame.from_producer,
            second_start: SecondStart::Refused { section: "§5", noun: "run", pointer: "/run_id" },
            restarts: &[],
            ..LifeRules::new(
                "§5",
                &["run.started"],
                &[
                    ("run.completed", "run.completed"),
                    ("run.failed", "run.failed"),
                    ("run.cancelled", "run.cancelled"),
                ],
                "a run has exactly one terminal event, its last",
            )
        },
        PARTS,
    )
};

/// What each event means for the parts of its run.
pub(crate) const PARTS: &[PartRule] = &[
    text("text.started", Begins),
    PartRule { from_producer: ProducerRule::Begins, ..text("text.delta", GoesOn) },
    // A whole text that differs from its pieces replaces them, also after their end.
    PartRule { quiet: QuietEnd::With("/content"), ..text("text.finished", Ends) },
    thinking("thinking.started", Begins),
    PartRule { from_producer: ProducerRule::Begins, ..thinking("thinking.delta", GoesOn) },
    thinking("thinking.finished", Ends),
    PartRule::new("step.started", Begins, RunPart::Step, "step", &["/step_id"], "§4"),
    PartRule::new("step.finished", Ends, RunPart::Step, "step", &["/step_id"], "§4"),
    arguments("tool.args_started", Begins),
    arguments("tool.args_delta", GoesOn),
    call("tool.called", Begins),
    PartRule { quiet: QuietEnd::Always, ..arguments("tool.called", Ends) },
    call("tool.started", GoesOn),
    call("tool.progress", GoesOn),
    call("tool.output", GoesOn),
    call("tool.finished", Ends),
    interaction("interaction.requested", Begins),
    interaction("interaction.resolved", Ends),
];

const fn text(word: &'static str, phase: PartPhase) -> PartRule {
    PartRule::new(word, phase, RunPart::Text, "text", &["/message_id"], "§4")
}

const fn thinking(word: &'static str, phase: PartPhase) -> PartRule {
    PartRule::new(word, phase, RunPart::Thinking, "thinking", &["/message_id"], "§4")
}

const fn arguments(word: &'static str, phase: PartPhase) -> PartRule {
    PartRule::new(word, phase, RunPart::Arguments, "call with streamed arguments", &["/call_id"], "§4")
}

const fn call(word: &'static str, phase: PartPhase) -> PartRule {
    PartRule::new(word, phase, RunPart::Call, "call", &["/call_id"], "§4")
}

const fn interaction(word: &'static str, phase: PartPhase) -> PartRule {
    let rule = PartRule::new(word, phase, RunPart::Interaction, "question", &["/interaction_id"], "§4");
    PartRule { from_producer: ProducerRule::Exempt, ..rule }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Body, Event};
    use crate::json::Object;
    use crate::record::{Entry, EventOrigin};
    use crate::run::{Authority, RunState};
    use crate::window::Window;

    /// Every field that one of the events needs.
    const FIELDS: &str = r#"{"message_id":"a","call_id":"a","interaction_id":"a","step_id":"a","name":"n",
        "content":"c","delta":"d","arguments":{},"progress":0.5,"output":"o","status":"success","kind":"form",
        "decision":"cancelled"}"#;

    /// Applies events to a run one after the other; returns what the guard stores for the last.
    fn stored(words: &[&str]) -> Vec<Entry> {
        let mut run = RunState::new("t", "r");
        let mut entries = Vec::new();
        for (seq, word) in (1..).zip(words) {
            let event = Event::read(word, Object::parse(FIELDS.as_bytes()).unwrap()).unwrap().unwrap();
            entries.clear();
            let window = Window::default();
            run.apply(event, EventOrigin::Producer, Authority::Server, seq, &window, &mut entries).unwrap();
        }
        entries
    }

    fn types(entries: &[Entry]) -> Vec<&'static str> {
        entries.iter().map(|entry| entry.event.body.type_name()).collect()
    }

    #[test]
    fn the_guard_adds_what_these_rules_miss_or_drops_the_event() {
        for rule in PARTS.iter().filter(|rule| rule.phase != Begins && rule.word != "tool.called") {
            let mut begins = PARTS.iter().filter(|begin| begin.phase == Begins && begin.part == rule.part);
            let begin = begins.next().unwrap().word;
            let alone = types(&stored(&[rule.word]));
            let is_dropped = !alone.contains(&rule.word) || matches!(rule.quiet, QuietEnd::With(_));
            assert!(is_dropped || alone.contains(&begin), "{}: {alone:?}", rule.word);
            let after = stored(&[begin, rule.word]);
            assert!(types(&after).contains(&rule.word) && !types(&after).contains(&begin), "{}", rule.word);
        }
    }

    #[test]
    fn every_event_of_a_part_has_a_rule() {
        let parts = ["text.", "thinking.", "step.", "tool.", "interaction."];
        for word in Body::TYPES.iter().filter(|word| parts.iter().any(|part| word.starts_with(part))) {
            assert!(PARTS.iter().any(|rule| rule.word == *word), "{word}");
        }
    }
}
