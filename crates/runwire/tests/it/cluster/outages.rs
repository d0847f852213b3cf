//! An engine is down for longer than any timeout: open streams stay, new requests are refused, and everything recovers.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use runwire_engines::Mode;
use rustix::process::Signal;

use super::check::no_process_is_left;
use super::requests::{events, processes, the_end, wait_for, wait_for_status};
use super::test_cluster::{Setup, TestCluster, set_mode_and_cut};
use super::users::{agents, start};
use crate::command::TIMEOUT;
use crate::crash::http::{BodyPiece, Exchange, get, post};

/// Longer than a request is tried, than a statement may take, and than a node is given to show that it lives.
const OUTAGE: Duration = Duration::from_secs(13);
/// Shorter than the outage: nobody could show a sign of life meanwhile, so nobody is taken for dead.
const LEASE: u32 = 8;

/// A reader that must never be cut off.
struct Steady {
    exchange: Exchange,
    told: String,
}

impl Steady {
    fn follow(node: SocketAddr, run: &str) -> Self {
        let accept = [("accept", "text/event-stream".to_owned())];
        let path = format!("/v1/runs/{run}/events?dialect=runwire");
        let mut exchange = Exchange::begin(node, "GET", &path, &accept, None).unwrap();
        assert_eq!(exchange.status().unwrap(), 200);
        Self { exchange, told: String::new() }
    }

    /// Waits until something has come.
    fn until(&mut self, what: &str) {
        let begun = Instant::now();
        while !self.told.contains(what) {
            assert!(begun.elapsed() < TIMEOUT, "{what} does not come: {}", self.told);
            match self.exchange.piece().expect("the reader stays connected") {
                BodyPiece::Bytes(bytes) => self.told.push_str(std::str::from_utf8(&bytes).unwrap()),
                BodyPiece::Quiet => {}
                BodyPiece::End => panic!("the stream ended: {}", self.told),
            }
        }
    }

    /// What it was told is what there is.
    fn check(&self, node: SocketAddr, run: &str) {
        let told = self.told.lines().filter_map(|line| line.strip_prefix("data: "));
        let told: Vec<serde_json::Value> = told.map(|line| serde_json::from_str(line).unwrap()).collect();
        let there = events(node, run);
        assert_eq!(told[..], there[..told.len()], "something is missing, or came twice");
    }
}

fn write(node: SocketAddr, run: &str, at: usize) -> u16 {
    let stamp = [("producer-id", "w".to_owned()), ("producer-seq", at.to_string())];
    let frame = format!("{{\"type\":\"text.delta\",\"message_id\":\"m\",\"content\":\"<{at}>\"}}\n");
    let path = format!("/v1/runs/{run}/events?dialect=runwire");
    let answer = post(node, &path, &stamp, &frame).unwrap();
    if answer.status != 200 {
        let problem = answer.json();
        assert_eq!((answer.status, &problem["code"]), (503, &"store_unavailable".into()), "{problem}");
    }
    answer.status
}

fn store_is_away(node: SocketAddr) {
    wait_for("the node does not notice", || {
        let ready = get(node, "/readyz").unwrap();
        (ready.status == 503 && ready.body.contains("store")).then_some(())
    });
}

