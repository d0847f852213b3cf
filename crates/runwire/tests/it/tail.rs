//! `runwire tail`.

use std::io::{BufRead, BufReader, Read};

use rustix::process::{Pid, Signal, kill_process};

use crate::command::{Outcome, example, run, runwire};
use crate::server::Server;
use crate::terminal::Terminal;

fn ask(server: &Server, arguments: &[&str]) -> Outcome {
    run(&[arguments, &["--url", &server.url()]].concat(), "")
}

fn tail(server: &Server, arguments: &[&str]) -> String {
    let outcome = ask(server, &[&["tail", "r1"], arguments].concat());
    assert_eq!((outcome.code, outcome.stderr.as_str()), (0, ""));
    outcome.stdout
}

fn with_hello() -> Server {
    let server = Server::start();
    let pushed = ask(&server, &["push", "r1", "--thread", "s1", "--end", &example("hello.loom.ndjson")]);
    assert_eq!(pushed.code, 0, "{}", pushed.stderr);
    server
}

#[test]
fn a_stored_run_reads_as_its_conversion_does() {
    let server = with_hello();
    let hello = example("hello.loom.ndjson");
    for dialect in ["ag-ui", "loom", "text"] {
        let converted = run(&["convert", "--to", dialect, &hello], "").stdout;
        assert_eq!(tail(&server, &["--dialect", dialect]), converted, "{dialect}");
    }
    let converted = run(&["convert", "--to", "ag-ui", "--framing", "sse", &hello], "").stdout;
    assert_eq!(tail(&server, &["--dialect", "ag-ui", "-o", "sse"]), converted);
    let strings = run(&["convert", "--to", "text", "--framing", "ndjson", &hello], "").stdout;
    assert_eq!(tail(&server, &["--dialect", "text", "-o", "ndjson"]), strings);
    assert_eq!(tail(&server, &["-o", "text"]), "Sunny, 21°C.\n");
}

#[test]
fn reading_goes_on_after_any_cursor() {
    let server = with_hello();
    for dialect in ["runwire", "ag-ui", "easyflow-chat"] {
        let whole = tail(&server, &["--dialect", dialect, "-o", "sse"]);
        let mut read = 0;
        for event in whole.split_inclusive("\n\n") {
            read += event.len();
            let cursor = event.lines().find_map(|line| line.strip_prefix("id: ")).unwrap();
            let rest = tail(&server, &["--dialect", dialect, "-o", "sse", "--after", cursor]);
            assert_eq!(rest, whole[read..], "{dialect} after {cursor}");
        }
    }
}

#[test]
fn a_fresh_reader_can_begin_with_the_present() {
    let server = with_hello();
    let attached = tail(&server, &["--dialect", "ag-ui", "--attach"]);
    assert!(attached.starts_with("{\"type\":\"RUN_STARTED\""), "{attached}");
    assert!(attached.contains("MESSAGES_SNAPSHOT") && attached.contains("RUN_FINISHED"), "{attached}");
    let refused = ask(&server, &["tail", "r1", "--dialect", "loom", "--attach"]);
    assert_eq!(refused.code, 1);
    assert!(refused.stderr.contains("[attach_not_offered]"), "{}", refused.stderr);
}

#[test]
fn pieces_that_lie_behind_can_be_merged() {
    let server = Server::start();
    let piece = "{\"type\":\"message_chunk\",\"content\":\"word \",\"id\":\"n\"}\n";
    let frames = format!("{}{{\"reply\":\"Done.\"}}\n", piece.repeat(9));
    assert_eq!(run(&["push", "r1", "--dialect", "loom", "--url", &server.url()], frames).code, 0);
    let deltas = |arguments: &[&str]| tail(&server, arguments).matches("text.delta").count();
    let (all, fewer) = (deltas(&["-o", "ndjson"]), deltas(&["-o", "ndjson", "--compact"]));
    assert!(fewer < all, "{fewer} of {all}");
    assert_eq!(tail(&server, &["-o", "text", "--compact"]), tail(&server, &["-o", "text"]));
}

#[test]
fn what_is_there_of_an_open_run_can_be_read_without_waiting() {
    let server = Server::start();
    let url = server.url();
    let frame = "{\"type\":\"message_chunk\",\"content\":\"Hel\",\"id\":\"n\"}\n";
    assert_eq!(run(&["push", "r1", "--dialect", "loom", "--url", &url], frame).code, 0);
    assert_eq!(tail(&server, &["--no-follow", "-o", "text"]), "Hel\n");
}

#[test]
fn a_run_that_is_not_there_is_refused() {
    let server = Server::start();
    for arguments in [&["tail", "nobody"][..], &["tail", "nobody", "--thread"], &["show", "nobody"]] {
        let outcome = ask(&server, arguments);
        assert_eq!((outcome.code, outcome.stdout.as_str()), (1, ""));
        assert!(outcome.stderr.contains("_unknown]\n  hint: "), "{}", outcome.stderr);
    }
    let server = with_hello();
    let beyond = ask(&server, &["tail", "r1", "--after", "99-0"]);
    assert_eq!(beyond.code, 1);
    assert!(beyond.stderr.contains("[cursor_beyond_end]"), "{}", beyond.stderr);
}

#[test]
fn a_person_reads_the_run_and_no_escape_code_where_there_is_no_terminal() {
    let server = with_hello();
    for form in [&[][..], &["-o", "plain"], &["-o", "pretty"]] {
        let read = tail(&server, form);
        assert!(read.contains("Sunny, 21°C.") && read.contains("get_weather"), "{read}");
        assert!(read.contains("✓ completed") && !read.contains('\x1b'), "{read}");
    }
}

