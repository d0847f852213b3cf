//! The command line on a store in Postgres: what it needs, what it says where that is missing, and what it never says.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::thread;

use runwire_engines::{Postgres, PostgresOptions, Redis, RedisOptions};
use rustix::process::Signal;
use tempfile::NamedTempFile;

use crate::command::{Outcome, example, run};
use crate::crash::http::get;
use crate::server::Server;

const PASSWORD: &str = "s3cret/@:word";
/// The same, as it is written in an address.
const ENCODED_PASSWORD: &str = "s3cret%2F%40%3Aword";

/// A Postgres that asks for passwords, with a database `wire` of a user `ann`.
struct Guarded {
    server: Postgres,
    _rules: NamedTempFile,
}

impl Guarded {
    fn start() -> Self {
        let mut rules = NamedTempFile::new().unwrap();
        writeln!(rules, "local all all trust\nhost all all 127.0.0.1/32 scram-sha-256").unwrap();
        // The server is somebody else.
        fs::set_permissions(rules.path(), fs::Permissions::from_mode(0o644)).unwrap();
        let settings = vec![format!("hba_file={}", rules.path().display())];
        let server =
            Postgres::start_with(PostgresOptions { settings, ..PostgresOptions::default() }).unwrap();
        for statement in [
            &format!("create role ann login password '{PASSWORD}'"),
            &format!("create role bob login password '{PASSWORD}'"),
            "create database wire owner ann",
        ] {
            server.query("postgres", statement).unwrap();
        }
        Self { server, _rules: rules }
    }

    fn url(&self, user: &str, password: &str, database: &str) -> String {
        format!("postgres://{user}:{password}@{}/{database}", self.server.address())
    }

    fn own(&self) -> String {
        self.url("ann", ENCODED_PASSWORD, "wire")
    }
}

/// Makes sure that a command did not do its work, said why and what helps, and no password.
#[track_caller]
fn refused(outcome: &Outcome, why: &str, hint: &str) {
    // Not 3: waiting would not help.
    assert_eq!((outcome.code, outcome.stdout.as_str()), (1, ""), "{}", outcome.stderr);
    assert!(outcome.stderr.contains(why) && outcome.stderr.contains(hint), "{}", outcome.stderr);
    assert!(!outcome.stderr.contains("s3cret"), "{}", outcome.stderr);
}

#[test]
fn what_is_written_is_there_after_a_restart_and_a_password_is_shown_nowhere() {
    let postgres = Guarded::start();
    let options = RedisOptions { password: Some("s3cret-too".to_owned()), ..RedisOptions::default() };
    let redis = Redis::start_with(options).unwrap();
    let (store, tail) = (postgres.own(), redis.url());
    let arguments = ["--store", &store, "--tail", &tail, "--log-level", "trace"];
    let mut server = Server::start_with(&arguments);
    let pushed = run(&["push", "r1", "--end", &example("hello.loom.ndjson"), "--url", &server.url()], "");
    assert_eq!(pushed.code, 0, "{}", pushed.stderr);
    let read =
        |server: &Server| run(&["tail", "r1", "--dialect", "runwire", "--url", &server.url()], "").stdout;
    let before = read(&server);
    assert!(before.contains("run.completed"), "{before}");
    assert!(server.stop().success(), "{}", server.log());
    server.restart();
    assert_eq!(read(&server), before);
    for path in ["/", "/readyz", "/metrics", "/openapi.json", "/v1/agents", "/nothing"] {
        let answer = get(server.address(), path).unwrap();
        assert!(!answer.body.contains("s3cret"), "{path}: {}", answer.body);
    }
    server.kill();
    let log = server.log();
    assert!(log.contains("postgres://ann:***@"), "{log}");
    assert!(!log.contains("s3cret"), "{log}");
}

#[test]
fn what_will_not_pass_ends_the_start_at_once_with_advice() {
    let postgres = Guarded::start();
    let serve = |url: &str| run(&["serve", "--listen", "127.0.0.1:0", "--store", url], "");
    refused(
        &serve(&postgres.url("ann", "wrong", "wire")),
        "password authentication failed",
        "check user and password",
    );
    refused(
        &serve(&postgres.url("ann", ENCODED_PASSWORD, "wier")),
        "\"wier\" does not exist",
        "CREATE DATABASE",
    );
    refused(&serve(&postgres.url("bob", ENCODED_PASSWORD, "wire")), "permission denied", "ALTER DATABASE");
    postgres.server.query("postgres", "alter role ann set synchronous_commit = off").unwrap();
    refused(&serve(&postgres.own()), "synchronous_commit is `off`", "SET synchronous_commit = on");
    let unreadable = serve("postgres://ann:s3cret@127.0.0.1:port/wire");
    assert_ne!(unreadable.code, 0);
    assert!(!unreadable.stderr.contains("s3cret"), "{}", unreadable.stderr);
}

