//! Every kind of bad input has a defined behaviour: a clear error with its line, or a documented tolerance.

use crate::command::{Outcome, run};

const START: &str = r#"{"type":"run_start","run_id":"r"}"#;
const CHUNK: &str = r#"{"type":"message_chunk","content":"Hi","id":"think"}"#;
const REPLY: &str = r#"{"reply":"Hi"}"#;

fn convert(input: impl AsRef<[u8]>) -> Outcome {
    run(&["convert", "--from", "loom", "--to", "runwire"], input)
}

fn types(outcome: &Outcome) -> Vec<String> {
    let type_of = |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap()["type"].clone();
    outcome.stdout.lines().map(|line| type_of(line).as_str().unwrap().to_owned()).collect()
}

/// A bad second line stops the conversion there: what came before stays, the run gets an end, the line is named.
/// With `--keep-going` it is handed on as `foreign` and the rest is converted.
fn is_refused(bad: &[u8], code: &str) -> Outcome {
    let input = [START.as_bytes(), bad, CHUNK.as_bytes(), REPLY.as_bytes()].join(&b'\n');
    let stopped = convert(&input);
    assert_eq!(stopped.code, 1, "{}", stopped.stderr);
    assert_eq!(types(&stopped), ["run.started", "run.failed"]);
    let first = stopped.stderr.lines().next().unwrap();
    assert!(first.starts_with("line 2: ") && first.ends_with(&format!("[{code}]")), "{}", stopped.stderr);
    assert!(stopped.stderr.contains("hint: "), "{}", stopped.stderr);

    let went_on = run(&["convert", "--from", "loom", "--to", "runwire", "--keep-going"], &input);
    assert_eq!(went_on.code, 1);
    assert!(went_on.stderr.starts_with("line 2: "), "{}", went_on.stderr);
    let types = types(&went_on);
    let rest: Vec<&String> = types.iter().filter(|kind| *kind != "foreign").collect();
    assert_eq!(rest, ["run.started", "text.started", "text.delta", "text.finished", "run.completed"]);

    let validated = run(&["validate", "--dialect", "loom", "--json"], &input);
    assert_eq!(validated.code, 1);
    let problem: serde_json::Value = serde_json::from_str(validated.stdout.lines().next().unwrap()).unwrap();
    assert_eq!((&problem["line"], &problem["dialect"]), (&2.into(), &"loom".into()), "{problem}");
    went_on
}

fn becomes_foreign(bad: &[u8], code: &str) {
    let went_on = is_refused(bad, code);
    assert!(types(&went_on).contains(&"foreign".to_owned()), "{}", went_on.stdout);
}

#[test]
fn malformed_json_is_an_error() {
    becomes_foreign(b"{\"type\":", "not_json");
    becomes_foreign(b"INFO starting up", "not_json");
    becomes_foreign(b"{\"type\":\"usage\"} trailing", "not_json");
    becomes_foreign(b"{\"type\":\"message_chunk\",\"content\":NaN,\"id\":\"n\"}", "not_json");
}

#[test]
fn json_that_is_no_object_is_an_error() {
    for bad in ["[1]", "\"text\"", "17", "null", "true"] {
        becomes_foreign(bad.as_bytes(), "not_an_object");
    }
}

#[test]
fn wrong_types_are_an_error_that_names_the_field() {
    let bad = br#"{"type":"message_chunk","content":7,"id":"think"}"#;
    becomes_foreign(bad, "bad_field");
    let stopped = convert([START.as_bytes(), bad].join(&b'\n'));
    let expected = "line 2: field `content`: must be a string, and is a number [bad_field]\n";
    assert!(stopped.stderr.starts_with(expected), "{}", stopped.stderr);
}

