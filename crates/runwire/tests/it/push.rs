//! `runwire push`: files, pipes, producers and refused frames.

use std::io::Write;

use serde_json::Value;

use crate::command::{Outcome, example, run, runwire};
use crate::output_lines::Lines;
use crate::server::Server;

fn ask(server: &Server, arguments: &[&str]) -> Outcome {
    run(&[arguments, &["--url", &server.url()]].concat(), "")
}

#[test]
fn a_file_becomes_a_run_that_can_be_listed_and_shown() {
    let server = Server::start();
    let pushed = ask(&server, &["push", "r1", "--thread", "s1", "--end", &example("hello.loom.ndjson")]);
    assert_eq!(
        (pushed.code, pushed.stdout.as_str()),
        (0, "9 frames accepted, last seq 9\n"),
        "{}",
        pushed.stderr
    );

    let runs = ask(&server, &["runs", "--thread", "s1"]);
    let mut lines = runs.stdout.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    assert_eq!(lines.next().unwrap(), ["RUN", "STATUS", "AGENT", "EVENTS", "STARTED", "DURATION"]);
    assert_eq!(lines.next().unwrap()[..3], ["r1", "completed", "-"]);
    assert_eq!(lines.next(), None);
    let listed: Value = serde_json::from_str(&ask(&server, &["runs", "--json"]).stdout).unwrap();
    assert_eq!(listed["runs"][0]["run_id"], "r1");

    let shown = ask(&server, &["show", "r1"]);
    for part in [
        "run       r1\nthread    s1\nstatus    completed\n",
        "counts    9 records, 11 events, 1 message, 1 tool call, 1 step\n",
        "tokens    120 (100 in the prompt)\n",
        "call get_weather({\"city\":\"Beijing\"}): ",
        "  result: 晴，21°C\n",
        "\nSunny, 21°C.\n",
    ] {
        assert!(shown.stdout.contains(part), "`{part}` is missing:\n{}", shown.stdout);
    }
    let shown: Value = serde_json::from_str(&ask(&server, &["show", "r1", "--json"]).stdout).unwrap();
    assert_eq!(shown["message"]["mainContent"], "Sunny, 21°C.");
    assert_eq!(shown["run"]["status"], "completed");
}

