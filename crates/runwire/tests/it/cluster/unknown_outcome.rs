//! The response of a commit is lost: the node finds out its outcome, reports it truthfully, and writes nothing twice.

use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use runwire_engines::Mode;
use serde_json::{Value, json};

use super::requests::{events, the_end};
use super::test_cluster::{Setup, TestCluster};
use crate::crash::http::{Answer, get, post};

const ROUNDS: usize = 8;
/// How long a commit that is not held up by another one takes at most; some are not found in doubt where it takes longer.
const MAX_COMMIT_TIME: Duration = Duration::from_secs(2);
/// How a node's commits end, and nothing else that it says.
pub(super) const COMMIT: &str = "COMMIT WORK";
/// Longer than an answer takes that is not lost.
const RESPONSE_TIME: Duration = Duration::from_millis(100);

/// Sends a request to the first node, and drops the response of its store once another node shows the write. Returns the
/// first node's response, and whether a store response was dropped.
fn with_lost_response(
    cluster: &TestCluster,
    ask: impl Fn(SocketAddr) -> Answer + Sync,
    is_done: impl Fn(SocketAddr) -> bool,
) -> (Answer, bool) {
    let (way, node, other) =
        (&cluster.nodes[0].to_postgres, cluster.nodes[0].address(), cluster.nodes[1].address());
    way.set(Mode::MuteAfter(COMMIT));
    thread::scope(|threads| {
        let (asked, begun) = (threads.spawn(|| ask(node)), Instant::now());
        let is_lost = loop {
            if is_done(other) {
                thread::sleep(RESPONSE_TIME);
                break !asked.is_finished();
            }
            if begun.elapsed() > MAX_COMMIT_TIME {
                break false;
            }
            thread::sleep(Duration::from_millis(5));
        };
        way.cut_and(Mode::Pass);
        (asked.join().expect("the node answers"), is_lost)
    })
}

fn count(events: &[Value], found: impl Fn(&Value) -> bool) -> usize {
    events.iter().filter(|event| found(event)).count()
}

#[test]
fn a_commit_whose_answer_is_lost_is_found_out_and_never_repeated() {
    let mut cluster = TestCluster::start(Setup { nodes: 2, ..Setup::default() });
    let other = cluster.nodes[1].address();
    let mut lost = 0;
    for round in 0..ROUNDS {
        let run = format!("r{round}");
        let path = format!("/v1/runs/{run}/events?dialect=runwire");
        let frame =
            json!({"type": "text.delta", "message_id": "m", "content": format!("<{round}>")}).to_string();
        let question =
            json!({"type": "interaction.requested", "interaction_id": "q", "kind": "form"}).to_string();
        // Without a stamp: nobody but the node could tell that it was written already.
        for body in [&frame, &question] {
            let before = events_so_far(other, &run);
            let is_done = |node| events_so_far(node, &run) > before;
            let (answer, is_lost) =
                with_lost_response(&cluster, |node| post(node, &path, &[], body).unwrap(), is_done);
            lost += usize::from(is_lost);
            assert_eq!((answer.status, answer.written().accepted), (200, 1), "{answer:?}");
        }
        let answer_path = format!("/v1/runs/{run}/interactions/q");
        let said = json!({"decision": "submitted", "values": {"n": round}}).to_string();
        let is_open = |node| get(node, &format!("/v1/runs/{run}")).unwrap().json()["status"] == "suspended";
        let (answer, is_lost) = with_lost_response(
            &cluster,
            |node| post(node, &answer_path, &[], &said).unwrap(),
            |node| !is_open(node),
        );
        lost += usize::from(is_lost);
        assert_eq!(answer.status, 200, "{answer:?}");
        let end = format!("{path}&end=true");
        let ended = |node| get(node, &format!("/v1/runs/{run}")).unwrap().json()["ended_at"].is_string();
        let (answer, is_lost) =
            with_lost_response(&cluster, |node| post(node, &end, &[], "").unwrap(), ended);
        lost += usize::from(is_lost);
        assert_eq!(answer.status, 200, "{answer:?}");
        for node in cluster.addresses() {
            let events = events(node, &run);
            the_end(&run, &events);
            let said = format!("<{round}>");
            assert_eq!(count(&events, |event| event["content"] == said.as_str()), 1, "{events:#?}");
            for kind in ["interaction.requested", "interaction.resolved", "run.suspended", "run.resumed"] {
                assert_eq!(count(&events, |event| event["type"] == kind), 1, "{kind}: {events:#?}");
            }
        }
    }
    assert!(lost > ROUNDS, "only {lost} commits of {} were in doubt", 4 * ROUNDS);
    cluster.stop();
}

fn events_so_far(node: SocketAddr, run: &str) -> u64 {
    let info = get(node, &format!("/v1/runs/{run}")).unwrap();
    if info.status == 404 {
        return 0;
    }
    info.json()["counts"]["records"].as_u64().unwrap()
}