#[test]
fn a_database_of_another_program_is_left_alone_but_for_a_schema_of_our_own() {
    let postgres = Postgres::start().unwrap();
    for (taken, names) in [
        ("create table store (id int, version text)", "are: store"),
        ("create table store (version int); create table run ()", "are: store"),
        ("create table thread (id int); create view run as select 1", "are: run, thread"),
        ("create sequence run_id; create type node as enum ('a')", "are: node, run_id"),
    ] {
        postgres.query("postgres", "drop database if exists wire").unwrap();
        let store = postgres.create_database("wire").unwrap();
        taken.split("; ").for_each(|taken| drop(postgres.query("wire", taken).unwrap()));
        let tables = "select string_agg(relname, ' ' order by oid) from pg_class where relnamespace = 'public'::regnamespace";
        let before = postgres.query("wire", tables).unwrap();
        for command in [&["migrate"][..], &["serve", "--listen", "127.0.0.1:0"]] {
            let outcome = run(&[command, &["--store", &store]].concat(), "");
            refused(&outcome, names, "a database of its own");
        }
        assert_eq!(postgres.query("wire", tables).unwrap(), before);

        let apart = format!("{store}?options=-c%20search_path%3Drunwire");
        refused(&run(&["migrate", "--store", &apart], ""), "the schema is not there", "CREATE SCHEMA");
        postgres.query("wire", "create schema runwire").unwrap();
        let mut server = Server::start_with(&["--store", &apart]);
        let url = server.url();
        let pushed = run(&["push", "r1", "--end", &example("hello.loom.ndjson"), "--url", &url], "");
        assert_eq!(pushed.code, 0, "{}", pushed.stderr);
        assert!(
            run(&["tail", "r1", "--dialect", "runwire", "--url", &url], "").stdout.contains("run.completed")
        );
        assert!(server.stop().success(), "{}", server.log());
        assert_eq!(postgres.query("wire", tables).unwrap(), before);
    }
}

#[test]
fn a_server_waits_for_a_postgres_that_is_not_there_yet() {
    let mut postgres = Postgres::start().unwrap();
    let store = postgres.create_database("wire").unwrap();
    postgres.stop();
    let started = thread::scope(|threads| {
        let starting = threads.spawn(|| Server::start_with(&["--store", &store]));
        postgres.restart().unwrap();
        starting.join().unwrap()
    });
    assert_eq!(get(started.address(), "/readyz").unwrap().status, 200);
}

#[test]
fn a_signal_ends_a_server_that_waits_for_its_store() {
    let mut postgres = Postgres::start().unwrap();
    let store = postgres.url("postgres");
    postgres.stop();
    let mut command = crate::command::runwire(&["serve", "--listen", "127.0.0.1:0", "--store", &store]);
    let mut child = command.spawn().unwrap();
    let stderr = std::io::BufReader::new(child.stderr.take().unwrap());
    let mut lines = std::io::BufRead::lines(stderr).map(Result::unwrap);
    assert!(lines.any(|line| line.contains("waiting for the store") && line.contains("Connection refused")));
    rustix::process::kill_process(rustix::process::Pid::from_child(&child), Signal::TERM).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn migrate_makes_a_store_once_and_leaves_a_newer_one_alone() {
    let postgres = Guarded::start();
    let own = postgres.own();
    let migrate = || run(&["migrate", "--store", &own], "");
    let outcome = migrate();
    assert_eq!((outcome.code, outcome.stderr.as_str()), (0, ""));
    let shown = format!("postgres://ann:***@{}/wire", postgres.server.address());
    assert_eq!(outcome.stdout, format!("{shown}: from version 0 to version 4\n"));
    assert_eq!(migrate().stdout, format!("{shown}: version 4, nothing to do\n"));
    // Whoever serves need not be who migrates.
    for statement in [
        "grant select, insert, update, delete on all tables in schema public to bob",
        "grant usage on all sequences in schema public to bob",
    ] {
        postgres.server.query("wire", statement).unwrap();
    }
    let mut server = Server::start_with(&["--store", &postgres.url("bob", ENCODED_PASSWORD, "wire")]);
    let pushed = run(&["push", "r1", "--end", &example("hello.loom.ndjson"), "--url", &server.url()], "");
    assert_eq!(pushed.code, 0, "{}", pushed.stderr);
    assert!(server.stop().success());
    postgres.server.query("wire", "update store set version = 99").unwrap();
    refused(&migrate(), "has schema version 99", "use a newer runwire");
    let serve = run(&["serve", "--listen", "127.0.0.1:0", "--store", &own], "");
    refused(&serve, "has schema version 99", "use a newer runwire");
    assert_eq!(postgres.server.query("wire", "select version from store").unwrap(), "99");
    postgres.server.query("wire", "update store set version = 3").unwrap();
    refused(&migrate(), "has schema version 3", "import them into a new store");
}

#[test]
fn nodes_that_start_at_once_on_an_empty_store_serve_each_others_runs() {
    let postgres = Postgres::start().unwrap();
    let store = postgres.create_database("wire").unwrap();
    let start = || Server::start_with(&["--store", &store]);
    let (one, another) = thread::scope(|threads| {
        let (one, another) = (threads.spawn(start), threads.spawn(start));
        (one.join().unwrap(), another.join().unwrap())
    });
    let pushed = run(&["push", "r1", "--end", &example("hello.loom.ndjson"), "--url", &one.url()], "");
    assert_eq!(pushed.code, 0, "{}", pushed.stderr);
    let read =
        |server: &Server| run(&["tail", "r1", "--dialect", "ag-ui", "--url", &server.url()], "").stdout;
    assert_eq!(read(&one), read(&another));
    assert!(read(&another).contains("RUN_FINISHED"));
}
