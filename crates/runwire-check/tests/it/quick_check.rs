//! The quick look only saves time: what it passes, the whole schema passes.

use std::fs;
use std::path::PathBuf;
use std::sync::LazyLock;

use proptest::prelude::*;
use runwire_check::{CheckState, CheckedFrame, Finding, FrameScan, Side};
use runwire_model::dialect::Dialect;
use runwire_model::json::Object;
use serde_json::{Value, json};

fn vectors() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../vectors")
}

/// Every frame of a dialect that the vectors have: its examples, valid or not, and the streams written in it.
fn frames(dialect: Dialect) -> &'static [Value] {
    static FRAMES: LazyLock<Vec<Vec<Value>>> =
        LazyLock::new(|| Dialect::READABLE.iter().map(|dialect| read_frames(*dialect)).collect());
    let at = Dialect::READABLE.iter().position(|known| *known == dialect).unwrap();
    &FRAMES[at]
}

fn read_frames(dialect: Dialect) -> Vec<Value> {
    let folder = vectors().join(dialect.name());
    let examples = fs::read_to_string(folder.join("schema.examples.json")).unwrap();
    let examples: Value = serde_json::from_str(&examples).unwrap();
    let mut frames = examples["valid"].as_array().unwrap().clone();
    frames.extend(examples["invalid"].as_array().unwrap().iter().map(|example| example["frame"].clone()));
    for case in fs::read_dir(vectors().join("loom")).unwrap().chain(fs::read_dir(folder).unwrap()) {
        let file = case.unwrap().path().join(format!("{}.ndjson", dialect.name()));
        let Ok(lines) = fs::read_to_string(file) else { continue };
        frames.extend(lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()));
    }
    frames.retain(Value::is_object);
    frames
}

fn findings(dialect: Dialect, frame: &str, side: Side) -> Vec<Finding> {
    let found =
        CheckState::joined(dialect).check(CheckedFrame { name: None, data: frame.as_bytes() }, 0, side);
    // A parsed frame is scanned in another way.
    if let Ok(object) = Object::parse(frame.as_bytes()) {
        let scan = FrameScan::of(dialect, side, &object, frame).unwrap();
        assert_eq!(CheckState::joined(dialect).check_scanned(&scan, None, 0), found, "{frame}");
    }
    found
}

/// Checks a frame whose first key is escaped, which the quick look leaves to the whole schema.
fn slowly(dialect: Dialect, frame: &Value, side: Side) -> Vec<Finding> {
    let text = frame.to_string();
    let escaped = text.replacen("{\"", "{\"\\u00", 1);
    let first = text.as_bytes()[2];
    let escaped =
        escaped.replacen(&format!("{{\"\\u00{}", char::from(first)), &format!("{{\"\\u00{first:02x}"), 1);
    findings(dialect, &escaped, side)
}

#[test]
fn the_quick_look_changes_nothing_of_what_is_found() {
    for dialect in Dialect::READABLE {
        for frame in frames(dialect) {
            if frame
                .as_object()
                .unwrap()
                .keys()
                .next()
                .is_none_or(|key| !key.starts_with(|l: char| l.is_ascii()))
            {
                continue;
            }
            for side in [Side::Producer, Side::Reader] {
                let quick = findings(dialect, &frame.to_string(), side);
                assert_eq!(quick, slowly(dialect, frame, side), "{dialect}: {frame}");
            }
        }
    }
}

/// Changes one member of a frame, at the top or one level below.
fn changed(mut frame: Value, at: usize, change: &Change) -> Value {
    let places: Vec<Vec<String>> = frame
        .as_object()
        .unwrap()
        .iter()
        .flat_map(|(key, value)| {
            let inner = value.as_object().into_iter().flat_map(|object| object.keys());
            let inner: Vec<_> = inner.map(|below| vec![key.clone(), below.clone()]).collect();
            std::iter::once(vec![key.clone()]).chain(inner)
        })
        .collect();
    let place = &places[at % places.len()];
    let (last, way) = place.split_last().unwrap();
    let around = way.iter().fold(&mut frame, |value, key| &mut value[key.as_str()]);
    let object = around.as_object_mut().unwrap();
    match change {
        Change::Remove => drop(object.shift_remove(last)),
        Change::Value(value) => drop(object.insert(last.clone(), value.clone())),
        Change::Rename => {
            let value = object.shift_remove(last).unwrap();
            object.insert(format!("{last}s"), value);
        }
    }
    frame
}

#[derive(Debug, Clone)]
enum Change {
    Remove,
    Rename,
    Value(Value),
}

fn change() -> impl Strategy<Value = Change> {
    let values = vec![
        json!(null),
        json!(true),
        json!(0),
        json!(-1),
        json!(1.5),
        json!(1e300),
        json!(""),
        json!("x"),
        json!([]),
        json!([{}]),
        json!({}),
        json!({"message": 1}),
        json!("2026-11-12T08:15:00.120Z"),
        json!("2026-13-12T08:15:00.120Z"),
    ];
    prop_oneof![
        Just(Change::Remove),
        Just(Change::Rename),
        prop::sample::select(values).prop_map(Change::Value)
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn the_quick_look_changes_nothing_of_what_is_found_in_spoilt_frames(
        dialect in prop::sample::select(Dialect::READABLE.to_vec()),
        which in any::<prop::sample::Index>(),
        at in any::<usize>(),
        change in change(),
    ) {
        let frames = frames(dialect);
        let frame = frames[which.index(frames.len())].clone();
        prop_assume!(!frame.as_object().unwrap().is_empty());
        let frame = changed(frame, at, &change);
        prop_assume!(!frame.as_object().unwrap().is_empty());
        let quick = findings(dialect, &frame.to_string(), Side::Producer);
        prop_assert_eq!(quick, slowly(dialect, &frame, Side::Producer));
    }

    #[test]
    fn no_bytes_make_the_check_panic(
        dialect in prop::sample::select(Dialect::READABLE.to_vec()),
        text in r#"[{}\[\]":,\\ntypea01.eE"-]{0,60}"#,
    ) {
        findings(dialect, &text, Side::Producer);
        findings(dialect, &format!("{{{text}}}"), Side::Reader);
    }
}
