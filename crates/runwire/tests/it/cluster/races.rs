//! Concurrent requests on several nodes: one wins, and all nodes agree.

use std::net::SocketAddr;
use std::sync::Barrier;
use std::thread;

use serde_json::{Value, json};

use super::requests::{events, the_end, wait_for_status};
use super::test_cluster::{Setup, TestCluster};
use crate::crash::http::{Answer, post};

const ROUNDS: usize = 20;
/// Forms that wait for an answer.
const QUESTION: &str = r#"{"type":"interaction.requested","interaction_id":"q","kind":"form","title":"Which?","schema":{"type":"object","properties":{"n":{"type":"integer"}}}}"#;

/// Lets every node be asked at the same moment.
fn at_once(nodes: &[SocketAddr], ask: impl Fn(usize, SocketAddr) -> Answer + Sync) -> Vec<Answer> {
    let barrier = Barrier::new(nodes.len());
    thread::scope(|threads| {
        let asking: Vec<_> = nodes
            .iter()
            .enumerate()
            .map(|(at, node)| {
                let (ask, barrier) = (&ask, &barrier);
                threads.spawn(move || {
                    barrier.wait();
                    ask(at, *node)
                })
            })
            .collect();
        asking.into_iter().map(|asked| asked.join().expect("the node answers")).collect()
    })
}

fn write(node: SocketAddr, run: &str, frame: &str) {
    let answer = post(node, &format!("/v1/runs/{run}/events?dialect=runwire"), &[], frame).unwrap();
    assert_eq!(answer.status, 200, "{answer:?}");
}

/// Returns a run's events, which must be the same on every node.
fn agreed(nodes: &[SocketAddr], run: &str) -> Vec<Value> {
    let all: Vec<_> = nodes.iter().map(|node| events(*node, run)).collect();
    assert!(all.iter().all(|events| *events == all[0]), "the nodes do not agree about {run}: {all:#?}");
    all.into_iter().next().unwrap()
}

#[test]
fn of_two_answers_on_two_nodes_one_wins_and_both_are_told_which() {
    let mut cluster = TestCluster::start(Setup::default());
    let nodes = cluster.addresses();
    for round in 0..ROUNDS {
        let run = format!("form-{round}");
        write(nodes[round % nodes.len()], &run, QUESTION);
        let told = at_once(&nodes, |at, node| {
            let body = json!({"decision": "submitted", "values": {"n": at}}).to_string();
            post(node, &format!("/v1/runs/{run}/interactions/q"), &[], &body).unwrap()
        });
        let winners: Vec<usize> = (0..told.len()).filter(|at| told[*at].status == 200).collect();
        let [winner] = winners.as_slice() else { panic!("{told:?}") };
        for answer in told.iter().filter(|answer| answer.status != 200) {
            assert_eq!(answer.status, 409, "{answer:?}");
            let problem = answer.json();
            assert_eq!(problem["code"], "interaction_closed");
            assert_eq!(problem["answer"]["values"]["n"], *winner, "{problem}");
        }
        let events = agreed(&nodes, &run);
        let answers: Vec<_> = events.iter().filter(|event| event["type"] == "interaction.resolved").collect();
        let [answer] = answers.as_slice() else { panic!("{events:#?}") };
        assert_eq!(answer["values"]["n"], *winner);
    }
    cluster.stop();
}

#[test]
fn a_run_that_is_cancelled_on_all_nodes_at_once_has_one_end() {
    let mut cluster = TestCluster::start(Setup::default());
    let nodes = cluster.addresses();
    for round in 0..ROUNDS {
        let run = format!("cancelled-{round}");
        let first = nodes[round % nodes.len()];
        // One that waits for a person ends at once; one that runs is asked to, and its producer ends it.
        let waits = round % 2 == 0;
        write(
            first,
            &run,
            if waits { QUESTION } else { r#"{"type":"text.delta","message_id":"m","content":"so"}"# },
        );
        let told = at_once(&nodes, |_, node| post(node, &format!("/v1/runs/{run}/cancel"), &[], "").unwrap());
        assert!(told.iter().all(|answer| matches!(answer.status, 200 | 202)), "{told:?}");
        if !waits {
            let ended = at_once(&nodes, |_, node| {
                post(
                    node,
                    &format!("/v1/runs/{run}/events?dialect=runwire"),
                    &[],
                    r#"{"type":"run.cancelled"}"#,
                )
                .unwrap()
            });
            let taken = ended.iter().filter(|answer| answer.status == 200).count();
            assert_eq!(taken, 1, "{ended:?}");
            assert!(ended.iter().all(|answer| matches!(answer.status, 200 | 409)), "{ended:?}");
        }
        let events = agreed(&nodes, &run);
        assert_eq!(the_end(&run, &events)["type"], "run.cancelled");
        let asked = events.iter().filter(|event| event["type"] == "run.cancel_requested").count();
        assert_eq!(asked, usize::from(!waits), "{events:#?}");
    }
    cluster.stop();
}

#[test]
fn an_answer_and_a_cancel_on_different_nodes_leave_one_end_and_one_answer() {
    let mut cluster = TestCluster::start(Setup::default());
    let nodes = cluster.addresses();
    for round in 0..ROUNDS {
        let run = format!("both-{round}");
        write(nodes[round % nodes.len()], &run, QUESTION);
        let told = at_once(&nodes, |at, node| match (at + round) % nodes.len() {
            0 => post(node, &format!("/v1/runs/{run}/cancel"), &[], "").unwrap(),
            _ => {
                let body = json!({"decision": "submitted", "values": {"n": at}}).to_string();
                post(node, &format!("/v1/runs/{run}/interactions/q"), &[], &body).unwrap()
            }
        });
        assert!(told.iter().all(|answer| matches!(answer.status, 200 | 202 | 409)), "{told:?}");
        // Whoever answered first lets the run go on, cancelled or not; then its producer ends it.
        let end = r#"{"type":"run.cancelled"}"#;
        post(nodes[0], &format!("/v1/runs/{run}/events?dialect=runwire"), &[], end).unwrap();
        let events = agreed(&nodes, &run);
        the_end(&run, &events);
        let answers = events.iter().filter(|event| event["type"] == "interaction.resolved").count();
        assert_eq!(answers, 1, "{events:#?}");
    }
    cluster.stop();
}

#[test]
fn a_lease_that_runs_out_on_all_nodes_closes_its_run_once() {
    let mut cluster = TestCluster::start(Setup { lease: 1, ..Setup::default() });
    let nodes = cluster.addresses();
    let runs: Vec<String> = (0..60).map(|at| format!("left-{at}")).collect();
    for (at, run) in runs.iter().enumerate() {
        write(nodes[at % nodes.len()], run, r#"{"type":"text.delta","message_id":"m","content":"so"}"#);
    }
    for run in &runs {
        wait_for_status(nodes[0], run, "failed");
        let events = agreed(&nodes, run);
        assert_eq!(the_end(run, &events)["error"]["code"], "producer_lost");
    }
    cluster.stop();
}
