//! What social-app's document promises, whatever system a run came from.

use runwire_model::convert::Options;
use runwire_model::dialect::{Dialect, Fidelity};
use serde_json::{Value, json};

use super::vectors::convert;

fn shown_in(fidelity: Fidelity, from: Dialect, input: &[Value]) -> Vec<Value> {
    let input: Vec<_> = input.iter().map(|frame| (None, frame.to_string().into_bytes())).collect();
    let options = Options { from: Some(from), fidelity, ..Options::to(Dialect::SocialApp) };
    let frames = convert(&input, options).unwrap().frames;
    frames.iter().map(|(_, _, data)| serde_json::from_slice(data).unwrap()).collect()
}

fn shown(from: Dialect, input: &[Value]) -> Vec<Value> {
    shown_in(Fidelity::Native, from, input)
}

fn types(frames: &[Value]) -> Vec<&str> {
    frames.iter().map(|frame| frame["type"].as_str().unwrap()).collect()
}

/// A figure of each kind that must not be shown, and words that must not go with them.
const COUNT: u64 = 424_242;
const MODEL: &str = "hidden-model";

/// Streams in which a back end tells of itself wherever its dialect lets it.
fn streams_with_figures() -> Vec<(Dialect, Vec<Value>)> {
    let figures = json!({
        "inputTokens": COUNT, "outputTokens": COUNT, "cost": COUNT, "latencyMs": COUNT, "model": MODEL,
        "model_name": MODEL, "total_tokens": COUNT, "prompt_tokens": COUNT, "completion_tokens": COUNT,
        "response_latency": COUNT, "usage": {"total": COUNT}, "metrics": [COUNT],
    });
    let with = |mut frame: Value, place: &str| {
        let object = frame.pointer_mut(place).unwrap().as_object_mut().unwrap();
        object.extend(figures.as_object().unwrap().clone());
        frame
    };
    let agio = |kind: &str, data: Value| {
        let frame = json!({"type": kind, "run_id": "r", "timestamp": "2026-11-07T00:12:44Z", "data": data, "metadata": {}});
        with(frame, "/metadata")
    };
    let easyflow = |domain: &str, kind: &str, payload: Value| {
        with(
            json!({"domain": domain, "type": kind, "conversation_id": "c", "payload": payload, "meta": {}}),
            "/meta",
        )
    };
    let engine = |kind: &str, data: Value| {
        let metadata = json!({"timestamp": 1_794_000_000_000_u64, "sequence": 0});
        with(json!({"type": kind, "data": data, "metadata": metadata}), "/metadata")
    };
    let ag_ui = |frame: Value| {
        let mut frame = frame;
        frame["metadata"] = figures.clone();
        frame
    };
    vec![
        (
            Dialect::SocialApp,
            vec![
                with(json!({"type": "RUN_STARTED", "threadId": "t", "runId": "r", "input": figures}), ""),
                with(json!({"type": "STEP_STARTED", "stepName": "worker"}), ""),
                with(
                    json!({"type": "TEXT_MESSAGE_END", "messageId": "m", "answer": "Hi", "error": figures}),
                    "",
                ),
                with(json!({"type": "ODD", "data": figures, "metadata": figures}), ""),
                with(json!({"type": "RUN_FINISHED", "threadId": "t", "runId": "r"}), ""),
            ],
        ),
        (
            Dialect::Agio,
            vec![
                agio("run_started", json!({"query": "q"})),
                agio("step_started", json!({"step": 1})),
                agio("text_delta", json!({"content": "Hi", "step": 1})),
                agio("usage_update", figures.clone()),
                agio("metrics_snapshot", figures.clone()),
                agio("odd", figures.clone()),
                agio("run_completed", json!({"response": "Hi", "metrics": figures})),
            ],
        ),
        (
            Dialect::StreamingEngine,
            vec![
                engine("session_start", json!({"session_id": "s"})),
                engine("content", json!({"content": "Hi"})),
                engine("data", json!({"data_type": "table", "data": {"rows": []}})),
                engine("odd", figures.clone()),
                engine(
                    "session_end",
                    json!({"status": "completed", "summary": {"total_tokens": COUNT, "duration_ms": COUNT}}),
                ),
            ],
        ),
        (
            Dialect::EasyflowChat,
            vec![
                easyflow("system", "status", json!({"state": "running"})),
                easyflow("llm", "message", json!({"delta": "Hi"})),
                easyflow("debug", "odd", figures.clone()),
                easyflow("system", "done", json!({})),
            ],
        ),
        (
            Dialect::Loom,
            vec![
                with(json!({"type": "run_start", "session_id": "s", "run_id": "r", "message": "q"}), ""),
                json!({"type": "usage", "prompt_tokens": COUNT, "completion_tokens": COUNT, "total_tokens": COUNT}),
                with(json!({"type": "odd", "data": figures}), ""),
                with(json!({"reply": "Hi"}), ""),
            ],
        ),
        (Dialect::LoomExport, vec![json!({"Odd": figures}), json!({"Reply": {"reply": "Hi"}})]),
        (
            Dialect::AgUi,
            vec![
                ag_ui(
                    json!({"type": "RUN_STARTED", "threadId": "t", "runId": "r", "input": {"forwardedProps": figures}}),
                ),
                ag_ui(json!({"type": "STEP_STARTED", "stepName": "a", "rawEvent": figures})),
                ag_ui(json!({"type": "RAW", "event": {"data": figures, "usage": figures}})),
                ag_ui(
                    json!({"type": "RUN_FINISHED", "threadId": "t", "runId": "r", "usage": [{"inputTokens": COUNT, "model": MODEL}]}),
                ),
            ],
        ),
    ]
}

