//! A producer's dialect is detected once, and its frames mean the same however they are split into appends.

use runwire_model::ErrorCode;
use runwire_model::dialect::Dialect;

use super::Bed;
use super::fixture::{
    COMPLETED, Fixture, STARTED, delta, meaning, run, stamped, to_run, to_run_of, to_thread,
};
use crate::append::Append;
use crate::error::LogError;

const LOOM: &str = r#"{"type":"message_chunk","content":"a","id":"think"}"#;

/// The dialect that the first frames show, or that the request names, holds from then on.
pub async fn the_first_frames_determine_the_dialect_and_pin_it(bed: &dyn Bed) {
    let fixture = Fixture::open(bed).await;
    fixture.write(stamped(to_run("r", &[LOOM]), "p", 0, 0)).await;
    let fixture = fixture.reopen().await;
    let told = fixture.log.producer(&run("r"), "p").await.expect("the run").expect("the producer");
    assert_eq!(told.dialect, Some(Dialect::Loom));
    // A frame of another dialect is read as one of the pinned dialect that it does not know.
    fixture.write(stamped(to_run("r", &[delta("x")]), "p", 0, 1)).await;
    assert_eq!(fixture.types("r").await.last(), Some(&"foreign"));
    let named =
        |named, index| Append { dialect: Some(named), ..stamped(to_run("r", &[LOOM]), "p", 0, index) };
    let refused = fixture.refused(named(Dialect::Agio, 2)).await;
    assert_eq!(refused, LogError::DialectPinned { pinned: Dialect::Loom, named: Dialect::Agio });
    fixture.write(named(Dialect::Loom, 2)).await;
    // Another producer of the run may speak another dialect.
    fixture.write(stamped(to_run("r", &[delta("x")]), "q", 0, 0)).await;
    let dialects: Vec<_> =
        fixture.records("r").await.iter().filter_map(|record| record.record.dialect).collect();
    assert_eq!(dialects, [Dialect::Loom, Dialect::Loom, Dialect::Loom, Dialect::Runwire]);
}

/// Frames that could be anything are refused together, and a later frame may tell.
pub async fn an_append_without_a_detectable_dialect_is_refused(bed: &dyn Bed) {
    let fixture = Fixture::open(bed).await;
    let unclear = r#"{"type":"error","message":"x"}"#;
    assert_eq!(fixture.refused(to_run("r", &[unclear, unclear])).await.code(), ErrorCode::DialectAmbiguous);
    assert_eq!(fixture.refused(to_thread("r", &[unclear])).await.code(), ErrorCode::DialectAmbiguous);
    assert_eq!(fixture.log.run(&run("r")).await, Err(LogError::RunUnknown("r".into())));
    assert_eq!(fixture.write(to_run("r", &[unclear, LOOM])).await.accepted, 2);
    assert_eq!(fixture.write(to_run("r", &[unclear])).await.accepted, 1);
}

