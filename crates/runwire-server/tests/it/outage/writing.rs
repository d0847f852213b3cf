//! Producers with an open body or socket during an outage.

use std::time::Duration;

use serde_json::json;

use super::flaky_log::Outage;
use super::serving;
use crate::agents::fake_agents::RunAssertions;
use crate::harness::{COMPLETED, delta};

const PRODUCER: [(&str, &str); 2] = [("producer-id", "p"), ("producer-seq", "0")];

#[tokio::test(flavor = "multi_thread")]
async fn an_open_body_waits_for_the_store_and_is_written_once() {
    for headers in [&PRODUCER[..], &[]] {
        let (served, store) = serving(|_| {}).await;
        let mut body = served.open("/v1/runs/r/events?end=true", headers).await;
        body.chunk(&delta("a")).await;
        served.until_records("r", 1).await;
        store.fail(Outage::Writes);
        body.chunk(&(delta("b") + &delta("c"))).await;
        store.until_refused("append", 3).await;
        body.chunk(&delta("d")).await;
        store.recover();
        body.end().await;
        body.answer().await.unwrap().written(4, 0);
        assert_eq!(served.closed("r").await["status"], "completed");
        assert_eq!(served.texts("r").await, "abcd");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_uncertain_write_is_repeated_only_with_a_producer_stamp() {
    let (served, store) = serving(|_| {}).await;
    for (run, headers) in [("stamped", &PRODUCER[..]), ("anonymous", &[])] {
        let mut body = served.open(&format!("/v1/runs/{run}/events"), headers).await;
        body.chunk(&delta("a")).await;
        served.until_records(run, 1).await;
        store.fail(Outage::Acknowledgements);
        body.chunk(&delta("b")).await;
        store.until_refused("acknowledgement", 1).await;
        if run == "anonymous" {
            let problem = body.answer().await.unwrap().problem(503, "store_unavailable");
            assert_eq!((&problem["accepted"], &problem["uncertain"]), (&1.into(), &true.into()), "{problem}");
            store.recover();
        } else {
            store.until_refused("acknowledgement", 3).await;
            store.recover();
            body.end().await;
            body.answer().await.unwrap().written(1, 1);
        }
        assert_eq!(served.texts(run).await, "ab");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_open_body_that_waits_too_long_gets_the_counts_of_what_was_written() {
    let (served, store) = serving(|config| config.outage = Duration::from_millis(300)).await;
    let mut body = served.open("/v1/runs/r/events", &PRODUCER).await;
    body.chunk(&(delta("a") + &delta("b"))).await;
    served.until_records("r", 2).await;
    store.fail(Outage::Everything);
    body.chunk(&delta("c")).await;
    let answer = body.answer().await.unwrap();
    let problem = answer.problem(503, "store_unavailable");
    assert_eq!((&problem["accepted"], &problem["last_seq"]), (&2.into(), &2.into()));
    assert_eq!(answer.headers["retry-after"], "1");
    let unknown = served.write_as("/v1/runs/new/events", ("p", 0, 0), &delta("a")).await;
    let problem = unknown.problem(503, "store_unavailable");
    assert_eq!((&problem["accepted"], &problem["last_seq"]), (&0.into(), &json!(null)));
    store.recover();
    // What was counted is there; the producer goes on behind it, or repeats it.
    served.write_as("/v1/runs/r/events", ("p", 0, 2), &(delta("c") + COMPLETED)).await.written(2, 0);
    served.write_as("/v1/runs/r/events", ("p", 0, 1), &(delta("b") + &delta("c"))).await.written(0, 2);
    assert_eq!(served.texts("r").await, "abc");
    served.get("/v1/runs/new").await.problem(404, "run_unknown");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idle_body_stays_open_during_an_outage() {
    let (served, store) = serving(|config| config.body_idle = Duration::from_millis(50)).await;
    let mut body = served.open("/v1/runs/r/events?end=true", &[]).await;
    body.chunk(&delta("a")).await;
    served.until_records("r", 1).await;
    store.fail(Outage::Everything);
    store.until_refused("run", 2).await;
    store.recover();
    body.chunk(&delta("b")).await;
    body.end().await;
    body.answer().await.unwrap().written(2, 0);
    assert_eq!(served.texts("r").await, "ab");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_producer_on_a_socket_retries_after_an_outage_without_duplicates() {
    let (served, store) = serving(|config| config.outage = Duration::from_millis(500)).await;
    let mut socket = served.socket().await;
    let write = |id: u64, content: &str| {
        let frame: serde_json::Value = serde_json::from_str(&delta(content)).unwrap();
        json!({"op": "write", "id": id, "run": "r", "dialect": "runwire", "producer": "p", "seq": id, "frames": [frame]})
    };
    socket.say(write(0, "a")).await;
    assert_eq!(socket.hear().await.unwrap()["accepted"], 1);
    // Short enough.
    store.fail(Outage::Writes);
    socket.say(write(1, "b")).await;
    store.until_refused("append", 2).await;
    store.recover();
    let ack = socket.hear().await.unwrap();
    assert_eq!((&ack["op"], &ack["accepted"], &ack["id"]), (&json!("ack"), &json!(1), &json!(1)));
    // Too long.
    store.fail(Outage::Everything);
    socket.say(write(2, "c")).await;
    let refused = socket.hear().await.unwrap();
    assert_eq!((&refused["op"], &refused["code"]), (&json!("error"), &json!("store_unavailable")));
    assert_eq!((&refused["id"], &refused["accepted"]), (&json!(2), &json!(0)));
    store.recover();
    socket.say(write(2, "c")).await;
    let ack = socket.hear().await.unwrap();
    assert_eq!((&ack["accepted"], &ack["duplicates"]), (&json!(1), &json!(0)));
    assert_eq!(served.texts("r").await, "abc");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_producer_on_a_socket_hears_of_a_cancel_although_nothing_could_be_read_when_it_began() {
    let (served, store) = serving(|_| {}).await;
    let mut socket = served.socket().await;
    store.fail(Outage::Reads);
    let frame: serde_json::Value = serde_json::from_str(&delta("a")).unwrap();
    let write = json!({"op": "write", "id": 1, "run": "r", "dialect": "runwire", "frames": [frame]});
    socket.say(write).await;
    assert_eq!(socket.hear().await.unwrap()["op"], "ack");
    store.until_refused("run", 3).await;
    assert_eq!(served.post("/v1/runs/r/cancel", "").await.status, 200);
    store.recover();
    let signal = socket.hear().await.unwrap();
    assert_eq!((&signal["op"], &signal["frame"]["type"]), (&json!("signal"), &json!("run.cancel_requested")));
    // A lease that could not be renewed is renewed by the next ping.
    store.fail(Outage::Writes);
    socket.say(json!({"op": "ping"})).await;
    assert_eq!(socket.hear().await.unwrap()["op"], "pong");
    assert_eq!(store.refused("heartbeat"), 1);
    store.fail(Outage::Reads);
    socket.say(json!({"op": "ping"})).await;
    assert_eq!(socket.hear().await.unwrap()["op"], "pong");
    store.recover();
    served.post("/v1/runs/r/events?end=true", "").await.written(0, 0);
}
