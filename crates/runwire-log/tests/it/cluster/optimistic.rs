//! Optimistic commits, and snapshots of runs in the rows of their threads, are invisible to callers.

use std::sync::Arc;
use std::time::Duration;

use runwire_engines::{Mode, Postgres as Engine, Proxy};
use runwire_log::postgres::{PgOptions, PostgresLog};
use runwire_log::transfer::ExportRequest;
use runwire_log::{
    Append, Appended, Cancel, FrameBatch, LogError, LogEvents, LogLookups, LogNode, LogRuns, LogUpkeep,
    NewRun, NewThread, RetentionLimits, RunKey, RunQuery, Stamp, Target, ThreadKey,
};

use super::failures::frame;

async fn open(url: String) -> Arc<PostgresLog> {
    super::open(url, PgOptions::default()).await
}

async fn nodes(engine: &Engine) -> [Arc<PostgresLog>; 2] {
    [open(engine.url("postgres")).await, open(engine.url("postgres")).await]
}

fn sql(engine: &Engine, statement: &str) -> String {
    tokio::task::block_in_place(|| engine.query("postgres", statement).unwrap())
}

fn run(id: &str) -> RunKey {
    RunKey::new("tenant", id)
}

/// A frame that its producer counts.
fn counted(id: &str, epoch: u64, index: u64) -> Append {
    let stamp = Stamp { producer: "p".into(), epoch, index };
    Append { stamp: Some(stamp), ..frame(id, &format!("{epoch}-{index}")) }
}

fn accepted(appended: Result<Appended, LogError>) -> (u64, u64) {
    let appended = appended.unwrap();
    (appended.accepted, appended.duplicates)
}

/// Counts threads with a snapshot.
const SNAPSHOTS: &str = "SELECT count(*) FROM thread WHERE snapshot_run IS NOT NULL AND snapshot IS NOT NULL";

