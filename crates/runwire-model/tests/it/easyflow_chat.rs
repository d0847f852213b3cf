//! What EasyFlow's document promises to readers of what an EasyFlow source sent.

use runwire_model::convert::Options;
use runwire_model::dialect::Dialect;
use serde_json::{Value, json};

use super::vectors::convert;

fn frame(domain: &str, kind: &str, payload: Value) -> Value {
    json!({"domain": domain, "type": kind, "conversation_id": "c", "payload": payload})
}

fn node(state: &str, reason: Option<&str>) -> Value {
    match reason {
        Some(reason) => {
            frame("workflow", "status", json!({"node_id": "n", "state": state, "reason": reason}))
        }
        None => frame("workflow", "status", json!({"node_id": "n", "state": state})),
    }
}

fn status(state: &str) -> Value {
    frame("system", "status", json!({"state": state}))
}

fn form() -> Value {
    frame("interaction", "form_request", json!({"form_id": "f", "schema": {"type": "object"}}))
}

/// What readers of EasyFlow see of frames that an EasyFlow source sent.
fn shown(input: &[Value]) -> Vec<Value> {
    let input: Vec<_> = input.iter().map(|frame| (None, frame.to_string().into_bytes())).collect();
    let options = Options { from: Some(Dialect::EasyflowChat), ..Options::to(Dialect::EasyflowChat) };
    let frames = convert(&input, options).unwrap().frames;
    frames.iter().map(|(_, _, data)| serde_json::from_slice(data).unwrap()).collect()
}

/// Each frame in a word: what happens, and to nodes why.
fn told(frames: &[Value]) -> Vec<String> {
    let word = |frame: &Value| {
        let kind = format!("{}/{}", frame["domain"].as_str().unwrap(), frame["type"].as_str().unwrap());
        let payload = &frame["payload"];
        match (payload["state"].as_str(), payload["reason"].as_str()) {
            (Some(state), Some(reason)) => format!("{kind} {state} {reason}"),
            (Some(state), None) => format!("{kind} {state}"),
            _ => kind,
        }
    };
    frames.iter().map(word).collect()
}

#[test]
fn every_frame_keeps_the_message_that_it_names() {
    let named = |mut frame: Value| {
        frame["message_id"] = "m".into();
        frame
    };
    let call = json!({"tool_call_id": "t", "name": "find", "arguments": {}});
    let result = json!({"tool_call_id": "t", "status": "success", "result": {}});
    let input = [
        named(status("running")),
        named(node("start", None)),
        named(frame("tool", "tool_call", call)),
        named(frame("tool", "tool_result", result)),
        named(form()),
    ];
    for kind in ["status", "tool_call", "tool_result", "form_request"] {
        let frames = shown(&input);
        let frame = frames.iter().find(|frame| frame["type"] == kind).unwrap();
        assert_eq!(frame["message_id"], "m", "{frame}");
    }
}

#[test]
fn a_node_keeps_the_reason_that_its_source_gives() {
    let input = [
        status("running"),
        node("start", Some("retry")),
        node("suspend", Some("approval")),
        node("resume", Some("approval")),
        node("end", Some("timeout")),
    ];
    assert_eq!(
        told(&shown(&input))[..5],
        [
            "system/status running",
            "workflow/status start retry",
            "workflow/status suspend approval",
            "workflow/status resume approval",
            "workflow/status end timeout",
        ]
    );
}

#[test]
fn suspended_never_precedes_its_form() {
    let begun = [status("running"), node("start", None)];
    for (said, expected) in [
        (
            vec![node("suspend", Some("approval")), form(), status("suspended")],
            vec!["workflow/status suspend approval", "interaction/form_request", "system/status suspended"],
        ),
        (
            vec![form()],
            vec![
                "interaction/form_request",
                "system/status suspended",
                "workflow/status suspend interaction",
            ],
        ),
        // What the source says again of what was said for it is not told twice; another reason is in the slot.
        (
            vec![form(), node("suspend", Some("interaction")), status("suspended")],
            vec![
                "interaction/form_request",
                "system/status suspended",
                "workflow/status suspend interaction",
            ],
        ),
        (
            vec![form(), node("suspend", Some("approval")), node("suspend", Some("approval"))],
            vec![
                "interaction/form_request",
                "system/status suspended",
                "workflow/status suspend interaction",
                "debug/runwire suspend",
            ],
        ),
        // What was said too early goes to the slot, and is told where it belongs.
        (
            vec![status("suspended"), form()],
            vec![
                "debug/runwire",
                "interaction/form_request",
                "system/status suspended",
                "workflow/status suspend interaction",
            ],
        ),
        (
            vec![status("suspended"), node("suspend", Some("approval")), form(), status("suspended")],
            vec![
                "debug/runwire",
                "workflow/status suspend approval",
                "interaction/form_request",
                "system/status suspended",
            ],
        ),
    ] {
        let frames = shown(&[begun.as_slice(), &said].concat());
        let told = told(&frames);
        assert_eq!(told[2..2 + expected.len()], expected);
        let ends = ["interaction/form_cancel", "workflow/status end", "system/error"];
        assert!(told[2 + expected.len()..].iter().all(|word| ends.contains(&word.as_str())), "{told:?}");
    }
}

