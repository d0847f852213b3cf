//! The server stays within its memory budget, whatever its clients do: those who take nothing, those who send large
//! things slowly. The others are served. This is all of it at once, measured from outside; each way by itself is tested in
//! `crates/runwire-server/tests/it/memory_budget.rs`.
//!
//! `RUNWIRE_LONG=1` plays the sizes that were measured before there was a budget.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use crate::crash::http::{get, post};
use crate::server::Server;

const MIB: usize = 1 << 20;

/// How much of everything there is.
struct Sizes {
    budget: usize,
    runs: usize,
    run_bytes: usize,
    stalled_pages: usize,
    stalled_sockets: usize,
    stalled_streams: usize,
    imports: usize,
    import_bytes: usize,
    writers: usize,
    conversations: usize,
}

impl Sizes {
    fn wanted() -> Self {
        match std::env::var_os("RUNWIRE_LONG") {
            None => Self {
                budget: 48 * MIB,
                runs: 4,
                run_bytes: 4 * MIB,
                stalled_pages: 4,
                stalled_sockets: 4,
                stalled_streams: 40,
                imports: 12,
                import_bytes: 6 * MIB,
                writers: 40,
                conversations: 12,
            },
            Some(_) => Self {
                budget: 512 * MIB,
                runs: 40,
                run_bytes: 8 * MIB - 1024,
                stalled_pages: 8,
                stalled_sockets: 100,
                stalled_streams: 2000,
                imports: 100,
                import_bytes: 31 * MIB,
                writers: 500,
                conversations: 200,
            },
        }
    }
}

/// What a server without clients takes (64 MiB here), and what is not counted: caches, threads, small bodies, what the
/// allocator keeps. Measured: 110 to 140 MiB in a debug build.
const BASE: usize = 208 * MIB;

/// What clients ask for and do not read: streams, snapshots, exports and pages.
const UNREAD: [&str; 4] = [
    "GET /v1/runs/r{}/events HTTP/1.1",
    "GET /v1/runs/r{}/events?attach=snapshot HTTP/1.1",
    "GET /v1/threads/t/records HTTP/1.1",
    "GET /v1/runs/r{}/events?limit=1000 HTTP/1.1\r\nAccept: application/json",
];

/// Upper bound for waiting until the server has cut off the stalled clients: far beyond its own limit.
const PATIENCE: Duration = Duration::from_secs(240);

fn memory(process: u32, field: &str) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with(field)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() * 1024
}

/// Sends the beginning of a request, as much of it as the server takes without being read from.
fn send(server: SocketAddr, head: &str, body: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(server).unwrap();
    stream.write_all(format!("{head}\r\nHost: localhost\r\n\r\n").as_bytes()).unwrap();
    stream.set_nonblocking(true).unwrap();
    send_on(&mut stream, body);
    stream
}

/// Sends what the peer takes now.
fn send_on(stream: &mut TcpStream, mut body: &[u8]) {
    let begun = Instant::now();
    while !body.is_empty() && begun.elapsed() < Duration::from_millis(200) {
        match stream.write(body) {
            Ok(sent) => body = &body[sent..],
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => std::thread::yield_now(),
            Err(_) => return,
        }
    }
}

fn chunked(path: &str, content_type: &str, length: usize) -> String {
    format!("POST {path} HTTP/1.1\r\nContent-Type: {content_type}\r\nContent-Length: {length}")
}

