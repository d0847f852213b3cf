//! Properties of a store in one SQLite file: locking, migration, crashes and cleanup.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use runwire_log::conformance::{Bed, Timing};
use runwire_log::sqlite::{SqliteLog, SqliteOpenError, SqliteOptions};
use runwire_log::{
    Append, FrameBatch, Log, LogError, OutboxKind, RetentionLimits, RunKey, Stamp, Subscriber, Target,
    ThreadKey, limits,
};
use rusqlite::Connection;

use crate::bed::SqliteBed;

fn append(run: &str, frames: &[&str]) -> Append {
    let mut batch = FrameBatch::default();
    for (at, frame) in frames.iter().enumerate() {
        batch.push(at as u64 + 1, None, frame.as_bytes());
    }
    let target = Target::Run(RunKey::new("tenant", run));
    Append {
        target,
        thread: None,
        dialect: None,
        stamp: None,
        frames: batch,
        end: false,
        check: Default::default(),
        whole: Default::default(),
        parallel: false,
    }
}

const STARTED: &str = r#"{"type":"run.started"}"#;
const COMPLETED: &str = r#"{"type":"run.completed"}"#;

fn options() -> (SqliteOptions, Arc<AtomicUsize>) {
    let failures = Arc::new(AtomicUsize::new(0));
    let counted = failures.clone();
    let fatal = Arc::new(move |_: &str| {
        counted.fetch_add(1, Ordering::SeqCst);
    });
    (SqliteOptions { fatal, ..SqliteOptions::default() }, failures)
}

fn count(connection: &Connection, sql: &str) -> i64 {
    connection.query_row(sql, [], |row| row.get(0)).unwrap()
}

#[tokio::test]
async fn a_second_server_is_kept_away_until_the_first_has_closed() {
    let bed = SqliteBed::new();
    let first = SqliteLog::open(&bed.path(), SqliteOptions::default()).unwrap();
    let second = SqliteLog::open(&bed.path(), SqliteOptions::default());
    assert!(matches!(second, Err(SqliteOpenError::InUse(path)) if path == bed.path()));
    first.append(append("r", &[STARTED])).await.unwrap();
    first.close().await;
    // It is closed, though not dropped: the next one may open it, and this one does nothing more.
    let second = SqliteLog::open(&bed.path(), SqliteOptions::default()).unwrap();
    assert!(matches!(first.append(append("r", &[STARTED])).await, Err(LogError::Unavailable(_))));
    assert!(matches!(first.run(&RunKey::new("tenant", "r")).await, Err(LogError::Unavailable(_))));
    assert!(matches!(first.ready().await, Err(LogError::Unavailable(_))));
    first.close().await;
    assert_eq!(second.run(&RunKey::new("tenant", "r")).await.unwrap().last_seq, 1);
    second.close().await;
}

#[tokio::test]
async fn messages_of_removed_subscribers_are_removed() {
    let bed = SqliteBed::new();
    let log = SqliteLog::open(&bed.path(), SqliteOptions::default()).unwrap();
    let subscriber = |name: &str| Subscriber { name: name.into(), kinds: OutboxKind::ALL.to_vec() };
    log.subscribe(vec![subscriber("old"), subscriber("new")]).await.unwrap();
    log.append(append("r", &[STARTED, COMPLETED])).await.unwrap();
    // No other node can know it.
    log.subscribe(vec![subscriber("new")]).await.unwrap();
    assert_eq!(log.outbox("new", 10).await.unwrap().len(), 1);
    assert!(log.outbox("old", 10).await.unwrap().is_empty());
    log.close().await;
}

#[tokio::test]
async fn a_closed_store_is_one_file() {
    let bed = SqliteBed::new();
    let log = SqliteLog::open(&bed.path(), SqliteOptions::default()).unwrap();
    log.append(append("r", &[STARTED])).await.unwrap();
    log.run(&RunKey::new("tenant", "r")).await.unwrap();
    log.close().await;
    let files = std::fs::read_dir(bed.path().parent().unwrap()).unwrap();
    let mut names: Vec<_> = files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    assert_eq!(names, ["log.db", "log.db.lock"]);
}

