//! Loom's envelope: sessions that lie side by side, node runs inside each other, ordering over several runs.

use runwire_model::convert::{Converter, Options};
use runwire_model::dialect::Dialect;
use runwire_model::event::Body;
use runwire_model::run::RunState;
use serde_json::Value;

use super::properties::{WireFrame, decode_into};

/// Converts lines of Loom; each frame that comes out, and how the conversion ended.
fn converted(lines: &[&str], options: Options) -> (Vec<Value>, Result<(), String>) {
    let mut frames = Vec::new();
    let mut converter = Converter::new(Options { from: Some(Dialect::Loom), ..options });
    let mut sink = |converted: runwire_model::convert::Converted<'_>| {
        for (_, data) in converted.frames.iter() {
            frames.push(serde_json::from_slice(data).unwrap_or_default());
        }
    };
    let mut ended = Ok(());
    for (at, line) in lines.iter().enumerate() {
        let pushed = converter.push(at as u64 + 1, None, line.as_bytes(), &mut sink);
        if let Err(error) = pushed {
            ended = Err(format!("{} {}", error.line, error.problem.code()));
            break;
        }
    }
    if ended.is_ok() {
        converter.finish(&mut sink).unwrap();
    }
    (frames, ended)
}

/// Two sessions, frame by frame beside each other; the first has two runs.
const SIDE_BY_SIDE: &[&str] = &[
    r#"{"session_id":"a","event_id":1,"type":"run_start","run_id":"a1"}"#,
    r#"{"session_id":"b","event_id":1,"type":"run_start","run_id":"b1"}"#,
    r#"{"session_id":"a","node_id":"run-think-0","event_id":2,"type":"node_enter","id":"think"}"#,
    r#"{"session_id":"b","node_id":"run-think-0","event_id":2,"type":"node_enter","id":"think"}"#,
    r#"{"session_id":"a","node_id":"run-think-0","event_id":3,"type":"message_chunk","content":"A","id":"think"}"#,
    r#"{"session_id":"b","node_id":"run-think-0","event_id":3,"type":"message_chunk","content":"B","id":"think"}"#,
    r#"{"session_id":"a","node_id":"run-think-0","event_id":4,"type":"node_exit","id":"think","result":"Ok"}"#,
    r#"{"session_id":"a","node_id":"run-think-0","event_id":5,"reply":"A"}"#,
    r#"{"session_id":"a","event_id":6,"type":"run_start","run_id":"a2"}"#,
    r#"{"session_id":"b","node_id":"run-think-0","event_id":4,"type":"node_exit","id":"think","result":"Ok"}"#,
    r#"{"session_id":"a","event_id":7,"reply":""}"#,
    r#"{"session_id":"b","node_id":"run-think-0","event_id":5,"reply":"B"}"#,
];

fn of_session<'f>(frames: &'f [Value], session: &str) -> Vec<&'f Value> {
    frames.iter().filter(|frame| frame["session_id"] == session).collect()
}

#[test]
fn sessions_that_lie_side_by_side_keep_their_ids_runs_and_counters() {
    let (frames, ended) = converted(SIDE_BY_SIDE, Options::to(Dialect::Loom));
    assert_eq!(ended, Ok(()));
    assert_eq!(frames.len(), SIDE_BY_SIDE.len(), "no run is ended or invented");
    for (frame, line) in frames.iter().zip(SIDE_BY_SIDE) {
        let mut source: Value = serde_json::from_str(line).unwrap();
        // The second run of a session goes on above the first.
        source["event_id"] = frame["event_id"].clone();
        assert_eq!(*frame, source);
    }
    let ids = |session| -> Vec<u64> {
        of_session(&frames, session).iter().map(|frame| frame["event_id"].as_u64().unwrap()).collect()
    };
    assert_eq!(ids("b"), [1, 2, 3, 4, 5]);
    assert_eq!(ids("a"), [1, 2, 3, 4, 5, 65536 * 5 + 1, 65536 * 5 + 2]);
}

#[test]
fn sessions_that_lie_side_by_side_stay_whole_in_every_dialect_that_can_tell_them_apart() {
    for to in Dialect::ALL.into_iter().filter(|to| to.names_its_run()) {
        let (frames, ended) = converted(SIDE_BY_SIDE, Options::to(to));
        assert_eq!(ended, Ok(()), "{to}");
        let text = serde_json::to_string(&frames).unwrap();
        assert!(!text.contains("stream_ended"), "{to}: {text}");
    }
}

