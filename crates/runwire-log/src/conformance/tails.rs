//! Readers that follow a thread, and the checkpoints that let them come back.

use std::time::Duration;

use runwire_model::dialect::{Dialect, Encoder, Fidelity, Frames, Slots};
use runwire_model::window::Window;

use super::Bed;
use super::fixture::{Fixture, STARTED, delta, run, thread, to_run, to_run_of};
use crate::ReadFormat;
use crate::limits;

/// Readers that come while others write see every record once, in order.
pub async fn a_reader_that_takes_the_tail_first_misses_nothing(bed: &dyn Bed) {
    const RECORDS: u64 = 300;
    let fixture = Fixture::open(bed).await;
    fixture.write(to_run("r", &[STARTED])).await;
    let mut readers = Vec::new();
    for reader in 0..8 {
        let log = fixture.log.clone();
        readers.push(tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(reader * 3)).await;
            let tail = log.tail(&thread("r"));
            let mut head = tail.watch();
            let mut seen = 0;
            while seen < RECORDS {
                let records = match tail.after(seen) {
                    Some(records) => records,
                    None => log.read(&thread("r"), seen).await.expect("a page").records,
                };
                for record in &records {
                    assert_eq!(record.record.seq, seen + 1);
                    seen += 1;
                }
                if records.is_empty() {
                    let waited = head.wait_for(|head| head.seq > seen);
                    let waited = tokio::time::timeout(Duration::from_secs(20), waited).await;
                    waited.expect("a reader waits in vain").expect("the tail lives");
                }
            }
        }));
    }
    let mut writers = Vec::new();
    for writer in 0..4 {
        let log = fixture.log.clone();
        let mine = if writer == 0 { 74 } else { 75 };
        writers.push(tokio::spawn(async move {
            for turn in 0..mine {
                let text = if turn % 10 == 0 { "x".repeat(20_000) } else { turn.to_string() };
                log.append(to_run("r", &[delta(&text)])).await.expect("an append");
            }
        }));
    }
    for task in writers.into_iter().chain(readers) {
        task.await.expect("no reader misses a record");
    }
    assert_eq!(fixture.records("r").await.len() as u64, RECORDS);
}

/// A tail holds a bounded number of bytes; what it has lost must be read from the store.
pub async fn a_tail_that_has_lost_records_says_so(bed: &dyn Bed) {
    let fixture = Fixture::open(bed).await;
    fixture.write(to_run("r", &[STARTED])).await;
    let tail = fixture.log.tail(&thread("r"));
    assert!(tail.after(0).is_none(), "a new tail knows nothing");
    fixture.write(to_run("r", &[delta("a")])).await;
    assert_eq!(tail.head().seq, 2);
    assert!(tail.after(0).is_none(), "the first record is not in it");
    assert_eq!(tail.after(1).map(|records| records.len()), Some(1));
    assert_eq!(tail.after(2).map(|records| records.len()), Some(0));
    assert_eq!(tail.after(u64::MAX).map_or(0, |records| records.len()), 0);
    let rounds = 2 * limits::TAIL_BYTES / 50_000;
    for _ in 0..rounds {
        fixture.write(to_run("r", &[delta(&"x".repeat(50_000))])).await;
    }
    assert!(tail.after(1).is_none());
    let last = tail.head().seq;
    assert_eq!(last, fixture.info("r").await.last_seq);
    assert_eq!(tail.after(last - 1).map(|records| records.len()), Some(1));
    // Threads do not mix.
    fixture.write(to_run_of("t", "s", &[STARTED])).await;
    assert_eq!(tail.head().seq, last);
    drop(tail);
    // Whoever keeps it filled may hold it for a moment longer.
    while fixture.log.tail(&thread("r")).head().seq != 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// The newest checkpoint that is not too new is found, unless it was lost.
pub async fn a_checkpoint_is_found_again(bed: &dyn Bed) {
    let fixture = Fixture::open(bed).await;
    fixture.write(to_run("r", &[STARTED.to_owned(), delta("a"), delta("b"), delta("c")])).await;
    let form = ReadFormat::new(Dialect::Loom);
    let mut encoder = Encoder::new(Dialect::Loom, "r", "r", Fidelity::Native);
    let mut states = Vec::new();
    for record in fixture.records("r").await {
        encoder.step(&record.record, &Window::default(), &mut Frames::default());
        fixture.log.keep_checkpoint(&run("r"), form, record.record.seq, &encoder);
        states.push(encoder.clone());
    }
    fixture.log.keep_checkpoint(&run("none"), form, 1, &encoder);
    fixture.log.keep_checkpoint(&run("r"), form, u64::MAX, &encoder);
    fixture.log.ready().await.expect("checkpoints hurt nothing");
    let fixture = fixture.reopen().await;
    for seq in 1..=4 {
        // It is a cache: it may be lost, and must not be wrong.
        if let Some((found, state)) = fixture.log.checkpoint(&run("r"), form, seq).await.expect("the store") {
            assert!(found <= seq);
            assert_eq!(state, states[found as usize - 1]);
        }
    }
    assert_eq!(fixture.log.checkpoint(&run("r"), form, 0).await, Ok(None));
    let full = ReadFormat { fidelity: Fidelity::Full, ..form };
    assert_eq!(fixture.log.checkpoint(&run("r"), full, 4).await, Ok(None));
    let asks = ReadFormat { slots: Slots::Asks, ..form };
    assert_eq!(fixture.log.checkpoint(&run("r"), asks, 4).await, Ok(None));
    assert_eq!(fixture.log.checkpoint(&run("none"), form, 4).await, Ok(None));
    fixture.log.checkpoint(&run("r"), form, u64::MAX).await.expect("the store");
}
