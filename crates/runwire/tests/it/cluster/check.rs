//! Invariants of a cluster after a test.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use super::requests::{ENDS, ask, events_of, processes, wait_for};
use super::test_cluster::TestCluster;
use crate::crash::context::TestContext;

/// Runs a page of a list has at most.
const PAGE: usize = 100;

/// Waits until no run is open whose name begins so, as every node tells it.
pub(super) fn every_run_ends(cluster: &TestCluster, name: &str) {
    for node in cluster.addresses() {
        for status in ["pending", "running", "suspended"] {
            let open = || runs(node, &format!("status={status}&prefix={name}-&"));
            let mut last = Vec::new();
            wait_for(&format!("runs are {status} that nobody ends"), || {
                last = open();
                last.is_empty().then_some(())
            });
        }
    }
}

/// Checks that every run with this prefix has exactly one terminal event, the same on every node, and returns their number.
pub(super) fn every_run_has_one_end(cluster: &TestCluster, name: &str) -> usize {
    let which = format!("prefix={name}-&");
    let addresses = cluster.addresses();
    let all = runs(addresses[0], &which);
    for node in &addresses[1..] {
        assert_eq!(runs(*node, &which), all, "the nodes list other runs");
    }
    let threads: BTreeSet<&str> = all.iter().map(|run| run.thread.as_str()).collect();
    let mut ends = BTreeMap::new();
    for (at, thread) in threads.into_iter().enumerate() {
        // Whole streams are compared elsewhere; here the nodes are asked in turn.
        let path = format!("/v1/threads/{thread}/events?dialect=runwire&follow=false");
        for event in events_of(addresses[at % addresses.len()], &path) {
            let (run, kind) = (event["run_id"].as_str().unwrap(), event["type"].as_str().unwrap());
            if ENDS.contains(&kind) {
                let before = ends.insert(run.to_owned(), kind.to_owned());
                assert_eq!(before, None, "{run} has a second end: {event}");
            }
        }
    }
    for run in &all {
        assert_eq!(ends.get(&run.id), Some(&format!("run.{}", run.status)), "{}", run.id);
    }
    all.len()
}

/// A run, as a list shows it.
#[derive(Debug, PartialEq, Eq)]
struct Listed {
    id: String,
    thread: String,
    status: String,
}

/// Lists the runs of a node with their status.
fn runs(node: SocketAddr, which: &str) -> Vec<Listed> {
    let context = TestContext::new(node);
    let (mut all, mut before) = (Vec::new(), String::new());
    loop {
        let path = format!("/v1/runs?{which}limit={PAGE}{before}");
        let page = ask(&context, &[200], "GET", &path, "").json();
        let text = |run: &serde_json::Value, field: &str| run[field].as_str().unwrap().to_owned();
        let found = page["runs"].as_array().unwrap().iter();
        all.extend(found.map(|run| Listed {
            id: text(run, "run_id"),
            thread: text(run, "thread_id"),
            status: text(run, "status"),
        }));
        match page["next"].as_str() {
            Some(next) => before = format!("&before={next}"),
            None => return all,
        }
    }
}

/// Waits until no program with a mark is left.
pub(super) fn no_process_is_left(mark: &str) {
    wait_for("a program is left", || (processes(mark) == 0).then_some(()));
}
