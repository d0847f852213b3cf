//! Two runs of one session, frame by frame beside each other, in dialects whose frames all name their run.

use runwire_model::convert::{Converter, Options};
use runwire_model::dialect::Dialect;
use runwire_model::event::Body;

/// What comes of a run: its thread, its text and how it ended.
type Outcome = (String, String, String, &'static str);

const RUNWIRE: &[&str] = &[
    r#"{"type":"run.started","thread_id":"s","run_id":"a"}"#,
    r#"{"type":"text.delta","thread_id":"s","run_id":"a","message_id":"m1","content":"A"}"#,
    r#"{"type":"run.started","thread_id":"s","run_id":"b"}"#,
    r#"{"type":"text.delta","thread_id":"s","run_id":"b","message_id":"m2","content":"B"}"#,
    r#"{"type":"state.snapshot","thread_id":"s","run_id":"b","state":{"n":1}}"#,
    r#"{"type":"state.patched","thread_id":"s","run_id":"a","patch":[{"op":"replace","path":"/n","value":2}]}"#,
    r#"{"type":"text.delta","thread_id":"s","run_id":"a","message_id":"m1","content":"!"}"#,
    r#"{"type":"run.completed","thread_id":"s","run_id":"a"}"#,
    r#"{"type":"text.delta","thread_id":"s","run_id":"b","message_id":"m2","content":"?"}"#,
    r#"{"type":"run.completed","thread_id":"s","run_id":"b"}"#,
];

const AGIO: &[&str] = &[
    r#"{"type":"run_started","run_id":"a","timestamp":"2026-01-01T00:00:00Z","data":{},"metadata":{"thread_id":"s"}}"#,
    r#"{"type":"run_started","run_id":"b","timestamp":"2026-01-01T00:00:00Z","data":{},"metadata":{"thread_id":"s"}}"#,
    r#"{"type":"text_delta","run_id":"a","timestamp":"2026-01-01T00:00:00Z","data":{"content":"A"},"metadata":{"thread_id":"s"}}"#,
    r#"{"type":"text_delta","run_id":"b","timestamp":"2026-01-01T00:00:00Z","data":{"content":"B"},"metadata":{"thread_id":"s"}}"#,
    r#"{"type":"text_delta","run_id":"a","timestamp":"2026-01-01T00:00:00Z","data":{"content":"!"},"metadata":{}}"#,
    r#"{"type":"text_delta","run_id":"b","timestamp":"2026-01-01T00:00:00Z","data":{"content":"?"},"metadata":{}}"#,
    r#"{"type":"run_completed","run_id":"a","timestamp":"2026-01-01T00:00:00Z","data":{},"metadata":{"thread_id":"s"}}"#,
    r#"{"type":"run_completed","run_id":"b","timestamp":"2026-01-01T00:00:00Z","data":{},"metadata":{"thread_id":"s"}}"#,
];

const STREAMING_ENGINE: &[&str] = &[
    r#"{"type":"session_start","data":{"session_id":"s"},"metadata":{"sequence":0,"timestamp":1,"request_id":"a"}}"#,
    r#"{"type":"session_start","data":{"session_id":"s"},"metadata":{"sequence":0,"timestamp":1,"request_id":"b"}}"#,
    r#"{"type":"content","data":{"content":"A"},"metadata":{"sequence":1,"timestamp":1,"request_id":"a"}}"#,
    r#"{"type":"content","data":{"content":"B"},"metadata":{"sequence":1,"timestamp":1,"request_id":"b"}}"#,
    r#"{"type":"content","data":{"content":"!"},"metadata":{"sequence":2,"timestamp":1,"request_id":"a"}}"#,
    r#"{"type":"content","data":{"content":"?"},"metadata":{"sequence":2,"timestamp":1,"request_id":"b"}}"#,
    r#"{"type":"session_end","data":{"status":"completed"},"metadata":{"sequence":3,"timestamp":1,"request_id":"a"}}"#,
    r#"{"type":"session_end","data":{"status":"completed"},"metadata":{"sequence":3,"timestamp":1,"request_id":"b"}}"#,
];

const SOURCES: [(Dialect, &[&str]); 3] =
    [(Dialect::Runwire, RUNWIRE), (Dialect::Agio, AGIO), (Dialect::StreamingEngine, STREAMING_ENGINE)];

/// Converts lines; the lines that come out, and how the conversion ended.
fn converted(from: Dialect, to: Dialect, lines: &[&str]) -> (Vec<String>, Result<(), String>) {
    let mut frames = Vec::new();
    let mut converter = Converter::new(Options { from: Some(from), ..Options::to(to) });
    let mut sink = |converted: runwire_model::convert::Converted<'_>| {
        let data = converted.frames.iter().map(|(_, data)| String::from_utf8_lossy(data).into_owned());
        frames.extend(data);
    };
    for (at, line) in lines.iter().enumerate() {
        if let Err(error) = converter.push(at as u64 + 1, None, line.as_bytes(), &mut sink) {
            return (frames, Err(format!("{} {}", error.line, error.problem.code())));
        }
    }
    let ended = converter.finish(&mut sink).map_err(|error| error.to_string());
    (frames, ended)
}