/// What began as AG-UI is social-app's once a frame shows it, and stays so.
pub async fn ag_ui_may_turn_out_to_be_social_app(bed: &dyn Bed) {
    let fixture = Fixture::open(bed).await;
    let named = |dialect, frame: &str| Append { dialect: Some(dialect), ..to_run("r", &[frame]) };
    fixture.write(named(Dialect::AgUi, r#"{"type":"RUN_STARTED","threadId":"t","runId":"r"}"#)).await;
    let shows = r#"{"type":"TOOL_CALL_START","toolCallId":"c","toolCallName":"f","stage":"x"}"#;
    fixture.write(named(Dialect::AgUi, shows)).await;
    let fixture = fixture.reopen().await;
    let told = fixture.log.producer(&run("r"), "").await.expect("the run").expect("the producer");
    assert_eq!(told.dialect, Some(Dialect::SocialApp));
    fixture.write(named(Dialect::AgUi, r#"{"type":"RUN_FINISHED","threadId":"t","runId":"r"}"#)).await;
    assert_eq!(fixture.status("r").await, "completed");
    let dialects: Vec<_> =
        fixture.records("r").await.iter().filter_map(|record| record.record.dialect).collect();
    assert_eq!(dialects, [Dialect::AgUi, Dialect::SocialApp, Dialect::SocialApp]);
}

/// Writes each frame alone to a run, with a reopening after each, and compares it with its meaning.
async fn in_pieces(bed: &dyn Bed, dialect: Dialect, frames: &[impl AsRef<str>]) {
    let mut fixture = Fixture::open(bed).await;
    for (at, frame) in frames.iter().enumerate() {
        let append = Append { dialect: (at == 0).then_some(dialect), ..to_run("r", &[frame]) };
        fixture.write(stamped(append, "p", 0, at as u64)).await;
        fixture = fixture.reopen().await;
    }
    let expected = meaning("r", "r", dialect, frames);
    let records = fixture.records("r").await;
    assert_eq!(records.len(), expected.len());
    for (record, expected) in records.iter().zip(&expected) {
        assert_eq!(record.record.entries, *expected, "seq {}", record.record.seq);
    }
    // In one append they mean the same.
    let append = Append { dialect: Some(dialect), ..to_run("whole", frames) };
    fixture.write(append).await;
    let whole: Vec<_> =
        fixture.records("whole").await.iter().map(|record| record.record.entries.clone()).collect();
    assert_eq!(whole, meaning("whole", "whole", dialect, frames));
}

/// A chunk without an id goes on with the one before it.
pub async fn ag_ui_chunks_in_pieces_mean_the_same(bed: &dyn Bed) {
    in_pieces(
        bed,
        Dialect::AgUi,
        &[
            r#"{"type":"RUN_STARTED","threadId":"t","runId":"s"}"#,
            r#"{"type":"REASONING_MESSAGE_CHUNK","messageId":"r1","delta":"Cold; "}"#,
            r#"{"type":"REASONING_MESSAGE_CHUNK","delta":"check."}"#,
            r#"{"type":"TEXT_MESSAGE_CHUNK","messageId":"m1","role":"assistant","delta":"Let me "}"#,
            r#"{"type":"TEXT_MESSAGE_CHUNK","delta":"see."}"#,
            r#"{"type":"TOOL_CALL_CHUNK","toolCallId":"c1","toolCallName":"f","parentMessageId":"m1","delta":"{\"a\":"}"#,
            r#"{"type":"TOOL_CALL_CHUNK","delta":"1}"}"#,
            r#"{"type":"TOOL_CALL_RESULT","messageId":"c1-out","toolCallId":"c1","content":"2","role":"tool"}"#,
            r#"{"type":"TEXT_MESSAGE_CHUNK","messageId":"m1","delta":"again"}"#,
            r#"{"type":"RUN_FINISHED","threadId":"t","runId":"s"}"#,
        ],
    )
    .await;
}

/// Arguments that came in pieces are gathered from what is stored.
pub async fn gathered_arguments_are_found_across_appends_and_reopening(bed: &dyn Bed) {
    in_pieces(
        bed,
        Dialect::Loom,
        &[
            r#"{"type":"node_enter","id":"think"}"#,
            r#"{"type":"tool_call_chunk","call_id":"c1","name":"f","arguments_delta":"{\"city\":"}"#,
            r#"{"type":"tool_call_chunk","call_id":"c2","name":"g","arguments_delta":"{\"n\":"}"#,
            r#"{"type":"tool_call_chunk","call_id":"c1","arguments_delta":"\"杭州\"}"}"#,
            r#"{"type":"tool_start","call_id":"c1","name":"f"}"#,
            r#"{"type":"tool_end","call_id":"c1","name":"f","result":"ok","is_error":false}"#,
            r#"{"type":"error","message":"it broke"}"#,
            r#"{"type":"run_end","status":"failed"}"#,
        ],
    )
    .await;
}

/// What a slot contains is skipped in the frames that follow it.
pub async fn slots_of_loom_export_in_pieces_mean_the_same(bed: &dyn Bed) {
    let source = [
        STARTED.to_owned(),
        r#"{"type":"step.started","name":"think"}"#.into(),
        r#"{"type":"text.started","message_id":"a","role":"assistant"}"#.into(),
        r#"{"type":"text.delta","message_id":"a","content":"你好"}"#.into(),
        r#"{"type":"data","data_type":"table","data":{"rows":[]}}"#.into(),
        r#"{"type":"tool.called","call_id":"c","name":"f","arguments":{"x":1}}"#.into(),
        r#"{"type":"tool.finished","call_id":"c","status":"success","result":1}"#.into(),
        r#"{"type":"step.finished","name":"think"}"#.into(),
        COMPLETED.to_owned(),
    ];
    let options = runwire_model::convert::Options {
        fidelity: runwire_model::dialect::Fidelity::Full,
        ..runwire_model::convert::Options::to(Dialect::LoomExport)
    };
    let mut converter = runwire_model::convert::Converter::new(options);
    let mut frames = Vec::new();
    for (at, frame) in source.iter().enumerate() {
        let mut sink = |converted: runwire_model::convert::Converted<'_>| {
            frames
                .extend(converted.frames.iter().map(|(_, data)| String::from_utf8_lossy(data).into_owned()));
        };
        converter.push(at as u64 + 1, None, frame.as_bytes(), &mut sink).expect("frames are good");
    }
    assert!(frames.len() > source.len());
    in_pieces(bed, Dialect::LoomExport, &frames).await;
}

/// The guard remembers what is open over a restart.
pub async fn open_items_are_closed_at_the_end_after_reopening(bed: &dyn Bed) {
    let fixture = Fixture::open(bed).await;
    let frames = [
        STARTED,
        r#"{"type":"step.started","name":"think"}"#,
        r#"{"type":"tool.args_started","call_id":"c","name":"f"}"#,
        r#"{"type":"tool.args_delta","call_id":"c","delta":"{\"x\":"}"#,
        &delta("half a text"),
    ];
    fixture.write(to_run("r", &frames)).await;
    let fixture = fixture.reopen().await;
    let failed = r#"{"type":"run.failed","error":{"message":"no"}}"#;
    fixture.write(to_run("r", &[failed])).await;
    let last: Vec<_> = fixture.types("r").await.split_off(6);
    assert_eq!(last, ["text.finished", "tool.called", "tool.finished", "step.finished", "run.failed"]);
    let frames: Vec<_> = frames.into_iter().chain([failed]).collect();
    let expected = meaning("r", "r", Dialect::Runwire, &frames);
    let found: Vec<_> =
        fixture.records("r").await.iter().map(|record| record.record.entries.clone()).collect();
    assert_eq!(found, expected);
}

/// An id that an earlier run of the thread has used gets a number, also after a restart.
pub async fn ids_of_earlier_runs_are_not_used_twice_after_reopening(bed: &dyn Bed) {
    let fixture = Fixture::open(bed).await;
    fixture.closed_run("t", "r1", "one").await;
    let fixture = fixture.reopen().await;
    fixture.write(to_run_of("t", "r2", &[STARTED.to_owned(), delta("two")])).await;
    let records = fixture.records("t").await;
    let last = records.last().and_then(|record| record.record.entries.last()).expect("an event");
    let runwire_model::event::Body::TextDelta(told) = &last.event.body else { panic!("a text") };
    assert_eq!(told.message_id, "m#2");
}
