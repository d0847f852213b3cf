//! Answer schemas, ordinary and hostile.

use runwire_server::interactions::{AnswerSchema, SchemaViolation, UnusableSchema};
use runwire_server::limits;
use serde_json::{Map, Value, json};

fn check(schema: Value, values: &Value) -> Result<Vec<SchemaViolation>, UnusableSchema> {
    // Schemas may go deep, so whoever checks them has the stack for it.
    let values = values.clone();
    let work = move || AnswerSchema::compile(schema)?.check(&values);
    let thread = std::thread::Builder::new().stack_size(limits::CHECK_STACK_BYTES).spawn(work).unwrap();
    thread.join().unwrap()
}

#[test]
fn each_violation_is_listed_with_its_pointer_and_keyword() {
    let schema = json!({
        "type": "object",
        "required": ["email", "age"],
        "additionalProperties": false,
        "properties": {
            "email": {"type": "string", "format": "email"},
            "age": {"type": "integer", "minimum": 18},
            "plan": {"enum": ["a", "b", "c", "d", 5]},
            "many": {"enum": (0..14).collect::<Vec<_>>()},
            "seat": {"oneOf": [{"const": "x", "title": "Aisle"}, {"const": "y"}, {"const": 3}]},
            "tags": {"type": "array", "items": {"type": "string", "pattern": "^[a-z]+$"}},
            "a/b": {"type": "object", "required": ["c~d"]},
        }
    });
    let values = json!({
        "email": "nobody", "plan": "x", "many": 99, "seat": "z", "tags": ["ok", "NO"], "a/b": {}, "extra": 1
    });
    let mut found: Vec<_> = check(schema.clone(), &values)
        .unwrap()
        .into_iter()
        .map(|wrong| format!("{} {}: {}", wrong.pointer, wrong.keyword, wrong.message))
        .collect();
    found.sort_unstable();
    assert_eq!(
        found,
        [
            "/age required: is required",
            "/a~1b/c~0d required: is required",
            "/email format: is no valid email",
            "/extra additionalProperties: is no field of this form",
            "/many enum: is not one of 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 or 4 others",
            "/plan enum: is not one of \"a\", \"b\", \"c\", \"d\" or 5",
            "/seat oneOf: is not one of \"x\", \"y\" or 3",
            "/tags/1 pattern: does not match \"^[a-z]+$\"",
        ]
    );
    assert_eq!(check(schema, &json!({"email": "a@b.cn", "age": 18})), Ok(Vec::new()));
}

#[test]
fn recursive_schemas_that_can_be_checked_are() {
    let tree = json!({
        "$defs": {"node": {
            "type": "object",
            "required": ["name"],
            "properties": {"name": {"type": "string"}, "children": {"type": "array", "items": {"$ref": "#/$defs/node"}}}
        }},
        "$ref": "#/$defs/node"
    });
    let values = json!({"name": "a", "children": [{"name": "b", "children": [{"nam": "c"}]}]});
    assert_eq!(check(tree, &values).unwrap()[0].pointer, "/children/0/children/0/name");
    let anchored = json!({"$dynamicAnchor": "node", "properties": {"next": {"$dynamicRef": "#node"}}, "required": ["x"]});
    assert_eq!(check(anchored, &json!({"x": 1, "next": {}})).unwrap()[0].pointer, "/next/x");
    for draft in ["http://json-schema.org/draft-07/schema#", "https://json-schema.org/draft/2020-12/schema"] {
        let schema = json!({"$schema": draft, "type": "object", "required": ["a"]});
        assert_eq!(check(schema, &json!({})).unwrap().len(), 1);
    }
}

/// Definitions each of which refers to the next in some way.
fn chained(levels: usize, apply: impl Fn(Value) -> Value) -> Value {
    let mut definitions = Map::new();
    for level in 0..levels {
        definitions.insert(format!("d{level}"), apply(json!({"$ref": format!("#/$defs/d{}", level + 1)})));
    }
    definitions.insert(format!("d{levels}"), json!({"type": "object"}));
    json!({"$defs": definitions, "$ref": "#/$defs/d0"})
}

/// A pattern of a few bytes that is compiled into some hundred thousand.
const LARGE: &str = "a[ab]{9000}[cd]";

#[test]
fn patterns_that_people_write_are_matched_on_what_people_write() {
    let password = json!({"pattern": r"^(?=.*[A-Z])(?=.*\d)(?!.*\s).{8,}$"});
    for length in [10, 60, 200] {
        let (right, wrong) = ("Aa1".repeat(length / 3 + 1), "aa1".repeat(length / 3 + 1));
        assert_eq!(check(password.clone(), &json!(right)), Ok(Vec::new()), "{length}");
        assert_eq!(check(password.clone(), &json!(wrong)).unwrap()[0].keyword, "pattern", "{length}");
    }
    let words = json!({"pattern": r"^[\p{L}\p{N} ,.-]+$"});
    assert_eq!(check(words, &json!("很多字，ok ".replace('，', ",").repeat(500))), Ok(Vec::new()));
    assert_eq!(check(json!({"pattern": LARGE}), &json!("a".repeat(2000))).unwrap()[0].keyword, "pattern");
}

