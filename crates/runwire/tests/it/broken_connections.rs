//! Client commands on connections that break, end or refuse, against a scripted server.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread::JoinHandle;

use crate::command::{Outcome, run, run_command, runwire};

/// A server that plays scripted responses, one per connection, and records the requests.
struct Script {
    url: String,
    requests: JoinHandle<Vec<String>>,
}

impl Script {
    fn play(answers: Vec<String>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let requests = std::thread::spawn(move || {
            let answer = |answer: String| {
                let (mut stream, _) = listener.accept().unwrap();
                let mut request = Vec::new();
                while !request.ends_with(b"\r\n\r\n") {
                    let mut byte = [0];
                    stream.read_exact(&mut byte).unwrap();
                    request.push(byte[0]);
                }
                stream.write_all(answer.as_bytes()).unwrap();
                String::from_utf8(request).unwrap()
            };
            answers.into_iter().map(answer).collect()
        });
        Self { url, requests }
    }

    fn tail(self, arguments: &[&str]) -> (Outcome, Vec<String>) {
        self.tail_as(&[&["-o", "ndjson"], arguments].concat())
    }

    fn tail_as(self, arguments: &[&str]) -> (Outcome, Vec<String>) {
        let mut command = runwire(&[&["tail", "r1", "--url", &self.url], arguments].concat());
        let outcome = run_command(command.env("RUNWIRE_TOKEN", "secret"), "");
        (outcome, self.requests.join().unwrap())
    }
}

fn chunk(text: &str) -> String {
    format!("{:x}\r\n{text}\r\n", text.len())
}

/// Returns a stream that breaks after these bytes.
fn cut(text: &str) -> String {
    format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n{}",
        chunk(text)
    )
}

/// Returns a stream that the server ends.
fn ended(text: &str) -> String {
    cut(text) + "0\r\n\r\n"
}

fn over() -> String {
    "HTTP/1.1 204 No Content\r\n\r\n".to_owned()
}

fn target(request: &str) -> &str {
    request.split(' ').nth(1).unwrap()
}

#[test]
fn a_truncated_event_is_printed_once_after_the_reconnect() {
    let script = Script::play(vec![
        cut("id: 1-0\ndata: {\"n\":1}\n\nid: 2-0\ndata: {\"n\""),
        cut(": keep-alive\nid: 1-5\n\n"),
        "HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\n\r\n".to_owned(),
        String::new(),
        ended("id: 2-0\ndata: {\"n\":2}\n\n"),
        over(),
    ]);
    let (outcome, requests) = script.tail(&[]);
    assert_eq!((outcome.code, outcome.stdout.as_str()), (0, "{\"n\":1}\n{\"n\":2}\n"), "{}", outcome.stderr);
    let after = |request: &String| target(request).split_once("after=").map(|(_, after)| after.to_owned());
    let cursors: Vec<_> = requests.iter().map(after).collect();
    let expected = [None, Some("1-0"), Some("1-5"), Some("1-5"), Some("1-5"), Some("2-0")];
    assert_eq!(cursors, expected.map(|cursor| cursor.map(str::to_owned)));
}

#[test]
fn a_reader_from_the_end_resumes_at_its_cursor() {
    let script = Script::play(vec![
        // Nothing was told yet.
        cut(""),
        cut("id: 7\n\n: caught-up\n\n"),
        ended("id: 8-0\ndata: {\"n\":8}\n\n"),
        over(),
    ]);
    let (outcome, requests) = script.tail(&["--new"]);
    assert_eq!((outcome.code, outcome.stdout.as_str()), (0, "{\"n\":8}\n"), "{}", outcome.stderr);
    let after = |request: &String| target(request).split_once("after=").map(|(_, after)| after.to_owned());
    let cursors: Vec<_> = requests.iter().filter_map(after).collect();
    assert_eq!(cursors, ["end", "end", "7", "8-0"]);
}

