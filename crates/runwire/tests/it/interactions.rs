//! `runwire inbox` and `runwire answer`: interactions answered by scripts and at a terminal.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::process::Stdio;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::command::{Outcome, run, runwire};
use crate::server::Server;
use crate::terminal::Terminal;

const FORM: &str = r#"{"type":"interaction.requested","interaction_id":"trip","kind":"form","title":"Where to?","description":"For the tickets.","schema":{"type":"object","required":["city","days"],"properties":{"city":{"type":"string","title":"City","enum":["北京","上海","Oslo"]},"days":{"type":"integer","minimum":1,"maximum":9},"email":{"type":"string","format":"email"},"hotel":{"type":"boolean","default":true},"tags":{"type":"array","items":{"type":"string","enum":["sea","sun","snow"]}},"pay":{"type":"object","required":["by"],"properties":{"by":{"type":"string"}}}}}}"#;
const APPROVAL: &str = r#"{"type":"interaction.requested","interaction_id":"pay","kind":"approval","name":"pay","arguments":{"sum":120,"to":"the \u001b[2Jhotel"}}"#;

fn ask(server: &Server, run_id: &str, frame: &str) {
    let frames = format!("{{\"type\":\"run.started\"}}\n{frame}\n");
    let pushed = run(&["push", run_id, "--dialect", "runwire", "--url", &server.url()], frames);
    assert_eq!(pushed.code, 0, "{}", pushed.stderr);
}

fn answer(server: &Server, words: &[&str]) -> Outcome {
    run(&[&["answer"], words, &["--url", &server.url()]].concat(), "")
}

fn inbox(server: &Server) -> Value {
    let listed = run(&["inbox", "--json", "--url", &server.url()], "");
    assert_eq!(listed.code, 0, "{}", listed.stderr);
    serde_json::from_str(&listed.stdout).unwrap()
}

/// Returns the answer of an interaction.
fn settled(server: &Server, run_id: &str, interaction: &str) -> Value {
    let again = answer(server, &[run_id, interaction, "--cancel", "--reason", "to see"]);
    assert_eq!(again.code, 1, "{}", again.stdout);
    let events = run(&["tail", run_id, "--no-follow", "-o", "ndjson", "--url", &server.url()], "").stdout;
    let events = events.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    events.into_iter().find(|event| event["type"] == "interaction.resolved").unwrap()
}

#[test]
fn a_tail_shows_the_selected_slots() {
    let server = Server::start();
    ask(&server, "r1", FORM);
    let tail =
        |more: &[&str]| run(&[&["tail", "r1", "--no-follow", "--url", &server.url()], more].concat(), "");
    let asks = tail(&["--dialect", "agio", "--slots", "asks"]);
    assert!(asks.code == 0 && asks.stdout.contains("interaction.requested"), "{}", asks.stderr);
    let none = tail(&["--dialect", "agio", "--slots", "none"]);
    assert!(none.code == 0 && !none.stdout.contains("interaction.requested"), "{}", none.stdout);
    assert!(none.stdout.contains("run_started"));
    assert_eq!(tail(&["--slots", "none"]).code, 2, "the canonical dialect has no slots");
}

