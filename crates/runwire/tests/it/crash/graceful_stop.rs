//! A server that is stopped under load finishes its requests, and notifies its clients.

use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use tungstenite::protocol::frame::coding::CloseCode;

use super::context::TestContext;
use super::frames::WriterDialect;
use super::http::{Answer, BodyPiece, Exchange, get, post};
use super::random::Seed;
use super::socket::{Socket, op};
use super::workload::Workload;
use crate::command::TIMEOUT;
use crate::server::Server;

#[test]
fn a_server_that_is_asked_to_stop_loses_nothing_under_load() {
    let seed = Seed::from_environment();
    let mut random = seed.random().named("stopped");
    let mut server = Server::start();
    let context = TestContext::new(server.address());
    std::thread::scope(|threads| {
        let _watch = context.watch();
        let workload = Workload::begin(threads, &context, &random.named("cast"), "s", 0);
        for _ in 0..3 {
            std::thread::sleep(random.millis(300));
            assert_eq!(server.stop().code(), Some(0), "{}", server.log());
            server.restart();
        }
        context.finish_writers();
        workload.end(&context).check(&context);
    });
    assert_eq!(server.stop().code(), Some(0));
    assert!(!server.log().contains("cutting off"), "somebody held up the stop: {}", server.log());
}

#[test]
fn readers_are_asked_to_come_back_and_their_streams_end_properly() {
    let mut server = Server::start();
    let address = server.address();
    write(address, 0);
    std::thread::scope(|threads| {
        let read = |path: &'static str, accept: &str| {
            let mut exchange =
                Exchange::begin(address, "GET", path, &[("accept", accept.to_owned())], None).unwrap();
            assert_eq!(exchange.status().unwrap(), 200);
            let first = some_bytes(&mut exchange);
            threads.spawn(move || (path, first + &rest(&mut exchange)))
        };
        let mut streams = Vec::new();
        for path in [
            "/v1/runs/r/events?dialect=ag-ui",
            "/v1/runs/r/events?dialect=loom",
            "/v1/threads/t/events",
            "/v1/runs/r/events?dialect=easyflow-chat",
        ] {
            streams.push(read(path, "text/event-stream"));
        }
        let plain = read("/v1/runs/r/events", "application/x-ndjson");
        let writer = threads.spawn(move || (1..).take_while(|number| write(address, *number)).count());
        std::thread::sleep(Duration::from_millis(100));
        assert_eq!(server.stop().code(), Some(0), "{}", server.log());
        for stream in streams {
            let (path, text) = stream.join().unwrap();
            let last = text.trim_end().rsplit("\n\n").next().unwrap();
            assert!(last.starts_with("retry: "), "{path}: {last:?}");
            assert!(text.ends_with("\n\n"), "{path}");
        }
        assert!(plain.join().unwrap().1.ends_with("}\n"));
        assert!(writer.join().unwrap() > 0);
    });
    assert!(!server.log().contains("cutting off"), "{}", server.log());
}

#[test]
fn an_open_body_is_answered_with_what_was_written_of_it() {
    let mut server = Server::start();
    let address = server.address();
    let answers: Vec<Answer> = std::thread::scope(|threads| {
        let body = |producer: &'static str| threads.spawn(move || until_answered(address, producer).unwrap());
        let bodies: Vec<_> = ["a", "b", "c"].map(body).into();
        let begun = Instant::now();
        // The runs of all three are there.
        while ["a", "b", "c"]
            .iter()
            .any(|run| get(address, &format!("/v1/runs/{run}")).unwrap().status != 200)
        {
            assert!(begun.elapsed() < TIMEOUT);
        }
        assert_eq!(server.stop().code(), Some(0), "{}", server.log());
        bodies.into_iter().map(|body| body.join().unwrap()).collect()
    });
    assert!(!server.log().contains("cutting off"), "{}", server.log());
    server.restart();
    for (run, answer) in ["a", "b", "c"].iter().zip(answers) {
        let problem = answer.json();
        assert_eq!((answer.status, &problem["code"]), (503, &"shutting_down".into()), "{answer:?}");
        let producer = get(address, &format!("/v1/runs/{run}/producers/{run}")).unwrap().json();
        assert_eq!(producer["next"], problem["accepted"], "{answer:?}");
        assert!(problem["accepted"].as_u64() > Some(0));
    }
}

