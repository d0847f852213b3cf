//! Retention removes whole closed runs from the beginning of a thread, and keeps what they led to.

use std::time::Duration;

use runwire_model::Timestamp;
use runwire_model::record::{ChatMessage, History};

use super::Bed;
use super::fixture::{COMPLETED, Fixture, STARTED, delta, run, thread, to_run, to_run_of};
use crate::RetentionLimits;
use crate::error::LogError;

fn by_age(moment: Timestamp) -> RetentionLimits {
    RetentionLimits { ended_before: Some(moment), ..RetentionLimits::default() }
}

fn by_bytes(most: u64) -> RetentionLimits {
    RetentionLimits { max_bytes: Some(most), ..RetentionLimits::default() }
}

const ALL: Timestamp = Timestamp(u64::MAX);

/// Waits until what ends next ends later. A writer's estimate of Postgres' clock may be a round trip ahead of another's,
/// of 100 ms at most (`postgres/store_clock.rs`).
async fn a_moment() {
    tokio::time::sleep(Duration::from_millis(110)).await;
}

async fn window_before(fixture: &Fixture<'_>, id: &str, seq: u64) -> (Vec<ChatMessage>, Option<String>) {
    let window = fixture.log.before(&thread(id), seq).await.expect("the thread");
    (window.messages(), window.state().map(|state| state.text().to_owned()))
}

/// Of each thread the runs are removed that ended long enough ago; a cursor into them is refused with the oldest
/// valid one.
pub async fn runs_that_ended_before_a_moment_are_removed(bed: &dyn Bed) {
    let fixture = Fixture::open(bed).await;
    for id in ["r1", "r2"] {
        fixture.closed_run("t", id, "x").await;
        fixture.closed_run("u", &format!("u-{id}"), "x").await;
        a_moment().await;
    }
    fixture.closed_run("t", "r3", "x").await;
    let moment = fixture.info("r3").await.ended_at.expect("an end");
    assert_eq!(fixture.log.trim(by_age(Timestamp(1))).await, Ok(0));
    assert_eq!(fixture.log.trim(by_age(moment)).await, Ok(4));
    let mut fixture = fixture;
    for _ in 0..2 {
        let trimmed = fixture.log.read(&thread("t"), 0).await.map(|_| ());
        assert_eq!(trimmed, Err(LogError::CursorTrimmed { after: 0, oldest: 7 }));
        let trimmed = fixture.log.read(&thread("t"), 5).await.map(|_| ());
        assert_eq!(trimmed, Err(LogError::CursorTrimmed { after: 5, oldest: 7 }));
        let rest: Vec<_> =
            fixture.records_after("t", 6).await.iter().map(|record| record.record.seq).collect();
        assert_eq!(rest, [7, 8, 9]);
        let info = fixture.log.thread(&thread("t")).await.expect("the thread");
        assert_eq!((info.oldest, info.head), (7, 9));
        let run = fixture.info("r1").await;
        assert_eq!((run.trimmed, run.status.as_str()), (true, "completed"));
        assert!(!fixture.info("r3").await.trimmed);
        assert_eq!(fixture.log.spans(&thread("t")).await.expect("the thread").len(), 1);
        fixture = fixture.reopen().await;
    }
    assert_eq!(fixture.log.trim(by_age(moment)).await, Ok(0));
}

/// By age, runs are removed that ended long enough ago by the store's clock, not the caller's.
pub async fn runs_that_ended_so_long_ago_are_removed(bed: &dyn Bed) {
    let fixture = Fixture::open(bed).await;
    fixture.closed_run("t", "r", "x").await;
    let aged = |age| RetentionLimits { age: Some(age), ..RetentionLimits::default() };
    for age in [Duration::from_secs(3600), Duration::MAX] {
        assert_eq!(fixture.log.trim(aged(age)).await, Ok(0));
    }
    a_moment().await;
    assert_eq!(fixture.log.trim(aged(Duration::from_millis(1))).await, Ok(1));
    assert!(fixture.info("r").await.trimmed);
}

