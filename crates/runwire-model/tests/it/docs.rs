//! The documents that could drift from the code, and may not: mapping tables, the vocabulary, the limits, and
//! the output that the READMEs show.
//!
//! `RUNWIRE_WRITE_DOCS=1 cargo test -p runwire-model --test it docs` writes the generated parts anew.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use runwire_model::convert::{Converter, Options};
use runwire_model::dialect::{Dialect, Encoder, Fidelity, Frames};
use runwire_model::event::{Body, Event, Foreign, RunStarted};
use runwire_model::framing::{Framing, write_frame};
use runwire_model::limits;
use runwire_model::record::Record;
use runwire_model::run::Authority;
use runwire_model::window::Window;
use serde_json::Value;

use crate::vectors;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Two tests may write different parts of one document.
static WRITING: Mutex<()> = Mutex::new(());

/// Compares a document with what the code makes of it, or writes that.
fn expect(path: &str, fresh: impl FnOnce(&str) -> String) -> Result<(), String> {
    let _alone = WRITING.lock();
    let found = read(path);
    let wanted = fresh(&found);
    if found == wanted {
        return Ok(());
    }
    if std::env::var_os("RUNWIRE_WRITE_DOCS").is_some() {
        fs::write(root().join(path), wanted).unwrap();
        return Ok(());
    }
    let line = found.lines().zip(wanted.lines()).position(|(found, wanted)| found != wanted);
    let line = line.unwrap_or_else(|| found.lines().count().min(wanted.lines().count()));
    Err(format!(
        "{path}:{}: found\n  {}\nwhere the code says\n  {}",
        line + 1,
        found.lines().nth(line).unwrap_or_default(),
        wanted.lines().nth(line).unwrap_or_default()
    ))
}

/// Fails with every problem at once, and says what to do.
fn assert_fresh(problems: impl IntoIterator<Item = Result<(), String>>) {
    let problems: Vec<String> = problems.into_iter().filter_map(Result::err).collect();
    assert!(
        problems.is_empty(),
        "{}\nwrite them anew: RUNWIRE_WRITE_DOCS=1 cargo test -p runwire-model --test it docs",
        problems.join("\n")
    );
}

/// Puts a table between the two comments that mark its place.
fn with_table(document: &str, name: &str, table: &str) -> String {
    let (begin, end) = (format!("<!-- {name}:begin -->"), format!("<!-- {name}:end -->"));
    let place = document.split_once(&begin).and_then(|(head, rest)| Some((head, rest.split_once(&end)?.1)));
    let (head, tail) = place.unwrap_or_else(|| panic!("there is no `{begin}` … `{end}`"));
    format!("{head}{begin}\n{table}{end}{tail}")
}

// From canonical to each dialect

/// Says what the vectors leave out: the other forms that an event can take.
const MORE_SAMPLES: &str = r#"
{"type":"run.started"}
{"type":"text.started","message_id":"m1"}
{"type":"text.delta","message_id":"m1","content":"Hel"}
{"type":"text.started","message_id":"m2"}
{"type":"text.delta","message_id":"m2","content":"beside it"}
{"type":"text.finished","message_id":"m2"}
{"type":"text.finished","message_id":"m1","content":"Hello"}
{"type":"text.started","message_id":"u1","role":"user"}
{"type":"text.delta","message_id":"u1","content":"and you?"}
{"type":"text.finished","message_id":"u1"}
{"type":"tool.called","call_id":"c1","name":"chart","arguments":{}}
{"type":"data","data_type":"chart","data":{},"call_id":"c1"}
{"type":"tool.finished","call_id":"c1","status":"failure","error":{"message":"no"}}
{"type":"state.patched","patch":[{"op":"remove","path":"/nothing/there"}]}
{"type":"custom","value":[1]}
{"type":"notice","level":"error","message":"slow"}
{"type":"notice","level":"error","domain":"business","code":"QUOTA","message":"out of credit"}
{"type":"notice","level":"warning","message":"slow"}
{"type":"notice","level":"debug","message":"slow"}
{"type":"notice","level":"warning","message":"last words","fatal":true}
{"type":"interaction.requested","interaction_id":"f1","kind":"form","schema":{"type":"object"}}
{"type":"interaction.resolved","interaction_id":"f1","decision":"cancelled"}
{"type":"run.suspended","interaction_ids":[]}
{"type":"run.resumed","interaction_ids":[]}
{"type":"run.failed","error":{"domain":"business","message":"out of credit"}}
"#;

