//! `runwire serve` and `runwire dev`: start, stop, addresses, log.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};

use rustix::process::Signal;

use crate::command::{run, run_command, runwire};
use crate::server::Server;

#[test]
fn the_first_line_tells_the_address_and_a_signal_stops_it_in_order() {
    for signal in [Signal::TERM, Signal::INT] {
        let mut server = Server::start();
        assert_ne!(server.address().port(), 0);
        assert!(server.store().exists());
        assert_eq!(run(&["runs", "--url", &server.url()], "").code, 0);
        server.signal(signal);
        assert_eq!(server.wait().code(), Some(0), "{}", server.log());
        assert!(server.log().contains("stopped"), "{}", server.log());
    }
}

#[test]
fn an_address_that_others_can_reach_needs_an_explicit_word() {
    let outcome = run(&["serve", "--listen", "0.0.0.0:0"], "");
    assert_eq!((outcome.code, outcome.stdout.as_str()), (2, ""));
    assert!(
        outcome.stderr.contains("0.0.0.0:0 (from --listen) can be reached by others"),
        "{}",
        outcome.stderr
    );
    assert!(outcome.stderr.contains("--insecure"), "{}", outcome.stderr);
    let outcome = run(&["dev", "--listen", "0.0.0.0:0"], "");
    assert_eq!(outcome.code, 2);
    assert!(outcome.stderr.contains("`runwire dev` is for this machine alone"), "{}", outcome.stderr);
}

/// Sends a request with a `Host` header, and returns the status line.
fn asked_by(address: SocketAddr, host: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let request = format!("GET /v1/runs HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).unwrap();
    line.split(' ').nth(1).unwrap().to_owned()
}

#[test]
fn a_server_answers_by_loopback_names_and_those_that_it_is_told() {
    let server = Server::start();
    for (host, status) in [("localhost:1", "200"), ("127.0.0.1", "200"), ("wire.example.com", "403")] {
        assert_eq!(asked_by(server.address(), host), status, "{host}");
    }
    let server = Server::start_with(&["--allowed-hosts", "wire.example.com,*.internal"]);
    for (host, status) in [("wire.example.com", "200"), ("a.internal:80", "200"), ("evil.example", "403")] {
        assert_eq!(asked_by(server.address(), host), status, "{host}");
    }
    let server = Server::configured("allowed_hosts = \"*\"\n");
    assert_eq!(asked_by(server.address(), "evil.example"), "200");
    // Who is to be reached by others is told that a name is needed.
    let told = run(&["check-config", "--listen", "0.0.0.0:7420"], "");
    assert!(told.code == 0 && told.stderr.contains("`allowed_hosts` is not set"), "{}", told.stderr);
    let told = run(&["check-config", "--listen", "0.0.0.0:7420", "--allowed-hosts", "a"], "");
    assert_eq!((told.code, told.stderr.as_str()), (0, ""));
}

#[test]
fn a_store_is_served_by_one_server() {
    let server = Server::start();
    let mut second = runwire(&["serve", "--listen", "127.0.0.1:0"]);
    let outcome = run_command(second.current_dir(server.directory()), "");
    assert_eq!((outcome.code, outcome.stdout.as_str()), (3, ""));
    assert!(outcome.stderr.contains("in use by another server"), "{}", outcome.stderr);
}

#[test]
fn an_address_that_is_taken_is_named() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let directory = tempfile::tempdir().unwrap();
    let mut command = runwire(&["serve", "--listen", &address]);
    let outcome = run_command(command.current_dir(directory.path()), "");
    assert_eq!((outcome.code, outcome.stdout.as_str()), (3, ""));
    assert!(outcome.stderr.contains(&format!("cannot listen on {address}")), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("127.0.0.1:0"), "{}", outcome.stderr);
}

#[test]
fn the_log_can_be_read_by_programs() {
    let mut server = Server::start_with(&["--log-format", "json", "--log-level", "debug"]);
    server.stop();
    let log = server.log();
    assert!(log.lines().count() > 1);
    for line in log.lines() {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        assert!(line["level"].is_string() && line["timestamp"].is_string());
    }
}

#[test]
fn dev_says_where_it_is_and_what_to_try() {
    let directory = tempfile::tempdir().unwrap();
    let mut command = runwire(&["dev", "--listen", "127.0.0.1:0", "--log-level", "error"]);
    let mut child = command.current_dir(directory.path()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let url = line.trim_end().strip_prefix("runwire listening on ").unwrap().to_owned();
    // A page that has made its name point here is not let in.
    let address = url.strip_prefix("http://").unwrap().parse().unwrap();
    assert_eq!(asked_by(address, "localhost:7420"), "200");
    assert_eq!(asked_by(address, "evil.example:7420"), "403");
    let stderr = BufReader::new(child.stderr.take().unwrap());
    let tries =
        stderr.lines().map(Result::unwrap).filter(|line| line.trim_start().starts_with("curl ")).take(3);
    for line in tries {
        assert!(line.contains(&url), "{line}");
    }
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_server_that_is_not_there_is_exit_code_3_with_what_helps() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let url = format!("http://{free}");
    for arguments in [&["push", "r1"][..], &["tail", "r1"], &["runs"], &["show", "r1"]] {
        let outcome = run(&[arguments, &["--url", &url]].concat(), "{}");
        assert_eq!((outcome.code, outcome.stdout.as_str()), (3, ""), "{arguments:?}: {}", outcome.stderr);
        assert!(outcome.stderr.contains(&format!("cannot reach {url}")), "{}", outcome.stderr);
        assert!(outcome.stderr.contains("`runwire dev` starts a server"), "{}", outcome.stderr);
    }
}
