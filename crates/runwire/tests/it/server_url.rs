//! The server's URL: flag, variable, default, and errors of wrong servers.

use std::io::Write;
use std::net::TcpListener;

use crate::command::{run, run_command, runwire};
use crate::server::Server;
use crate::terminal::Terminal;

#[test]
fn a_variable_names_the_server_and_stands_in_no_usage() {
    let server = Server::start();
    let asked = run_command(runwire(&["runs", "--json"]).env("RUNWIRE_URL", server.url()), "");
    assert_eq!((asked.code, asked.stderr.as_str()), (0, ""));
    let wrong = run_command(runwire(&["tail"]).env("RUNWIRE_URL", server.url()), "");
    assert_eq!(wrong.code, 2);
    assert!(!wrong.stderr.contains("--url"), "{}", wrong.stderr);
    let wrong = run_command(runwire(&["runs"]).env("RUNWIRE_URL", "nonsense"), "");
    assert_eq!(wrong.code, 2);
    assert!(wrong.stderr.contains("RUNWIRE_URL names no server"), "{}", wrong.stderr);
    // What is typed wins, and an empty variable is none.
    let other = run_command(runwire(&["runs", "--url", &server.url()]).env("RUNWIRE_URL", "nonsense"), "");
    assert_eq!(other.code, 0, "{}", other.stderr);
}

#[test]
fn https_where_there_is_no_tls_is_told_as_that() {
    let server = Server::start();
    let wrong = run(&["runs", "--url", &server.url().replace("http://", "https://")], "");
    assert_eq!(wrong.code, 3);
    assert!(
        wrong.stderr.contains("it does not speak TLS; try the address with `http://`"),
        "{}",
        wrong.stderr
    );
}

#[test]
fn http_where_tls_is_wanted_is_told_as_that() {
    // A TLS server says with an alert that it did not understand, or just leaves.
    let answers = [&b"\x15\x03\x03\x00\x02\x02\x46"[..], b""];
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let server = std::thread::spawn(move || {
        for answer in answers {
            let (mut stream, _) = listener.accept().unwrap();
            std::io::Read::read(&mut stream, &mut [0; 4096]).unwrap();
            stream.write_all(answer).unwrap();
        }
    });
    for _ in answers {
        let wrong = run(&["runs", "--url", &url], "");
        assert_eq!(wrong.code, 3);
        assert!(wrong.stderr.contains("`https://`"), "{}", wrong.stderr);
    }
    server.join().unwrap();
}

#[test]
fn a_person_is_told_what_is_being_waited_for() {
    // Connections are accepted by the kernel, and nobody answers them.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", silent.local_addr().unwrap());
    let mut terminal = Terminal::start(&mut runwire(&["runs", "--url", &url]), 100);
    terminal.wait_for(&format!("waiting for {url} to answer"));
    terminal.signal(rustix::process::Signal::INT);
    terminal.wait();
}