/// The canonical samples: every run of the `runwire` vectors, what they leave out, and a frame of unknown
/// type in each dialect.
fn samples() -> Vec<Vec<(String, String, Record)>> {
    let vectors = vectors::cases().into_iter().filter(|case| case.dialect == Dialect::Runwire);
    let more = vectors::frames_of(MORE_SAMPLES.as_bytes(), Framing::Ndjson);
    vectors.map(|case| case.input()).chain([more, foreign_frames()]).map(|input| records(&input)).collect()
}

fn foreign_frames() -> Vec<(Option<String>, Vec<u8>)> {
    let started = Event::new(RunStarted::default());
    let foreign = |dialect: Dialect| {
        let frame = match dialect {
            Dialect::LoomExport => r#"{"NodePause":{"node_id":"act"}}"#,
            Dialect::EasyflowChat => r#"{"protocol":"easyflow-chat","domain":"audio","type":"clip"}"#,
            _ => r#"{"type":"node_pause","data":{}}"#,
        };
        let frame = runwire_model::Json::parse(frame).unwrap();
        Event::new(Foreign { dialect: dialect.name().into(), frame, name: None })
    };
    let events = std::iter::once(started).chain(Dialect::READABLE.map(foreign));
    events.map(|event| (None, event.to_json().text().as_bytes().to_vec())).collect()
}

fn records(input: &[(Option<String>, Vec<u8>)]) -> Vec<(String, String, Record)> {
    let options = Options {
        from: Some(Dialect::Runwire),
        authority: Authority::Server,
        ..Options::to(Dialect::Runwire)
    };
    let mut converter = Converter::new(options);
    let mut records = Vec::new();
    let mut sink = |converted: runwire_model::convert::Converted<'_>| {
        let ids = (converted.thread_id.to_owned(), converted.run_id.to_owned());
        records.push((ids.0, ids.1, converted.record.clone()));
    };
    for (line, (name, data)) in input.iter().enumerate() {
        converter.push(line as u64 + 1, name.as_deref(), data, &mut sink).unwrap();
    }
    converter.finish(&mut sink).unwrap();
    records
}

/// What each canonical type becomes in a dialect, in every way that the samples show.
fn mapping(to: Dialect) -> BTreeMap<&'static str, BTreeSet<String>> {
    let mut mapping: BTreeMap<&'static str, BTreeSet<String>> = BTreeMap::new();
    for stream in samples() {
        let mut window = Window::default();
        let mut encoder: Option<(String, Encoder)> = None;
        for (thread, run, record) in &stream {
            if encoder.as_ref().is_none_or(|(known, _)| known != run) {
                window.next_run(run);
                encoder = Some((run.clone(), Encoder::new(to, thread, run, Fidelity::Native)));
            }
            window.absorb(record);
            let Some((_, encoder)) = encoder.as_mut() else { continue };
            let mut told = 0;
            for (index, entry) in record.entries.iter().enumerate() {
                let frames = frames_up_to(encoder, record, index + 1, &window);
                let cell = if frames.len() == told && told > 0 {
                    format!("with `{}`", record.entries[index - 1].event.body.type_name())
                } else {
                    cell(to, &entry.event, &frames[told..])
                };
                told = frames.len();
                mapping.entry(entry.event.body.type_name()).or_default().insert(cell);
            }
            encoder.step(record, &window, &mut Frames::default());
        }
    }
    mapping
}

