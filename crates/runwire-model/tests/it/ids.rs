//! Ids that a decoder mints, and ids of a producer that look the same.

use runwire_model::dialect::{Dialect, Fidelity};
use runwire_model::event::{
    Body, Event, RunStarted, TextDelta, TextFinished, TextStarted, ThinkingDelta, ThinkingStarted,
};
use runwire_model::record::{EventOrigin, Record};
use runwire_model::run::RunState;
use serde_json::json;

use super::properties::{WireFrame, decode, decode_into, encode, one_each, seen};
use super::runs::RUN;

/// Dialects whose pieces have no id, so that reading them mints one.
const WITHOUT_IDS: [Dialect; 4] =
    [Dialect::Loom, Dialect::LoomExport, Dialect::StreamingEngine, Dialect::Agio];

fn records(bodies: Vec<Body>) -> Vec<Record> {
    one_each(bodies.into_iter().map(Event::new), EventOrigin::Server)
}

fn minted(kind: &str, number: usize) -> String {
    format!("{RUN}:{kind}{number}")
}

fn started(id: &str) -> Body {
    TextStarted { message_id: id.into(), role: None }.into()
}

fn piece(id: &str, content: &str) -> Body {
    TextDelta { message_id: id.into(), content: content.into(), format: None }.into()
}

fn finished(id: &str) -> Body {
    TextFinished { message_id: id.into(), ..Default::default() }.into()
}

fn keeps_messages(bodies: Vec<Body>) {
    let records = records(bodies);
    for dialect in WITHOUT_IDS {
        let read = decode(&encode(&records, dialect, Fidelity::Native), dialect).unwrap();
        let (expected, found) = (seen(&records, dialect), seen(&read, dialect));
        assert_eq!(found["messages"], expected["messages"], "{dialect}");
        assert_eq!(found["text"], expected["text"], "{dialect}");
    }
}

#[test]
fn a_message_named_like_a_minted_one_stays_apart_from_it() {
    let own = minted("m", 1);
    // Beside the text whose id is minted, and after it.
    let both = [started("a"), piece("a", "one"), started(&own), piece(&own, "two"), piece("a", " more")];
    keeps_messages([vec![RunStarted::default().into()], both.to_vec()].concat());
    let then = [started("b"), piece("b", "three"), piece(&own, " again"), finished(&own), piece("b", "!")];
    keeps_messages(
        [vec![RunStarted::default().into(), finished("a")], both.to_vec(), then.to_vec()].concat(),
    );
}

#[test]
fn a_thought_named_like_a_minted_one_stays_apart_from_it() {
    let thought = |id: &str, content: &str| -> [Body; 2] {
        let delta = ThinkingDelta { message_id: id.into(), content: content.into(), stage: None };
        [ThinkingStarted { message_id: id.into(), stage: None }.into(), delta.into()]
    };
    let slot = |body: &Body| {
        let event = Event::new(body.clone()).to_json().to_value().unwrap();
        frame(json!({ "type": "custom", "value": { "runwire": event } }))
    };
    let [started, delta] = thought(&minted("t", 1), "own");
    let native = frame(json!({ "type": "thought_chunk", "content": "native", "id": "agent" }));
    for frames in
        [vec![slot(&started), slot(&delta), native.clone()], vec![native, slot(&started), slot(&delta)]]
    {
        let read = decode(&frames, Dialect::Loom).unwrap();
        let entries = read.iter().flat_map(|record| &record.entries);
        let starts = entries.filter(|entry| matches!(entry.event.body, Body::ThinkingStarted(_)));
        assert_eq!(starts.count(), 2);
    }
}

fn frame(frame: serde_json::Value) -> WireFrame {
    (None, frame.to_string().into_bytes())
}

#[test]
fn a_call_without_an_id_is_not_taken_for_one_named_like_a_minted_one() {
    let called = |id: Option<String>| {
        frame(json!({ "type": "tool_call", "call_id": id, "name": "search", "arguments": {} }))
    };
    let frames = [called(Some(minted("c", 2))), called(None)];
    let read = decode(&frames, Dialect::Loom).unwrap();
    assert_eq!(seen(&read, Dialect::Loom)["calls"].as_array().unwrap().len(), 2);
}

#[test]
fn an_alias_holds_after_the_state_was_stored() {
    let own = minted("m", 1);
    let bodies =
        vec![started("a"), piece("a", "one"), started(&own), piece(&own, "two"), piece(&own, "three")];
    let frames = encode(&records(bodies), Dialect::Loom, Fidelity::Native);
    let mut state = RunState::new("thread-p", RUN);
    let mut read = Vec::new();
    for frame in &frames {
        read.extend(decode_into(&mut state, std::slice::from_ref(frame), Dialect::Loom).unwrap());
        state = serde_json::from_str(&serde_json::to_string(&state).unwrap()).unwrap();
    }
    assert_eq!(seen(&read, Dialect::Loom)["messages"], json!(["one", "twothree"]));
}

#[test]
fn calls_that_a_producer_names_like_minted_ones_keep_their_names() {
    let (first, second) = (minted("c", 1), minted("c", 2));
    let called = |id: &str| json!({ "type": "tool_call", "call_id": id, "name": "search", "arguments": {} });
    let ended = |id: &str, result: &str| json!({ "type": "tool_end", "call_id": id, "name": "search", "result": result, "is_error": false });
    let sent = [called(&first), called(&second), ended(&second, "two"), ended(&first, "one")];
    let read = decode(&sent.map(frame), Dialect::Loom).unwrap();
    let results = |read: &[Record], dialect| -> Vec<String> {
        let calls = seen(read, dialect)["calls"].clone();
        calls.as_array().unwrap().iter().map(|call| call["result"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(results(&read, Dialect::Loom), ["one", "two"]);
    for dialect in [Dialect::Loom, Dialect::LoomExport] {
        let once = decode(&encode(&read, dialect, Fidelity::Native), dialect).unwrap();
        let twice = decode(&encode(&once, dialect, Fidelity::Native), dialect).unwrap();
        assert_eq!(results(&once, dialect), ["one", "two"], "{dialect}");
        assert_eq!(results(&twice, dialect), ["one", "two"], "{dialect}");
    }
    // Frames without an id still get none.
    let bare = json!({ "type": "tool_call", "name": "search", "arguments": {} });
    let read = decode(&[frame(bare)], Dialect::Loom).unwrap();
    let written = encode(&read, Dialect::Loom, Fidelity::Native);
    let names_call = |(_, data): &WireFrame| String::from_utf8_lossy(data).contains("call_id");
    assert!(written.len() == 2 && !written.iter().any(names_call));
}