#[test]
fn what_would_never_end_is_refused_before_it_begins() {
    let mut deep = json!({});
    for _ in 0..100 {
        deep = json!({"a": deep});
    }
    let twice = |next: Value| json!({"allOf": [next.clone(), next]});
    for (schema, values) in [
        (chained(40, twice), json!({})),
        (chained(40, |next| json!({"anyOf": [next.clone(), next]})), json!({})),
        (chained(limits::SCHEMA_NODES - 10, |next| next), json!({})),
        (
            chained(12, |next| json!({"unevaluatedProperties": false, "anyOf": [next]})),
            json!({"a": 1, "b": 2}),
        ),
        (json!({"$ref": "#"}), json!({})),
        (json!({"allOf": [{"$ref": "#"}]}), json!({})),
        (
            json!({"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"}),
            json!({}),
        ),
        (json!({"properties": {"a": {"$ref": "#"}}, "allOf": [{"properties": {"a": {"$ref": "#"}}}]}), deep),
        (json!({"items": {"enum": (0..2000).collect::<Vec<_>>()}}), json!(vec![1; 2000])),
        // It looks ahead and back, so it is matched by trying.
        (json!({"pattern": r"^(?=(a+)+$)(a|aa)+\1b$"}), json!("a".repeat(60))),
        // Each try looks through the whole text again, once for each of its letters.
        (json!({"pattern": "(?=(?:(?=.*b)a)*)c"}), json!("a".repeat(20_000))),
        // Compiled, it is large: each letter of the text costs as much.
        (json!({"pattern": LARGE}), json!("a".repeat(200_000))),
        (json!({"patternProperties": {LARGE: {}}}), json!({"a".repeat(200_000): 1})),
        (json!({"propertyNames": {"pattern": LARGE}}), json!({"a".repeat(200_000): 1})),
        // Each alone would do.
        (json!({"items": {"pattern": LARGE}}), json!(vec!["a".repeat(2000); 20])),
        // Where values are, schemas may be referred to.
        (json!({"not": {"const": {"pattern": LARGE}}, "$ref": "#/not/const"}), json!("a".repeat(200_000))),
    ] {
        let shown: String = schema.to_string().chars().take(200).collect();
        assert_eq!(check(schema, &values), Err(UnusableSchema::TooCostly), "{shown}");
    }
    // Without looking around, time grows with the text alone.
    let pattern = json!({"pattern": "^(a+)+$"});
    assert_eq!(check(pattern, &json!("a".repeat(60_000) + "b")).unwrap()[0].keyword, "pattern");
}

#[test]
fn nothing_outside_of_a_schema_is_looked_up() {
    for reference in
        ["http://127.0.0.1:9/x", "https://example.org/s#/a", "file:///etc/passwd", "other.json", "//x/y"]
    {
        let nested = json!({"properties": {"a": {"items": {"$ref": reference}}}});
        assert_eq!(check(nested, &json!({})), Err(UnusableSchema::Reference(reference.into())));
    }
    let own_address = json!({"properties": {"a": {"$id": "http://example.org/x", "$ref": "#/b"}}});
    assert!(matches!(check(own_address, &json!({})), Err(UnusableSchema::Reference(_))));
    let old = json!({"$schema": "http://json-schema.org/draft-04/schema#", "not": {"id": "http://x/", "$ref": "#/b"}});
    assert!(matches!(check(old, &json!({})), Err(UnusableSchema::Reference(_))));
    // In other drafts it is a word like any other.
    assert_eq!(check(json!({"properties": {"a": {"id": "field-1"}}}), &json!({})), Ok(Vec::new()));
    // The words may stand where values do.
    let values = json!({"properties": {"a": {"const": {"$ref": "http://example.org"}}}});
    assert_eq!(check(values, &json!({"a": {"$ref": "http://example.org"}})), Ok(Vec::new()));
    let meta = json!({"$schema": "http://127.0.0.1:9/meta", "type": "object"});
    assert!(matches!(check(meta, &json!({})), Err(UnusableSchema::Invalid(_))));
}

#[test]
fn an_invalid_or_too_large_schema_is_reported() {
    for schema in [
        json!("text"),
        json!([]),
        json!({"type": "nonsense"}),
        json!({"required": "email"}),
        json!({"pattern": "("}),
        json!({"$ref": "#/nowhere"}),
        json!({"pattern": format!("({}){{1000}}", r"[\p{L}\p{N}]{100}")}),
    ] {
        let found = check(schema.clone(), &json!({}));
        assert!(matches!(found, Err(UnusableSchema::Invalid(_))), "{schema}: {found:?}");
    }
    let many: Map<String, Value> = (0..6000).map(|n| (n.to_string(), json!({}))).collect();
    let found = check(json!({"properties": many}), &json!({}));
    assert_eq!(found, Err(UnusableSchema::TooLarge { what: "parts", limit: limits::SCHEMA_NODES }));
    let patterns: Vec<_> = (0..200).map(|n| json!({"pattern": format!("^{n}$")})).collect();
    let found = check(json!({"anyOf": patterns}), &json!({}));
    assert_eq!(found, Err(UnusableSchema::TooLarge { what: "patterns", limit: limits::SCHEMA_PATTERNS }));
    let large: Vec<_> = (0..20).map(|n| json!({"pattern": format!("{n}{LARGE}")})).collect();
    let found = check(json!({"anyOf": large}), &json!({}));
    let what = "bytes of compiled patterns";
    assert_eq!(found, Err(UnusableSchema::TooLarge { what, limit: limits::PATTERNS_BYTES }));
    // So many parts as are allowed can be compiled, however they hang together.
    let longest = chained(limits::SCHEMA_NODES / 3 - 10, |next| json!({"properties": {"a": next}}));
    assert_eq!(check(longest, &json!({})), Ok(Vec::new()));
}

#[test]
fn the_number_of_listed_violations_is_limited() {
    let values: Map<String, Value> = (0..5000).map(|n| (format!("field{n}"), json!(n))).collect();
    let found = check(json!({"additionalProperties": {"type": "string"}}), &Value::Object(values)).unwrap();
    assert_eq!(found.len(), limits::ANSWER_ERRORS);
}
