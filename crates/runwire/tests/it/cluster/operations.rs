//! Operations: no live tail, concurrent starts, rolling restarts.

use std::thread;
use std::time::Instant;

use serde_json::json;

use super::check::no_process_is_left;
use super::probes::Probes;
use super::requests::{events, the_end, wait_for, wait_for_status};
use super::test_cluster::{Setup, Tail, TestCluster};
use super::users::{agents, start};
use crate::command::TIMEOUT;
use crate::crash::context::TestContext;
use crate::crash::http::{get, post};
use crate::crash::random::Seed;
use crate::crash::workload::Workload;

/// Times that every node shows what every other one writes.
const PROBES: usize = 5;

fn everybody_reads_what_anybody_writes(cluster: &TestCluster) {
    let context = cluster.context();
    let probes = Probes::new("calm", cluster.addresses());
    thread::scope(|threads| {
        let _watch = context.watch();
        probes.begin(threads, &context);
        for _ in 0..PROBES {
            probes.heal(&context);
        }
        context.finish_readers();
    });
}

#[test]
fn a_cluster_without_a_live_tail_is_whole() {
    let mut cluster = TestCluster::start(Setup { tail: Tail::None, ..Setup::default() });
    everybody_reads_what_anybody_writes(&cluster);
    cluster.stop();
}

#[test]
fn a_cluster_whose_redis_was_never_there_is_whole_and_says_so() {
    let mut cluster = TestCluster::start(Setup { tail: Tail::Dead, ..Setup::default() });
    everybody_reads_what_anybody_writes(&cluster);
    for node in cluster.addresses() {
        let ready = get(node, "/readyz").unwrap();
        assert_eq!(ready.status, 200, "{ready:?}");
        assert!(ready.body.contains("away"), "{ready:?}");
    }
    cluster.stop();
}

#[test]
fn nodes_that_start_at_once_on_an_empty_store_all_serve() {
    let mut cluster = TestCluster::start(Setup { nodes: 5, ..Setup::default() });
    everybody_reads_what_anybody_writes(&cluster);
    cluster.stop();
}

#[test]
fn a_rolling_restart_is_noticed_by_nobody() {
    let seed = Seed::of("RUNWIRE_CHAOS_SEED");
    let random = seed.random().named("rolling");
    let mark = format!("rolling-agent-{}", std::process::id());
    let mut cluster = TestCluster::start(Setup { lease: 3600, agents: &agents(&mark), ..Setup::default() });
    let addresses = cluster.addresses();
    for (at, node) in addresses.iter().enumerate() {
        for agent in ["http", "demo"] {
            let run = format!("{agent}-{at}");
            start(*node, agent, &run);
            wait_for_status(*node, &run, "suspended");
        }
    }
    let context = cluster.context();
    let outcome = thread::scope(|threads| {
        let _watch = context.watch();
        let mut workload = Workload::begin(threads, &context, &random, "rolling", 0);
        for at in 0..addresses.len() {
            let status = cluster.nodes[at].server.stop();
            assert!(status.success(), "{status}:\n{}", cluster.nodes[at].server.log());
            cluster.nodes[at].server.restart();
            if at == 1 {
                workload.join_late(threads, &context, &random);
            }
        }
        context.finish_writers();
        workload.end(&context)
    });
    for node in &addresses {
        outcome.check(&TestContext::new(*node));
    }
    // Whoever waited for a person is still there, somewhere.
    for at in 0..addresses.len() {
        for agent in ["http", "demo"] {
            answered(&context, &format!("{agent}-{at}"));
        }
    }
    cluster.stop();
    no_process_is_left(&mark);
}

/// Answers whatever a run asks until it has completed.
fn answered(context: &TestContext, run: &str) {
    let begun = Instant::now();
    wait_for(&format!("{run} does not end"), || {
        let info = get(context.server(), &format!("/v1/runs/{run}")).unwrap().json();
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
                let told = post(context.server(), &path, &[], &said.to_string()).unwrap();
                assert!(matches!(told.status, 200 | 409), "{told:?}");
            }
        }
        assert!(begun.elapsed() < TIMEOUT);
        info["ended_at"].is_string().then_some(())
    });
    assert_eq!(the_end(run, &events(context.server(), run))["type"], "run.completed");
}
