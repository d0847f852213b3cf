//! Outages of Postgres: acknowledged records are stored once, refused ones are not.

mod writers;

use std::time::Duration;

use runwire_engines::{Mode, Postgres as Engine, Proxy};
use runwire_log::{LogError, NewRun};
use writers::Nodes;
pub(super) use writers::frame;

#[tokio::test(flavor = "multi_thread")]
async fn a_restarted_postgres_costs_no_event_that_was_acknowledged() {
    let mut engine = Engine::start().unwrap();
    let nodes = Nodes::open(&engine.url("postgres"), 2).await;
    let writing = nodes.write();
    for _ in 0..3 {
        writing.goes_on().await;
        tokio::task::block_in_place(|| engine.restart().unwrap());
    }
    writing.goes_on().await;
    assert_eq!(writing.stop().await.uncertain.len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_postgres_costs_no_event_that_was_acknowledged() {
    let mut engine = Engine::start().unwrap();
    let nodes = Nodes::open(&engine.url("postgres"), 2).await;
    let writing = nodes.write();
    for _ in 0..3 {
        writing.goes_on().await;
        tokio::task::block_in_place(|| {
            engine.kill();
            engine.restart().unwrap();
        });
    }
    writing.goes_on().await;
    writing.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_postgres_costs_time_alone() {
    let mut engine = Engine::start().unwrap();
    let nodes = Nodes::open(&engine.url("postgres"), 2).await;
    let writing = nodes.write();
    writing.goes_on().await;
    engine.pause();
    // How long the pause is: nothing happens meanwhile that could be waited for.
    tokio::time::sleep(Duration::from_secs(2)).await;
    engine.resume();
    writing.goes_on().await;
    let written = writing.stop().await;
    assert_eq!((written.refused.len(), written.uncertain.len()), (0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_that_are_cut_repeatedly_lose_no_event_and_leave_no_unknown_outcome() {
    let engine = Engine::start().unwrap();
    let nodes = Nodes::open(&engine.url("postgres"), 2).await;
    let writing = nodes.write();
    for _ in 0..20 {
        writing.goes_on().await;
        tokio::task::block_in_place(|| engine.cut_connections().unwrap());
    }
    writing.goes_on().await;
    let written = writing.stop().await;
    assert_eq!((written.refused.len(), written.uncertain.len()), (0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_outcome_of_a_commit_with_a_lost_answer_is_found_out() {
    let engine = Engine::start().unwrap();
    let proxy = Proxy::start(engine.address()).await.unwrap();
    let nodes = Nodes::open(&engine.url_by(proxy.address(), "postgres"), 2).await;
    // Most of the time is spent on the way, so most cuts hit a question or an answer there.
    proxy.set(Mode::Delay(Duration::from_millis(5)));
    let writing = nodes.write();
    for round in 0..40 {
        writing.goes_on().await;
        // Each cut comes at another moment of a commit.
        tokio::time::sleep(Duration::from_millis(round)).await;
        proxy.cut();
    }
    writing.goes_on().await;
    let written = writing.stop().await;
    assert_eq!((written.refused.len(), written.uncertain.len()), (0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_postgres_that_refuses_everybody_costs_no_event_that_was_acknowledged() {
    let engine = Engine::start().unwrap();
    let proxy = Proxy::start(engine.address()).await.unwrap();
    let nodes = Nodes::open(&engine.url_by(proxy.address(), "postgres"), 2).await;
    let writing = nodes.write();
    writing.goes_on().await;
    proxy.cut_and(Mode::Refuse);
    writing.is_refused().await;
    proxy.set(Mode::Pass);
    writing.goes_on().await;
    let written = writing.stop().await;
    assert!(written.refused.iter().all(|told| told.contains("nothing was written")), "{:?}", written.refused);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_silent_connection_is_dropped_and_a_refused_append_is_not_stored() {
    let engine = Engine::start().unwrap();
    let proxy = Proxy::start(engine.address()).await.unwrap();
    let nodes = Nodes::open(&engine.url_by(proxy.address(), "postgres"), 2).await;
    let writing = nodes.write();
    writing.goes_on().await;
    proxy.set(Mode::Stall);
    writing.is_refused().await;
    proxy.set(Mode::Pass);
    writing.goes_on().await;
    writing.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_falls_silent_in_a_transaction_does_not_stop_the_others() {
    let engine = Engine::start().unwrap();
    let nodes = Nodes::open(&engine.url("postgres"), 2).await;
    nodes.of(0).append(frame("held", "first")).await.unwrap();
    // As any node has it.
    let url = format!("{}?options=-c%20idle_in_transaction_session_timeout%3D5000", engine.url("postgres"));
    let (silent, connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls).await.unwrap();
    let driven = tokio::spawn(connection);
    silent.batch_execute("BEGIN; SELECT 1 FROM thread FOR UPDATE").await.unwrap();
    let held = tokio::spawn({
        let node = nodes.of(0);
        async move { node.append(frame("held", "second")).await }
    });
    // Threads that nobody holds are written to meanwhile, also on the node that waits for the other.
    for node in [nodes.of(0), nodes.of(1)] {
        node.append(frame("free", "first")).await.unwrap();
    }
    held.await.unwrap().unwrap();
    drop(silent);
    let _ = driven.await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_whose_connection_broke_is_done_once_more() {
    let mut engine = Engine::start().unwrap();
    let nodes = Nodes::open(&engine.url("postgres"), 1).await;
    let node = nodes.of(0);
    node.append(frame("run", "first")).await.unwrap();
    let thread = runwire_log::ThreadKey::new("tenant", "run");
    // All connections that read are open.
    let (a, b, c, d) = tokio::join!(node.read(&thread, 0), node.ready(), node.ready(), node.ready());
    assert!(a.is_ok() && b.is_ok() && c.is_ok() && d.is_ok());
    tokio::task::block_in_place(|| engine.restart().unwrap());
    for _ in 0..8 {
        assert_eq!(node.read(&thread, 0).await.unwrap().records.len(), 1);
    }
    engine.stop();
    assert!(matches!(node.read(&thread, 0).await, Err(LogError::Unavailable(_))));
}

#[tokio::test(flavor = "multi_thread")]
async fn more_requests_than_can_wait_are_refused_and_not_kept() {
    let mut engine = Engine::start().unwrap();
    let nodes = Nodes::open(&engine.url("postgres"), 1).await;
    engine.stop();
    let asked: Vec<_> = (0..runwire_log::limits::WRITER_QUEUE + 2048)
        .map(|number| {
            let node = nodes.of(0);
            tokio::spawn(async move { node.append(frame("run", &number.to_string())).await })
        })
        .collect();
    for asked in asked {
        assert!(matches!(asked.await.unwrap(), Err(LogError::Unavailable(_))));
    }
    tokio::task::block_in_place(|| engine.restart().unwrap());
    let new = NewRun { tenant: "tenant".into(), run_id: Some("run".into()), ..NewRun::default() };
    assert!(nodes.of(0).create_run(new).await.unwrap().new);
}

#[tokio::test(flavor = "multi_thread")]
async fn commits_that_hang_do_not_block_other_commands_for_long() {
    let engine = Engine::start().unwrap();
    let nodes = Nodes::open(&engine.url("postgres"), 1).await;
    let node = nodes.of(0);
    let names: Vec<String> = (0..30).map(|number| format!("run{number}")).collect();
    for name in &names {
        for value in ["first", "second"] {
            node.append(frame(name, value)).await.unwrap();
        }
    }
    let sql = |statement: &str| tokio::task::block_in_place(|| engine.query("postgres", statement)).unwrap();
    // Every commit waits for a replica that is not there, once the server has taken that up.
    sql("ALTER SYSTEM SET synchronous_standby_names = 'nobody'");
    sql("SELECT pg_reload_conf()");
    while sql("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'") == "0" {
        let probe = node.append(frame("probe", "?"));
        let _ = tokio::time::timeout(Duration::from_millis(100), probe).await;
    }
    for wave in 0..2 {
        // What the first wave has left in doubt holds its locks when the second comes.
        let asked =
            (0..120).map(|number| node.append(frame(&names[number % 30], &format!("{wave}-{number}"))));
        let answers = tokio::time::timeout(Duration::from_secs(60), futures_util::future::join_all(asked));
        for answer in answers.await.expect("everyone is answered") {
            assert!(
                matches!(answer, Err(LogError::Unavailable(_) | LogError::Uncertain(_))),
                "wave {wave}: {answer:?}"
            );
        }
    }
    sql("ALTER SYSTEM RESET synchronous_standby_names");
    sql("SELECT pg_reload_conf()");
    for name in &names {
        node.append(frame(name, "last")).await.unwrap();
    }
}
