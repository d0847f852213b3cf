//! The node that runs an agent is killed or loses its lease: another one ends or claims its runs.

use std::net::SocketAddr;

use runwire_engines::Mode;
use rustix::process::Signal;
use serde_json::{Value, json};

use super::check::no_process_is_left;
use super::requests::{events, processes, the_end, wait_for, wait_for_status};
use super::test_cluster::{Node, Setup, TestCluster};
use super::users::{agents, start};
use crate::crash::context::TestContext;
use crate::crash::http::{get, post};
use crate::crash::random::Seed;
use crate::crash::readers::{ReaderPlan, ReaderTransport, Scope};

/// Runs of every kind on one node: three that are at work, three that wait for a person.
const RUNS: [(&str, &str); 6] = [
    ("counts", "running"),
    ("endless", "running"),
    ("streams", "running"),
    ("asks", "suspended"),
    ("http", "suspended"),
    ("demo", "suspended"),
];

fn start_all(node: SocketAddr, other: SocketAddr) {
    for (agent, _) in RUNS {
        start(node, agent, agent);
    }
    for (agent, status) in RUNS {
        wait_for_status(other, agent, status);
    }
}

/// Waits until another node has ended what cannot go on.
fn wait_for_takeover(node: SocketAddr) {
    for agent in ["counts", "asks", "streams"] {
        let info = wait_for_status(node, agent, "failed");
        assert_eq!(info["error"]["code"], "producer_lost", "{info}");
    }
}

/// Lets what was taken up go on to its end, asked on one node and answered on another.
fn finish(one: SocketAddr, other: SocketAddr) {
    let told = seq(one, "endless");
    wait_for("nobody goes on with the endless run", || (seq(other, "endless") > told).then_some(()));
    let cancelled = post(other, "/v1/runs/endless/cancel", &[], "").unwrap();
    assert!(matches!(cancelled.status, 200 | 202), "{cancelled:?}");
    wait_for_status(one, "endless", "cancelled");
    for agent in ["http", "demo"] {
        wait_for(&format!("{agent} does not end"), || {
            let info = get(one, &format!("/v1/runs/{agent}")).unwrap().json();
            for asked in info["interactions"].as_array().unwrap() {
                if asked["status"] != "open" {
                    continue;
                }
                let question = asked["interaction_id"].as_str().unwrap();
                let said = match asked["kind"].as_str() {
                    Some("approval") => json!({"decision": "approved"}),
                    _ => {
                        json!({"decision": "submitted", "values": {"name": "Ann", "email": "ann@example.com"}})
                    }
                };
                let path = format!("/v1/runs/{agent}/interactions/{question}");
                let told = post(other, &path, &[], &said.to_string()).unwrap();
                assert!(matches!(told.status, 200 | 409), "{told:?}");
            }
            info["ended_at"].is_string().then_some(())
        });
        assert_eq!(the_end(agent, &events(other, agent))["type"], "run.completed");
    }
}

fn seq(node: SocketAddr, run: &str) -> u64 {
    events(node, run).last().and_then(|event| event["seq"].as_u64()).unwrap_or_default()
}

fn all_events(node: SocketAddr) -> Vec<Vec<Value>> {
    RUNS.iter().map(|(run, _)| events(node, run)).collect()
}

fn every_run_has_one_end(nodes: &[SocketAddr]) {
    let told = all_events(nodes[0]);
    for ((run, _), events) in RUNS.iter().zip(&told) {
        the_end(run, events);
    }
    for node in &nodes[1..] {
        assert_eq!(all_events(*node), told, "the nodes do not agree");
    }
}