#[test]
fn the_exit_code_tells_how_the_run_ended_where_that_is_asked_for() {
    let server = with_hello();
    assert_eq!(ask(&server, &["tail", "r1", "--exit-status", "-o", "text"]).code, 0);
    let failed = "{\"type\":\"run.failed\",\"error\":{\"message\":\"no\"}}\n";
    assert_eq!(run(&["push", "bad", "--dialect", "runwire", "--url", &server.url()], failed).code, 0);
    assert_eq!(ask(&server, &["tail", "bad", "--exit-status"]).code, 1);
    assert_eq!(ask(&server, &["tail", "bad"]).code, 0);
}

fn with_open_run() -> Server {
    let server = Server::start();
    let frames = "{\"type\":\"run_start\",\"message\":\"天气？\"}\n\
                  {\"type\":\"message_chunk\",\"content\":\"北京今天晴，气温二十一度，适合出门散步 🌤👩‍👩‍👧 enjoy\",\"id\":\"n\"}\n";
    let pushed = run(&["push", "r1", "--dialect", "loom", "--url", &server.url()], frames);
    assert_eq!(pushed.code, 0, "{}", pushed.stderr);
    server
}

#[test]
fn a_reader_of_the_output_that_leaves_ends_a_tail_that_waits() {
    let server = with_open_run();
    let mut tail = runwire(&["tail", "r1", "-o", "ndjson", "--url", &server.url()]).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(tail.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.contains("run.started"), "{line}");
    // The pipe is closed, and nothing more is written to the run.
    assert_eq!(tail.wait().unwrap().code(), Some(0));
}

#[test]
fn an_interrupted_tail_leaves_the_run_alone_and_the_output_whole() {
    let server = with_open_run();
    for form in [&["-o", "ndjson"][..], &["-o", "plain"]] {
        let mut command = runwire(&[&["tail", "r1", "--url", &server.url()], form].concat());
        let mut tail = command.spawn().unwrap();
        let mut stdout = tail.stdout.take().unwrap();
        let mut read = Vec::new();
        while !String::from_utf8_lossy(&read).contains("enjoy") {
            let mut piece = [0; 256];
            let count = stdout.read(&mut piece).unwrap();
            assert!(count > 0, "{}", String::from_utf8_lossy(&read));
            read.extend_from_slice(&piece[..count]);
        }
        kill_process(Pid::from_child(&tail), Signal::INT).unwrap();
        assert_eq!(tail.wait().unwrap().code(), Some(130));
    }
    let shown = ask(&server, &["show", "r1", "--json"]);
    assert!(shown.stdout.contains("\"status\": \"running\""), "{}", shown.stdout);
}

#[test]
fn a_narrow_terminal_shows_whole_characters_and_ctrl_c_says_how_to_come_back() {
    let server = with_open_run();
    let mut terminal = Terminal::start(&mut runwire(&["tail", "r1", "--url", &server.url()]), 40);
    terminal.wait_for("enjoy");
    for row in terminal.screen.screen().rows(0, 40) {
        assert!(!row.contains('\u{fffd}'), "{row}");
    }
    terminal.signal(Signal::INT);
    assert_eq!(terminal.wait().code(), Some(130));
    assert!(terminal.shows("runwire tail r1 --after 2"), "{}", terminal.screen.screen().contents());
    assert!(terminal.shows("runwire cancel r1"), "{}", terminal.screen.screen().contents());
    let screen = terminal.screen.screen();
    assert!(!screen.hide_cursor() && !screen.alternate_screen());
}

#[test]
fn a_person_is_told_of_a_server_that_went_away_and_came_back() {
    let mut server = with_open_run();
    let mut terminal = Terminal::start(&mut runwire(&["tail", "r1", "--url", &server.url()]), 100);
    terminal.wait_for("enjoy");
    server.kill();
    terminal.wait_for("trying again");
    server.restart();
    terminal.wait_for("connected again");
    let end = "{\"reply\":\"Bye.\"}\n";
    let all = ["push", "r1", "--dialect", "loom", "--url", &server.url()];
    assert_eq!(run(&all, end).code, 0);
    terminal.wait_for("completed");
    assert_eq!(terminal.wait().code(), Some(0));
    assert_eq!(terminal.screen.screen().contents().matches("enjoy").count(), 1);
}

#[test]
fn a_program_that_reads_is_told_on_standard_error_that_the_connection_is_there_again() {
    let mut server = with_open_run();
    let mut command = runwire(&["tail", "r1", "-o", "ndjson", "--url", &server.url()]);
    let mut tail = command.spawn().unwrap();
    let mut said = BufReader::new(tail.stderr.take().unwrap()).lines().map(Result::unwrap);
    let mut frames = BufReader::new(tail.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(frames.any(|frame| frame.contains("enjoy")));
    server.kill();
    assert!(said.any(|line| line.contains("trying again")));
    server.restart();
    assert!(said.any(|line| line.contains("connected again")));
    let all = ["push", "r1", "--dialect", "loom", "--url", &server.url()];
    assert_eq!(run(&all, "{\"reply\":\"Bye.\"}\n").code, 0);
    assert!(frames.any(|frame| frame.contains("run.completed")));
    assert_eq!(tail.wait().unwrap().code(), Some(0));
}