#[test]
fn no_figure_of_a_back_end_is_shown_whatever_the_run_came_from() {
    for (from, input) in streams_with_figures() {
        for fidelity in [Fidelity::Native, Fidelity::Full] {
            let frames = shown_in(fidelity, from, &input);
            assert_eq!(frames.last().unwrap()["type"], "RUN_FINISHED", "{from}");
            for frame in frames {
                let text = frame.to_string();
                let tells = text.contains(MODEL) || text.contains(&COUNT.to_string());
                assert!(!tells, "{from} ({fidelity:?}): {frame}");
            }
        }
    }
}

#[test]
fn business_data_keeps_fields_that_are_named_like_figures() {
    let car = json!({"model": "Z4", "cost": 1, "usage": {"model": "daily"}, "metadata": {"latencyMs": 2}});
    let schema = json!({"type": "object", "properties": {"model": {"type": "string"}}});
    let input = [
        json!({"type": "run.started", "message": "q"}),
        json!({"type": "tool.called", "call_id": "c", "name": "buy", "arguments": car}),
        json!({"type": "tool.finished", "call_id": "c", "status": "success", "result": car}),
        json!({"type": "state.snapshot", "state": car}),
        json!({"type": "messages.snapshot", "messages": [{"id": "u", "role": "user", "content": "q", "car": car}]}),
        json!({"type": "data", "data_type": "table", "data": car}),
        json!({"type": "text.started", "message_id": "m"}),
        json!({"type": "text.delta", "message_id": "m", "content": "Hi"}),
        json!({"type": "text.finished", "message_id": "m", "key_points": [car], "ui_schema": car}),
        json!({"type": "interaction.requested", "interaction_id": "q", "kind": "form", "schema": schema}),
        json!({"type": "interaction.resolved", "interaction_id": "q", "decision": "submitted", "values": car}),
        json!({"type": "run.completed", "result": car}),
    ];
    let frames = shown(Dialect::Runwire, &input);
    let found = |pointer: &str| frames.iter().filter_map(|frame| frame.pointer(pointer)).collect::<Vec<_>>();
    for pointer in [
        "/args",
        "/tool_call_args",
        "/snapshot",
        "/messages/0/car",
        "/value/data",
        "/key_points/0",
        "/ui_schema",
        "/runwire/0/result",
    ] {
        assert_eq!(found(pointer), [&car], "{pointer}");
    }
    assert_eq!(found("/value/schema"), [&schema]);
    let text = Value::from(frames.clone()).to_string();
    // The answer of a person is foreign where a producer tells it, and stays whole.
    assert!(found("/event/values") == [&car], "{text}");
    let result = found("/result")[0];
    let result = result.as_str().map_or(result.clone(), |text| serde_json::from_str(text).unwrap());
    assert_eq!(result, car);
}