/// By size, the runs that ended first are removed, of any thread, and no more than needed.
pub async fn the_oldest_runs_go_until_the_rest_fits(bed: &dyn Bed) {
    let fixture = Fixture::open(bed).await;
    let text = "x".repeat(10_000);
    for round in 0..6 {
        let in_thread = if round % 2 == 0 { "t" } else { "u" };
        fixture.closed_run(in_thread, &format!("r{round}"), &text).await;
        a_moment().await;
    }
    assert_eq!(fixture.log.trim(by_bytes(1 << 20)).await, Ok(0));
    // A text of 10 kB is stored once, as a part of its frame that its event refers to: a run takes about 10.5 kB.
    assert_eq!(fixture.log.trim(by_bytes(40_000)).await, Ok(3));
    for round in 0..6 {
        assert_eq!(fixture.info(&format!("r{round}")).await.trimmed, round < 3, "r{round}");
    }
    assert_eq!(fixture.log.trim(by_bytes(0)).await, Ok(3));
    assert_eq!(fixture.log.thread(&thread("t")).await.expect("the thread").oldest, 10);
}

/// Rows that wait to be removed are not counted, and nothing else is removed instead.
pub async fn trimming_again_at_once_removes_no_more(bed: &dyn Bed) {
    let fixture = Fixture::open(bed).await;
    let text = "x".repeat(10_000);
    for round in 0..6 {
        fixture.closed_run(&format!("t{round}"), &format!("r{round}"), &text).await;
        a_moment().await;
    }
    fixture.closed_run("deleted", "deleted", &"x".repeat(100_000)).await;
    fixture.log.delete_thread(&thread("deleted"), false).await.expect("deleted");
    assert_eq!(fixture.log.trim(by_bytes(40_000)).await, Ok(3));
    assert_eq!(fixture.log.trim(by_bytes(40_000)).await, Ok(0));
    assert!(!fixture.info("r3").await.trimmed);
}

/// Only the beginning of a thread is removed: an open run keeps what follows it.
pub async fn records_after_an_open_run_are_kept(bed: &dyn Bed) {
    let fixture = Fixture::open(bed).await;
    fixture.create_parallel_thread("t").await;
    fixture.closed_run("t", "first", "x").await;
    fixture.write(to_run_of("t", "open", &[STARTED])).await;
    fixture.closed_run("t", "second", "x").await;
    assert_eq!(fixture.log.trim(by_age(ALL)).await, Ok(1));
    assert_eq!(fixture.log.trim(by_bytes(0)).await, Ok(0));
    assert_eq!(fixture.records_after("t", 3).await.len(), 4);
    assert_eq!((fixture.info("first").await.trimmed, fixture.info("second").await.trimmed), (true, false));
    fixture.write(to_run("open", &[COMPLETED])).await;
    assert_eq!(fixture.log.trim(by_age(ALL)).await, Ok(2));
}

/// Overlapping runs are removed together or not at all.
pub async fn runs_side_by_side_go_together(bed: &dyn Bed) {
    let fixture = Fixture::open(bed).await;
    fixture.create_parallel_thread("t").await;
    for id in ["a", "b", "c"] {
        fixture.write(to_run_of("t", id, &[STARTED.to_owned(), delta(id)])).await;
    }
    fixture.write(to_run("b", &[COMPLETED])).await;
    a_moment().await;
    fixture.write(to_run("a", &[COMPLETED])).await;
    let moment = fixture.info("a").await.ended_at.expect("an end");
    assert_eq!(fixture.log.trim(by_age(moment)).await, Ok(0));
    fixture.write(to_run("c", &[COMPLETED])).await;
    fixture.closed_run("t", "d", "x").await;
    let before = window_before(&fixture, "t", 10).await;
    assert_eq!(fixture.log.trim(by_bytes(1000)).await, Ok(3));
    assert_eq!(window_before(&fixture, "t", 10).await, before);
    assert_eq!(fixture.log.thread(&thread("t")).await.expect("the thread").oldest, 10);
}