#[test]
fn runs_are_listed_newest_first_and_chosen_by_what_is_asked() {
    let server = Server::start();
    assert!(ask(&server, &["runs"]).stderr.contains("there are no such runs"));
    let (url, frame) = (server.url(), r#"{"type":"run_start","message":"Hello?"}"#);
    for run_id in ["a", "b", "c"] {
        let end: &[&str] = if run_id == "b" { &[] } else { &["--end"] };
        let all = [&["push", run_id, "--dialect", "loom", "--url", &url], end].concat();
        assert_eq!(run(&all, frame).code, 0);
    }
    let ids = |arguments: &[&str]| {
        let listed = ask(&server, &[&["runs", "--json"], arguments].concat());
        let listed: Value = serde_json::from_str(&listed.stdout).unwrap();
        let runs = listed["runs"].as_array().unwrap().iter();
        runs.map(|run| run["run_id"].as_str().unwrap()).collect::<String>()
    };
    assert_eq!(ids(&[]), "cba");
    assert_eq!(ids(&["--limit", "2"]), "cb");
    assert_eq!(ids(&["--status", "running"]), "b");
}

#[test]
fn frames_of_a_pipe_that_stays_open_are_visible_as_they_come() {
    let server = Server::start();
    let url = server.url();
    let mut push = runwire(&["push", "r1", "--url", &url, "--end"]).spawn().unwrap();
    let mut pipe = push.stdin.take().unwrap();
    pipe.write_all(b"{\"type\":\"run_start\",\"message\":\"Hello?\"}\n").unwrap();
    server.wait_for_run("r1");
    let mut tail = Lines::of(&mut runwire(&["tail", "r1", "-o", "ndjson", "--url", &url]));
    assert_eq!(tail.next_type(), "run.started");
    for content in ["One ", "two ", "three"] {
        let frame = format!("{{\"type\":\"message_chunk\",\"content\":\"{content}\",\"id\":\"n\"}}\n");
        // Cut inside the line: nothing is visible until the rest is there.
        let (first, second) = frame.split_at(20);
        pipe.write_all(first.as_bytes()).unwrap();
        pipe.flush().unwrap();
        pipe.write_all(second.as_bytes()).unwrap();
        let line = loop {
            let line = tail.next_json();
            if line["type"] == "text.delta" {
                break line;
            }
        };
        assert_eq!(line["content"], content);
    }
    drop(pipe);
    assert!(push.wait().unwrap().success());
    assert_eq!(tail.rest().last().map(|line| line.contains("run.completed")), Some(true));
    assert_eq!(tail.wait(), Some(0));
}

#[test]
fn a_bad_frame_is_told_as_a_person_reads_it_and_what_came_before_it_stays() {
    let server = Server::start();
    let frames = "{\"type\":\"run_start\"}\n{\"type\":\"message_chunk\",\"content\":7,\"id\":\"n\"}\n";
    let outcome = run(&["push", "r1", "--dialect", "loom", "--url", &server.url()], frames);
    assert_eq!((outcome.code, outcome.stdout.as_str()), (1, ""));
    assert!(outcome.stderr.starts_with("line 2: "), "{}", outcome.stderr);
    for part in ["`content`", "[bad_field]", "  hint: ", "1 frame accepted before it"] {
        assert!(outcome.stderr.contains(part), "`{part}` is missing:\n{}", outcome.stderr);
    }
    assert_eq!(ask(&server, &["tail", "r1", "-o", "ndjson", "--no-follow"]).stdout.lines().count(), 1);
}

#[test]
fn a_bad_frame_ends_a_push_whose_pipe_stays_open() {
    let server = Server::start();
    let mut push = runwire(&["push", "r1", "--dialect", "loom", "--url", &server.url()]).spawn().unwrap();
    let mut pipe = push.stdin.take().unwrap();
    pipe.write_all(b"{\"type\":\"run_start\"}\nno JSON\n").unwrap();
    assert_eq!(push.wait().unwrap().code(), Some(1));
    drop(pipe);
}

#[test]
fn a_producer_that_repeats_itself_writes_nothing_twice() {
    let server = Server::start();
    let hello = example("hello.loom.ndjson");
    let stamp = ["--producer", "p", "--epoch", "1", "--seq", "0"];
    let push = || ask(&server, &[&["push", "r1", "--json", &hello][..], &stamp].concat());
    let counts = |outcome: Outcome| {
        let answer: Value = serde_json::from_str(&outcome.stdout).unwrap();
        (answer["accepted"].as_u64().unwrap(), answer["duplicates"].as_u64().unwrap())
    };
    assert_eq!(counts(push()), (9, 0));
    assert_eq!(counts(push()), (0, 9));
    let gap = ask(&server, &["push", "r1", "--producer", "q", "--seq", "5", &hello]);
    assert_eq!(gap.code, 1);
    assert!(gap.stderr.contains("[producer_gap]"), "{}", gap.stderr);
}

#[test]
fn an_end_mark_is_no_frame_of_a_producer() {
    let server = Server::start();
    let url = server.url();
    let events =
        "data: {\"type\":\"run_start\"}\n\ndata: [DONE]\n\ndata: {\"reply\":\"Hi.\"}\n\ndata: [DONE]\n\n";
    for (run_id, more) in [("named", &["--producer", "p"][..]), ("nameless", &[])] {
        let pushed = run(&[&["push", run_id, "--dialect", "loom", "--url", &url][..], more].concat(), events);
        assert_eq!(pushed.stdout, "2 frames accepted, last seq 2\n", "{}", pushed.stderr);
    }
    let again = ["push", "named", "--dialect", "loom", "--producer", "p", "--url", &url];
    assert_eq!(run(&again, events).stdout, "0 frames accepted, 2 were written already, last seq 2\n");
}

#[test]
fn a_stream_of_several_runs_goes_to_a_thread() {
    let server = Server::start();
    let frames = "{\"type\":\"run_start\",\"run_id\":\"one\"}\n{\"reply\":\"1\"}\n\
                  {\"type\":\"run_start\",\"run_id\":\"two\"}\n{\"reply\":\"2\"}\n";
    let outcome = run(&["push", "--to-thread", "t1", "--dialect", "loom", "--url", &server.url()], frames);
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    for (run_id, reply) in [("one", "1\n"), ("two", "2\n")] {
        assert_eq!(ask(&server, &["tail", run_id, "-o", "text"]).stdout, reply);
    }
    let thread = ask(&server, &["tail", "--thread", "t1", "-o", "ndjson", "--no-follow"]);
    assert_eq!(thread.stdout.matches("run.completed").count(), 2, "{}", thread.stdout);
}

#[test]
fn sse_and_json_are_pushed_as_what_they_are() {
    let server = Server::start();
    let sse = "data: {\"type\":\"run_start\"}\n\n: a sign of life\n\ndata: {\"reply\":\"Hi.\"}\n\n";
    let json = "[{\"type\":\"run_start\"},\n{\"reply\":\"Hi.\"}]";
    for (run_id, input) in [("sse", sse), ("json", json)] {
        let outcome = run(&["push", run_id, "--dialect", "loom", "--url", &server.url()], input);
        assert_eq!(outcome.stdout, "2 frames accepted, last seq 2\n", "{}", outcome.stderr);
        assert_eq!(ask(&server, &["tail", run_id, "-o", "text"]).stdout, "Hi.\n");
    }
}

#[test]
fn a_named_producer_outlives_a_killed_server_and_writes_every_frame_once() {
    let mut server = Server::start();
    let url = server.url();
    let all = ["push", "r1", "--dialect", "loom", "--producer", "p", "--end", "--url", &url];
    let mut push = runwire(&all).spawn().unwrap();
    let mut pipe = push.stdin.take().unwrap();
    let piece = |n: usize| format!("{{\"type\":\"message_chunk\",\"content\":\"{n} \",\"id\":\"n\"}}\n");
    for n in 0..50 {
        pipe.write_all(piece(n).as_bytes()).unwrap();
    }
    server.wait_for_run("r1");
    server.kill();
    for n in 50..100 {
        pipe.write_all(piece(n).as_bytes()).unwrap();
    }
    server.restart();
    for n in 100..150 {
        pipe.write_all(piece(n).as_bytes()).unwrap();
    }
    drop(pipe);
    let output = push.wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{said}");
    let expected: String = (0..150).map(|n| format!("{n} ")).collect();
    assert_eq!(ask(&server, &["tail", "r1", "-o", "text"]).stdout.trim_end(), expected.trim_end());
    let status = ask(&server, &["tail", "r1", "-o", "ndjson"]).stdout;
    assert!(status.lines().last().unwrap().contains("run.completed"), "{status}");
}

#[test]
fn a_bad_frame_of_a_named_producer_is_told_with_its_line() {
    let server = Server::start();
    let url = server.url();
    let frames = "{\"type\":\"run_start\"}\n\n\n{\"type\":\"message_chunk\",\"content\":7,\"id\":\"n\"}\n";
    let outcome = run(&["push", "r1", "--dialect", "loom", "--producer", "p", "--url", &url], frames);
    assert_eq!((outcome.code, outcome.stdout.as_str()), (1, ""));
    assert!(outcome.stderr.starts_with("line 4: "), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("1 frame accepted before it"), "{}", outcome.stderr);
    let long = format!("{{\"type\":\"run_start\"}}\n{}\n", "x".repeat(2 << 20));
    let outcome = run(&["push", "r2", "--dialect", "loom", "--producer", "p", "--url", &url], long);
    assert_eq!(outcome.code, 1);
    assert!(
        outcome.stderr.contains("line 2: ") && outcome.stderr.contains("[frame_too_long]"),
        "{}",
        outcome.stderr
    );
}

#[test]
fn frames_that_do_not_tell_their_dialect_wait_for_one_that_does() {
    let server = Server::start();
    let url = server.url();
    let frames = "{\"type\":\"mood\"}\n{\"type\":\"message_chunk\",\"content\":\"Hi.\",\"id\":\"n\"}\n";
    for (run_id, more) in [("named", &["--producer", "p"][..]), ("nameless", &[])] {
        let outcome = run(&[&["push", run_id, "--end", "--url", &url], more].concat(), frames);
        assert_eq!(outcome.stdout, "2 frames accepted, last seq 3\n", "{}", outcome.stderr);
    }
}

#[test]
fn an_interrupted_push_keeps_what_it_has_written_and_ends_nothing() {
    let server = Server::start();
    let mut push =
        runwire(&["push", "r1", "--dialect", "loom", "--end", "--url", &server.url()]).spawn().unwrap();
    let mut pipe = push.stdin.take().unwrap();
    pipe.write_all(
        b"{\"type\":\"run_start\"}\n{\"type\":\"message_chunk\",\"content\":\"Hel\",\"id\":\"n\"}\n",
    )
    .unwrap();
    server.wait_for_run("r1");
    rustix::process::kill_process(rustix::process::Pid::from_child(&push), rustix::process::Signal::INT)
        .unwrap();
    assert!(!push.wait().unwrap().success());
    let shown: Value = serde_json::from_str(&ask(&server, &["show", "r1", "--json"]).stdout).unwrap();
    assert_eq!(shown["run"]["status"], "running");
    drop(pipe);
}

/// Two sessions beside each other, frame by frame.
const SIDE_BY_SIDE: &str = r#"{"session_id":"a","event_id":1,"type":"run_start","run_id":"a1"}
{"session_id":"b","event_id":1,"type":"run_start","run_id":"b1"}
{"session_id":"a","event_id":2,"reply":"A"}
{"session_id":"b","event_id":2,"reply":"B"}
"#;

#[test]
fn a_stream_of_several_sessions_goes_to_the_threads_that_it_names() {
    let server = Server::start();
    let url = server.url();
    let pushed = run(&["push", "--all", "--url", &url], SIDE_BY_SIDE);
    let told = (pushed.code, pushed.stdout.as_str());
    assert_eq!(told, (0, "4 frames accepted, in 2 threads\n"), "{}", pushed.stderr);
    for (thread, run_id) in [("a", "a1"), ("b", "b1")] {
        let listed = ask(&server, &["runs", "--thread", thread, "--json"]);
        let listed: Value = serde_json::from_str(&listed.stdout).unwrap();
        assert_eq!(
            (&listed["runs"][0]["run_id"], &listed["runs"][0]["status"]),
            (&run_id.into(), &"completed".into())
        );
        assert_eq!(listed["runs"].as_array().unwrap().len(), 1);
    }
    // A producer with a name writes it once, however often it is sent.
    let once =
        || run(&["push", "--all", "--producer", "p", "--url", &url], SIDE_BY_SIDE.replace("1\"}", "2\"}"));
    assert_eq!((once().stdout.as_str(), once().code), ("4 frames accepted, in 2 threads\n", 0));
    assert!(once().stdout.starts_with("0 frames accepted, 4 were written already"), "{}", once().stdout);
    // In one thread they are side by side if it is made for that.
    let busy = run(&["push", "--to-thread", "t", "--url", &url], SIDE_BY_SIDE);
    assert_eq!(busy.code, 1);
    assert!(busy.stderr.contains("/v1/events"), "{}", busy.stderr);
    let many = run(&["push", "--to-thread", "u", "--parallel", "--url", &url], SIDE_BY_SIDE);
    assert_eq!((many.code, many.stdout.as_str()), (0, "4 frames accepted, last seq 4\n"), "{}", many.stderr);
}
