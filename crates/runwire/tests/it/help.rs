//! Help texts: every command has a description, examples and exit codes.

use crate::command::run;

const COMMANDS: [&str; 20] = [
    "convert",
    "validate",
    "dev",
    "serve",
    "check-config",
    "push",
    "tail",
    "replay",
    "run",
    "exec",
    "inbox",
    "answer",
    "cancel",
    "retry",
    "runs",
    "show",
    "export",
    "import",
    "completions",
    "man",
];

#[test]
fn the_overview_names_every_command_and_every_exit_code() {
    let help = run(&["--help"], "");
    assert_eq!(help.code, 0);
    for command in COMMANDS {
        assert!(help.stdout.contains(&format!("\n  {command}")), "{command} is missing:\n{}", help.stdout);
    }
    for code in ["\n  0  ", "\n  1  ", "\n  2  ", "\n  3  ", "\n 70  "] {
        assert!(help.stdout.contains(code), "`{code}` is missing:\n{}", help.stdout);
    }
}

#[test]
fn every_command_teaches_by_examples() {
    for command in COMMANDS {
        let help = run(&[command, "--help"], "");
        assert_eq!(help.code, 0);
        assert!(help.stdout.contains("Examples:"), "{command} has no examples");
        assert!(help.stdout.contains(&format!("runwire {command}")), "{command} does not show itself");
        assert!(help.stdout.contains("Exit codes:"), "{command} does not name its exit codes");
        let short = run(&[command, "-h"], "").stdout;
        assert!(short.contains("Examples:") && short.len() <= help.stdout.len());
    }
}

#[test]
fn what_is_not_understood_is_exit_code_2() {
    for arguments in [
        &["sreve"][..],
        &["serve", "--listen", "7420"],
        &["serve", "--store", "mysql://localhost/runwire"],
        &["serve", "--tail", "localhost:6379"],
        &["migrate", "--store", "runwire.db"],
        &["serve", "--lease", "0"],
        &["serve", "--retention-bytes", "10 gigs"],
        &["push"],
        &["push", "r1", "--epoch", "1"],
        &["exec"],
        &["exec", "--grace", "soon", "--", "true"],
        &["replay", "r1", "--speed", "0"],
        &["replay", "r1", "-o", "pretty", "--dialect", "loom"],
        &["run"],
        &["run", "a", "--input", "{"],
        &["cancel"],
        &["retry"],
        &["push", "--to-thread", "t1", "--thread", "t2"],
        &["tail", "r1", "--after", "yesterday"],
        &["tail", "r1", "--attach", "--after", "1-0"],
        &["tail", "r1", "-o", "text", "--dialect", "ag-ui"],
        &["tail", "r1", "--url", "ftp://example.org"],
        &["answer"],
        &["answer", "r1", "q1", "--approve", "--reject"],
        &["answer", "r1", "q1", "--cancel", "--values", "{}"],
        &["inbox", "--limit", "0"],
        &["runs", "--status", "asleep"],
        &["runs", "--limit", "0"],
        &["show"],
    ] {
        let outcome = run(arguments, "");
        assert_eq!(outcome.code, 2, "{arguments:?}: {}", outcome.stderr);
        assert!(outcome.stdout.is_empty() && !outcome.stderr.is_empty(), "{arguments:?}");
    }
}

#[test]
fn a_store_that_cannot_be_used_is_told_which_can() {
    let outcome = run(&["serve", "--store", "mysql://localhost/runwire"], "");
    let stores =
        "must be `sqlite:PATH`, such as `sqlite:runwire.db`, or `postgres://USER:PASSWORD@HOST/DATABASE`";
    assert!(outcome.stderr.contains(stores), "{}", outcome.stderr);
}