/// Encodes the first events of a record with a copy of the encoder.
fn frames_up_to(
    encoder: &Encoder,
    record: &Record,
    count: usize,
    window: &Window,
) -> Vec<(Option<String>, Value)> {
    let part = Record { entries: record.entries[..count].to_vec(), ..record.clone() };
    let mut frames = Frames::default();
    encoder.clone().step(&part, window, &mut frames);
    let parsed = |(name, data): (Option<&str>, &[u8])| {
        let value = serde_json::from_slice(data).unwrap_or_else(|_| String::from_utf8_lossy(data).into());
        (name.map(str::to_owned), value)
    };
    frames.iter().map(parsed).collect()
}

/// Writes the frames that one event became as a cell of the table.
fn cell(to: Dialect, event: &Event, frames: &[(Option<String>, Value)]) -> String {
    if let Body::Foreign(foreign) = &event.body
        && foreign.dialect == to.name()
        && !frames.iter().any(|(_, frame)| is_slot(to, frame))
        && !matches!(to, Dialect::AgUi | Dialect::SocialApp)
    {
        return "as it came".to_owned();
    }
    let mut shown: Vec<String> = Vec::new();
    let mut residue = false;
    for (sse, frame) in frames {
        if is_slot(to, frame) {
            // The export form has no room for a residue, and tells it in a slot before the frame.
            match frame.pointer("/Custom/frames") {
                Some(_) => residue = true,
                None => shown.push("slot".into()),
            }
            continue;
        }
        match residue_of(to, frame) {
            // Written for the wire alone, such as the start after an interrupt.
            Some([]) if !residue => continue,
            Some([_, ..]) => residue = true,
            _ => {}
        }
        shown.push(label(to, sse.as_deref(), frame));
    }
    shown.dedup();
    let mark = if residue { "*" } else { "" };
    if shown.is_empty() { "–".to_owned() } else { shown.join(", ") + mark }
}

fn is_slot(to: Dialect, frame: &Value) -> bool {
    match to {
        Dialect::Runwire | Dialect::Text => false,
        Dialect::StreamingEngine => frame["type"] == "runwire",
        Dialect::AgUi | Dialect::SocialApp => {
            frame["type"] == "CUSTOM"
                && frame["name"].as_str().is_some_and(|name| name.starts_with("runwire."))
        }
        Dialect::EasyflowChat => frame["domain"] == "debug" && frame["type"] == "runwire",
        _ => frame.as_object().unwrap().values().any(|value| value["runwire"].is_object()),
    }
}

fn residue_of(to: Dialect, frame: &Value) -> Option<&[Value]> {
    let holder = match to {
        Dialect::StreamingEngine | Dialect::Agio | Dialect::AgUi => &frame["metadata"],
        Dialect::EasyflowChat => &frame["meta"],
        _ => frame,
    };
    holder["runwire"].as_array().map(Vec::as_slice)
}

fn label(to: Dialect, sse: Option<&str>, frame: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let kind = match to {
        Dialect::Text => "the text".to_owned(),
        Dialect::Loom if frame.get("type").is_none() => "`reply`".to_owned(),
        Dialect::LoomExport => format!("`{}`", frame.as_object().unwrap().keys().next().unwrap()),
        Dialect::EasyflowChat => format!("`{}/{}`", text(&frame["domain"]), text(&frame["type"])),
        _ => format!("`{}`", text(&frame["type"])),
    };
    let detail = match to {
        Dialect::Loom => text(&frame["stop_reason"]),
        Dialect::LoomExport => text(&frame["Reply"]["stop_reason"]),
        Dialect::StreamingEngine if frame["type"] == "session_end" => text(&frame["data"]["status"]),
        Dialect::StreamingEngine if frame["data"]["is_complete"] == true => "is_complete".to_owned(),
        Dialect::AgUi => text(&frame["outcome"]["type"]),
        Dialect::SocialApp if frame["code"] == "CANCELLED" => text(&frame["code"]),
        Dialect::EasyflowChat if frame["meta"]["status"].is_string() => text(&frame["meta"]["status"]),
        Dialect::EasyflowChat if frame["meta"]["terminal"] == false => "not terminal".to_owned(),
        Dialect::EasyflowChat if frame["type"] == "status" => text(&frame["payload"]["state"]),
        _ => String::new(),
    };
    let named = match (to, sse) {
        (Dialect::EasyflowChat, Some(name @ ("error" | "done"))) => format!("on SSE `{name}`"),
        _ => String::new(),
    };
    [kind, detail, named].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
}

