//! `runwire validate`: every problem, with its line, its field and the section that is broken.

use std::fs;

use serde_json::Value;

use crate::command::{Outcome, run, vectors};

const DIALECTS: [&str; 8] =
    ["runwire", "loom", "loom-export", "streaming-engine", "agio", "ag-ui", "social-app", "easyflow-chat"];

/// What JSON Schema finds, as opposed to the order of frames.
const SHAPE: [&str; 7] = [
    "missing_field",
    "wrong_type",
    "bad_value",
    "unexpected_field",
    "bad_shape",
    "missing_choice",
    "not_an_object",
];

fn findings(outcome: &Outcome) -> Vec<Value> {
    outcome.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn codes(dialect: &str, frames: &[&str]) -> Vec<(u64, String)> {
    let outcome = run(&["validate", "--dialect", dialect, "--json"], frames.join("\n"));
    let problems: Vec<Value> =
        findings(&outcome).into_iter().filter(|finding| finding["severity"] == "problem").collect();
    assert_eq!(outcome.code, i32::from(!problems.is_empty()), "{}", outcome.stdout);
    for problem in &problems {
        assert!(problem["section"].is_string(), "no section: {problem}");
    }
    let code = |problem: &Value| problem["code"].as_str().unwrap().to_owned();
    problems.iter().map(|problem| (problem["line"].as_u64().unwrap(), code(problem))).collect()
}

fn has(line: u64, code: &str) -> Vec<(u64, String)> {
    vec![(line, code.to_owned())]
}

fn examples(dialect: &str) -> Value {
    let text = fs::read_to_string(vectors().join(dialect).join("schema.examples.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn is_of_shape(finding: &Value) -> bool {
    SHAPE.iter().any(|code| finding["code"] == *code)
}

#[test]
fn every_valid_example_of_a_document_has_no_fault_in_its_shape() {
    for dialect in DIALECTS {
        let frames: Vec<String> =
            examples(dialect)["valid"].as_array().unwrap().iter().map(Value::to_string).collect();
        let outcome = run(&["validate", "--dialect", dialect, "--json"], frames.join("\n"));
        let wrong: Vec<Value> = findings(&outcome).into_iter().filter(is_of_shape).collect();
        assert!(wrong.is_empty(), "{dialect}: {wrong:?}");
    }
}

#[test]
fn every_invalid_example_of_a_document_is_found_out() {
    for dialect in DIALECTS {
        let examples = examples(dialect);
        let invalid = examples["invalid"].as_array().unwrap();
        let frames: Vec<String> = invalid.iter().map(|example| example["frame"].to_string()).collect();
        let outcome = run(&["validate", "--dialect", dialect, "--json"], frames.join("\n"));
        let findings = findings(&outcome);
        for (at, example) in invalid.iter().enumerate() {
            let found = findings.iter().any(|finding| {
                let legacy = finding["code"] == "legacy";
                finding["line"] == at + 1 && (is_of_shape(finding) || legacy)
            });
            assert!(found, "{dialect}: nothing found where {}", example["why"]);
        }
    }
}

#[test]
fn what_runwire_writes_is_valid() {
    for case in
        ["loom/got", "agio/two-runs", "easyflow-chat/form", "runwire/approval", "ag-ui/parallel-tools"]
    {
        for dialect in DIALECTS {
            let folder = vectors().join(case);
            let files = ["ndjson", "sse"].map(|end| folder.join(format!("{dialect}.{end}")));
            let file = files.into_iter().find(|file| file.exists()).unwrap();
            let outcome = run(&["validate", "--dialect", dialect, file.to_str().unwrap()], "");
            assert_eq!(outcome.code, 0, "{case} as {dialect}:\n{}", outcome.stdout);
        }
    }
}

#[test]
fn a_problem_names_line_field_section_and_helps() {
    let frames = "{\"type\":\"node_enter\",\"id\":\"think\"}\n{\"type\":\"node_exit\",\"id\":\"think\",\"result\":\"ok\"}";
    let outcome = run(&["validate"], frames);
    assert_eq!(
        outcome.stdout.lines().next().unwrap(),
        "line 2: field `result`: is `ok`; expected: \"Ok\", or an object whose Err says what went wrong (loom §4.2) [bad_shape]"
    );
    assert_eq!(outcome.stderr, "loom: 2 frames, 1 problem, 1 note\n");

    let slip = r#"{"protocol":"easyflow-chat","version":"1.1","domain":"llm","type":"message","conversationId":"c","payload":{"delta":"x"}}"#;
    let outcome = run(&["validate", "--json"], slip);
    let problem = &findings(&outcome)[0];
    assert_eq!(problem["field"], "conversation_id");
    assert_eq!((&problem["code"], &problem["dialect"]), (&"missing_field".into(), &"easyflow-chat".into()));
    assert!(problem["hint"].as_str().unwrap().contains("`conversationId`"), "{problem}");

    let unknown = run(&["validate", "--dialect", "loom"], r#"{"type":"node_entr","id":"think"}"#);
    assert_eq!(unknown.code, 1);
    assert!(unknown.stdout.contains("is `node_enter` meant?"), "{}", unknown.stdout);
    let new = run(&["validate", "--dialect", "loom"], r#"{"type":"audio_chunk","id":"think"}"#);
    assert_eq!(new.code, 0, "{}", new.stdout);
}

#[test]
fn loom_counts_its_frames_and_closes_what_it_opened() {
    let enter = r#"{"type":"node_enter","id":"think","event_id":2}"#;
    let exit = r#"{"type":"node_exit","id":"think","result":"Ok","event_id":3}"#;
    assert_eq!(codes("loom", &[enter, exit, r#"{"reply":"","event_id":4}"#]), []);
    assert_eq!(codes("loom", &[enter, r#"{"reply":"","event_id":2}"#]), has(2, "not_increasing"));
    assert_eq!(codes("loom", &[exit]), has(1, "not_open"));
    let late = r#"{"type":"usage","prompt_tokens":1,"completion_tokens":1,"total_tokens":2}"#;
    assert_eq!(codes("loom", &[r#"{"reply":""}"#, late]), has(2, "after_end"));
    assert_eq!(codes("loom", &[r#"{"reply":""}"#, enter]), []);
}

#[test]
fn streaming_engine_starts_counts_pairs_and_ends() {
    let frame = |sequence: u64, kind: &str, data: &str| {
        let metadata = format!(r#"{{"request_id":"q","timestamp":1,"sequence":{sequence}}}"#);
        format!(r#"{{"type":"{kind}","data":{data},"metadata":{metadata}}}"#)
    };
    let start = frame(0, "session_start", r#"{"session_id":"s","request_id":"q"}"#);
    let end = frame(9, "session_end", r#"{"status":"completed"}"#);
    let content = frame(5, "content", r#"{"content":"Hi"}"#);
    assert_eq!(codes("streaming-engine", &[&start, &content, &end]), []);
    assert_eq!(codes("streaming-engine", &[&content, &end]), has(1, "not_started"));
    assert_eq!(codes("streaming-engine", &[&start, &content, &content, &end]), has(3, "not_increasing"));
    let orphan = frame(3, "tool_call_end", r#"{"tool_id":"t","status":"success"}"#);
    assert_eq!(codes("streaming-engine", &[&start, &orphan, &end]), has(2, "not_open"));
    let late = frame(10, "content", r#"{"content":"Hi"}"#);
    assert_eq!(codes("streaming-engine", &[&start, &end, &late]), has(3, "after_end"));
}

#[test]
fn agio_starts_pairs_and_ends() {
    let frame = |kind: &str, data: &str| {
        format!(r#"{{"type":"{kind}","run_id":"r","timestamp":"2026-11-12T08:15:00.120Z","data":{data}}}"#)
    };
    let start = frame("run_started", r#"{"query":"?"}"#);
    let end = frame("run_completed", r#"{"response":"","metrics":{"duration":1}}"#);
    assert_eq!(codes("agio", &[&start, &end]), []);
    assert_eq!(codes("agio", &[&end]), has(1, "not_started"));
    let orphan = frame("tool_call_completed", r#"{"tool_name":"n","tool_call_id":"c","result":1,"step":1}"#);
    assert_eq!(codes("agio", &[&start, &orphan, &end]), has(2, "not_open"));
    let late = frame("text_delta", r#"{"content":"x","step":1}"#);
    assert_eq!(codes("agio", &[&start, &end, &late]), has(3, "after_end"));
}

#[test]
fn ag_ui_is_judged_as_the_official_client_does() {
    let start = r#"{"type":"RUN_STARTED","threadId":"t","runId":"r"}"#;
    let end = r#"{"type":"RUN_FINISHED","threadId":"t","runId":"r"}"#;
    let error = r#"{"type":"RUN_ERROR","message":"no"}"#;
    let text = |what: &str, more: &str| format!(r#"{{"type":"TEXT_MESSAGE_{what}","messageId":"m"{more}}}"#);
    let (open, close) = (text("START", r#","role":"assistant""#), text("END", ""));
    let content = text("CONTENT", r#","delta":"x""#);
    let step = |what: &str| format!(r#"{{"type":"STEP_{what}","stepName":"s"}}"#);
    assert_eq!(codes("ag-ui", &[start, &open, &content, &close, end, start, end]), []);
    assert_eq!(codes("ag-ui", &[error]), []);
    assert_eq!(codes("ag-ui", &[&open, &close]), has(1, "not_started"));
    assert_eq!(codes("ag-ui", &[start, &open, &open, &close, end]), has(3, "already_open"));
    assert_eq!(codes("ag-ui", &[start, &content, end]), has(2, "not_open"));
    assert_eq!(codes("ag-ui", &[start, &step("STARTED"), &step("STARTED"), error]), has(3, "already_open"));
    assert_eq!(codes("ag-ui", &[start, &step("FINISHED"), end]), has(2, "not_open"));
    assert_eq!(codes("ag-ui", &[start, &open, end]), has(3, "still_open"));
    assert_eq!(codes("ag-ui", &[start, start, end]), has(2, "already_open"));
    assert_eq!(codes("ag-ui", &[start, end, &open]), has(3, "after_end"));
}

#[test]
fn social_app_names_its_sse_events_by_their_type() {
    let frame = r#"{"type":"RUN_STARTED","threadId":"t","runId":"r"}"#;
    assert_eq!(codes("social-app", &[&format!("event: RUN_STARTED\ndata: {frame}\n\n")]), []);
    let wrong = format!("event: message\ndata: {frame}\n\n");
    assert_eq!(codes("social-app", &[&wrong]), has(2, "bad_event_name"));
}

#[test]
fn a_stream_that_turns_out_to_be_social_apps_is_judged_by_its_document() {
    let file = vectors().join("social-app/two-runs/input.sse");
    let outcome = run(&["validate", file.to_str().unwrap()], "");
    assert_eq!((outcome.code, outcome.stdout.as_str()), (0, ""));
    assert!(outcome.stderr.starts_with("social-app: "), "{}", outcome.stderr);
}

#[test]
fn easyflow_ends_once_and_counts_per_message() {
    let frame = |domain: &str, kind: &str, more: &str| {
        format!(
            r#"{{"protocol":"easyflow-chat","version":"1.1","domain":"{domain}","type":"{kind}","conversation_id":"c",{more}}}"#
        )
    };
    let delta = |message: &str, index: u64| {
        frame(
            "llm",
            "message",
            &format!(r#""message_id":"{message}","index":{index},"payload":{{"delta":"x"}}"#),
        )
    };
    let done = frame("system", "done", r#""payload":{}"#);
    assert_eq!(codes("easyflow-chat", &[&delta("m", 0), &delta("n", 0), &delta("m", 1), &done]), []);
    assert_eq!(codes("easyflow-chat", &[&delta("m", 1), &delta("m", 1), &done]), has(2, "not_increasing"));
    assert_eq!(codes("easyflow-chat", &[&done, &delta("m", 0)]), has(2, "after_end"));
    let sse = |name: &str, frame: &str| format!("event: {name}\ndata: {frame}\n\n");
    assert_eq!(codes("easyflow-chat", &[&sse("done", &done)]), []);
    assert_eq!(codes("easyflow-chat", &[&sse("message", &done)]), has(2, "bad_event_name"));
    assert_eq!(codes("easyflow-chat", &[&sse("token", &delta("m", 0))]), has(2, "bad_event_name"));
    let node = |state: &str| {
        frame("workflow", "status", &format!(r#""payload":{{"node_id":"n","state":"{state}"}}"#))
    };
    assert_eq!(codes("easyflow-chat", &[&node("start"), &node("end"), &done]), []);
    assert_eq!(codes("easyflow-chat", &[&node("end"), &done]), has(1, "not_open"));
}

#[test]
fn each_session_of_an_interleaved_stream_is_judged_by_itself() {
    // Loom: one session has replied, the other goes on; each counts for itself.
    let loom = |session: &str, event: u64, rest: &str| {
        format!(r#"{{"session_id":"{session}","event_id":{event},{rest}}}"#)
    };
    let enter = r#""type":"node_enter","id":"think""#;
    let exit = r#""type":"node_exit","id":"think","result":"Ok""#;
    let two = [
        loom("a", 5, enter),
        loom("b", 1, enter),
        loom("a", 6, exit),
        loom("a", 7, r#""reply":"""#),
        loom("b", 2, exit),
        loom("b", 3, r#""reply":"""#),
    ];
    assert_eq!(codes_of("loom", &two), []);
    let mut wrong = two.clone();
    wrong[4] = loom("b", 1, exit);
    assert_eq!(codes_of("loom", &wrong), has(5, "not_increasing"));

    // StreamingEngine names the session in its start alone; both call their tool the same.
    let engine = |request: &str, sequence: u64, kind: &str, data: &str| {
        let metadata = format!(r#"{{"request_id":"{request}","timestamp":1,"sequence":{sequence}}}"#);
        format!(r#"{{"type":"{kind}","data":{data},"metadata":{metadata}}}"#)
    };
    let begun = |session: &str, request: &str| {
        engine(
            request,
            0,
            "session_start",
            &format!(r#"{{"session_id":"{session}","request_id":"{request}"}}"#),
        )
    };
    let call = r#"{"tool_id":"t","tool_name":"n","arguments":{}}"#;
    let done = r#"{"tool_id":"t","status":"success"}"#;
    let engines = [
        begun("s1", "q1"),
        begun("s2", "q2"),
        engine("q1", 1, "tool_call_start", call),
        engine("q2", 1, "tool_call_start", call),
        engine("q1", 2, "tool_call_end", done),
        engine("q1", 3, "session_end", r#"{"status":"completed"}"#),
        engine("q2", 2, "tool_call_end", done),
        engine("q2", 3, "session_end", r#"{"status":"completed"}"#),
    ];
    assert_eq!(codes_of("streaming-engine", &engines), []);

    // social-app and easyflow-chat name it in every frame.
    let social =
        |thread: &str, kind: &str| format!(r#"{{"type":"{kind}","threadId":"{thread}","runId":"r"}}"#);
    let socials = [
        social("a", "RUN_STARTED"),
        social("b", "RUN_STARTED"),
        social("a", "RUN_FINISHED"),
        social("b", "RUN_FINISHED"),
    ];
    assert_eq!(codes_of("social-app", &socials), []);
    let easyflow = |conversation: &str, kind: &str, more: &str| {
        format!(
            r#"{{"protocol":"easyflow-chat","version":"1.1","domain":"{kind}","conversation_id":"{conversation}",{more}}}"#
        )
    };
    let delta = r#""message_id":"m","index":0,"payload":{"delta":"x"}"#;
    let chats = [
        easyflow("a", r#"llm","type":"message"#, delta),
        easyflow("b", r#"llm","type":"message"#, delta),
        easyflow("a", r#"system","type":"done"#, r#""payload":{}"#),
        easyflow("b", r#"system","type":"done"#, r#""payload":{}"#),
    ];
    assert_eq!(codes_of("easyflow-chat", &chats), []);

    let agio = |run: &str, kind: &str, data: &str| {
        format!(
            r#"{{"type":"{kind}","run_id":"{run}","timestamp":"2026-11-12T08:15:00.120Z","data":{data}}}"#
        )
    };
    let call = r#"{"tool_name":"n","tool_call_id":"c","arguments":{},"step":1}"#;
    let agios = [
        agio("a", "run_started", r#"{"query":"?"}"#),
        agio("b", "run_started", r#"{"query":"?"}"#),
        agio("a", "tool_call_started", call),
        agio("b", "tool_call_started", call),
    ];
    assert_eq!(codes_of("agio", &agios), []);
}

fn codes_of(dialect: &str, frames: &[String]) -> Vec<(u64, String)> {
    codes(dialect, &frames.iter().map(String::as_str).collect::<Vec<_>>())
}

#[test]
fn a_reused_tool_call_id_of_social_app_is_found() {
    let frame = |kind: &str, more: &str| format!(r#"{{"type":"{kind}","threadId":"t","runId":"r"{more}}}"#);
    let call = r#","messageId":"m","toolCallId":"c","toolCallName":"n","stage":"worker""#;
    let frames = [
        frame("RUN_STARTED", ""),
        frame("TOOL_CALL_START", call),
        frame("TOOL_CALL_END", call),
        frame("TOOL_CALL_START", call),
    ];
    assert_eq!(codes_of("social-app", &frames), has(4, "already_used"));
    // Also after many others.
    let others = (0..200).flat_map(|id| {
        let call = call.replace(r#""c""#, &format!(r#""c{id}""#));
        [frame("TOOL_CALL_START", &call), frame("TOOL_CALL_END", &call)]
    });
    let frames: Vec<String> = frames[..3].iter().cloned().chain(others).chain([frames[3].clone()]).collect();
    assert_eq!(codes_of("social-app", &frames), has(404, "already_used"));
}

#[test]
fn runwire_keeps_its_normal_form() {
    let frame = |seq: u64, kind: &str, more: &str| {
        let at = format!("2026-11-15T02:44:33.{seq:03}Z");
        format!(r#"{{"seq":{seq},"at":"{at}","thread_id":"t","run_id":"r","type":"{kind}"{more}}}"#)
    };
    let message = r#","message_id":"m""#;
    let start = frame(1, "run.started", "");
    let text = frame(2, "text.started", message);
    let delta = frame(3, "text.delta", r#","message_id":"m","content":"x""#);
    let finished = frame(4, "text.finished", message);
    let end = frame(5, "run.completed", "");
    assert_eq!(codes("runwire", &[&start, &text, &delta, &finished, &end]), []);
    assert_eq!(codes("runwire", &[&start, &delta, &end]), has(2, "not_open"));
    assert_eq!(codes("runwire", &[&end]), has(1, "not_started"));
    let late = frame(6, "custom", r#","value":1"#);
    assert_eq!(codes("runwire", &[&start, &end, &late]), has(3, "after_end"));
    let back = frame(2, "custom", r#","value":1"#);
    let expected = vec![(5, "not_increasing".to_owned()), (5, "not_increasing".to_owned())];
    assert_eq!(codes("runwire", &[&start, &text, &delta, &finished, &back, &end]), expected);
}

#[test]
fn legacy_events_are_noted_and_no_problem() {
    let file = vectors().join("streaming-engine/legacy/input.ndjson");
    let outcome = run(&["validate", "--json", file.to_str().unwrap()], "");
    assert_eq!(outcome.code, 0, "{}", outcome.stdout);
    assert!(findings(&outcome).iter().all(|finding| finding["severity"] == "note"));
}

#[test]
fn everything_that_is_written_for_social_app_is_valid() {
    let mut wrong = Vec::new();
    for dialect in DIALECTS {
        let cases = fs::read_dir(vectors().join(dialect)).unwrap().map(|entry| entry.unwrap().path());
        for case in cases.filter(|path| path.is_dir()) {
            let file = |name: &str| case.join(name).to_str().unwrap().to_owned();
            let input =
                [file("input.ndjson"), file("input.sse")].into_iter().find(|path| fs::exists(path).unwrap());
            let full =
                ["convert", "--from", dialect, "--to", "social-app", "--fidelity", "full", &input.unwrap()];
            let full = run(&full, "").stdout;
            let native = fs::read_to_string(file("social-app.sse")).unwrap();
            for (fidelity, stream) in [("native", native), ("full", full)] {
                let outcome = run(&["validate", "--dialect", "social-app"], stream);
                if outcome.code != 0 {
                    wrong.push(format!("{} ({fidelity}):\n{}", case.display(), outcome.stdout));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
