//! `runwire convert` on live streams: each frame is written at once.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::Stdio;

use crate::command::runwire;

#[test]
fn a_frame_is_visible_before_the_next_one_comes() {
    let mut child = runwire(&["convert", "--to", "runwire"]).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut next_type = || {
        let line = lines.next().unwrap().unwrap();
        serde_json::from_str::<serde_json::Value>(&line).unwrap()["type"].as_str().unwrap().to_owned()
    };
    stdin.write_all(b"{\"type\":\"run_start\"}\n").unwrap();
    assert_eq!(next_type(), "run.started");
    // Cut inside a character: it waits for the rest.
    stdin.write_all(b"{\"type\":\"message_chunk\",\"content\":\"\xe4\xbd").unwrap();
    stdin.write_all(b"\xa0\",\"id\":\"n\"}\n").unwrap();
    assert_eq!(next_type(), "text.started");
    assert_eq!(next_type(), "text.delta");
    drop(stdin);
    assert_eq!(next_type(), "text.finished");
    assert_eq!(next_type(), "run.failed");
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_problem_is_visible_before_the_next_frame_comes() {
    let mut child = runwire(&["validate", "--dialect", "loom"]).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    stdin.write_all(b"{\"type\":\"node_enter\"}\n").unwrap();
    assert!(lines.next().unwrap().unwrap().contains("[missing_field]"));
    drop(stdin);
    assert_eq!(child.wait().unwrap().code(), Some(1));
}

#[test]
fn a_reader_that_leaves_is_no_fault_of_the_stream() {
    let mut child = runwire(&["convert", "--to", "runwire"]).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    drop(child.stdout.take());
    let writer = std::thread::spawn(move || {
        let frame = b"{\"type\":\"message_chunk\",\"content\":\"word\",\"id\":\"n\"}\n";
        while stdin.write_all(frame).is_ok() {}
    });
    let mut complaint = String::new();
    child.stderr.take().unwrap().read_to_string(&mut complaint).unwrap();
    assert_eq!((child.wait().unwrap().code(), complaint.as_str()), (Some(0), ""));
    writer.join().unwrap();
}

#[test]
fn a_file_on_standard_input_is_read_like_a_file() {
    let path = crate::command::vectors().join("loom/got/input.ndjson");
    let file = std::fs::File::open(path).unwrap();
    let output = runwire(&["convert", "--to", "text", "-"]).stdin(Stdio::from(file)).output().unwrap();
    assert!(output.status.success() && !output.stdout.is_empty());
}
