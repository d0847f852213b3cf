//! Attaching to a run: the snapshot and the tail after it come to what the whole run comes to, wherever a
//! reader attaches.
//!
//! The streams of every vector in `ag-ui` are also written to the build folder, for the official client
//! (`oracles/ag-ui`).

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use runwire_model::attach::AttachSnapshot;
use runwire_model::convert::{Converted, Converter};
use runwire_model::dialect::{Dialect, Encoder, Fidelity, Frames};
use runwire_model::event::{Event, InteractionRequested, RunStarted, TextDelta, TextStarted, ToolProgress};
use runwire_model::record::{ChatMessage, EventOrigin, History, Record};
use runwire_model::run::RunState;
use runwire_model::window::Window;
use runwire_model::{Json, Timestamp};
use serde_json::{Value, json};

use super::ag_ui_rules::Client;
use super::properties::{WireFrame, config, decode_into, one_each, seen};
use super::runs::{self, RUN, THREAD};
use super::vectors::{self, Case};

fn offered() -> impl Iterator<Item = Dialect> {
    Dialect::ALL.into_iter().filter(|dialect| dialect.offers_attach())
}

/// A run, and the thread before it.
pub(crate) struct Run {
    pub(crate) thread_id: String,
    pub(crate) run_id: String,
    pub(crate) before: Window,
    /// What the guard knows when it begins: calls of the run before may be answered in this one.
    begins: RunState,
    pub(crate) records: Vec<Record>,
}

impl Run {
    pub(crate) fn made_up(records: Vec<Record>) -> Self {
        let (thread_id, run_id) = (THREAD.to_owned(), RUN.to_owned());
        Self { thread_id, run_id, before: Window::default(), begins: RunState::new(THREAD, RUN), records }
    }

    pub(crate) fn encoder(&self, dialect: Dialect, fidelity: Fidelity) -> Encoder {
        Encoder::new(dialect, &self.thread_id, &self.run_id, fidelity)
    }

    /// The window that the run's encoders look into.
    pub(crate) fn window(&self) -> Window {
        let mut window = self.before.clone();
        window.next_run(&self.run_id);
        window
    }

    /// What the guard knows at its end.
    fn ended(&self) -> RunState {
        let mut state = self.begins.clone();
        let frames = self.plain(Dialect::Runwire, Fidelity::Native).concat();
        decode_into(&mut state, &frames, Dialect::Runwire).unwrap();
        state
    }

    /// The frames of each record in the plain stream.
    fn plain(&self, dialect: Dialect, fidelity: Fidelity) -> Vec<Vec<WireFrame>> {
        let (mut encoder, mut window) = (self.encoder(dialect, fidelity), self.window());
        let each = |record: &Record| {
            let mut frames = Frames::default();
            window.absorb(record);
            encoder.step(record, &window, &mut frames);
            wire(&frames)
        };
        self.records.iter().map(each).collect()
    }

    /// The snapshots after no record, after one, and so on.
    fn snapshots(&self, dialect: Dialect, fidelity: Fidelity) -> Vec<Vec<WireFrame>> {
        let mut snapshot = AttachSnapshot::new(&self.thread_id, &self.run_id, self.before.clone());
        let mut snapshots = vec![wire(&snapshot.frames(dialect, fidelity))];
        for record in &self.records {
            snapshot.absorb(record);
            snapshots.push(wire(&snapshot.frames(dialect, fidelity)));
        }
        snapshots
    }
}

pub(crate) fn wire(frames: &Frames) -> Vec<WireFrame> {
    frames.iter().map(|(name, data)| (name.map(str::to_owned), data.to_vec())).collect()
}

