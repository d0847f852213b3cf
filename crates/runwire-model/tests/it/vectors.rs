//! The golden vectors: a stream in, the expected events, message state and streams in every dialect out.
//!
//! `cargo xtask vectors` writes the expectations anew (it sets `RUNWIRE_WRITE_VECTORS`), so that a change of
//! translation shows up as a diff. A case with `"by_hand": true` in its `options.json` was written from the
//! documents; it is compared frame by frame as JSON, and never written.

use std::fs;
use std::path::{Path, PathBuf};

use runwire_model::convert::{Converter, Options};
use runwire_model::dialect::Dialect;
use runwire_model::fold::MessageState;
use runwire_model::framing::{Framing, Unframer, write_frame};
use runwire_model::run::Authority;
use serde_json::Value;

pub(crate) struct Case {
    pub(crate) dialect: Dialect,
    pub(crate) name: String,
    pub(crate) folder: PathBuf,
    pub(crate) by_hand: bool,
    /// The stream is a log's own account: answers and cancel requests in it are taken as they stand.
    pub(crate) trusted: bool,
    /// The first frames do not tell the dialect.
    pub(crate) undetectable: bool,
}

pub(crate) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors")
}

/// Lists every case of every dialect.
pub(crate) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for dialect in Dialect::READABLE {
        let Ok(entries) = fs::read_dir(folder().join(dialect.name())) else { continue };
        let mut folders: Vec<PathBuf> =
            entries.map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()).collect();
        folders.sort();
        for folder in folders {
            let options = fs::read_to_string(folder.join("options.json")).unwrap_or_else(|_| "{}".into());
            let options: Value = serde_json::from_str(&options).unwrap();
            let is = |key: &str| options[key] == true;
            let name = folder.file_name().unwrap().to_string_lossy().into_owned();
            cases.push(Case {
                dialect,
                name,
                by_hand: is("by_hand"),
                trusted: is("trusted"),
                undetectable: is("undetectable"),
                folder,
            });
        }
    }
    assert!(!cases.is_empty(), "there are no vectors");
    cases
}

impl Case {
    pub(crate) fn input(&self) -> Vec<(Option<String>, Vec<u8>)> {
        let (bytes, framing) = match fs::read(self.folder.join("input.ndjson")) {
            Ok(bytes) => (bytes, Framing::Ndjson),
            Err(_) => (fs::read(self.folder.join("input.sse")).unwrap(), Framing::Sse),
        };
        frames_of(&bytes, framing)
    }

    pub(crate) fn options(&self, to: Dialect) -> Options {
        let authority = if self.trusted { Authority::Server } else { Authority::Producer };
        Options { from: Some(self.dialect), authority, ..Options::to(to) }
    }

    pub(crate) fn label(&self) -> String {
        format!("{}/{}", self.dialect, self.name)
    }
}

pub(crate) fn frames_of(bytes: &[u8], framing: Framing) -> Vec<(Option<String>, Vec<u8>)> {
    let mut unframer = Unframer::new(framing);
    unframer.push(bytes);
    unframer.finish();
    let mut frames = Vec::new();
    while let Some(frame) = unframer.next() {
        let frame = frame.unwrap();
        frames.push((frame.name.map(str::to_owned), frame.data.to_vec()));
    }
    frames
}

/// What a stream becomes: its frames with cursor, name and data, and the message state of each run.
pub(crate) struct Outcome {
    pub(crate) frames: Vec<(String, Option<String>, Vec<u8>)>,
    pub(crate) messages: Vec<MessageState>,
    /// The frames' data one after the other, with a blank line between runs: what `text` looks like.
    pub(crate) text: Vec<u8>,
}

pub(crate) fn convert(input: &[(Option<String>, Vec<u8>)], options: Options) -> Result<Outcome, String> {
    let mut outcome = Outcome { frames: Vec::new(), messages: Vec::new(), text: Vec::new() };
    let mut text_of: Option<String> = None;
    let mut converter = Converter::new(options);
    let mut sink = |converted: runwire_model::convert::Converted<'_>| {
        for (k, (name, data)) in converted.frames.iter().enumerate() {
            let cursor = format!("{}-{k}", converted.record.seq);
            outcome.frames.push((cursor, name.map(str::to_owned), data.to_vec()));
            if text_of.as_deref() != Some(converted.run_id) {
                let is_first = text_of.replace(converted.run_id.to_owned()).is_none();
                outcome.text.extend_from_slice(if is_first { b"" } else { b"\n\n" });
            }
            outcome.text.extend_from_slice(data);
        }
        let last =
            outcome.messages.iter().rposition(|message| message.metadata.request_id == converted.run_id);
        let at = last.unwrap_or_else(|| {
            outcome.messages.push(MessageState::new(converted.run_id));
            outcome.messages.len() - 1
        });
        outcome.messages[at].apply_record(converted.record);
    };
    for (index, (name, data)) in input.iter().enumerate() {
        converter
            .push(index as u64 + 1, name.as_deref(), data, &mut sink)
            .map_err(|error| format!("{} [{}]", error, error.problem.code()))?;
    }
    converter.finish(&mut sink).map_err(|error| error.to_string())?;
    Ok(outcome)
}

