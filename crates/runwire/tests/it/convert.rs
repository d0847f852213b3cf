//! `runwire convert` on valid streams.

use std::fs;

use serde_json::Value;

use crate::command::{run, vectors};

const DIALECTS: [&str; 8] =
    ["runwire", "loom", "loom-export", "streaming-engine", "agio", "ag-ui", "social-app", "easyflow-chat"];

/// Converts a vector's input and compares it with the expected file.
fn matches_the_vector(case: &str, to: &str, more: &[&str], file: &str) {
    let folder = vectors().join(case);
    let input =
        ["input.ndjson", "input.sse"].map(|name| folder.join(name)).into_iter().find(|path| path.exists());
    let input = input.unwrap();
    let mut arguments = vec!["convert", "--to", to];
    arguments.extend(more);
    arguments.push(input.to_str().unwrap());
    let outcome = run(&arguments, "");
    let expected = fs::read_to_string(folder.join(file)).unwrap();
    assert_eq!(outcome.code, 0, "{case} to {to}: {}", outcome.stderr);
    assert_eq!(outcome.stdout, expected, "{case} to {to}");
}

#[test]
fn vectors_become_what_is_expected_in_every_dialect_and_framing() {
    for case in ["loom/got", "agio/parallel-tools", "easyflow-chat/chinese", "ag-ui/chunks"] {
        for to in ["runwire", "loom", "loom-export", "streaming-engine", "agio", "ag-ui"] {
            matches_the_vector(case, to, &[], &format!("{to}.ndjson"));
        }
        for to in ["social-app", "easyflow-chat"] {
            matches_the_vector(case, to, &["--framing", "sse"], &format!("{to}.sse"));
        }
        matches_the_vector(case, "text", &[], "text.txt");
    }
}

#[test]
fn the_dialect_may_be_named_or_found_out() {
    matches_the_vector("agio/sse-event-names", "runwire", &["--from", "agio"], "runwire.ndjson");
    matches_the_vector("streaming-engine/legacy", "runwire", &["--from", "auto"], "runwire.ndjson");
}

#[test]
fn ids_can_be_set() {
    let outcome = run(&["convert", "--to", "runwire", "--thread", "t", "--run", "r"], r#"{"reply":"Hi"}"#);
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    for line in outcome.stdout.lines() {
        let event: Value = serde_json::from_str(line).unwrap();
        assert_eq!((&event["thread_id"], &event["run_id"]), (&"t".into(), &"r".into()));
    }
}

#[test]
fn text_is_bare_or_framed_as_asked() {
    let loom = "{\"type\":\"message_chunk\",\"content\":\"a\\nb\",\"id\":\"n\"}\n{\"reply\":\"a\\nb\"}\n";
    assert_eq!(run(&["convert", "--to", "text"], loom).stdout, "a\nb\n");
    assert_eq!(run(&["convert", "--to", "text", "--framing", "ndjson"], loom).stdout, "\"a\\nb\"\n");
    let events = run(&["convert", "--to", "text", "--framing", "sse"], loom).stdout;
    assert_eq!(events, "id: 1-0\ndata: a\ndata: b\n\n");
}

#[test]
fn sse_frames_carry_their_cursor_and_the_name_where_the_dialect_has_one() {
    let loom = r#"{"reply":"Hi"}"#;
    let named = run(&["convert", "--to", "easyflow-chat", "--framing", "sse"], loom).stdout;
    assert!(named.starts_with("id: 1-0\nevent: message\ndata: {"), "{named}");
    let unnamed = run(&["convert", "--to", "ag-ui", "--framing", "sse"], loom).stdout;
    assert!(unnamed.starts_with("id: 1-0\ndata: {"), "{unnamed}");
}

#[test]
fn slots_that_are_not_wanted_are_not_written() {
    let input = [
        r#"{"type":"run.started","run_id":"r"}"#,
        r#"{"type":"thinking.started","message_id":"t","run_id":"r"}"#,
        r#"{"type":"thinking.delta","message_id":"t","content":"Hm.","run_id":"r"}"#,
        r#"{"type":"interaction.requested","interaction_id":"q","kind":"form","run_id":"r"}"#,
        r#"{"type":"run.completed","run_id":"r"}"#,
    ]
    .join("\n");
    let converted = |slots: &str| run(&["convert", "--to", "agio", "--slots", slots], &input).stdout;
    assert!(converted("all").contains("thinking.delta"));
    let asks = converted("asks");
    assert!(asks.contains("interaction.requested") && !asks.contains("thinking.delta"), "{asks}");
    assert!(!converted("none").contains("\"debug\""));
    // The ids are those of a server that is asked the same.
    let events = run(&["convert", "--to", "agio", "--slots", "asks", "--framing", "sse"], &input).stdout;
    assert!(events.starts_with(&format!("id: 1-{}\n", 2881_u32 << 20)), "{events}");
}

#[test]
fn full_fidelity_goes_there_and_back() {
    let input = fs::read_to_string(vectors().join("runwire/parallel-tools/input.ndjson")).unwrap();
    let there = run(&["convert", "--to", "agio", "--fidelity", "full"], &input);
    let back = run(&["convert", "--to", "runwire", "--trusted"], &there.stdout);
    assert_eq!((there.code, back.code), (0, 0), "{}{}", there.stderr, back.stderr);
    let types = |stream: &str| -> Vec<Value> {
        stream.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["type"].clone()).collect()
    };
    assert_eq!(types(&back.stdout), types(&input));
}