#[test]
fn a_run_that_waits_without_a_form_is_told_to_have_waited_when_it_goes_on() {
    let input = [status("initializing"), status("running"), status("suspended"), status("resumed")];
    let words = [
        "system/status initializing",
        "system/status running",
        "debug/runwire",
        "system/status suspended",
        "system/status resumed",
    ];
    let frames = shown(&input);
    assert_eq!(told(&frames)[..5], words);
    assert_eq!(frames[2]["payload"]["type"], "run.suspended");
    // What readers are told means the same again.
    assert_eq!(told(&shown(&frames))[..5], words);
}

#[test]
fn an_error_comes_back_in_the_form_that_its_source_gave_it() {
    let failed = |error: Value| {
        let call = json!({"tool_call_id": "t", "name": "find", "arguments": {}});
        let result = json!({"tool_call_id": "t", "status": "error", "error": error});
        [
            node("start", None),
            frame("tool", "tool_call", call),
            frame("tool", "tool_result", result),
            frame("workflow", "status", json!({"node_id": "n", "state": "end", "error": error})),
        ]
    };
    for error in [
        json!("it broke"),
        json!({"message": "it broke", "code": "E1", "hint": {"n": 1}}),
        json!({"code": 7}),
        json!(["it", "broke"]),
    ] {
        let frames = shown(&failed(error.clone()));
        let told: Vec<_> = frames.iter().map(|frame| &frame["payload"]["error"]).collect();
        assert_eq!(told.iter().filter(|told| ***told == error).count(), 2, "{frames:?}");
    }
    // Others read an error of the model.
    let input = failed(json!("it broke"));
    let input: Vec<_> = input.iter().map(|frame| (None, frame.to_string().into_bytes())).collect();
    let options = Options { from: Some(Dialect::EasyflowChat), ..Options::to(Dialect::Runwire) };
    for (_, _, data) in convert(&input, options).unwrap().frames {
        let event: Value = serde_json::from_slice(&data).unwrap();
        if matches!(event["type"].as_str(), Some("tool.finished" | "step.finished")) {
            assert_eq!(event["error"], json!({"message": "it broke"}));
        }
    }
}

#[test]
fn a_node_that_waits_does_not_suspend_its_run() {
    let input = [status("running"), node("start", None), node("suspend", None)];
    let input: Vec<_> = input.iter().map(|frame| (None, frame.to_string().into_bytes())).collect();
    let options = Options { from: Some(Dialect::EasyflowChat), ..Options::to(Dialect::Runwire) };
    let frames = convert(&input, options).unwrap().frames;
    let events: Vec<Value> =
        frames.iter().map(|(_, _, data)| serde_json::from_slice(data).unwrap()).collect();
    assert!(events.iter().all(|event| event["type"] != "run.suspended"), "{events:?}");
    let waits = events.iter().find(|event| event["type"] == "run.status").unwrap();
    assert_eq!((&waits["state"], &waits["extra"]["node_id"]), (&"suspend".into(), &"n".into()));
}

