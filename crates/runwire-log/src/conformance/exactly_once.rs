//! A producer that retries writes nothing twice, and an old incarnation writes nothing at all.

use runwire_model::ErrorCode;
use runwire_model::dialect::Dialect;

use super::Bed;
use super::fixture::{BAD, COMPLETED, Fixture, STARTED, delta, run, stamped, to_run, to_thread};
use crate::append::Append;
use crate::error::LogError;
use crate::limits;

/// The same body again, also the one that ended the run and also after reopening, changes nothing.
pub async fn a_repeated_body_is_counted_as_duplicates(bed: &dyn Bed) {
    let fixture = Fixture::open(bed).await;
    let body = || stamped(Append { end: true, ..to_run("r", &[STARTED, &delta("a"), COMPLETED]) }, "p", 3, 0);
    assert_eq!(fixture.write(body()).await.accepted, 3);
    for _ in 0..2 {
        let again = fixture.write(body()).await;
        assert_eq!((again.accepted, again.duplicates, again.last_seq), (0, 3, 3));
    }
    let fixture = fixture.reopen().await;
    let again = fixture.write(body()).await;
    assert_eq!((again.accepted, again.duplicates, again.last_seq), (0, 3, 3));
    assert_eq!(fixture.records("r").await.len(), 3);
}

/// Of a body that was written in part, the rest is written.
pub async fn an_overlapping_body_writes_only_what_is_new(bed: &dyn Bed) {
    let fixture = Fixture::open(bed).await;
    fixture.write(stamped(to_run("r", &[STARTED, &delta("0")]), "p", 0, 0)).await;
    let fixture = fixture.reopen().await;
    let frames = [delta("0"), delta("1"), delta("2")];
    let appended = fixture.write(stamped(to_run("r", &frames), "p", 0, 1)).await;
    assert_eq!((appended.accepted, appended.duplicates, appended.last_seq), (2, 1, 4));
    let told = fixture.log.producer(&run("r"), "p").await.expect("the run").expect("the producer");
    assert_eq!((told.epoch, told.next, told.dialect), (0, 4, Some(Dialect::Runwire)));
    assert_eq!(fixture.log.producer(&run("r"), "q").await, Ok(None));
}

/// What was never sent cannot be passed over.
pub async fn a_gap_is_refused_with_the_index_that_is_expected(bed: &dyn Bed) {
    let fixture = Fixture::open(bed).await;
    fixture.write(stamped(to_run("r", &[STARTED]), "p", 0, 0)).await;
    let gap = fixture.refused(stamped(to_run("r", &[delta("x")]), "p", 0, 2)).await;
    assert_eq!(gap, LogError::ProducerGap { expected: 1, got: 2 });
    let gap = fixture.refused(stamped(to_run("r", &[delta("x")]), "p", 9, u64::MAX)).await;
    assert_eq!(gap, LogError::ProducerGap { expected: 1, got: u64::MAX });
    // A refused append moves no epoch.
    fixture.write(stamped(to_run("r", &[delta("x")]), "p", 0, 1)).await;
    assert_eq!(fixture.records("r").await.len(), 2);
}

/// A restarted producer goes on; the one that it replaced is refused from then on.
pub async fn a_new_epoch_goes_on_from_next_and_fences_the_old(bed: &dyn Bed) {
    let fixture = Fixture::open(bed).await;
    fixture.write(stamped(to_run("r", &[STARTED, &delta("a")]), "p", 1, 0)).await;
    fixture.write(stamped(to_run("r", &[delta("b")]), "p", 2, 2)).await;
    let fixture = fixture.reopen().await;
    let zombie = fixture.refused(stamped(to_run("r", &[delta("z")]), "p", 1, 2)).await;
    assert_eq!(zombie, LogError::ProducerFenced { epoch: 2 });
    // Taking over without a frame is enough.
    fixture.write(stamped(to_run("r", &[""; 0]), "p", 5, 3)).await;
    let zombie = fixture.refused(stamped(to_run("r", &[delta("z")]), "p", 2, 3)).await;
    assert_eq!(zombie, LogError::ProducerFenced { epoch: 5 });
    let fixture = fixture.reopen().await;
    let zombie = fixture.refused(stamped(to_run("r", &[delta("z")]), "p", 4, 3)).await;
    assert_eq!(zombie, LogError::ProducerFenced { epoch: 5 });
    assert_eq!(fixture.write(stamped(to_run("r", &[delta("c")]), "p", 5, 3)).await.last_seq, 4);
}