fn mapping_table(to: Dialect) -> String {
    let mapping = mapping(to);
    let mut table = format!("| canonical | {} |\n|---|---|\n", to.name());
    for name in Body::TYPES {
        let cells = mapping.get(name).unwrap_or_else(|| panic!("no vector has a `{name}`"));
        if to == Dialect::Text && cells.iter().all(|cell| cell == "–") {
            continue;
        }
        // A frame that carries a residue in one sample and none in another may carry one.
        let cells = cells.iter().filter(|cell| !cells.contains(&format!("{cell}*"))).cloned();
        writeln!(table, "| `{name}` | {} |", cells.collect::<Vec<_>>().join("; or ")).unwrap();
    }
    table
}

#[test]
fn the_mapping_table_of_every_dialect_is_what_its_encoder_writes() {
    let written = Dialect::ALL.into_iter().filter(|dialect| *dialect != Dialect::Runwire);
    assert_fresh(written.map(|dialect| {
        let path = format!("docs/dialects/{dialect}.md");
        if !root().join(&path).exists() && std::env::var_os("RUNWIRE_WRITE_DOCS").is_some() {
            let page =
                format!("# `{dialect}`\n\n## Mapping\n\n<!-- mapping:begin -->\n<!-- mapping:end -->\n");
            fs::write(root().join(&path), page).unwrap();
        }
        expect(&path, |document| with_table(document, "mapping", &mapping_table(dialect)))
    }));
}

#[test]
fn the_canonical_dialect_says_every_event_as_itself() {
    for (name, cells) in mapping(Dialect::Runwire) {
        let itself = format!("`{name}`");
        assert!(cells.iter().all(|cell| *cell == itself || cell == "as it came"), "{name}: {cells:?}");
    }
}

// The list of dialects

/// What a dialect is, by name: the first sentence of its line of the registry.
fn meanings() -> BTreeMap<String, String> {
    let registry = read("crates/runwire-model/src/dialect/registry.rs");
    let lines: Vec<&str> = registry.lines().map(str::trim).collect();
    let meaning = |pair: &[&str]| {
        let meaning = pair[0].strip_prefix("/// ")?.trim_end_matches('.');
        let variant = pair[1].split_once(" => ")?.0;
        let dialect = Dialect::ALL.into_iter().find(|dialect| format!("{dialect:?}") == variant)?;
        let meaning = meaning.strip_prefix("The ").map_or(meaning.to_owned(), |rest| format!("the {rest}"));
        Some((dialect.name().to_owned(), meaning))
    };
    lines.windows(2).filter_map(meaning).collect()
}

/// The first run of the longest canonical sample in a dialect: ids of thread and run, and frames with their kinds.
fn sample_frames(to: Dialect, fidelity: Fidelity) -> ([String; 2], Vec<(String, Value)>) {
    let stream = samples().into_iter().max_by_key(Vec::len).unwrap();
    let (thread, run, _) = &stream[0];
    let (mut encoder, mut window) = (Encoder::new(to, thread, run, fidelity), Window::new(run));
    let mut frames = Vec::new();
    for (_, _, record) in stream.iter().take_while(|(_, known, _)| known == run) {
        window.absorb(record);
        let mut written = Frames::default();
        encoder.step(record, &window, &mut written);
        frames.extend(written.iter().map(|(name, data)| {
            let frame = serde_json::from_slice(data).unwrap_or(Value::Null);
            (if to == Dialect::Text { String::new() } else { label(to, name, &frame) }, frame)
        }));
    }
    ([thread.clone(), run.clone()], frames)
}