#[test]
fn a_script_fills_in_a_form_and_decides_an_approval() {
    let server = Server::start();
    ask(&server, "r1", FORM);
    ask(&server, "r2", APPROVAL);
    let listed = run(&["inbox", "--url", &server.url()], "");
    let lines: Vec<_> = listed.stdout.lines().collect();
    assert!(lines[1].starts_with("r2") && lines[2].starts_with("r1"), "{}", listed.stdout);
    assert!(lines[2].contains("trip") && lines[2].contains("Where to?"));
    // Invalid fields are reported one by one, and nothing is written.
    let wrong = answer(&server, &["r1", "trip", "city=Rome", "days=30", "email=nobody"]);
    assert_eq!(wrong.code, 1);
    for field in ["/city: is not one of", "/days: ", "/email: is no valid email"] {
        assert!(wrong.stderr.contains(field), "{}", wrong.stderr);
    }
    assert_eq!(answer(&server, &["r1", "trip", "days=many"]).code, 2);
    assert_eq!(answer(&server, &["r1", "trip", "hello"]).code, 2);
    assert_eq!(answer(&server, &["r1"]).code, 2, "there is no terminal to ask at");
    let taken = answer(&server, &["r1", "city=北京", "days=3", "hotel=no", "tags=sea,sun", "pay.by=card"]);
    assert_eq!((taken.code, taken.stdout.as_str()), (0, "submitted\n"), "{}", taken.stderr);
    let values = &settled(&server, "r1", "trip")["values"];
    let expected =
        json!({"city": "北京", "days": 3, "hotel": false, "tags": ["sea", "sun"], "pay": {"by": "card"}});
    assert_eq!(*values, expected);
    let late = answer(&server, &["r1", "trip", "--values", r#"{"city":"Oslo","days":1}"#]);
    assert_eq!(late.code, 1);
    assert!(late.stderr.contains("submitted") && late.stderr.contains("北京"), "{}", late.stderr);
    assert_eq!(answer(&server, &["r2", "pay"]).code, 2);
    let rejected = answer(&server, &["r2", "pay", "--reject", "--reason", "too much", "--json"]);
    let told: Value = serde_json::from_str(&rejected.stdout).unwrap();
    assert_eq!((&told["status"], &told["answer"]["reason"]), (&json!("rejected"), &json!("too much")));
    assert_eq!(inbox(&server)["interactions"], json!([]));
    let unknown = answer(&server, &["r1", "nothing", "--approve"]);
    assert!(unknown.code == 1 && unknown.stderr.contains("interaction_unknown"), "{}", unknown.stderr);
    assert_eq!(answer(&server, &["none", "--approve"]).code, 1);
}

#[test]
fn values_come_from_a_file_and_several_interactions_need_an_id() {
    let server = Server::start();
    ask(&server, "r1", &format!("{FORM}\n{APPROVAL}"));
    let which = answer(&server, &["r1", "--approve"]);
    assert!(which.code == 2 && which.stderr.contains("trip, pay"), "{}", which.stderr);
    let file = server.directory().join("trip.json");
    std::fs::write(&file, r#"{"city":"Oslo","days":2}"#).unwrap();
    let taken = answer(&server, &["r1", "trip", "--values", &format!("@{}", file.display()), "days=5"]);
    assert_eq!(taken.code, 0, "{}", taken.stderr);
    assert_eq!(settled(&server, "r1", "trip")["values"], json!({"city": "Oslo", "days": 5}));
    assert_eq!(answer(&server, &["r1", "--approve"]).stdout, "approved\n");
    let closed = run(
        &["push", "r1", "--dialect", "runwire", "--url", &server.url()],
        "{\"type\":\"run.completed\"}\n",
    );
    assert_eq!(closed.code, 0);
    assert!(answer(&server, &["r1", "pay", "--approve"]).stderr.contains("run_closed"));
}

#[test]
fn a_prompt_asks_field_by_field_until_the_answer_is_valid() {
    let server = Server::start();
    ask(&server, "r1", FORM);
    let mut terminal = Terminal::start(&mut runwire(&["answer", "r1", "--url", &server.url()]), 100);
    terminal.wait_for("Where to?");
    terminal.wait_for("For the tickets.");
    terminal.wait_for("3 Oslo");
    terminal.types("7");
    terminal.wait_for("is not one of");
    terminal.types("2");
    terminal.wait_for("days *");
    terminal.types("");
    terminal.wait_for("is required");
    terminal.types("many");
    terminal.wait_for("is no number");
    terminal.types("12");
    terminal.wait_for("is greater than the maximum of 9");
    terminal.types("4");
    terminal.wait_for("(may be left empty)");
    terminal.types("nobody");
    terminal.wait_for("is no valid email");
    terminal.types("a@b.cn");
    terminal.wait_for("[true]");
    terminal.types("");
    terminal.wait_for("3 snow");
    terminal.types("1, snow");
    terminal.wait_for("pay.by");
    terminal.types("");
    terminal.wait_for("send it?");
    assert!(terminal.shows("city: 上海") && terminal.shows("tags: sea, snow"));
    terminal.types("days");
    terminal.wait_for("whole number");
    terminal.types("5");
    terminal.wait_for("days: 5");
    terminal.types("yes");
    assert!(terminal.wait().success());
    assert!(terminal.shows("submitted"));
    let expected =
        json!({"city": "上海", "days": 5, "email": "a@b.cn", "hotel": true, "tags": ["sea", "snow"]});
    assert_eq!(settled(&server, "r1", "trip")["values"], expected);
}

#[test]
fn a_prompt_for_an_approval_sanitizes_what_it_shows() {
    let server = Server::start();
    ask(&server, "r1", APPROVAL);
    let mut leaving = Terminal::start(&mut runwire(&["answer", "r1", "--url", &server.url()]), 100);
    leaving.wait_for("approve, reject or cancel?");
    assert!(leaving.shows("sum: 120") && leaving.shows("[2Jhotel"));
    leaving.types("\x04");
    assert_eq!(leaving.wait().code(), Some(1));
    let mut terminal = Terminal::start(&mut runwire(&["answer", "r1", "--url", &server.url()]), 100);
    terminal.wait_for("approve, reject or cancel?");
    terminal.types("perhaps");
    terminal.wait_for("type approve");
    terminal.types("reject");
    terminal.wait_for("why?");
    terminal.types("too much");
    assert!(terminal.wait().success());
    let told = settled(&server, "r1", "pay");
    assert_eq!((&told["decision"], &told["reason"]), (&json!("rejected"), &json!("too much")));
}

#[test]
fn a_prompt_keeps_what_was_typed_when_the_server_restarts() {
    let mut server = Server::start();
    ask(&server, "r1", FORM);
    let mut terminal = Terminal::start(&mut runwire(&["answer", "r1", "--url", &server.url()]), 100);
    for (prompt, typed) in [("3 Oslo", "Oslo"), ("days *", "4"), ("email", ""), ("[true]", ""), ("snow", "")]
    {
        terminal.wait_for(prompt);
        terminal.types(typed);
    }
    terminal.wait_for("pay.by");
    terminal.types("");
    terminal.wait_for("send it?");
    server.kill();
    terminal.types("yes");
    terminal.wait_for("cannot reach");
    server.restart();
    terminal.types("yes");
    assert!(terminal.wait().success(), "{}", terminal.screen.screen().contents());
    assert!(terminal.shows("submitted"));
    let expected = json!({"city": "Oslo", "days": 4, "hotel": true});
    assert_eq!(settled(&server, "r1", "trip")["values"], expected);
}

#[test]
fn a_prompt_may_last_longer_than_the_connection() {
    let mut server = Server::start();
    ask(&server, "r1", APPROVAL);
    let mut terminal = Terminal::start(&mut runwire(&["answer", "r1", "--url", &server.url()]), 100);
    terminal.wait_for("approve, reject or cancel?");
    // Closes the connection on which the question came.
    server.kill();
    server.restart();
    terminal.types("approve");
    assert!(terminal.wait().success(), "{}", terminal.screen.screen().contents());
    assert_eq!(settled(&server, "r1", "pay")["decision"], "approved");
}

#[test]
fn a_watched_inbox_shows_new_interactions() {
    let server = Server::start();
    ask(&server, "r1", FORM);
    let mut command = runwire(&["inbox", "--watch", "--json", "--url", &server.url()]);
    let mut watching = command.stdin(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(watching.stdout.take().unwrap()).lines();
    let mut next = || -> Value { serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap() };
    assert_eq!(next()["run_id"], "r1");
    ask(&server, "r2", APPROVAL);
    assert_eq!(next()["run_id"], "r2");
    watching.kill().unwrap();
    watching.wait().unwrap();
}

/// Answers over a bare connection, which may break at any time.
fn post(server: &Server, run_id: &str, n: usize) -> Option<u16> {
    let body = format!(r#"{{"decision":"submitted","values":{{"n":{n}}}}}"#);
    let mut stream = TcpStream::connect(server.address()).ok()?;
    let head = format!(
        "POST /v1/runs/{run_id}/interactions/q HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(format!("{head}{body}").as_bytes()).ok()?;
    let mut status = String::new();
    BufReader::new(stream).read_line(&mut status).ok()?;
    status.split(' ').nth(1)?.parse().ok()
}

#[test]
fn a_killed_server_loses_no_acknowledged_answer() {
    const RUNS: usize = 30;
    let mut server = Server::start();
    for n in 0..RUNS {
        ask(
            &server,
            &format!("r{n}"),
            r#"{"type":"interaction.requested","interaction_id":"q","kind":"form"}"#,
        );
    }
    let taken: Arc<Mutex<Vec<(usize, usize)>>> = Arc::default();
    std::thread::scope(|scope| {
        for person in 0..4 {
            let (server, taken) = (&server, taken.clone());
            scope.spawn(move || {
                for n in 0..RUNS {
                    if post(server, &format!("r{n}"), person) == Some(200) {
                        taken.lock().unwrap().push((n, person));
                    }
                }
            });
        }
        let halfway = || taken.lock().unwrap().len() >= RUNS / 3;
        while !halfway() {
            std::thread::yield_now();
        }
        server.signal(rustix::process::Signal::KILL);
    });
    server.wait();
    server.restart();
    let taken = taken.lock().unwrap().clone();
    let open: Vec<_> = {
        let listed = run(&["inbox", "--json", "--limit", "200", "--url", &server.url()], "").stdout;
        let listed: Value = serde_json::from_str(&listed).unwrap();
        listed["interactions"]
            .as_array()
            .unwrap()
            .iter()
            .map(|asked| asked["run_id"].as_str().unwrap().to_owned())
            .collect()
    };
    for n in 0..RUNS {
        let run_id = format!("r{n}");
        let winners: Vec<_> = taken.iter().filter(|(run, _)| *run == n).collect();
        assert!(winners.len() <= 1, "two people were told that they won {run_id}");
        if let Some((_, person)) = winners.first() {
            assert!(!open.contains(&run_id), "the answer to {run_id} is lost");
            // The winner may repeat its answer; others get the winning answer.
            assert_eq!(post(&server, &run_id, *person), Some(200));
            assert_eq!(post(&server, &run_id, 99), Some(409));
        }
        if open.contains(&run_id) {
            assert_eq!(post(&server, &run_id, 7), Some(200));
        }
    }
}