/// The runs of a vector, in the order they begin.
pub(crate) fn runs_of(case: &Case) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    let mut threads: HashMap<String, (String, Window)> = HashMap::new();
    let mut converter = Converter::new(case.options(Dialect::Runwire));
    let mut sink = |converted: Converted<'_>| {
        let (thread_id, run_id) = (converted.thread_id.to_owned(), converted.run_id.to_owned());
        let (current, window) = threads.entry(thread_id.clone()).or_default();
        if *current != run_id {
            current.clone_from(&run_id);
            let before = window.clone();
            window.next_run(&run_id);
            let earlier = runs.iter().rfind(|run| run.thread_id == thread_id).map(Run::ended);
            let begins =
                earlier.map_or_else(|| RunState::new(&thread_id, &run_id), |state| state.next(&run_id));
            runs.push(Run { thread_id, run_id: run_id.clone(), before, begins, records: Vec::new() });
        }
        window.absorb(converted.record);
        let run = runs.iter_mut().rfind(|run| run.run_id == run_id).unwrap();
        run.records.push(converted.record.clone());
    };
    for (index, (name, data)) in case.input().iter().enumerate() {
        converter.push(index as u64 + 1, name.as_deref(), data, &mut sink).unwrap();
    }
    converter.finish(&mut sink).unwrap();
    runs
}

/// The thread's state after records that were read.
fn state_after(run: &Run, records: &[Record]) -> Option<Value> {
    let mut window = Window::after(Vec::new(), run.before.state());
    records.iter().for_each(|record| window.absorb(record));
    // A last patch that did not fit has changed nothing.
    let nothing = Record { seq: 0, at: Timestamp(0), source_time: None, dialect: None, entries: Vec::new() };
    window.absorb(&nothing);
    window.state().map(|state| state.to_value().unwrap())
}

/// What a person sees. A snapshot tells a call's arguments exactly, where a dialect leaves out a text that says the
/// same as they do.
fn seen_of(records: &[Record], dialect: Dialect) -> Value {
    let mut seen = seen(records, dialect);
    for call in seen["calls"].as_array_mut().into_iter().flatten() {
        let text = call["arguments_text"].as_str().and_then(|text| serde_json::from_str::<Value>(text).ok());
        if text.is_some_and(|text| text == call["arguments"]) {
            call["arguments_text"] = Value::Null;
        }
    }
    seen
}

fn show(frames: &[WireFrame]) -> String {
    frames.iter().map(|(_, data)| String::from_utf8_lossy(data).into_owned()).collect::<Vec<_>>().join("\n  ")
}

/// Compares a run that is read whole with one that is attached to after each of its records.
fn attaching_changes_nothing(run: &Run, dialect: Dialect, fidelity: Fidelity) -> Result<(), String> {
    let plain = run.plain(dialect, fidelity);
    let decode = |frames: &[WireFrame]| decode_into(&mut run.begins.clone(), frames, dialect);
    let read = decode(&plain.concat())?;
    let (expected, expected_state) = (seen_of(&read, dialect), state_after(run, &read));
    // What is merged may be read more exactly than its pieces, but only as it was.
    let exact = seen_of(&run.records, dialect);
    for (after, snapshot) in run.snapshots(dialect, fidelity).into_iter().enumerate() {
        let tail = plain[after..].concat();
        let frames = [snapshot.clone(), tail].concat();
        let place = format!("{dialect} {fidelity:?}, attached after record {after}");
        let shown = || format!("snapshot\n  {}\nall\n  {}", show(&snapshot), show(&frames));
        let read = decode(&frames).map_err(|error| format!("{place}: {error}\n{}", shown()))?;
        let (found, found_state) = (seen_of(&read, dialect), state_after(run, &read));
        if (found != expected && found != exact) || found_state != expected_state {
            return Err(format!(
                "{place}\n  expected {expected} {expected_state:?}\n  found    {found} {found_state:?}\n{}",
                shown()
            ));
        }
        if dialect == Dialect::AgUi {
            passes_the_rules(&frames).map_err(|error| format!("{place}: {error}\n{}", shown()))?;
        }
    }
    Ok(())
}

fn passes_the_rules(frames: &[WireFrame]) -> Result<(), String> {
    let mut client = Client::default();
    for (_, data) in frames {
        let frame: Value = serde_json::from_slice(data).map_err(|error| error.to_string())?;
        client.take(&frame).map_err(|problem| format!("{problem} at {frame}"))?;
    }
    Ok(())
}

