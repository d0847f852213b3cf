//! Every run ends: leases and interactions expire.

use std::time::Duration;

use runwire_model::ErrorCode;

use super::fixture::{COMPLETED, Fixture, STARTED, delta, run, to_run};
use super::{Bed, Timing};
use crate::{Cancel, LogError};

const SHORT: Timing = Timing { lease: Duration::from_millis(60), cancel_grace: Duration::from_millis(60) };

fn asks(id: &str, expires_at: &str) -> String {
    let expires =
        if expires_at.is_empty() { String::new() } else { format!(r#","expires_at":"{expires_at}""#) };
    format!(r#"{{"type":"interaction.requested","interaction_id":"{id}","kind":"form"{expires}}}"#)
}

/// A run whose producer falls silent fails with `producer_lost`.
pub async fn a_silent_producer_is_lost_after_its_lease(bed: &dyn Bed) {
    let fixture = Fixture::with(bed, SHORT).await;
    fixture.write(to_run("r", &[STARTED, &delta("a")])).await;
    fixture.closed_run("closed", "closed", "x").await;
    fixture.sweep_until("r", "failed").await;
    let info = fixture.info("r").await;
    assert_eq!(info.summary.error.and_then(|error| error.code).as_deref(), Some("producer_lost"));
    assert!(info.ended_at.is_some());
    assert_eq!(fixture.types("r").await[3..], ["text.finished", "run.failed"]);
    let late = fixture.log.append(to_run("r", &[delta("late")])).await.expect("an answer");
    assert_eq!(late.fault.map(|fault| fault.problem.code()), Some(ErrorCode::RunClosed));
    assert_eq!((fixture.log.sweep().await, fixture.status("closed").await), (Ok(0), "completed"));
}

/// The lease of a run starts when it is created.
pub async fn a_run_that_was_never_written_to_is_lost_too(bed: &dyn Bed) {
    let fixture = Fixture::with(bed, SHORT).await;
    fixture.create_run("r", Some("t")).await;
    fixture.sweep_until("r", "failed").await;
    assert_eq!(fixture.types("t").await, ["run.started", "run.failed"]);
    let error = fixture.info("r").await.summary.error.expect("a failure");
    assert!(error.message.starts_with("nothing was written"), "{}", error.message);
    // The thread is free again.
    fixture.create_run("next", Some("t")).await;
}

/// Writes and heartbeats renew the lease of a run.
pub async fn writes_and_heartbeats_renew_a_lease(bed: &dyn Bed) {
    let lease = Duration::from_millis(1500);
    let fixture = Fixture::with(bed, Timing { lease, ..SHORT }).await;
    for id in ["writes", "beats", "empty", "silent"] {
        fixture.write(to_run(id, &[STARTED])).await;
    }
    // Longer than the lease in all, with a sign of life after each sixth of it.
    for _ in 0..8 {
        tokio::time::sleep(lease / 6).await;
        fixture.write(to_run("writes", &[delta("a")])).await;
        fixture.write(to_run("empty", &[""; 0])).await;
        assert_eq!(fixture.log.heartbeat(&run("beats")).await.expect("the run").status.as_str(), "running");
        fixture.log.sweep().await.expect("a sweep");
    }
    assert_eq!(fixture.status("silent").await, "failed");
    for id in ["writes", "beats", "empty"] {
        assert_eq!(fixture.status(id).await, "running", "{id}");
    }
    for id in ["writes", "beats", "empty"] {
        fixture.sweep_until(id, "failed").await;
    }
}

/// A suspended run waits until its interaction expires, also after reopening.
pub async fn a_lease_pauses_while_an_interaction_is_open(bed: &dyn Bed) {
    let fixture = Fixture::with(bed, SHORT).await;
    fixture.write(to_run("r", &[STARTED, &asks("q", "2999-01-01T00:00:00Z")])).await;
    fixture.write(to_run("s", &[STARTED, &asks("q", "")])).await;
    fixture.write(to_run("own", &[STARTED, r#"{"type":"run.suspended","interaction_ids":[]}"#])).await;
    fixture.write(to_run("other", &[STARTED])).await;
    fixture.sweep_until("other", "failed").await;
    let fixture = fixture.reopen().await;
    fixture.write(to_run("another", &[STARTED])).await;
    fixture.sweep_until("another", "failed").await;
    for id in ["r", "s", "own"] {
        assert_eq!(fixture.status(id).await, "suspended", "{id}");
    }
    // Where it does not say, a question waits for a week.
    let info = fixture.info("s").await;
    let week = info.summary.interactions[0].expires_at.expect("a time") - info.started_at.expect("a time").0;
    assert!(week.abs_diff(crate::limits::INTERACTION_MILLIS) < 60_000);
    // Once it is answered, the producer must show itself again.
    let withdrawn = r#"{"type":"interaction.resolved","interaction_id":"q","decision":"cancelled"}"#;
    fixture.write(to_run("r", &[withdrawn])).await;
    fixture.sweep_until("r", "failed").await;
}

/// Only expired interactions are resolved; when none is open, the run resumes.
pub async fn an_interaction_expires_alone_and_resumes_its_run(bed: &dyn Bed) {
    let fixture = Fixture::with(bed, Timing { lease: Duration::from_secs(600), ..SHORT }).await;
    let (past, week) = (asks("past", "2020-01-01T00:00:00Z"), asks("week", ""));
    fixture.write(to_run("one", &[STARTED, &past])).await;
    fixture.write(to_run("two", &[STARTED, &past, &week])).await;
    let fixture = fixture.reopen().await;
    fixture.sweep_until("one", "running").await;
    assert_eq!(fixture.types("one").await[3..], ["interaction.resolved", "run.resumed"]);
    let asked = fixture.info("two").await.summary.interactions;
    let states: Vec<_> = asked.iter().map(|asked| asked.status.as_str()).collect();
    assert_eq!(states, ["expired", "open"]);
    assert_eq!(fixture.status("two").await, "suspended");
    assert_eq!(fixture.log.sweep().await, Ok(0));
    fixture.write(to_run("one", &[COMPLETED])).await;
}

/// An interaction does not delay the end of a cancelled run.
pub async fn a_run_that_asks_after_a_cancel_is_still_stopped(bed: &dyn Bed) {
    let fixture = Fixture::with(bed, Timing { lease: Duration::from_secs(600), ..SHORT }).await;
    for id in ["r", "s"] {
        fixture.write(to_run(id, &[STARTED])).await;
        fixture.log.cancel(&run(id), Cancel::default()).await.expect("the run");
        fixture.write(to_run(id, &[asks("q", "")])).await;
    }
    let withdrawn = r#"{"type":"interaction.resolved","interaction_id":"q","decision":"cancelled"}"#;
    fixture.write(to_run("s", &[withdrawn])).await;
    let fixture = fixture.reopen().await;
    fixture.sweep_until("r", "cancelled").await;
    fixture.sweep_until("s", "cancelled").await;
}

/// Downtime of the server expires no lease.
pub async fn every_lease_gets_a_full_term_after_reopening(bed: &dyn Bed) {
    let lease = Duration::from_millis(500);
    let fixture = Fixture::with(bed, Timing { lease, ..SHORT }).await;
    fixture.write(to_run("r", &[STARTED])).await;
    fixture.create_run("pending", None).await;
    tokio::time::sleep(lease).await;
    let fixture = fixture.reopen().await;
    assert_eq!(fixture.log.sweep().await, Ok(0));
    fixture.sweep_until("r", "failed").await;
    fixture.sweep_until("pending", "failed").await;
}

/// Heartbeats of many runs are one commit; one that is refused does not hinder the others.
pub async fn heartbeats_of_many_runs_are_one_commit(bed: &dyn Bed) {
    let fixture = Fixture::open(bed).await;
    let ids: Vec<_> = (0..64).map(|at| format!("r{at}")).collect();
    for id in &ids {
        fixture.write(to_run(id, &[STARTED])).await;
    }
    let runs: Vec<_> = ids.iter().map(|id| run(id)).chain([run("unknown")]).collect();
    let before = fixture.log.stats().await.expect("statistics").written.commits;
    let renewed = fixture.log.heartbeat_all(runs).await.expect("heartbeats");
    let commits = fixture.log.stats().await.expect("statistics").written.commits - before;
    assert_eq!(commits, 1);
    let (last, known) = renewed.split_last().expect("a result for each run");
    assert!(matches!(last, Err(LogError::RunUnknown(id)) if id == "unknown"), "{last:?}");
    let known: Vec<_> = known.iter().map(|info| info.as_ref().expect("the run").run_id.as_str()).collect();
    assert_eq!(known, ids);
}