/// What the runs of a stream are, in the order that they begin.
fn runs(from: Dialect, lines: &[impl AsRef<str>]) -> Vec<Outcome> {
    let mut converter = Converter::new(Options { from: Some(from), ..Options::to(Dialect::Runwire) });
    let mut runs: Vec<Outcome> = Vec::new();
    let mut last = std::collections::HashMap::new();
    let mut sink = |converted: runwire_model::convert::Converted<'_>| {
        let seq = last.insert(converted.thread_id.to_owned(), converted.record.seq).unwrap_or(0);
        assert_eq!(converted.record.seq, seq + 1, "the runs of a thread share its numbers");
        let known = runs.iter().position(|run| run.1 == converted.run_id).unwrap_or_else(|| {
            runs.push((converted.thread_id.into(), converted.run_id.into(), String::new(), "open"));
            runs.len() - 1
        });
        for entry in &converted.record.entries {
            match &entry.event.body {
                Body::TextDelta(delta) => runs[known].2.push_str(&delta.content),
                body if body.is_terminal() => runs[known].3 = body.type_name(),
                _ => {}
            }
        }
    };
    for (at, line) in lines.iter().enumerate() {
        converter.push(at as u64 + 1, None, line.as_ref().as_bytes(), &mut sink).unwrap();
    }
    converter.finish(&mut sink).unwrap();
    runs
}

fn expected(thread: [&str; 2], run: [&str; 2]) -> Vec<Outcome> {
    let texts = ["A!", "B?"];
    let outcome = |at: usize| (thread[at].into(), run[at].into(), texts[at].into(), "run.completed");
    vec![outcome(0), outcome(1)]
}

#[test]
fn runs_of_one_session_side_by_side_both_come_through_whole() {
    for (from, lines) in SOURCES {
        assert_eq!(runs(from, lines), expected(["s", "s"], ["a", "b"]), "{from}");
    }
}

#[test]
fn runs_of_one_session_side_by_side_can_be_read_back_from_every_dialect_that_names_them() {
    for (from, lines) in SOURCES {
        for to in Dialect::ALL.into_iter().filter(|to| to.names_its_run()) {
            let (frames, ended) = converted(from, to, lines);
            assert_eq!(ended, Ok(()), "{from} to {to}");
            // Loom tells them apart by sessions, so that the second has one of its own.
            let threads = if to == Dialect::Loom { ["s", "b"] } else { ["s", "s"] };
            assert_eq!(runs(to, &frames), expected(threads, ["a", "b"]), "{from} to {to}: {frames:#?}");
        }
    }
}

#[test]
fn runs_of_one_session_side_by_side_are_refused_where_readers_could_not_tell_them_apart() {
    let others = Dialect::ALL.into_iter().filter(|to| !to.names_its_run());
    for to in others {
        let (_, ended) = converted(Dialect::Runwire, to, RUNWIRE);
        assert_eq!(ended, Err("6 needs_run".to_owned()), "{to}");
    }
}

#[test]
fn a_run_that_never_goes_on_has_failed_at_the_end_of_the_stream() {
    let (frames, ended) = converted(Dialect::Agio, Dialect::Agio, &[AGIO[0], AGIO[1], AGIO[3], AGIO[7]]);
    assert_eq!(ended, Ok(()));
    let last: Vec<&str> = frames.iter().rev().take(2).map(String::as_str).collect();
    assert!(last[0].contains("run_failed") && last[0].contains(r#""run_id":"a""#), "{frames:#?}");
}

#[test]
fn state_belongs_to_the_thread_whichever_run_changes_it() {
    let (frames, _) = converted(Dialect::Runwire, Dialect::SocialApp, RUNWIRE);
    let states: Vec<&String> = frames.iter().filter(|frame| frame.contains("STATE_SNAPSHOT")).collect();
    assert!(states.last().is_some_and(|last| last.contains(r#"{"n":2}"#)), "{states:#?}");
}