/// The file that holds the expected stream in a dialect.
fn file_name(dialect: Dialect) -> String {
    let extension = match dialect {
        Dialect::Text => "txt",
        _ if has_event_names(dialect) => "sse",
        _ => "ndjson",
    };
    format!("{dialect}.{extension}")
}

/// Returns whether SSE names are part of a dialect's frames.
fn has_event_names(dialect: Dialect) -> bool {
    dialect.document().order.event_name.is_some()
}

fn written(dialect: Dialect, outcome: &Outcome) -> Vec<u8> {
    if dialect == Dialect::Text {
        let end: &[u8] = if outcome.text.is_empty() { b"" } else { b"\n" };
        return [&outcome.text, end].concat();
    }
    let mut out = Vec::new();
    for (cursor, name, data) in &outcome.frames {
        if has_event_names(dialect) {
            write_frame(Framing::Sse, &mut out, Some(cursor), name.as_deref(), data);
        } else {
            write_frame(Framing::Ndjson, &mut out, None, None, data);
        }
    }
    out
}

fn messages_file(outcome: &Outcome) -> Vec<u8> {
    let mut out = serde_json::to_vec_pretty(&serde_json::to_value(&outcome.messages).unwrap()).unwrap();
    out.push(b'\n');
    out
}

/// Compares an expected file with what was found; tells the first difference.
type Compare<'c> = dyn Fn(&[u8], &[u8]) -> Option<String> + 'c;

/// Compares as JSON, frame by frame; tells the first difference.
fn difference(dialect: Dialect, expected: &[u8], found: &[u8]) -> Option<String> {
    if dialect == Dialect::Text {
        return (expected != found).then(|| {
            format!(
                "expected {:?}, found {:?}",
                String::from_utf8_lossy(expected),
                String::from_utf8_lossy(found)
            )
        });
    }
    let framing = if has_event_names(dialect) { Framing::Sse } else { Framing::Ndjson };
    let (expected, found) = (frames_of(expected, framing), frames_of(found, framing));
    let parsed = |frame: Option<&(Option<String>, Vec<u8>)>| {
        frame.map(|(name, data)| (name.clone(), serde_json::from_slice::<Value>(data).unwrap()))
    };
    (0..expected.len().max(found.len())).find_map(|at| {
        let (expected, found) = (parsed(expected.get(at)), parsed(found.get(at)));
        let show = |frame: Option<(Option<String>, Value)>| match frame {
            Some((name, value)) => format!("{} {value}", name.unwrap_or_default()),
            None => "nothing".into(),
        };
        (expected != found)
            .then(|| format!("frame {}:\n  expected {}\n  found    {}", at + 1, show(expected), show(found)))
    })
}

#[test]
fn every_vector_becomes_what_is_expected_in_every_dialect() {
    let write = std::env::var_os("RUNWIRE_WRITE_VECTORS").is_some();
    let mut problems = Vec::new();
    for case in cases() {
        let input = case.input();
        let mut expect = |file: &str, found: Vec<u8>, compare: &Compare<'_>| {
            let path = case.folder.join(file);
            let expected = fs::read(&path).ok();
            // What was written by hand stays; a new dialect has no expectation yet.
            if write && (!case.by_hand || expected.is_none()) {
                if expected.as_deref() != Some(&found[..]) {
                    fs::write(&path, &found).unwrap();
                }
                return;
            }
            let problem = match expected {
                None => Some("the expectation is missing; `cargo xtask vectors` writes it".to_owned()),
                Some(expected) => compare(&expected, &found),
            };
            if let Some(problem) = problem {
                problems.push(format!("{}/{file}: {problem}", case.label()));
            }
        };
        for to in Dialect::ALL {
            match convert(&input, case.options(to)) {
                Err(error) => expect(&file_name(to), error.into_bytes(), &|_, found| {
                    Some(String::from_utf8_lossy(found).into())
                }),
                Ok(outcome) => {
                    let exact = |expected: &[u8], found: &[u8]| {
                        (expected != found)
                            .then(|| difference(to, expected, found).unwrap_or("the bytes differ".into()))
                    };
                    let by_hand = |expected: &[u8], found: &[u8]| difference(to, expected, found);
                    let compare: &Compare<'_> = if case.by_hand { &by_hand } else { &exact };
                    expect(&file_name(to), written(to, &outcome), compare);
                    if to == Dialect::Runwire {
                        let as_json = |expected: &[u8], found: &[u8]| {
                            let parse = |bytes: &[u8]| serde_json::from_slice::<Value>(bytes).unwrap();
                            (parse(expected) != parse(found)).then(|| {
                                format!("\n  expected {}\n  found    {}", parse(expected), parse(found))
                            })
                        };
                        expect("message.json", messages_file(&outcome), &as_json);
                    }
                }
            }
        }
    }
    assert!(problems.is_empty(), "{} differences\n{}", problems.len(), problems.join("\n"));
}

#[test]
fn the_first_frames_of_every_vector_tell_its_dialect() {
    for case in cases().into_iter().filter(|case| !case.undetectable) {
        let input = case.input();
        let named = convert(&input, case.options(Dialect::Runwire)).unwrap();
        let detected = convert(&input, Options { from: None, ..case.options(Dialect::Runwire) });
        match detected {
            Ok(detected) => assert!(
                detected.frames == named.frames,
                "{}: the detected dialect gives other frames",
                case.label()
            ),
            Err(error) => panic!("{}: {error}", case.label()),
        }
    }
}