#[test]
fn a_missing_field_is_an_error_that_names_it() {
    becomes_foreign(br#"{"type":"node_enter"}"#, "bad_field");
    let stopped = convert(r#"{"type":"node_enter"}"#);
    assert!(stopped.stderr.starts_with("line 1: field `id`: is missing"), "{}", stopped.stderr);
}

#[test]
fn nesting_of_128_is_accepted_and_129_is_an_error() {
    let nested = |depth: usize| {
        let inner = depth - 1;
        format!(r#"{{"type":"custom","value":{}{}}}"#, "[".repeat(inner), "]".repeat(inner))
    };
    let fine = convert(format!("{START}\n{}\n{REPLY}", nested(128)));
    assert_eq!(fine.code, 0, "{}", fine.stderr);
    assert!(fine.stdout.contains(&"[".repeat(127)));
    assert_eq!(run(&["validate", "--dialect", "loom"], nested(128)).code, 0);
    becomes_foreign(nested(129).as_bytes(), "too_deep");
    becomes_foreign(nested(100_000).as_bytes(), "too_deep");
}

#[test]
fn a_frame_of_1_mib_is_accepted_and_one_byte_more_is_an_error() {
    let frame = |bytes: usize| {
        let empty = r#"{"type":"message_chunk","content":"","id":"n"}"#.len();
        format!(r#"{{"type":"message_chunk","content":"{}","id":"n"}}"#, "x".repeat(bytes - empty))
    };
    assert_eq!(convert(format!("{START}\n{}\n{REPLY}", frame(1 << 20))).code, 0);
    // There is nothing to hand on: the bytes are gone before their end is known.
    let went_on = is_refused(frame((1 << 20) + 1).as_bytes(), "frame_too_long");
    assert!(!types(&went_on).contains(&"foreign".to_owned()));
}

#[test]
fn bytes_that_are_not_utf8_are_an_error() {
    becomes_foreign(b"{\"type\":\"message_chunk\",\"content\":\"\xff\",\"id\":\"n\"}", "not_utf8");
}

#[test]
fn a_nul_byte_is_an_error_and_an_escaped_nul_is_a_character() {
    becomes_foreign(b"{\"type\":\"message_chunk\",\"content\":\"a\0b\",\"id\":\"n\"}", "not_json");
    let fine =
        convert(format!("{START}\n{}\n{REPLY}", r#"{"type":"message_chunk","content":"a\u0000b","id":"n"}"#));
    assert_eq!(fine.code, 0, "{}", fine.stderr);
    assert!(fine.stdout.contains(r"a\u0000b"), "{}", fine.stdout);
}

#[test]
fn half_a_surrogate_pair_is_an_error() {
    becomes_foreign(br#"{"type":"message_chunk","content":"\ud83d","id":"n"}"#, "lone_surrogate");
}

#[test]
fn of_a_key_that_stands_twice_the_last_value_counts_and_validate_reports_it() {
    let doubled = r#"{"type":"message_chunk","content":"first","content":"last","id":"n"}"#;
    let text = run(&["convert", "--from", "loom", "--to", "text"], doubled);
    assert_eq!((text.code, text.stdout.as_str()), (0, "last\n"), "{}", text.stderr);
    let validated = run(&["validate", "--dialect", "loom"], doubled);
    assert_eq!(validated.code, 1);
    assert!(validated.stdout.contains("field `content`: stands twice"), "{}", validated.stdout);
}

#[test]
fn numbers_beyond_64_bits_keep_their_digits_where_the_agent_put_them() {
    let digits = "123456789012345678901234567890.5";
    let custom = format!(r#"{{"type":"custom","value":{{"big":{digits},"exponent":1e999}}}}"#);
    let fine = convert(format!("{START}\n{custom}\n{REPLY}"));
    assert_eq!(fine.code, 0, "{}", fine.stderr);
    assert!(fine.stdout.contains(digits) && fine.stdout.contains("1e999"), "{}", fine.stdout);
}

#[test]
fn a_number_beyond_64_bits_in_a_counted_field_is_an_error() {
    let usage =
        br#"{"type":"usage","prompt_tokens":99999999999999999999999,"completion_tokens":1,"total_tokens":1}"#;
    becomes_foreign(usage, "bad_field");
}

#[test]
fn a_byte_order_mark_and_crlf_are_accepted() {
    let expected = convert(format!("{START}\n{CHUNK}\n{REPLY}\n"));
    let marked = convert(format!("\u{feff}{START}\r\n\r\n{CHUNK}\r\n{REPLY}\r\n"));
    assert_eq!((marked.code, marked.stdout), (0, expected.stdout), "{}", marked.stderr);
}

#[test]
fn an_empty_stream_is_no_output_and_no_error() {
    for empty in ["", "\n\n \r\n", "\u{feff}", ": keep-alive\n\n"] {
        for from in ["auto", "loom"] {
            let outcome = run(&["convert", "--from", from, "--to", "ag-ui"], empty);
            assert_eq!(
                (outcome.code, outcome.stdout.as_str(), outcome.stderr.as_str()),
                (0, "", ""),
                "{empty:?}"
            );
        }
        let validated = run(&["validate"], empty);
        assert_eq!((validated.code, validated.stdout.as_str()), (0, ""), "{empty:?}");
    }
}

#[test]
fn frames_of_another_dialect_are_handed_on_as_foreign_and_noted() {
    let agio =
        r#"{"type":"run_started","run_id":"a","timestamp":"2026-11-12T08:15:00.120Z","data":{"query":"?"}}"#;
    let mixed = format!("{START}\n{agio}\n{REPLY}");
    let outcome = run(&["convert", "--to", "runwire"], &mixed);
    assert_eq!(outcome.code, 0);
    assert!(types(&outcome).contains(&"foreign".to_owned()), "{}", outcome.stdout);
    assert!(outcome.stderr.starts_with("note: line 2: handed on as `foreign`"), "{}", outcome.stderr);
    let validated = run(&["validate"], &mixed);
    assert!(validated.stdout.contains("looks like agio"), "{}", validated.stdout);
}

#[test]
fn a_stream_whose_dialect_cannot_be_told_is_an_error_that_says_what_to_do() {
    for command in [&["convert", "--to", "loom"][..], &["validate"]] {
        let outcome = run(command, "{\"a\":1}\n{\"b\":2}\n");
        let said = outcome.stdout + &outcome.stderr;
        assert_eq!(outcome.code, 1, "{said}");
        assert!(said.contains("line 1: ") && said.contains("[dialect_ambiguous]"), "{said}");
    }
}

#[test]
fn a_stream_cut_in_the_middle_ends_with_a_failure() {
    let outcome = convert(format!("{START}\n{CHUNK}\n"));
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    assert_eq!(types(&outcome), ["run.started", "text.started", "text.delta", "text.finished", "run.failed"]);
    assert!(outcome.stdout.contains("stream_ended"));
    let validated = run(&["validate"], format!("{START}\n{CHUNK}\n"));
    assert_eq!(validated.code, 0);
    assert!(validated.stdout.contains("[stream_ended]"), "{}", validated.stdout);
}

#[test]
fn a_frame_cut_in_the_middle_is_an_error_and_the_run_ends() {
    let outcome = convert(format!("{START}\n{}", &CHUNK[..20]));
    assert_eq!(outcome.code, 1);
    assert_eq!(types(&outcome), ["run.started", "run.failed"]);
    assert!(
        outcome.stderr.starts_with("line 2: ") && outcome.stderr.contains("[not_json]"),
        "{}",
        outcome.stderr
    );
    let array = convert(format!("[{START},{CHUNK}"));
    assert_eq!(array.code, 1);
    assert!(array.stderr.contains("[not_json]"), "{}", array.stderr);
}

#[test]
fn a_frame_after_the_end_is_left_out_and_reported_and_the_stream_goes_on() {
    let next = r#"{"type":"run_start","run_id":"r2"}"#;
    let outcome = convert(format!("{START}\n{REPLY}\n{CHUNK}\n{next}\n{REPLY}"));
    assert_eq!(outcome.code, 1);
    assert!(
        outcome.stderr.starts_with("line 3: ") && outcome.stderr.contains("[run_closed]"),
        "{}",
        outcome.stderr
    );
    assert_eq!(types(&outcome).iter().filter(|kind| *kind == "run.completed").count(), 2);
}

#[test]
fn an_end_that_is_said_twice_is_only_noted() {
    let started = r#"{"type":"RUN_STARTED","threadId":"t","runId":"r"}"#;
    let error = r#"{"type":"RUN_ERROR","message":"no"}"#;
    let finished = r#"{"type":"RUN_FINISHED","threadId":"t","runId":"r"}"#;
    let outcome = run(&["convert", "--to", "loom"], format!("{started}\n{error}\n{finished}"));
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    assert!(outcome.stderr.starts_with("note: line 3: "), "{}", outcome.stderr);
}

#[test]
fn the_habit_of_ending_with_done_is_passed_over() {
    let outcome = run(&["convert", "--to", "text"], format!("data: {REPLY}\n\ndata: [DONE]\n\n"));
    assert_eq!((outcome.code, outcome.stdout.as_str()), (0, "Hi\n"), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("[DONE]"), "{}", outcome.stderr);
}