#[test]
fn a_resumption_tells_the_node_why_it_waited_and_its_source_does_not_tell_it_again() {
    // Whether the source gives the reason before its form or after it.
    for waits in [[node("suspend", Some("approval")), form()], [form(), node("suspend", Some("approval"))]] {
        let goes_on = vec![
            frame("interaction", "form_cancel", json!({"form_id": "f"})),
            status("resumed"),
            node("resume", Some("approval")),
            node("resume", Some("granted")),
            node("end", None),
        ];
        let begun = vec![status("running"), node("start", None)];
        let frames = shown(&[begun, waits.to_vec(), goes_on].concat());
        let at = frames.iter().position(|frame| frame["type"] == "form_cancel").unwrap();
        let words = [
            "interaction/form_cancel",
            "system/status resumed",
            "workflow/status resume approval",
            "debug/runwire resume",
            "workflow/status end",
        ];
        assert_eq!(told(&frames)[at..at + 5], words);
        assert_eq!(frames[at + 3]["payload"]["extra"], json!({"node_id": "n", "reason": "granted"}));
    }
}

#[test]
fn the_first_frame_names_the_run() {
    let of_the_run = |mut frame: Value| {
        frame["meta"] = json!({"run_id": "r"});
        frame
    };
    for first in [status("initializing"), status("running"), node("start", None), form()] {
        let frames = shown(&[of_the_run(first), of_the_run(status("running"))]);
        assert_eq!(frames[0]["meta"]["run_id"], "r", "{}", frames[0]);
    }
}

#[test]
fn a_whole_thought_is_told_once_and_comes_back_whole() {
    let thinking = |payload: Value| frame("llm", "thinking", payload);
    let whole = shown(&[thinking(json!({"content": "分析用户需求"})), frame("system", "done", json!({}))]);
    assert_eq!(whole[1]["payload"], json!({"content": "分析用户需求"}));
    let after_pieces = shown(&[
        thinking(json!({"delta": "分析"})),
        thinking(json!({"delta": "用户"})),
        thinking(json!({"content": "分析用户需求"})),
        frame("system", "done", json!({})),
    ]);
    let pieces = after_pieces.iter().filter(|frame| frame["type"] == "thinking");
    let text: String = pieces.map(|frame| frame["payload"]["delta"].as_str().unwrap()).collect();
    assert_eq!(text, "分析用户需求");
}

#[test]
fn what_the_end_of_a_text_says_comes_back_from_easyflow() {
    let end = json!({"type": "TEXT_MESSAGE_END", "threadId": "t", "runId": "r", "messageId": "m", "role": "assistant",
        "stage": "worker", "status": "success", "answer": "Hi", "key_points": ["a"], "result_type": "clarification",
        "suggested_actions": [], "error": null, "ui_schema": {}});
    let options = |from, to| Options { from: Some(from), ..Options::to(to) };
    let there =
        convert(&[(None, end.to_string().into_bytes())], options(Dialect::SocialApp, Dialect::EasyflowChat));
    let frames: Vec<_> = there.unwrap().frames.into_iter().map(|(_, name, data)| (name, data)).collect();
    let back = convert(&frames, options(Dialect::EasyflowChat, Dialect::SocialApp)).unwrap();
    let frames: Vec<Value> =
        back.frames.iter().map(|(_, _, data)| serde_json::from_slice(data).unwrap()).collect();
    let back = frames.iter().find(|frame| frame["type"] == "TEXT_MESSAGE_END").unwrap();
    assert_eq!((&back["key_points"], &back["result_type"]), (&json!(["a"]), &json!("clarification")));
}

#[test]
fn a_form_that_is_asked_again_is_cancelled_under_its_own_id() {
    let form = |kind: &str| {
        let payload = json!({"form_id": "f", "schema": {"type": "object"}});
        frame("interaction", kind, payload)
    };
    let failure = frame("system", "error", json!({"code": "E", "message": "no", "retryable": false}));
    for end in [form("form_cancel"), failure] {
        let input = [status("running"), form("form_request"), form("form_cancel"), form("form_request"), end];
        let frames = shown(&input);
        let ids = |kind: &str| -> Vec<&str> {
            let of_kind = frames.iter().filter(|frame| frame["type"] == kind);
            of_kind.map(|frame| frame["payload"]["form_id"].as_str().unwrap()).collect()
        };
        assert_eq!(ids("form_request"), ["f", "f"]);
        assert_eq!(ids("form_cancel"), ["f", "f"]);
    }
}

