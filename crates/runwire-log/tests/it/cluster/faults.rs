//! Unreadable rows, clashing names and invalid data affect only the commands that concern them.

use std::sync::Arc;
use std::time::Duration;

use runwire_engines::Postgres as Engine;
use runwire_log::postgres::{PgOptions, PostgresLog};
use runwire_log::transfer::{ExportRequest, ImportProblem, TransferItem};
use runwire_log::{
    Append, FrameBatch, LogError, LogEvents, LogLookups, LogNode, LogOutbox, LogRuns, LogUpkeep, NewRun,
    NewThread, OutboxKind, RetentionLimits, RunKey, Stamp, Subscriber, Target, ThreadKey, limits,
};
use runwire_model::ErrorCode;
use runwire_model::dialect::Dialect;

use super::failures::frame;

async fn node(engine: &Engine) -> Arc<PostgresLog> {
    super::open(engine.url("postgres"), PgOptions::default()).await
}

fn sql(engine: &Engine, statement: &str) -> String {
    tokio::task::block_in_place(|| engine.query("postgres", statement).unwrap())
}

/// Looks until something is so.
async fn until(mut look: impl AsyncFnMut() -> bool) {
    for _ in 0..600 {
        if look().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("it never came to be");
}

fn new(id: &str) -> NewRun {
    NewRun {
        tenant: "tenant".into(),
        run_id: Some(id.into()),
        agent: Some("a".into()),
        is_started_here: true,
        ..NewRun::default()
    }
}

fn run(id: &str) -> RunKey {
    RunKey::new("tenant", id)
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_with_the_names_of_threads_block_nothing() {
    let engine = Engine::start().unwrap();
    let node = node(&engine).await;
    for round in 0..5 {
        let names = ["a", "b", "c", "d"].map(|name| format!("{name}{round}"));
        for name in &names {
            let thread =
                NewThread { tenant: "tenant".into(), thread_id: Some(name.clone()), ..Default::default() };
            node.create_thread(thread).await.unwrap();
        }
        let others = (0..20).map(|at| format!("other{round}-{at}"));
        let appends = others.chain(names[..2].iter().cloned()).map(|name| {
            let node = node.clone();
            tokio::spawn(async move { node.append(frame(&name, "v")).await.map(drop) })
        });
        let appends: Vec<_> = appends.collect();
        let created = names[2..].iter().cloned().map(|name| {
            let node = node.clone();
            tokio::spawn(async move { node.create_run(new(&name)).await.map(drop) })
        });
        for asked in appends.into_iter().chain(created.collect::<Vec<_>>()) {
            asked.await.unwrap().unwrap();
        }
    }
    assert_eq!(node.node_stats().link.unwrap().retries, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn imports_with_runs_of_other_threads_block_nothing() {
    let engine = Engine::start().unwrap();
    let node = node(&engine).await;
    for id in ["met0", "met1"] {
        node.append(frame(id, "v")).await.unwrap();
    }
    let exported =
        node.export(&ThreadKey::new("tenant", "met0"), &ExportRequest::default()).await.unwrap().items;
    let imports = (0..2).map(|at| {
        let (node, name) = (node.clone(), format!("new{at}"));
        let (mut thread, mut run) = (exported[0].clone(), exported[1].clone());
        let (TransferItem::Thread(thread_facts), TransferItem::Run(facts)) = (&mut thread, &mut run) else {
            panic!("a thread and its first run are told first");
        };
        (thread_facts.thread_id, facts.run_id) = (name.clone(), name.clone());
        let mut met = run.clone();
        if let TransferItem::Run(facts) = &mut met {
            facts.run_id = format!("met{at}");
        }
        let items = vec![(1, thread), (2, run), (3, met)];
        tokio::spawn(async move { node.import(&ThreadKey::new("tenant", name), items).await })
    });
    let others = (0..20).map(|at| {
        let node = node.clone();
        tokio::spawn(async move { node.append(frame(&format!("other{at}"), "v")).await })
    });
    let (imports, others): (Vec<_>, Vec<_>) = (imports.collect(), others.collect());
    for import in imports {
        let fault = import.await.unwrap().unwrap().fault.unwrap();
        assert_eq!((fault.line, fault.problem.code()), (3, ErrorCode::RunExists));
    }
    for other in others {
        other.await.unwrap().unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_cannot_be_read_stops_no_other() {
    let engine = Engine::start().unwrap();
    let first = node(&engine).await;
    for id in ["bad", "good"] {
        first.create_run(new(id)).await.unwrap();
    }
    sql(&engine, "UPDATE run SET head = '{\"state\":7}' WHERE name = 'bad'");
    // It has nothing at hand of them.
    let node = node(&engine).await;
    assert!(matches!(node.run(&run("bad")).await, Err(LogError::Damaged(_))));
    assert!(matches!(node.heartbeat(&run("bad")).await, Err(LogError::Damaged(_))));
    sql(&engine, "UPDATE run SET owner = 'gone'");
    let mut taken = Vec::new();
    until(async || {
        // Each time, the other one would be first.
        taken.extend(node.claim_orphans(&["a"], 1).await.unwrap());
        !taken.is_empty()
    })
    .await;
    assert_eq!(taken[0].run.run_id, "good");
    assert_eq!(sql(&engine, "SELECT owner FROM run WHERE name = 'bad'"), "gone");
    sql(&engine, "UPDATE run SET lease_until = id");
    let mut closed = 0;
    until(async || {
        closed += node.sweep().await.unwrap();
        closed > 0
    })
    .await;
    assert_eq!(node.run(&run("good")).await.unwrap().status.as_str(), "failed");
    assert_eq!(sql(&engine, "SELECT status FROM run WHERE name = 'bad'"), "pending");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_whose_records_cannot_be_read_leaves_the_others_their_end() {
    let engine = Engine::start().unwrap();
    let first = node(&engine).await;
    for id in ["bad", "good"] {
        // Whoever ends it makes a whole call of it.
        let item = r#"{"type":"tool_call_chunk","call_id":"c","name":"f","arguments_delta":"{"}"#;
        let mut frames = FrameBatch::default();
        frames.push(1, None, item.as_bytes());
        let append = Append { dialect: Some(Dialect::Loom), frames, ..frame(id, "") };
        first.append(append).await.unwrap();
    }
    sql(&engine, "UPDATE chunk SET body = '\\x00' FROM run WHERE run.thread = chunk.thread AND name = 'bad'");
    sql(&engine, "UPDATE run SET lease_until = id");
    let node = node(&engine).await;
    until(async || {
        let _ = node.sweep().await;
        node.run(&run("good")).await.unwrap().status.as_str() == "failed"
    })
    .await;
    assert_eq!(sql(&engine, "SELECT status FROM run WHERE name = 'bad'"), "running");
    assert_eq!(node.sweep().await, Ok(0), "it is passed over");
}

#[tokio::test(flavor = "multi_thread")]
async fn retention_and_webhooks_pass_over_what_cannot_be_read() {
    let engine = Engine::start().unwrap();
    let node = node(&engine).await;
    node.subscribe(vec![Subscriber { name: "hook".into(), kinds: OutboxKind::ALL.to_vec() }]).await.unwrap();
    for id in ["bad", "good"] {
        let mut frames = FrameBatch::default();
        frames.push(1, None, br#"{"type":"run.started"}"#);
        frames.push(2, None, br#"{"type":"run.completed"}"#);
        node.append(Append { dialect: Some(Dialect::Runwire), frames, ..frame(id, "") }).await.unwrap();
    }
    sql(
        &engine,
        "UPDATE outbox SET event = 'no JSON' FROM run WHERE run.id = outbox.run AND run.name = 'bad'",
    );
    sql(&engine, "UPDATE chunk SET body = '\\x00' FROM run WHERE run.thread = chunk.thread AND name = 'bad'");
    sql(&engine, "UPDATE run SET ended_at = ended_at - 7200000");
    let messages = node.outbox("hook", 1).await.unwrap();
    assert_eq!(messages.iter().map(|message| &*message.run.id).collect::<Vec<_>>(), ["good"]);
    let old = RetentionLimits { age: Some(Duration::from_secs(3600)), ..RetentionLimits::default() };
    assert_eq!(node.trim(old).await, Ok(1));
    assert_eq!(node.trim(old).await, Ok(0));
    assert_eq!(node.thread(&ThreadKey::new("tenant", "good")).await.unwrap().oldest, 3);
    assert_eq!(node.thread(&ThreadKey::new("tenant", "bad")).await.unwrap().oldest, 1);
    assert_eq!(node.stats().await.unwrap().unreadable, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clock_that_is_set_back_ends_no_run() {
    let engine = Engine::start().unwrap();
    let node = node(&engine).await;
    for id in ["silent", "renewed"] {
        node.create_run(new(id)).await.unwrap();
    }
    // It was an hour later when they showed last that they are there; one has done so since.
    sql(
        &engine,
        "UPDATE store SET alive_at = alive_at + 3600000, alive_until = alive_until + 3600000; \
         UPDATE node SET seen_until = seen_until + 3600000; \
         UPDATE run SET lease_until = lease_until + 3600000 WHERE name = 'silent'",
    );
    let now = "(extract(epoch FROM clock_timestamp()) * 1000)";
    let moved = format!("SELECT count(*) FROM store WHERE alive_at > {now}");
    until(async || sql(&engine, &moved) == "0").await;
    let within =
        format!("SELECT count(*) FROM run WHERE lease_until BETWEEN {now} + 20000 AND {now} + 70000");
    assert_eq!(sql(&engine, &within), "2");
    assert_eq!(node.sweep().await, Ok(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn however_many_leases_an_outage_moves_the_nodes_are_there_after_it() {
    let engine = Engine::start().unwrap();
    // No answer to a beat may take longer than a third of it, and moving them all does.
    let (url, options) =
        (engine.url("postgres"), PgOptions { node_term: Duration::from_millis(600), ..PgOptions::default() });
    let node = tokio::task::spawn_blocking(move || PostgresLog::open(&url, &options).unwrap()).await.unwrap();
    sql(
        &engine,
        "INSERT INTO run (id, tenant, name, thread, request, status, created_at, last_seq, lease, lease_until, \
         revision, trimmed) SELECT id, 'tenant', id::text, 0, '{}', 'running', 0, 0, 1, alive_at + 60000, 1, false \
         FROM store, generate_series(1, 100000) AS id",
    );
    sql(
        &engine,
        "UPDATE store SET alive_at = alive_at - 3600000, alive_until = alive_until - 3600000; \
         UPDATE run SET lease_until = lease_until - 3600000; UPDATE node SET seen_until = seen_until - 3600000",
    );
    let late = "SELECT count(*) FROM run WHERE lease_until < extract(epoch FROM clock_timestamp()) * 1000";
    until(async || sql(&engine, late) == "0").await;
    until(async || node.nodes().is_leader).await;
    assert_eq!(node.sweep().await, Ok(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_that_was_moved_is_not_shortened_by_what_is_written_late() {
    let engine = Engine::start().unwrap();
    let node = node(&engine).await;
    node.append(frame("run", "first")).await.unwrap();
    sql(&engine, "UPDATE run SET lease_until = lease_until + 600000");
    let until = sql(&engine, "SELECT lease_until FROM run");
    node.append(frame("run", "second")).await.unwrap();
    assert_eq!(sql(&engine, "SELECT lease_until FROM run"), until);
}

#[tokio::test(flavor = "multi_thread")]
async fn data_that_the_store_cannot_hold_is_refused_permanently_and_alone() {
    let engine = Engine::start().unwrap();
    let node = node(&engine).await;
    let (refused, written) = tokio::join!(
        node.append(frame("no\0name", "first")),
        futures_util::future::join_all((0..10).map(|at| node.append(frame(&format!("r{at}"), "first"))))
    );
    assert!(matches!(refused, Err(LogError::Damaged(_))), "{refused:?}");
    assert_eq!(refused.unwrap_err().code(), ErrorCode::StoreDamaged);
    assert!(written.iter().all(Result::is_ok));
    // An import says so before.
    let exported = node.export(&ThreadKey::new("tenant", "r1"), &ExportRequest::default()).await.unwrap();
    for id in ["no\0name".to_owned(), "x".repeat(3000), String::new()] {
        let mut items = exported.items.clone();
        for item in &mut items {
            if let TransferItem::Run(facts) = item {
                facts.run_id = id.clone();
            }
        }
        let items = items.into_iter().enumerate().map(|(at, item)| (at as u64 + 1, item)).collect();
        let imported = node.import(&ThreadKey::new("elsewhere", "r1"), items).await.unwrap();
        assert!(matches!(imported.fault.unwrap().problem, ImportProblem::Bad(_)));
        node.delete_thread(&ThreadKey::new("elsewhere", "r1"), true).await.unwrap();
        sql(&engine, "DELETE FROM thread WHERE tenant = 'elsewhere'");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_cannot_hold_every_text_is_refused() {
    let engine = Engine::start().unwrap();
    sql(&engine, "CREATE DATABASE plain ENCODING 'SQL_ASCII' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0");
    let url = engine.url("plain");
    let refused = tokio::task::block_in_place(|| PostgresLog::migrate(&url).unwrap_err());
    assert!(refused.to_string().contains("UTF8") && !refused.may_pass(), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_producer_of_a_tenant_takes_the_place_of_one_that_was_silent_for_a_week() {
    let engine = Engine::start().unwrap();
    let as_producer = |name: &str| {
        let mut frames = FrameBatch::default();
        let start = format!(r#"{{"type":"run.started","thread_id":"{name}","run_id":"{name}"}}"#);
        frames.push(1, None, start.as_bytes());
        let stamp = Some(Stamp { producer: name.into(), epoch: 0, index: 0 });
        Append { target: Target::Tenant("tenant".into()), stamp, frames, ..frame("", "") }
    };
    let first = node(&engine).await;
    first.append(as_producer("first")).await.unwrap();
    first.close().await;
    let others = limits::TENANT_PRODUCERS - 1;
    let fill = format!(
        "INSERT INTO producer (scope, owner, name, epoch, next, decoder) SELECT 'thread', \
         (SELECT id FROM thread WHERE name = ''), 'p' || n, 0, 1, json_build_object('decoder', NULL, \
         'written_at', CASE n WHEN 7 THEN 1 ELSE 4000000000000000 END)::text FROM generate_series(1, {others}) AS n"
    );
    sql(&engine, &fill);
    let node = node(&engine).await;
    assert_eq!(node.append(as_producer("new")).await.unwrap().accepted, 1);
    let refused = node.append(as_producer("newer")).await;
    assert_eq!(refused, Err(LogError::TooManyProducers(limits::TENANT_PRODUCERS)));
    let names = "SELECT string_agg(name, ',' ORDER BY name) FROM producer WHERE name IN ('p6', 'p7', 'new')";
    assert_eq!(sql(&engine, names), "new,p6");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_byte_of_a_row_of_records_can_change_unnoticed() {
    let engine = Engine::start().unwrap();
    let node = node(&engine).await;
    for word in ["first", "second", "third"] {
        node.append(frame("run", word)).await.unwrap();
    }
    let thread = ThreadKey::new("tenant", "run");
    let whole = node.read(&thread, 0).await.unwrap().records;
    assert_eq!(sql(&engine, "SELECT count(*) FROM chunk"), "3");
    let last = sql(&engine, "SELECT max(last) FROM chunk WHERE last < (SELECT max(last) FROM chunk)");
    let bytes = sql(&engine, &format!("SELECT octet_length(body) FROM chunk WHERE last = {last}"));
    let bytes: usize = bytes.parse().unwrap();
    let spoiled_bytes = (0..bytes).map(|at| format!("body = set_byte(body, {at}, get_byte(body, {at}) # 1)"));
    let spoiled_columns =
        ["first = first # 1", "checksum = checksum # 1", "checksum = checksum # 4294967296"];
    for change in spoiled_bytes.chain(spoiled_columns.map(str::to_owned)) {
        // The same change a second time takes it back.
        let change = format!("UPDATE chunk SET {change} WHERE last = {last}");
        sql(&engine, &change);
        let read = node.read(&thread, 0).await;
        assert!(
            matches!(&read, Err(LogError::Damaged(reason)) if reason.contains("checksum")),
            "{change}: {read:?}"
        );
        sql(&engine, &change);
    }
    assert_eq!(node.read(&thread, 0).await.unwrap().records, whole);
    sql(&engine, &format!("DELETE FROM chunk WHERE last = {last}"));
    let read = node.read(&thread, 0).await;
    assert!(matches!(&read, Err(LogError::Damaged(reason)) if reason.contains("missing")), "{read:?}");
    // Another thread is not concerned.
    node.append(frame("other", "first")).await.unwrap();
    assert!(!node.read(&ThreadKey::new("tenant", "other"), 0).await.unwrap().records.is_empty());
}