#[test]
fn every_framing_of_the_input_is_recognised_or_can_be_named() {
    let object = r#"{"type":"run_start","run_id":"r"}"#;
    let expected = run(&["convert", "--to", "runwire"], object).stdout;
    assert!(expected.contains("run.started"), "{expected}");
    let array = format!("[{object}]");
    let event = format!("data: {object}\n\n");
    for (input, framing) in [(array.as_str(), "json"), (&event, "sse"), (object, "ndjson"), (object, "json")]
    {
        for framing in ["auto", framing] {
            let outcome = run(&["convert", "--to", "runwire", "--input-framing", framing], input);
            assert_eq!((outcome.code, &outcome.stdout), (0, &expected), "{framing}: {}", outcome.stderr);
        }
    }
}

#[test]
fn what_a_person_said_is_taken_only_from_a_trusted_log() {
    let log = [
        r#"{"seq":1,"at":"2026-11-15T02:44:33.000Z","thread_id":"t","run_id":"r","type":"run.started"}"#,
        r#"{"seq":2,"at":"2026-11-15T02:44:33.000Z","thread_id":"t","run_id":"r","type":"run.cancel_requested"}"#,
    ]
    .join("\n");
    let claimed = run(&["convert", "--to", "runwire"], &log);
    assert!(claimed.stdout.contains(r#""type":"foreign""#), "{}", claimed.stdout);
    assert!(claimed.stderr.contains("--trusted"), "{}", claimed.stderr);
    let copied = run(&["convert", "--to", "runwire", "--trusted"], &log);
    assert!(copied.stdout.contains(r#""type":"run.cancel_requested""#), "{}", copied.stdout);
}

#[test]
fn usage_is_exit_code_2_and_a_missing_file_3() {
    assert_eq!(run(&["convert"], "").code, 2);
    assert_eq!(run(&["convert", "--to", "klingon"], "").code, 2);
    assert_eq!(run(&["convert", "--from", "text", "--to", "loom"], "").code, 2);
    assert_eq!(run(&["convert", "--to", "loom", "--thread", ""], "").code, 2);
    let outcome = run(&["convert", "--to", "loom", "/nowhere/run.ndjson"], "");
    assert_eq!(outcome.code, 3);
    assert!(outcome.stderr.contains("/nowhere/run.ndjson"), "{}", outcome.stderr);
    assert_eq!(run(&["convert", "--to", "loom", env!("CARGO_MANIFEST_DIR")], "").code, 3);
}

#[test]
fn help_teaches_with_examples_and_the_version_is_told() {
    for command in ["convert", "validate"] {
        let outcome = run(&[command, "--help"], "");
        assert_eq!(outcome.code, 0);
        for words in ["Examples:", "Exit codes:", "--input-framing"] {
            assert!(outcome.stdout.contains(words), "{words} in {}", outcome.stdout);
        }
        assert!(DIALECTS.iter().all(|dialect| outcome.stdout.contains(dialect)));
    }
    assert_eq!(run(&["--version"], "").stdout, format!("runwire {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn sessions_side_by_side_stay_apart_or_are_refused() {
    let lines = [
        r#"{"session_id":"a","event_id":1,"type":"run_start","run_id":"a1"}"#,
        r#"{"session_id":"b","event_id":1,"type":"run_start","run_id":"b1"}"#,
        r#"{"session_id":"a","event_id":2,"reply":"A"}"#,
        r#"{"session_id":"b","event_id":2,"reply":"B"}"#,
    ];
    let stream = lines.join("\n") + "\n";
    let kept = run(&["convert", "--to", "loom"], &stream);
    assert_eq!((kept.code, kept.stdout), (0, stream.clone()), "{}", kept.stderr);
    let refused = run(&["convert", "--to", "ag-ui"], &stream);
    assert_eq!(refused.code, 1);
    assert!(
        refused.stderr.starts_with("line 3: ") && refused.stderr.contains("[needs_run]"),
        "{}",
        refused.stderr
    );
}
