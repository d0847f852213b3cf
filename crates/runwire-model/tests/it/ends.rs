//! The end of something that never began is kept as `foreign`, and breaks no reader.

use runwire_model::convert::Options;
use runwire_model::dialect::Dialect;
use serde_json::Value;

use super::ag_ui_rules::Client;
use super::vectors::convert;

/// For each dialect: a first frame, and an end of something that never began.
const CASES: [(Dialect, &str, &str); 10] = [
    (
        Dialect::EasyflowChat,
        r#"{"domain":"system","type":"status","conversation_id":"c","payload":{"state":"running"}}"#,
        r#"{"domain":"workflow","type":"status","conversation_id":"c","payload":{"node_id":"n","state":"end"}}"#,
    ),
    (
        Dialect::EasyflowChat,
        r#"{"domain":"system","type":"status","conversation_id":"c","payload":{"state":"running"}}"#,
        r#"{"domain":"interaction","type":"form_cancel","conversation_id":"c","payload":{"form_id":"f"}}"#,
    ),
    (
        Dialect::Loom,
        r#"{"type":"run_start","run_id":"r","message":"?","agent":"a","session_id":"c"}"#,
        r#"{"type":"node_exit","id":"n","result":"Ok","session_id":"c"}"#,
    ),
    (
        Dialect::Agio,
        r#"{"type":"run_started","run_id":"r","timestamp":"2026-11-12T08:15:00.120Z","data":{"query":"?"}}"#,
        r#"{"type":"step_completed","run_id":"r","timestamp":"2026-11-12T08:15:00.120Z","data":{"step":1}}"#,
    ),
    (
        Dialect::AgUi,
        r#"{"type":"RUN_STARTED","threadId":"c","runId":"r"}"#,
        r#"{"type":"STEP_FINISHED","stepName":"n"}"#,
    ),
    (
        Dialect::AgUi,
        r#"{"type":"RUN_STARTED","threadId":"c","runId":"r"}"#,
        r#"{"type":"TEXT_MESSAGE_END","messageId":"m"}"#,
    ),
    (
        Dialect::AgUi,
        r#"{"type":"RUN_STARTED","threadId":"c","runId":"r"}"#,
        r#"{"type":"REASONING_MESSAGE_END","messageId":"m"}"#,
    ),
    (
        Dialect::AgUi,
        r#"{"type":"RUN_STARTED","threadId":"c","runId":"r"}"#,
        r#"{"type":"REASONING_END","messageId":"m"}"#,
    ),
    (
        Dialect::Runwire,
        r#"{"type":"run.started","thread_id":"c","run_id":"r"}"#,
        r#"{"type":"step.finished","name":"n","thread_id":"c","run_id":"r"}"#,
    ),
    (
        Dialect::Runwire,
        r#"{"type":"run.started","thread_id":"c","run_id":"r"}"#,
        r#"{"type":"text.finished","message_id":"m","content":"x","thread_id":"c","run_id":"r"}"#,
    ),
];

fn converted(from: Dialect, to: Dialect, frames: &[&str]) -> Vec<Value> {
    let input: Vec<_> = frames.iter().map(|frame| (None, frame.as_bytes().to_vec())).collect();
    let outcome = convert(&input, Options { from: Some(from), ..Options::to(to) }).unwrap();
    outcome.frames.iter().map(|(_, _, data)| serde_json::from_slice(data).unwrap()).collect()
}

#[test]
fn the_end_of_what_never_began_is_kept_as_foreign() {
    for (dialect, first, end) in CASES {
        let events = converted(dialect, Dialect::Runwire, &[first, end]);
        let kept: Vec<&Value> = events.iter().filter(|event| event["type"] == "foreign").collect();
        let [kept] = kept[..] else { panic!("{end}: {events:?}") };
        assert_eq!(kept["frame"], serde_json::from_str::<Value>(end).unwrap());
        assert_eq!(kept["dialect"], dialect.name());
    }
}

#[test]
fn in_its_own_dialect_such_an_end_comes_back_and_the_official_client_is_told_in_raw() {
    for (dialect, first, end) in CASES {
        let end: Value = serde_json::from_str(end).unwrap();
        let frames = converted(dialect, dialect, &[first, &end.to_string()]);
        let payload = |frame: &Value| match dialect {
            Dialect::EasyflowChat => (frame["domain"].clone(), frame["payload"].clone()),
            Dialect::AgUi => (frame["type"].clone(), frame["stepName"].clone()),
            _ => (frame["type"].clone(), frame["data"].clone()),
        };
        let comes_back = frames.iter().filter(|frame| payload(frame) == payload(&end)).count();
        let is_open = matches!(dialect, Dialect::EasyflowChat | Dialect::Loom | Dialect::Agio);
        assert_eq!(comes_back, usize::from(is_open), "{end}: {frames:?}");
        let mut client = Client::default();
        for frame in converted(dialect, Dialect::AgUi, &[first, &end.to_string()]) {
            client.take(&frame).unwrap_or_else(|error| panic!("{end}: {frame}: {error}"));
        }
    }
}

#[test]
fn an_end_that_the_guard_has_told_is_no_frame() {
    let frames = [
        r#"{"type":"RUN_STARTED","threadId":"c","runId":"r"}"#,
        r#"{"type":"TEXT_MESSAGE_START","messageId":"m"}"#,
        r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"x"}"#,
        r#"{"type":"TOOL_CALL_START","toolCallId":"t","toolCallName":"n"}"#,
        r#"{"type":"TEXT_MESSAGE_END","messageId":"m"}"#,
    ];
    let events = converted(Dialect::AgUi, Dialect::Runwire, &frames);
    assert!(events.iter().all(|event| event["type"] != "foreign"), "{events:?}");
}

#[test]
fn the_end_of_a_reasoning_span_that_began_is_no_frame() {
    for message in ["m", "s"] {
        let frames = [
            r#"{"type":"RUN_STARTED","threadId":"c","runId":"r"}"#.to_owned(),
            r#"{"type":"REASONING_START","messageId":"s"}"#.to_owned(),
            format!(r#"{{"type":"REASONING_MESSAGE_START","messageId":"{message}","role":"reasoning"}}"#),
            format!(r#"{{"type":"REASONING_MESSAGE_CONTENT","messageId":"{message}","delta":"hm"}}"#),
            format!(r#"{{"type":"REASONING_MESSAGE_END","messageId":"{message}"}}"#),
            r#"{"type":"REASONING_END","messageId":"s"}"#.to_owned(),
        ];
        let frames: Vec<&str> = frames.iter().map(String::as_str).collect();
        let events = converted(Dialect::AgUi, Dialect::Runwire, &frames);
        assert!(events.iter().all(|event| event["type"] != "foreign"), "{events:?}");
    }
}
