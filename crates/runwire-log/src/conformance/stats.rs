//! Statistics: writes, open runs and the outbox.

use super::Bed;
use super::answers::asks;
use super::fixture::{COMPLETED, Fixture, STARTED, to_run};
use crate::outbox::{OutboxKind, Subscriber};
use crate::stats::SubscriberBacklog;

/// Writes are counted from zero; open runs of all producers are counted.
pub async fn statistics_count_writes_and_open_runs(bed: &dyn Bed) {
    let fixture = Fixture::open(bed).await;
    let all = Subscriber { name: "all".to_owned(), kinds: OutboxKind::ALL.to_vec() };
    fixture.log.subscribe(vec![all]).await.expect("a subscriber");
    let asks = asks("q");
    fixture.create_run("pending", None).await;
    fixture.write(to_run("running", &[STARTED])).await;
    fixture.write(to_run("suspended", &[STARTED, &asks])).await;
    fixture.write(to_run("closed", &[STARTED, COMPLETED])).await;
    let stats = fixture.log.stats().await.expect("statistics");
    assert_eq!((stats.pending, stats.running, stats.suspended), (1, 1, 1));
    assert_eq!(stats.interactions, 1);
    let written = &stats.written;
    // The question's record says that the run is suspended, too.
    assert_eq!((written.records, written.events), (5, 6));
    assert_eq!(written.bytes as usize, 3 * STARTED.len() + asks.len() + COMPLETED.len());
    assert!(written.commits >= 4, "{written:?}");
    assert_eq!(written.commits, written.commit_buckets.iter().sum::<u64>());
    assert_eq!(stats.backlog, [SubscriberBacklog { subscriber: "all".to_owned(), messages: 2, retried: 0 }]);
    assert!(stats.store_bytes > 0);
    let fixture = fixture.reopen().await;
    let anew = fixture.log.stats().await.expect("statistics");
    assert_eq!((anew.pending, anew.running, anew.suspended, anew.interactions), (1, 1, 1, 1));
    assert_eq!((anew.written.records, &anew.backlog), (0, &stats.backlog));
}

/// An open log is healthy, a closed one is not.
pub async fn health_reports_whether_the_log_can_be_used(bed: &dyn Bed) {
    let fixture = Fixture::open(bed).await;
    let open = fixture.log.health().await;
    assert_eq!((open.store.outage, open.tail), (None, None));
    fixture.log.close().await;
    let closed = fixture.log.health().await.store.outage.expect("a closed store is away");
    assert!(!closed.reason.is_empty());
}
