//! Frames are checked against their dialect's document: violations are refused by a strict append, else counted.

use runwire_model::ErrorCode;
use runwire_model::dialect::Dialect;

use super::Bed;
use super::fixture::{Fixture, run, stamped, thread, to_run, to_thread};
use crate::append::{Append, CheckMode};
use crate::error::FrameProblem;

fn frame(sequence: u64, kind: &str, data: &str) -> String {
    let metadata = format!(r#"{{"request_id":"q","timestamp":1,"sequence":{sequence}}}"#);
    format!(r#"{{"type":"{kind}","data":{data},"metadata":{metadata}}}"#)
}

fn start() -> String {
    frame(0, "session_start", r#"{"session_id":"s","request_id":"q"}"#)
}

fn content(sequence: u64) -> String {
    frame(sequence, "content", r#"{"content":"x"}"#)
}

/// A fixture of thinking that the document does not have.
fn odd(sequence: u64) -> String {
    frame(sequence, "thinking", r#"{"content":"x","stage":"dreaming"}"#)
}

fn call(sequence: u64, kind: &str) -> String {
    let data = match kind {
        "tool_call_start" => r#"{"tool_id":"t","tool_name":"n","arguments":{}}"#,
        _ => r#"{"tool_id":"t","status":"success"}"#,
    };
    frame(sequence, kind, data)
}

fn strict(append: Append) -> Append {
    Append { check: CheckMode::Refuse, ..append }
}

/// The frames before stay written, and the refusal names line, field, rule and section.
pub async fn a_strict_append_refuses_what_the_document_does_not_allow(bed: &dyn Bed) {
    let fixture = Fixture::open(bed).await;
    let body = strict(to_run("r", &[start(), content(1), odd(2), content(3)]));
    let appended = fixture.log.append(body).await.expect("an answer");
    assert_eq!((appended.accepted, appended.last_seq), (2, 2));
    let fault = appended.fault.expect("a fault");
    assert_eq!((fault.index, fault.line, fault.problem.code()), (2, 3, ErrorCode::BreaksDocument));
    let FrameProblem::Document(breach) = fault.problem else { panic!("{:?}", fault.problem) };
    assert_eq!((breach.dialect, breach.finding.rule.as_str()), (Dialect::StreamingEngine, "bad_value"));
    assert_eq!(breach.finding.pointer.as_deref(), Some("/data/stage"));
    assert_eq!(breach.finding.section.as_deref(), Some("§1.3"));
    assert!(fixture.info("r").await.summary.warnings.is_empty());

    // A first frame that is refused creates nothing.
    let appended = fixture.log.append(strict(to_run("new", &[content(1)]))).await.expect("an answer");
    assert_eq!(appended.fault.expect("a fault").problem.code(), ErrorCode::BreaksDocument);
    assert!(fixture.log.run(&run("new")).await.is_err());
}

/// The state of the check is stored with the run: an end needs its start, also in an earlier append.
pub async fn a_strict_body_may_arrive_in_pieces(bed: &dyn Bed) {
    let fixture = Fixture::open(bed).await;
    fixture.write(strict(to_run("r", &[start(), call(1, "tool_call_start")]))).await;
    let fixture = fixture.reopen().await;
    fixture.write(strict(to_run("r", &[call(2, "tool_call_end")]))).await;
    let fixture = fixture.reopen().await;
    for (frame, rule) in
        [(call(3, "tool_call_end"), "not_open"), (content(2), "not_increasing"), (start(), "already_open")]
    {
        let appended = fixture.log.append(strict(to_run("r", &[frame]))).await.expect("an answer");
        let FrameProblem::Document(breach) = appended.fault.expect("a fault").problem else {
            panic!("{rule}")
        };
        assert_eq!(breach.finding.rule.as_str(), rule);
    }
    // What was refused has left no trace.
    fixture
        .write(strict(to_run("r", &[content(3), call(4, "tool_call_start"), call(5, "tool_call_end")])))
        .await;
}

/// The frame that is sent in its place has the same index.
pub async fn a_frame_that_breaks_its_document_uses_up_no_index(bed: &dyn Bed) {
    let fixture = Fixture::open(bed).await;
    let body = |frames: &[String], index| strict(stamped(to_run("r", frames), "p", 0, index));
    let appended = fixture.log.append(body(&[start(), odd(1)], 0)).await.expect("an answer");
    assert_eq!((appended.accepted, appended.fault.is_some()), (1, true));
    assert_eq!(fixture.write(body(&[start(), content(1)], 0)).await.duplicates, 1);
    assert_eq!(fixture.records("r").await.len(), 2);
}

/// A lenient append writes everything; duplicates are counted once.
pub async fn a_violation_is_counted_once_as_a_warning(bed: &dyn Bed) {
    let fixture = Fixture::open(bed).await;
    let body =
        || stamped(to_run("r", &[start(), odd(1), content(2), odd(3), call(4, "tool_call_end")]), "p", 0, 0);
    assert_eq!(fixture.write(body()).await.accepted, 5);
    assert_eq!(fixture.write(body()).await.duplicates, 5);
    let fixture = fixture.reopen().await;
    assert_eq!(fixture.write(body()).await.duplicates, 5);
    let warnings = fixture.info("r").await.summary.warnings;
    assert_eq!((warnings.count, warnings.first.len()), (3, 2));
    let [stage_odd, not_open] = &warnings.first[..] else { panic!("{warnings:?}") };
    assert_eq!((stage_odd.seq, stage_odd.times, stage_odd.code.as_str()), (2, 2, "bad_value"));
    assert_eq!(stage_odd.field.as_deref(), Some("data.stage"));
    assert_eq!((not_open.seq, not_open.times, not_open.code.as_str()), (5, 1, "not_open"));
    // The state went on with the run, in another body and after reopening.
    fixture.write(to_run("r", &[content(2)])).await;
    fixture.write(Append { end: true, ..to_run("r", &[content(2)]) }).await;
    let warnings = fixture.info("r").await.summary.warnings;
    assert_eq!((warnings.count, warnings.first[2].code.as_str()), (4, "not_increasing"));
}

/// However many different things are wrong, few are kept, and all are counted.
pub async fn warnings_of_a_run_are_bounded(bed: &dyn Bed) {
    let fixture = Fixture::open(bed).await;
    let wrong = |at: u64| {
        let data = format!(r#"{{"content":"x","stage":"{}","contnt{at}":1}}"#, "y".repeat(2000));
        frame(at, "thinking", &data)
    };
    let frames: Vec<String> = std::iter::once(start()).chain((1..100).map(wrong)).collect();
    fixture.write(to_run("r", &frames)).await;
    let warnings = fixture.info("r").await.summary.warnings;
    assert_eq!(warnings.count, 99);
    assert!(warnings.first.len() <= crate::limits::WARNINGS);
    for warning in &warnings.first {
        assert!(warning.message.len() <= crate::limits::WARNING_BYTES);
    }
}

/// The limit of what the check remembers is a warning too, and refuses nothing.
pub async fn a_check_that_cannot_remember_more_is_a_warning_once(bed: &dyn Bed) {
    let fixture = Fixture::open(bed).await;
    let social = |kind: &str, more: &str| {
        format!(r#"{{"type":"{kind}","threadId":"t","runId":"r","messageId":"m","stage":"worker"{more}}}"#)
    };
    let called = |id: usize| {
        let call = format!(r#","toolCallId":"{id}","toolCallName":"n""#);
        let result = format!(
            r#","tool_call_id":"{id}","tool_name":"n","tool_call_args":{{}},"role":"tool","status":"success","result":"","error":null"#
        );
        [
            social("TOOL_CALL_START", &call),
            social("TOOL_CALL_END", &call),
            social("TOOL_CALL_RESULT", &result),
        ]
    };
    let calls = runwire_check::limits::REMEMBERED_IDS + 2;
    let started = r#"{"type":"RUN_STARTED","threadId":"t","runId":"r"}"#.to_owned();
    let frames: Vec<String> = std::iter::once(started).chain((0..calls).flat_map(called)).collect();
    for (run, check) in [("strict", CheckMode::Refuse), ("warned", CheckMode::Warn)] {
        let body = Append { dialect: Some(Dialect::SocialApp), check, ..to_run(run, &frames) };
        let appended = fixture.log.append(body).await.expect("an answer");
        assert_eq!(appended.fault.map(|fault| format!("{:?}", fault.problem)), None);
        let warnings = fixture.info(run).await.summary.warnings;
        let [warning] = &warnings.first[..] else { panic!("{warnings:?}") };
        assert_eq!((warning.code.as_str(), warnings.count), (runwire_check::Rule::Unjudged.as_str(), 1));
    }
}

/// Also where the frame would end one run and begin another.
pub async fn a_frame_that_would_begin_a_run_is_refused_before_anything_happens(bed: &dyn Bed) {
    let fixture = Fixture::open(bed).await;
    let node = r#"{"type":"node_enter","id":"think","session_id":"s"}"#;
    let first = r#"{"type":"run_start","run_id":"a","message":"?","agent":"x","session_id":"s"}"#;
    fixture.write(strict(to_thread("t", &[first, node]))).await;
    let head = fixture.log.thread(&thread("t")).await.expect("a thread").head;
    let bad = r#"{"type":"run_start","run_id":"b","message":7,"agent":"x","session_id":"s"}"#;
    let odd = r#"{"type":"run_start","run_id":"b","message":"?","agent":"x","session_id":"s","event_id":-1}"#;
    for frame in [bad, odd] {
        let appended = fixture.log.append(strict(to_thread("t", &[frame]))).await.expect("an answer");
        assert!(appended.fault.is_some(), "{frame}");
        assert_eq!(fixture.log.thread(&thread("t")).await.expect("a thread").head, head, "{frame}");
    }
    assert_eq!(fixture.status("a").await, "running");
    // A run may answer what the one before it left open.
    let end = r#"{"reply":"","session_id":"s"}"#;
    fixture.write(strict(to_thread("t", &[end]))).await;
}

/// The server's own frames are not checked.
pub async fn frames_that_are_not_to_be_checked_are_not(bed: &dyn Bed) {
    let fixture = Fixture::open(bed).await;
    fixture.write(Append { check: CheckMode::Off, ..to_run("r", &[odd(1)]) }).await;
    assert!(fixture.info("r").await.summary.warnings.is_empty());
    // What came unchecked is not held against what follows.
    fixture.write(strict(to_run("r", &[call(2, "tool_call_end")]))).await;
}
