//! The OpenAPI 3.1 document of the HTTP interface, made from the table of routes.
//!
//! An operation is what `#[utoipa::path]` says at its handler; a schema is that of the type that the handler reads or
//! writes. What has no type here is in `schemas`, shared parameters are in `params`, and the message state is the
//! model's own schema.

pub(crate) mod params;
pub(crate) mod schemas;
mod webhooks;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use serde::Serialize;
use serde_json::{Map, Value, json};
use utoipa::openapi::{Ref, RefOr, Schema};
use utoipa::{IntoResponses, ToSchema};

use crate::routes::{HttpRoute, ROUTES};

/// The groups of operations, in the order of the document.
const TAGS: [&str; 10] = [
    "runs",
    "agents",
    "interactions",
    "threads",
    "writing",
    "reading",
    "messages",
    "moving",
    "façades",
    "server",
];

static DOCUMENT: LazyLock<Bytes> = LazyLock::new(|| document().to_string().into());

/// Shows this description.
#[utoipa::path(
    get, path = "/openapi.json", operation_id = "getOpenApi", tag = "server",
    responses((status = 200, description = "The description.", body = Object)),
)]
pub(crate) async fn show() -> Response {
    ([(CONTENT_TYPE, "application/json")], DOCUMENT.clone()).into_response()
}

/// The response to a conditional request, if nothing has changed.
pub(crate) struct NotModified;

impl IntoResponses for NotModified {
    fn responses() -> BTreeMap<String, RefOr<utoipa::openapi::Response>> {
        BTreeMap::from([("304".to_owned(), Ref::new("#/components/responses/NotModified").into())])
    }
}

/// The frames of a run or thread.
pub(crate) struct FrameResponses;

impl IntoResponses for FrameResponses {
    fn responses() -> BTreeMap<String, RefOr<utoipa::openapi::Response>> {
        let frames = json!({
            "description": "The frames, in order. SSE and NDJSON go on live unless `follow=false`.",
            "headers": {"Runwire-Cursor": {
                "description": "With `after=end`: the place where the stream begins.",
                "schema": {"type": "string"},
            }},
            "content": {
                "text/event-stream": {"schema": {"type": "string", "description": "Each frame's `id` is its cursor."}},
                "application/x-ndjson": {"schema": {"type": "string"}},
                "application/json": {"schema": {"$ref": "#/components/schemas/FramePage"}},
                "text/plain": {"schema": {"type": "string", "description": "The answer alone, in the dialect `text`."}},
            },
        });
        let frames: Option<utoipa::openapi::Response> = serde_json::from_value(frames).ok();
        frames.map(|frames| ("200".to_owned(), frames.into())).into_iter().collect()
    }
}

/// Makes the whole document.
fn document() -> Value {
    let (mut paths, mut schemas) = (Map::new(), foreign_schemas());
    for route in ROUTES {
        let methods = paths.entry(route.path).or_insert_with(|| json!({}));
        methods[route.method.as_str().to_lowercase()] = operation(route);
        (route.schemas)(&mut schemas);
    }
    let mut components = model_schemas();
    for (name, schema) in schemas {
        components.entry(name).or_insert_with(|| shown(schema));
    }
    let tags = TAGS.map(|name| json!({"name": name}));
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Runwire",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "The wire between agents and the people who watch them: every event of a run, durable, in order, in any dialect. `x-runwire-verb` is the verb that an operation needs; no token is checked for it yet.",
            "license": {"name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0"},
        },
        "servers": [{"url": "http://127.0.0.1:7420"}],
        "tags": tags,
        "paths": paths,
        "webhooks": webhooks::webhooks(),
        "components": {
            "responses": {
                "Problem": {
                    "description": "A problem (RFC 9457). Every `code` has a page in `docs/errors/`.",
                    "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}},
                },
                "NotModified": {"description": "Nothing was written since the answer whose `ETag` was sent."},
            },
            "schemas": components,
        },
    })
}

/// Makes the operation of a route: what its handler says, and what all routes have in common.
fn operation(route: &HttpRoute) -> Value {
    let mut operation = shown((route.operation)());
    if let Some(summary) = operation["summary"].as_str() {
        operation["summary"] = summary.trim_end_matches('.').into();
    }
    if operation["responses"]["default"].is_null() {
        operation["responses"]["default"] = json!({"$ref": "#/components/responses/Problem"});
    }
    if let Some(body) = operation.get_mut("requestBody").filter(|body| body["required"].is_null()) {
        // A body that may be left out is not null.
        body["required"] = false.into();
        body["content"]["application/json"]["schema"].as_object_mut().into_iter().for_each(remove_null);
    }
    if !operation["responses"]["304"].is_null() {
        operation["responses"]["200"]["headers"]["ETag"] = json!({
            "description": "Changes with everything that is written; sent back as `If-None-Match` it saves the answer.",
            "schema": {"type": "string"},
        });
    }
    if let Some(verb) = route.verb {
        operation["x-runwire-verb"] = verb.as_str().into();
    }
    operation
}

/// A schema and the name of its component.
pub(crate) type NamedSchema = (String, RefOr<Schema>);

/// Returns the schemas that only other schemas and parameters refer to.
fn foreign_schemas() -> Vec<NamedSchema> {
    fn of<T: ToSchema>() -> NamedSchema {
        (T::name().into_owned(), T::schema())
    }
    vec![
        of::<schemas::IdSchema>(),
        of::<schemas::StatusSchema>(),
        of::<schemas::DecisionSchema>(),
        of::<schemas::ProblemSchema>(),
        of::<schemas::WarningSchema>(),
        of::<schemas::DependencySchema>(),
        of::<schemas::FramePageSchema>(),
        of::<crate::webhooks::WebhookMessage<'_>>(),
    ]
}