#[test]
fn a_run_that_goes_on_without_having_waited_is_told_as_that() {
    let frames = shown(&[status("running"), status("resumed")]);
    assert_eq!(told(&frames)[..2], ["system/status running", "system/status resumed"]);
    // What an answer has told before is not told again.
    let cancel = frame("interaction", "form_cancel", json!({"form_id": "f"}));
    let frames = shown(&[status("running"), form(), cancel, status("resumed")]);
    let resumed = told(&frames).into_iter().filter(|word| word == "system/status resumed").count();
    assert_eq!(resumed, 1);
}

/// A piece of text or thinking of the message `m`.
fn piece(kind: &str, key: &str, content: &str) -> Value {
    let mut frame = frame("llm", kind, json!({key: content}));
    frame["message_id"] = "m".into();
    frame
}

#[test]
fn a_message_keeps_its_id_when_thinking_and_text_alternate() {
    let said = [("message", "a"), ("thinking", "t"), ("message", "b"), ("thinking", "u"), ("message", "c")];
    let mut input = vec![status("running")];
    input.extend(said.map(|(kind, content)| piece(kind, "delta", content)));
    input.push(frame("system", "done", json!({})));
    let frames = shown(&input);
    let pieces = frames.iter().filter(|frame| frame["domain"] == "llm");
    let pieces: Vec<_> = pieces.map(|frame| json!([frame["message_id"], frame["index"]])).collect();
    assert_eq!(json!(pieces), json!([["m", 0], ["m", 1], ["m", 2], ["m", 3], ["m", 4]]));
    assert_eq!(shown(&frames), frames);
}

#[test]
fn whole_thinking_that_was_streamed_is_told_once() {
    let streamed =
        || vec![status("running"), piece("thinking", "delta", "one "), piece("thinking", "delta", "two")];
    let answer = || piece("message", "delta", "It is ");
    let whole = |content: &str| piece("thinking", "content", content);
    for (more, thinking, text) in [
        (vec![answer(), whole("one two"), piece("message", "content", "It is so.")], "one two", "It is so."),
        (vec![answer(), whole("one two, three")], "one two\n\n, three", "It is "),
        (
            vec![answer(), piece("thinking", "delta", " three"), whole("one two three")],
            "one two\n\n three",
            "It is ",
        ),
        (
            vec![answer(), piece("thinking", "delta", "three"), answer(), whole("three")],
            "one two\n\nthree",
            "It is It is ",
        ),
        (vec![answer(), whole("four"), whole("four")], "one two\n\nfour", "It is "),
    ] {
        let mut input = streamed();
        input.extend(more);
        input.push(frame("system", "done", json!({})));
        let input: Vec<_> = input.iter().map(|frame| (None, frame.to_string().into_bytes())).collect();
        for to in Dialect::ALL {
            let options = Options { from: Some(Dialect::EasyflowChat), ..Options::to(to) };
            let outcome = convert(&input, options).unwrap();
            assert_eq!(outcome.messages[0].thinking_content, thinking, "{to}");
            assert_eq!(outcome.messages[0].main_content, text, "{to}");
        }
    }
}

#[test]
fn the_fields_of_the_document_are_always_there() {
    let input = [
        json!({"type": "run_start", "run_id": "a"}),
        json!({"type": "tool_call", "call_id": "c", "name": "t", "arguments": {}}),
        json!({"type": "tool_end", "call_id": "c", "name": "t", "result": "boom", "is_error": true}),
        json!({"reply": "", "stop_reason": "error", "error": "no"}),
    ];
    let input: Vec<_> = input.iter().map(|frame| (None, frame.to_string().into_bytes())).collect();
    let read_as = |to| {
        let frames =
            convert(&input, Options { from: Some(Dialect::Loom), ..Options::to(to) }).unwrap().frames;
        frames.iter().map(|(_, _, data)| serde_json::from_slice(data).unwrap()).collect::<Vec<Value>>()
    };
    let frames = read_as(Dialect::EasyflowChat);
    let find = |kind: &str| &frames.iter().find(|frame| frame["type"] == kind).unwrap()["payload"];
    assert_eq!(
        (&find("tool_result")["result"], &find("tool_result")["error"]["message"]),
        (&json!({}), &json!("boom"))
    );
    assert_eq!(find("error")["detail"], json!({}));
    let frames = read_as(Dialect::StreamingEngine);
    let end = frames.iter().find(|frame| frame["type"] == "tool_call_end").unwrap();
    assert_eq!(end["data"]["error"], json!({"message": "boom", "code": "ERROR"}));
}
