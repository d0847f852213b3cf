//! A server killed at any moment loses no acknowledged event, and retracts none that it showed.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::context::TestContext;
use super::http::loop_requests;
use super::random::{Random, Seed, rounds};
use super::workload::{Outcome, Workload};
use crate::command::{TIMEOUT, runwire};
use crate::server::Server;

/// Kills that one set of runs goes through.
const ROUNDS_OF_RUNS: usize = 10;

#[test]
fn a_killed_server_loses_no_acknowledged_event_and_takes_back_nothing_it_showed() {
    let seed = Seed::from_environment();
    let mut random = seed.random();
    // Runs that are left open must not end of themselves before they are looked at.
    let mut server = Server::start_with(&["--lease", "3600"]);
    let mut outcomes: Vec<Outcome> = Vec::new();
    let rounds = rounds();
    for first in (0..rounds).step_by(ROUNDS_OF_RUNS) {
        let begun = Instant::now();
        let end = rounds.min(first + ROUNDS_OF_RUNS);
        let outcome = rounds_of_runs(&mut server, &mut random, first, end);
        let (frames, cuts, connections) = outcome.counts();
        eprintln!(
            "{} kills: {frames} frames, {cuts} writes cut off, {connections} connections of readers, {:.1} s",
            rounds.min(first + ROUNDS_OF_RUNS),
            begun.elapsed().as_secs_f64()
        );
        assert!(cuts > 0, "nobody was writing when the server was killed");
        outcomes.push(outcome);
    }
    // What a later kill might have taken from the runs of before.
    let context = TestContext::new(server.address());
    for outcome in &outcomes {
        outcome.check(&context);
    }
    assert_eq!(server.stop().code(), Some(0));
}

fn rounds_of_runs(server: &mut Server, random: &mut Random, first: usize, end: usize) -> Outcome {
    let context = TestContext::new(server.address());
    std::thread::scope(|threads| {
        let _watch = context.watch();
        let mut workload = Workload::begin(threads, &context, &random.named("cast"), &format!("k{first}"), 0);
        for round in first..end {
            std::thread::sleep(random.millis(250));
            // Most kills meet socket loops at work, also on a machine where the server has just begun by then.
            if round == first || !random.one_in(4) {
                wait_for_loops(server);
                std::thread::sleep(random.millis(50));
            }
            server.kill();
            // Recovery, too, may be cut off.
            if random.one_in(4) {
                kill_while_it_starts(server, random);
            }
            server.restart();
            if round == (first + end) / 2 {
                workload.join_late(threads, &context, random);
            }
        }
        context.finish_writers();
        let outcome = workload.end(&context);
        outcome.check(&context);
        outcome
    })
}

fn wait_for_loops(server: &Server) {
    let begun = Instant::now();
    while !loop_requests(server.address()).unwrap().iter().all(|count| *count > 0) {
        assert!(begun.elapsed() < TIMEOUT, "socket loops serve nothing");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn kill_while_it_starts(server: &Server, random: &mut Random) {
    let address = server.address().to_string();
    let mut command: Command = runwire(&["serve", "--listen", &address, "--store", "sqlite:runwire.db"]);
    let command = command.current_dir(server.directory()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    std::thread::sleep(random.millis(60));
    child.kill().unwrap();
    child.wait().unwrap();
}
