//! The JSON Schemas, each written from its dialect's document alone, judge what the encoders write.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use jsonschema::Validator;
use runwire_model::convert::Options;
use runwire_model::dialect::{Dialect, Fidelity};
use serde_json::{Value, json};

use super::vectors::{cases, convert, folder};

fn schema(dialect: Dialect) -> Validator {
    let schema: Value = serde_json::from_str(dialect.schema()).unwrap();
    jsonschema::validator_for(&schema).unwrap()
}

/// Returns what is wrong with a frame.
fn faults(schema: &Validator, frame: &Value) -> Vec<String> {
    schema.iter_errors(frame).map(|error| format!("{}: {error}", error.instance_path())).collect()
}

/// Words that a document lists and a producer of the same dialect may add to: a payload's values stay the
/// producer's.
const OWN_WORDS: &[(Dialect, &str)] = &[(Dialect::EasyflowChat, "/payload/state")];

/// Kinds of frame whose value may be anything: bare values, and types that the document does not define.
const ANYTHING: &[&str] = &["Custom", "Values", "Heartbeat", "Ping", "PlanCard"];

/// Judges every frame that is written for any vector in a dialect, in both fidelities.
fn judge(dialect: Dialect) {
    let schema = schema(dialect);
    let mut problems = BTreeMap::new();
    let mut mutations = Mutations::default();
    for case in cases() {
        let input = case.input();
        for fidelity in [Fidelity::Native, Fidelity::Full] {
            let outcome = convert(&input, Options { fidelity, ..case.options(dialect) }).unwrap();
            for (_, _, data) in &outcome.frames {
                let frame: Value = serde_json::from_slice(data).unwrap();
                for error in schema.iter_errors(&frame) {
                    let path = error.instance_path().to_string();
                    if case.dialect == dialect && OWN_WORDS.contains(&(dialect, &path)) {
                        continue;
                    }
                    let found = || format!("{} to {dialect} ({fidelity:?}): {frame}", case.label());
                    problems.entry(format!("{path}: {error}")).or_insert_with(found);
                }
                mutations.try_on(&schema, kind(dialect, &frame), &frame);
            }
        }
    }
    let list: Vec<String> = problems.iter().map(|(fault, frame)| format!("{fault}\n    {frame}")).collect();
    assert!(list.is_empty(), "{} faults\n{}", list.len(), list.join("\n"));
    let Mutations { all, dropped, swapped, .. } = mutations;
    let missing = |refused: &BTreeSet<String>| -> Vec<String> {
        all.difference(refused).filter(|kind| !ANYTHING.contains(&kind.as_str())).cloned().collect()
    };
    assert!(missing(&dropped).is_empty(), "no field is required of {:?}", missing(&dropped));
    assert!(missing(&swapped).is_empty(), "no field has a type in {:?}", missing(&swapped));
}

/// One test a dialect, so that they run side by side.
macro_rules! schemas_take_what_is_written_and_refuse_it_mutated {
    ($($name:ident: $dialect:ident),* $(,)?) => {
        $(#[test]
        fn $name() {
            judge(Dialect::$dialect);
        })*

        #[test]
        fn every_frame_of_the_other_dialects_fits_its_document_and_a_mutated_one_does_not() {
            let listed = [$(Dialect::$dialect),*];
            Dialect::READABLE.into_iter().filter(|dialect| !listed.contains(dialect)).for_each(judge);
        }
    };
}

schemas_take_what_is_written_and_refuse_it_mutated! {
    every_runwire_frame_fits_its_schema_and_a_mutated_one_does_not: Runwire,
    every_loom_frame_fits_its_document_and_a_mutated_one_does_not: Loom,
    every_loom_export_frame_fits_its_document_and_a_mutated_one_does_not: LoomExport,
    every_streaming_engine_frame_fits_its_document_and_a_mutated_one_does_not: StreamingEngine,
    every_agio_frame_fits_its_document_and_a_mutated_one_does_not: Agio,
    every_ag_ui_frame_fits_its_document_and_a_mutated_one_does_not: AgUi,
    every_social_app_frame_fits_its_document_and_a_mutated_one_does_not: SocialApp,
    every_easyflow_chat_frame_fits_its_document_and_a_mutated_one_does_not: EasyflowChat,
}