/// Returns the model's schema of the message state, and what it refers to.
fn model_schemas() -> Map<String, Value> {
    let text = runwire_model::SCHEMA.replace("#/$defs/", "#/components/schemas/");
    let mut model: Value = serde_json::from_str(&text).unwrap_or_default();
    let (mut found, mut wanted) = (Map::new(), vec!["MessageState".to_owned()]);
    while let Some(name) = wanted.pop() {
        let schema = model["$defs"][&name].take();
        if !schema.is_null() {
            references(&schema, &mut wanted);
            found.insert(name, schema);
        }
    }
    found
}

/// Collects the names of the components that a schema refers to.
fn references(value: &Value, names: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            let reference = members.get("$ref").and_then(Value::as_str);
            names.extend(reference.and_then(|path| path.rsplit('/').next()).map(str::to_owned));
            members.values().for_each(|value| references(value, names));
        }
        Value::Array(values) => values.iter().for_each(|value| references(value, names)),
        _ => {}
    }
}

/// Returns the JSON of a part of the document, in plainer terms than utoipa's.
fn shown(part: impl Serialize) -> Value {
    let mut json = serde_json::to_value(part).unwrap_or_default();
    simplify(&mut json);
    json
}

/// Joins the lines of descriptions, and leaves out what says nothing: defaults of null, choices of one, and null as a
/// value of members that are left out instead. Requests, which have no other members, may say null.
fn simplify(value: &mut Value) {
    let members = match value {
        Value::Object(members) => members,
        Value::Array(values) => return values.iter_mut().for_each(simplify),
        _ => return,
    };
    members.values_mut().for_each(simplify);
    if let Some(Value::String(description)) = members.get_mut("description") {
        *description = description.replace('\n', " ");
    }
    members.retain(|name, value| match name.as_str() {
        "default" => !value.is_null(),
        "type" => *value != json!([]),
        _ => true,
    });
    unwrap_choice_of_one(members);
    if let Some(Value::Array(choices)) = members.get_mut("oneOf") {
        choices.sort_by_key(|choice| choice["type"] == "null");
        // What is said of a member stands beside the choices, not in a reference.
        let reference =
            choices.first_mut().and_then(Value::as_object_mut).filter(|first| first.contains_key("$ref"));
        if let Some(description) = reference.and_then(|reference| reference.shift_remove("description")) {
            members.insert("description".to_owned(), description);
        }
    }
    if members.get("additionalProperties") == Some(&json!(false)) {
        return;
    }
    let required = members.get("required").cloned().unwrap_or_default();
    let is_required =
        |name: &str| required.as_array().is_some_and(|names| names.iter().any(|known| known == name));
    if let Some(Value::Object(properties)) = members.get_mut("properties") {
        let optional = properties.iter_mut().filter(|(name, _)| !is_required(name));
        optional.filter_map(|(_, property)| property.as_object_mut()).for_each(remove_null);
    }
}

/// Removes null from the types of a schema.
fn remove_null(schema: &mut Map<String, Value>) {
    if let Some(Value::Array(types)) = schema.get_mut("type") {
        types.retain(|name| name != "null");
        if let [only] = &types[..] {
            let only = only.clone();
            schema.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Array(choices)) = schema.get_mut("oneOf") {
        choices.retain(|choice| choice["type"] != "null");
    }
    unwrap_choice_of_one(schema);
}

fn unwrap_choice_of_one(schema: &mut Map<String, Value>) {
    if let Some([Value::Object(only)]) = schema.get("oneOf").and_then(Value::as_array).map(Vec::as_slice) {
        let only = only.clone();
        schema.shift_remove("oneOf");
        for (name, value) in only {
            schema.entry(name).or_insert(value);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use utoipa::openapi::path::HttpMethod;

    use super::*;

    #[test]
    fn a_handler_says_the_method_and_path_of_its_row() {
        for route in ROUTES {
            let (methods, path) = (route.documented_at)();
            assert_eq!(path, route.path);
            let method = route.method.as_str().to_lowercase();
            let is_it = |documented: &HttpMethod| serde_json::to_value(documented).unwrap() == json!(method);
            assert!(methods.iter().all(is_it), "{} {path}", route.method);
        }
    }

    /// The schemas that types for other languages are made from; those of the model are in a file of its own.
    #[test]
    fn the_schema_of_http_is_what_the_code_says() {
        let model: Value = serde_json::from_str(runwire_model::SCHEMA).unwrap();
        let text = document().to_string().replace("#/components/schemas/", "#/$defs/");
        let mut document: Value = serde_json::from_str(&text).unwrap();
        let mut schemas = document["components"]["schemas"].take().as_object().unwrap().clone();
        schemas.retain(|name, _| model["$defs"].get(name).is_none());
        let schema = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "title": "Runwire over HTTP",
            "description": "What HTTP takes and answers with. Made from the code; do not edit.",
            "$defs": schemas,
        });
        let wanted = format!("{}\n", serde_json::to_string_pretty(&schema).unwrap());
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("schema/http.schema.json");
        if std::fs::read_to_string(&path).is_ok_and(|found| found == wanted) {
            return;
        }
        assert!(
            std::env::var_os("RUNWIRE_WRITE_DOCS").is_some(),
            "schema/http.schema.json is stale: RUNWIRE_WRITE_DOCS=1 cargo test -p runwire-server --lib openapi"
        );
        std::fs::write(path, wanted).unwrap();
    }
}
