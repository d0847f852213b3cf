//! `runwire exec`: output, frames, stray lines and exit codes.

use std::fs;

use serde_json::Value;

use crate::command::{Outcome, run, runwire};
use crate::server::Server;
use crate::terminal::Terminal;

fn exec(server: &Server, options: &[&str], script: &str) -> Outcome {
    let url = server.url();
    let all = [&["exec", "--url", &url, "--run", "r1"], options, &["--", "sh", "-c", script]].concat();
    run(&all, "")
}

/// Returns the run's events without their envelopes.
fn events(server: &Server, run_id: &str) -> Vec<Value> {
    let read = run(&["tail", run_id, "-o", "ndjson", "--url", &server.url()], "");
    assert_eq!(read.code, 0, "{}", read.stderr);
    read.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn types(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["type"].as_str().unwrap()).collect()
}

fn text(server: &Server) -> String {
    run(&["tail", "r1", "-o", "text", "--url", &server.url()], "").stdout
}

const HELLO: &str = r#"
echo '{"type":"run_start","message":"天气如何？"}'
echo '{"type":"message_chunk","content":"晴 🌤 ","id":"n"}'
echo 'to the log' >&2
echo '{"type":"message_chunk","content":"21°C.","id":"n"}'
"#;

#[test]
fn a_programs_output_becomes_a_run_and_exit_0_completes_it() {
    let server = Server::start();
    let outcome = exec(&server, &["--thread", "t1", "--agent", "weather"], HELLO);
    assert_eq!((outcome.code, outcome.stderr.as_str()), (0, "run r1\nto the log\n"));
    assert!(outcome.stdout.contains("晴 🌤 21°C."), "{}", outcome.stdout);
    assert!(outcome.stdout.contains("✓ completed"), "{}", outcome.stdout);
    assert_eq!(text(&server), "晴 🌤 21°C.\n");
    let shown: Value =
        serde_json::from_str(&run(&["show", "r1", "--json", "--url", &server.url()], "").stdout).unwrap();
    let of = |field: &str| shown["run"][field].as_str().unwrap().to_owned();
    assert_eq!(
        (of("status"), of("agent"), of("thread_id")),
        ("completed".into(), "weather".into(), "t1".into())
    );
    assert_eq!(events(&server, "r1")[0]["message"], "天气如何？");
}

#[test]
fn the_programs_exit_code_is_ours_and_fails_the_run() {
    let server = Server::start();
    let outcome = exec(&server, &[], &format!("{HELLO}\nexit 3"));
    assert_eq!(outcome.code, 3);
    let events = events(&server, "r1");
    let error = &events.last().unwrap()["error"];
    assert_eq!((&error["code"], &error["details"]["exit_code"]), (&"exit_status".into(), &3.into()));
    assert!(outcome.stdout.contains("the program ended with exit code 3"), "{}", outcome.stdout);
}

#[test]
fn a_program_that_a_signal_ends_is_told_as_shells_do() {
    let server = Server::start();
    let outcome = exec(&server, &[], &format!("{HELLO}\nkill -9 $$"));
    assert_eq!(outcome.code, 137);
    let events = events(&server, "r1");
    assert_eq!(events.last().unwrap()["error"]["details"]["signal"], 9);
}

#[test]
fn what_the_program_says_of_its_end_wins_over_its_exit() {
    let server = Server::start();
    let outcome = exec(&server, &[], &format!("{HELLO}\necho '{{\"reply\":\"Sunny.\"}}'\nexit 5"));
    assert_eq!(outcome.code, 5);
    assert_eq!(types(&events(&server, "r1")).last(), Some(&"run.completed"));
}

#[test]
fn what_is_written_after_the_runs_end_is_left_out_and_the_program_goes_on() {
    let server = Server::start();
    let script = "echo '{\"type\":\"run_start\"}'; echo '{\"reply\":\"Done.\"}'; echo bye; echo bye; exit 0";
    let outcome = exec(&server, &["--dialect", "loom"], script);
    assert_eq!(outcome.code, 0);
    assert!(outcome.stderr.contains("the run has ended"), "{}", outcome.stderr);
    assert_eq!(types(&events(&server, "r1")).last(), Some(&"run.completed"));
}

#[test]
fn lines_that_are_no_frame_become_foreign_and_cost_nothing_else() {
    let server = Server::start();
    let script = "echo '[INFO] hello'; echo '{\"type\":\"run_start\",\"message\":\"Hi?\"}'; echo noise; \
                  echo '{\"type\":\"message_chunk\",\"content\":7,\"id\":\"n\"}'; \
                  printf '\\377\\376\\n'; echo '{\"type\":\"message_chunk\",\"content\":\"ok\",\"id\":\"n\"}'";
    let outcome = exec(&server, &[], script);
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    assert!(outcome.stderr.contains("line 4: field `content`"), "{}", outcome.stderr);
    let events = events(&server, "r1");
    assert_eq!(events[0]["message"], "Hi?");
    let foreign: Vec<&Value> = events.iter().filter(|event| event["type"] == "foreign").collect();
    let frames: Vec<&Value> = foreign.iter().map(|event| &event["frame"]).collect();
    assert_eq!(frames[..2], [&Value::from("[INFO] hello"), &Value::from("noise")]);
    assert_eq!(frames[2]["content"], 7);
    assert_eq!(frames[3], "\u{fffd}\u{fffd}");
    assert_eq!(text(&server), "ok\n");
}

#[test]
fn lines_that_are_no_frame_become_text_where_that_is_asked_for() {
    let server = Server::start();
    let outcome = exec(&server, &["--text"], "echo '构建中 🛠'; echo '{\"odd\":1}'; printf 'no line end'");
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    assert_eq!(text(&server), "构建中 🛠\n{\"odd\":1}\nno line end\n");
}

