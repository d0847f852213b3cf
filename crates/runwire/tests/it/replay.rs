//! `runwire replay`.

use rustix::process::{Pid, Signal, kill_process};

use crate::command::{Outcome, TIMEOUT, example, run, runwire};
use crate::server::Server;
use crate::terminal::Terminal;

fn ask(server: &Server, arguments: &[&str]) -> Outcome {
    run(&[arguments, &["--url", &server.url()]].concat(), "")
}

fn with_hello() -> Server {
    let server = Server::start();
    let pushed = ask(&server, &["push", "r1", "--end", &example("hello.loom.ndjson")]);
    assert_eq!(pushed.code, 0, "{}", pushed.stderr);
    server
}

#[test]
fn a_replay_shows_what_a_tail_shows_whatever_its_speed() {
    let server = with_hello();
    for form in
        [&["-o", "plain"][..], &["-o", "ndjson"], &["--dialect", "ag-ui", "-o", "sse"], &["-o", "text"]]
    {
        let tailed = ask(&server, &[&["tail", "r1"], form].concat()).stdout;
        for speed in ["1", "1000", "max"] {
            let replayed = ask(&server, &[&["replay", "r1", "--speed", speed], form].concat());
            assert_eq!(
                (replayed.code, replayed.stdout.as_str()),
                (0, tailed.as_str()),
                "{form:?} at {speed}"
            );
        }
    }
}

#[test]
fn a_replay_goes_on_after_a_cursor() {
    let server = with_hello();
    let whole = ask(&server, &["replay", "r1", "-o", "sse", "--dialect", "agio", "--speed", "max"]).stdout;
    let (first, rest) = whole.split_once("\n\n").unwrap();
    let cursor = first.lines().find_map(|line| line.strip_prefix("id: ")).unwrap();
    let again = ask(&server, &["replay", "r1", "-o", "sse", "--dialect", "agio", "--after", cursor]);
    assert_eq!((again.code, again.stdout.as_str()), (0, rest));
}

/// A run with a pause that no test would wait for.
fn with_a_long_pause() -> Server {
    let server = Server::start();
    let url = server.url();
    let start = "{\"type\":\"run_start\",\"message\":\"Wait.\"}\n";
    assert_eq!(run(&["push", "r1", "--dialect", "loom", "--url", &url], start).code, 0);
    // The times are the server's: the pause is as long as it takes to push again, and slowed down a million times.
    std::thread::sleep(std::time::Duration::from_millis(20));
    assert_eq!(run(&["push", "r1", "--dialect", "loom", "--url", &url], "{\"reply\":\"Late.\"}\n").code, 0);
    server
}

#[test]
fn a_pause_can_be_left_and_come_back_to() {
    let server = with_a_long_pause();
    let url = server.url();
    let slowly = ["replay", "r1", "--speed", "0.000001", "--max-pause", "3600", "--url", &url];
    let mut terminal = Terminal::start(&mut runwire(&slowly), 80);
    terminal.wait_for("Wait.");
    assert!(!terminal.shows("Late."));
    terminal.signal(Signal::INT);
    assert_eq!(terminal.wait().code(), Some(130));
    assert!(terminal.shows("runwire replay r1 --after 1"), "{}", terminal.screen.screen().contents());

    let mut frames = runwire(&[&slowly[..], &["-o", "ndjson"]].concat()).spawn().unwrap();
    let mut line = String::new();
    let mut stdout = std::io::BufReader::new(frames.stdout.take().unwrap());
    std::io::BufRead::read_line(&mut stdout, &mut line).unwrap();
    assert!(line.contains("run.started"), "{line}");
    kill_process(Pid::from_child(&frames), Signal::TERM).unwrap();
    let begun = std::time::Instant::now();
    while frames.try_wait().unwrap().is_none() {
        assert!(begun.elapsed() < TIMEOUT);
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    assert_eq!(frames.wait().unwrap().code(), Some(143));
}

#[test]
fn a_run_that_is_not_there_cannot_be_played() {
    let server = Server::start();
    for form in [&[][..], &["-o", "ndjson"]] {
        let outcome = ask(&server, &[&["replay", "nobody"], form].concat());
        assert_eq!((outcome.code, outcome.stdout.as_str()), (1, ""));
        assert!(outcome.stderr.contains("[run_unknown]"), "{}", outcome.stderr);
    }
}