#[test]
fn a_socket_is_closed_with_the_reason() {
    let mut server = Server::start();
    let address = server.address();
    write(address, 0);
    let mut socket = Socket::connect(address).unwrap();
    socket.send(r#"{"op":"subscribe","id":1,"run":"r"}"#).unwrap();
    hear(&mut socket, "caught_up");
    server.signal(Signal::TERM);
    let closed = socket.closed().expect("the server says that it goes");
    assert_eq!(closed, CloseCode::Away);
    assert_eq!(server.wait().code(), Some(0));
}

#[test]
fn a_socket_that_reads_slowly_hears_the_reason_too() {
    let mut server = Server::start();
    let address = server.address();
    let large = format!("{{\"type\":\"custom\",\"name\":\"large\",\"value\":\"{}\"}}\n", "x".repeat(900_000));
    for _ in 0..20 {
        assert_eq!(post(address, "/v1/runs/r/events?dialect=runwire", &[], &large).unwrap().status, 200);
    }
    let mut socket = Socket::connect(address).unwrap();
    socket.send(r#"{"op":"subscribe","id":1,"run":"r"}"#).unwrap();
    socket.wait_unread();
    // Let it send what the buffers between the two take; the rest waits.
    std::thread::sleep(Duration::from_millis(300));
    server.signal(Signal::TERM);
    // Longer than a server takes to stop that waits for nobody.
    std::thread::sleep(Duration::from_millis(1500));
    assert_eq!(socket.closed(), Some(CloseCode::Away));
    assert_eq!(server.wait().code(), Some(0));
}

/// Waits for a message of some kind.
fn hear(socket: &mut Socket, kind: &str) {
    let begun = Instant::now();
    loop {
        assert!(begun.elapsed() < TIMEOUT, "{kind} does not come");
        match socket.receive().unwrap().map(|text| op(&text)) {
            Some(heard) if heard == kind => return,
            Some(heard) => assert_ne!(heard, "error"),
            None => {}
        }
    }
}

/// Writes a frame; returns true if it was acknowledged.
fn write(server: SocketAddr, number: usize) -> bool {
    let frame = WriterDialect::Runwire.frame("w", number);
    let stamp = [("producer-id", "w".to_owned()), ("producer-seq", number.to_string())];
    match post(server, "/v1/runs/r/events?thread=t&dialect=runwire", &stamp, &frame) {
        Ok(answer) if answer.status == 503 => false,
        Ok(answer) => {
            assert_eq!((answer.status, answer.written().accepted), (200, 1), "{answer:?}");
            true
        }
        Err(_) => false,
    }
}

/// Writes to an open body until the server answers.
fn until_answered(server: SocketAddr, name: &str) -> io::Result<Answer> {
    let stamp = [("producer-id", name.to_owned()), ("producer-seq", "0".to_owned())];
    let path = format!("/v1/runs/{name}/events?dialect=runwire");
    let mut exchange = Exchange::begin(server, "POST", &path, &stamp, None)?;
    let mut number = 0;
    while !exchange.has_response()? {
        exchange.send(format!("{}\n", WriterDialect::Runwire.frame(name, number)).as_bytes())?;
        number += 1;
    }
    exchange.answer()
}

fn some_bytes(exchange: &mut Exchange) -> String {
    loop {
        match exchange.piece().unwrap() {
            BodyPiece::Bytes(bytes) => return String::from_utf8(bytes).unwrap(),
            BodyPiece::Quiet => {}
            BodyPiece::End => panic!("the stream ended"),
        }
    }
}

/// Reads to the proper end.
fn rest(exchange: &mut Exchange) -> String {
    let (mut bytes, begun) = (Vec::new(), Instant::now());
    loop {
        match exchange.piece().expect("the stream ends properly") {
            BodyPiece::Bytes(more) => bytes.extend_from_slice(&more),
            BodyPiece::Quiet => assert!(begun.elapsed() < TIMEOUT, "the stream goes on"),
            BodyPiece::End => return String::from_utf8(bytes).unwrap(),
        }
    }
}