/// Opens a WebSocket with subscriptions to all runs, and never reads from it.
fn stalled_socket(server: SocketAddr, runs: usize) -> TcpStream {
    let stream = TcpStream::connect(server).unwrap();
    let (mut socket, _) = tungstenite::client(format!("ws://{server}/v1/ws"), stream).unwrap();
    for id in 0..64 {
        let subscribe = format!(r#"{{"op":"subscribe","id":"s{id}","run":"r{}"}}"#, id % runs);
        socket.send(tungstenite::Message::Text(subscribe.into())).unwrap();
    }
    socket.into_inner()
}

#[test]
fn stalled_and_greedy_clients_stay_within_the_budget_and_the_others_are_served() {
    let sizes = Sizes::wanted();
    let file = format!("memory_budget = {}\nlisten = \"127.0.0.1:0\"\n", sizes.budget);
    let server = Server::configured(&file);
    let (address, process) = (server.address(), server.process());
    let piece = "x".repeat(256 << 10);
    for run in 0..sizes.runs {
        let mut body = String::from("{\"type\":\"run.started\"}\n");
        for _ in 0..sizes.run_bytes / piece.len() {
            body += &format!("{{\"type\":\"text.delta\",\"message_id\":\"m\",\"content\":\"{piece}\"}}\n");
        }
        body += "{\"type\":\"run.completed\"}\n";
        let path = format!("/v1/runs/r{run}/events?thread=t");
        let fields = [("Content-Type", "application/x-ndjson".to_owned())];
        assert_eq!(post(address, &path, &fields, &body).unwrap().status, 200);
    }
    let idle = memory(process, "VmRSS:");

    let mut clients = Vec::new();
    for _ in 0..sizes.stalled_pages {
        clients.push(send(address, "GET /v1/threads/t/messages HTTP/1.1", b""));
    }
    for at in 0..sizes.stalled_streams {
        let request = UNREAD[at % UNREAD.len()].replace("{}", &(at % sizes.runs).to_string());
        clients.push(send(address, &request, b""));
    }
    for _ in 0..sizes.stalled_sockets {
        clients.push(stalled_socket(address, sizes.runs));
    }
    let line = vec![b'x'; sizes.import_bytes];
    for at in 0..sizes.imports {
        let head = chunked(&format!("/v1/threads/i{at}/records"), "application/x-ndjson", line.len() + 1);
        clients.push(send(address, &head, &line));
    }
    let frame = vec![b'x'; MIB - 1024];
    for at in 0..sizes.writers {
        let head = chunked(&format!("/v1/runs/w{at}/events"), "application/x-ndjson", frame.len() + 1);
        clients.push(send(address, &head, &frame));
    }
    let conversation = vec![b' '; 7 * MIB];
    for _ in 0..sizes.conversations {
        let head = chunked("/ag-ui/demo", "application/json", conversation.len() + 1);
        clients.push(send(address, &head, &conversation));
    }

    // What needs no share is served at once, and what needs one as soon as the stalled are cut off.
    assert_eq!(get(address, "/v1/runs/r0").unwrap().status, 200);
    let fields = [("Content-Type", "application/x-ndjson".to_owned())];
    assert_eq!(
        post(address, "/v1/runs/small/events", &fields, "{\"type\":\"run.started\"}\n").unwrap().status,
        200
    );
    let begun = Instant::now();
    let answer = loop {
        match get(address, "/v1/runs/r1/message") {
            Ok(answer) if answer.status == 200 => break answer,
            answer => assert!(begun.elapsed() < PATIENCE, "{answer:?}"),
        }
        assert!(memory(process, "VmHWM:") < sizes.budget + BASE, "{} MiB", memory(process, "VmHWM:") / MIB);
        std::thread::sleep(Duration::from_millis(100));
    };
    assert!(answer.body.len() > sizes.run_bytes - MIB);
    let peak = memory(process, "VmHWM:");
    assert!(peak < sizes.budget + BASE, "{} MiB", peak / MIB);

    // Whoever takes nothing is cut off, and what was held for it is given back.
    for mut client in clients {
        client.set_nonblocking(false).unwrap();
        client.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        let _ = client.read(&mut [0; 16]);
    }
    let begun = Instant::now();
    while memory(process, "VmRSS:") > idle + 64 * MIB {
        let now = memory(process, "VmRSS:");
        assert!(begun.elapsed() < PATIENCE, "{} MiB, idle were {} MiB", now / MIB, idle / MIB);
        std::thread::sleep(Duration::from_millis(250));
    }
    println!(
        "idle {} MiB, peak {} MiB, then {} MiB",
        idle / MIB,
        peak / MIB,
        memory(process, "VmRSS:") / MIB
    );
}