#[test]
fn a_result_does_not_carry_a_producers_ui_schema() {
    let call = json!({"messageId": "m", "toolCallId": "c", "toolCallName": "find", "stage": "worker"});
    let with = |kind: &str, more: Value| {
        let mut frame = call.clone();
        frame["type"] = kind.into();
        frame.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        frame
    };
    let input = [
        json!({"type": "RUN_STARTED", "threadId": "t", "runId": "r"}),
        with("TOOL_CALL_START", json!({})),
        with("TOOL_CALL_ARGS", json!({"args": {}})),
        with("TOOL_CALL_END", json!({})),
        json!({
            "type": "TOOL_CALL_RESULT", "messageId": "m", "role": "tool", "stage": "worker", "tool_name": "find",
            "tool_call_id": "c", "tool_call_args": {}, "status": "success", "result": "1", "error": null,
            "ui_schema": {"type": "card"}, "note": 1,
        }),
        json!({"type": "TEXT_MESSAGE_END", "messageId": "m2", "answer": "Hi", "ui_schema": {"type": "card"}}),
    ];
    for fidelity in [Fidelity::Native, Fidelity::Full] {
        let frames = shown_in(fidelity, Dialect::SocialApp, &input);
        let of = |kind: &str| frames.iter().find(|frame| frame["type"] == kind).unwrap();
        assert!(!of("TOOL_CALL_RESULT").to_string().contains("card"), "{frames:?}");
        assert_eq!(of("TOOL_CALL_RESULT")["note"], 1);
        assert_eq!(of("TEXT_MESSAGE_END")["ui_schema"]["type"], "card");
    }
}

#[test]
fn thinking_of_another_agent_is_one_custom_at_its_end() {
    let input = [
        json!({"type": "run_start", "session_id": "s", "run_id": "r", "message": "q"}),
        json!({"type": "thought_chunk", "content": "Let ", "id": "think"}),
        json!({"type": "thought_chunk", "content": "me see.", "id": "think"}),
        json!({"type": "message_chunk", "content": "Hi", "id": "think"}),
        json!({"reply": "Hi"}),
    ];
    let frames = shown(Dialect::Loom, &input);
    assert_eq!(types(&frames), ["RUN_STARTED", "CUSTOM", "TEXT_MESSAGE_END", "RUN_FINISHED"]);
    assert_eq!(frames[1]["name"], "runwire.thinking.finished");
    assert_eq!(frames[1]["value"]["content"], "Let me see.");
    // A run that fails tells what was thought.
    let frames = shown(Dialect::Loom, &input[..3]);
    assert_eq!(types(&frames), ["RUN_STARTED", "CUSTOM", "RUN_ERROR"]);
    assert_eq!(frames[1]["value"]["content"], "Let me see.");
}

#[test]
fn a_subagents_thinking_is_one_custom_too() {
    let of = |kind: &str| json!({"type": kind, "message_id": "t", "subagent_run_id": "sub"});
    let mut delta = of("thinking.delta");
    delta["content"] = "Hm.".into();
    let input = [
        json!({"type": "run.started"}),
        json!({"type": "subagent.started", "subagent_run_id": "sub"}),
        of("thinking.started"),
        delta,
        of("thinking.finished"),
    ];
    let frames = shown(Dialect::Runwire, &input);
    let thoughts: Vec<_> = frames.iter().filter(|frame| frame.to_string().contains("thinking")).collect();
    assert_eq!(thoughts.len(), 1, "{thoughts:?}");
    assert_eq!(thoughts[0]["value"]["content"], "Hm.");
    assert_eq!(thoughts[0]["value"]["subagent_run_id"], "sub");
}

#[test]
fn steps_of_another_system_are_workers_with_their_name_beside() {
    let input = [
        json!({"type": "run_start", "session_id": "s", "run_id": "r", "message": "q"}),
        json!({"type": "node_enter", "id": "think"}),
        json!({"type": "tool_call", "call_id": "c", "name": "find", "arguments": {}}),
        json!({"type": "node_exit", "id": "think", "result": "Ok"}),
        json!({"type": "node_enter", "id": "router"}),
        json!({"type": "message_chunk", "content": "Hi", "id": "router"}),
        json!({"type": "node_exit", "id": "router", "result": "Ok"}),
    ];
    let frames = shown(Dialect::Loom, &input);
    let steps: Vec<_> =
        frames.iter().filter(|frame| frame["type"].as_str().unwrap().starts_with("STEP")).collect();
    let named = |at: usize| (steps[at]["stepName"].as_str().unwrap(), steps[at]["name"].as_str());
    assert_eq!([named(0), named(1)], [("worker", Some("think")); 2]);
    assert_eq!([named(2), named(3)], [("router", None); 2]);
    let stages: Vec<_> = frames.iter().filter_map(|frame| frame["stage"].as_str()).collect();
    assert_eq!(stages, ["worker", "worker", "worker", "router", "worker"]);
}