#[test]
fn attaching_anywhere_comes_to_the_same_run() {
    for case in vectors::cases() {
        for run in runs_of(&case) {
            for dialect in offered() {
                for fidelity in [Fidelity::Native, Fidelity::Full] {
                    attaching_changes_nothing(&run, dialect, fidelity)
                        .unwrap_or_else(|problem| panic!("{} {}: {problem}", case.label(), run.run_id));
                }
            }
        }
    }
}

/// One test a dialect, so that a failure names it.
macro_rules! each_offered {
    ($($name:ident: $dialect:ident),* $(,)?) => {
        proptest! {
            #![proptest_config(ProptestConfig { cases: config().cases.div_ceil(4), ..config() })]
            $(
                #[test]
                fn $name(run in runs::run()) {
                    let run = Run::made_up(runs::carry_out(&run));
                    attaching_changes_nothing(&run, Dialect::$dialect, Fidelity::Native)
                        .map_err(TestCaseError::fail)?;
                }
            )*
        }
    };
}

each_offered! {
    attaching_in_runwire_comes_to_the_same_made_up_run: Runwire,
    attaching_in_ag_ui_comes_to_the_same_made_up_run: AgUi,
    attaching_in_easyflow_chat_comes_to_the_same_made_up_run: EasyflowChat,
    attaching_in_streaming_engine_comes_to_the_same_made_up_run: StreamingEngine,
}

#[test]
fn a_snapshots_ordering_values_are_below_the_tails() {
    for case in vectors::cases() {
        for run in runs_of(&case) {
            let plain = run.plain(Dialect::StreamingEngine, Fidelity::Native);
            let snapshots = run.snapshots(Dialect::StreamingEngine, Fidelity::Native);
            for (after, snapshot) in snapshots.into_iter().enumerate() {
                let tail = plain[after..].concat();
                let sequences: Vec<u64> = [snapshot, tail.into_iter().take(1).collect()]
                    .concat()
                    .iter()
                    .map(|(_, data)| serde_json::from_slice::<Value>(data).unwrap())
                    .map(|frame| frame["metadata"]["sequence"].as_u64().unwrap())
                    .collect();
                assert!(
                    sequences.is_sorted_by(|a, b| a < b),
                    "{} after {after}: {sequences:?}",
                    case.label()
                );
            }
        }
    }
}

#[test]
fn attach_is_offered_where_the_design_says() {
    let offers = [Dialect::Runwire, Dialect::AgUi, Dialect::EasyflowChat, Dialect::StreamingEngine];
    let replays = [Dialect::Loom, Dialect::LoomExport, Dialect::Agio, Dialect::SocialApp, Dialect::Text];
    assert_eq!(offers.map(Dialect::offers_attach), [true; 4]);
    assert_eq!(replays.map(Dialect::offers_attach), [false; 5]);
}

/// Writes what a client that attaches receives, for every vector and after each of its records.
#[test]
fn attach_streams_are_written_for_the_official_client() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("attach");
    if folder.exists() {
        fs::remove_dir_all(&folder).unwrap();
    }
    for case in vectors::cases() {
        let mut streams = Vec::new();
        for (index, run) in runs_of(&case).iter().enumerate() {
            let plain = run.plain(Dialect::AgUi, Fidelity::Native);
            for (after, snapshot) in run.snapshots(Dialect::AgUi, Fidelity::Native).into_iter().enumerate() {
                let told = plain[..after].concat().len();
                let frames = [snapshot, plain[after..].concat()].concat();
                let frames = frames.into_iter().map(|(_, data)| String::from_utf8(data).unwrap());
                let frames: Vec<String> = frames.collect();
                streams.push(json!({ "run": index, "after": after, "told": told, "frames": frames }));
            }
        }
        let folder = folder.join(case.dialect.name());
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(format!("{}.json", case.name)), Value::from(streams).to_string()).unwrap();
    }
}

fn records(events: Vec<Event>) -> Vec<Record> {
    one_each(events, EventOrigin::Producer)
}

