//! Reading from a server.

use crate::command::{Outcome, example, run};
use crate::server::Server;

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
    let (all, fewer) = (deltas(&[]), deltas(&["--compact"]));
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
