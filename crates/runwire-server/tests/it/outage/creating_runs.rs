//! Creating runs of agents while the store fails or the client disconnects.

use std::time::Duration;

use runwire_log::{Append, FrameBatch, LogEvents, RunKey, Stamp, Target};

use super::flaky_log::Outage;
use super::serving;
use crate::agents::fake_agents::{RunAssertions, exec_agent};
use crate::harness::{Served, within_timeout};

const SAYS_A: &str = r#"echo '{"type":"message_chunk","content":"a","id":"n"}'"#;
const NEW: &str = r#"{"run_id":"r","agent":"a"}"#;

/// Waits until no agent is at work any more.
async fn until_idle(served: &Served) {
    within_timeout(async {
        while !served.get("/metrics").await.text.lines().any(|line| line == "runwire_agent_runs_open 0") {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_created_run_has_its_agent_even_if_the_client_disconnects() {
    let (served, store) = serving(|config| config.agents = vec![exec_agent(SAYS_A)]).await;
    store.fail(Outage::Creations);
    let mut client = served.raw().await;
    let length = NEW.len();
    let head = format!(
        "POST /v1/runs HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {length}"
    );
    client.send(format!("{head}\r\n\r\n{NEW}").as_bytes()).await.unwrap();
    store.until_refused("creation", 1).await;
    drop(client);
    // The server has the time to notice it.
    store.until_refused("creation", 20).await;
    store.recover();
    assert_eq!(served.closed("r").await["status"], "completed");
    assert_eq!(served.texts("r").await, "a");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_with_an_unknown_creation_outcome_is_found_and_started_once() {
    let (served, store) = serving(|config| config.agents = vec![exec_agent(SAYS_A)]).await;
    for asked in [NEW, r#"{"agent":"a"}"#] {
        store.fail(Outage::Acknowledgements);
        let (answer, ()) = tokio::join!(served.post("/v1/runs", asked), async {
            store.until_refused("acknowledgement", 3).await;
            store.recover();
        });
        assert_eq!(answer.status, 201, "{answer:?}");
        let run = answer.json()["run_id"].as_str().unwrap().to_owned();
        assert_eq!(served.closed(&run).await["status"], "completed");
        assert_eq!(served.texts(&run).await, "a");
    }
    // Whoever repeats it has not made it.
    assert_eq!(served.post("/v1/runs", NEW).await.status, 200);
    assert_eq!(served.get("/v1/runs").await.json()["runs"].as_array().unwrap().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_creation_that_stays_uncertain_says_that_the_run_may_exist() {
    let (served, store) = serving(|config| {
        config.agents = vec![exec_agent(SAYS_A)];
        config.outage = Duration::from_millis(200);
    })
    .await;
    store.fail(Outage::Acknowledgements);
    let problem = served.post("/v1/runs", NEW).await.problem(503, "store_unavailable");
    assert_eq!(problem["uncertain"], true, "{problem}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_run_that_another_server_has_taken_up_meanwhile_is_left_to_it() {
    let directory = tempfile::tempdir().unwrap();
    let begun = directory.path().join("begun");
    let script = format!("touch '{}'", begun.display());
    let (served, store) = serving(|config| config.agents = vec![exec_agent(&script)]).await;
    store.fail(Outage::Reads);
    assert_eq!(served.post("/v1/runs", NEW).await.status, 201);
    store.until_refused("thread", 2).await;
    for producer in ["runwire-agent", "runwire-agent-own"] {
        let append = Append {
            target: Target::Run(RunKey::new("default", "r")),
            thread: None,
            dialect: None,
            stamp: Some(Stamp { producer: producer.into(), epoch: 2, index: 0 }),
            frames: FrameBatch::default(),
            end: false,
            check: Default::default(),
            whole: Default::default(),
            parallel: false,
        };
        store.append(append).await.unwrap();
    }
    store.recover();
    until_idle(&served).await;
    assert!(!begun.exists(), "it is not started a second time");
    assert_eq!(served.get("/v1/runs/r").await.json()["status"], "pending");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_whose_events_the_store_refuses_for_good_ends() {
    let (served, store) = serving(|config| config.agents = vec![exec_agent(SAYS_A)]).await;
    store.fail(Outage::Agents);
    served.post("/v1/runs", NEW).await;
    let run = served.closed("r").await;
    assert_eq!((&run["status"], &run["error"]["code"]), (&"failed".into(), &"store_damaged".into()), "{run}");
    assert_eq!(store.refused("agent"), 1, "it is not tried again");
    until_idle(&served).await;
    let answer = served.write_as("/v1/runs/s/events", ("runwire-agent", 1, 0), "{\"reply\":\"x\"}\n").await;
    answer.problem(500, "store_damaged");
    assert!(!answer.text.contains("secret"), "{answer:?}");
}
