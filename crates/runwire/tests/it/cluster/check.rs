//! What must be true of a cluster after everything.

use std::net::SocketAddr;

use super::asking::{ask, events, processes, the_end, wait_for};
use super::bed::Bed;
use crate::crash::world::World;

/// Runs a page of a list has at most.
const PAGE: usize = 100;

/// Waits until no run is open, as every node tells it.
pub(super) fn every_run_ends(bed: &Bed) {
    for node in bed.addresses() {
        for status in ["pending", "running", "suspended"] {
            let open = || runs(node, &format!("status={status}&"));
            let mut last = Vec::new();
            wait_for(&format!("runs are {status} that nobody ends"), || {
                last = open();
                last.is_empty().then_some(())
            });
        }
    }
}

/// Every run has exactly one terminal event, the same on every node, and its status says so.
pub(super) fn every_run_has_one_end(bed: &Bed) -> usize {
    let addresses = bed.addresses();
    let all = runs(addresses[0], "");
    for node in &addresses[1..] {
        assert_eq!(runs(*node, ""), all, "the nodes list other runs");
    }
    for (at, (run, status)) in all.iter().enumerate() {
        // Whole streams are compared elsewhere; here each node is asked in turn.
        let events = events(addresses[at % addresses.len()], run);
        let end = the_end(run, &events);
        assert_eq!(end["type"], format!("run.{status}"), "{run}");
    }
    all.len()
}

/// Lists the runs of a node with their status.
fn runs(node: SocketAddr, which: &str) -> Vec<(String, String)> {
    let world = World::new(node);
    let (mut all, mut before) = (Vec::new(), String::new());
    loop {
        let path = format!("/v1/runs?{which}limit={PAGE}{before}");
        let page = ask(&world, &[200], "GET", &path, "").json();
        let text = |run: &serde_json::Value, field: &str| run[field].as_str().unwrap().to_owned();
        let found = page["runs"].as_array().unwrap().iter();
        all.extend(found.map(|run| (text(run, "run_id"), text(run, "status"))));
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
