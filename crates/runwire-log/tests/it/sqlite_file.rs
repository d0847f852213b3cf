//! Properties of a store in one SQLite file: locking, migration, crashes and cleanup.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use runwire_log::conformance::{Bed, Timing};
use runwire_log::sqlite::{SqliteLog, SqliteOpenError, SqliteOptions};
use runwire_log::{
    Append, FrameBatch, LogError, LogEvents, LogLookups, LogNode, LogOutbox, LogUpkeep, OutboxKind,
    ReadFormat, RetentionLimits, RunKey, RunQuery, Stamp, Subscriber, Target, ThreadKey, limits,
};
use runwire_model::dialect::{Dialect, Encoder, Fidelity, Frames};
use runwire_model::record::History;
use runwire_model::window::Window;
use rusqlite::Connection;

use crate::bed::SqliteBed;

pub(crate) fn append(run: &str, frames: &[&str]) -> Append {
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

pub(crate) const STARTED: &str = r#"{"type":"run.started"}"#;
pub(crate) const COMPLETED: &str = r#"{"type":"run.completed"}"#;

pub(crate) fn options() -> (SqliteOptions, Arc<AtomicUsize>) {
    let failures = Arc::new(AtomicUsize::new(0));
    let counted = failures.clone();
    let fatal = Arc::new(move |_: &str| {
        counted.fetch_add(1, Ordering::SeqCst);
    });
    (SqliteOptions { fatal, ..SqliteOptions::default() }, failures)
}

pub(crate) fn count(connection: &Connection, sql: &str) -> i64 {
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
async fn reads_see_what_is_pending_and_write_nothing() {
    let bed = SqliteBed::new();
    let options = SqliteOptions { checkpoint_idle: Duration::MAX, ..SqliteOptions::default() };
    let log = SqliteLog::open(&bed.path(), options).unwrap();
    let (run, thread) = (RunKey::new("tenant", "r"), ThreadKey::new("tenant", "r"));
    let form = ReadFormat::new(Dialect::Loom);
    let mut encoder = Encoder::new(Dialect::Loom, "r", "r", Fidelity::Native);
    let delta = r#"{"type":"text.delta","message_id":"m","content":"x"}"#;
    let stamp = |index| Some(Stamp { producer: "p".into(), epoch: 0, index });
    log.append(Append { stamp: stamp(0), ..append("r", &[STARTED]) }).await.unwrap();
    let tables = Connection::open(bed.path()).unwrap();
    for index in 1..=5 {
        log.append(Append { stamp: stamp(index), ..append("r", &[delta]) }).await.unwrap();
        let commits = log.stats().await.unwrap().written.commits;
        let seq = index + 1;
        let info = log.run(&run).await.unwrap();
        assert_eq!((info.last_seq, info.summary.records), (seq, seq));
        let query = RunQuery { tenant: "tenant".into(), limit: 10, ..RunQuery::default() };
        assert_eq!(log.runs(query).await.unwrap(), [info]);
        assert_eq!(log.thread(&thread).await.unwrap().head, seq);
        assert_eq!(log.threads("tenant", None, 10).await.unwrap()[0].head, seq);
        assert_eq!(log.spans(&thread).await.unwrap()[0].last_seq, seq);
        assert_eq!(log.producer(&run, "p").await.unwrap().unwrap().next, seq);
        for after in 0..=seq {
            let page = log.read(&thread, after).await.unwrap();
            let seqs: Vec<_> = page.records.iter().map(|stored| stored.record.seq).collect();
            assert_eq!((page.head, seqs), (seq, (after + 1..=seq).collect()));
        }
        assert!(matches!(log.read(&thread, seq + 1).await, Err(LogError::CursorBeyondEnd { .. })));
        let messages = log.before(&thread, seq + 1).await.unwrap().messages();
        assert_eq!(messages[0].content, "x".repeat(index as usize));
        // A reader of another dialect leaves checkpoints.
        for stored in log.read(&thread, seq - 1).await.unwrap().records {
            encoder.step(&stored.record, &Window::default(), &mut Frames::default());
            log.keep_checkpoint(&run, form, stored.record.seq, &encoder);
        }
        log.ready().await.unwrap();
        // The probe of the writer was a commit, in which nothing is written.
        assert_eq!(log.stats().await.unwrap().written.commits, commits + 1, "a read has written");
        let kept = format!("SELECT count(*) FROM checkpoint WHERE seq = {seq}");
        assert_eq!(count(&tables, &kept), 0, "a checkpoint has made a commit");
        assert_eq!(count(&tables, "SELECT count(*) FROM chunk"), 0, "a read has flushed");
    }
    // The end flushes the run, and nothing is seen twice.
    log.append(append("r", &[COMPLETED])).await.unwrap();
    assert_eq!(count(&tables, "SELECT count(*) FROM chunk"), 1);
    // Each commit has taken the checkpoint before it along.
    assert_eq!(count(&tables, "SELECT count(*) FROM checkpoint"), 5);
    assert_eq!(log.read(&thread, 0).await.unwrap().records.len(), 7);
    assert_eq!(log.run(&run).await.unwrap().summary.records, 7);
    drop(tables);
    log.close().await;
}

#[tokio::test]
async fn a_writer_without_work_stores_the_newest_checkpoints() {
    let bed = SqliteBed::new();
    let options = SqliteOptions { checkpoint_idle: Duration::from_millis(1), ..SqliteOptions::default() };
    let log = SqliteLog::open(&bed.path(), options).unwrap();
    log.append(append("r", &[STARTED])).await.unwrap();
    let (run, form) = (RunKey::new("tenant", "r"), ReadFormat::new(Dialect::Loom));
    let encoder = Encoder::new(Dialect::Loom, "r", "r", Fidelity::Native);
    for seq in [1, 3, 2] {
        log.keep_checkpoint(&run, form, seq, &encoder);
    }
    while log.checkpoint(&run, form, 9).await.unwrap() != Some((3, encoder.clone())) {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    log.append(append("r", &[COMPLETED])).await.unwrap();
    log.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn readers_beside_writers_see_each_record_once_and_what_was_acknowledged() {
    let bed = SqliteBed::new();
    let log = Arc::new(SqliteLog::open(&bed.path(), SqliteOptions::default()).unwrap());
    let delta = format!(r#"{{"type":"text.delta","message_id":"m","content":"{}"}}"#, "x".repeat(2000));
    log.append(append("r", &[STARTED])).await.unwrap();
    let acknowledged = Arc::new(AtomicUsize::new(1));
    let writer = tokio::spawn({
        let (log, acknowledged) = (log.clone(), acknowledged.clone());
        async move {
            // Each time that enough has gathered the thread is flushed.
            for _ in 0..400 {
                log.append(append("r", &[&delta])).await.unwrap();
                acknowledged.fetch_add(1, Ordering::SeqCst);
            }
        }
    });
    let thread = ThreadKey::new("tenant", "r");
    let mut after = 0;
    while !writer.is_finished() {
        let least = acknowledged.load(Ordering::SeqCst) as u64;
        let info = log.run(&RunKey::new("tenant", "r")).await.unwrap();
        assert!(info.last_seq >= least, "{} records are seen, {least} were acknowledged", info.last_seq);
        assert_eq!(info.summary.records, info.last_seq);
        let page = log.read(&thread, after).await.unwrap();
        let seqs: Vec<_> = page.records.iter().map(|stored| stored.record.seq).collect();
        assert_eq!(seqs, (after + 1..=after + seqs.len() as u64).collect::<Vec<_>>());
        assert!(page.head >= least);
        after = page.records.last().map_or(after, |stored| stored.record.seq) / 2;
    }
    writer.await.unwrap();
    log.close().await;
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
    assert!(matches!(refused, Err(SqliteOpenError::Newer { found: 99, known: 6, .. })));
    // What could not be opened is not locked either.
    let connection = Connection::open(bed.path()).unwrap();
    connection.pragma_update(None, "user_version", 6).unwrap();
    drop(connection);
    SqliteLog::open(&bed.path(), SqliteOptions::default()).unwrap().close().await;
}

#[tokio::test]
async fn a_file_of_an_older_version_is_refused_with_what_helps() {
    let bed = SqliteBed::new();
    SqliteLog::open(&bed.path(), SqliteOptions::default()).unwrap().close().await;
    let connection = Connection::open(bed.path()).unwrap();
    connection.pragma_update(None, "user_version", 5).unwrap();
    drop(connection);
    let refused = SqliteLog::open(&bed.path(), SqliteOptions::default()).unwrap_err();
    assert!(matches!(refused, SqliteOpenError::Older { found: 5, needed: 6, .. }));
    assert!(refused.to_string().contains("runwire export"), "{refused}");
    let connection = Connection::open(bed.path()).unwrap();
    assert_eq!(count(&connection, "PRAGMA user_version"), 5, "it is left as it is");
}

#[tokio::test]
async fn an_empty_file_gets_the_tables_of_this_version() {
    let bed = SqliteBed::new();
    std::fs::write(bed.path(), b"").unwrap();
    let log = SqliteLog::open(&bed.path(), SqliteOptions::default()).unwrap();
    log.append(append("r", &[STARTED])).await.unwrap();
    log.close().await;
    let connection = Connection::open(bed.path()).unwrap();
    assert_eq!(count(&connection, "PRAGMA user_version"), 6);
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
    // Closing brings the rows up to date.
    log.close().await;
    let log = SqliteLog::open(&bed.path(), SqliteOptions::default()).unwrap();
    for thread in ["r", "whole"] {
        assert_eq!(log.read(&ThreadKey::new("tenant", thread), 0).await.unwrap().records.len(), 1);
    }
    let connection = Connection::open(bed.path()).unwrap();
    let of_r = "thread = (SELECT id FROM thread WHERE name = 'r')";
    let cut = connection.execute(&format!("UPDATE chunk SET body = substr(body, 1, 20) WHERE {of_r}"), []);
    assert_eq!(cut.unwrap(), 1);
    drop(connection);
    let read = log.read(&ThreadKey::new("tenant", "r"), 0).await;
    assert!(matches!(read, Err(LogError::Damaged(reason)) if reason.contains("damaged")));
    assert_eq!(log.read(&ThreadKey::new("tenant", "whole"), 0).await.unwrap().records.len(), 1);
    log.close().await;
}

/// Reads all records of a thread, as what they say.
async fn read_all(log: &SqliteLog, thread: &str) -> Result<Vec<String>, LogError> {
    let page = log.read(&ThreadKey::new("tenant", thread), 0).await?;
    Ok(page.records.iter().map(|stored| format!("{stored:?}")).collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn no_byte_of_a_row_of_records_can_change_unnoticed() {
    let bed = SqliteBed::new();
    let said =
        r#"{"type":"text.delta","message_id":"m","content":"a text that its event quotes from the frame"}"#;
    // Three rows: closing flushes what is pending.
    for frames in [&[STARTED][..], &[said, said], &[COMPLETED]] {
        let log = SqliteLog::open(&bed.path(), SqliteOptions::default()).unwrap();
        log.append(append("r", frames)).await.unwrap();
        log.close().await;
    }
    let log = SqliteLog::open(&bed.path(), SqliteOptions::default()).unwrap();
    let whole = read_all(&log, "r").await.unwrap();
    assert_eq!(whole.len(), 4);
    let connection = Connection::open(bed.path()).unwrap();
    assert_eq!(count(&connection, "SELECT count(*) FROM chunk"), 3);
    let body: Vec<u8> =
        connection.query_row("SELECT body FROM chunk WHERE id = 2", [], |row| row.get(0)).unwrap();
    for at in 0..body.len() {
        let mut spoiled = body.clone();
        spoiled[at] ^= 1 << (at % 8);
        connection.execute("UPDATE chunk SET body = ?1 WHERE id = 2", [spoiled]).unwrap();
        let read = read_all(&log, "r").await;
        assert!(
            matches!(&read, Err(LogError::Damaged(reason)) if reason.contains("records 2 to 3")),
            "{at}: {read:?}"
        );
    }
    connection.execute("UPDATE chunk SET body = ?1 WHERE id = 2", [body]).unwrap();
    assert_eq!(read_all(&log, "r").await.as_ref(), Ok(&whole));
    // The columns beside it, and a row that is gone.
    for column in ["thread", "first", "last", "checksum"] {
        for bit in 0..63 {
            let sql = format!(
                "UPDATE chunk SET {column} = ({column} | {0}) - ({column} & {0}) WHERE id = 2",
                1i64 << bit
            );
            if connection.execute(&sql, []).is_err() {
                // Two rows cannot have the same key.
                continue;
            }
            let read = read_all(&log, "r").await;
            assert!(matches!(read, Err(LogError::Damaged(_))), "{column}, {bit}: {read:?}");
            connection.execute(&sql, []).unwrap();
            assert_eq!(read_all(&log, "r").await.as_ref(), Ok(&whole));
        }
    }
    connection.execute("DELETE FROM chunk WHERE id = 2", []).unwrap();
    assert!(matches!(read_all(&log, "r").await, Err(LogError::Damaged(_))));
    connection.execute("DELETE FROM chunk WHERE id = 1", []).unwrap();
    let read = read_all(&log, "r").await;
    assert!(matches!(&read, Err(LogError::Damaged(reason)) if reason.contains("record 1 ")), "{read:?}");
    // Nothing of it has ended the process, nor anything else.
    log.append(append("other", &[STARTED])).await.unwrap();
    assert_eq!(read_all(&log, "other").await.unwrap().len(), 1);
    log.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_byte_of_a_pending_commit_can_change_unnoticed() {
    let bed = SqliteBed::new();
    let log = SqliteLog::open(&bed.path(), SqliteOptions::default()).unwrap();
    let stamp = |index| Some(Stamp { producer: "p".into(), epoch: 0, index });
    for (at, frame) in
        [STARTED, r#"{"type":"text.delta","message_id":"m","content":"hello"}"#].iter().enumerate()
    {
        log.append(Append { stamp: stamp(at as u64), ..append("r", &[frame]) }).await.unwrap();
    }
    // What a crash leaves: a copy of the file and its write-ahead log.
    let crashed = SqliteBed::new();
    for end in ["", "-wal"] {
        let name = |bed: &SqliteBed| format!("{}{end}", bed.path().display());
        std::fs::copy(name(&bed), name(&crashed)).unwrap();
    }
    let whole = read_all(&log, "r").await.unwrap();
    log.close().await;
    let connection = Connection::open(crashed.path()).unwrap();
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    let rows = count(&connection, "SELECT count(*) FROM pending_commits");
    assert!(rows > 0);
    for row in 1..=rows {
        let sql = "SELECT body FROM pending_commits ORDER BY id LIMIT 1 OFFSET ?1 - 1";
        let body: Vec<u8> = connection.query_row(sql, [row], |row| row.get(0)).unwrap();
        for at in 0..body.len() {
            let mut spoiled = body.clone();
            spoiled[at] ^= 1 << (at % 8);
            let sql = "UPDATE pending_commits SET body = ?2 WHERE id = ?1";
            connection.execute(sql, rusqlite::params![row, spoiled]).unwrap();
            let refused = SqliteLog::open(&crashed.path(), SqliteOptions::default()).unwrap_err();
            let refused = refused.to_string();
            assert!(refused.contains("checksum") && refused.contains("Restore an earlier copy"), "{refused}");
        }
        connection
            .execute("UPDATE pending_commits SET body = ?2 WHERE id = ?1", rusqlite::params![row, body])
            .unwrap();
    }
    drop(connection);
    let log = SqliteLog::open(&crashed.path(), SqliteOptions::default()).unwrap();
    assert_eq!(read_all(&log, "r").await.unwrap(), whole);
    let producer = log.producer(&RunKey::new("tenant", "r"), "p").await.unwrap().unwrap();
    assert_eq!(producer.next, 2);
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
    until_none(&connection, "SELECT count(*) FROM thread WHERE unpurged").await;
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

#[tokio::test(flavor = "multi_thread")]
async fn retention_removes_the_runs_of_a_long_thread_in_several_commits() {
    let bed = SqliteBed::new();
    let log = SqliteLog::open(&bed.path(), SqliteOptions::default()).unwrap();
    let runs = 2 * limits::TRIM_RUNS + 10;
    for run in 0..runs {
        let thread = Some("long".into());
        log.append(Append { thread, ..append(&format!("r{run}"), &[STARTED, COMPLETED]) }).await.unwrap();
    }
    let before = log.stats().await.unwrap().written.commits;
    let everything = RetentionLimits { max_bytes: Some(0), ..RetentionLimits::default() };
    assert_eq!(log.trim(everything).await.unwrap(), runs);
    let commits = log.stats().await.unwrap().written.commits - before;
    assert!(commits >= 3, "no transaction removes more than {} runs: {commits}", limits::TRIM_RUNS);
    let thread = log.thread(&ThreadKey::new("tenant", "long")).await.unwrap();
    assert_eq!(thread.oldest, thread.head + 1);
    log.close().await;
}