/// A refusal of the new incarnation does not let the old one in again.
pub async fn a_fenced_producer_stays_fenced_after_any_refusal(bed: &dyn Bed) {
    let fixture = Fixture::open(bed).await;
    fixture.write(to_run("r", &[STARTED])).await;
    fixture.write(stamped(to_run("r", &[""; 0]), "p", 3, 0)).await;
    for _ in 0..2 {
        let ambiguous = fixture.refused(stamped(to_run("r", &[r#"{"what":1}"#]), "p", 3, 0)).await;
        assert_eq!(ambiguous.code(), ErrorCode::DialectAmbiguous);
        let zombie = fixture.refused(stamped(to_run("r", &[delta("z")]), "p", 1, 0)).await;
        assert_eq!(zombie, LogError::ProducerFenced { epoch: 3 });
    }
}

/// A zombie, a gap and a duplicate are told apart before anything else is looked at.
pub async fn the_check_comes_before_run_closed_and_the_dialect(bed: &dyn Bed) {
    let fixture = Fixture::open(bed).await;
    let closing = || stamped(to_run("r", &[STARTED, COMPLETED]), "p", 1, 0);
    fixture.write(closing()).await;
    let other = |append: Append| Append { dialect: Some(Dialect::Loom), ..append };
    assert_eq!(fixture.write(other(closing())).await.duplicates, 2);
    assert_eq!(fixture.write(stamped(to_run("r", &["rubbish", "{"]), "p", 1, 0)).await.duplicates, 2);
    let zombie = fixture.refused(other(stamped(to_run("r", &[STARTED]), "p", 0, 2))).await;
    assert_eq!(zombie.code(), ErrorCode::ProducerFenced);
    let gap = fixture.refused(other(stamped(to_run("r", &[STARTED]), "p", 1, 3))).await;
    assert_eq!(gap.code(), ErrorCode::ProducerGap);
    let pinned = fixture.refused(other(stamped(to_run("r", &[STARTED]), "p", 1, 2))).await;
    assert_eq!(pinned, LogError::DialectPinned { pinned: Dialect::Runwire, named: Dialect::Loom });
    let closed = fixture.log.append(stamped(to_run("r", &[STARTED]), "p", 1, 2)).await.expect("an answer");
    assert_eq!(closed.fault.map(|fault| fault.problem.code()), Some(ErrorCode::RunClosed));
}

/// The index of a frame that was not written is still free.
pub async fn a_refused_frame_uses_up_no_index(bed: &dyn Bed) {
    let fixture = Fixture::open(bed).await;
    let appended =
        fixture.log.append(stamped(to_run("r", &[STARTED, BAD]), "p", 0, 0)).await.expect("an answer");
    assert_eq!(appended.accepted, 1);
    let fixture = fixture.reopen().await;
    let told = fixture.log.producer(&run("r"), "p").await.expect("the run").expect("the producer");
    assert_eq!(told.next, 1);
    let appended = fixture.write(stamped(to_run("r", &[STARTED.to_owned(), delta("a")]), "p", 0, 0)).await;
    assert_eq!((appended.accepted, appended.duplicates), (1, 1));
}

/// `[DONE]` is no frame: it takes no index, is in no count, and makes no record.
pub async fn end_marks_use_up_no_index_and_pin_no_dialect(bed: &dyn Bed) {
    let fixture = Fixture::open(bed).await;
    let marks = fixture.write(stamped(to_run("r", &["[DONE]"]), "p", 0, 0)).await;
    assert_eq!((marks.accepted, marks.duplicates), (0, 0));
    let fixture = fixture.reopen().await;
    let loom = r#"{"type":"message_chunk","content":"a","id":"think"}"#;
    let appended = fixture.write(stamped(to_run("r", &["[DONE]", loom, "[DONE]"]), "p", 0, 0)).await;
    assert_eq!((appended.accepted, appended.duplicates, appended.last_seq), (1, 0, 1));
    assert_eq!(fixture.types("r").await, ["run.started", "text.started", "text.delta"]);
    // A producer that does not count the mark loses nothing.
    let last = fixture.write(stamped(to_run("r", &[r#"{"reply":"a"}"#, "[DONE]"]), "p", 0, 1)).await;
    assert_eq!((last.accepted, last.duplicates), (1, 0));
    let again = fixture.write(stamped(to_run("r", &["[DONE]"]), "p", 0, 2)).await;
    assert_eq!((again.accepted, again.duplicates), (0, 0));
    assert_eq!(fixture.status("r").await, "completed");
}

/// Every producer of a run has its own epoch and index, and the one without a name has none.
pub async fn producers_do_not_share_their_places(bed: &dyn Bed) {
    let fixture = Fixture::open(bed).await;
    fixture.write(to_run("r", &[STARTED])).await;
    fixture.write(stamped(to_run("r", &[delta("a")]), "p", 7, 0)).await;
    fixture.write(stamped(to_run("r", &[delta("b")]), "q", 0, 0)).await;
    fixture.write(stamped(to_run("s", &[STARTED]), "p", 0, 0)).await;
    fixture.write(to_run("r", &[delta("c")])).await;
    assert_eq!(fixture.records("r").await.len(), 4);
}

/// Exactly once holds for a thread that is written as a whole, too.
pub async fn a_thread_has_producers_of_its_own(bed: &dyn Bed) {
    let fixture = Fixture::open(bed).await;
    let body = || stamped(to_thread("t", &[STARTED, &delta("a"), COMPLETED, STARTED, COMPLETED]), "p", 1, 0);
    assert_eq!(fixture.write(body()).await.last_seq, 5);
    let fixture = fixture.reopen().await;
    let again = fixture.write(body()).await;
    assert_eq!((again.accepted, again.duplicates, again.last_seq), (0, 5, 5));
    assert_eq!(
        fixture.refused(stamped(to_thread("t", &[STARTED]), "p", 0, 5)).await.code(),
        ErrorCode::ProducerFenced
    );
    assert_eq!(
        fixture.refused(stamped(to_thread("t", &[STARTED]), "p", 1, 6)).await.code(),
        ErrorCode::ProducerGap
    );
    let appended =
        fixture.log.append(stamped(to_thread("t", &[STARTED, BAD]), "p", 1, 5)).await.expect("an answer");
    assert_eq!((appended.accepted, appended.fault.map(|fault| fault.index)), (1, Some(1)));
    fixture.write(stamped(to_thread("t", &[COMPLETED]), "p", 1, 6)).await;
    assert_eq!(fixture.log.spans(&super::fixture::thread("t")).await.expect("the thread").len(), 3);
}

/// A run remembers so many producers and no more.
pub async fn producers_of_a_run_are_bounded(bed: &dyn Bed) {
    let fixture = Fixture::open(bed).await;
    for producer in 0..limits::PRODUCERS {
        fixture.write(stamped(to_run("r", &[delta("a")]), &format!("p{producer}"), 0, 0)).await;
    }
    let refused = fixture.refused(stamped(to_run("r", &[delta("a")]), "one-more", 0, 0)).await;
    assert_eq!(refused, LogError::TooManyProducers(limits::PRODUCERS));
    fixture.write(stamped(to_run("r", &[delta("a")]), "p0", 0, 1)).await;
}