#[tokio::test]
async fn a_store_that_was_dropped_without_closing_has_lost_nothing() {
    let bed = SqliteBed::new();
    let log = SqliteLog::open(&bed.path(), SqliteOptions::default()).unwrap();
    log.append(append("r", &[STARTED])).await.unwrap();
    drop(log);
    let log = loop {
        match SqliteLog::open(&bed.path(), SqliteOptions::default()) {
            Ok(log) => break log,
            // Its writer holds the lock until it has ended.
            Err(SqliteOpenError::InUse(_)) => tokio::time::sleep(Duration::from_millis(2)).await,
            Err(error) => panic!("{error}"),
        }
    };
    assert_eq!(log.run(&RunKey::new("tenant", "r")).await.unwrap().last_seq, 1);
    log.close().await;
}

#[tokio::test]
async fn a_file_of_a_newer_version_is_refused_untouched() {
    let bed = SqliteBed::new();
    SqliteLog::open(&bed.path(), SqliteOptions::default()).unwrap().close().await;
    let connection = Connection::open(bed.path()).unwrap();
    connection.pragma_update(None, "user_version", 99).unwrap();
    drop(connection);
    let refused = SqliteLog::open(&bed.path(), SqliteOptions::default());
    assert!(matches!(refused, Err(SqliteOpenError::Newer { found: 99, known: 4, .. })));
    // What could not be opened is not locked either.
    let connection = Connection::open(bed.path()).unwrap();
    connection.pragma_update(None, "user_version", 4).unwrap();
    drop(connection);
    SqliteLog::open(&bed.path(), SqliteOptions::default()).unwrap().close().await;
}

#[tokio::test]
async fn an_empty_file_is_migrated_from_version_0() {
    let bed = SqliteBed::new();
    std::fs::write(bed.path(), b"").unwrap();
    let log = SqliteLog::open(&bed.path(), SqliteOptions::default()).unwrap();
    log.append(append("r", &[STARTED])).await.unwrap();
    log.close().await;
    let connection = Connection::open(bed.path()).unwrap();
    assert_eq!(count(&connection, "PRAGMA user_version"), 4);
    assert_eq!(
        connection.query_row("PRAGMA journal_mode", [], |row| row.get::<_, String>(0)).unwrap(),
        "wal"
    );
}

