//! A live reader and a later replay get the same frames.

use std::time::Instant;

use super::context::TestContext;
use super::http::{BodyPiece, Exchange, post};
use super::readers::{ReaderPlan, ReaderTransport, Scope};
use crate::command::TIMEOUT;
use crate::server::Server;

#[test]
fn a_whole_text_that_ends_with_its_last_piece_is_told_live_as_in_a_replay() {
    let mut server = Server::start();
    let context = TestContext::new(server.address());
    let piece = |content: &str| {
        format!("{{\"type\":\"text.delta\",\"message_id\":\"m\",\"content\":\"{content}\"}}\n")
    };
    let write = |body: String| {
        assert_eq!(post(context.server(), "/v1/runs/r/events", &[], &body).unwrap().status, 200)
    };
    write(piece("a") + &piece("b"));
    let accept = [("accept", "text/event-stream".to_owned())];
    let path = "/v1/runs/r/events?dialect=agio";
    let mut live = Exchange::begin(context.server(), "GET", path, &accept, None).unwrap();
    assert_eq!(live.status().unwrap(), 200);
    let mut told = String::new();
    until(&mut live, &mut told, ": caught-up");
    // The live reader is handed these two at once; the text that they end began before.
    write(piece("c") + "{\"type\":\"text.finished\",\"message_id\":\"m\"}\n");
    until(&mut live, &mut told, "text_completed");
    let replayed =
        ReaderPlan { scope: Scope::Run("r".to_owned()), dialect: "agio", over: ReaderTransport::Sse }
            .replay(&context, "0");
    let last = &replayed.last().unwrap().data;
    assert!(last.contains("\"content\":\"abc\""), "{last}");
    assert!(told.contains(last.as_str()), "{told}");
    assert_eq!(server.stop().code(), Some(0));
}

fn until(exchange: &mut Exchange, told: &mut String, end: &str) {
    let begun = Instant::now();
    while !told.contains(end) {
        assert!(begun.elapsed() < TIMEOUT, "{end} does not come: {told}");
        match exchange.piece().unwrap() {
            BodyPiece::Bytes(bytes) => told.push_str(std::str::from_utf8(&bytes).unwrap()),
            BodyPiece::Quiet => {}
            BodyPiece::End => panic!("the stream ended: {told}"),
        }
    }
}