fn snapshot(before: Window, events: Vec<Event>, dialect: Dialect) -> Vec<Value> {
    let mut snapshot = AttachSnapshot::new(THREAD, RUN, before);
    records(events).iter().for_each(|record| snapshot.absorb(record));
    let frames = snapshot.frames(dialect, Fidelity::Native);
    frames.iter().map(|(_, data)| serde_json::from_slice(data).unwrap()).collect()
}

fn types(frames: &[Value]) -> Vec<&str> {
    frames.iter().map(|frame| frame["type"].as_str().unwrap()).collect()
}

#[test]
fn an_attached_client_is_given_the_whole_thread() {
    let earlier =
        ChatMessage { id: "m0".into(), role: "user".into(), content: "Hi".into(), ..Default::default() };
    let state = Json::parse(r#"{"n":1}"#).unwrap();
    let before = Window::after(vec![earlier], Some(state));
    let piece = |content: &str| TextDelta { message_id: "m1".into(), content: content.into(), format: None };
    let events = vec![
        RunStarted::default().into(),
        TextStarted { message_id: "m1".into(), role: None }.into(),
        piece("Hel").into(),
        piece("lo").into(),
    ];
    let frames = snapshot(before, events, Dialect::AgUi);
    assert_eq!(types(&frames), ["RUN_STARTED", "MESSAGES_SNAPSHOT", "STATE_SNAPSHOT", "TEXT_MESSAGE_START"]);
    let expected = json!([
        { "id": "m0", "role": "user", "content": "Hi" },
        { "id": "m1", "role": "assistant", "content": "Hello" },
    ]);
    assert_eq!(frames[1]["messages"], expected);
    assert_eq!(frames[2]["snapshot"], json!({ "n": 1 }));
    assert_eq!(frames[3]["messageId"], "m1");
}

#[test]
fn an_agent_that_goes_on_while_it_asks_does_not_hide_its_question() {
    let asked = InteractionRequested { interaction_id: "q".into(), ..Default::default() };
    let events = vec![
        RunStarted::default().into(),
        asked.into(),
        TextStarted { message_id: "m1".into(), role: None }.into(),
    ];
    let frames = snapshot(Window::default(), events, Dialect::AgUi);
    assert_eq!(
        types(&frames),
        ["RUN_STARTED", "MESSAGES_SNAPSHOT", "RUN_FINISHED", "RUN_STARTED", "TEXT_MESSAGE_START"]
    );
    assert_eq!(frames[2]["outcome"]["interrupts"][0]["id"], "q");
}

#[test]
fn of_what_is_replaced_only_the_last_is_told() {
    let progress =
        |progress: f64| ToolProgress { call_id: "c".into(), progress: Some(progress), message: None };
    let events = vec![RunStarted::default().into(), progress(10.0).into(), progress(90.0).into()];
    let frames = snapshot(Window::default(), events, Dialect::Runwire);
    assert_eq!(types(&frames), ["run.started", "tool.progress"]);
    assert_eq!(frames[1]["progress"], 90);
}

#[test]
fn nothing_is_told_of_a_run_that_has_not_begun() {
    for dialect in offered() {
        assert!(
            AttachSnapshot::new(THREAD, RUN, Window::default()).frames(dialect, Fidelity::Native).is_empty()
        );
    }
}

#[test]
fn a_window_made_from_messages_and_state_gives_them_back() {
    let called = ChatMessage {
        id: "m1".into(),
        role: "assistant".into(),
        tool_calls: vec![("c1".into(), "look".into(), "{}".into())],
        ..Default::default()
    };
    let answered = ChatMessage {
        id: "c1:result".into(),
        role: "tool".into(),
        content: "found".into(),
        tool_call_id: Some("c1".into()),
        ..Default::default()
    };
    let messages = vec![called, answered];
    let state = Json::parse("[1, 2.50]").unwrap();
    let window = Window::after(messages.clone(), Some(state.clone()));
    assert_eq!((window.messages(), window.state()), (messages.clone(), Some(state)));
    // They are earlier runs' messages: the run that follows has said nothing yet.
    assert_eq!(window.run_text(), "");
    let stored = serde_json::to_string(&messages).unwrap();
    assert_eq!(serde_json::from_str::<Vec<ChatMessage>>(&stored).unwrap(), messages);
}
