//! Threads: how many runs they take at once, and which run a frame belongs to when a whole thread is written.

use runwire_model::ErrorCode;
use runwire_model::dialect::Dialect;

use super::Bed;
use super::fixture::{
    BAD, COMPLETED, Fixture, STARTED, TENANT, delta, run, stamped, thread, to_run, to_run_of, to_thread,
};
use crate::append::Append;
use crate::error::LogError;
use crate::info::{NewRun, NewThread};
use crate::limits;

fn start(run: &str) -> String {
    format!(r#"{{"type":"run.started","run_id":"{run}"}}"#)
}

fn piece(run: &str, content: &str) -> String {
    format!(r#"{{"type":"text.delta","run_id":"{run}","message_id":"m","content":"{content}"}}"#)
}

fn end(run: &str) -> String {
    format!(r#"{{"type":"run.completed","run_id":"{run}"}}"#)
}

/// The runs that the records of a thread belong to, one by one.
async fn owners(fixture: &Fixture<'_>, id: &str) -> Vec<String> {
    fixture.records(id).await.iter().map(|record| record.run.to_string()).collect()
}

/// A second run has to wait until the first is closed.
pub async fn a_thread_has_one_open_run(bed: &dyn Bed) {
    let fixture = Fixture::open(bed).await;
    fixture.write(to_run_of("t", "r1", &[STARTED])).await;
    let busy = LogError::ThreadBusy { thread: "t".into(), run: "r1".into() };
    let fixture = fixture.reopen().await;
    assert_eq!(fixture.refused(to_run_of("t", "r2", &[STARTED])).await, busy);
    let new = || NewRun {
        tenant: TENANT.into(),
        run_id: Some("r2".into()),
        thread_id: Some("t".into()),
        ..NewRun::default()
    };
    assert_eq!(fixture.log.create_run(new()).await, Err(busy));
    assert_eq!(fixture.log.run(&run("r2")).await, Err(LogError::RunUnknown("r2".into())));
    fixture.write(to_run("r1", &[COMPLETED])).await;
    fixture.log.create_run(new()).await.expect("the thread is free");
    // A run that waits for its first frame is open, too.
    let busy = LogError::ThreadBusy { thread: "t".into(), run: "r2".into() };
    assert_eq!(fixture.refused(to_run_of("t", "r3", &[STARTED])).await, busy);
    assert_eq!(fixture.log.thread(&thread("t")).await.expect("the thread").open_runs, ["r2"]);
}

/// Runs lie side by side where the thread was made for it.
pub async fn a_parallel_thread_has_several_open_runs_up_to_a_limit(bed: &dyn Bed) {
    let fixture = Fixture::open(bed).await;
    fixture.create_parallel_thread("t").await;
    for id in 0..limits::OPEN_RUNS_OF_THREAD {
        fixture.create_run(&format!("r{id}"), Some("t")).await;
    }
    let fixture = fixture.reopen().await;
    let refused = fixture.refused(to_run_of("t", "more", &[STARTED])).await;
    assert_eq!(refused, LogError::TooManyRuns(limits::OPEN_RUNS_OF_THREAD));
    for turn in ["a", "b"] {
        fixture.write(to_run("r0", &[delta(turn)])).await;
        fixture.write(to_run("r1", &[delta(turn)])).await;
    }
    assert_eq!(owners(&fixture, "t").await, ["r0", "r1", "r0", "r1"]);
    fixture.write(to_run("r1", &[COMPLETED])).await;
    fixture.write(to_run_of("t", "more", &[STARTED])).await;
}

/// The same words give the thread as it is, other words are refused.
pub async fn creating_a_thread_again_returns_its_head(bed: &dyn Bed) {
    let fixture = Fixture::open(bed).await;
    let new = |parallel| NewThread { tenant: TENANT.into(), thread_id: Some("t".into()), parallel };
    assert!(fixture.log.create_thread(new(false)).await.expect("the thread").new);
    fixture.closed_run("t", "r1", "x").await;
    fixture.create_run("r2", Some("t")).await;
    let again = fixture.log.create_thread(new(false)).await.expect("the thread");
    assert_eq!((again.new, again.value.head, again.value.runs), (false, 3, 2));
    assert_eq!(again.value.open_runs, ["r2"]);
    assert_eq!(fixture.log.create_thread(new(true)).await, Err(LogError::ThreadExists("t".into())));
    let minted = fixture.log.create_thread(NewThread { tenant: TENANT.into(), ..NewThread::default() }).await;
    assert!(!minted.expect("a thread").value.thread_id.is_empty());
}

/// One stream, one run after the other, in whatever appends it comes.
pub async fn several_runs_in_one_stream_follow_each_other(bed: &dyn Bed) {
    let fixture = Fixture::open(bed).await;
    fixture.write(to_thread("t", &[start("a"), piece("a", "x"), end("a"), start("b")])).await;
    let fixture = fixture.reopen().await;
    let appended = fixture.write(to_thread("t", &[piece("b", "y"), end("b"), start("c")])).await;
    assert_eq!(appended.last_seq, 7);
    assert_eq!(owners(&fixture, "t").await, ["a", "a", "a", "b", "b", "b", "c"]);
    // Sources that name no run get minted ids.
    fixture.write(to_thread("u", &[STARTED, &delta("x"), COMPLETED, STARTED])).await;
    let owners = owners(&fixture, "u").await;
    assert!(owners[0] == owners[2] && owners[2] != owners[3]);
    for id in ["a", "b"] {
        assert_eq!(fixture.status(id).await, "completed");
    }
}

/// A source that begins again without an end has lost its run.
pub async fn a_second_start_cuts_off_the_first(bed: &dyn Bed) {
    let fixture = Fixture::open(bed).await;
    fixture.write(to_thread("t", &[start("a"), piece("a", "x")])).await;
    let fixture = fixture.reopen().await;
    fixture.write(to_thread("t", &[start("b"), end("b")])).await;
    let info = fixture.info("a").await;
    assert_eq!(info.summary.error.and_then(|error| error.code).as_deref(), Some("stream_ended"));
    assert_eq!(owners(&fixture, "t").await, ["a", "a", "a", "b", "b"]);
    fixture.write(to_thread("u", &[STARTED, &delta("x"), STARTED])).await;
    assert_eq!(fixture.log.spans(&thread("u")).await.expect("the thread").len(), 2);
    // A frame that cannot be read cuts off nothing.
    fixture.write(to_thread("v", &[start("d")])).await;
    let bad = r#"{"type":"text.delta","run_id":"e","message_id":7}"#;
    assert!(fixture.log.append(to_thread("v", &[bad])).await.expect("an answer").fault.is_some());
    assert_eq!(fixture.status("d").await, "running");
}

/// In a parallel thread each frame finds its session's run.
pub async fn interleaved_sessions_lie_side_by_side_in_a_parallel_thread(bed: &dyn Bed) {
    let fixture = Fixture::open(bed).await;
    fixture.create_parallel_thread("t").await;
    let frame = |kind: &str, session: &str, run: &str| {
        format!(r#"{{"type":"{kind}","thread_id":"{session}","run_id":"{run}"}}"#)
    };
    let frames = [
        frame("run.started", "s1", "a"),
        frame("run.started", "s2", "b"),
        frame("run.status", "s1", "a").replace('}', r#","state":"running"}"#),
        r#"{"type":"run.status","thread_id":"s2","state":"running"}"#.to_owned(),
        // What names neither goes where the last one went.
        r#"{"type":"run.status","state":"running"}"#.to_owned(),
    ];
    fixture.write(to_thread("t", &frames)).await;
    let fixture = fixture.reopen().await;
    fixture
        .write(to_thread("t", &[frame("run.completed", "s1", "a"), frame("run.completed", "s2", "b")]))
        .await;
    assert_eq!(owners(&fixture, "t").await, ["a", "b", "a", "b", "b", "a", "b"]);
    // In any other thread they get into each other's way.
    let appended = fixture
        .log
        .append(to_thread("u", &[frame("run.started", "s1", "c"), frame("run.started", "s2", "d")]));
    let fault = appended.await.expect("an answer").fault.expect("a fault");
    assert_eq!((fault.index, fault.problem.code()), (1, ErrorCode::ThreadBusy));
}

/// A run id that the tenant has used already stands for another one in this thread.
pub async fn a_taken_run_id_is_minted_anew_and_stays_an_alias(bed: &dyn Bed) {
    let fixture = Fixture::open(bed).await;
    fixture.closed_run("elsewhere", "a", "x").await;
    fixture.write(to_thread("t", &[start("a"), piece("a", "x")])).await;
    let fixture = fixture.reopen().await;
    fixture.write(to_thread("t", &[piece("a", "y"), end("a")])).await;
    let minted = owners(&fixture, "t").await;
    assert!(minted[0] != "a" && minted.iter().all(|owner| *owner == minted[0]));
    assert_eq!(fixture.records("elsewhere").await.len(), 3);
    // The source's second run of that name is a third run.
    fixture.write(to_thread("t", &[start("a"), end("a")])).await;
    let owners = owners(&fixture, "t").await;
    assert!(owners[4] != minted[0] && owners[4] != "a" && owners[4] == owners[5]);
}

/// AG-UI goes on after an interrupt under a new run id: the run stays the same.
pub async fn an_interrupt_is_resumed_under_another_run_id(bed: &dyn Bed) {
    let fixture = Fixture::open(bed).await;
    let interrupted = r#"{"type":"RUN_FINISHED","threadId":"s","runId":"a","outcome":{"type":"interrupt","interrupts":[{"id":"q","reason":"confirm","message":"?"}]}}"#;
    let started = |run: &str| format!(r#"{{"type":"RUN_STARTED","threadId":"s","runId":"{run}"}}"#);
    let finished = |run: &str| format!(r#"{{"type":"RUN_FINISHED","threadId":"s","runId":"{run}"}}"#);
    let text = r#"{"type":"TEXT_MESSAGE_CHUNK","messageId":"m","delta":"x"}"#;
    fixture.write(to_thread("t", &[&started("a"), interrupted])).await;
    assert_eq!(fixture.status("a").await, "suspended");
    let fixture = fixture.reopen().await;
    fixture.write(to_thread("t", &[started("b"), text.into()])).await;
    let fixture = fixture.reopen().await;
    fixture.write(to_thread("t", &[finished("b"), started("c"), finished("c")])).await;
    let owners = owners(&fixture, "t").await;
    assert_eq!(owners, ["a", "a", "a", "a", "a", "c", "c"]);
    assert_eq!(fixture.status("a").await, "completed");
}

/// What names an ended run is refused, also when the thread has moved on.
pub async fn a_late_frame_of_an_ended_run_is_refused(bed: &dyn Bed) {
    let fixture = Fixture::open(bed).await;
    fixture.write(to_thread("t", &[start("a"), end("a"), start("b")])).await;
    let fixture = fixture.reopen().await;
    let late = fixture.log.append(to_thread("t", &[piece("a", "late")])).await.expect("an answer");
    assert_eq!(
        (late.accepted, late.fault.map(|fault| fault.problem.code())),
        (0, Some(ErrorCode::RunClosed))
    );
    assert_eq!(fixture.status("b").await, "running");
    assert_eq!(owners(&fixture, "t").await.len(), 3);
}

/// A producer of a thread leaves the open run of another producer alone.
pub async fn an_open_run_of_another_producer_is_not_cut_off(bed: &dyn Bed) {
    let fixture = Fixture::open(bed).await;
    fixture.write(to_run_of("t", "mine", &[STARTED])).await;
    let appended = fixture.log.append(to_thread("t", &[start("a")])).await.expect("an answer");
    assert_eq!(appended.fault.map(|fault| fault.problem.code()), Some(ErrorCode::ThreadBusy));
    let other = fixture.log.append(stamped(to_thread("t", &[STARTED]), "p", 0, 0)).await.expect("an answer");
    assert_eq!(
        (other.accepted, other.fault.map(|fault| fault.problem.code())),
        (0, Some(ErrorCode::ThreadBusy))
    );
    assert_eq!(fixture.status("mine").await, "running");
    assert_eq!(fixture.log.run(&run("a")).await, Err(LogError::RunUnknown("a".into())));
    fixture.write(to_run("mine", &[COMPLETED])).await;
    fixture.write(to_thread("t", &[start("a"), end("a")])).await;
}

/// What a bad frame calls its run is not what the run is called.
pub async fn a_refused_frame_does_not_rename_its_run(bed: &dyn Bed) {
    let fixture = Fixture::open(bed).await;
    let runwire = |frames: &[String]| Append { dialect: Some(Dialect::Runwire), ..to_thread("t", frames) };
    fixture.write(runwire(&[STARTED.into()])).await;
    let bad = BAD.replace('{', r#"{"run_id":"wrong","#);
    assert!(fixture.log.append(runwire(&[bad])).await.expect("an answer").fault.is_some());
    fixture.write(runwire(&[piece("right", "x"), end("right")])).await;
    let spans = fixture.log.spans(&thread("t")).await.expect("the thread");
    assert_eq!((spans.len(), spans[0].open), (1, false));
}

/// The end of what writes a thread ends the runs that it has left open.
pub async fn the_end_of_a_stream_ends_its_runs(bed: &dyn Bed) {
    let fixture = Fixture::open(bed).await;
    fixture.create_parallel_thread("t").await;
    fixture.write(to_run_of("t", "anothers", &[STARTED])).await;
    fixture.write(to_thread("t", &[start("a"), start("b")])).await;
    let fixture = fixture.reopen().await;
    fixture.write(Append { end: true, ..to_thread("t", &[start("c")]) }).await;
    for id in ["a", "b", "c"] {
        assert_eq!(fixture.status(id).await, "completed", "{id}");
    }
    assert_eq!(fixture.status("anothers").await, "running");
    assert_eq!(fixture.log.thread(&thread("t")).await.expect("the thread").open_runs, ["anothers"]);
}
