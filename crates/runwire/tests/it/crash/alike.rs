//! Whoever stays and whoever comes later gets the same frames.

use std::time::Instant;

use super::http::{Exchange, Piece, post};
use super::readers::{Over, Reading, Scope};
use super::world::World;
use crate::command::PATIENCE;
use crate::server::Server;

#[test]
fn a_whole_text_that_ends_with_its_last_piece_is_told_live_as_in_a_replay() {
    let mut server = Server::start();
    let world = World::new(server.address());
    let piece = |content: &str| {
        format!("{{\"type\":\"text.delta\",\"message_id\":\"m\",\"content\":\"{content}\"}}\n")
    };
    let write =
        |body: String| assert_eq!(post(world.server(), "/v1/runs/r/events", &[], &body).unwrap().status, 200);
    write(piece("a") + &piece("b"));
    let accept = [("accept", "text/event-stream".to_owned())];
    let path = "/v1/runs/r/events?dialect=agio";
    let mut live = Exchange::begin(world.server(), "GET", path, &accept, None).unwrap();
    assert_eq!(live.status().unwrap(), 200);
    let mut told = String::new();
    until(&mut live, &mut told, ": caught-up");
    // The live reader is handed these two at once; the text that they end began before.
    write(piece("c") + "{\"type\":\"text.finished\",\"message_id\":\"m\"}\n");
    until(&mut live, &mut told, "text_completed");
    let replayed =
        Reading { scope: Scope::Run("r".to_owned()), dialect: "agio", over: Over::Sse }.replay(&world, "0");
    let last = &replayed.last().unwrap().data;
    assert!(last.contains("\"content\":\"abc\""), "{last}");
    assert!(told.contains(last.as_str()), "{told}");
    assert_eq!(server.stop().code(), Some(0));
}

fn until(exchange: &mut Exchange, told: &mut String, end: &str) {
    let begun = Instant::now();
    while !told.contains(end) {
        assert!(begun.elapsed() < PATIENCE, "{end} does not come: {told}");
        match exchange.piece().unwrap() {
            Piece::Bytes(bytes) => told.push_str(std::str::from_utf8(&bytes).unwrap()),
            Piece::Quiet => {}
            Piece::End => panic!("the stream ended: {told}"),
        }
    }
}
