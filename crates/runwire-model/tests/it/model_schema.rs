//! The model's own JSON Schema, made from the code, judges what the code writes.

use jsonschema::Validator;
use runwire_model::dialect::Dialect;
use serde_json::{Value, json};

use super::vectors::{cases, convert};

/// Compiles the schema of one definition.
fn schema_of(definition: &str) -> Validator {
    let mut schema: Value = serde_json::from_str(include_str!("../../schema/runwire.schema.json")).unwrap();
    assert!(schema["$defs"][definition].is_object(), "there is no {definition}");
    schema["$ref"] = json!(format!("#/$defs/{definition}"));
    jsonschema::validator_for(&schema).unwrap()
}

fn frame(fields: Value) -> Value {
    let mut frame = json!({ "seq": 1, "at": "2026-11-15T02:44:33.123Z", "thread_id": "t", "run_id": "r" });
    frame.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    frame
}

#[test]
fn every_event_and_message_of_every_vector_fits_the_models_schema() {
    let (event, message) = (schema_of("Event"), schema_of("MessageState"));
    for case in cases() {
        let outcome = convert(&case.input(), case.options(Dialect::Runwire)).unwrap();
        let frames = outcome.frames.iter().map(|(_, _, data)| serde_json::from_slice(data).unwrap());
        let messages = outcome.messages.iter().map(|message| serde_json::to_value(message).unwrap());
        let judged = frames.map(|frame| (&event, frame)).chain(messages.map(|folded| (&message, folded)));
        for (schema, value) in judged {
            let value: Value = value;
            let faults: Vec<String> = schema
                .iter_errors(&value)
                .map(|fault| format!("{}: {fault}", fault.instance_path()))
                .collect();
            assert!(faults.is_empty(), "{}: {value}\n{faults:?}", case.label());
        }
    }
}

#[test]
fn an_event_of_unknown_type_fits_and_is_told_apart_from_the_known() {
    let unknown = frame(json!({ "type": "plan.card", "steps": [1, null], "run": { "deep": true } }));
    assert!(schema_of("Event").is_valid(&unknown));
    assert!(schema_of("UnknownEvent").is_valid(&unknown));
    assert!(!schema_of("KnownEvent").is_valid(&unknown));
}

#[test]
fn a_known_event_that_lacks_a_field_or_has_a_wrong_one_does_not_fit() {
    let event = schema_of("Event");
    assert!(event.is_valid(&frame(json!({ "type": "tool.finished", "call_id": "c", "status": "partial" }))));
    for wrong in [
        json!({ "type": "tool.finished", "call_id": "c" }),
        json!({ "type": "tool.finished", "call_id": "c", "status": "odd" }),
        json!({ "type": "text.delta", "message_id": "m", "content": 7 }),
        json!({ "type": "text.delta", "message_id": "m", "content": "…", "format": null }),
        json!({ "type": "step.started", "name": "act" }),
        json!({ "type": "run.failed", "error": { "code": "E1" } }),
        json!({ "message_id": "m" }),
    ] {
        assert!(!event.is_valid(&frame(wrong.clone())), "taken: {wrong}");
    }
    assert!(!event.is_valid(&json!({ "type": "usage" })), "an envelope is needed");
}