#[test]
fn what_chunks_of_ag_ui_tell_is_told_at_its_end() {
    let input = [
        json!({"type": "RUN_STARTED", "threadId": "t", "runId": "r"}),
        json!({"type": "REASONING_MESSAGE_CHUNK", "messageId": "t1", "delta": "Hm."}),
        json!({"type": "TEXT_MESSAGE_CHUNK", "messageId": "m1", "delta": "He"}),
        json!({"type": "TEXT_MESSAGE_CHUNK", "delta": "llo"}),
        json!({"type": "TOOL_CALL_CHUNK", "toolCallId": "c", "toolCallName": "find", "delta": "{\"a\":"}),
        json!({"type": "TOOL_CALL_CHUNK", "delta": "1}"}),
        json!({"type": "RUN_FINISHED", "threadId": "t", "runId": "r"}),
    ];
    let frames = shown(Dialect::SocialApp, &input);
    assert_eq!(
        types(&frames),
        [
            "RUN_STARTED",
            "CUSTOM",
            "TEXT_MESSAGE_END",
            "TOOL_CALL_START",
            "TOOL_CALL_ARGS",
            "TOOL_CALL_END",
            "RUN_FINISHED"
        ]
    );
    assert_eq!(frames[2]["answer"], "Hello");
    assert_eq!(frames[4]["args"], json!({"a": 1}));
}

#[test]
fn a_state_with_a_number_beyond_f64_is_patched_like_any_other() {
    let frames: Vec<_> = [
        r#"{"type":"RUN_STARTED","threadId":"t","runId":"r"}"#,
        r#"{"type":"STATE_SNAPSHOT","snapshot":{"far":1e999,"price":1.10,"at":1}}"#,
        r#"{"type":"STATE_DELTA","delta":[{"op":"replace","path":"/at","value":2}]}"#,
        r#"{"type":"STATE_DELTA","delta":[{"op":"add","path":"/farther","value":-1e999}]}"#,
    ]
    .iter()
    .map(|frame| (None, frame.as_bytes().to_vec()))
    .collect();
    let told = |to| {
        let options = Options { from: Some(Dialect::AgUi), ..Options::to(to) };
        let frames = convert(&frames, options).unwrap().frames;
        let texts = frames.into_iter().map(|(_, _, data)| String::from_utf8(data).unwrap());
        texts.filter(|text| text.contains("far")).collect::<Vec<_>>()
    };
    for to in [Dialect::SocialApp, Dialect::Loom] {
        let states = told(to);
        assert!(states[1].contains(r#"{"far":1e999,"price":1.10,"at":2}"#), "{states:?}");
        let last = r#"{"far":1e999,"price":1.10,"at":2,"farther":-1e999}"#;
        assert!(states[2].contains(last), "{states:?}");
        assert!(states.iter().all(|text| !text.contains("runwire")), "{states:?}");
    }
    assert!(told(Dialect::AgUi)[1].starts_with(r#"{"type":"STATE_DELTA""#));
}

#[test]
fn the_end_of_a_call_that_nobody_began_keeps_the_tools_name() {
    let end = json!({
        "type": "TOOL_CALL_END", "messageId": "m", "toolCallId": "c", "toolCallName": "find", "stage": "worker",
    });
    let input = [json!({"type": "RUN_STARTED", "threadId": "t", "runId": "r"}), end];
    let frames = shown(Dialect::SocialApp, &input);
    let ended = frames.iter().find(|frame| frame["type"] == "TOOL_CALL_END").unwrap();
    assert_eq!(ended["toolCallName"], "find", "{frames:?}");
}

#[test]
fn a_text_that_replaces_an_ended_message_is_its_answer() {
    let easyflow = |domain: &str, kind: &str, payload: Value| json!({"domain": domain, "type": kind, "conversation_id": "c", "message_id": "m", "payload": payload});
    let input = [
        easyflow("system", "status", json!({"state": "running"})),
        easyflow("llm", "message", json!({"delta": "draft"})),
        easyflow("tool", "tool_call", json!({"tool_call_id": "c", "name": "s", "arguments": {}})),
        easyflow("llm", "message", json!({"content": "final"})),
        easyflow("system", "done", json!({})),
    ];
    let frames = shown(Dialect::EasyflowChat, &input);
    let ends = || frames.iter().filter(|frame| frame["type"] == "TEXT_MESSAGE_END");
    let answers: Vec<_> = ends().map(|end| (&end["messageId"], &end["answer"])).collect();
    assert_eq!(answers, [(&json!("m"), &json!("draft")), (&json!("m"), &json!("final"))]);
    let input: Vec<_> = frames.iter().map(|frame| (None, frame.to_string().into_bytes())).collect();
    let options = Options { from: Some(Dialect::SocialApp), ..Options::to(Dialect::Runwire) };
    assert_eq!(convert(&input, options).unwrap().messages[0].main_content, "final");
}
