//! A server is killed during answers: each answer is written completely or not at all, and every run has one end.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::http::{get, post};
use super::random::{Seed, rounds};
use crate::command::TIMEOUT;
use crate::server::Server;

/// Who asks: a demo goes on after a restart, so does an HTTP agent that waits, and a program ends.
const AGENTS: [&str; 3] = ["demo", "http", "exec"];
const RUNS_EACH: usize = 3;

/// An AG-UI agent that asks once, and ends once it is told an answer.
pub(crate) fn http_agent() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // The server may be killed while it asks or listens.
            thread::spawn(move || drop(answer(stream)));
        }
    });
    address
}

fn answer(stream: TcpStream) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? <= 2 {
            break;
        }
        if let Some(told) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = told.trim().parse().unwrap_or(0);
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let input: Value = serde_json::from_slice(&body)?;
    let (thread, run) = (&input["threadId"], &input["runId"]);
    let outcome = json!({"type": "interrupt", "interrupts": [{"id": "q", "reason": "input_required", "message": "Which?"}]});
    let mut end = json!({"type": "RUN_FINISHED", "threadId": thread, "runId": run});
    if !input["resume"].is_array() {
        end["outcome"] = outcome;
    }
    let start = json!({"type": "RUN_STARTED", "threadId": thread, "runId": run});
    let frames = format!("data: {start}\n\ndata: {end}\n\n");
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n";
    write!(reader.get_mut(), "{head}content-length: {}\r\n\r\n{frames}", frames.len())
}

fn configuration(agent: SocketAddr) -> String {
    let asks = r#"echo '{"type":"tool_approval","name":"pay","arguments":{},"call_id":"q"}'; read start; read answer; echo '{"reply":"done"}'"#;
    format!(
        "[agents.demo]\nkind = \"demo\"\nfast = true\n\n\
         [agents.http]\nkind = \"http\"\nurl = \"http://{agent}/\"\ndialect = \"ag-ui\"\n\n\
         [agents.exec]\nkind = \"exec\"\ncommand = [\"sh\", \"-c\", '''{asks}''']\ndialect = \"loom\"\n"
    )
}

/// What a person says to an agent's question: each something else.
fn said(agent: &str, person: usize) -> (&'static str, Value) {
    match agent {
        "demo" => {
            let filled = json!({"name": format!("Ann {person}"), "email": "ann@example.com"});
            ("trip", json!({"decision": "submitted", "values": filled}))
        }
        "http" => ("q", json!({"decision": "submitted", "values": {"person": person}})),
        _ => ("q", json!({"decision": "approved", "reason": format!("says {person}")})),
    }
}

fn wait_for<T>(what: &str, mut found: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = found() {
            return found;
        }
        assert!(begun.elapsed() < TIMEOUT, "{what}");
        thread::sleep(Duration::from_millis(5));
    }
}

fn run_info(server: SocketAddr, run: &str) -> Value {
    get(server, &format!("/v1/runs/{run}")).unwrap().json()
}

/// Waits for a run's end, answering its interactions, and returns its events.
fn ended(server: SocketAddr, run: &str) -> Vec<Value> {
    wait_for(&format!("{run} does not end"), || {
        let info = run_info(server, run);
        for asked in info["interactions"].as_array().unwrap().iter().filter(|asked| asked["status"] == "open")
        {
            let path = format!("/v1/runs/{run}/interactions/{}", asked["interaction_id"].as_str().unwrap());
            let decision = if asked["kind"] == "approval" { "approved" } else { "cancelled" };
            // It may have ended just now.
            let told = post(server, &path, &[], &json!({"decision": decision}).to_string()).unwrap();
            assert!([200, 409].contains(&told.status), "{told:?}");
        }
        info["ended_at"].is_string().then_some(())
    });
    let events = get(server, &format!("/v1/runs/{run}/events?dialect=runwire&follow=false")).unwrap().body;
    let data = events.lines().filter_map(|line| line.strip_prefix("data: "));
    data.map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn an_answer_to_an_agent_is_whole_or_not_there_when_the_server_is_killed() {
    let seed = Seed::from_environment();
    let mut random = seed.random();
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("agents.toml");
    fs::write(&file, configuration(http_agent())).unwrap();
    let mut server = Server::start_with(&["--config", file.to_str().unwrap()]);
    let address = server.address();
    let (mut taken, mut cut) = (0, 0);
    for round in 0..rounds().div_ceil(3) {
        let runs: Vec<_> = AGENTS
            .iter()
            .flat_map(|agent| (0..RUNS_EACH).map(move |n| (*agent, format!("{agent}-{round}-{n}"))))
            .collect();
        for (agent, run) in &runs {
            let body = json!({"run_id": run, "agent": agent, "message": "hi"}).to_string();
            assert_eq!(post(address, "/v1/runs", &[], &body).unwrap().status, 201);
        }
        for (_, run) in &runs {
            wait_for(&format!("{run} does not ask"), || {
                (run_info(address, run)["status"] == "suspended").then_some(())
            });
        }
        // Two people answer everything, in the same order; a kill comes in between.
        let told_so_far = AtomicUsize::new(0);
        let told = thread::scope(|users| {
            let users: Vec<_> = (0..2)
                .map(|person| {
                    let (runs, told_so_far) = (&runs, &told_so_far);
                    users.spawn(move || {
                        let answer = |(agent, run): &(&str, String)| {
                            let (question, body) = said(agent, person);
                            let path = format!("/v1/runs/{run}/interactions/{question}");
                            let told = post(address, &path, &[], &body.to_string()).ok();
                            told_so_far.fetch_add(1, Ordering::SeqCst);
                            told.map(|told| told.status)
                        };
                        runs.iter().map(answer).collect::<Vec<_>>()
                    })
                })
                .collect();
            let enough = random.below(runs.len());
            while told_so_far.load(Ordering::SeqCst) < enough {
                thread::yield_now();
            }
            thread::sleep(random.millis(8));
            server.kill();
            users.into_iter().map(|person| person.join().unwrap()).collect::<Vec<_>>()
        });
        server.restart();
        for (at, (agent, run)) in runs.iter().enumerate() {
            let winners: Vec<_> = (0..2).filter(|person| told[*person][at] == Some(200)).collect();
            assert!(winners.len() <= 1, "two people were told that they won {run}");
            let question = said(agent, 0).0;
            let events = ended(address, run);
            let of_type = |kind: &str| events.iter().filter(|event| event["type"] == kind).count();
            let ends = ["run.completed", "run.failed", "run.cancelled"].map(of_type);
            assert_eq!(ends.iter().sum::<usize>(), 1, "{run}: {events:#?}");
            let settled: Vec<_> = events
                .iter()
                .filter(|event| {
                    event["type"] == "interaction.resolved" && event["interaction_id"] == question
                })
                .collect();
            assert_eq!(settled.len(), 1, "{run}: {events:#?}");
            if let Some(winner) = winners.first() {
                let (_, body) = said(agent, *winner);
                for field in ["decision", "values", "reason"] {
                    assert_eq!(settled[0][field], body[field], "the answer to {run} is lost: {events:#?}");
                }
            }
            taken += winners.len();
            cut += usize::from(winners.is_empty());
        }
    }
    assert!(
        taken > 0 && cut > 0,
        "{taken} answers were taken and {cut} cut off: the kill came at no good moment"
    );
    assert!(server.stop().success());
}