#[test]
fn blank_lines_stay_where_they_stand_in_a_text() {
    let server = Server::start();
    let outcome = exec(&server, &["--text"], "printf 'a\n\nb\n\n\n  c\n'");
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    assert_eq!(text(&server), "a\n\nb\n\n\n  c\n");
}

#[test]
fn server_sent_events_are_frames_too() {
    let server = Server::start();
    let script = "printf ': hello\\ndata: {\"type\":\"run_start\"}\\n\\ndata: {\"reply\":\"Hi.\"}\\n\\ndata: [DONE]\\n\\n'";
    let outcome = exec(&server, &["--dialect", "loom"], script);
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    assert_eq!(text(&server), "Hi.\n");
}

#[test]
fn a_line_without_end_is_left_out_and_said_so() {
    let server = Server::start();
    let script = "echo '{\"type\":\"run_start\"}'; head -c 3000000 /dev/zero | tr '\\0' x; echo; echo '{\"reply\":\"Hi.\"}'";
    let outcome = exec(&server, &["--dialect", "loom"], script);
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    let events = events(&server, "r1");
    let notice = events.iter().find(|event| event["type"] == "notice").unwrap();
    assert_eq!(notice["code"], "frame_too_long");
    assert_eq!(text(&server), "Hi.\n");
}

#[test]
fn a_silent_exec_shows_only_the_runs_id() {
    let server = Server::start();
    let url = server.url();
    let outcome = run(&["exec", "-q", "--url", &url, "--", "sh", "-c", HELLO], "");
    assert_eq!((outcome.code, outcome.stderr.as_str()), (0, "to the log\n"));
    let id = outcome.stdout.trim_end();
    assert_eq!(types(&events(&server, id)).last(), Some(&"run.completed"));
}

#[test]
fn a_program_that_cannot_be_run_fails_the_run() {
    let server = Server::start();
    let url = server.url();
    let outcome = run(&["exec", "--run", "r1", "--url", &url, "--", "no-such-program-here"], "");
    assert_eq!(outcome.code, 127);
    assert!(outcome.stderr.contains("cannot run no-such-program-here"), "{}", outcome.stderr);
    assert_eq!(events(&server, "r1").last().unwrap()["error"]["code"], "not_started");
    let directory = server.directory().to_str().unwrap().to_owned();
    assert_eq!(run(&["exec", "--url", &url, "--", &directory], "").code, 126);
}

#[test]
fn without_a_server_or_its_consent_nothing_is_started() {
    let directory = tempfile::tempdir().unwrap();
    let mark = directory.path().join("started");
    let script = format!("touch {}", mark.display());
    let outcome = run(&["exec", "--url", "http://127.0.0.1:9", "--", "sh", "-c", &script], "");
    assert_eq!(outcome.code, 125);
    assert!(
        outcome.stderr.contains("cannot reach") && outcome.stderr.contains("hint:"),
        "{}",
        outcome.stderr
    );
    let server = Server::start();
    assert_eq!(exec(&server, &[], HELLO).code, 0);
    let again = exec(&server, &[], &script);
    assert_eq!(again.code, 125);
    assert!(again.stderr.contains("run r1 has ended: completed"), "{}", again.stderr);
    assert!(!fs::exists(mark).unwrap());
}

#[test]
fn standard_input_is_not_mixed_in() {
    let server = Server::start();
    let url = server.url();
    let script = "echo '{\"type\":\"run_start\"}'; cat > /dev/null; echo '{\"reply\":\"read it all\"}'";
    let all =
        ["exec", "--run", "r1", "--no-stdin", "--dialect", "loom", "--url", &url, "--", "sh", "-c", script];
    let outcome = run(&all, "not for the program\n");
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    assert_eq!(text(&server), "read it all\n");
}

#[test]
fn on_a_terminal_the_run_is_shown_and_the_programs_log_does_not_spoil_it() {
    let server = Server::start();
    let url = server.url();
    let script = "echo '{\"type\":\"tool.called\",\"call_id\":\"c\",\"name\":\"搜索\",\"arguments\":{}}'; \
                  echo 'a line of the log' >&2; \
                  echo '{\"type\":\"tool.finished\",\"call_id\":\"c\",\"status\":\"success\"}'; \
                  echo '{\"type\":\"text.delta\",\"content\":\"好的 👍\"}'";
    let mut command = runwire(&["exec", "--run", "r1", "--url", &url, "--", "sh", "-c", script]);
    let mut terminal = Terminal::start(&mut command, 40);
    assert_eq!(terminal.wait().code(), Some(0));
    for part in ["r1", "搜索", "a line of the log", "好的 👍", "completed"] {
        assert!(terminal.shows(part), "`{part}` is missing:\n{}", terminal.screen.screen().contents());
    }
    assert_eq!(terminal.screen.screen().contents().matches("r1").count(), 1);
    assert!(!terminal.screen.screen().hide_cursor());
}

#[test]
fn a_name_that_the_server_would_start_an_agent_for_is_refused() {
    let server = Server::configured("[agents.mine]\nkind = \"demo\"\nscript = \"endless\"\n");
    let outcome = exec(&server, &["--agent", "mine"], HELLO);
    assert_eq!(outcome.code, 125);
    assert!(outcome.stderr.contains("the server has an agent `mine` of its own"), "{}", outcome.stderr);
    assert_eq!(run(&["show", "r1", "--url", &server.url()], "").code, 1);
    assert_eq!(exec(&server, &["--agent", "another"], HELLO).code, 0);
}
