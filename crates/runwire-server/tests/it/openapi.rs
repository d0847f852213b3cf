//! The OpenAPI document lists exactly the routes of the server.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::harness::Served;

/// Finds the routes in the sources: each is registered as `.route("path", method(…).method(…))`.
fn registered() -> BTreeSet<(String, String)> {
    let mut routes = BTreeSet::new();
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                routes.extend(routes_in(&fs::read_to_string(path).unwrap()));
            }
        }
    }
    routes
}

fn routes_in(source: &str) -> Vec<(String, String)> {
    let mut routes = Vec::new();
    for rest in source.split(".route(").skip(1) {
        let Some((path, rest)) = rest.trim_start().strip_prefix('"').and_then(|rest| rest.split_once('"'))
        else {
            continue;
        };
        let handlers = rest.split("\n        .").next().unwrap_or_default();
        for method in ["get", "post", "put", "delete", "patch", "any"] {
            let called = |before: &str| handlers.contains(&format!("{before}{method}("));
            if called(" ") || called(".") || called(",") {
                routes.push((path.to_owned(), method.replace("any", "get")));
            }
        }
    }
    routes
}

fn described(document: &Value) -> BTreeSet<(String, String)> {
    let mut routes = BTreeSet::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for method in item.as_object().unwrap().keys().filter(|key| *key != "parameters") {
            routes.insert((path.clone(), method.clone()));
        }
    }
    routes
}

/// Routes of the read side that this build may not have yet.
fn document() -> Value {
    serde_json::from_str(include_str!("../../src/openapi.json")).unwrap()
}

#[test]
fn every_route_is_described_and_every_description_is_a_route() {
    let (registered, described) = (registered(), described(&document()));
    let undescribed: Vec<_> = registered.difference(&described).collect();
    assert!(undescribed.is_empty(), "not in openapi.json: {undescribed:?}");
    let unregistered: Vec<_> = described.difference(&registered).collect();
    assert!(unregistered.is_empty(), "no such route: {unregistered:?}");
}

#[test]
fn the_document_is_whole() {
    let document = document();
    assert_eq!(document["openapi"], "3.1.0");
    let mut operations = BTreeSet::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        let shared = item["parameters"].as_array().cloned().unwrap_or_default();
        for (method, operation) in item.as_object().unwrap().iter().filter(|(key, _)| *key != "parameters") {
            let place = format!("{method} {path}");
            assert!(
                operations.insert(operation["operationId"].as_str().expect(&place).to_owned()),
                "{place}"
            );
            assert!(operation["summary"].is_string(), "{place}");
            assert!(operation["responses"].as_object().is_some_and(|all| !all.is_empty()), "{place}");
            let own = operation["parameters"].as_array().cloned().unwrap_or_default();
            for name in path.split('{').skip(1).filter_map(|rest| rest.split('}').next()) {
                let declared = own.iter().chain(&shared).map(|parameter| resolved(&document, parameter));
                let is_it = |parameter: &Value| parameter["in"] == "path" && parameter["name"] == name;
                assert!(declared.into_iter().any(|parameter| is_it(&parameter)), "{place}: {{{name}}}");
            }
        }
    }
    check_references(&document, &document);
}

fn resolved(document: &Value, value: &Value) -> Value {
    match value["$ref"].as_str() {
        Some(reference) => document.pointer(&reference[1..]).cloned().expect(reference),
        None => value.clone(),
    }
}

fn check_references(document: &Value, value: &Value) {
    match value {
        Value::Object(object) => {
            if let Some(reference) = object.get("$ref").and_then(Value::as_str) {
                assert!(
                    reference.starts_with("#/") && document.pointer(&reference[1..]).is_some(),
                    "{reference}"
                );
            }
            object.values().for_each(|value| check_references(document, value));
        }
        Value::Array(values) => values.iter().for_each(|value| check_references(document, value)),
        _ => {}
    }
}

#[tokio::test]
async fn the_document_is_served() {
    let served = Served::start().await;
    let answer = served.get("/openapi.json").await;
    assert_eq!(
        (answer.status.as_u16(), &answer.headers["content-type"]),
        (200, &"application/json".parse().unwrap())
    );
    assert_eq!(answer.json(), document());
}
