//! Rows of a SQLite store that cannot be read: they are reported and passed over, and end nothing.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use runwire_log::sqlite::{SqliteLog, SqliteOptions};
use runwire_log::{
    Append, InteractionQuery, LogError, LogEvents, LogLookups, LogNode, LogOutbox, LogUpkeep, OutboxKind,
    RetentionLimits, RunKey, RunQuery, Subscriber, ThreadKey,
};
use runwire_model::Timestamp;
use runwire_model::dialect::Dialect;
use rusqlite::Connection;

use crate::bed::SqliteBed;
use crate::sqlite_file::{COMPLETED, STARTED, append, count, options};

#[tokio::test(flavor = "multi_thread")]
async fn an_unreadable_run_is_reported_and_passed_over() {
    let bed = SqliteBed::new();
    let (options, failures) = options();
    let options = SqliteOptions { lease: Duration::ZERO, ..options };
    let log = SqliteLog::open(&bed.path(), options.clone()).unwrap();
    for run in ["bad", "good"] {
        log.append(append(run, &[STARTED])).await.unwrap();
    }
    log.close().await;
    let connection = Connection::open(bed.path()).unwrap();
    connection.execute("UPDATE run SET head = 'no JSON' WHERE name = 'bad'", []).unwrap();
    drop(connection);
    // It does not keep the store from being opened, nor the leases of other runs from expiring.
    let log = SqliteLog::open(&bed.path(), options).unwrap();
    let query = RunQuery { tenant: "tenant".into(), limit: 10, ..RunQuery::default() };
    let listed: Vec<_> = log.runs(query).await.unwrap().into_iter().map(|run| run.run_id).collect();
    assert_eq!(listed, ["good"]);
    assert_eq!(log.stats().await.unwrap().unreadable, 1);
    assert_eq!(log.sweep().await.unwrap(), 1);
    // Only what needs the run itself is refused.
    let refused = log.run(&RunKey::new("tenant", "bad")).await;
    assert!(matches!(refused, Err(LogError::Damaged(_))), "{refused:?}");
    let refused = log.append(append("bad", &[COMPLETED])).await;
    assert!(matches!(refused, Err(LogError::Damaged(_))), "{refused:?}");
    assert_eq!(log.append(append("other", &[STARTED])).await.unwrap().accepted, 1);
    assert_eq!(failures.load(Ordering::SeqCst), 0);
    log.close().await;
}

/// Spoils what a store has, while it is closed.
fn spoil(bed: &SqliteBed, sql: &str) {
    let connection = Connection::open(bed.path()).unwrap();
    assert_ne!(connection.execute(sql, []).unwrap(), 0, "{sql}");
}

