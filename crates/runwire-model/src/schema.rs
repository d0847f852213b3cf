//! The model's JSON Schema, `schema/runwire.schema.json`: what types for other languages are made from.
//!
//! It is made from the Rust types. What HTTP answers with is in a file of the server's crate.
//! `RUNWIRE_WRITE_DOCS=1 cargo test -p runwire-model --lib schema` writes it anew.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value, json};

use crate::event::Body;
use crate::fold::MessageState;
use crate::json::Json;

impl JsonSchema for Json {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Json".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({})
    }
}

/// Events that are nothing without a field of the envelope.
const NEEDED_AROUND: &[(&str, &str)] = &[("step.", "step_id"), ("subagent.", "subagent_run_id")];

/// Makes the whole document.
fn document() -> Value {
    let mut generator = SchemaSettings::draft2020_12().into_generator();
    let events = Body::schemas(&mut generator);
    generator.subschema_for::<MessageState>();
    let mut definitions = Map::new();
    let reference = |name: &str| json!({ "$ref": format!("#/$defs/{name}") });
    let known: Vec<Value> = events.iter().map(|(_, name, _)| reference(name)).collect();
    definitions.insert(
        "Event".into(),
        json!({
            "description": "One frame of the `runwire` dialect. There will be more types than these.",
            "anyOf": [reference("KnownEvent"), reference("UnknownEvent")],
        }),
    );
    definitions.insert(
        "KnownEvent".into(),
        json!({ "description": "An event of this version's vocabulary.", "oneOf": known }),
    );
    definitions.insert("UnknownEvent".into(), unknown_event());
    for (event_type, name, payload) in events {
        definitions.insert(name.into(), event(event_type, payload.to_value()));
    }
    definitions.extend(generator.take_definitions(true));
    for definition in definitions.values_mut() {
        absent_instead_of_null(definition);
        without_example(definition);
    }
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Runwire",
        "description": "The canonical events as the `runwire` dialect writes them, and the message state that they \
                        fold into. Made from the code; do not edit.",
        "$ref": "#/$defs/Event",
        "$defs": definitions,
    })
}

/// The fields of the envelope before an event's payload.
fn envelope() -> Map<String, Value> {
    let fields = json!({
        "seq": { "type": "integer", "minimum": 1, "description": "The record's place in its thread." },
        "at": { "type": "string", "format": "date-time", "description": "When it was written." },
        "thread_id": { "type": "string", "description": "The thread." },
        "run_id": { "type": "string", "description": "The run." },
    });
    fields.as_object().cloned().unwrap_or_default()
}

/// The fields of the envelope after an event's payload.
fn surroundings() -> Map<String, Value> {
    let fields = json!({
        "step_id": { "type": "string", "description": "The step it happened in." },
        "subagent_run_id": { "type": "string", "description": "The subagent it happened in." },
        "extra": {
            "type": "object",
            "additionalProperties": true,
            "description": "Fields of the source that the model has no name for."
        },
    });
    fields.as_object().cloned().unwrap_or_default()
}

fn event(event_type: &str, mut payload: Value) -> Value {
    let fields = payload["properties"].as_object().cloned().unwrap_or_default();
    let needed = payload["required"].as_array().cloned().unwrap_or_default();
    let mut properties = envelope();
    let mut required: Vec<Value> = properties.keys().map(|name| json!(name)).collect();
    properties.insert("type".into(), json!({ "type": "string", "const": event_type }));
    required.push(json!("type"));
    properties.extend(fields);
    required.extend(needed);
    properties.extend(surroundings());
    let around = NEEDED_AROUND.iter().filter(|(prefix, _)| event_type.starts_with(prefix));
    required.extend(around.map(|(_, field)| json!(field)));
    json!({
        "description": payload["description"].take(),
        "type": "object",
        "properties": properties,
        "required": required,
    })
}

/// Schema of a type that this version does not know: its fields are not checked.
fn unknown_event() -> Value {
    let mut properties = envelope();
    let mut required: Vec<Value> = properties.keys().map(|name| json!(name)).collect();
    properties.insert("type".into(), json!({ "type": "string", "not": { "enum": Body::TYPES } }));
    required.push(json!("type"));
    json!({
        "description": "An event of a type that this version does not know, as it came.",
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": true,
    })
}

/// What is not there is absent on the wire, never `null`.
fn absent_instead_of_null(value: &mut Value) {
    match value {
        Value::Object(object) => {
            object.values_mut().for_each(absent_instead_of_null);
            if let Some(Value::Array(types)) = object.get_mut("type") {
                types.retain(|name| name != "null");
                if let [only] = &types[..] {
                    let only = only.clone();
                    object.insert("type".into(), only);
                }
            }
            if let Some(Value::Array(choices)) = object.get_mut("anyOf") {
                choices.retain(|choice| *choice != json!({ "type": "null" }));
                if let [Value::Object(only)] = &choices[..] {
                    let only = only.clone();
                    object.shift_remove("anyOf");
                    object.extend(only);
                }
            }
        }
        Value::Array(values) => values.iter_mut().for_each(absent_instead_of_null),
        _ => {}
    }
}

/// Drops the Rust example below a type's first sentence.
fn without_example(definition: &mut Value) {
    if let Some(Value::String(description)) = definition.get_mut("description") {
        description.truncate(description.find("\n\n").unwrap_or(description.len()));
    }
}

fn path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("schema/runwire.schema.json")
}

#[test]
fn the_schema_is_what_the_code_says() {
    let mut wanted = serde_json::to_string_pretty(&document()).unwrap();
    wanted.push('\n');
    if std::fs::read_to_string(path()).is_ok_and(|found| found == wanted) {
        return;
    }
    assert!(
        std::env::var_os("RUNWIRE_WRITE_DOCS").is_some(),
        "schema/runwire.schema.json is stale: RUNWIRE_WRITE_DOCS=1 cargo test -p runwire-model --lib schema"
    );
    std::fs::write(path(), wanted).unwrap();
}