#[tokio::test]
async fn a_file_that_is_no_store_is_refused() {
    let bed = SqliteBed::new();
    std::fs::write(bed.path(), "this is no database, and it is long enough to see that ".repeat(40)).unwrap();
    let refused = SqliteLog::open(&bed.path(), SqliteOptions::default()).unwrap_err();
    assert!(refused.to_string().contains("not a database"), "{refused}");
    std::fs::remove_file(bed.path()).unwrap();
    let another = Connection::open(bed.path()).unwrap();
    another.execute_batch("CREATE TABLE accounts (id INTEGER)").unwrap();
    drop(another);
    let refused = SqliteLog::open(&bed.path(), SqliteOptions::default()).unwrap_err();
    assert!(refused.to_string().contains("another program"), "{refused}");
    let missing = bed.path().join("no/such/folder.db");
    assert!(matches!(
        SqliteLog::open(&missing, SqliteOptions::default()),
        Err(SqliteOpenError::Unusable { .. })
    ));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_record_is_an_error_and_not_a_wrong_answer() {
    let bed = SqliteBed::new();
    let log = SqliteLog::open(&bed.path(), SqliteOptions::default()).unwrap();
    log.append(append("r", &[STARTED])).await.unwrap();
    log.append(append("whole", &[STARTED])).await.unwrap();
    // Reading brings the rows up to date.
    for thread in ["r", "whole"] {
        assert_eq!(log.read(&ThreadKey::new("tenant", thread), 0).await.unwrap().records.len(), 1);
    }
    let connection = Connection::open(bed.path()).unwrap();
    connection.execute("UPDATE chunk SET body = substr(body, 1, 20) WHERE id = 1", []).unwrap();
    drop(connection);
    let read = log.read(&ThreadKey::new("tenant", "r"), 0).await;
    assert!(matches!(read, Err(LogError::Unavailable(reason)) if reason.contains("damaged")));
    assert_eq!(log.read(&ThreadKey::new("tenant", "whole"), 0).await.unwrap().records.len(), 1);
    log.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_producer_of_a_tenant_takes_the_place_of_one_that_was_silent_for_a_week() {
    let bed = SqliteBed::new();
    let as_producer = |name: &str| {
        let stamp = Some(Stamp { producer: name.into(), epoch: 0, index: 0 });
        let frame = format!(r#"{{"type":"run.started","thread_id":"{name}","run_id":"{name}"}}"#);
        Append { target: Target::Tenant("tenant".into()), stamp, ..append("", &[&frame]) }
    };
    let log = SqliteLog::open(&bed.path(), SqliteOptions::default()).unwrap();
    log.append(as_producer("first")).await.unwrap();
    log.close().await;
    // As many as there may be; one has not written for long.
    let connection = Connection::open(bed.path()).unwrap();
    let now = u64::MAX / 4;
    let sql = "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < ?1) \
               INSERT INTO producer (scope, owner, name, epoch, next, decoder) SELECT 'thread', \
               (SELECT id FROM thread WHERE name = ''), 'p' || n, 0, 1, \
               json_object('decoder', NULL, 'written_at', CASE n WHEN 7 THEN 1 ELSE ?2 END) FROM n";
    connection.execute(sql, rusqlite::params![limits::TENANT_PRODUCERS - 1, now as i64]).unwrap();
    let names = "SELECT group_concat(name) FROM producer WHERE name IN ('p6', 'p7', 'new') ORDER BY name";
    let log = SqliteLog::open(&bed.path(), SqliteOptions::default()).unwrap();
    // A frame that is refused takes nobody's place.
    let bad = Append { frames: append("", &[r#"{"type":"run.started"}"#]).frames, ..as_producer("new") };
    assert!(log.append(bad).await.unwrap().fault.is_some());
    assert_eq!(log.append(as_producer("new")).await.unwrap().accepted, 1);
    // The others have written since.
    let refused = log.append(as_producer("newer")).await;
    assert_eq!(refused, Err(LogError::TooManyProducers(limits::TENANT_PRODUCERS)));
    assert_eq!(log.append(as_producer("new")).await.unwrap().duplicates, 1);
    log.close().await;
    let kept: String = connection.query_row(names, [], |row| row.get(0)).unwrap();
    assert!(kept.contains("p6") && kept.contains("new") && !kept.contains("p7"), "{kept}");
}

/// Lets the next commit fail: at a row, or at the commit itself.
fn sabotage(bed: &SqliteBed, sql: &str) {
    let connection = Connection::open(bed.path()).unwrap();
    connection.execute_batch(sql).unwrap();
}

const FAILS_AT_A_ROW: &str = "CREATE TRIGGER full BEFORE INSERT ON pending_commits BEGIN SELECT RAISE(ABORT, 'the disk is full'); END;";
const FAILS_AT_THE_COMMIT: &str = "
    CREATE TABLE debt (thread INTEGER REFERENCES thread (id) DEFERRABLE INITIALLY DEFERRED);
    CREATE TRIGGER owe AFTER INSERT ON pending_commits BEGIN INSERT INTO debt VALUES (-1); END;";

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_that_fails_is_fatal_once_and_acknowledges_nothing() {
    for sql in [FAILS_AT_A_ROW, FAILS_AT_THE_COMMIT] {
        let bed = SqliteBed::new();
        let (options, failures) = options();
        let log = Arc::new(SqliteLog::open(&bed.path(), options).unwrap());
        log.append(append("r", &[STARTED])).await.unwrap();
        let tail = log.tail(&ThreadKey::new("tenant", "r"));
        sabotage(&bed, sql);
        let mut writers = Vec::new();
        for writer in 0..20 {
            let log = log.clone();
            writers.push(tokio::spawn(async move {
                let id = if writer == 0 { "r".to_owned() } else { format!("w{writer}") };
                log.append(append(&id, &[STARTED])).await
            }));
        }
        for writer in writers {
            assert!(matches!(writer.await.unwrap(), Err(LogError::Unavailable(_))));
        }
        assert_eq!(failures.load(Ordering::SeqCst), 1);
        assert!(matches!(log.ready().await, Err(LogError::Unavailable(_))));
        assert!(matches!(log.append(append("r", &[COMPLETED])).await, Err(LogError::Unavailable(_))));
        assert_eq!(failures.load(Ordering::SeqCst), 1);
        assert_eq!(tail.head().seq, 0, "what failed was shown");
        log.close().await;
        drop(log);
        sabotage(&bed, "DROP TRIGGER IF EXISTS full; DROP TRIGGER IF EXISTS owe; DROP TABLE IF EXISTS debt;");
        let log = bed.open(Timing::default()).await;
        assert_eq!(log.append(append("r", &[COMPLETED])).await.unwrap().last_seq, 2);
        assert!(matches!(log.run(&RunKey::new("tenant", "w1")).await, Err(LogError::RunUnknown(_))));
        log.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn another_program_that_holds_the_file_is_waited_for() {
    let bed = SqliteBed::new();
    let (options, failures) = options();
    let log = Arc::new(SqliteLog::open(&bed.path(), options).unwrap());
    let other = Connection::open(bed.path()).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let waiting = tokio::spawn({
        let log = log.clone();
        async move { log.append(append("r", &[STARTED])).await }
    });
    // That something does not happen can only be watched for a while; too short a while fails nobody.
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(!waiting.is_finished());
    other.execute_batch("COMMIT").unwrap();
    assert_eq!(waiting.await.unwrap().unwrap().accepted, 1);
    assert_eq!(failures.load(Ordering::SeqCst), 0);
    log.close().await;
}

/// Waits until a query gives nothing any more.
async fn until_none(connection: &Connection, sql: &str) {
    for _ in 0..2000 {
        if count(connection, sql) == 0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("still {}: {sql}", count(connection, sql));
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_of_deleted_and_trimmed_threads_are_removed_also_across_a_restart() {
    let bed = SqliteBed::new();
    let mut log = bed.open(Timing::default()).await;
    for _ in 0..600 {
        let (one, two) =
            tokio::join!(log.append(append("gone", &[STARTED])), log.append(append("kept", &[STARTED])));
        assert!(one.is_ok() && two.is_ok());
    }
    log.append(append("trimmed", &[STARTED, COMPLETED])).await.unwrap();
    log.delete_thread(&ThreadKey::new("tenant", "gone"), true).await.unwrap();
    log = bed.reopen(log, Timing::default()).await;
    let everything = RetentionLimits { max_bytes: Some(0), ..RetentionLimits::default() };
    assert_eq!(log.trim(everything).await.unwrap(), 1);
    let connection = Connection::open(bed.path()).unwrap();
    let gone =
        "SELECT count(*) FROM chunk JOIN thread ON thread.id = chunk.thread WHERE thread.name = 'gone'";
    until_none(&connection, gone).await;
    until_none(&connection, "SELECT count(*) FROM thread WHERE deleted_at IS NOT NULL AND purged = 0").await;
    until_none(
        &connection,
        "SELECT count(*) FROM chunk JOIN thread ON thread.id = chunk.thread WHERE name = 'trimmed'",
    )
    .await;
    let runs = "SELECT count(*) FROM run WHERE name = 'gone' AND (head IS NOT NULL OR status <> 'cancelled')";
    assert_eq!(count(&connection, runs), 0);
    let producers = "SELECT count(*) FROM producer WHERE owner IN (SELECT id FROM run WHERE name = 'gone')";
    assert_eq!(count(&connection, producers), 0);
    assert_eq!(log.read(&ThreadKey::new("tenant", "kept"), 0).await.unwrap().head, 600);
    drop(connection);
    log.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn more_runs_than_the_cache_holds_lose_nothing() {
    let bed = SqliteBed::new();
    let log = bed.open(Timing::default()).await;
    let runs = limits::CACHED_HEADS + 500;
    for round in 0..2 {
        let mut writers = Vec::new();
        for writer in 0..16 {
            let log = log.clone();
            writers.push(tokio::spawn(async move {
                for run in (writer..runs).step_by(16) {
                    let frame = if round == 0 { STARTED } else { COMPLETED };
                    let appended = log.append(append(&format!("r{run}"), &[frame])).await.unwrap();
                    assert_eq!(appended.last_seq, round + 1);
                }
            }));
        }
        for writer in writers {
            writer.await.unwrap();
        }
    }
    log.close().await;
}