#[test]
fn an_outage_of_postgres_cuts_nobody_off_and_ends_nothing() {
    let mark = format!("outage-agent-{}", std::process::id());
    let mut cluster = TestCluster::start(Setup { lease: LEASE, agents: &agents(&mark), ..Setup::default() });
    let nodes = cluster.addresses();
    let [a, b, c] = nodes[..] else { panic!("three nodes") };
    assert_eq!(write(a, "r", 0), 200);
    for agent in ["counts", "endless", "asks", "http", "demo"] {
        start(a, agent, agent);
    }
    for agent in ["asks", "http", "demo"] {
        wait_for_status(b, agent, "suspended");
    }
    let mut readers: Vec<(Steady, SocketAddr, &str)> = nodes
        .iter()
        .flat_map(|node| ["r", "counts"].map(|run| (Steady::follow(*node, run), *node, run)))
        .collect();
    for (reader, ..) in &mut readers {
        reader.until("content");
    }
    let programs = processes(&mark);
    let away = Instant::now();
    cluster.postgres.stop();
    thread::scope(|threads| {
        for node in &nodes {
            threads.spawn(|| {
                store_is_away(*node);
                assert_eq!(write(*node, "r", 1), 503);
                let answer = get(*node, "/v1/runs/r/events?follow=false").unwrap();
                assert_eq!(answer.status, 503, "{answer:?}");
                assert_eq!(get(*node, "/healthz").unwrap().status, 200);
            });
        }
    });
    thread::sleep(OUTAGE.saturating_sub(away.elapsed()));
    cluster.postgres.restart().unwrap();
    wait_for("the store does not come back", || (write(b, "r", 1) == 200).then_some(()));
    assert_eq!(processes(&mark), programs, "a program was ended");
    for (reader, node, run) in &mut readers {
        if *run == "r" {
            reader.until("<1>");
        } else {
            let so_far = events(c, "counts").last().unwrap()["seq"].to_string();
            reader.until(&format!("\"seq\":{so_far}"));
        }
        reader.check(*node, run);
    }
    // Whatever the agents were doing, they do it still.
    let seq = |run: &str| events(c, run).last().unwrap()["seq"].as_u64();
    for run in ["counts", "endless"] {
        let before = seq(run);
        wait_for(&format!("{run} does not go on"), || (seq(run) > before).then_some(()));
    }
    for run in ["counts", "endless", "asks", "http", "demo", "r"] {
        let told = post(c, &format!("/v1/runs/{run}/cancel"), &[], "").unwrap();
        assert_eq!(told.status, 200, "{told:?}");
        if run == "r" {
            assert_eq!(post(b, "/v1/runs/r/events", &[], r#"{"type":"run.cancelled"}"#).unwrap().status, 200);
        }
        wait_for_status(b, run, "cancelled");
        assert_eq!(the_end(run, &events(a, run))["type"], "run.cancelled");
    }
    no_process_is_left(&mark);
    cluster.stop();
}

#[test]
fn a_node_that_is_cut_off_from_postgres_says_so_and_goes_on_when_it_is_not() {
    let mut cluster = TestCluster::start(Setup::default());
    let [a, b, _] = cluster.addresses()[..] else { panic!("three nodes") };
    assert_eq!(write(a, "r", 0), 200);
    let mut reader = Steady::follow(a, "r");
    reader.until("<0>");
    let mut at = 1;
    for mode in [Mode::Stall, Mode::Refuse] {
        set_mode_and_cut(&cluster.nodes[0].to_postgres, mode);
        store_is_away(a);
        assert_eq!(get(b, "/readyz").unwrap().status, 200);
        // The others go on meanwhile, and the run with them.
        assert_eq!(write(b, "r", at), 200);
        assert_eq!(write(a, "r", at + 1), 503);
        assert_eq!(write(b, "r", at + 1), 200);
        cluster.nodes[0].to_postgres.set(Mode::Pass);
        wait_for("the node does not come back", || (get(a, "/readyz").unwrap().status == 200).then_some(()));
        assert_eq!(write(a, "r", at + 2), 200);
        reader.until(&format!("<{}>", at + 2));
        at += 3;
    }
    reader.check(b, "r");
    assert_eq!(post(b, "/v1/runs/r/events?end=true", &[], "").unwrap().status, 200);
    cluster.stop();
}

#[test]
fn a_node_that_is_paused_in_the_middle_of_things_holds_up_nobody() {
    let mut cluster = TestCluster::start(Setup { lease: 3600, ..Setup::default() });
    let [a, b, _] = cluster.addresses()[..] else { panic!("three nodes") };
    let say = |node, name: &str| {
        let frame = format!("{{\"type\":\"custom\",\"name\":\"n\",\"value\":\"{name}\"}}\n");
        post(node, "/v1/runs/r/events?dialect=runwire", &[], &frame)
    };
    let (mut said, paused) = (0, AtomicBool::new(false));
    for _ in 0..3 {
        // It writes to the thread as fast as it can, so that it most likely holds the thread when it is paused.
        thread::scope(|threads| {
            let writers: Vec<_> = (0..3)
                .map(|_| {
                    threads.spawn(|| {
                        let mut count = 0;
                        while !paused.load(Ordering::SeqCst) {
                            // What took too long while nobody was there is refused, and then it is not there.
                            let status = say(a, "a").unwrap().status;
                            assert!(matches!(status, 200 | 503), "{status}");
                            count += usize::from(status == 200);
                        }
                        count
                    })
                })
                .collect();
            thread::sleep(Duration::from_millis(300));
            cluster.nodes[0].server.signal(Signal::STOP);
            paused.store(true, Ordering::SeqCst);
            wait_for("the other node cannot write", || (say(b, "b").unwrap().status == 200).then_some(()));
            cluster.nodes[0].server.signal(Signal::CONT);
            said +=
                writers.into_iter().map(|writer| writer.join().expect("its writes are taken")).sum::<usize>();
        });
        paused.store(false, Ordering::SeqCst);
    }
    let told = events(b, "r");
    let of = |name: &str| told.iter().filter(|event| event["value"] == name).count();
    assert_eq!((of("a"), of("b")), (said, 3));
    assert_eq!(told, events(a, "r"));
    cluster.stop();
}
