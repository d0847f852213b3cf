//! Writers use index scans, also in a young store without statistics.

use runwire_engines::{Postgres as Engine, PostgresOptions};
use runwire_log::postgres::PgOptions;
use runwire_log::{LogEvents, LogNode};

use super::failures::frame;

const RUNS: usize = 400;

#[tokio::test(flavor = "multi_thread")]
async fn writes_to_a_young_store_cost_the_same_however_much_it_holds() {
    // Nothing finds out what the tables hold.
    let settings = vec!["autovacuum=off".into()];
    let engine = Engine::start_with(PostgresOptions { settings, ..Default::default() }).unwrap();
    let node = super::open(engine.url("postgres"), PgOptions::default()).await;
    for half in 0..2 {
        let all = (0..RUNS).map(|number| (format!("run{}", half * RUNS / 2 + number), number));
        for (run, number) in all {
            node.append(frame(&run, &number.to_string())).await.unwrap();
        }
    }
    node.close().await;
    drop(node);
    let count = |what: &str| -> usize {
        let sql = format!(
            "SELECT sum({what}) FROM pg_stat_user_tables WHERE relname IN ('thread', 'run', 'producer')"
        );
        tokio::task::block_in_place(|| engine.query("postgres", &sql)).unwrap().parse().unwrap()
    };
    // Each connection tells what it has counted when it has ended.
    while count("n_tup_ins") < 3 * RUNS {
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    let (walked, found) = (count("seq_tup_read"), count("idx_tup_fetch"));
    assert!(walked + found < 2 * RUNS * 50, "{walked} rows were walked over, {found} were found by an index");
}
