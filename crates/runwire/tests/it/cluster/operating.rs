//! What operators do to a cluster, or leave out.

use std::thread;
use std::time::Instant;

use serde_json::json;

use super::asking::{events, the_end, wait_for, wait_for_status};
use super::bed::{Bed, Setup, Tail};
use super::check::no_process_is_left;
use super::people::{agents, start};
use super::probes::Probes;
use crate::command::PATIENCE;
use crate::crash::cast::Cast;
use crate::crash::http::{get, post};
use crate::crash::random::Seed;
use crate::crash::world::World;

/// Times that every node shows what every other one writes.
const PROBES: usize = 5;

fn everybody_reads_what_anybody_writes(bed: &Bed) {
    let world = bed.world();
    let probes = Probes::new("calm", bed.addresses());
    thread::scope(|threads| {
        let _watch = world.watch();
        probes.begin(threads, &world);
        for _ in 0..PROBES {
            probes.heal(&world);
        }
        world.all_has_ended();
    });
}

#[test]
fn a_cluster_without_a_live_tail_is_whole() {
    let mut bed = Bed::start(Setup { tail: Tail::None, ..Setup::default() });
    everybody_reads_what_anybody_writes(&bed);
    bed.stop();
}

#[test]
fn a_cluster_whose_redis_was_never_there_is_whole_and_says_so() {
    let mut bed = Bed::start(Setup { tail: Tail::Dead, ..Setup::default() });
    everybody_reads_what_anybody_writes(&bed);
    for node in bed.addresses() {
        let ready = get(node, "/readyz").unwrap();
        assert_eq!(ready.status, 200, "{ready:?}");
        assert!(ready.body.contains("away"), "{ready:?}");
    }
    bed.stop();
}

#[test]
fn nodes_that_start_at_once_on_an_empty_store_all_serve() {
    let mut bed = Bed::start(Setup { nodes: 5, ..Setup::default() });
    everybody_reads_what_anybody_writes(&bed);
    bed.stop();
}

#[test]
fn a_rolling_restart_is_noticed_by_nobody() {
    let seed = Seed::of("RUNWIRE_CHAOS_SEED");
    let random = seed.random().named("rolling");
    let mark = format!("rolling-agent-{}", std::process::id());
    let mut bed = Bed::start(Setup { lease: 3600, agents: &agents(&mark), ..Setup::default() });
    let addresses = bed.addresses();
    for (at, node) in addresses.iter().enumerate() {
        for agent in ["http", "demo"] {
            let run = format!("{agent}-{at}");
            start(*node, agent, &run);
            wait_for_status(*node, &run, "suspended");
        }
    }
    let world = bed.world();
    let outcome = thread::scope(|threads| {
        let _watch = world.watch();
        let mut cast = Cast::begin(threads, &world, &random, "rolling", 0);
        for at in 0..addresses.len() {
            let status = bed.nodes[at].server.stop();
            assert!(status.success(), "{status}:\n{}", bed.nodes[at].server.log());
            bed.nodes[at].server.restart();
            if at == 1 {
                cast.join_late(threads, &world, &random);
            }
        }
        world.enough_is_written();
        cast.end(&world)
    });
    for node in &addresses {
        outcome.check(&World::new(*node));
    }
    // Whoever waited for a person is still there, somewhere.
    for at in 0..addresses.len() {
        for agent in ["http", "demo"] {
            answered(&world, &format!("{agent}-{at}"));
        }
    }
    bed.stop();
    no_process_is_left(&mark);
}

/// Answers whatever a run asks until it has completed.
fn answered(world: &World, run: &str) {
    let begun = Instant::now();
    wait_for(&format!("{run} does not end"), || {
        let info = get(world.server(), &format!("/v1/runs/{run}")).unwrap().json();
        for asked in info["interactions"].as_array().unwrap() {
            if asked["status"] == "open" {
                let said = match asked["kind"].as_str() {
                    Some("approval") => json!({"decision": "approved"}),
                    _ => {
                        json!({"decision": "submitted", "values": {"name": "Ann", "email": "ann@example.com"}})
                    }
                };
                let path =
                    format!("/v1/runs/{run}/interactions/{}", asked["interaction_id"].as_str().unwrap());
                let told = post(world.server(), &path, &[], &said.to_string()).unwrap();
                assert!(matches!(told.status, 200 | 409), "{told:?}");
            }
        }
        assert!(begun.elapsed() < PATIENCE);
        info["ended_at"].is_string().then_some(())
    });
    assert_eq!(the_end(run, &events(world.server(), run))["type"], "run.completed");
}
