//! One order, durable, read page by page.

use std::sync::Arc;

use super::Bed;
use super::fixture::{COMPLETED, Fixture, STARTED, delta, run, thread, to_run, to_run_of};
use crate::append::{Append, FrameBatch, Target};
use crate::error::LogError;
use crate::limits;

/// `seq` counts from 1 over all runs of a thread, and `at` never goes back.
pub async fn seq_is_contiguous_from_1_and_time_never_goes_backwards(bed: &dyn Bed) {
    let fixture = Fixture::open(bed).await;
    for id in ["r1", "r2", "r3"] {
        fixture.write(to_run_of("t", id, &[STARTED, &delta("a")])).await;
        fixture.log.cancel(&run(id), Default::default()).await.expect("a cancel");
        let appended = fixture.write(to_run_of("t", id, &[COMPLETED])).await;
        assert_eq!(appended.last_seq, fixture.info(id).await.last_seq);
    }
    let fixture = fixture.reopen().await;
    fixture.write(to_run_of("t", "r4", &[STARTED])).await;
    let records = fixture.records("t").await;
    let seqs: Vec<_> = records.iter().map(|record| record.record.seq).collect();
    assert_eq!(seqs, (1..=13).collect::<Vec<u64>>());
    assert!(records.is_sorted_by_key(|record| record.record.at));
    assert_eq!(fixture.log.thread(&thread("t")).await.expect("the thread").head, 13);
}

/// A page holds no more than its limit and one record; the pages together hold everything.
pub async fn pages_join_to_the_whole_thread(bed: &dyn Bed) {
    let fixture = Fixture::open(bed).await;
    let text = "字".repeat(2000);
    for _ in 0..10 {
        let frames: Vec<_> = (0..20).map(|_| delta(&text)).collect();
        fixture.write(to_run("r", &frames)).await;
    }
    let records = fixture.records("r").await;
    assert_eq!(records.len(), 200);
    let page = fixture.log.read(&thread("r"), 0).await.expect("a page");
    assert!(page.records.len() < 200, "the first page holds everything");
    assert_eq!((page.head, page.oldest), (200, 1));
    let weight: usize = page.records.iter().map(|record| record.weight()).sum();
    let last = page.records.last().map_or(0, |record| record.weight());
    assert!(weight - last < limits::PAGE_BYTES, "a page of {weight} bytes");
    for after in [1, 19, 20, 21, 150, 199, 200] {
        let rest = fixture.records_after("r", after).await;
        assert_eq!(rest, records[after as usize..], "after {after}");
    }
    let beyond = fixture.log.read(&thread("r"), 201).await.expect_err("beyond the end");
    assert_eq!(beyond, LogError::CursorBeyondEnd { after: 201, head: 200 });
}

/// Records, runs and threads are the same after the store was opened again.
pub async fn acknowledged_records_survive_reopening(bed: &dyn Bed) {
    let fixture = Fixture::open(bed).await;
    fixture.closed_run("t", "r1", "one").await;
    fixture.write(to_run_of("t", "r2", &[STARTED, &delta("two")])).await;
    fixture.create_run("r3", None).await;
    let before = (
        fixture.records("t").await,
        fixture.info("r1").await,
        fixture.info("r2").await,
        fixture.info("r3").await,
    );
    let thread_before = fixture.log.thread(&thread("t")).await;
    let fixture = fixture.reopen().await;
    let after = (
        fixture.records("t").await,
        fixture.info("r1").await,
        fixture.info("r2").await,
        fixture.info("r3").await,
    );
    assert_eq!(before, after);
    assert_eq!(thread_before, fixture.log.thread(&thread("t")).await);
    fixture.write(to_run("r2", &[COMPLETED])).await;
    assert_eq!(fixture.info("r2").await.last_seq, 6);
}

/// The bytes of a frame, its name and its dialect are what came.
pub async fn frames_are_kept_byte_for_byte_with_their_names(bed: &dyn Bed) {
    let fixture = Fixture::open(bed).await;
    let odd = " {\"type\" : \"text.delta\",\"message_id\":\"m\", \"content\":\"\\u4f60\\n\" } ";
    let mut frames = FrameBatch::default();
    frames.push(1, Some("name"), odd.as_bytes());
    frames.push(9, None, br#"{"type":"never.heard","x":[1,2.50,1e400]}"#);
    let append = Append { frames, ..to_run("r", &[""; 0]) };
    fixture.write(append).await;
    let fixture = fixture.reopen().await;
    let records = fixture.records("r").await;
    assert_eq!(records[0].frame.as_deref(), Some(odd.as_bytes()));
    assert_eq!((records[0].name.as_deref(), records[1].name.as_deref()), (Some("name"), None));
    assert_eq!(records[1].frame.as_deref(), Some(&br#"{"type":"never.heard","x":[1,2.50,1e400]}"#[..]));
    assert!(records.iter().all(|record| *record.run == *"r"));
}

/// Many runs are written at once; each of their threads has its own order.
pub async fn many_writers_of_many_runs_each_get_their_own_order(bed: &dyn Bed) {
    let fixture = Fixture::open(bed).await;
    let mut writers = Vec::new();
    for writer in 0..32 {
        let log = fixture.log.clone();
        writers.push(tokio::spawn(async move {
            for turn in 0..8 {
                let append = to_run(&format!("r{writer}"), &[delta(&turn.to_string())]);
                let appended = log.append(append).await.expect("an append");
                assert_eq!((appended.accepted, appended.last_seq), (1, turn + 1));
            }
        }));
    }
    for writer in writers {
        writer.await.expect("the writer ends");
    }
    for writer in 0..32 {
        assert_eq!(fixture.records(&format!("r{writer}")).await.len(), 8);
    }
}

/// Many producers write one run at once: nothing is lost, and everyone sees the same order.
pub async fn one_run_written_by_many_keeps_one_order(bed: &dyn Bed) {
    let fixture = Fixture::open(bed).await;
    let mut writers = Vec::new();
    for writer in 0..16 {
        let log: Arc<_> = fixture.log.clone();
        writers.push(tokio::spawn(async move {
            for turn in 0..8 {
                let frames = [delta(&format!("{writer}.{turn};")), delta("and;")];
                let append = super::fixture::append(Target::Run(run("r")), &frames);
                let append = super::fixture::stamped(append, &format!("p{writer}"), 0, turn * 2);
                assert_eq!(log.append(append).await.expect("an append").accepted, 2);
            }
        }));
    }
    for writer in writers {
        writer.await.expect("the writer ends");
    }
    let records = fixture.records("r").await;
    assert_eq!(records.len(), 256);
    // The frames of one append follow each other.
    for pair in records.chunks(2) {
        assert!(!pair[0].frame.as_deref().unwrap_or_default().ends_with(b"\"and;\"}"));
        assert!(pair[1].frame.as_deref().unwrap_or_default().ends_with(b"\"and;\"}"));
    }
    assert_eq!(fixture.info("r").await.summary.records, 256);
}