/// Opens a store whose clock is a day ahead.
fn open_tomorrow(bed: &SqliteBed, options: SqliteOptions) -> SqliteLog {
    let tomorrow = || {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        Timestamp(since.as_millis() as u64 + 24 * 60 * 60 * 1000)
    };
    SqliteLog::open(&bed.path(), SqliteOptions { clock: Arc::new(tomorrow), ..options }).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn retention_removes_a_run_that_cannot_be_read() {
    let bed = SqliteBed::new();
    let (options, failures) = options();
    let log = SqliteLog::open(&bed.path(), options.clone()).unwrap();
    for run in ["bad", "good"] {
        log.append(append(run, &[STARTED, COMPLETED])).await.unwrap();
    }
    log.close().await;
    spoil(&bed, "UPDATE run SET head = 'no JSON' WHERE name = 'bad'");
    let log = open_tomorrow(&bed, options);
    let hour = Some(Duration::from_secs(3600));
    let old = RetentionLimits { age: hour, ..RetentionLimits::default() };
    assert_eq!(log.trim(old).await.unwrap(), 2);
    assert_eq!(log.trim(old).await.unwrap(), 0);
    for thread in ["bad", "good"] {
        assert_eq!(log.thread(&ThreadKey::new("tenant", thread)).await.unwrap().oldest, 3, "{thread}");
    }
    // The writer goes on.
    log.append(append("other", &[STARTED])).await.unwrap();
    assert_eq!(failures.load(Ordering::SeqCst), 0);
    log.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn retention_passes_over_a_thread_that_cannot_be_read() {
    for damage in [
        "UPDATE chunk SET body = substr(body, 1, 20) WHERE thread = (SELECT id FROM thread WHERE name = 'bad')",
        "INSERT INTO producer SELECT 'thread', id, 'p', 0, 1, 'no JSON' FROM thread WHERE name = 'bad'",
    ] {
        let bed = SqliteBed::new();
        let (options, failures) = options();
        let log = SqliteLog::open(&bed.path(), options.clone()).unwrap();
        for run in ["bad", "good"] {
            log.append(append(run, &[STARTED, COMPLETED])).await.unwrap();
        }
        log.close().await;
        spoil(&bed, damage);
        let log = open_tomorrow(&bed, options);
        let hour = Some(Duration::from_secs(3600));
        let old = RetentionLimits { age: hour, ..RetentionLimits::default() };
        assert_eq!(log.trim(old).await.unwrap(), 1, "{damage}");
        assert_eq!(log.stats().await.unwrap().unreadable, 1);
        assert_eq!(log.thread(&ThreadKey::new("tenant", "good")).await.unwrap().oldest, 3);
        log.append(append("other", &[STARTED])).await.unwrap();
        assert_eq!(failures.load(Ordering::SeqCst), 0);
        log.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sweep_passes_over_what_cannot_be_read_also_after_others_were_closed() {
    for damage in [
        "UPDATE run SET head = 'no JSON' WHERE name IN ('r1', 'r4')",
        "INSERT INTO producer SELECT 'thread', id, 'p', 0, 1, 'no JSON' FROM thread WHERE name IN ('r1', 'r4')",
        "UPDATE chunk SET body = substr(body, 1, 20) \
         WHERE thread IN (SELECT id FROM thread WHERE name IN ('r1', 'r4'))",
        // Only what a look-up reads.
        "UPDATE chunk SET body = substr(body, 1, 20) \
         WHERE first = 1 AND thread IN (SELECT id FROM thread WHERE name IN ('r1', 'r4'))",
    ] {
        let bed = SqliteBed::new();
        let (options, failures) = options();
        let options = SqliteOptions { lease: Duration::ZERO, ..options };
        // Whoever ends a run makes a whole call of it. Closing the store makes a row of what is pending.
        for arguments in ["{", " "] {
            let log = SqliteLog::open(&bed.path(), options.clone()).unwrap();
            for run in 0..6 {
                let piece = format!(
                    r#"{{"type":"tool_call_chunk","call_id":"c","name":"f","arguments_delta":"{arguments}"}}"#
                );
                let piece = Append { dialect: Some(Dialect::Loom), ..append(&format!("r{run}"), &[&piece]) };
                log.append(piece).await.unwrap();
            }
            log.close().await;
        }
        spoil(&bed, damage);
        // Whatever comes first, each start closes the others.
        let log = SqliteLog::open(&bed.path(), options.clone()).unwrap();
        assert_eq!(log.sweep().await.unwrap(), 4, "{damage}");
        assert_eq!(log.sweep().await.unwrap(), 0, "{damage}");
        assert_eq!(log.stats().await.unwrap().unreadable, 2);
        log.append(append("other", &[STARTED])).await.unwrap();
        assert_eq!(failures.load(Ordering::SeqCst), 0);
        log.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_with_an_impossible_deadline_is_opened() {
    let bed = SqliteBed::new();
    let (options, failures) = options();
    let options = SqliteOptions { lease: Duration::ZERO, ..options };
    let log = SqliteLog::open(&bed.path(), options.clone()).unwrap();
    for run in ["bad", "good"] {
        log.append(append(run, &[STARTED])).await.unwrap();
    }
    log.close().await;
    spoil(&bed, "UPDATE run SET deadline = -1 WHERE name = 'bad'");
    let log = SqliteLog::open(&bed.path(), options).unwrap();
    assert_eq!(log.stats().await.unwrap().unreadable, 1);
    assert_eq!(log.sweep().await.unwrap(), 1);
    assert_eq!(failures.load(Ordering::SeqCst), 0);
    log.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_report_and_pass_over_rows_that_cannot_be_read() {
    let bed = SqliteBed::new();
    let log = SqliteLog::open(&bed.path(), SqliteOptions::default()).unwrap();
    let hook = || vec![Subscriber { name: "hook".into(), kinds: OutboxKind::ALL.to_vec() }];
    log.subscribe(hook()).await.unwrap();
    let asks = r#"{"type":"interaction.requested","interaction_id":"i","kind":"form","title":"Who?","schema":{"type":"object"}}"#;
    for run in ["r0", "r1", "r2", "r3"] {
        log.append(append(run, &[STARTED, asks])).await.unwrap();
    }
    log.close().await;
    spoil(&bed, "UPDATE outbox SET event = 'no JSON' WHERE run IN (SELECT id FROM run WHERE name <> 'r2')");
    spoil(
        &bed,
        "UPDATE interaction SET name = CAST(x'ff' AS TEXT) WHERE run = (SELECT id FROM run WHERE name = 'r3')",
    );
    spoil(
        &bed,
        "UPDATE chunk SET body = substr(body, 1, 20) WHERE thread = (SELECT id FROM thread WHERE name = 'r1')",
    );
    spoil(&bed, "UPDATE thread SET created_at = -1 WHERE name = 'r3'");
    spoil(&bed, "UPDATE run SET head = 'no JSON' WHERE name = 'r2'");
    let log = SqliteLog::open(&bed.path(), SqliteOptions::default()).unwrap();
    log.subscribe(hook()).await.unwrap();
    // A page is full also if it begins with such rows.
    let messages = log.outbox("hook", 1).await.unwrap();
    assert_eq!(messages.iter().map(|message| &*message.run.id).collect::<Vec<_>>(), ["r2"]);
    let threads = log.threads("tenant", None, 2).await.unwrap();
    let names: Vec<_> = threads.iter().map(|thread| thread.thread_id.as_str()).collect();
    assert_eq!(names, ["r2", "r1"]);
    let query = InteractionQuery { tenant: "tenant".into(), limit: 2, ..InteractionQuery::default() };
    let page = log.interactions(query).await.unwrap();
    let runs: Vec<_> = page.interactions.iter().map(|asked| asked.run_id.as_str()).collect();
    assert_eq!(runs, ["r2", "r0"]);
    assert_eq!(log.stats().await.unwrap().unreadable, 5);
    log.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interaction_that_cannot_be_read_does_not_keep_its_run_from_ending() {
    let bed = SqliteBed::new();
    let (options, failures) = options();
    let log = SqliteLog::open(&bed.path(), options.clone()).unwrap();
    let asks = r#"{"type":"interaction.requested","interaction_id":"i","kind":"form","title":"Who?","schema":{"type":"object"}}"#;
    log.append(append("r", &[STARTED, asks])).await.unwrap();
    log.close().await;
    spoil(&bed, "UPDATE interaction SET name = CAST(x'ff' AS TEXT)");
    let log = SqliteLog::open(&bed.path(), options).unwrap();
    log.append(append("r", &[COMPLETED])).await.unwrap();
    assert_eq!(failures.load(Ordering::SeqCst), 0);
    log.close().await;
    assert_eq!(count(&Connection::open(bed.path()).unwrap(), "SELECT count(*) FROM interaction"), 0);
}