#[test]
fn a_truncated_snapshot_is_not_printed() {
    let script = Script::play(vec![
        cut("data: {\"snapshot\":1}\n\n"),
        ended("data: {\"snapshot\":1}\n\nid: 9-0\ndata: {\"snapshot\":2}\n\n"),
        over(),
    ]);
    let (outcome, requests) = script.tail(&["--attach"]);
    assert_eq!((outcome.code, outcome.stdout.as_str()), (0, "{\"snapshot\":1}\n{\"snapshot\":2}\n"));
    assert!(target(&requests[1]).contains("attach=snapshot"));
    assert!(target(&requests[2]).contains("after=9-0") && !target(&requests[2]).contains("attach"));
}

#[test]
fn a_reader_reconnects_after_a_shutdown_even_without_follow() {
    let script = Script::play(vec![
        ended("id: 1-0\ndata: {\"n\":1}\n\nretry: 1\n\n"),
        ended("id: 2-0\ndata: {\"n\":2}\n\n"),
    ]);
    let (outcome, requests) = script.tail(&["--no-follow"]);
    assert_eq!((outcome.code, outcome.stdout.as_str()), (0, "{\"n\":1}\n{\"n\":2}\n"));
    assert!(requests.iter().all(|request| target(request).contains("follow=false")));
}

#[test]
fn a_token_is_sent_and_a_refusal_is_printed() {
    let problem = "{\"code\":\"unauthorized\",\"detail\":\"the token is not known\\u001b[2J\"}";
    let head = "HTTP/1.1 401 Unauthorized\r\ncontent-type: application/problem+json\r\ncontent-length";
    let script = Script::play(vec![format!("{head}: {}\r\n\r\n{problem}", problem.len())]);
    let (outcome, requests) = script.tail(&[]);
    assert!(requests[0].contains("authorization: Bearer secret\r\n"), "{}", requests[0]);
    assert_eq!((outcome.code, outcome.stdout.as_str()), (1, ""));
    assert_eq!(outcome.stderr, "error: the token is not known\u{fffd}[2J [unauthorized]\n");
}

#[test]
fn a_server_error_on_the_first_connection_is_printed_at_once() {
    let answer = "HTTP/1.1 500 Internal Server Error\r\ncontent-length: 0\r\n\r\n".to_owned();
    let (outcome, _) = Script::play(vec![answer]).tail(&[]);
    assert_eq!(outcome.code, 1);
    assert!(outcome.stderr.contains("the server answers 500"), "{}", outcome.stderr);
}

#[test]
fn events_and_fields_of_a_newer_server_are_shown() {
    let stream = ended(
        "id: 1-0\ndata: {\"seq\":1,\"at\":\"2026-11-15T02:44:33.123Z\",\"thread_id\":\"t\",\"run_id\":\"r1\",\"type\":\"run.started\",\"mood\":\"good\"}\n\n\
         id: 2-0\ndata: {\"seq\":2,\"thread_id\":\"t\",\"run_id\":\"r1\",\"type\":\"mood.changed\",\"to\":\"😀\"}\n\n\
         id: 3-0\ndata: {\"seq\":3,\"thread_id\":\"t\",\"run_id\":\"r1\",\"type\":\"run.completed\",\"colour\":7}\n\n",
    );
    let (outcome, _) = Script::play(vec![stream]).tail_as(&["-o", "plain"]);
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    for part in ["mood.changed", "😀", "✓ completed"] {
        assert!(outcome.stdout.contains(part), "`{part}` is missing:\n{}", outcome.stdout);
    }
}

#[test]
fn a_page_of_another_server_is_reported() {
    let page = "<html>Welcome</html>";
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length";
    let answer = || format!("{head}: {}\r\n\r\n{page}", page.len());
    let (outcome, _) = Script::play(vec![answer()]).tail_as(&["-o", "plain"]);
    assert_eq!(outcome.code, 3);
    assert!(outcome.stderr.contains("does not answer like a Runwire server"), "{}", outcome.stderr);
    let script = Script::play(vec![answer()]);
    let outcome = run(&["exec", "--url", &script.url, "--", "true"], "");
    assert_eq!(outcome.code, 125);
    assert!(outcome.stderr.contains("does not answer like a Runwire server"), "{}", outcome.stderr);
}
