//! Client commands while the server is killed, stopped and restarted.

use std::io::Write;

use crate::command::{run, runwire};
use crate::output_lines::Lines;
use crate::server::Server;

const DIALECTS: [&[&str]; 3] =
    [&["-o", "ndjson"], &["--dialect", "ag-ui", "-o", "sse"], &["--dialect", "agio"]];

fn frames(count: usize) -> Vec<String> {
    let start = "{\"type\":\"run_start\",\"message\":\"Count.\"}\n".to_owned();
    let pieces =
        (0..count).map(|n| format!("{{\"type\":\"message_chunk\",\"content\":\"{n} \",\"id\":\"n\"}}\n"));
    std::iter::once(start).chain(pieces).chain(["{\"reply\":\"Done.\"}\n".to_owned()]).collect()
}

fn push(server: &Server, seq: usize, frames: &[String]) -> String {
    let seq = seq.to_string();
    let all = ["push", "r1", "--dialect", "loom", "--producer", "p", "--seq", &seq, "--url", &server.url()];
    let outcome = run(&all, frames.concat());
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    outcome.stdout
}

fn tails(server: &Server) -> Vec<Lines> {
    let tail =
        |form: &&[&str]| Lines::of(&mut runwire(&[&["tail", "r1", "--url", &server.url()], *form].concat()));
    DIALECTS.iter().map(tail).collect()
}

fn whole(server: &Server, form: &[&str]) -> String {
    run(&[&["tail", "r1", "--url", &server.url()], form].concat(), "").stdout
}

#[test]
fn a_tail_outlives_a_killed_server_and_reads_as_if_nothing_had_happened() {
    let mut server = Server::start();
    let frames = frames(60);
    push(&server, 0, &frames[..20]);
    let mut tails = tails(&server);
    let mut read: Vec<String> = tails.iter_mut().map(Lines::next).collect();
    server.kill();
    server.restart();
    push(&server, 20, &frames[20..40]);
    // And once more, now that they follow the second life.
    for (tail, read) in tails.iter_mut().zip(&mut read) {
        read.extend((0..25).map(|_| tail.next()));
    }
    server.kill();
    server.restart();
    push(&server, 40, &frames[40..]);
    for ((mut tail, mut read), form) in tails.into_iter().zip(read).zip(DIALECTS) {
        read.extend(tail.rest());
        assert_eq!(tail.wait(), Some(0));
        assert_eq!(read, whole(&server, form), "{form:?}");
    }
}

#[test]
fn a_tail_outlives_a_server_that_is_stopped_in_order() {
    let mut server = Server::start();
    let frames = frames(20);
    push(&server, 0, &frames[..10]);
    let mut tails = tails(&server);
    let mut read: Vec<String> = tails.iter_mut().map(Lines::next).collect();
    assert_eq!(server.stop().code(), Some(0), "{}", server.log());
    server.restart();
    push(&server, 10, &frames[10..]);
    for ((tail, read), form) in tails.iter_mut().zip(&mut read).zip(DIALECTS) {
        read.extend(tail.rest());
        assert_eq!(tail.wait(), Some(0));
        assert_eq!(*read, whole(&server, form), "{form:?}");
    }
}

#[test]
fn a_body_that_a_killed_server_cut_off_can_be_sent_again_and_is_written_once() {
    let mut server = Server::start();
    let frames = frames(400);
    let url = server.url();
    let stamp = ["push", "r1", "--dialect", "loom", "--producer", "p", "--give-up-after", "0", "--url", &url];
    let mut writer = runwire(&stamp).spawn().unwrap();
    let mut pipe = writer.stdin.take().unwrap();
    pipe.write_all(frames[..200].concat().as_bytes()).unwrap();
    server.wait_for_run("r1");
    let mut tails = tails(&server);
    let first: Vec<String> = tails.iter_mut().map(Lines::next).collect();
    server.kill();
    // It may have written more than it could say; whoever sends it again need not know.
    pipe.write_all(frames[200..300].concat().as_bytes()).unwrap();
    drop(pipe);
    assert_eq!(writer.wait().unwrap().code(), Some(3));
    server.restart();
    let answer = push(&server, 0, &frames);
    let numbers: Vec<usize> =
        answer.split(' ').filter_map(|word| word.trim_end_matches(',').parse().ok()).collect();
    assert_eq!(numbers[0] + numbers[1], frames.len(), "{answer}");
    for ((mut tail, mut read), form) in tails.into_iter().zip(first).zip(DIALECTS) {
        read.extend(tail.rest());
        assert_eq!(tail.wait(), Some(0));
        assert_eq!(read, whole(&server, form), "{form:?}");
    }
    let text = whole(&server, &["-o", "text"]);
    let expected: String = (0..400).map(|n| format!("{n} ")).collect();
    assert!(text.starts_with(&expected), "{text}");
}

#[test]
fn a_server_whose_store_fails_ends_with_exit_code_70_and_a_restart_has_all_that_was_acknowledged() {
    let mut server = Server::start_on_a_small_disk();
    let piece = "x".repeat(4000);
    let piece = format!("{{\"type\":\"message_chunk\",\"content\":\"{piece}\",\"id\":\"n\"}}\n");
    let url = server.url();
    let mut acknowledged = 0;
    loop {
        let seq = acknowledged.to_string();
        let all = [
            "push",
            "r1",
            "--dialect",
            "loom",
            "--producer",
            "p",
            "--seq",
            &seq,
            "--give-up-after",
            "0",
            "--url",
            &url,
        ];
        let outcome = run(&all, piece.repeat(10));
        if outcome.code != 0 {
            assert_eq!(outcome.code, 3, "{}", outcome.stderr);
            break;
        }
        acknowledged += 10;
        assert!(acknowledged < 10_000, "the disk is not small");
    }
    assert!(acknowledged > 0);
    assert_eq!(server.wait().code(), Some(70), "{}", server.log());
    server.restart();
    let kept = run(&["tail", "r1", "-o", "ndjson", "--no-follow", "--url", &url], "")
        .stdout
        .matches("text.delta")
        .count();
    assert!(kept >= acknowledged, "{kept} of {acknowledged}");
    // Whatever became of the last body, sending it again makes it whole.
    let frames = vec![piece; 10];
    push(&server, acknowledged, &frames);
    let kept = run(&["tail", "r1", "-o", "ndjson", "--no-follow", "--url", &url], "")
        .stdout
        .matches("text.delta")
        .count();
    assert_eq!(kept, acknowledged + 10);
}
