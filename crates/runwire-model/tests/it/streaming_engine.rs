//! StreamingEngine's own frames read back: `is_complete: true` comes once a run, without holding anything back.

use runwire_model::dialect::{Dialect, Fidelity};
use serde_json::{Value, json};

use super::properties::{WireFrame, decode, encode};

const SE: Dialect = Dialect::StreamingEngine;

fn frame(kind: &str, data: Value) -> WireFrame {
    let frame = json!({ "type": kind, "data": data, "metadata": {} });
    (None, frame.to_string().into_bytes())
}

fn content(content: &str, is_complete: bool) -> WireFrame {
    frame("content", json!({ "content": content, "format": "html", "is_complete": is_complete }))
}

fn call() -> [WireFrame; 2] {
    [
        frame("tool_call_start", json!({ "tool_id": "c", "tool_name": "n", "arguments": {} })),
        frame("tool_call_end", json!({ "tool_id": "c", "status": "success" })),
    ]
}

fn run(pieces: &[WireFrame]) -> Vec<WireFrame> {
    let mut frames = vec![frame("session_start", json!({ "session_id": "t", "request_id": "run" }))];
    frames.extend_from_slice(pieces);
    frames.push(frame("session_end", json!({ "status": "completed" })));
    frames
}

/// The `data` of the contents that a producer's frames become in their own dialect.
fn contents(frames: &[WireFrame]) -> Vec<Value> {
    let written = encode(&decode(frames, SE).unwrap(), SE, Fidelity::Native);
    let again = encode(&decode(&written, SE).unwrap(), SE, Fidelity::Native);
    assert_eq!(written, again, "what was read back is read back the same");
    let frames = written.iter().map(|(_, data)| serde_json::from_slice::<Value>(data).unwrap());
    frames.filter(|frame| frame["type"] == "content").map(|frame| frame["data"].clone()).collect()
}

fn piece(content: &str, is_complete: bool) -> Value {
    json!({ "content": content, "format": "html", "is_complete": is_complete })
}

#[test]
fn a_last_piece_stays_one_frame() {
    let frames = run(&[content("a", false), content("b", true)]);
    assert_eq!(contents(&frames), [piece("a", false), piece("b", true)]);
}

#[test]
fn an_answer_is_complete_once_though_the_producer_says_so_of_every_message() {
    let [called, ended] = call();
    let frames = run(&[content("a", true), called, ended, content("b", true), content("c", true)]);
    let end = || json!({ "content": "", "is_complete": false });
    let expected = [piece("a", true), piece("b", false), end(), piece("c", false), end()];
    assert_eq!(contents(&frames), expected);
}

#[test]
fn an_answer_that_goes_on_after_its_last_piece_is_not_complete_again() {
    let frames = run(&[content("a", true), content("b", false)]);
    assert_eq!(contents(&frames), [piece("a", true), piece("b", false)]);
}

#[test]
fn the_messages_of_a_producer_that_completes_each_of_them_stay_apart() {
    let frames = run(&[content("a", true), content("b", true), content("c", false)]);
    let texts =
        |records: &[runwire_model::record::Record]| super::properties::seen(records, SE)["messages"].clone();
    let records = decode(&frames, SE).unwrap();
    assert_eq!(texts(&records), json!(["a", "b", "c"]));
    let written = encode(&records, SE, Fidelity::Native);
    assert_eq!(texts(&decode(&written, SE).unwrap()), json!(["a", "b", "c"]));
}

#[test]
fn an_empty_last_piece_is_a_frame_of_its_own() {
    // The answer's only piece, and one after others.
    assert_eq!(contents(&run(&[content("", true)])), [piece("", true)]);
    let frames = run(&[content("a", false), content("", true)]);
    assert_eq!(contents(&frames), [piece("a", false), piece("", true)]);
}

#[test]
fn an_empty_last_piece_after_an_ended_text_is_told_at_the_runs_end() {
    let [called, ended] = call();
    let frames = run(&[content("a", false), called, ended, content("", true)]);
    assert_eq!(contents(&frames), [piece("a", false), piece("", true)]);
    let records = decode(&frames, SE).unwrap();
    assert_eq!(super::properties::seen(&records, SE)["messages"], json!(["a"]), "it begins no message");
}

#[test]
fn the_last_content_is_the_complete_one_beside_a_text_that_was_left_open() {
    let input = [
        json!({"type": "run.started"}),
        json!({"type": "subagent.started", "subagent_run_id": "sa"}),
        json!({"type": "text.delta", "message_id": "m", "content": "sub", "subagent_run_id": "sa"}),
        json!({"type": "run.completed", "reply": "main"}),
    ];
    let input: Vec<_> = input.iter().map(|frame| (None, frame.to_string().into_bytes())).collect();
    let frames = encode(&decode(&input, Dialect::Runwire).unwrap(), SE, Fidelity::Native);
    let frames = frames.iter().map(|(_, data)| serde_json::from_slice::<Value>(data).unwrap());
    let contents: Vec<Value> = frames.filter(|frame| frame["type"] == "content").collect();
    let complete = |content: &&Value| content["data"]["is_complete"] == true;
    assert_eq!(contents.iter().filter(complete).count(), 1);
    assert!(complete(&contents.last().unwrap()), "{contents:?}");
}
