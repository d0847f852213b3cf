//! What translation keeps, over made-up runs: the two properties of `docs/dialects`.
//!
//! N, a run read back from what was written of it, says the same as the run: by default to a person who
//! watches, in full event by event.

use proptest::prelude::*;
use proptest::test_runner::{RngSeed, TestCaseError};
use runwire_model::dialect::{Decoder, Dialect, Encoder, Fidelity, Frames, RecordBuilder};
use runwire_model::event::{Body, Event, Level, Notice, RunCompleted, RunStarted, Summary};
use runwire_model::fold::{MessageState, UsageState};
use runwire_model::record::{Entry, EventOrigin, Record};
use runwire_model::run::{Authority, RunState};
use runwire_model::window::Window;
use runwire_model::{Json, Timestamp};
use serde_json::{Value, json};

use super::ag_ui_rules::Client;
use super::runs::{self, RUN, THREAD};
use super::vectors;

/// A frame's name and data.
pub(crate) type WireFrame = (Option<String>, Vec<u8>);

/// The frames that records become.
pub(crate) fn encode(records: &[Record], dialect: Dialect, fidelity: Fidelity) -> Vec<WireFrame> {
    let mut encoder = Encoder::new(dialect, THREAD, RUN, fidelity);
    let (mut window, mut frames, mut out) = (Window::default(), Frames::default(), Vec::new());
    for record in records {
        window.absorb(record);
        frames.clear();
        encoder.step(record, &window, &mut frames);
        out.extend(frames.iter().map(|(name, data)| (name.map(str::to_owned), data.to_vec())));
    }
    out
}

/// The records that frames become, in a log that trusts them.
pub(crate) fn decode(frames: &[WireFrame], dialect: Dialect) -> Result<Vec<Record>, String> {
    decode_into(&mut RunState::new(THREAD, RUN), frames, dialect)
}

/// The records that frames become in a run that may follow another.
pub(crate) fn decode_into(
    state: &mut RunState,
    frames: &[WireFrame],
    dialect: Dialect,
) -> Result<Vec<Record>, String> {
    let mut decoder = Decoder::new(dialect);
    let (mut window, mut records) = (Window::default(), Vec::new());
    for (name, data) in frames {
        let show = |error| format!("{error}: {}", String::from_utf8_lossy(data));
        let opened = decoder.open(name.as_deref(), data).map_err(show)?;
        let (seq, mut entries) = (records.len() as u64 + 1, Vec::new());
        let mut builder = RecordBuilder::new(state, &window, Authority::Server, dialect, seq, &mut entries);
        decoder.decode(opened, &mut builder).map_err(show)?;
        let record = Record { seq, at: Timestamp(0), source_time: None, dialect: Some(dialect), entries };
        window.absorb(&record);
        records.push(record);
    }
    Ok(records)
}

fn events(records: &[Record]) -> Vec<Event> {
    let entries = records.iter().flat_map(|record| &record.entries);
    entries.map(|entry| without_envelope(entry.event.clone())).collect()
}

/// A frame of unknown type is kept as it came, and each reader gives it an envelope of its own.
fn without_envelope(mut event: Event) -> Event {
    if let Body::Foreign(foreign) = &mut event.body
        && let Ok(Value::Object(mut frame)) = foreign.frame.to_value()
    {
        frame.retain(|key, _| !ENVELOPE.contains(&key.as_str()));
        foreign.frame = Json::from_value(&Value::Object(frame));
    }
    event
}

const ENVELOPE: &[&str] = &[
    "seq",
    "at",
    "thread_id",
    "run_id",
    "session_id",
    "event_id",
    "node_id",
    "metadata",
    "timestamp",
    "conversation_id",
    "threadId",
    "runId",
];

/// Makes a record of each event. They have no dialect, so none takes them for its own frames.
pub(crate) fn one_each(events: impl IntoIterator<Item = Event>, origin: EventOrigin) -> Vec<Record> {
    let record = |(seq, event)| Record {
        seq,
        at: Timestamp(0),
        source_time: None,
        dialect: None,
        entries: vec![Entry { event, origin }],
    };
    (1..).zip(events).map(record).collect()
}

fn as_actions(records: &[Record]) -> Vec<Record> {
    let entries = records.iter().flat_map(|record| &record.entries);
    one_each(entries.map(|entry| entry.event.clone()), EventOrigin::Server)
}