/// Finds the path of a field that holds a value, with dots between its levels.
fn path_of(frame: &Value, is_it: &impl Fn(&str, &Value) -> bool) -> Option<String> {
    frame.as_object()?.iter().find_map(|(key, value)| match is_it(key, value) {
        true => Some(key.clone()),
        false => path_of(value, is_it).map(|path| format!("{key}.{path}")),
    })
}

/// Names the fields with the ids of thread and run; that of the run with the kind of its frame where only one has it.
fn id_fields(to: Dialect) -> [String; 2] {
    let ([thread, run], frames) = sample_frames(to, Fidelity::Native);
    let found = |id: &str| -> Vec<(&str, String)> {
        let is_id = |_: &str, value: &Value| *value == id;
        let native = frames.iter().filter(|(_, frame)| !is_slot(to, frame));
        native.filter_map(|(kind, frame)| Some((kind.trim_matches('`'), path_of(frame, &is_id)?))).collect()
    };
    let shown = |found: &[(&str, String)], has_kind: bool| match found {
        [] => "–".to_owned(),
        [(kind, path)] if has_kind && !path.starts_with(kind) => format!("`{kind}.{path}`"),
        // The first frame may have the id in its payload too.
        [.., (_, path)] => format!("`{path}`"),
    };
    [shown(&found(&thread), false), shown(&found(&run), true)]
}

/// Names the first counter of the dialect's document, and where it starts.
fn ordering_field(to: Dialect) -> String {
    use runwire_model::dialect::document::Growth;
    let mut counters = to.document().order.counters.iter();
    let Some(counter) = counters.find(|rule| rule.growth != Growth::TimeNeverDecreases) else {
        return "–".to_owned();
    };
    let (_, frames) = sample_frames(to, Fidelity::Native);
    let Some(first) = frames.iter().find_map(|(_, frame)| frame.pointer(counter.pointer)) else {
        return "–".to_owned();
    };
    let field = |pointer: &str| format!("`{}`", pointer.trim_start_matches('/').replace('/', "."));
    let scope = counter.within.map(|within| format!(" per {}", field(within))).unwrap_or_default();
    format!("{}{scope}, from {first}", field(counter.pointer))
}

/// Names the frame that is the slot, and the object that carries residues.
fn slot_and_residue(to: Dialect) -> (String, String) {
    if !to.has_extensions() {
        return ("–".to_owned(), "–".to_owned());
    }
    let (_, native) = sample_frames(to, Fidelity::Native);
    let slot = native.iter().find(|(_, frame)| is_slot(to, frame)).map(|(kind, _)| kind.clone());
    let (_, full) = sample_frames(to, Fidelity::Full);
    let is_residue = |key: &str, value: &Value| key == "runwire" && value.is_array();
    let mut residues = full.iter().filter_map(|(_, frame)| path_of(frame, &is_residue));
    let holder = match residues.next().as_deref().map(|path| path.strip_suffix(".runwire")) {
        None => "a slot before the frame".to_owned(),
        Some(None) => "the frame".to_owned(),
        Some(Some(holder)) => format!("`{holder}`"),
    };
    (slot.unwrap_or_default(), holder)
}

#[test]
fn the_documents_table_of_dialects_is_what_their_frames_show() {
    let meanings = meanings();
    let mut table =
        "| dialect | what it is | thread | run | ordering field | slot | residue in |\n".to_owned();
    table.push_str("|---|---|---|---|---|---|---|\n");
    for to in Dialect::ALL {
        let (slot, residue) = slot_and_residue(to);
        let (what, [thread, run], order) = (&meanings[to.name()], id_fields(to), ordering_field(to));
        writeln!(table, "| [`{to}`]({to}.md) | {what} | {thread} | {run} | {order} | {slot} | {residue} |")
            .unwrap();
    }
    let path = "docs/dialects/README.md";
    assert_fresh([expect(path, |document| with_table(document, "dialects", &table))]);
}

