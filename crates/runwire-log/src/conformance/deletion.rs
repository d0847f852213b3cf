//! A deleted thread is gone, and its ids stay used up.

use std::time::Duration;

use super::Bed;
use super::fixture::{Fixture, STARTED, TENANT, delta, run, thread, to_run, to_run_of, to_thread};
use crate::error::LogError;
use crate::info::{NewRun, NewThread, RunQuery};

/// An open run protects its thread, unless the deletion is forced.
pub async fn a_thread_with_an_open_run_is_kept_unless_forced(bed: &dyn Bed) {
    let fixture = Fixture::open(bed).await;
    fixture.closed_run("t", "r1", "x").await;
    fixture.create_run("r2", Some("t")).await;
    let refused = fixture.log.delete_thread(&thread("t"), false).await;
    assert_eq!(refused, Err(LogError::RunOpen("r2".into())));
    assert_eq!(fixture.records("t").await.len(), 3);
    fixture.log.delete_thread(&thread("t"), true).await.expect("the thread is deleted");
    let unknown = fixture.log.delete_thread(&thread("none"), true).await;
    assert_eq!(unknown, Err(LogError::ThreadUnknown("none".into())));
    assert_eq!(fixture.log.sweep().await, Ok(0));
}

/// Nothing can be read of it, nothing can be written to it, and no other thread or run gets its ids.
pub async fn a_deleted_thread_is_gone_and_its_ids_stay_used_up(bed: &dyn Bed) {
    let fixture = Fixture::open(bed).await;
    fixture.closed_run("kept", "kept", "x").await;
    fixture.closed_run("t", "r", "x").await;
    fixture.log.delete_thread(&thread("t"), false).await.expect("the thread is deleted");
    let mut fixture = fixture;
    for _ in 0..2 {
        gone(&fixture).await;
        fixture = fixture.reopen().await;
    }
    // A run of that name elsewhere gets a thread of another name.
    fixture.write(to_run("t", &[STARTED])).await;
    assert_ne!(fixture.info("t").await.thread_id, "t");
    assert_eq!(fixture.records("kept").await.len(), 3);
}

async fn gone(fixture: &Fixture<'_>) {
    let gone = || LogError::ThreadDeleted("t".into());
    let log = &fixture.log;
    assert_eq!(log.thread(&thread("t")).await, Err(gone()));
    assert_eq!(log.run(&run("r")).await, Err(gone()));
    assert_eq!(log.read(&thread("t"), 0).await.map(|_| ()), Err(gone()));
    assert_eq!(log.before(&thread("t"), 1).await.map(|_| ()), Err(gone()));
    assert_eq!(log.spans(&thread("t")).await, Err(gone()));
    assert_eq!(log.producer(&run("r"), "").await, Err(gone()));
    assert_eq!(log.heartbeat(&run("r")).await, Err(gone()));
    assert_eq!(log.cancel(&run("r"), Default::default()).await, Err(gone()));
    assert_eq!(log.delete_thread(&thread("t"), true).await, Err(gone()));
    for append in [to_run("r", &[STARTED]), to_run_of("t", "new", &[STARTED]), to_thread("t", &[STARTED])] {
        assert_eq!(fixture.refused(append).await, gone());
    }
    let new = NewThread { tenant: TENANT.into(), thread_id: Some("t".into()), parallel: false };
    assert_eq!(log.create_thread(new).await, Err(gone()));
    for (id, in_thread) in [("r", None), ("new", Some("t"))] {
        let new = NewRun {
            tenant: TENANT.into(),
            run_id: Some(id.into()),
            thread_id: in_thread.map(str::to_owned),
            ..NewRun::default()
        };
        assert_eq!(log.create_run(new).await, Err(gone()));
    }
    let query = RunQuery { tenant: TENANT.into(), limit: 100, ..RunQuery::default() };
    assert!(log.runs(query).await.expect("runs").iter().all(|run| run.thread_id != "t"));
    assert!(
        log.threads(TENANT, None, 100).await.expect("threads").iter().all(|thread| thread.thread_id != "t")
    );
}

/// A reader of the thread sees its last records, then that it is deleted.
pub async fn readers_learn_of_a_deletion(bed: &dyn Bed) {
    let fixture = Fixture::open(bed).await;
    fixture.write(to_run_of("t", "r", &[STARTED])).await;
    let tail = fixture.log.tail(&thread("t"));
    let mut head = tail.watch();
    fixture.log.delete_thread(&thread("t"), true).await.expect("the thread is deleted");
    let told = tokio::time::timeout(Duration::from_secs(10), head.wait_for(|head| head.deleted)).await;
    assert_eq!(told.expect("in time").expect("a head").seq, 2);
    assert!(tail.head().deleted);
}

/// Concurrent writes are refused or deleted with the thread; nothing of them reappears.
pub async fn frames_of_the_same_moment_go_with_the_thread(bed: &dyn Bed) {
    let mut fixture = Fixture::open(bed).await;
    for round in 0..40 {
        let id = format!("t{round}");
        let (key, made) = (thread(&id), format!("made{round}"));
        let (first, deleted, second, _, _) = tokio::join!(
            fixture.log.append(to_run(&id, &[STARTED, &delta("x")])),
            fixture.log.delete_thread(&key, true),
            fixture.log.append(to_run(&id, &[delta("y")])),
            fixture.log.append(to_run(&format!("other{round}"), &[STARTED])),
            fixture.create_run(&made, Some(&made)),
        );
        if deleted.is_ok() {
            first.expect("the run began before");
            assert!(second.is_err() || second.is_ok_and(|appended| appended.last_seq > 0));
            assert_eq!(fixture.log.thread(&key).await, Err(LogError::ThreadDeleted(id.clone())));
        }
        assert_eq!(fixture.records(&format!("other{round}")).await.len(), 1);
        assert_eq!(fixture.status(&made).await, "pending");
    }
    fixture = fixture.reopen().await;
    fixture.log.ready().await.expect("the store works");
    assert_eq!(fixture.status("other0").await, "running");
}

/// The rows of a large thread are removed step by step, across restarts, while others write.
pub async fn a_deletion_survives_reopening(bed: &dyn Bed) {
    let mut fixture = Fixture::open(bed).await;
    for _ in 0..60 {
        let (a, b) = tokio::join!(
            fixture.log.append(to_run("large", &vec![delta(&"x".repeat(2000)); 20])),
            fixture.log.append(to_run("small", &[delta("y")])),
        );
        assert!(a.is_ok() && b.is_ok());
    }
    fixture.log.delete_thread(&thread("large"), true).await.expect("the thread is deleted");
    for _ in 0..3 {
        fixture = fixture.reopen().await;
        assert_eq!(
            fixture.log.read(&thread("large"), 0).await.map(|_| ()),
            Err(LogError::ThreadDeleted("large".into()))
        );
        fixture.write(to_run("small", &[delta("z")])).await;
    }
    assert_eq!(fixture.records("small").await.len(), 63);
}
