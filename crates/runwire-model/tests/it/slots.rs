//! Which extension frames a reader sees, and that nothing else changes with them.

use std::collections::HashSet;

use runwire_model::convert::Options;
use runwire_model::dialect::{Dialect, EncoderOptions, FRAME_BITS, Fidelity, Slots};
use runwire_model::run::Authority;
use serde_json::{Value, json};

use super::ag_ui_rules::Client;
use super::vectors::{Case, cases, convert};

/// Every dialect that has extension frames.
const WITH_SLOTS: [Dialect; 7] = [
    Dialect::Loom,
    Dialect::LoomExport,
    Dialect::StreamingEngine,
    Dialect::Agio,
    Dialect::AgUi,
    Dialect::SocialApp,
    Dialect::EasyflowChat,
];

/// Returns the event that an extension frame carries.
fn slot(dialect: Dialect, frame: &Value) -> Option<&Value> {
    let is_ours = |name: &Value| name.as_str().is_some_and(|name| name.starts_with("runwire."));
    let value = match dialect {
        Dialect::Loom if frame["type"] == "custom" => &frame["value"]["runwire"],
        Dialect::LoomExport => &frame["Custom"]["runwire"],
        Dialect::StreamingEngine if frame["type"] == "runwire" => &frame["data"],
        Dialect::Agio if frame["type"] == "debug" => &frame["data"]["runwire"],
        Dialect::AgUi | Dialect::SocialApp if frame["type"] == "CUSTOM" && is_ours(&frame["name"]) => {
            &frame["value"]
        }
        Dialect::EasyflowChat if frame["domain"] == "debug" && frame["type"] == "runwire" => {
            &frame["payload"]
        }
        _ => return None,
    };
    value.is_object().then_some(value)
}

fn frames(case: &Case, dialect: Dialect, slots: Slots) -> Vec<Value> {
    let options = Options { slots, ..case.options(dialect) };
    let outcome = convert(&case.input(), options).unwrap();
    outcome.frames.iter().map(|(_, _, data)| serde_json::from_slice(data).unwrap()).collect()
}

/// Drops the ordering value.
fn without_order(mut frame: Value) -> Value {
    if let Some(object) = frame.as_object_mut() {
        object.remove("event_id");
    }
    if let Some(metadata) = frame["metadata"].as_object_mut() {
        metadata.remove("sequence");
    }
    frame
}

fn is_ask(event: &Value) -> bool {
    let kind = event["type"].as_str().unwrap_or_default();
    kind.starts_with("interaction.") || matches!(kind, "run.suspended" | "run.resumed")
}

#[test]
fn hiding_slots_hides_nothing_else() {
    for case in cases() {
        for dialect in WITH_SLOTS {
            let all = frames(&case, dialect, Slots::All);
            let native = all.iter().filter(|frame| slot(dialect, frame).is_none());
            let native: Vec<Value> = native.cloned().map(without_order).collect();
            let none = frames(&case, dialect, Slots::None);
            let none: Vec<Value> = none.into_iter().map(without_order).collect();
            assert_eq!(none, native, "{} in {dialect}", case.label());
        }
    }
}

#[test]
fn asks_are_the_questions_the_answers_and_the_suspension_among_the_slots() {
    for case in cases() {
        for dialect in WITH_SLOTS {
            let shown = |slots| -> Vec<Value> {
                let frames = frames(&case, dialect, slots);
                frames.iter().filter_map(|frame| slot(dialect, frame)).cloned().collect()
            };
            let person = |event: &Value| event["role"] == "user";
            let asks: Vec<Value> = shown(Slots::Asks);
            let expected: Vec<Value> =
                shown(Slots::All).into_iter().filter(|event| is_ask(event) || person(event)).collect();
            let asks_without_pieces: Vec<Value> =
                asks.into_iter().filter(|event| is_ask(event) || person(event)).collect();
            assert_eq!(asks_without_pieces, expected, "{} in {dialect}", case.label());
        }
    }
}

