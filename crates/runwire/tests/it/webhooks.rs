//! Webhooks: configuration, and delivery after a kill.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::command::{TIMEOUT, run};
use crate::config::ConfigFolder;
use crate::server::Server;

/// Waits for a message, and leaves it to the caller to answer it.
fn message(target: &TcpListener) -> (TcpStream, String, Value) {
    target.set_nonblocking(true).unwrap();
    let begun = Instant::now();
    let stream = loop {
        match target.accept() {
            Ok((stream, _)) => break stream,
            Err(_) => assert!(begun.elapsed() < TIMEOUT, "no message came"),
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    stream.set_nonblocking(false).unwrap();
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let (mut id, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        match line.trim_end().split_once(": ") {
            Some(("webhook-id", value)) => value.clone_into(&mut id),
            Some(("content-length", value)) => length = value.parse().unwrap(),
            _ if line.trim_end().is_empty() => break,
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    (stream, id, serde_json::from_slice(&body).unwrap())
}

#[test]
fn a_killed_server_forgets_nothing_that_is_to_be_told() {
    let target = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut server = Server::start();
    server.kill();
    let config = format!(
        "[webhooks.desk]\nurl = \"http://{}/\"\nsecret = \"a secret that nobody guesses\"\nallow_private = true\n",
        target.local_addr().unwrap()
    );
    fs::write(server.directory().join("runwire.toml"), config).unwrap();
    server.restart();
    let frames = "{\"type\":\"run_start\"}\n{\"reply\":\"Done.\"}\n";
    let pushed = run(&["push", "r1", "--dialect", "loom", "--url", &server.url()], frames);
    assert_eq!(pushed.code, 0, "{}", pushed.stderr);
    // The message is on its way, and nobody has answered it.
    let (_unanswered, id, told) = message(&target);
    assert_eq!((&told["type"], &told["run_id"]), (&"run.completed".into(), &"r1".into()));
    assert_eq!(told["url"], "/v1/runs/r1");
    server.kill();
    server.restart();
    let (mut stream, again, same) = message(&target);
    assert_eq!((again, same), (id, told));
    stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").unwrap();
}

const WEBHOOKS: &str = r#"
[webhooks.desk]
url = "https://desk.example.org/hook?key=${HOOK_KEY}"
secret = "${HOOK_SECRET}"
events = ["interaction.requested", "run.failed"]
timeout_seconds = 5
base_url = "https://runwire.example.org"

[webhooks."next door"]
url = "http://10.0.0.7:8080/"
secret = "${HOOK_SECRET}"
allow_private = true
"#;

#[test]
fn webhooks_are_shown_without_what_the_environment_says() {
    let variables = [("HOOK_KEY", "k3y"), ("HOOK_SECRET", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")];
    let outcome = ConfigFolder::with(WEBHOOKS).run(&variables, &["check-config"]);
    assert_eq!((outcome.code, outcome.stderr.as_str()), (0, ""));
    for line in [
        "webhooks.desk           https://desk.example.org/hook?key=${HOOK_KEY}, interaction.requested run.failed ",
        "webhooks.next door      http://10.0.0.7:8080/, interaction.requested run.completed run.failed run.cancelled, \
         may be private  runwire.toml:9",
    ] {
        assert!(outcome.stdout.contains(line), "{line}\n{}", outcome.stdout);
    }
    assert!(!outcome.stdout.contains("k3y") && !outcome.stdout.contains("whsec_"));
}

#[test]
fn every_mistake_in_a_webhook_is_told_with_its_line_and_key() {
    let place = ConfigFolder::with(
        r#"[webhooks.a]
url = "desk.example.org"
secret = "short"
events = ["run.started"]
allow_private = "yes"
timeout = 5

[webhooks.b]
url = "https://name:password@desk.example.org/"
secret = "${HOOK_SECRET}"
events = []

[webhooks.c]
url = "https://desk.example.org/"

[webhooks.d]
url = "https://desk.example.org/"
secret = "whsec_???"
base_url = "runwire"
ca = "none.pem"
timeout_seconds = 0

[webhooks]
e = "https://desk.example.org/"
"#,
    );
    let outcome = place.run(&[], &["check-config"]);
    assert_eq!(outcome.code, 1);
    for expected in [
        "runwire.toml:2: `webhooks.a.url`: must be an address that begins with `http://` or `https://`",
        "runwire.toml:3: `webhooks.a.secret`: must have at least 16 bytes",
        "runwire.toml:4: `webhooks.a.events`: must be an array with one or more of `interaction.requested`, ",
        "runwire.toml:5: `webhooks.a.allow_private`: must be `true` or `false`",
        "runwire.toml:6: `webhooks.a.timeout`: is no setting of a webhook\n  hint: there are url, secret",
        "runwire.toml:9: `webhooks.b.url`: must be an address",
        "runwire.toml:10: `webhooks.b.secret`: the variable HOOK_SECRET is not set",
        "runwire.toml:11: `webhooks.b.events`: must be an array",
        "runwire.toml:13: `webhooks.c.secret`: is missing: must have at least 16 bytes",
        "runwire.toml:18: `webhooks.d.secret`: begins with `whsec_`, and what follows is no Base64",
        "runwire.toml:19: `webhooks.d.base_url`: must be an address",
        "`webhooks.d.ca`: cannot read none.pem",
        "runwire.toml:21: `webhooks.d.timeout_seconds`: must be a whole number of seconds from 1 to 86400",
        "runwire.toml:24: `webhooks.e`: must be a table, such as `[webhooks.NAME]`",
    ] {
        assert!(outcome.stderr.contains(expected), "{expected}\n{}", outcome.stderr);
    }
    assert!(!outcome.stderr.contains("password@"));
}

#[test]
fn the_webhook_in_the_document_can_be_configured_so() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/webhooks.md");
    let document = fs::read_to_string(path).unwrap();
    let example = document.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let outcome = ConfigFolder::with(example).run(&[("DESK_SECRET", "0123456789abcdef")], &["check-config"]);
    assert_eq!((outcome.code, outcome.stderr.as_str()), (0, ""));
    let stranger = ConfigFolder::with("[webhooks.a]\nxyzzy = 1\n").run(&[], &["check-config"]);
    let keys = stranger.stderr.split("there are ").nth(1).unwrap().lines().next().unwrap();
    for key in keys.split(", ") {
        assert!(document.contains(&format!("| `{key}` | ")), "{key}");
    }
}