#[test]
fn sessions_that_lie_side_by_side_are_refused_where_readers_could_not_tell_them_apart() {
    for to in Dialect::ALL.into_iter().filter(|to| !to.names_its_run()) {
        let (_, ended) = converted(SIDE_BY_SIDE, Options::to(to));
        assert_eq!(ended, Err("3 needs_run".to_owned()), "{to}");
    }
    // One after the other they are no matter, even if the first has no end.
    let one_by_one = [SIDE_BY_SIDE[0], SIDE_BY_SIDE[2], SIDE_BY_SIDE[1], SIDE_BY_SIDE[3], SIDE_BY_SIDE[11]];
    let (frames, ended) = converted(&one_by_one, Options::to(Dialect::AgUi));
    assert_eq!(ended, Ok(()));
    assert_eq!(frames.iter().filter(|frame| frame["type"] == "RUN_STARTED").count(), 2);
}

#[test]
fn the_session_of_a_runs_first_frame_stays_for_the_whole_run() {
    let lines = [
        r#"{"session_id":"s1","type":"run_start","run_id":"r1"}"#,
        r#"{"type":"message_chunk","content":"x","id":"think"}"#,
        r#"{"type":"custom","value":1}"#,
    ];
    let options = Options { thread: Some("t1".into()), ..Options::to(Dialect::Loom) };
    let (frames, ended) = converted(&lines, options);
    assert_eq!(ended, Ok(()));
    // The guard's end of a stream that just stops, too.
    assert_eq!(frames.len(), 4);
    assert!(frames.iter().all(|frame| frame["session_id"] == "s1"), "{frames:?}");
}

#[test]
fn sessions_in_a_thread_that_the_caller_names_are_runs_of_their_own() {
    let options = |to| Options { thread: Some("t1".into()), ..Options::to(to) };
    let (frames, ended) = converted(SIDE_BY_SIDE, options(Dialect::Loom));
    assert_eq!((frames.len(), ended), (SIDE_BY_SIDE.len(), Ok(())), "no run is ended or invented");
    for (frame, line) in frames.iter().zip(SIDE_BY_SIDE) {
        let mut source: Value = serde_json::from_str(line).unwrap();
        source["event_id"] = frame["event_id"].clone();
        assert_eq!(*frame, source);
    }
    let (frames, _) = converted(SIDE_BY_SIDE, options(Dialect::Runwire));
    let seqs: Vec<u64> = frames.iter().map(|frame| frame["seq"].as_u64().unwrap()).collect();
    assert!(seqs.is_sorted() && frames.iter().all(|frame| frame["thread_id"] == "t1"), "{frames:?}");
    // Readers that could not tell them apart are told so.
    let (_, ended) = converted(SIDE_BY_SIDE, options(Dialect::AgUi));
    assert_eq!(ended, Err("3 needs_run".to_owned()));
    // One after the other, they follow each other in any dialect.
    let one_by_one = [
        r#"{"session_id":"a","type":"run_start"}"#,
        r#"{"session_id":"a","reply":"A"}"#,
        r#"{"session_id":"b","type":"run_start"}"#,
        r#"{"session_id":"b","reply":"B"}"#,
    ];
    let (frames, ended) = converted(&one_by_one, options(Dialect::AgUi));
    assert_eq!(ended, Ok(()));
    assert_eq!(frames.iter().filter(|frame| frame["type"] == "RUN_FINISHED").count(), 2);
}

