//! A refused append changes nothing, and affects no other.

use runwire_model::ErrorCode;
use runwire_model::dialect::Dialect;

use super::Bed;
use super::fixture::{
    BAD, COMPLETED, Fixture, STARTED, append, batch, delta, run, thread, to_run, to_run_of, to_thread,
};
use crate::append::{Append, FrameBatch, Target};
use crate::error::LogError;
use crate::info::NewThread;

/// The answer names the frame and its line; the frames before it are written, those after it are not.
pub async fn a_bad_frame_stops_there_and_what_came_before_stays(bed: &dyn Bed) {
    let fixture = Fixture::open(bed).await;
    let mut frames = FrameBatch::default();
    for (line, frame) in [(3, STARTED.to_owned()), (5, delta("a")), (9, BAD.to_owned()), (11, delta("b"))] {
        frames.push(line, None, frame.as_bytes());
    }
    let appended =
        fixture.log.append(Append { frames, end: true, ..to_run("r", &[""; 0]) }).await.expect("an answer");
    assert_eq!((appended.accepted, appended.duplicates, appended.last_seq), (2, 0, 2));
    let fault = appended.fault.expect("a fault");
    assert_eq!((fault.index, fault.line, fault.problem.code()), (2, 9, ErrorCode::BadField));
    let fixture = fixture.reopen().await;
    assert_eq!(fixture.types("r").await, ["run.started", "text.started", "text.delta"]);
    assert_eq!(fixture.status("r").await, "running");
    for (frame, code) in [
        ("{", ErrorCode::NotJson),
        ("[1]", ErrorCode::NotAnObject),
        ("{\"type\":\"text.delta\"}", ErrorCode::BadField),
    ] {
        let appended = fixture.log.append(to_run("r", &[frame])).await.expect("an answer");
        let fault = appended.fault.expect("a fault");
        assert_eq!((appended.accepted, fault.index, fault.problem.code()), (0, 0, code), "{frame}");
    }
    fixture.write(to_run("r", &[delta("c")])).await;
    assert_eq!(fixture.records("r").await.len(), 3);
}