/// A run that thinks, is told something by a person, asks, is answered, and prints.
fn told_by_a_person() -> Vec<(Option<String>, Vec<u8>)> {
    let events = [
        json!({"type": "run.started", "message": "Hi"}),
        json!({"type": "step.started", "name": "plan", "step_id": "plan.0"}),
        json!({"type": "data", "data_type": "table", "data": {"rows": []}}),
        json!({"type": "text.started", "message_id": "u", "role": "user"}),
        json!({"type": "text.delta", "message_id": "u", "content": "Be brief."}),
        json!({"type": "text.finished", "message_id": "u"}),
        json!({"type": "checkpoint", "checkpoint_id": "c"}),
        json!({"type": "interaction.requested", "interaction_id": "q", "kind": "form", "title": "Where?"}),
        json!({"type": "interaction.resolved", "interaction_id": "q", "decision": "submitted", "values": {}}),
        json!({"type": "custom", "value": {"a": 1}}),
        json!({"type": "run.completed"}),
    ];
    let frame = |(seq, mut event): (usize, Value)| {
        event["seq"] = json!(seq + 1);
        event["at"] = json!("2026-11-15T02:44:33.123Z");
        event["thread_id"] = json!("t");
        event["run_id"] = json!("r");
        (None, serde_json::to_vec(&event).unwrap())
    };
    events.into_iter().enumerate().map(frame).collect()
}

#[test]
fn a_persons_words_are_among_the_asks() {
    let input = told_by_a_person();
    for dialect in [Dialect::Loom, Dialect::LoomExport, Dialect::StreamingEngine, Dialect::Agio] {
        let types = |slots| -> Vec<String> {
            let options = Options {
                from: Some(Dialect::Runwire),
                authority: Authority::Server,
                slots,
                ..Options::to(dialect)
            };
            let frames = convert(&input, options).unwrap().frames;
            let frames: Vec<Value> =
                frames.iter().map(|(_, _, data)| serde_json::from_slice(data).unwrap()).collect();
            let slots = frames.iter().filter_map(|frame| slot(dialect, frame));
            slots.map(|event| event["type"].as_str().unwrap().to_owned()).collect()
        };
        let expected = [
            "text.started",
            "text.delta",
            "text.finished",
            "interaction.requested",
            "run.suspended",
            "interaction.resolved",
            "run.resumed",
        ];
        assert_eq!(types(Slots::Asks), expected, "{dialect}");
        assert!(types(Slots::None).is_empty(), "{dialect}");
        assert!(types(Slots::All).len() > expected.len(), "{dialect}");
    }
}

#[test]
fn ordering_values_have_no_gaps_whatever_is_hidden() {
    for case in cases() {
        for slots in [Slots::Asks, Slots::None] {
            let mut last: Option<(Value, u64)> = None;
            for frame in frames(&case, Dialect::StreamingEngine, slots) {
                let (run, order) = (&frame["metadata"]["request_id"], &frame["metadata"]["sequence"]);
                let expected = last.filter(|(of, _)| of == run).map_or(0, |(_, before)| before + 1);
                assert_eq!(order.as_u64(), Some(expected), "{} {slots:?}: {frame}", case.label());
                last = Some((run.clone(), expected));
            }
        }
    }
}

#[test]
fn the_official_ag_ui_client_takes_what_is_left() {
    for case in cases() {
        for slots in [Slots::Asks, Slots::None] {
            let mut client = Client::default();
            for frame in frames(&case, Dialect::AgUi, slots) {
                let taken = client.take(&frame);
                assert!(taken.is_ok(), "{} {slots:?}: {taken:?} {frame}", case.label());
            }
        }
    }
}

#[test]
fn the_first_frame_of_a_cursor_tells_dialects_and_options_apart() {
    let mut seen = HashSet::new();
    for dialect in Dialect::ALL {
        assert_eq!(EncoderOptions::default().first_frame(dialect), 0);
        for fidelity in [Fidelity::Native, Fidelity::Full] {
            for slots in Slots::ALL {
                let options = EncoderOptions { fidelity, slots };
                let first = options.first_frame(dialect);
                assert_eq!(first % (1 << FRAME_BITS), 0);
                assert!(first < u32::MAX >> FRAME_BITS << FRAME_BITS, "the last frame is no `u32::MAX`");
                let changes_frames = WITH_SLOTS.contains(&dialect) && options != EncoderOptions::default();
                assert_eq!(first > 0 && seen.insert(first), changes_frames, "{dialect} {options:?}");
            }
        }
    }
    // Cursors outlive the program that gave them.
    let asks = EncoderOptions { slots: Slots::Asks, ..EncoderOptions::default() };
    assert_eq!(asks.first_frame(Dialect::Agio), 2881 << FRAME_BITS);
}
