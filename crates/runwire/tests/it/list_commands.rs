//! `runs`, `show`, `completions` and `man`.

use std::fs;

use serde_json::Value;

use crate::command::{run, runwire};
use crate::server::Server;
use crate::terminal::Terminal;

const CALLS: &str = r#"{"type":"run.started","message":"tea?"}
{"type":"tool.called","call_id":"c","name":"weigh","arguments":{"leaf":"龙井"}}
{"type":"tool.finished","call_id":"c","status":"success","result":{"g":3},"duration_ms":12}
{"type":"interaction.requested","interaction_id":"i","kind":"approval","title":"Pour?"}
{"type":"usage","prompt_tokens":7,"completion_tokens":5,"total_tokens":12}
"#;

fn served() -> Server {
    let server = Server::start();
    for number in 0..5 {
        let frames = "{\"type\":\"run.started\"}\n{\"type\":\"run.completed\"}\n";
        let pushed = run(&["push", &format!("r{number}"), "--thread", "t", "--url", &server.url()], frames);
        assert_eq!(pushed.code, 0, "{}", pushed.stderr);
    }
    let pushed = run(&["push", "asks", "--url", &server.url()], CALLS);
    assert_eq!(pushed.code, 0, "{}", pushed.stderr);
    server
}

fn ids(server: &Server, arguments: &[&str]) -> Vec<String> {
    let listed = run(&[&["runs", "--json", "--url", &server.url()], arguments].concat(), "");
    assert_eq!(listed.code, 0, "{}", listed.stderr);
    let page: Value = serde_json::from_str(&listed.stdout).unwrap();
    page["runs"].as_array().unwrap().iter().map(|run| run["run_id"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn runs_are_filtered_by_status_agent_thread_and_age() {
    let server = served();
    assert_eq!(ids(&server, &["--all"]), ["asks", "r4", "r3", "r2", "r1", "r0"]);
    assert_eq!(ids(&server, &["--limit", "2"]), ["asks", "r4"]);
    assert_eq!(ids(&server, &["--status", "suspended"]), ["asks"]);
    assert_eq!(ids(&server, &["--thread", "t", "--limit", "3"]), ["r4", "r3", "r2"]);
    assert_eq!(ids(&server, &["--since", "1h", "--limit", "300"]).len(), 6);
    assert!(ids(&server, &["--since", "0s"]).is_empty());
    assert!(ids(&server, &["--agent", "nobody"]).is_empty());
    let page = run(&["runs", "--json", "--limit", "2", "--url", &server.url()], "").stdout;
    assert_eq!(serde_json::from_str::<Value>(&page).unwrap()["next"], "r4");
    let table = run(&["runs", "--url", &server.url()], "").stdout;
    assert!(table.starts_with("RUN ") && table.lines().count() == 7, "{table}");
    let none = run(&["runs", "--agent", "nobody", "--url", &server.url()], "");
    assert_eq!((none.code, none.stdout.as_str()), (0, ""));
    for wrong in [&["--since", "soon"][..], &["--since", "2"], &["--limit", "0"], &["--all", "--limit", "3"]]
    {
        assert_eq!(run(&[&["runs"], wrong].concat(), "").code, 2, "{wrong:?}");
    }
}

#[test]
fn a_run_is_shown_with_its_figures_questions_and_events() {
    let server = served();
    let shown = run(&["show", "asks", "--url", &server.url()], "").stdout;
    for part in ["suspended", "5 records", "1 tool call", "12 (7 in the prompt)", "weigh(", "龙井", "Pour?"]
    {
        assert!(shown.contains(part), "`{part}` is missing:\n{shown}");
    }
    assert!(!shown.contains("warnings"), "{shown}");
    let push = ["push", "odd", "--dialect", "loom", "--url", &server.url()];
    run(&push, r#"{"type":"node_exit","id":"think","result":"Ok"}"#);
    let odd = run(&["show", "odd", "--url", &server.url()], "").stdout;
    assert!(
        odd.contains("warnings  1\n  seq 1: field `id`: no node `think` is open here (loom §4.2) [not_open]"),
        "{odd}"
    );
    let events = run(&["show", "asks", "--events", "--url", &server.url()], "").stdout;
    let lines: Vec<&str> = events.lines().collect();
    assert_eq!(lines.len(), 6, "{events}");
    for (line, part) in
        lines.iter().zip(["run.started", "tool.called", "tool.finished", "interaction.requested"])
    {
        assert!(line.contains(part), "{line}");
    }
    assert!(lines[1].contains("weigh({\"leaf\":\"龙井\"})"), "{}", lines[1]);
    let events = run(&["show", "asks", "--events", "--json", "--url", &server.url()], "").stdout;
    assert!(
        events.lines().all(|line| serde_json::from_str::<Value>(line).unwrap()["seq"].is_u64()),
        "{events}"
    );
    let unknown = run(&["show", "nobody", "--events", "--url", &server.url()], "");
    assert_eq!(unknown.code, 1, "{}", unknown.stderr);
}

#[test]
fn every_shell_gets_its_completions() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = run(&["completions", shell], "");
        assert_eq!(script.code, 0);
        assert!(script.stdout.contains("export") && script.stdout.contains("no-verify"), "{shell}");
    }
    assert_eq!(run(&["completions", "cmd"], "").code, 2);
}

#[test]
fn the_manual_has_a_page_for_each_command() {
    let folder = tempfile::tempdir().unwrap();
    let pages = folder.path().join("man1");
    let written = run(&["man", pages.to_str().unwrap()], "");
    assert_eq!(written.code, 0, "{}", written.stderr);
    let page = fs::read_to_string(pages.join("runwire-export.1")).unwrap();
    assert!(page.contains(".TH runwire-export 1") && page.contains("backup.ndjson"), "{page}");
    let first = run(&["man"], "");
    assert!(
        first.stdout.contains(".TH runwire 1") && first.stdout.contains("runwire\\-export(1)"),
        "{}",
        first.stdout
    );
    assert_eq!(run(&["man", "/proc/nowhere"], "").code, 3);
}

#[test]
fn lists_and_events_fit_a_terminal_of_40_columns() {
    let server = served();
    for arguments in [&["runs"][..], &["show", "asks", "--events"]] {
        let mut terminal =
            Terminal::start(&mut runwire(&[arguments, &["--url", &server.url()]].concat()), 40);
        assert_eq!(terminal.wait().code(), Some(0));
        let written = String::from_utf8_lossy(&terminal.written).into_owned();
        let rows: Vec<_> = written.split("\r\n").filter(|row| !row.contains("<the end>")).collect();
        assert!(rows.len() >= 6, "{written}");
        for row in rows {
            assert!(unicode_width::UnicodeWidthStr::width(row) <= 40, "{row}");
        }
    }
}