type DialectList = (&'static str, fn(Dialect) -> bool);

/// Lists of dialects in sentences.
const LISTS: &[DialectList] = &[
    ("names-its-run", Dialect::names_its_run),
    ("names-run-in-every-frame", Dialect::names_run_in_every_frame),
    ("names-only-its-session", |dialect| dialect.names_its_session() && !dialect.names_run_in_every_frame()),
];

/// Writes anew each list between a comment like `<!-- dialects: names-its-run -->` and `<!-- end -->`.
fn with_lists(document: &str) -> String {
    let mut parts = document.split("<!-- dialects: ");
    let mut fresh = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (name, rest) = part.split_once(" -->").unwrap();
        let rest = rest.split_once("<!-- end -->").unwrap_or_else(|| panic!("`{name}` has no end")).1;
        let list = LISTS.iter().find(|(known, _)| *known == name);
        let (_, is_listed) = list.unwrap_or_else(|| panic!("there is no list `{name}`"));
        let dialects = Dialect::READABLE.into_iter().filter(|dialect| is_listed(*dialect));
        let dialects: Vec<String> = dialects.map(|dialect| format!("`{dialect}`")).collect();
        write!(fresh, "<!-- dialects: {name} -->{}<!-- end -->{rest}", dialects.join(", ")).unwrap();
    }
    fresh
}

// The vocabulary and the limits

#[test]
fn the_documented_vocabulary_is_the_one_in_the_code() {
    let mut table = "| type | fields | meaning |\n|---|---|---|\n".to_owned();
    for event in Body::vocabulary() {
        let fields: Vec<String> = event.fields.iter().map(|field| format!("`{field}`")).collect();
        writeln!(table, "| `{}` | {} | {} |", event.name, fields.join(", "), event.meaning).unwrap();
    }
    let path = "docs/dialects/runwire.md";
    assert_fresh([expect(path, |document| with_table(document, "vocabulary", &table))]);
}

#[test]
fn every_limit_is_documented_with_its_value() {
    let values = BTreeMap::from([
        ("FRAME_BYTES", limits::FRAME_BYTES as u64),
        ("JSON_DEPTH", limits::JSON_DEPTH as u64),
        ("RUN_TEXT_BYTES", limits::RUN_TEXT_BYTES),
        ("RUN_COMPARED_BYTES", limits::RUN_COMPARED_BYTES),
        ("CALL_ARGUMENT_BYTES", limits::CALL_ARGUMENT_BYTES),
        ("RUN_ARGUMENT_BYTES", limits::RUN_ARGUMENT_BYTES),
        ("ID_BYTES", limits::ID_BYTES as u64),
        ("OPEN_ITEMS", limits::OPEN_ITEMS as u64),
        ("RUN_INTERACTIONS", limits::RUN_INTERACTIONS as u64),
        ("THREAD_MEMORY_BYTES", limits::THREAD_MEMORY_BYTES as u64),
        ("OPEN_RUNS", limits::OPEN_RUNS as u64),
        ("STREAM_MEMORY_BYTES", limits::STREAM_MEMORY_BYTES as u64),
        ("MERGED_BYTES", limits::MERGED_BYTES as u64),
    ]);
    let source = read("crates/runwire-model/src/limits.rs");
    let mut table = "| limit | value | of what |\n|---|---|---|\n".to_owned();
    let (mut meaning, mut known) = (Vec::new(), 0);
    for line in source.lines() {
        if let Some(doc) = line.strip_prefix("/// ") {
            meaning.push(doc);
        } else if let Some(rest) = line.strip_prefix("pub const ") {
            let name = rest.split(':').next().unwrap_or_default();
            let value = values.get(name).unwrap_or_else(|| panic!("add `{name}` to this test"));
            writeln!(table, "| `{name}` | {} | {} |", readable(name, *value), meaning.join(" ")).unwrap();
            known += 1;
            meaning.clear();
        } else {
            meaning.clear();
        }
    }
    assert_eq!(known, values.len(), "the test knows a limit that is no longer there");
    let path = "docs/limits.md";
    let document = read(path);
    let beyond = document.split("<!-- limits:end -->").nth(1).unwrap_or_default();
    let untold = values.keys().filter(|name| !beyond.contains(&format!("`{name}`")));
    let untold =
        untold.map(|name| Err(format!("{path}: what happens beyond `{name}` is not said below the table")));
    assert_fresh(untold.chain([expect(path, |document| with_table(document, "limits", &table))]));
}