/// What a person sees of a run, without ids and times.
pub(crate) fn seen(records: &[Record], dialect: Dialect) -> Value {
    let mut message = MessageState::new(RUN);
    records.iter().for_each(|record| message.apply_record(record));
    let call_at = |id: &Option<String>| {
        id.as_ref().map(|id| message.tool_calls.iter().position(|call| call.tool_id == *id))
    };
    let calls: Vec<Value> = message
        .tool_calls
        .iter()
        .map(|call| {
            let error = call.error.as_ref().map(|error| error.message.clone());
            let result = call.result.as_ref().map(|result| result.text_form().into_owned());
            json!({
                "name": call.tool_name,
                "arguments": call.arguments.to_value().unwrap(),
                "arguments_text": call.arguments_text,
                "status": call.status,
                "result": result.or(error).unwrap_or_default(),
            })
        })
        .collect();
    let blocks: Vec<Value> = message
        .data_blocks
        .iter()
        .map(|block| {
            json!({
                "type": block.data_type,
                "data": block.data.to_value().unwrap(),
                "metadata": block.metadata.as_ref().map(|json| json.to_value().unwrap()),
                "call": call_at(&block.tool_id),
            })
        })
        .collect();
    let questions: Vec<Value> = message
        .interactions
        .iter()
        .map(|asked| {
            json!({
                "kind": asked.kind,
                "status": asked.status,
                "title": asked.title,
                "description": asked.description,
                "schema": asked.schema.as_ref().map(|json| json.to_value().unwrap()),
                "ui": asked.ui.as_ref().map(|json| json.to_value().unwrap()),
                "call": call_at(&asked.tool_id),
                "values": asked.values.as_ref().map(|json| json.to_value().unwrap()),
                "reason": asked.reason,
            })
        })
        .collect();
    let steps: Vec<Value> =
        message.steps.iter().map(|step| json!([step.name, step.status, step.error])).collect();
    json!({
        "text": Some(&message.main_content).filter(|_| dialect != Dialect::SocialApp),
        "thinking": thinking(records, &message, dialect),
        "messages": messages(records, dialect),
        "calls": calls,
        "data": blocks,
        "questions": questions,
        "steps": steps,
        "status": message.status,
        "streaming": message.is_streaming,
        "error": message.error_message,
        "notices": message.notices.iter().map(|notice| json!([notice.level, notice.message])).collect::<Vec<_>>(),
        "usage": message.usage.clone().filter(|_| tells_usage(dialect, &message)),
    })
}

/// All thinking. social-app tells each thought when it is whole, so that of two at a time the one that ends first
/// comes first: of it, the thoughts are compared in any order.
fn thinking(records: &[Record], message: &MessageState, dialect: Dialect) -> String {
    if dialect != Dialect::SocialApp {
        return message.thinking_content.clone();
    }
    let mut thoughts: Vec<(String, String)> = Vec::new();
    for event in events(records) {
        match event.body {
            Body::ThinkingStarted(started) => thoughts.push((started.message_id, String::new())),
            Body::ThinkingDelta(delta) => {
                let (_, text) = thoughts.iter_mut().rfind(|(id, _)| *id == delta.message_id).unwrap();
                text.push_str(&delta.content);
            }
            Body::ThinkingFinished(finished) => {
                let (_, text) = thoughts.iter_mut().rfind(|(id, _)| *id == finished.message_id).unwrap();
                *text = finished.content.unwrap_or(std::mem::take(text));
            }
            _ => {}
        }
    }
    let mut texts: Vec<String> = thoughts.into_iter().map(|(_, text)| text).collect();
    texts.sort();
    texts.concat()
}

/// Most dialects sum tokens up where a run ends, and social-app shows none. No tokens are as good as nothing
/// said of them.
fn tells_usage(dialect: Dialect, message: &MessageState) -> bool {
    match dialect {
        _ if message.usage == Some(UsageState::default()) => false,
        Dialect::SocialApp => false,
        Dialect::AgUi | Dialect::StreamingEngine | Dialect::EasyflowChat => message.status.is_closed(),
        _ => true,
    }
}