#[test]
fn a_run_without_a_session_has_the_threads_id() {
    let options = Options { thread: Some("t1".into()), ..Options::to(Dialect::Loom) };
    let (frames, _) = converted(&[r#"{"type":"run_start","run_id":"r1"}"#, r#"{"reply":"x"}"#], options);
    assert!(frames.iter().all(|frame| frame["session_id"] == "t1"), "{frames:?}");
}

#[test]
fn a_node_run_keeps_its_id_after_inner_ones() {
    let named = include_str!("../../../../vectors/loom/nested-nodes/input.ndjson");
    let lines: Vec<&str> = named.lines().collect();
    let (frames, _) = converted(&lines, Options::to(Dialect::Loom));
    let expected: Vec<Value> = lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(frames, expected, "the producer's right ids come back");
    // Without ids of the producer's, ours follow the same rule.
    let bare = named.replace("run-plan-7", "run-plan-0").replace("run-search-8", "run-search-1");
    let bare = bare.replace("run-close-9", "run-close-2");
    let expected: Vec<Value> = bare.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let lines: Vec<String> = expected
        .iter()
        .map(|frame| {
            let mut frame = frame.clone();
            frame.as_object_mut().unwrap().remove("node_id");
            frame.to_string()
        })
        .collect();
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    assert_eq!(converted(&lines, Options::to(Dialect::Loom)).0, expected);
}

/// Frames of an outer node while an inner one is open, and an outer node that ends before an inner one of its name.
const OUTER_SPEAKS: &[&str] = &[
    r#"{"session_id":"s","event_id":1,"type":"run_start","run_id":"r"}"#,
    r#"{"session_id":"s","node_id":"run-plan-7","event_id":2,"type":"node_enter","id":"plan"}"#,
    r#"{"session_id":"s","node_id":"run-plan-8","event_id":3,"type":"node_enter","id":"plan"}"#,
    r#"{"session_id":"s","node_id":"run-act-2","event_id":4,"type":"node_enter","id":"act"}"#,
    r#"{"session_id":"s","node_id":"run-plan-7","event_id":5,"type":"message_chunk","content":"Out","id":"plan"}"#,
    r#"{"session_id":"s","node_id":"run-plan-8","event_id":6,"type":"message_chunk","content":"er","id":"plan"}"#,
    r#"{"session_id":"s","node_id":"run-plan-7","event_id":7,"type":"usage","prompt_tokens":1,"completion_tokens":2,"total_tokens":3}"#,
    r#"{"session_id":"s","node_id":"run-plan-7","event_id":8,"type":"tool_call","call_id":"c","name":"n","arguments":{}}"#,
    r#"{"session_id":"s","node_id":"run-act-2","event_id":9,"type":"tool_end","call_id":"c","name":"n","result":"","is_error":false}"#,
    r#"{"session_id":"s","node_id":"run-plan-8","event_id":10,"type":"custom","value":1}"#,
    r#"{"session_id":"s","node_id":"run-plan-7","event_id":11,"type":"node_exit","id":"plan","result":"Ok"}"#,
    r#"{"session_id":"s","node_id":"run-plan-8","event_id":12,"type":"thought_chunk","content":"hm","id":"plan"}"#,
    r#"{"session_id":"s","node_id":"run-act-2","event_id":13,"type":"node_exit","id":"act","result":"Ok"}"#,
    r#"{"session_id":"s","node_id":"run-plan-8","event_id":14,"type":"node_exit","id":"plan","result":"Ok"}"#,
    r#"{"session_id":"s","node_id":"run-plan-8","event_id":15,"reply":"Outer"}"#,
];

#[test]
fn what_an_outer_node_says_beside_an_inner_one_keeps_its_node_id() {
    let (frames, ended) = converted(OUTER_SPEAKS, Options::to(Dialect::Loom));
    assert_eq!(ended, Ok(()));
    let expected: Vec<Value> = OUTER_SPEAKS.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(frames, expected, "the producer's right ids come back, and nothing beside them");
}

#[test]
fn every_dialect_with_steps_knows_which_node_spoke() {
    let (frames, _) = converted(OUTER_SPEAKS, Options::to(Dialect::Runwire));
    let steps = |kind: &str| -> Vec<&str> {
        let of_kind = frames.iter().filter(|frame| frame["type"] == kind);
        of_kind.map(|frame| frame["step_id"].as_str().unwrap_or_default()).collect()
    };
    assert_eq!(steps("text.delta"), ["plan.1", "plan.2"]);
    assert_eq!(steps("usage"), ["plan.1"]);
    assert_eq!(steps("tool.called"), ["plan.1"]);
    assert_eq!(steps("tool.finished"), ["act.3"]);
    assert_eq!(steps("custom"), ["plan.2"]);
    assert_eq!(steps("step.finished"), ["plan.1", "act.3", "plan.2"]);
    let (frames, _) = converted(OUTER_SPEAKS, Options::to(Dialect::Agio));
    let texts = frames.iter().filter(|frame| frame["type"] == "text_delta");
    assert_eq!(texts.map(|frame| frame["data"]["step"].as_u64().unwrap()).collect::<Vec<_>>(), [1, 2]);
}

#[test]
fn a_node_is_known_by_its_id_after_the_state_was_stored() {
    let frames: Vec<WireFrame> = OUTER_SPEAKS.iter().map(|line| (None, line.as_bytes().to_vec())).collect();
    let mut state = RunState::new("s", "r");
    let mut steps = Vec::new();
    for frame in &frames {
        let records = decode_into(&mut state, std::slice::from_ref(frame), Dialect::Loom).unwrap();
        let entries = records.iter().flat_map(|record| &record.entries);
        let pieces = entries.filter(|entry| matches!(entry.event.body, Body::TextDelta(_)));
        steps.extend(pieces.filter_map(|entry| entry.event.step_id.clone()));
        state = serde_json::from_str(&serde_json::to_string(&state).unwrap()).unwrap();
    }
    assert_eq!(steps, ["plan.1", "plan.2"]);
}

#[test]
fn an_unknown_node_id_and_a_name_that_contradicts_it_change_nothing() {
    let lines = [
        OUTER_SPEAKS[0],
        OUTER_SPEAKS[1],
        OUTER_SPEAKS[3],
        r#"{"node_id":"run-gone-1","type":"message_chunk","content":"x","id":"act"}"#,
        r#"{"node_id":5,"type":"message_chunk","content":"y","id":"act"}"#,
        r#"{"node_id":"run-plan-7","type":"node_exit","id":"act","result":"Ok"}"#,
    ];
    let (frames, _) = converted(&lines, Options::to(Dialect::Loom));
    let ids: Vec<&str> = frames[3..6].iter().map(|frame| frame["node_id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["run-act-2"; 3]);
}

/// Plays frames of tools; each call's id and arguments with its result.
fn results(frames: &[&str]) -> Vec<String> {
    let mut lines = vec![r#"{"type":"run_start","run_id":"qq3"}"#];
    lines.extend(frames);
    lines.push(r#"{"reply":""}"#);
    let (frames, ended) = converted(&lines, Options::to(Dialect::Runwire));
    assert_eq!(ended, Ok(()));
    let of_type = |kind: &'static str| frames.iter().filter(move |frame| frame["type"] == kind);
    of_type("tool.called")
        .map(|called| {
            let result = of_type("tool.finished").find(|finished| finished["call_id"] == called["call_id"]);
            let result = result.map_or(&Value::Null, |finished| &finished["result"]);
            format!("{} {} {}", called["call_id"], called["arguments"]["q"], result)
        })
        .collect()
}

#[test]
fn an_end_without_an_id_is_that_of_a_call_without_one() {
    let call = r#"{"type":"tool_call","call_id":"ID","name":"k","arguments":{"q":1}}"#;
    let other = r#"{"type":"tool_call","name":"k","arguments":{"q":2}}"#;
    let start = r#"{"type":"tool_start","name":"k"}"#;
    let end = r#"{"type":"tool_end","call_id":"ID","name":"k","result":"r1","is_error":false}"#;
    let other_end = r#"{"type":"tool_end","name":"k","result":"r2","is_error":false}"#;
    let nameless = r#"{"type":"tool_end","result":"r2","is_error":false}"#;
    for id in ["abc", "qq3:c1", "qq3:c2", "qq3:c3"] {
        let (call, end) = (call.replace("ID", id), end.replace("ID", id));
        for frames in [
            vec![&*call, other, other_end, &*end],
            vec![&*call, other, nameless, &*end],
            vec![&*call, other, &*end, other_end],
            vec![&*call, other, start, other_end, &*end],
            vec![other, &*call, other_end, &*end],
            vec![other, &*call, &*end, other_end],
            vec![other, start, &*call, start, &*end, other_end],
        ] {
            let mut told = results(&frames);
            told.sort_by_key(|call| call.contains("r2"));
            let told: Vec<_> = told.iter().map(|call| call.split_once(' ').unwrap().1).collect();
            assert_eq!(told, [r#"1 "r1""#, r#"2 "r2""#], "{frames:?}");
        }
    }
}

#[test]
fn the_id_of_a_call_that_has_ended_is_no_name_of_another() {
    let end = |id: &str, result: &str| {
        format!(r#"{{"type":"tool_end","call_id":"{id}","name":"k","result":"{result}","is_error":false}}"#)
    };
    let call = r#"{"type":"tool_call","call_id":"abc","name":"k","arguments":{"q":1}}"#;
    let bare = |q: u8| format!(r#"{{"type":"tool_call","name":"k","arguments":{{"q":{q}}}}}"#);
    let told = results(&[call, &end("abc", "r1"), &bare(2), &end("abc", "again"), &end("x", "r2")]);
    assert!(told.iter().any(|call| call.ends_with(r#"2 "r2""#)), "{told:?}");
    let told = results(&[&bare(1), &bare(2), &end("x", "r1"), &end("x", "again"), &end("y", "r2")]);
    assert!(told.iter().any(|call| call.ends_with(r#"2 "r2""#)), "{told:?}");
}
