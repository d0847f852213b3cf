//! `/readyz` and `/metrics` while Postgres or Redis are down, and connections with TLS.

use std::fs;
use std::time::{Duration, Instant};

use runwire_engines::{Postgres, PostgresOptions, Redis, RedisOptions};
use serde_json::{Value, json};

use crate::command::{TIMEOUT, run};
use crate::crash::http::{Answer, get};
use crate::server::Server;

/// Asks until the answer is as it should be.
#[track_caller]
fn wait_for(server: &Server, what: &str, is_right: impl Fn(&Answer) -> bool) -> Value {
    let begun = Instant::now();
    loop {
        let answer = get(server.address(), "/readyz").unwrap();
        if is_right(&answer) {
            return answer.json();
        }
        assert!(begun.elapsed() < TIMEOUT, "{what}: {answer:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn is_all_up(answer: &Answer) -> bool {
    let up = json!({
        "ready": true,
        "store": {"kind": "postgres", "state": "up"},
        "tail": {"kind": "redis", "state": "up"},
    });
    answer.status == 200 && answer.json() == up
}

fn metric(server: &Server, name: &str) -> f64 {
    let text = get(server.address(), "/metrics").unwrap().body;
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("there is no {name}:\n{text}")).parse().unwrap()
}

#[test]
fn readiness_names_what_is_away_and_since_when() {
    let (mut postgres, mut redis) = (Postgres::start().unwrap(), Redis::start().unwrap());
    let (store, tail) = (postgres.create_database("wire").unwrap(), redis.url());
    let server = Server::start_with(&["--store", &store, "--tail", &tail]);
    wait_for(&server, "all is there", is_all_up);
    assert_eq!((metric(&server, "runwire_tail_up"), metric(&server, "runwire_store_up")), (1.0, 1.0));
    assert_eq!((metric(&server, "runwire_nodes_alive"), metric(&server, "runwire_on_duty")), (1.0, 1.0));
    assert!(metric(&server, "runwire_store_connections") >= 1.0);

    redis.kill();
    let told = wait_for(&server, "Redis is away", |answer| answer.json()["tail"]["state"] == "away");
    // Slower, and ready all the same.
    assert_eq!((&told["ready"], &told["store"]["state"]), (&json!(true), &json!("up")), "{told}");
    assert!(told["tail"]["since"].is_string() && told["tail"]["reason"].is_string(), "{told}");
    assert_eq!(metric(&server, "runwire_tail_up"), 0.0);
    redis.restart().unwrap();
    wait_for(&server, "Redis is back", is_all_up);

    postgres.stop();
    let told = wait_for(&server, "Postgres is away", |answer| answer.status == 503);
    assert_eq!((&told["code"], &told["ready"]), (&json!("store_unavailable"), &json!(false)), "{told}");
    assert_eq!(
        (&told["store"]["kind"], &told["store"]["state"]),
        (&json!("postgres"), &json!("away")),
        "{told}"
    );
    assert!(told["store"]["since"].is_string() && told["store"]["reason"].is_string(), "{told}");
    // The process itself is well, and tells its figures.
    assert_eq!(get(server.address(), "/healthz").unwrap().status, 200);
    assert_eq!((metric(&server, "runwire_store_up"), metric(&server, "runwire_tail_up")), (0.0, 1.0));
    postgres.restart().unwrap();
    wait_for(&server, "Postgres is back", |answer| {
        is_all_up(answer) && server.log().contains("the store is back")
    });
    assert!(metric(&server, "runwire_store_connections_lost_total") >= 1.0);
}

#[test]
fn readiness_answers_soon_where_postgres_is_silent() {
    let mut postgres = Postgres::start().unwrap();
    let server = Server::start_with(&["--store", &postgres.create_database("wire").unwrap()]);
    let up = json!({"ready": true, "store": {"kind": "postgres", "state": "up"}});
    wait_for(&server, "all is there", |answer| answer.json() == up);
    postgres.pause();
    let told = wait_for(&server, "Postgres is silent", |answer| answer.status == 503);
    assert_eq!(told["store"]["state"], "away", "{told}");
    postgres.resume();
    wait_for(&server, "Postgres answers again", |answer| answer.json() == up);
}

#[test]
fn both_ways_can_be_secured_and_a_certificate_that_nobody_vouches_for_is_refused() {
    let postgres = Postgres::start_with(PostgresOptions { tls: true, ..PostgresOptions::default() }).unwrap();
    let redis = Redis::start_with(RedisOptions { tls: true, ..RedisOptions::default() }).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let (store_roots, tail_roots) = (folder.path().join("postgres.pem"), folder.path().join("redis.pem"));
    fs::write(&store_roots, postgres.certificate().unwrap()).unwrap();
    fs::write(&tail_roots, redis.certificate().unwrap()).unwrap();
    let address = format!("postgres://runwire@{}/postgres", postgres.address());
    let store = format!("{address}?sslmode=verify-full&sslrootcert={}", store_roots.display());
    let (tail, roots) = (redis.url(), tail_roots.to_str().unwrap());
    let server = Server::start_with(&["--store", &store, "--tail", &tail, "--tail-trust", roots]);
    wait_for(&server, "both are reached", is_all_up);
    let used = postgres.query("postgres", "select count(*) > 0 from pg_stat_ssl where ssl").unwrap();
    assert_eq!(used, "t");

    let strange = format!("{address}?sslmode=verify-full");
    let outcome = run(&["serve", "--listen", "127.0.0.1:0", "--store", &strange], "");
    assert_eq!(outcome.code, 1, "{}", outcome.stderr);
    assert!(outcome.stderr.contains("TLS"), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("sslrootcert"), "{}", outcome.stderr);
    // A tail that is not trusted is one that is away: events arrive all the same.
    let server = Server::start_with(&["--store", &store, "--tail", &tail]);
    let told = wait_for(&server, "Redis is not trusted", |answer| {
        answer.json()["tail"]["state"] == "away" && server.log().contains("Redis is away")
    });
    assert_eq!(told["ready"], true, "{told}");
}