/// The texts of the assistant, in the order they begin. social-app tells each when it is whole, so that of two
/// at a time the one that ends first comes first.
fn messages(records: &[Record], dialect: Dialect) -> Vec<String> {
    let mut order: Vec<(String, String)> = Vec::new();
    for event in events(records) {
        match event.body {
            Body::TextStarted(started) if started.role.as_deref().is_none_or(|role| role == "assistant") => {
                order.push((started.message_id, String::new()));
            }
            Body::TextDelta(delta) => {
                if let Some((_, text)) = order.iter_mut().rfind(|(id, _)| *id == delta.message_id) {
                    text.push_str(&delta.content);
                }
            }
            Body::TextFinished(finished) => {
                let text = order.iter_mut().rfind(|(id, _)| *id == finished.message_id);
                if let (Some((_, text)), Some(content)) = (text, finished.content) {
                    *text = content;
                }
            }
            _ => {}
        }
    }
    let texts = order.into_iter().map(|(_, text)| text).filter(|text| !text.is_empty());
    let mut texts: Vec<String> = texts.collect();
    if dialect == Dialect::SocialApp {
        texts.sort();
    }
    texts
}

fn show_frames(frames: &[WireFrame]) -> String {
    frames.iter().map(|(_, data)| String::from_utf8_lossy(data).into_owned()).collect::<Vec<_>>().join("\n  ")
}

fn show(records: &[Record]) -> String {
    let line = |record: &Record| {
        record
            .entries
            .iter()
            .map(|entry| entry.event.to_json().text().to_owned())
            .collect::<Vec<_>>()
            .join(" + ")
    };
    records.iter().map(line).collect::<Vec<_>>().join("\n  ")
}

fn same_events(
    what: &str,
    expected: &[Event],
    found: &[Event],
    frames: &[WireFrame],
) -> Result<(), TestCaseError> {
    if expected == found {
        return Ok(());
    }
    let at = expected.iter().zip(found).take_while(|(expected, found)| expected == found).count();
    let line =
        |events: &[Event]| events.get(at).map_or("nothing".into(), |event| event.to_json().text().to_owned());
    let problem = format!(
        "{what}: event {at}\n  expected {}\n  found    {}\nframes\n  {}",
        line(expected),
        line(found),
        show_frames(frames)
    );
    Err(TestCaseError::fail(problem))
}

fn keeps_what_a_person_sees(records: &[Record], dialect: Dialect) -> Result<(), TestCaseError> {
    let is_over = events(records).last().is_some_and(|event| event.body.is_terminal());
    // social-app tells a text when it is whole.
    if dialect == Dialect::SocialApp && !is_over {
        return Ok(());
    }
    let frames = encode(records, dialect, Fidelity::Native);
    let once = decode(&frames, dialect).map_err(TestCaseError::fail)?;
    let (expected, found) = (seen(records, dialect), seen(&once, dialect));
    if expected != found {
        let differ: Vec<String> = expected
            .as_object()
            .unwrap()
            .iter()
            .filter(|(key, value)| found[key.as_str()] != **value)
            .map(|(key, value)| format!("{key}:\n  expected {value}\n  found    {}", found[key.as_str()]))
            .collect();
        let problem = format!(
            "{dialect} does not keep {}\nrun\n  {}\nframes\n  {}\nread\n  {}",
            differ.join("\n"),
            show(records),
            show_frames(&frames),
            show(&once)
        );
        return Err(TestCaseError::fail(problem));
    }
    Ok(())
}

fn is_idempotent(records: &[Record], dialect: Dialect) -> Result<(), TestCaseError> {
    let frames = encode(records, dialect, Fidelity::Native);
    let once = decode(&frames, dialect).map_err(TestCaseError::fail)?;
    for (form, again) in [("as its own frames", once.clone()), ("as events", as_actions(&once))] {
        let frames = encode(&again, dialect, Fidelity::Native);
        let twice = decode(&frames, dialect).map_err(TestCaseError::fail)?;
        let what = format!("{dialect} twice, {form}\nrun\n  {}\nonce\n  {}", show(records), show(&once));
        let told = |records: &[Record]| told_in_time(without_last_resumption(events(records)), dialect);
        let (once, twice) = (renamed(told(&once)), renamed(told(&twice)));
        same_events(&what, &once, &twice, &frames)?;
    }
    Ok(())
}

fn keeps_every_event_in_full(records: &[Record], dialect: Dialect) -> Result<(), TestCaseError> {
    let frames = encode(records, dialect, Fidelity::Full);
    let read = decode(&frames, dialect).map_err(TestCaseError::fail)?;
    let mut expected = events(records);
    if dialect == Dialect::SocialApp {
        expected.retain(|event| !matches!(event.body, Body::Usage(_) | Body::Metrics(_)));
        expected.iter_mut().for_each(hide_figures);
    }
    let what = format!("{dialect} in full\nrun\n  {}", show(records));
    same_events(&what, &without_last_resumption(expected), &without_last_resumption(events(&read)), &frames)
}

