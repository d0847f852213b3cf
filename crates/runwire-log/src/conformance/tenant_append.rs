//! Streams of several sessions: each frame goes to the thread and the run that it names, exactly once.

use std::sync::Arc;

use runwire_model::ErrorCode;
use runwire_model::dialect::{Dialect, SESSION_ID};

use super::Bed;
use super::fixture::{COMPLETED, Fixture, TENANT, append, run, stamped, thread, to_run, to_run_of};
use crate::append::{Append, Target};
use crate::error::{FrameProblem, LogError};
use crate::key::ThreadKey;

fn to_tenant(frames: &[impl AsRef<str>]) -> Append {
    append(Target::Tenant(TENANT.into()), frames)
}

fn start(session: &str, run: &str) -> String {
    format!(r#"{{"session_id":"{session}","type":"run_start","run_id":"{run}"}}"#)
}

fn chunk(session: &str, content: &str) -> String {
    format!(r#"{{"session_id":"{session}","type":"message_chunk","content":"{content}","id":"think"}}"#)
}

fn reply(session: &str, content: &str) -> String {
    format!(r#"{{"session_id":"{session}","reply":"{content}"}}"#)
}

/// Two sessions beside each other, frame by frame.
fn side_by_side() -> [String; 7] {
    [
        start("a", "a1"),
        start("b", "b1"),
        chunk("a", "A"),
        chunk("b", "B"),
        reply("a", "A"),
        chunk("b", "!"),
        reply("b", "B!"),
    ]
}

/// The runs that the records of a thread belong to, one by one.
async fn owners(fixture: &Fixture<'_>, id: &str) -> Vec<String> {
    fixture.records(id).await.iter().map(|record| record.run.to_string()).collect()
}

/// Threads and runs are made where they are missing, and none ends because another session speaks.
pub async fn each_frame_goes_to_the_thread_and_run_that_it_names(bed: &dyn Bed) {
    let fixture = Fixture::open(bed).await;
    let written = fixture.write(to_tenant(&side_by_side())).await;
    assert_eq!((written.accepted, written.last_seq), (7, 4));
    assert_eq!(written.threads, ["a", "b"].map(Arc::<str>::from));
    assert_eq!(owners(&fixture, "a").await, ["a1"; 3]);
    assert_eq!(owners(&fixture, "b").await, ["b1"; 4]);
    for id in ["a1", "b1"] {
        assert_eq!(fixture.status(id).await, "completed");
    }
    let listed = fixture.log.threads(TENANT, None, 10).await.expect("a list");
    assert_eq!(listed.len(), 2, "how far producers are is no thread");
}

/// What a producer has sent is counted over the whole stream.
pub async fn a_stream_of_sessions_is_written_once(bed: &dyn Bed) {
    let mut fixture = Fixture::open(bed).await;
    let frames = side_by_side();
    fixture.write(stamped(to_tenant(&frames[..3]), "p", 1, 0)).await;
    fixture = fixture.reopen().await;
    let again = fixture.write(stamped(to_tenant(&frames[..5]), "p", 1, 0)).await;
    assert_eq!((again.accepted, again.duplicates), (2, 3));
    let refused = fixture.refused(stamped(to_tenant(&frames[6..]), "p", 1, 6)).await;
    assert_eq!(refused, LogError::ProducerGap { expected: 5, got: 6 });
    fixture.write(stamped(to_tenant(&frames[5..]), "p", 2, 5)).await;
    let refused = fixture.refused(stamped(to_tenant(&frames[5..]), "p", 1, 5)).await;
    assert_eq!(refused, LogError::ProducerFenced { epoch: 2 });
    fixture = fixture.reopen().await;
    let all = fixture.write(stamped(to_tenant(&frames), "p", 2, 0)).await;
    assert_eq!((all.accepted, all.duplicates), (0, 7));
    assert_eq!((owners(&fixture, "a").await.len(), owners(&fixture, "b").await.len()), (3, 4));
    let known = fixture.log.thread_producer(&ThreadKey::of_tenant(TENANT), "p").await.expect("an answer");
    let known = known.expect("the producer");
    assert_eq!((known.epoch, known.next, known.dialect), (2, 7, Some(Dialect::Loom)));
}

/// However many sessions there are, each one's frames find its run, over appends and a restart.
pub async fn many_sessions_go_on_across_appends_and_reopening(bed: &dyn Bed) {
    let mut fixture = Fixture::open(bed).await;
    let sessions: Vec<String> = (0..100).map(|number| format!("s{number}")).collect();
    let each = |frame: fn(&str) -> String| sessions.iter().map(|id| frame(id)).collect::<Vec<_>>();
    fixture.write(to_tenant(&each(|id| chunk(id, "x")))).await;
    fixture = fixture.reopen().await;
    fixture.write(to_tenant(&each(|id| chunk(id, "y")))).await;
    fixture.write(to_tenant(&each(|id| reply(id, "xy")))).await;
    for id in &sessions {
        let owners = owners(&fixture, id).await;
        assert_eq!(owners.len(), 3);
        assert!(owners.iter().all(|run| *run == owners[0]), "{id}: {owners:?}");
        assert_eq!(fixture.status(&owners[0]).await, "completed");
    }
}

/// What came before such a frame stays written, and it uses up no index.
pub async fn a_frame_that_names_nothing_stops_the_stream_there(bed: &dyn Bed) {
    let fixture = Fixture::open(bed).await;
    let nameless = r#"{"type":"message_chunk","content":"x","id":"think"}"#.to_owned();
    let frames = [start("a", "a1"), nameless.clone(), chunk("a", "y")];
    let written = fixture.log.append(stamped(to_tenant(&frames), "p", 0, 0)).await.expect("an answer");
    let fault = written.fault.expect("a fault");
    assert_eq!((fault.index, fault.line), (1, 2));
    assert_eq!(fault.problem, FrameProblem::Log(LogError::NoSession));
    assert_eq!(written.accepted, 1);
    fixture.write(stamped(to_tenant(&[chunk("a", "y")]), "p", 0, 1)).await;
    let unusable = r#"{"session_id":"","type":"message_chunk","content":"x","id":"think"}"#;
    let written = fixture.log.append(to_tenant(&[unusable])).await.expect("an answer");
    assert_eq!(written.fault.expect("a fault").problem.code(), ErrorCode::BadField);
    // Nothing that came of it is there.
    let first = to_tenant(&[nameless.as_str(), "{}"]);
    let first = Append { dialect: Some(Dialect::Loom), target: Target::Tenant("fresh".into()), ..first };
    assert_eq!(fixture.log.append(first).await.expect("an answer").accepted, 0);
    let none = fixture.log.thread_producer(&ThreadKey::of_tenant("fresh"), "").await;
    assert!(matches!(none, Err(LogError::ThreadUnknown(_))), "{none:?}");
}

/// A run is found by its id, and by the one that its source gives it where that was taken.
pub async fn frames_that_name_their_run_alone_find_its_thread(bed: &dyn Bed) {
    let mut fixture = Fixture::open(bed).await;
    fixture.write(to_run_of("elsewhere", "r2", &[r#"{"type":"run.started"}"#, COMPLETED])).await;
    let begin = |session: &str, run: &str| {
        format!(
            r#"{{"type":"session_start","data":{{"session_id":"{session}","request_id":"{run}"}},"metadata":{{"sequence":0,"timestamp":1,"request_id":"{run}"}}}}"#
        )
    };
    let content = |run: &str| {
        format!(
            r#"{{"type":"content","data":{{"content":"x"}},"metadata":{{"sequence":1,"timestamp":1,"request_id":"{run}"}}}}"#
        )
    };
    fixture.write(to_tenant(&[begin("s1", "r1"), begin("s2", "r2"), content("r1"), content("r2")])).await;
    fixture = fixture.reopen().await;
    fixture.write(to_tenant(&[content("r2"), content("r1"), content("r3")])).await;
    assert_eq!(owners(&fixture, "s1").await, ["r1"; 3]);
    let minted = owners(&fixture, "s2").await;
    assert_eq!(minted.len(), 3);
    assert!(minted.iter().all(|run| *run == minted[0] && run != "r2"), "{minted:?}");
    assert_eq!(owners(&fixture, "elsewhere").await, ["r2"; 2]);
    assert_eq!(owners(&fixture, "r3").await, ["r3"], "a run that names no thread has one of its own");
}

/// Frames that name neither thread nor run have to be written elsewhere.
pub async fn dialects_that_name_no_session_are_refused(bed: &dyn Bed) {
    let fixture = Fixture::open(bed).await;
    let frame = r#"{"type":"RUN_STARTED","threadId":"t","runId":"r"}"#;
    let written = fixture.log.append(to_tenant(&[frame])).await.expect("an answer");
    let problem = written.fault.expect("a fault").problem;
    assert_eq!(problem, FrameProblem::Log(LogError::NeedsRun(Dialect::AgUi)));
    assert_eq!(fixture.log.thread(&thread("t")).await, Err(LogError::ThreadUnknown("t".into())));
}

/// A frame that names only its session does not go to the open run of another producer.
pub async fn an_open_run_of_another_producer_is_not_written_to(bed: &dyn Bed) {
    let fixture = Fixture::open(bed).await;
    fixture.write(to_run_of("a", "theirs", &[r#"{"type":"run.started"}"#])).await;
    let written = fixture.log.append(to_tenant(&[chunk("a", "x")])).await.expect("an answer");
    let busy = LogError::ThreadBusy { thread: "a".into(), run: "theirs".into() };
    assert_eq!(written.fault.expect("a fault").problem, FrameProblem::Log(busy));
    // One that names the run does.
    let named = r#"{"type":"text.delta","thread_id":"a","run_id":"theirs","message_id":"m","content":"x"}"#;
    let named = Append { dialect: Some(Dialect::Runwire), ..stamped(to_tenant(&[named]), "q", 0, 0) };
    fixture.write(named).await;
    assert_eq!(owners(&fixture, "a").await, ["theirs"; 2]);
    fixture.write(to_run("theirs", &[COMPLETED])).await;
    fixture.write(to_tenant(&[chunk("a", "x")])).await;
}

/// A frame of a session in the canonical dialect, where every frame names its run.
fn named(kind: &str, session: &str, run: &str) -> String {
    let more = if kind == "text.delta" { r#","message_id":"m","content":"x""# } else { "" };
    format!(r#"{{"type":"{kind}","thread_id":"{session}","run_id":"{run}"{more}}}"#)
}

/// Where every frame names its run, a second run of a session does not say that the first is over.
pub async fn a_second_run_of_a_session_is_refused_and_cuts_nothing(bed: &dyn Bed) {
    let mut fixture = Fixture::open(bed).await;
    let frames =
        [named("run.started", "s", "a"), named("text.delta", "s", "a"), named("run.started", "s", "b")];
    let written = fixture.log.append(stamped(to_tenant(&frames), "p", 0, 0)).await.expect("an answer");
    let fault = written.fault.expect("a fault");
    assert_eq!((written.accepted, fault.line), (2, 3));
    let busy = LogError::ThreadBusy { thread: "s".into(), run: "a".into() };
    assert_eq!(fault.problem, FrameProblem::Log(busy));
    fixture = fixture.reopen().await;
    assert_eq!(fixture.status("a").await, "running");
    let rest =
        [named("text.delta", "s", "a"), named("run.completed", "s", "a"), named("run.started", "s", "b")];
    fixture.write(stamped(to_tenant(&rest), "p", 0, 2)).await;
    assert_eq!(owners(&fixture, "s").await, ["a", "a", "a", "a", "b"]);
    assert_eq!(fixture.status("a").await, "completed");
}

/// Only the start of a Loom run names it, so that a second start says that the first run is over.
pub async fn a_second_start_of_a_loom_session_cuts_off_the_first(bed: &dyn Bed) {
    let fixture = Fixture::open(bed).await;
    fixture.write(to_tenant(&[start("a", "a1"), chunk("a", "A"), start("a", "a2"), reply("a", "B")])).await;
    assert_eq!((fixture.status("a1").await, fixture.status("a2").await), ("failed", "completed"));
    // Where runs may lie side by side too.
    let frames = [start("b", "b1"), chunk("b", "A"), start("b", "b2"), reply("b", "B")];
    fixture.write(Append { parallel: true, ..to_tenant(&frames) }).await;
    assert_eq!((fixture.status("b1").await, fixture.status("b2").await), ("failed", "completed"));
    fixture.create_parallel_thread("t").await;
    let frames = [start("c", "c1"), start("d", "d1"), chunk("c", "A"), start("c", "c2"), reply("c", "B")];
    fixture.write(append(Target::Thread(thread("t")), &frames)).await;
    assert_eq!((fixture.status("c1").await, fixture.status("c2").await), ("failed", "completed"));
    assert_eq!(fixture.status("d1").await, "running");
}

/// Threads that are made for it hold the runs of a session side by side.
pub async fn runs_of_a_session_lie_side_by_side_in_a_parallel_thread(bed: &dyn Bed) {
    let mut fixture = Fixture::open(bed).await;
    let beside = |frames: &[String]| Append { parallel: true, ..to_tenant(frames) };
    fixture.write(beside(&[named("run.started", "s", "a"), named("run.started", "s", "b")])).await;
    fixture = fixture.reopen().await;
    fixture.write(to_tenant(&[named("text.delta", "s", "a"), named("text.delta", "s", "b")])).await;
    fixture.write(to_tenant(&[named("run.completed", "s", "b"), named("run.completed", "s", "a")])).await;
    assert_eq!(owners(&fixture, "s").await, ["a", "b", "a", "b", "b", "a"]);
    for id in ["a", "b"] {
        assert_eq!(fixture.status(id).await, "completed");
    }
}

/// Whoever reads the refusal of one frame among many learns where it belongs.
pub async fn a_refused_frame_is_told_with_its_thread_and_run(bed: &dyn Bed) {
    let fixture = Fixture::open(bed).await;
    fixture.write(stamped(to_tenant(&side_by_side()), "q", 0, 0)).await;
    let frames = [chunk("b2", "x"), chunk("a", "late"), chunk("b2", "y")];
    let written = fixture.log.append(stamped(to_tenant(&frames), "q", 0, 7)).await.expect("an answer");
    let fault = written.fault.expect("a fault");
    assert_eq!((fault.line, fault.problem.code()), (2, ErrorCode::RunClosed));
    assert_eq!((fault.thread.as_deref(), fault.run.as_deref()), (Some("a"), Some("a1")));
    // It uses up no index: a producer that leaves it out continues with the next one.
    fixture.write(stamped(to_tenant(&frames[2..]), "q", 0, 8)).await;
    assert_eq!(owners(&fixture, "b2").await.len(), 2);
}

/// A run is one session's: a frame of another was meant for another run.
pub async fn a_frame_of_another_session_is_no_frame_of_the_run(bed: &dyn Bed) {
    let mut fixture = Fixture::open(bed).await;
    fixture.write(stamped(to_run("r", &[start("a", "a1"), chunk("a", "A")]), "p", 0, 0)).await;
    fixture = fixture.reopen().await;
    let frames = [r#"{"type":"custom","value":1}"#.to_owned(), chunk("b", "B"), chunk("a", "A")];
    let written = fixture.log.append(stamped(to_run("r", &frames), "p", 0, 2)).await.expect("an answer");
    let fault = written.fault.expect("a fault");
    assert_eq!((written.accepted, fault.line), (1, 2));
    let other = LogError::OtherSession { session: "a".into(), got: "b".into() };
    assert_eq!(fault.problem, FrameProblem::Log(other));
    fixture.write(stamped(to_run("r", &frames[2..]), "p", 0, 3)).await;
    // Another producer, and a new incarnation, may call the session what they like.
    fixture.write(stamped(to_run("r", &[chunk("b", "B")]), "q", 0, 0)).await;
    fixture.write(stamped(to_run("r", &[chunk("c", "C"), reply("c", "AAC")]), "p", 1, 4)).await;
    assert_eq!(fixture.status("r").await, "completed");
}

/// A deleted thread takes no more frames; the other sessions of the stream go on.
pub async fn a_session_of_a_deleted_thread_is_refused(bed: &dyn Bed) {
    let fixture = Fixture::open(bed).await;
    fixture.write(to_tenant(&side_by_side())).await;
    fixture.log.delete_thread(&thread("a"), false).await.expect("it is deleted");
    let frames = [chunk("c", "x"), start("a", "a2"), chunk("c", "y")];
    let written = fixture.log.append(to_tenant(&frames)).await.expect("an answer");
    let fault = written.fault.expect("a fault");
    assert_eq!((fault.index, fault.problem.code()), (1, ErrorCode::ThreadDeleted));
    fixture.write(to_tenant(&frames[2..])).await;
    assert_eq!(owners(&fixture, "c").await.len(), 2);
}

/// Parallel runs of a thread are distinguished by their sessions, which default to their ids.
pub async fn runs_of_a_parallel_thread_have_sessions_of_their_own(bed: &dyn Bed) {
    let fixture = Fixture::open(bed).await;
    fixture.create_parallel_thread("t").await;
    let whole = append(Target::Thread(thread("t")), &[start("a", "a1"), start("t", "t1"), chunk("a", "A")]);
    fixture.write(whole).await;
    fixture.write(to_run_of("t", "mine", &[r#"{"type":"run.started"}"#])).await;
    fixture.create_run("unwritten", Some("t")).await;
    let cancel = crate::Cancel { reason: None, by: None };
    fixture.log.cancel(&run("unwritten"), cancel).await.expect("it is cancelled");
    let mut sessions = Vec::new();
    for record in fixture.records("t").await {
        let starts =
            record.record.entries.iter().filter(|entry| entry.event.body.type_name() == "run.started");
        sessions.extend(starts.map(|entry| {
            let session = entry.event.extra.get(SESSION_ID).and_then(|id| id.as_string().map(Into::into));
            (record.run.to_string(), session)
        }));
    }
    let expected: [(&str, Option<&str>); 4] = [
        ("a1", Some("a")),
        // It says the thread's own id.
        ("t1", None),
        ("mine", Some("mine")),
        ("unwritten", Some("unwritten")),
    ];
    let expected: Vec<(String, Option<String>)> =
        expected.iter().map(|(run, session)| ((*run).to_owned(), session.map(str::to_owned))).collect();
    assert_eq!(sessions, expected);
}
