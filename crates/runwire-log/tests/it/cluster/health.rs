//! Concurrent health checks of a store.

use std::time::Duration;

use futures_util::future::join_all;
use runwire_engines::Postgres as Engine;
use runwire_log::LogNode;
use runwire_log::postgres::{PgOptions, PostgresLog};
use tokio_postgres::NoTls;

/// Waits behind lock 42 before it answers.
const SLOW: &str = "CREATE FUNCTION pg_is_in_recovery() RETURNS boolean LANGUAGE plpgsql AS \
                    'BEGIN PERFORM pg_advisory_xact_lock(42); RETURN false; END'";
/// Counts who waits behind it.
const WAITING: &str =
    "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = 42 AND NOT granted";

async fn connect(engine: &Engine) -> tokio_postgres::Client {
    let (client, connection) = tokio_postgres::connect(&engine.url("postgres"), NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

async fn is_up(node: &PostgresLog) -> bool {
    node.health().await.store.outage.is_none()
}

#[tokio::test(flavor = "multi_thread")]
async fn without_heartbeats_concurrent_health_checks_share_one_probe() {
    let engine = Engine::start().unwrap();
    let (people, keeper) = (connect(&engine).await, connect(&engine).await);
    people.batch_execute(SLOW).await.unwrap();
    // The function above is found before the one that it is called after.
    let options = "-c%20search_path%3Dpublic,pg_catalog%20-c%20lock_timeout%3D0";
    let url = format!("{}?options={options}", engine.url("postgres"));
    let terms = PgOptions { node_term: Duration::from_secs(1), ..PgOptions::default() };
    let node = tokio::task::spawn_blocking(move || PostgresLog::open(&url, &terms).unwrap()).await.unwrap();
    assert!(is_up(&node).await);

    // No beat comes through, and no answer.
    keeper
        .batch_execute("BEGIN; SELECT FROM store FOR UPDATE; SELECT pg_advisory_xact_lock(42)")
        .await
        .unwrap();
    while is_up(&node).await {}
    for _ in 0..3 {
        let told = join_all((0..20).map(|_| node.health())).await;
        assert!(told.iter().all(|health| health.store.outage.is_some()), "{told:?}");
        let waiting: i64 = people.query_one(WAITING, &[]).await.unwrap().get(0);
        assert!(waiting <= 1, "{waiting} questions are under way");
    }
    keeper.batch_execute("ROLLBACK; BEGIN; SELECT FROM store FOR UPDATE").await.unwrap();
    // The store answers, though no beat comes through.
    while !is_up(&node).await {}
    keeper.batch_execute("ROLLBACK").await.unwrap();
    assert!(is_up(&node).await);
}