#[test]
fn what_a_killed_node_was_running_is_ended_or_taken_up_by_another() {
    let mark = format!("killed-agent-{}", std::process::id());
    let mut cluster = TestCluster::start(Setup { lease: 3600, agents: &agents(&mark), ..Setup::default() });
    let [a, b, c] = cluster.addresses()[..] else { panic!("three nodes") };
    start_all(a, b);
    assert!(processes(&mark) > 0, "no program runs");
    // Somebody watches on another node, and sees it go on.
    let seed = Seed::of("RUNWIRE_CHAOS_SEED");
    let context = TestContext::of(vec![b, c]);
    let plan =
        ReaderPlan { scope: Scope::Run("endless".to_owned()), dialect: "ag-ui", over: ReaderTransport::Sse };
    let seen = std::thread::scope(|threads| {
        let _watch = context.watch();
        let reader = threads.spawn(|| plan.follow(&context, seed.random(), "0".to_owned()));
        cluster.nodes[0].server.kill();
        no_process_is_left(&mark);
        wait_for_takeover(b);
        finish(b, c);
        reader.join().expect("the reader is content")
    });
    cluster.nodes[0].server.restart();
    for node in cluster.addresses() {
        seen.check(&TestContext::new(node));
    }
    every_run_has_one_end(&cluster.addresses());
    cluster.stop();
}

#[test]
fn a_node_that_was_paused_and_taken_for_dead_writes_no_more_to_what_was_taken_over() {
    taken_for_dead(|node| node.server.signal(Signal::STOP), |node| node.server.signal(Signal::CONT));
}

#[test]
fn a_node_that_was_cut_off_and_taken_for_dead_writes_no_more_to_what_was_taken_over() {
    taken_for_dead(|node| node.to_postgres.set(Mode::Stall), |node| node.to_postgres.set(Mode::Pass));
}

fn taken_for_dead(goes: impl Fn(&Node), comes: impl Fn(&Node)) {
    let mark = format!("zombie-agent-{}", std::process::id());
    let mut cluster = TestCluster::start(Setup { lease: 3600, agents: &agents(&mark), ..Setup::default() });
    let [a, b, c] = cluster.addresses()[..] else { panic!("three nodes") };
    start_all(a, b);
    goes(&cluster.nodes[0]);
    wait_for_takeover(b);
    let lost = ["counts", "asks", "streams"];
    let before: Vec<_> = lost.map(|run| events(b, run)).into();
    // Its programs went on while it did not; now it is back, and learns that they are not its own any more.
    comes(&cluster.nodes[0]);
    no_process_is_left(&mark);
    finish(b, c);
    // It still serves everybody, as any other node does.
    wait_for("the node does not come back", || (get(a, "/readyz").unwrap().status == 200).then_some(()));
    let event = r#"{"type":"custom","name":"n","value":1}"#;
    let answer = post(a, "/v1/runs/after/events?dialect=runwire&end=true", &[], event).unwrap();
    assert_eq!(answer.status, 200, "{answer:?}");
    wait_for_status(b, "after", "completed");
    let after: Vec<_> = lost.map(|run| events(b, run)).into();
    assert_eq!(after, before, "a run goes on that had ended");
    every_run_has_one_end(&[a, b, c]);
    cluster.stop();
}

#[test]
fn a_node_that_comes_back_in_time_keeps_its_agents() {
    let mark = format!("paused-agent-{}", std::process::id());
    let mut cluster = TestCluster::start(Setup { lease: 3600, agents: &agents(&mark), ..Setup::default() });
    let [a, b, c] = cluster.addresses()[..] else { panic!("three nodes") };
    start_all(a, b);
    let told = seq(b, "counts");
    cluster.nodes[0].server.signal(Signal::STOP);
    // Longer than it takes to renew a lease, shorter than to lose it: a pause is what is tried here.
    std::thread::sleep(std::time::Duration::from_secs(3));
    cluster.nodes[0].server.signal(Signal::CONT);
    wait_for("the program does not go on", || (seq(b, "counts") > told).then_some(()));
    for (run, _) in RUNS {
        let cancelled = post(c, &format!("/v1/runs/{run}/cancel"), &[], "").unwrap();
        assert!(matches!(cancelled.status, 200 | 202), "{cancelled:?}");
    }
    for (run, _) in RUNS {
        wait_for_status(b, run, "cancelled");
    }
    no_process_is_left(&mark);
    every_run_has_one_end(&[a, b, c]);
    cluster.stop();
}