#[tokio::test(flavor = "multi_thread")]
async fn every_node_reads_the_snapshot_of_a_run() {
    let engine = Engine::start().unwrap();
    let [one, other] = nodes(&engine).await;
    for index in 0..5 {
        one.append(counted("run", 0, index)).await.unwrap();
    }
    assert_eq!(sql(&engine, SNAPSHOTS), "1", "the run's row is written with every commit");
    assert_eq!(sql(&engine, "SELECT last_seq FROM run"), "1", "its row was left behind");
    let thread = ThreadKey::new("tenant", "run");
    let info = other.run(&run("run")).await.unwrap();
    assert_eq!(info, one.run(&run("run")).await.unwrap());
    assert_eq!((info.last_seq, info.summary.records), (5, 5));
    assert_eq!(other.spans(&thread).await.unwrap()[0].last_seq, 5);
    assert_eq!(other.producer(&run("run"), "p").await.unwrap().unwrap().next, 5);
    assert_eq!(other.producer(&run("run"), "q").await.unwrap(), None);
    // What was noted is gone on with: a repetition counts as one, wherever it arrives.
    assert_eq!(accepted(other.append(counted("run", 0, 4)).await), (0, 1));
    assert_eq!(accepted(other.append(counted("run", 0, 5)).await), (1, 0));
    assert_eq!(accepted(one.append(counted("run", 0, 5)).await), (0, 1));
    assert_eq!(accepted(one.append(counted("run", 0, 6)).await), (1, 0));
    assert_eq!(other.run(&run("run")).await.unwrap().last_seq, 7);
    // The end writes the run's own rows.
    one.append(Append { end: true, ..counted("run", 0, 7) }).await.unwrap();
    assert_eq!(sql(&engine, SNAPSHOTS), "0");
    let info = other.run(&run("run")).await.unwrap();
    assert_eq!(info.status.as_str(), "completed");
    assert_eq!(sql(&engine, "SELECT last_seq FROM run"), info.last_seq.to_string());
    assert_eq!(other.producer(&run("run"), "p").await.unwrap().unwrap().next, 8);
    assert_eq!(sql(&engine, "SELECT next FROM producer WHERE name = 'p'"), "8");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_changes_nothing_does_not_change_the_version_of_a_thread() {
    let engine = Engine::start().unwrap();
    let [one, other] = nodes(&engine).await;
    for index in 0..3 {
        one.append(counted("run", 1, index)).await.unwrap();
    }
    const VERSIONS: &str = "SELECT string_agg(version::text, ',' ORDER BY id) FROM thread";
    let version = sql(&engine, VERSIONS);
    for log in [&one, &other] {
        // A heartbeat long before the lease is over, a duplicate, a refusal.
        log.heartbeat(&run("run")).await.unwrap();
        assert_eq!(accepted(log.append(counted("run", 1, 2)).await), (0, 1));
        let fenced = log.append(counted("run", 0, 3)).await;
        assert!(matches!(fenced, Err(LogError::ProducerFenced { .. })), "{fenced:?}");
        let gap = log.append(counted("run", 1, 9)).await;
        assert!(matches!(gap, Err(LogError::ProducerGap { .. })), "{gap:?}");
        assert_eq!(sql(&engine, VERSIONS), version);
    }
    // What changes something does.
    one.append(counted("run", 1, 3)).await.unwrap();
    assert_ne!(sql(&engine, VERSIONS), version);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thread_has_the_snapshot_of_one_run_and_all_are_current() {
    let engine = Engine::start().unwrap();
    let [one, other] = nodes(&engine).await;
    let thread = NewThread { tenant: "tenant".into(), thread_id: Some("thread".into()), parallel: true };
    one.create_thread(thread).await.unwrap();
    let names = ["a", "b", "c"];
    let write = |name: &str, index| Append { thread: Some("thread".into()), ..counted(name, 0, index) };
    for index in 0..4 {
        for name in names {
            assert_eq!(accepted(one.append(write(name, index)).await), (1, 0));
        }
        // Now and then another node is faster.
        let name = names[index as usize % 3];
        assert_eq!(accepted(other.append(write(name, index)).await), (0, 1));
    }
    assert_eq!(sql(&engine, SNAPSHOTS), "1");
    for (at, name) in names.into_iter().enumerate() {
        let info = other.run(&run(name)).await.unwrap();
        assert_eq!((info.summary.records, info.last_seq), (4, 10 + at as u64), "{name}");
        assert_eq!(other.producer(&run(name), "p").await.unwrap().unwrap().next, 4);
        assert_eq!(accepted(other.append(write(name, 4)).await), (1, 0));
    }
    // Whichever is noted: it ends, and another takes its place.
    for name in names {
        one.append(Append { end: true, ..write(name, 5) }).await.unwrap();
        assert_eq!(other.run(&run(name)).await.unwrap().status.as_str(), "completed");
    }
    assert_eq!(sql(&engine, SNAPSHOTS), "0");
    let spans = other.spans(&ThreadKey::new("tenant", "thread")).await.unwrap();
    assert!(spans.iter().all(|span| !span.open && span.last_seq >= 16), "{spans:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_based_on_stale_heads_is_never_returned() {
    let engine = Engine::start().unwrap();
    let [one, other] = nodes(&engine).await;
    for node in [&one, &other] {
        // Both have it cached now.
        let info = node.append(counted("run", 0, 0)).await.unwrap();
        assert_eq!(info.last_seq, 1);
    }
    for round in 0..20 {
        let (here, there) = if round % 2 == 0 { (&one, &other) } else { (&other, &one) };
        assert_eq!(accepted(here.append(counted("run", round, round + 1)).await), (1, 0));
        // For what it has cached this would leave a gap; the one after would be new; and the epoch would be too old.
        assert_eq!(accepted(there.append(counted("run", round, round + 1)).await), (0, 1));
        if round > 0 {
            let fenced = here.append(counted("run", round - 1, round + 2)).await;
            assert_eq!(fenced, Err(LogError::ProducerFenced { epoch: round }));
        }
    }
    let gap = one.append(counted("run", 19, 30)).await;
    assert_eq!(gap, Err(LogError::ProducerGap { expected: 21, got: 30 }));
    // One ends it, and the other still has it cached as open.
    other.append(Append { end: true, ..counted("run", 19, 21) }).await.unwrap();
    let late = one.append(counted("run", 19, 22)).await.unwrap();
    assert_eq!(late.accepted, 0, "{late:?}");
    assert!(late.fault.is_some());
    let info = one.run(&run("run")).await.unwrap();
    assert_eq!(info.status.as_str(), "completed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancel_or_heartbeat_writes_the_row_of_its_run() {
    let engine = Engine::start().unwrap();
    let [one, other] = nodes(&engine).await;
    for index in 0..3 {
        one.append(counted("run", 0, index)).await.unwrap();
    }
    let until = "SELECT lease || ' ' || lease_until FROM run";
    let before = sql(&engine, until);
    one.heartbeat(&run("run")).await.unwrap();
    assert_eq!(sql(&engine, until), before, "a lease that is long enough is left alone");
    // As long ago.
    sql(&engine, "UPDATE run SET lease_until = lease_until - 30000; UPDATE thread SET version = version + 1");
    let shortened = sql(&engine, until);
    one.append(counted("run", 0, 3)).await.unwrap();
    assert_ne!(sql(&engine, until), shortened);
    other.cancel(&run("run"), Cancel::default()).await.unwrap();
    assert!(sql(&engine, until).starts_with("2 "));
    one.append(counted("run", 0, 4)).await.unwrap();
    assert!(sql(&engine, until).starts_with("2 "), "writing on does not put off the end");
    let info = other.run(&run("run")).await.unwrap();
    assert!(info.summary.cancel_requested);
    assert_eq!(one.producer(&run("run"), "p").await.unwrap().unwrap().next, 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_that_arrives_after_its_refusal_is_not_written() {
    let engine = Engine::start().unwrap();
    let proxy = Proxy::start(engine.address()).await.unwrap();
    let node = open(engine.url_by(proxy.address(), "postgres")).await;
    let other = open(engine.url("postgres")).await;
    for value in ["first", "second"] {
        node.append(frame("run", value)).await.unwrap();
    }
    // It is on its way for longer than the node waits for an answer, and longer than anybody tries.
    proxy.set(Mode::Delay(Duration::from_secs(14)));
    let asked = tokio::spawn({
        let node = node.clone();
        async move { node.append(frame("run", "late")).await }
    });
    // Nothing tells that it has reached the proxy, which it does at once. What is under way there stays so.
    tokio::time::sleep(Duration::from_millis(200)).await;
    proxy.set(Mode::Pass);
    let answer = asked.await.unwrap();
    // Nothing would show what must not happen: it arrives 14 s after it was sent, and the node has waited for 10.
    tokio::time::sleep(Duration::from_secs(6)).await;
    let page = other.read(&ThreadKey::new("tenant", "run"), 0).await.unwrap();
    let times = page.records.iter().filter(|stored| {
        stored.frame.as_ref().is_some_and(|frame| frame.windows(4).any(|word| word == b"late"))
    });
    match answer {
        Ok(_) => assert_eq!(times.count(), 1),
        Err(LogError::Unavailable(why)) => assert_eq!(times.count(), 0, "{why}"),
        Err(other) => panic!("{other}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pipelined_appends_keep_their_order() {
    let engine = Engine::start().unwrap();
    let [one, _] = nodes(&engine).await;
    for round in 0..10 {
        let (thread, name) = (format!("thread{round}"), format!("run{round}"));
        // The run is named with its thread, and without.
        let key = run(&name);
        let all = (0..30).map(|number| Append {
            target: Target::Run(key.clone()),
            thread: (number % 3 == 0).then(|| thread.clone()),
            ..frame(&name, &number.to_string())
        });
        // Polled in order, so asked in order.
        let appended = futures_util::future::join_all(all.map(|append| one.append(append))).await;
        for appended in appended {
            assert_eq!(appended.unwrap().accepted, 1);
        }
        let page = one.read(&ThreadKey::new("tenant", thread.as_str()), 0).await.unwrap();
        let said: Vec<String> = page
            .records
            .iter()
            .filter_map(|stored| stored.frame.as_ref())
            .map(|frame| serde_json::from_slice::<serde_json::Value>(frame).unwrap())
            .map(|frame| frame["value"].as_str().unwrap().to_owned())
            .collect();
        let expected: Vec<String> = (0..30).map(|number| number.to_string()).collect();
        assert_eq!(said, expected);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_to_an_unavailable_store_are_refused_with_a_known_outcome() {
    let mut engine = Engine::start().unwrap();
    let node = open(engine.url("postgres")).await;
    let names: Vec<String> = (0..8).map(|number| format!("run{number}")).collect();
    for name in &names {
        for value in ["first", "second"] {
            node.append(frame(name, value)).await.unwrap();
        }
    }
    tokio::task::block_in_place(|| engine.kill());
    // All of it is cached, and the time is known: nothing has to be looked up.
    let asked = names.iter().map(|name| node.append(frame(name, "third")));
    for answer in futures_util::future::join_all(asked).await {
        assert!(matches!(answer, Err(LogError::Unavailable(_))), "{answer:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_with_a_snapshot_is_exported_trimmed_claimed_and_deleted_as_any_other() {
    let engine = Engine::start().unwrap();
    let [one, other] = nodes(&engine).await;
    let new = NewRun {
        tenant: "tenant".into(),
        run_id: Some("run".into()),
        agent: Some("a".into()),
        is_started_here: true,
        ..NewRun::default()
    };
    one.create_run(new).await.unwrap();
    for index in 0..4 {
        one.append(counted("run", 0, index)).await.unwrap();
    }
    assert_eq!(sql(&engine, SNAPSHOTS), "1");
    let thread = ThreadKey::new("tenant", "run");
    let exported = |node: Arc<PostgresLog>| {
        let thread = thread.clone();
        async move { format!("{:?}", node.export(&thread, &ExportRequest::default()).await.unwrap()) }
    };
    assert_eq!(exported(one.clone()).await, exported(other.clone()).await);
    assert!(exported(other.clone()).await.contains("next: 4"), "{}", exported(other.clone()).await);
    let everything = RetentionLimits { max_bytes: Some(0), ..RetentionLimits::default() };
    assert_eq!(other.trim(everything).await, Ok(0), "an open run stays");
    assert_eq!(other.run(&run("run")).await.unwrap().last_seq, 4);
    // Its node is gone: whoever takes it up knows how far it is.
    one.close().await;
    let left = other.claim_orphans(&["a"], 10).await.unwrap();
    assert_eq!((left.len(), left[0].run.last_seq, left[0].run.summary.records), (1, 4, 4));
    assert_eq!(accepted(other.append(counted("run", 1, 4)).await), (1, 0));
    assert_eq!(sql(&engine, SNAPSHOTS), "1");
    other.delete_thread(&thread, true).await.unwrap();
    assert_eq!(sql(&engine, SNAPSHOTS), "0");
    assert!(matches!(other.run(&run("run")).await, Err(LogError::ThreadDeleted(_))));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_whose_lease_expires_while_it_has_a_snapshot_is_closed_with_all_its_records() {
    let engine = Engine::start().unwrap();
    let [one, other] = nodes(&engine).await;
    for index in 0..4 {
        one.append(counted("run", 0, index)).await.unwrap();
    }
    sql(&engine, "UPDATE run SET lease_until = 1");
    assert_eq!(other.sweep().await, Ok(1));
    let info = one.run(&run("run")).await.unwrap();
    assert_eq!((info.status.as_str(), info.last_seq), ("failed", 5));
    assert_eq!(sql(&engine, SNAPSHOTS), "0");
    // The one that has it cached as open learns of it.
    let late = one.append(counted("run", 0, 4)).await.unwrap();
    assert!(late.accepted == 0 && late.fault.is_some(), "{late:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unreadable_snapshot_affects_only_its_run() {
    let engine = Engine::start().unwrap();
    let [one, other] = nodes(&engine).await;
    for name in ["bad", "good"] {
        for index in 0..3 {
            one.append(counted(name, 0, index)).await.unwrap();
        }
    }
    // As a newer version might write it.
    sql(&engine, "UPDATE thread SET snapshot = '\\xff00', version = version + 1 WHERE name = 'bad'");
    assert!(matches!(other.run(&run("bad")).await, Err(LogError::Damaged(_))));
    assert!(matches!(one.append(counted("bad", 0, 3)).await, Err(LogError::Damaged(_))));
    assert_eq!(accepted(one.append(counted("good", 0, 3)).await), (1, 0));
    let query = RunQuery { tenant: "tenant".into(), limit: 10, ..RunQuery::default() };
    let listed = other.runs(query).await.unwrap();
    let listed: Vec<_> = listed.iter().map(|run| (run.run_id.as_str(), run.last_seq)).collect();
    assert_eq!(listed, [("good", 4), ("bad", 1)], "as far as its own row tells");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_of_an_older_version_is_refused_with_what_helps() {
    let engine = Engine::start().unwrap();
    open(engine.url("postgres")).await.close().await;
    sql(&engine, "UPDATE store SET version = 2");
    let url = engine.url("postgres");
    let refused = tokio::task::block_in_place(|| PostgresLog::open(&url, &PgOptions::default()).unwrap_err());
    assert!(refused.to_string().contains("runwire export") && !refused.may_pass(), "{refused}");
    assert_eq!(sql(&engine, "SELECT version FROM store"), "2", "it is left as it is");
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_behind_a_commit_with_unknown_outcome_are_refused_in_time() {
    let engine = Engine::start().unwrap();
    let proxy = Proxy::start(engine.address()).await.unwrap();
    let node = open(engine.url_by(proxy.address(), "postgres")).await;
    for value in ["first", "second"] {
        node.append(frame("run", value)).await.unwrap();
    }
    // What is asked is done, nobody learns of it, and nobody can ask.
    proxy.set(Mode::MuteAfter("COMMIT WORK"));
    let doubtful = tokio::spawn({
        let node = node.clone();
        async move { node.append(frame("run", "third")).await }
    });
    let written = "SELECT count(*) FROM chunk WHERE last >= 3";
    while sql(&engine, written) == "0" {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    proxy.cut_and(Mode::Refuse);
    let behind = node.append(frame("run", "fourth")).await;
    assert!(matches!(behind, Err(LogError::Unavailable(_))), "{behind:?}");
    if doubtful.is_finished() {
        panic!("it was found out before, or nobody tried to: {:?}", doubtful.await);
    }
    proxy.set(Mode::Pass);
    assert_eq!(doubtful.await.unwrap().unwrap().last_seq, 3);
    assert_eq!(node.append(frame("run", "fifth")).await.unwrap().last_seq, 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn statements_behind_a_failed_begin_are_not_executed() {
    let engine = Engine::start().unwrap();
    let proxy = Proxy::start(engine.address()).await.unwrap();
    let node = open(engine.url_by(proxy.address(), "postgres")).await;
    for index in 0..2 {
        node.append(counted("run", 0, index)).await.unwrap();
    }
    let before = sql(&engine, "SELECT version, head, snapshot FROM thread");
    proxy.set(Mode::Misspell("BEGIN"));
    let refused = node.append(counted("run", 0, 2)).await;
    assert!(matches!(refused, Err(LogError::Unavailable(_))), "{refused:?}");
    assert_eq!(sql(&engine, "SELECT version, head, snapshot FROM thread"), before);
    assert_eq!(sql(&engine, "SELECT max(last) FROM chunk"), "2");
    proxy.set(Mode::Pass);
    assert_eq!(node.append(counted("run", 0, 2)).await.unwrap().last_seq, 3);
}

/// Nodes of several versions may share a store, and a run may have a snapshot for weeks. A change of what is expected
/// here needs a new version of the encoding (see `run_snapshot.rs`), and reads both: before the release that writes the new one.
#[tokio::test(flavor = "multi_thread")]
async fn the_encoding_of_a_snapshot_is_stable() {
    let engine = Engine::start().unwrap();
    let node = open(engine.url("postgres")).await;
    let frames = [
        r#"{"type":"run.started","message":"?"}"#,
        r#"{"type":"step.started","name":"plan","step_id":"plan.1"}"#,
        r#"{"type":"thinking.delta","message_id":"t","content":"first"}"#,
        r#"{"type":"text.delta","message_id":"m","content":"then"}"#,
        r#"{"type":"tool.args_started","call_id":"c","name":"search"}"#,
        r#"{"type":"tool.args_delta","call_id":"c","delta":"{\"q\":"}"#,
        r#"{"type":"usage","prompt_tokens":3,"completion_tokens":4,"total_tokens":7}"#,
        r#"{"type":"notice","level":"error","message":"late","fatal":true}"#,
    ];
    for (index, line) in frames.into_iter().enumerate() {
        let mut append = counted("run", 0, index as u64);
        append.frames = FrameBatch::default();
        append.frames.push(1, None, line.as_bytes());
        assert_eq!(accepted(node.append(append).await), (1, 0), "{line}");
    }
    assert_eq!(sql(&engine, "SELECT encode(snapshot, 'hex') FROM thread"), SNAPSHOT);
}

const SNAPSHOT: &str = "0508c0010372756e0372756e0100000106706c616e2e3104706c616e000001016300000001067365617\
    263680005010500000000000101000001016d0004ffcc92e3f9fcfe45d8abbcc483fbc1ae13000001000001000900010\
    80003a38588b0c8a9fab1af01d8e687b0c889f8b1af01f2df87b0c8c9f7b1af010000080c01000103040701000001cf9\
    af98ce0f8a0fa8901000000010000000000010001010004030106706c616e2e31000000010101740000000001016d000\
    00004010163000000000001017000085b7b226465636f646572223a7b226469616c656374223a2272756e77697265222\
    c227374617465223a7b22736b6970223a302c226368756e6b223a6e756c6c2c227370616e223a6e756c6c2c22616e737\
    76572223a6e756c6c7d7d7d";
