//! The outbox: what subscribers receive, until it is delivered.

use std::time::Duration;

use super::Bed;
use super::answers::asks;
use super::fixture::{COMPLETED, Fixture, STARTED, delta, run, thread, to_run, to_run_of};
use crate::key::ThreadKey;
use crate::outbox::{DeliveryOutcome, OutboxKind, OutboxMessage, Subscriber};
use crate::transfer::ExportRequest;
use crate::{Cancel, RetentionLimits};

async fn subscribe(fixture: &Fixture<'_>, subscribers: &[(&str, &[OutboxKind])]) {
    let subscriber = |(name, kinds): &(&str, &[OutboxKind])| Subscriber {
        name: (*name).to_owned(),
        kinds: kinds.to_vec(),
    };
    fixture.log.subscribe(subscribers.iter().map(subscriber).collect()).await.expect("subscribers");
}

async fn waiting(fixture: &Fixture<'_>, subscriber: &str) -> Vec<OutboxMessage> {
    fixture.log.outbox(subscriber, 100).await.expect("the notices")
}

fn names(notices: &[OutboxMessage]) -> Vec<String> {
    notices.iter().map(|notice| format!("{} {}", notice.run.id, notice.kind.name())).collect()
}

/// Each subscriber receives the kinds of events that it subscribed to, whatever caused them.
pub async fn subscribers_receive_their_kinds_of_events_and_nothing_else(bed: &dyn Bed) {
    let fixture = Fixture::open(bed).await;
    fixture.write(to_run("before", &[STARTED, COMPLETED])).await;
    let questions = [OutboxKind::InteractionRequested];
    subscribe(&fixture, &[("all", &OutboxKind::ALL), ("questions", &questions)]).await;
    fixture.write(to_run("a", &[STARTED, &delta("x"), COMPLETED])).await;
    fixture.write(to_run("b", &[STARTED, &asks("q")])).await;
    fixture.log.cancel(&run("b"), Cancel::default()).await.expect("the run");
    fixture.write(to_run("c", &[STARTED, r#"{"type":"run.failed","error":{"message":"m"}}"#])).await;
    let told = waiting(&fixture, "all").await;
    let expected = ["a run.completed", "b interaction.requested", "b run.cancelled", "c run.failed"];
    assert_eq!(names(&told), expected);
    let asked = &waiting(&fixture, "questions").await[..];
    assert_eq!(names(asked), ["b interaction.requested"]);
    assert_eq!((asked[0].seq, asked[0].thread_id.as_str(), asked[0].attempts), (2, "b", 0));
    let question = asked[0].event.to_value().expect("it is JSON that a tree can hold");
    assert_eq!(question["interaction_id"], "q");
    assert!(waiting(&fixture, "nobody").await.is_empty());
}

/// A message survives reopening, until it is marked as delivered.
pub async fn an_outbox_message_stays_until_it_is_delivered(bed: &dyn Bed) {
    let fixture = Fixture::open(bed).await;
    subscribe(&fixture, &[("all", &OutboxKind::ALL)]).await;
    let mut outbox_changed = fixture.log.outbox_changed();
    fixture.write(to_run("a", &[STARTED, COMPLETED])).await;
    outbox_changed.changed().await.expect("the log");
    let before = waiting(&fixture, "all").await;
    let fixture = fixture.reopen().await;
    let after = waiting(&fixture, "all").await;
    assert_eq!((names(&after), &after[0].id), (names(&before), &before[0].id));
    // Retention removes the run, and not that it is to be told of.
    let retention = RetentionLimits { max_bytes: Some(0), ..RetentionLimits::default() };
    fixture.log.trim(retention).await.expect("a trim");
    assert_eq!(waiting(&fixture, "all").await.len(), 1);
    fixture.log.mark_delivered(after[0].number, DeliveryOutcome::Done).await.expect("the log");
    fixture.log.mark_delivered(after[0].number, DeliveryOutcome::Done).await.expect("it is no matter");
    assert!(waiting(&fixture, "all").await.is_empty());
    let fixture = fixture.reopen().await;
    assert!(waiting(&fixture, "all").await.is_empty());
}

/// A failed message comes after those that are due, and has the time to wait.
pub async fn a_failed_delivery_is_retried_later(bed: &dyn Bed) {
    let fixture = Fixture::open(bed).await;
    subscribe(&fixture, &[("all", &OutboxKind::ALL)]).await;
    for id in ["a", "b"] {
        fixture.write(to_run(id, &[STARTED, COMPLETED])).await;
    }
    let first = waiting(&fixture, "all").await[0].number;
    fixture
        .log
        .mark_delivered(first, DeliveryOutcome::Retry(Duration::from_secs(3600)))
        .await
        .expect("the log");
    let fixture = fixture.reopen().await;
    let left = waiting(&fixture, "all").await;
    assert_eq!(names(&left), ["b run.completed", "a run.completed"]);
    assert_eq!((left[0].attempts, left[0].wait), (0, Duration::ZERO));
    assert_eq!(left[1].attempts, 1);
    assert!(left[1].wait > Duration::from_secs(3000));
}

/// Of a deleted thread only the end that the deletion caused is delivered.
pub async fn the_end_of_a_deleted_thread_is_delivered(bed: &dyn Bed) {
    let fixture = Fixture::open(bed).await;
    subscribe(&fixture, &[("all", &OutboxKind::ALL)]).await;
    fixture.write(to_run_of("t", "r", &[STARTED, &asks("q")])).await;
    assert_eq!(names(&waiting(&fixture, "all").await), ["r interaction.requested"]);
    fixture.log.delete_thread(&thread("t"), true).await.expect("the thread");
    let fixture = fixture.reopen().await;
    assert_eq!(names(&waiting(&fixture, "all").await), ["r run.cancelled"]);
}

/// Imported events were delivered by the other log.
pub async fn imported_events_are_not_delivered(bed: &dyn Bed) {
    let fixture = Fixture::open(bed).await;
    fixture.write(to_run_of("t", "r", &[STARTED, COMPLETED])).await;
    fixture.write(to_run_of("t", "s", &[STARTED, &asks("q")])).await;
    subscribe(&fixture, &[("all", &OutboxKind::ALL)]).await;
    let exported = fixture.log.export(&thread("t"), &ExportRequest::default()).await.expect("the thread");
    let items = exported.items.into_iter().enumerate().map(|(at, item)| (at as u64 + 1, item)).collect();
    let there = ThreadKey::new("elsewhere", "t");
    assert_eq!(fixture.log.import(&there, items).await.expect("the thread").fault, None);
    assert!(waiting(&fixture, "all").await.is_empty());
}
