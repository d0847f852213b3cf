//! TLS to Postgres, as the address requests it in libpq's terms.

use runwire_engines::{Postgres as Engine, PostgresOptions};
use runwire_log::LogNode;
use runwire_log::postgres::{PgOpenError, PgOptions, PostgresLog};

/// An engine with a certificate for `localhost` and `127.0.0.1`, and a file that holds it.
fn engine() -> (Engine, tempfile::NamedTempFile) {
    let engine = Engine::start_with(PostgresOptions { tls: true, ..PostgresOptions::default() }).unwrap();
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), engine.certificate().unwrap()).unwrap();
    (engine, file)
}

/// Opens a store by a host's name and what its address says besides.
async fn open(engine: &Engine, host: &str, query: &str) -> Result<PostgresLog, PgOpenError> {
    let place = engine.url("postgres").replace("127.0.0.1", host);
    let url = format!("{}?{query}", place.split('?').next().unwrap_or(&place));
    tokio::task::spawn_blocking(move || PostgresLog::open(&url, &PgOptions::default())).await.unwrap()
}

/// Counts the connections of nodes, and those of them that are secured.
fn connections(engine: &Engine) -> (String, String) {
    let count = |what: &str| {
        let sql = "SELECT count(*) FROM pg_stat_activity JOIN pg_stat_ssl USING (pid) \
                   WHERE application_name = 'runwire'";
        engine.query("postgres", &format!("{sql} {what}")).unwrap()
    };
    (count(""), count("AND ssl"))
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_use_tls_unless_the_address_forbids_it() {
    let (engine, _file) = engine();
    for (query, is_secured) in [("", true), ("sslmode=require", true), ("sslmode=disable", false)] {
        let store = open(&engine, "localhost", query).await.unwrap();
        store.ready().await.unwrap();
        let (all, secured) = connections(&engine);
        assert_eq!(secured, if is_secured { all } else { "0".to_owned() }, "{query}");
        store.close().await;
        drop(store);
        while connections(&engine).0 != "0" {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_is_checked_as_far_as_the_address_says() {
    let (engine, file) = engine();
    let roots = format!("sslrootcert={}", file.path().display());
    for (host, query) in [
        ("localhost", format!("sslmode=verify-full&{roots}")),
        ("127.0.0.1", format!("sslmode=verify-full&{roots}")),
        // The certificate is of one who may sign, though not for this name.
        ("127.1.1.1.nip.invalid&hostaddr=127.0.0.1", format!("sslmode=verify-ca&{roots}")),
        ("localhost", format!("sslmode=require&{roots}")),
    ] {
        let (host, query) = match host.split_once('&') {
            Some((host, address)) => (host, format!("{query}&{address}")),
            None => (host, query),
        };
        if let Err(error) = open(&engine, host, &query).await {
            panic!("{host} {query}: {error}");
        }
    }
    let elsewhere = format!("sslmode=verify-full&{roots}&hostaddr=127.0.0.1");
    for (host, query) in [
        // Nobody that the system trusts has signed it.
        ("localhost", "sslmode=verify-full"),
        ("localhost", "sslmode=verify-ca"),
        ("elsewhere.invalid", &elsewhere),
    ] {
        let refused = open(&engine, host, query).await.map(drop).unwrap_err();
        assert!(refused.to_string().contains("certificate") && !refused.may_pass(), "{query}: {refused}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_without_tls_is_refused_where_the_address_wants_it() {
    let engine = Engine::start().unwrap();
    assert!(open(&engine, "localhost", "sslmode=prefer").await.is_ok());
    let refused = open(&engine, "localhost", "sslmode=require").await.map(drop).unwrap_err();
    assert!(refused.to_string().contains("does not support TLS"), "{refused}");
    assert!(!refused.may_pass());
}
