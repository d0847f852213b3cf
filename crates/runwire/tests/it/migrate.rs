//! `runwire migrate` on SQLite; `cluster::command` tests it on Postgres.

use crate::command::{run, run_command, runwire};
use crate::server::Server;

#[test]
fn a_store_is_made_once_and_then_left_as_it_is() {
    let directory = tempfile::tempdir().unwrap();
    let migrate = || run_command(runwire(&["migrate"]).current_dir(directory.path()), "");
    let outcome = migrate();
    assert_eq!((outcome.code, outcome.stderr.as_str()), (0, ""));
    assert!(
        outcome.stdout.starts_with("sqlite:runwire.db: from version 0 to version "),
        "{}",
        outcome.stdout
    );
    let outcome = migrate();
    assert_eq!((outcome.code, outcome.stderr.as_str()), (0, ""));
    assert!(outcome.stdout.ends_with(", nothing to do\n"), "{}", outcome.stdout);
}

#[test]
fn a_store_that_is_served_or_of_another_program_is_not_touched() {
    let server = Server::start();
    let served = format!("sqlite:{}", server.store().display());
    let outcome = run(&["migrate", "--store", &served], "");
    assert_eq!((outcome.code, outcome.stdout.as_str()), (3, ""));
    assert!(outcome.stderr.contains("in use by another server"), "{}", outcome.stderr);
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(&file, "not a database, and long enough to be told from an empty one").unwrap();
    let outcome = run(&["migrate", "--store", &format!("sqlite:{}", file.path().display())], "");
    assert_eq!((outcome.code, outcome.stdout.as_str()), (3, ""));
    assert!(outcome.stderr.contains("cannot open the store"), "{}", outcome.stderr);
}

#[test]
fn a_mistake_in_the_configuration_is_told_before_anything_is_made() {
    let place = crate::config::ConfigFolder::with("stroe = \"sqlite:runwire.db\"\n");
    let outcome = place.run(&[], &["migrate"]);
    assert_eq!((outcome.code, outcome.stdout.as_str()), (1, ""));
    assert!(outcome.stderr.contains("`stroe`: is no setting"), "{}", outcome.stderr);
}
