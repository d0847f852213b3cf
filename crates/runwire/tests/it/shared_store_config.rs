//! Settings of a shared store and tail: valid combinations, and hidden passwords.

use std::fs;

use crate::command::run;
use crate::config::ConfigFolder;

const STORE: &str = "postgres://ann:s3cret@db.example/runwire";
const TAIL: &str = "rediss://:s3cret@redis.example:6380";

#[test]
fn a_password_is_shown_nowhere() {
    let file = format!("store = \"{STORE}\"\ntail = \"{TAIL}\"\n");
    for arguments in [&["check-config"][..], &["check-config", "--json"]] {
        let outcome = ConfigFolder::with(&file).run(&[], arguments);
        assert_eq!(outcome.code, 0, "{}", outcome.stderr);
        assert!(outcome.stdout.contains("postgres://ann:***@db.example/runwire"), "{}", outcome.stdout);
        assert!(outcome.stdout.contains("rediss://:***@redis.example:6380"), "{}", outcome.stdout);
        assert!(!outcome.stdout.contains("s3cret"), "{}", outcome.stdout);
    }
}

#[test]
fn a_password_in_a_mistake_is_not_shown_either() {
    let wrong = STORE.replace("postgres:", "postgress:");
    let in_file = ConfigFolder::with(&format!("store = \"{wrong}\"\n")).run(&[], &["check-config"]);
    let in_variable = ConfigFolder::with("").run(&[("RUNWIRE_STORE", &wrong)], &["check-config"]);
    for (outcome, code) in [
        (in_file, 1),
        (in_variable, 1),
        (run(&["serve", "--store", &wrong], ""), 2),
        (run(&["serve", &format!("--store={wrong}")], ""), 2),
        (run(&["serve", "--tail", &wrong], ""), 2),
        (run(&["serve", &wrong], ""), 2),
    ] {
        assert_eq!(outcome.code, code, "{}", outcome.stderr);
        assert!(outcome.stderr.contains("postgress://ann:***@db.example"), "{}", outcome.stderr);
        assert!(!outcome.stderr.contains("s3cret"), "{}", outcome.stderr);
    }
}

#[test]
fn a_tail_needs_a_store_that_nodes_can_share() {
    let place = ConfigFolder::with("tail = \"redis://127.0.0.1\"\n");
    let hint =
        "  hint: leave the tail out, or share a store: `--store postgres://USER:PASSWORD@HOST/DATABASE`\n";
    let said = "a SQLite store is one server's alone, which needs to tell nobody of new events\n";
    let outcome = place.run(&[], &["serve", "--listen", "127.0.0.1:0"]);
    assert_eq!((outcome.code, outcome.stderr), (1, format!("runwire.toml:1: `tail`: {said}{hint}")));
    let outcome = place.run(&[], &["serve", "--tail", "redis://127.0.0.1"]);
    assert_eq!((outcome.code, outcome.stderr), (1, format!("--tail: {said}{hint}")));
    assert_eq!(place.run(&[("RUNWIRE_STORE", STORE)], &["check-config"]).code, 0);
}

#[test]
fn certificates_that_cannot_be_read_or_that_nobody_needs_are_told() {
    let place =
        ConfigFolder::with(&format!("store = \"{STORE}\"\ntail = \"{TAIL}\"\ntail_trust = \"none.pem\"\n"));
    let outcome = place.run(&[], &["check-config"]);
    assert_eq!(outcome.code, 1);
    assert!(
        outcome.stderr.starts_with("runwire.toml:3: `tail_trust`: cannot read none.pem: "),
        "{}",
        outcome.stderr
    );
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(&file, "").unwrap();
    let outcome = run(&["check-config", "--tail-trust", file.path().to_str().unwrap()], "");
    assert_eq!(outcome.code, 1);
    assert!(outcome.stderr.starts_with("--tail-trust: there is no tail whose"), "{}", outcome.stderr);
}