fn readable(name: &str, value: u64) -> String {
    match value {
        _ if !name.ends_with("BYTES") => value.to_string(),
        value if value % (1 << 20) == 0 => format!("{} MiB", value >> 20),
        value if value % (1 << 10) == 0 => format!("{} KiB", value >> 10),
        value => format!("{value} bytes"),
    }
}

// The READMEs

/// Writes anew each block of output that follows a comment like `<!-- output: ag-ui -->`.
///
/// After the dialect, `sse` asks for that framing and `first 3` for no more than the first frames.
fn with_outputs(text: &str) -> String {
    let mut document = String::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        document.push_str(line);
        document.push('\n');
        let Some(wanted) = line.strip_prefix("<!-- output: ").and_then(|rest| rest.strip_suffix(" -->"))
        else {
            continue;
        };
        let fence = lines.next().filter(|line| line.starts_with("```"));
        let fence = fence.unwrap_or_else(|| panic!("no code block follows `{line}`"));
        assert!(lines.any(|line| line == "```"), "the code block after `{line}` has no end");
        writeln!(document, "{fence}\n{}```", output(wanted)).unwrap();
    }
    document
}

fn output(wanted: &str) -> String {
    let mut words = wanted.split_whitespace();
    let dialect = Dialect::from_name(words.next().unwrap_or_default()).unwrap();
    let (mut framing, mut most) = (Framing::Ndjson, usize::MAX);
    while let Some(word) = words.next() {
        match word {
            "sse" => framing = Framing::Sse,
            "first" => most = words.next().unwrap().parse().unwrap(),
            _ => panic!("`{wanted}`: `{word}` means nothing"),
        }
    }
    let input = vectors::frames_of(read("docs/examples/hello.loom.ndjson").as_bytes(), Framing::Ndjson);
    let outcome = vectors::convert(&input, Options::to(dialect)).unwrap();
    let mut out = Vec::new();
    for (cursor, name, data) in outcome.frames.iter().take(most) {
        match dialect {
            Dialect::Text => out.extend_from_slice(data),
            _ => write_frame(framing, &mut out, Some(cursor), name.as_deref(), data),
        }
    }
    let mut out = String::from_utf8(out).unwrap();
    match framing {
        _ if dialect == Dialect::Text => out.push('\n'),
        _ if outcome.frames.len() > most => out.push_str("…\n"),
        // The blank line that ends the last event would hang at the end of the block.
        Framing::Sse => out.truncate(out.trim_end().len() + 1),
        _ => {}
    }
    out
}

/// Lists the documents that may show output: the READMEs and everything in `docs`.
fn documents() -> Vec<String> {
    let mut documents = vec!["README.md".to_owned(), "README.zh-CN.md".to_owned()];
    for folder in ["docs", "docs/dialects", "docs/errors"] {
        for entry in fs::read_dir(root().join(folder)).unwrap() {
            let name = entry.unwrap().file_name().to_string_lossy().into_owned();
            if name.ends_with(".md") {
                documents.push(format!("{folder}/{name}"));
            }
        }
    }
    documents.sort();
    documents
}

#[test]
fn the_documents_show_what_the_converter_writes() {
    assert_fresh(documents().iter().map(|path| expect(path, |text| with_lists(&with_outputs(text)))));
}

#[test]
fn the_readmes_show_the_example_that_they_convert() {
    let example = read("docs/examples/hello.loom.ndjson");
    for path in ["README.md", "README.zh-CN.md"] {
        assert!(read(path).contains(&format!("```json\n{example}```")), "{path} shows another stream");
    }
}