/// Takes out what social-app never shows, whatever the fidelity.
fn hide_figures(event: &mut Event) {
    let summary = match &mut event.body {
        Body::RunStarted(started) => {
            started.input = None;
            return;
        }
        Body::RunCompleted(completed) => &mut completed.summary,
        Body::RunFailed(failed) => &mut failed.summary,
        Body::RunCancelled(cancelled) => &mut cancelled.summary,
        _ => return,
    };
    *summary = summary.take().and_then(|told| {
        let hidden = Summary { steps: told.steps, tool_calls: told.tool_calls, ..Summary::default() };
        (hidden != Summary::default()).then_some(hidden)
    });
}

/// The end of a run settles its questions, and that is no resumption; read one by one, the last of these
/// answers looks like any other, so that the guard resumes the run just before its end.
fn without_last_resumption(mut events: Vec<Event>) -> Vec<Event> {
    if let [.., Event { body: Body::RunResumed(_), .. }, end] = events.as_slice()
        && end.body.is_terminal()
    {
        events.remove(events.len() - 2);
    }
    events
}

/// The events with their messages numbered as they come: a dialect may have shown some under other ids.
fn renamed(mut events: Vec<Event>) -> Vec<Event> {
    let mut known: Vec<String> = Vec::new();
    let mut number = |id: &mut String| {
        let at = known.iter().position(|known| known == id).unwrap_or_else(|| {
            known.push(id.clone());
            known.len() - 1
        });
        *id = format!("message {at}");
    };
    for event in &mut events {
        match &mut event.body {
            Body::TextStarted(started) => number(&mut started.message_id),
            Body::TextDelta(delta) => number(&mut delta.message_id),
            Body::TextFinished(finished) => number(&mut finished.message_id),
            Body::ThinkingStarted(started) => number(&mut started.message_id),
            Body::ThinkingDelta(delta) => number(&mut delta.message_id),
            Body::ThinkingFinished(finished) => number(&mut finished.message_id),
            _ => {}
        }
    }
    events
}

/// The events without tokens that the dialect will only tell at the run's end.
fn told_in_time(mut events: Vec<Event>, dialect: Dialect) -> Vec<Event> {
    let is_over = events.last().is_some_and(|event| event.body.is_terminal());
    if !is_over && matches!(dialect, Dialect::AgUi | Dialect::StreamingEngine | Dialect::EasyflowChat) {
        events.retain(|event| !matches!(event.body, Body::Usage(_)));
    }
    events
}

fn passes_the_rules(records: &[Record], fidelity: Fidelity) -> Result<(), TestCaseError> {
    let frames = encode(records, Dialect::AgUi, fidelity);
    let mut client = Client::default();
    for (_, data) in &frames {
        let frame: Value = serde_json::from_slice(data).unwrap();
        if let Err(problem) = client.take(&frame) {
            let (run, frames) = (show(records), show_frames(&frames));
            let problem = format!("{problem}\nat {frame}\nrun\n  {run}\nframes\n  {frames}");
            return Err(TestCaseError::fail(problem));
        }
    }
    Ok(())
}

/// The answer is complete once, on its last piece, in that piece's format; and not before the run ends.
fn completes_its_answer_once(records: &[Record], fidelity: Fidelity) -> Result<(), TestCaseError> {
    let frames = encode(records, Dialect::StreamingEngine, fidelity);
    let frames: Vec<Value> = frames.iter().map(|(_, data)| serde_json::from_slice(data).unwrap()).collect();
    let contents: Vec<&Value> = frames.iter().filter(|frame| frame["type"] == "content").collect();
    let is_over = events(records).last().is_some_and(|event| event.body.is_terminal());
    let is_complete = |frame: &Value| frame["data"]["is_complete"] == true;
    let ends_text = |frame: &Value| frame["metadata"]["runwire"][0]["type"] == "text.finished";
    let piece = contents.iter().rfind(|frame| !is_complete(frame) && !ends_text(frame));
    let complete: Vec<usize> = (0..contents.len()).filter(|at| is_complete(contents[*at])).collect();
    let expected = if is_over && !contents.is_empty() { vec![contents.len() - 1] } else { Vec::new() };
    prop_assert_eq!(&complete, &expected, "run\n  {}\ncontents {:?}", show(records), contents);
    if let (Some(at), Some(piece)) = (complete.first(), piece) {
        prop_assert_eq!(&contents[*at]["data"]["format"], &piece["data"]["format"]);
    }
    Ok(())
}

