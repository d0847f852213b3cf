//! What breaks a document is found, and what it allows passes.

use runwire_check::{CheckState, CheckedFrame, Finding, Side};
use runwire_model::dialect::Dialect;

fn check(state: &mut CheckState, frame: &str) -> Vec<Finding> {
    let mut findings = state.check(CheckedFrame { name: None, data: frame.as_bytes() }, 0, Side::Producer);
    findings.retain(Finding::is_problem);
    findings
}

/// What is found in the last of some frames: the rules and the pointers.
fn found(dialect: Dialect, frames: &[&str]) -> Vec<(&'static str, Option<String>)> {
    let mut state = CheckState::new(dialect);
    let findings = frames.iter().map(|frame| check(&mut state, frame)).last().unwrap();
    findings.into_iter().map(|finding| (finding.rule.as_str(), finding.pointer)).collect()
}

fn one(code: &'static str, pointer: &str) -> Vec<(&'static str, Option<String>)> {
    vec![(code, Some(pointer.to_owned()))]
}

fn engine(sequence: u64, kind: &str, data: &str) -> String {
    let metadata = format!(r#"{{"request_id":"q","timestamp":1,"sequence":{sequence}}}"#);
    format!(r#"{{"type":"{kind}","data":{data},"metadata":{metadata}}}"#)
}

#[test]
fn unknown_values_of_closed_sets_are_found_with_their_pointer() {
    let start = engine(0, "session_start", r#"{"session_id":"s","request_id":"q"}"#);
    let se = |kind, data| found(Dialect::StreamingEngine, &[&start, &engine(1, kind, data)]);
    assert_eq!(se("thinking", r#"{"content":"x","stage":"dreaming"}"#), one("bad_value", "/data/stage"));
    assert_eq!(se("content", r#"{"content":"x","format":"latex"}"#), one("bad_value", "/data/format"));
    assert_eq!(se("data", r#"{"data_type":"map","data":{}}"#), one("bad_value", "/data/data_type"));
    let error = r#"{"error_type":"odd","message":"m","recoverable":true}"#;
    assert_eq!(se("error", error), one("bad_value", "/data/error_type"));
    assert_eq!(
        se("tool_call_end", r#"{"tool_id":"t","status":"success"}"#),
        one("not_open", "/data/tool_id")
    );
    assert_eq!(se("content", r#"{"content":7}"#), one("wrong_type", "/data/content"));
}

#[test]
fn likely_slips_of_keys_and_types_are_found_and_new_ones_pass() {
    let start = engine(0, "session_start", r#"{"session_id":"s","request_id":"q"}"#);
    let se = |kind, data| found(Dialect::StreamingEngine, &[&start, &engine(1, kind, data)]);
    assert_eq!(se("content", r#"{"content":"x","fromat":"text"}"#), one("likely_typo", "/data/fromat"));
    assert_eq!(se("content", r#"{"content":"x","isComplete":true}"#), one("likely_typo", "/data/isComplete"));
    assert_eq!(se("contnet", r#"{"content":"x"}"#), one("likely_typo", "/type"));
    assert_eq!(se("content", r#"{"conten":"x"}"#), one("missing_field", "/data/content"));
    assert_eq!(se("content", r#"{"content":"x","language":"zh"}"#), []);
    assert_eq!(se("heartbeat", r#"{"at":1}"#), []);
    assert_eq!(found(Dialect::Loom, &[r#"{"type":"audio_chunk","id":"think"}"#]), []);
    assert_eq!(found(Dialect::Loom, &[r#"{"type":"node_entr","id":"think"}"#]), one("likely_typo", "/type"));
    let agio = r#"{"type":"image","run_id":"r","timestamp":"2026-11-12T08:15:00.120Z","data":{}}"#;
    let started = agio.replace("image", "run_started").replace("{}", r#"{"query":"?"}"#);
    assert_eq!(found(Dialect::Agio, &[&started, agio]), []);
    let easyflow = r#"{"protocol":"easyflow-chat","version":"1.1","domain":"audio","type":"chunk","conversation_id":"c","payload":{}}"#;
    assert_eq!(found(Dialect::EasyflowChat, &[easyflow]), []);
}

#[test]
fn a_tool_call_id_that_is_used_again_is_found() {
    let frame = |kind: &str, more: &str| format!(r#"{{"type":"{kind}","threadId":"t","runId":"r"{more}}}"#);
    let start = frame("RUN_STARTED", "");
    let call = frame(
        "TOOL_CALL_START",
        r#","toolCallId":"c","toolCallName":"search","messageId":"m","stage":"worker""#,
    );
    let end = frame(
        "TOOL_CALL_END",
        r#","toolCallId":"c","toolCallName":"search","messageId":"m","stage":"worker""#,
    );
    assert_eq!(found(Dialect::SocialApp, &[&start, &call, &end, &call]), one("already_used", "/toolCallId"));
    // Also in the next run of the thread.
    let mut state = CheckState::new(Dialect::SocialApp);
    for frame in [&start, &call, &end] {
        assert_eq!(check(&mut state, frame), []);
    }
    let mut next = state.next();
    assert_eq!(check(&mut next, &start), []);
    assert_eq!(check(&mut next, &call)[0].rule.as_str(), "already_used");
}

#[test]
fn the_end_of_what_never_began_is_found_in_every_dialect() {
    let agio = |kind: &str, data: &str| {
        format!(r#"{{"type":"{kind}","run_id":"r","timestamp":"2026-11-12T08:15:00.120Z","data":{data}}}"#)
    };
    let easyflow = |domain: &str, kind: &str, payload: &str| {
        let envelope = r#""protocol":"easyflow-chat","version":"1.1","conversation_id":"c""#;
        format!(r#"{{{envelope},"domain":"{domain}","type":"{kind}","payload":{payload}}}"#)
    };
    let running = easyflow("system", "status", r#"{"state":"running"}"#);
    let node = |state| easyflow("workflow", "status", &format!(r#"{{"node_id":"n","state":"{state}"}}"#));
    let form = |kind| easyflow("interaction", kind, r#"{"form_id":"f","schema":{"type":"object"}}"#);
    let ag_ui = |kind: &str, id: &str| format!(r#"{{"type":"{kind}",{id}}}"#);
    let begin = ag_ui("RUN_STARTED", r#""threadId":"t","runId":"r""#);
    let (message, step) = (r#""messageId":"m""#, r#""stepName":"n""#);
    for (dialect, first, start, end, pointer) in [
        (Dialect::EasyflowChat, &running, node("start"), node("end"), "/payload/node_id"),
        (Dialect::EasyflowChat, &running, node("START"), node("END"), "/payload/node_id"),
        (
            Dialect::Agio,
            &agio("run_started", r#"{"query":"?"}"#),
            agio("step_started", r#"{"step":1}"#),
            agio("step_completed", r#"{"step":1}"#),
            "/data/step",
        ),
        (
            Dialect::Loom,
            &r#"{"type":"run_start","run_id":"r","message":"?","agent":"a"}"#.to_owned(),
            r#"{"type":"node_enter","id":"n"}"#.to_owned(),
            r#"{"type":"node_exit","id":"n","result":"Ok"}"#.to_owned(),
            "/id",
        ),
        (Dialect::AgUi, &begin, ag_ui("STEP_STARTED", step), ag_ui("STEP_FINISHED", step), "/stepName"),
        (
            Dialect::AgUi,
            &begin,
            ag_ui("TEXT_MESSAGE_START", message),
            ag_ui("TEXT_MESSAGE_END", message),
            "/messageId",
        ),
        (
            Dialect::Runwire,
            &r#"{"type":"run.started"}"#.to_owned(),
            r#"{"type":"text.started","message_id":"m"}"#.to_owned(),
            r#"{"type":"text.finished","message_id":"m"}"#.to_owned(),
            "/message_id",
        ),
        (
            Dialect::Runwire,
            &r#"{"type":"run.started"}"#.to_owned(),
            r#"{"type":"step.started","name":"n","step_id":"n"}"#.to_owned(),
            r#"{"type":"step.finished","name":"n","step_id":"n"}"#.to_owned(),
            "/step_id",
        ),
    ] {
        let codes = |frames: &[&str]| {
            let mut found = found(dialect, frames);
            found.retain(|(code, _)| *code == "not_open");
            found
        };
        assert_eq!(codes(&[first, &end]), one("not_open", pointer), "{dialect}: {end}");
        assert_eq!(codes(&[first, &start, &end]), [], "{dialect}: {end}");
        assert_eq!(codes(&[first, &start, &end, &end]), one("not_open", pointer), "{dialect}: {end}");
    }
    assert_eq!(
        found(Dialect::EasyflowChat, &[&running, &form("form_cancel")]),
        one("not_open", "/payload/form_id")
    );
    // Between the two a person may have answered.
    let twice = [&*running, &form("form_request"), &form("form_cancel"), &form("form_cancel")];
    assert_eq!(found(Dialect::EasyflowChat, &twice), []);
    // A node that runs inside itself ends as often as it begins.
    let (enter, exit) = (node("start"), node("end"));
    assert_eq!(found(Dialect::EasyflowChat, &[&running, &enter, &enter, &enter, &exit, &exit, &exit]), []);
}

#[test]
fn a_check_that_cannot_remember_all_ids_says_so_once_and_goes_on() {
    let frame = |kind: &str, more: &str| format!(r#"{{"type":"{kind}","threadId":"t","runId":"r"{more}}}"#);
    let part = |kind: &str, id: usize| {
        frame(kind, &format!(r#","toolCallId":"{id}","toolCallName":"n","messageId":"m","stage":"worker""#))
    };
    let result = |id: usize| {
        let more = r#""toolCallName":"n","messageId":"m","stage":"worker","status":"success","result":"","error":null"#;
        frame("TOOL_CALL_RESULT", &format!(r#","tool_call_id":"{id}",{more}"#))
    };
    let ids = 3 * runwire_check::limits::REMEMBERED_IDS;
    for (side, notes) in [(Side::Producer, 1), (Side::Reader, 0)] {
        let mut state = CheckState::new(Dialect::SocialApp);
        let mut codes = |frame: &str| -> Vec<&str> {
            let findings = state.check(CheckedFrame { name: None, data: frame.as_bytes() }, 0, side);
            findings
                .iter()
                .map(|finding| finding.rule.as_str())
                .filter(|code| *code != "missing_field")
                .collect()
        };
        assert_eq!(codes(&frame("RUN_STARTED", "")), [""; 0]);
        let mut told = Vec::new();
        for id in 0..ids {
            told.extend(codes(&part("TOOL_CALL_START", id)));
            told.extend(codes(&part("TOOL_CALL_END", id)));
            told.extend(codes(&result(id)));
        }
        assert_eq!(told, vec!["unjudged"; notes], "{side:?}");
        // What is remembered is judged as before.
        assert_eq!(codes(&part("TOOL_CALL_START", 0)), ["already_used"], "{side:?}");
        let last = if notes == 0 { vec!["already_used"] } else { vec![] };
        assert_eq!(codes(&part("TOOL_CALL_START", ids - 1)), last, "{side:?}");
    }
}

#[test]
fn another_writer_or_an_answer_may_begin_and_count_anew() {
    let start = engine(0, "session_start", r#"{"session_id":"s","request_id":"q"}"#);
    let content = engine(7, "content", r#"{"content":"x"}"#);
    let mut state = CheckState::new(Dialect::StreamingEngine);
    let mut by = |frame: &str, writer| {
        let checked =
            state.check(CheckedFrame { name: None, data: frame.as_bytes() }, writer, Side::Producer);
        checked.iter().map(|finding| finding.rule.as_str()).collect::<Vec<_>>()
    };
    assert_eq!(by(&start, 1), [""; 0]);
    assert_eq!(by(&content, 1), [""; 0]);
    assert_eq!(by(&start, 2), [""; 0], "the writer is another");
    assert_eq!(by(&content, 2), [""; 0]);
    assert_eq!(by(&start, 2), ["already_open", "not_increasing"]);
}

#[test]
fn what_came_before_the_check_is_not_held_against_a_run() {
    let mut joined = CheckState::joined(Dialect::StreamingEngine);
    let end = engine(3, "tool_call_end", r#"{"tool_id":"t","status":"success"}"#);
    assert_eq!(check(&mut joined, &end), []);
    assert_eq!(check(&mut joined, &end)[0].rule.as_str(), "not_increasing");
}

#[test]
fn a_producer_of_canonical_events_leaves_out_what_the_server_adds() {
    let frames = [
        r#"{"type":"text.delta","message_id":"m","content":"x"}"#,
        r#"{"type":"text.finished","message_id":"m"}"#,
        r#"{"type":"run.completed"}"#,
    ];
    let mut state = CheckState::new(Dialect::Runwire);
    for frame in frames {
        assert_eq!(check(&mut state, frame), []);
    }
    let orphan = r#"{"type":"tool.finished","call_id":"c","status":"success"}"#;
    assert_eq!(found(Dialect::Runwire, &[orphan]), one("not_open", "/call_id"));
}

#[test]
fn a_state_is_small_and_the_same_after_it_was_stored() {
    for dialect in Dialect::READABLE {
        let mut state = CheckState::new(dialect);
        for number in 0..2000 {
            let id = format!("{number}-{}", "x".repeat(400));
            let frames = [
                format!(
                    r#"{{"type":"TOOL_CALL_START","toolCallId":"{id}","toolCallName":"n","threadId":"t","runId":"{id}"}}"#
                ),
                engine(
                    number,
                    "tool_call_start",
                    &format!(r#"{{"tool_id":"{id}","tool_name":"n","arguments":{{}}}}"#),
                ),
                format!(
                    r#"{{"type":"tool.called","call_id":"{id}","name":"n","arguments":{{}},"run_id":"{id}","thread_id":"{id}"}}"#
                ),
                format!(r#"{{"type":"node_enter","id":"{id}"}}"#),
            ];
            for frame in frames {
                check(&mut state, &frame);
            }
        }
        let stored = postcard::to_stdvec(&state).unwrap();
        assert!(stored.len() < 128 << 10, "{dialect}: {}", stored.len());
        assert_eq!(postcard::from_bytes::<CheckState>(&stored).unwrap(), state);
        let json = serde_json::to_string(&state).unwrap();
        assert_eq!(serde_json::from_str::<CheckState>(&json).unwrap(), state);
    }
}

#[test]
fn a_frame_with_a_fault_in_every_value_is_explained_in_part() {
    let operations = vec![serde_json::json!({"op": "x", "pth": "/a"}); 50_000];
    let frame = serde_json::json!({"type": "STATE_DELTA", "delta": operations}).to_string();
    let keys: serde_json::Map<_, _> =
        (0..50_000).map(|n| (format!("toolCallI{n}"), serde_json::Value::Null)).collect();
    let many_keys =
        serde_json::Value::Object(keys).to_string().replacen('{', "{\"type\":\"TOOL_CALL_START\",", 1);
    for frame in [frame, many_keys] {
        let mut state = CheckState::joined(Dialect::AgUi);
        let findings = state.check(CheckedFrame { name: None, data: frame.as_bytes() }, 0, Side::Producer);
        assert!((1..=runwire_check::limits::FINDINGS_OF_FRAME).contains(&findings.len()), "{findings:?}");
    }
}

#[test]
fn a_second_start_of_a_run_without_an_id_is_told_in_words() {
    let agio = r#"{"type":"run_started","timestamp":"2026-01-01T00:00:00Z","data":{},"metadata":{}}"#;
    let engine =
        r#"{"type":"session_start","data":{"session_id":"s"},"metadata":{"sequence":0,"timestamp":1}}"#;
    for (dialect, start) in [
        (Dialect::Runwire, r#"{"type":"run.started"}"#),
        (Dialect::Agio, agio),
        (Dialect::StreamingEngine, engine),
    ] {
        let mut state = CheckState::new(dialect);
        let frame = || CheckedFrame { name: None, data: start.as_bytes() };
        state.check(frame(), 0, Side::Producer);
        let again = state.check(frame(), 0, Side::Producer);
        let found = again.iter().find(|finding| finding.rule.as_str() == "already_open").unwrap();
        assert_eq!(found.message, "a run is open already, and this frame names no other", "{dialect}");
        assert_eq!(found.pointer.as_deref(), Some("/type"));
    }
}

#[test]
fn a_day_that_the_calendar_does_not_have_is_found() {
    let agio = |time: &str| {
        format!(r#"{{"type":"run_started","run_id":"r","timestamp":"{time}","data":{{"query":""}}}}"#)
    };
    let asked = |time: &str| {
        let asked =
            r#"{"type":"interaction.requested","interaction_id":"i","kind":"form","schema":{},"expires_at":"#;
        format!("{asked}\"{time}\"}}")
    };
    let interrupt = |time: &str| {
        let interrupt = format!(r#"{{"id":"i","reason":"input_required","expiresAt":"{time}"}}"#);
        let outcome = format!(r#"{{"type":"interrupt","interrupts":[{interrupt}]}}"#);
        format!(r#"{{"type":"RUN_FINISHED","threadId":"t","runId":"r","outcome":{outcome}}}"#)
    };
    let found = |dialect, frame: String| -> Vec<_> {
        let findings = check(&mut CheckState::joined(dialect), &frame);
        findings.into_iter().map(|finding| (finding.rule.as_str(), finding.pointer)).collect()
    };
    for (day, is_day) in [
        ("2025-11-30", true),
        ("2025-11-31", false),
        ("2025-02-29", false),
        ("2024-02-29", true),
        ("1900-02-29", false),
        ("1904-02-29", true),
        ("2000-02-29", true),
    ] {
        let time = format!("{day}T08:00:00.000Z");
        let expected = |pointer| if is_day { Vec::new() } else { one("bad_value", pointer) };
        assert_eq!(found(Dialect::Agio, agio(&time)), expected("/timestamp"), "{day}");
        assert_eq!(found(Dialect::Runwire, asked(&time)), expected("/expires_at"), "{day}");
        let pointer = "/outcome/interrupts/0/expiresAt";
        assert_eq!(found(Dialect::AgUi, interrupt(&time)), expected(pointer), "{day}");
    }
    assert_eq!(found(Dialect::Runwire, asked("tomorrow")), []);
}