/// Messages and state are as if nothing had been removed, digits and all.
pub async fn messages_and_state_before_the_cut_are_kept(bed: &dyn Bed) {
    let fixture = Fixture::open(bed).await;
    let state = r#"{"type":"state.snapshot","state":{"n":123456789012345678901234567890,"list":[1.50]}}"#;
    // The last word of the run is a patch that does not fit: the state stays what it was.
    let misfit = r#"{"type":"state.patched","patch":[{"op":"remove","path":"/none"}]}"#;
    let asked = r#"{"type":"run.started","message":"how many?"}"#;
    let called = r#"{"type":"tool.called","call_id":"c","name":"f","arguments":{"x":1e30}}"#;
    let finished = r#"{"type":"tool.finished","call_id":"c","status":"success","result":"两个"}"#;
    let frames = [asked, state, called, finished, &delta("two"), misfit];
    fixture.write(to_run_of("t", "r1", &frames)).await;
    fixture.log.cancel(&run("r1"), Default::default()).await.expect("the run");
    fixture.write(to_run("r1", &[r#"{"type":"run.cancelled"}"#])).await;
    fixture.write(to_run_of("t", "r2", &[STARTED, &delta("and more"), COMPLETED])).await;
    a_moment().await;
    fixture.closed_run("t", "r3", "last").await;
    let head = fixture.log.thread(&thread("t")).await.expect("the thread").head;
    let first = fixture.info("r3").await.first_seq.expect("a record");
    let before = (window_before(&fixture, "t", first).await, window_before(&fixture, "t", head + 1).await);
    assert!(before.0.1.as_deref().is_some_and(|state| state.contains("123456789012345678901234567890")));
    assert_eq!(before.0.0.len(), 5);
    let moment = fixture.info("r3").await.ended_at.expect("an end");
    assert_eq!(fixture.log.trim(by_age(moment)).await, Ok(2));
    assert_eq!(
        (window_before(&fixture, "t", first).await, window_before(&fixture, "t", head + 1).await),
        before
    );
    let fixture = fixture.reopen().await;
    assert_eq!(
        (window_before(&fixture, "t", first).await, window_before(&fixture, "t", head + 1).await),
        before
    );
    assert_eq!(fixture.log.trim(by_age(ALL)).await, Ok(1));
    assert_eq!(window_before(&fixture, "t", head + 1).await, before.1);
}

/// An empty thread counts on from where it was, and its time does not go back.
pub async fn a_thread_goes_on_after_all_of_it_was_trimmed(bed: &dyn Bed) {
    let fixture = Fixture::open(bed).await;
    fixture.closed_run("t", "r1", "x").await;
    let ended = fixture.info("r1").await.ended_at;
    assert_eq!(fixture.log.trim(by_age(ALL)).await, Ok(1));
    let fixture = fixture.reopen().await;
    let info = fixture.log.thread(&thread("t")).await.expect("the thread");
    assert_eq!((info.oldest, info.head), (4, 3));
    assert!(fixture.log.read(&thread("t"), 3).await.expect("a page").records.is_empty());
    let appended = fixture.write(to_run_of("t", "r2", &[STARTED.to_owned(), delta("y")])).await;
    assert_eq!(appended.last_seq, 5);
    let fixture = fixture.reopen().await;
    fixture.write(to_run("r2", &[COMPLETED])).await;
    let records = fixture.records_after("t", 3).await;
    assert_eq!(records.iter().map(|record| record.record.seq).collect::<Vec<_>>(), [4, 5, 6]);
    assert!(Some(records[0].record.at) >= ended);
    // Its ids go on, too: `m` was used by the run that is gone.
    let found = format!("{:?}", records[1].record.entries);
    assert!(found.contains("m#2"), "{found}");
}