/// A run that was sent a bad frame means the same as its twin that was not.
pub async fn a_bad_frame_leaves_guard_and_decoder_as_they_were(bed: &dyn Bed) {
    let fixture = Fixture::open(bed).await;
    let frames = [
        r#"{"type":"RUN_STARTED","threadId":"t","runId":"r"}"#,
        r#"{"type":"TEXT_MESSAGE_CHUNK","messageId":"m1","delta":"a"}"#,
        r#"{"type":"TEXT_MESSAGE_CHUNK","delta":"b"}"#,
        r#"{"type":"TOOL_CALL_CHUNK","toolCallId":"c","toolCallName":"f","delta":"{\"x\":"}"#,
        r#"{"type":"TOOL_CALL_CHUNK","delta":"1}"}"#,
        r#"{"type":"RUN_FINISHED","threadId":"t","runId":"r"}"#,
    ];
    let bad = [r#"{"type":"TOOL_CALL_START"}"#, r#"{"type":"TOOL_CALL_ARGS","delta":"x"}"#, "{"];
    for (at, frame) in frames.iter().enumerate() {
        fixture.write(to_run("same", &[frame])).await;
        let appended =
            fixture.log.append(to_run("twin", &[frame, bad[at % bad.len()]])).await.expect("an answer");
        assert_eq!(appended.accepted, 1);
        assert_eq!(appended.fault.expect("a fault").index, 1);
    }
    let (same, twin) = (fixture.records("same").await, fixture.records("twin").await);
    assert_eq!(same.len(), twin.len());
    for (same, twin) in same.iter().zip(&twin) {
        assert_eq!(same.record.entries, twin.record.entries);
    }
}

/// After a bad first frame the run and its thread are as unknown as before.
pub async fn a_bad_first_frame_creates_nothing(bed: &dyn Bed) {
    let fixture = Fixture::open(bed).await;
    let runwire = |append: Append| Append { dialect: Some(Dialect::Runwire), ..append };
    for append in [
        to_run("r", &[BAD]),
        runwire(to_run("r", &[BAD])),
        runwire(to_run_of("t", "r", &[BAD, STARTED])),
        runwire(to_thread("t", &[BAD])),
        to_thread("t", &["nothing"]),
    ] {
        let appended = fixture.log.append(append).await.expect("an answer");
        assert!(appended.fault.is_some());
        assert_eq!((appended.accepted, appended.last_seq), (0, 0));
    }
    let gap = super::fixture::stamped(to_run("r", &[STARTED]), "p", 0, 7);
    assert!(matches!(fixture.refused(gap).await, LogError::ProducerGap { expected: 0, got: 7 }));
    for fixture in [fixture.reopen().await] {
        assert_eq!(fixture.log.run(&run("r")).await, Err(LogError::RunUnknown("r".into())));
        for id in ["r", "t"] {
            assert_eq!(fixture.log.thread(&thread(id)).await, Err(LogError::ThreadUnknown(id.into())));
        }
        fixture.write(to_run("r", &[STARTED])).await;
        assert_eq!(fixture.info("r").await.thread_id, "r");
    }
}

/// What was created stays, even when a bad frame for it comes in the same moment.
pub async fn a_bad_first_frame_does_not_undo_what_was_just_created(bed: &dyn Bed) {
    let fixture = Fixture::open(bed).await;
    for round in 0..20 {
        let (first, second, third) = (format!("r{round}"), format!("t{round}"), format!("u{round}"));
        let new = NewThread {
            tenant: super::fixture::TENANT.into(),
            thread_id: Some(second.clone()),
            parallel: false,
        };
        let (_, bad_run, created, bad_thread, _, bad_joined) = tokio::join!(
            fixture.create_run(&first, None),
            fixture.log.append(to_run(&first, &[BAD])),
            fixture.log.create_thread(new),
            fixture.log.append(to_thread(&second, &[BAD])),
            fixture.create_run(&third, Some(&third)),
            fixture.log.append(to_run_of(&third, &format!("x{round}"), &[BAD])),
        );
        created.expect("the thread is created");
        assert!(
            bad_run.expect("an answer").fault.is_some() && bad_thread.expect("an answer").fault.is_some()
        );
        drop(bad_joined);
    }
    let fixture = fixture.reopen().await;
    for round in 0..20 {
        assert_eq!(fixture.status(&format!("r{round}")).await, "pending");
        assert_eq!(fixture.status(&format!("u{round}")).await, "pending");
        fixture.log.thread(&thread(&format!("t{round}"))).await.expect("the thread is still there");
        fixture.write(to_run(&format!("r{round}"), &[STARTED])).await;
    }
}

/// Of many appends at once, each gets its own answer, whatever becomes of the others.
pub async fn a_refused_append_among_neighbours_hurts_none_of_them(bed: &dyn Bed) {
    let fixture = Fixture::open(bed).await;
    fixture.closed_run("closed", "closed", "x").await;
    let mut writers = Vec::new();
    for writer in 0..60 {
        let log = fixture.log.clone();
        writers.push(tokio::spawn(async move {
            let good = format!("good{writer}");
            match writer % 4 {
                0 => {
                    let appended = log.append(to_run(&good, &[STARTED, &delta("a"), COMPLETED])).await;
                    assert_eq!(appended.expect("a good append").accepted, 3);
                }
                1 => {
                    let appended =
                        log.append(to_run(&good, &[STARTED, BAD, STARTED])).await.expect("an answer");
                    assert_eq!((appended.accepted, appended.fault.map(|fault| fault.index)), (1, Some(1)));
                }
                2 => {
                    let appended = log.append(to_run("closed", &[STARTED])).await.expect("an answer");
                    assert_eq!(appended.fault.map(|fault| fault.problem.code()), Some(ErrorCode::RunClosed));
                }
                _ => {
                    let ambiguous = log.append(to_run(&good, &[r#"{"what":1}"#])).await;
                    assert!(matches!(ambiguous, Err(LogError::DialectAmbiguous(_))));
                }
            }
        }));
    }
    for writer in writers {
        writer.await.expect("the writer ends");
    }
    let fixture = fixture.reopen().await;
    assert_eq!(fixture.records("closed").await.len(), 3);
    for writer in 0..60 {
        let id = format!("good{writer}");
        let found = fixture.log.run(&run(&id)).await;
        match writer % 4 {
            0 => assert_eq!(found.expect("the run").last_seq, 3),
            1 => assert_eq!(found.expect("the run").last_seq, 1),
            _ => assert_eq!(found, Err(LogError::RunUnknown(id))),
        }
    }
}

/// No frames, no run; but an end is something to write.
pub async fn an_append_without_frames_creates_nothing(bed: &dyn Bed) {
    let fixture = Fixture::open(bed).await;
    for target in [Target::Run(run("r")), Target::Thread(thread("r"))] {
        let appended = fixture.write(append(target, &[""; 0])).await;
        assert_eq!((appended.accepted, appended.last_seq), (0, 0));
    }
    assert_eq!(fixture.log.run(&run("r")).await, Err(LogError::RunUnknown("r".into())));
    assert_eq!(fixture.log.thread(&thread("r")).await, Err(LogError::ThreadUnknown("r".into())));
    let end = Append { end: true, frames: batch(&[""; 0]), ..to_run("r", &[""; 0]) };
    assert_eq!(fixture.write(end).await.last_seq, 1);
    assert_eq!(fixture.types("r").await, ["run.started", "run.completed"]);
}