/// The same runs every time, so that a change is judged by itself; `PROPTEST_CASES` asks for other ones, and
/// for as many as it says.
pub(crate) fn config() -> ProptestConfig {
    let asked = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok());
    ProptestConfig {
        cases: asked.unwrap_or(200),
        rng_seed: if asked.is_some() { RngSeed::Random } else { RngSeed::Fixed(0) },
        failure_persistence: None,
        max_shrink_iters: 20_000,
        ..ProptestConfig::default()
    }
}

/// One test a dialect, so that a failure names it.
macro_rules! each_dialect {
    ($($module:ident: $dialect:ident),* $(,)?) => {$(
        mod $module {
            use super::*;

            proptest! {
                #![proptest_config(config())]

                #[test]
                fn a_person_who_watches_sees_the_same(run in runs::run()) {
                    keeps_what_a_person_sees(&runs::carry_out(&run), Dialect::$dialect)?;
                }

                #[test]
                fn translating_twice_changes_nothing_more(run in runs::run()) {
                    is_idempotent(&runs::carry_out(&run), Dialect::$dialect)?;
                }

                #[test]
                fn full_fidelity_keeps_every_event(run in runs::run()) {
                    keeps_every_event_in_full(&runs::carry_out(&run), Dialect::$dialect)?;
                }
            }
        }
    )*};
}

each_dialect! {
    runwire: Runwire,
    loom: Loom,
    loom_export: LoomExport,
    streaming_engine: StreamingEngine,
    agio: Agio,
    ag_ui: AgUi,
    social_app: SocialApp,
    easyflow_chat: EasyflowChat,
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn a_streaming_engine_answer_is_complete_once_on_its_last_piece(run in runs::run()) {
        let records = runs::carry_out(&run);
        completes_its_answer_once(&records, Fidelity::Native)?;
        completes_its_answer_once(&records, Fidelity::Full)?;
        let frames = encode(&records, Dialect::StreamingEngine, Fidelity::Native);
        let own = decode(&frames, Dialect::StreamingEngine).map_err(TestCaseError::fail)?;
        completes_its_answer_once(&own, Fidelity::Native)?;
    }

    #[test]
    fn every_ag_ui_stream_passes_the_official_clients_rules(run in runs::run()) {
        let records = runs::carry_out(&run);
        passes_the_rules(&records, Fidelity::Native)?;
        passes_the_rules(&records, Fidelity::Full)?;
    }
}

#[test]
fn a_fatal_warning_is_an_error_in_every_dialect() {
    let notice = Notice {
        level: Level::Warning,
        message: "out of quota".into(),
        fatal: Some(true),
        ..Default::default()
    };
    let bodies: [Body; 3] = [RunStarted::default().into(), notice.into(), RunCompleted::default().into()];
    let entries =
        bodies.map(|body| Entry { event: Event::new(body), origin: EventOrigin::Producer }).to_vec();
    let record = Record { seq: 1, at: Timestamp(0), source_time: None, dialect: None, entries };
    for dialect in Dialect::READABLE {
        keeps_what_a_person_sees(std::slice::from_ref(&record), dialect).unwrap();
    }
}

#[test]
fn every_vector_passes_the_official_clients_rules() {
    for case in vectors::cases() {
        let input = case.input();
        for fidelity in [Fidelity::Native, Fidelity::Full] {
            let options = runwire_model::convert::Options { fidelity, ..case.options(Dialect::AgUi) };
            let mut clients = std::collections::HashMap::<String, Client>::new();
            let mut thread = String::new();
            for (cursor, _, data) in vectors::convert(&input, options).unwrap().frames {
                let frame: Value = serde_json::from_slice(&data).unwrap();
                if let Some(named) = frame["threadId"].as_str() {
                    thread = named.to_owned();
                }
                let taken = clients.entry(thread.clone()).or_default().take(&frame);
                taken.unwrap_or_else(|problem| panic!("{} at {cursor}: {problem}: {frame}", case.label()));
            }
        }
    }
}