#[test]
fn the_examples_of_each_schema_are_taken_and_refused_as_they_say() {
    for dialect in Dialect::READABLE {
        let schema = schema(dialect);
        let examples = fs::read(own_folder(dialect).join("schema.examples.json"));
        let examples = examples.unwrap_or_else(|error| panic!("{dialect}: schema.examples.json: {error}"));
        let examples: Value = serde_json::from_slice(&examples).unwrap();
        let list = |key: &str| examples[key].as_array().unwrap().clone();
        for example in list("valid") {
            // A valid example stands alone or, like an invalid one, beside what it shows.
            let frame = if example.get("why").is_some() { &example["frame"] } else { &example };
            let faults = faults(&schema, frame);
            assert!(faults.is_empty(), "{dialect}: {frame}: {faults:?}");
        }
        for example in list("invalid") {
            let (why, frame) = (&example["why"], &example["frame"]);
            assert!(!schema.is_valid(frame), "{dialect}: {why}: taken: {frame}");
        }
    }
}

/// A dialect's schema and its examples are in its folder; what is not Rust reads the copies beside the vectors.
#[test]
fn the_schemas_beside_the_vectors_are_those_of_the_dialects() {
    let writes = std::env::var_os("RUNWIRE_WRITE_VECTORS").is_some();
    for dialect in Dialect::READABLE {
        let copies = folder().join(dialect.name());
        fs::create_dir_all(&copies).unwrap();
        for name in ["schema.json", "schema.examples.json"] {
            let source = fs::read_to_string(own_folder(dialect).join(name)).unwrap();
            let copy = copies.join(name);
            if writes {
                fs::write(&copy, &source).unwrap();
            }
            assert!(
                fs::read_to_string(&copy).is_ok_and(|copy| copy == source),
                "{} is stale: cargo xtask vectors",
                copy.display()
            );
        }
        assert_eq!(fs::read_to_string(own_folder(dialect).join("schema.json")).unwrap(), dialect.schema());
    }
}

/// Returns the folder with all that is particular to a dialect.
fn own_folder(dialect: Dialect) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src/dialect").join(dialect.name().replace('-', "_"))
}

/// What a frame says, in a word.
fn kind(dialect: Dialect, frame: &Value) -> String {
    let text = |key: &str| frame[key].as_str().unwrap_or_default().to_owned();
    match dialect {
        Dialect::LoomExport => frame.as_object().unwrap().keys().next().unwrap().clone(),
        Dialect::EasyflowChat => format!("{}/{}", text("domain"), text("type")),
        Dialect::Loom if frame.get("type").is_none() => "reply".to_owned(),
        _ => text("type"),
    }
}

/// Lists the paths to all fields of a frame, but not inside the canonical events that slots carry.
fn fields(value: &Value, path: &str, out: &mut Vec<String>) {
    let Value::Object(object) = value else { return };
    for (name, inner) in object.iter().filter(|(name, _)| *name != "runwire") {
        let path = format!("{path}/{}", name.replace('~', "~0").replace('/', "~1"));
        fields(inner, &path, out);
        out.push(path);
    }
}

fn without(frame: &Value, path: &str) -> Value {
    let mut frame = frame.clone();
    let (outer, name) = path.rsplit_once('/').unwrap();
    let name = name.replace("~1", "/").replace("~0", "~");
    frame.pointer_mut(outer).unwrap().as_object_mut().unwrap().remove(&name);
    frame
}

fn with_another_type(frame: &Value, path: &str) -> Value {
    let mut frame = frame.clone();
    let value = frame.pointer_mut(path).unwrap();
    *value = if value.is_string() { json!([7]) } else { json!("seven") };
    frame
}

/// Which kinds of frame the schema refuses with a field dropped, and with a field of another type.
#[derive(Default)]
struct Mutations {
    all: BTreeSet<String>,
    dropped: BTreeSet<String>,
    swapped: BTreeSet<String>,
    seen: BTreeSet<Vec<String>>,
}

impl Mutations {
    fn try_on(&mut self, schema: &Validator, kind: String, frame: &Value) {
        if self.dropped.contains(&kind) && self.swapped.contains(&kind) {
            return;
        }
        let mut paths = vec![kind.clone()];
        fields(frame, "", &mut paths);
        self.all.insert(kind.clone());
        // One frame of each shape is enough.
        if !self.seen.insert(paths.clone()) {
            return;
        }
        let refused = |mutate: fn(&Value, &str) -> Value| {
            paths[1..].iter().any(|path| !schema.is_valid(&mutate(frame, path)))
        };
        if refused(without) {
            self.dropped.insert(kind.clone());
        }
        if refused(with_another_type) {
            self.swapped.insert(kind);
        }
    }
}
