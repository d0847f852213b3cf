//! The OpenAPI document is served, and whole. It is made from the table of routes, so it lists exactly those.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::harness::Served;

#[tokio::test]
async fn the_document_is_served_and_whole() {
    let served = Served::start().await;
    let answer = served.get("/openapi.json").await;
    assert_eq!(
        (answer.status.as_u16(), &answer.headers["content-type"]),
        (200, &"application/json".parse().unwrap())
    );
    let document = answer.json();
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
            for parameter in &own {
                let schema = &parameter["schema"];
                assert!(schema["type"].is_string() || schema["$ref"].is_string(), "{place}: {parameter}");
                assert!(parameter["description"].is_string(), "{place}: {parameter}");
            }
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
