//! Recovery of orphaned runs after a server died.

use runwire_log::{Append, FrameBatch, NewRun, RunKey, Stamp, Target};
use runwire_model::dialect::Dialect;

use super::fake_agents::{FakeHttpAgent, RunAssertions, exec_agent};
use crate::harness::Served;

/// A store as a server leaves it that dies while its agent is at work.
async fn left_behind(frames: &str) -> Served {
    let served = Served::start().await;
    served.post("/v1/runs", r#"{"run_id":"r","agent":"a","message":"hi"}"#).await;
    served.write_as("/v1/runs/r/events?dialect=loom", ("runwire-agent", 1, 0), frames).await.written(1, 0);
    served
}

#[tokio::test]
async fn a_program_that_went_with_its_server_leaves_a_run_that_ends_at_once() {
    let served = left_behind("{\"type\":\"run_start\"}\n").await;
    let served = served.restarted_with(|config| config.agents = vec![exec_agent("exit 0")]).await;
    let run = served.closed("r").await;
    assert_eq!((&run["status"], &run["error"]["code"]), (&"failed".into(), &"producer_lost".into()));
}

#[tokio::test]
async fn an_interaction_of_a_dead_program_is_closed() {
    let served =
        left_behind("{\"type\":\"tool_approval\",\"name\":\"x\",\"arguments\":{},\"call_id\":\"c\"}\n").await;
    served.until_status("r", "suspended").await;
    let served = served.restarted_with(|config| config.agents = vec![exec_agent("exit 0")]).await;
    assert_eq!(served.closed("r").await["error"]["code"], "producer_lost");
}

#[tokio::test]
async fn a_stream_that_went_with_its_server_leaves_a_run_that_ends_at_once() {
    let served = left_behind("{\"type\":\"run_start\"}\n").await;
    let fake = FakeHttpAgent::telling("").await;
    let agent = fake.agent(Dialect::Loom);
    let served = served.restarted_with(|config| config.agents = vec![agent]).await;
    assert_eq!(served.closed("r").await["error"]["code"], "producer_lost");
    assert!(fake.asked().is_empty());
}

#[tokio::test]
async fn a_run_that_somebody_else_writes_under_the_same_name_is_left_alone() {
    let served = Served::start().await;
    served.post("/v1/runs", r#"{"run_id":"r","agent":"a"}"#).await;
    served.post("/v1/runs/r/events", "{\"type\":\"run_start\"}\n").await.written(1, 0);
    let served = served.restarted_with(|config| config.agents = vec![exec_agent("exit 0")]).await;
    assert_eq!(served.get("/v1/runs/r").await.json()["status"], "running");
    served.post("/v1/runs/r/events", "{\"reply\":\"still mine\"}\n").await.written(1, 0);
    assert_eq!(served.closed("r").await["status"], "completed");
}

#[tokio::test]
async fn the_runs_of_every_tenant_are_taken_up() {
    let served = Served::start().await;
    let keys = ["default", "theirs", "third"].map(|tenant| RunKey::new(tenant, "r"));
    for key in &keys {
        let new = NewRun {
            tenant: key.tenant.to_string(),
            run_id: Some("r".into()),
            agent: Some("a".into()),
            ..NewRun::default()
        };
        served.log.create_run(new).await.unwrap();
        let mut frames = FrameBatch::default();
        frames.push(1, None, b"{\"type\":\"run_start\"}");
        let stamp = Stamp { producer: "runwire-agent".into(), epoch: 1, index: 0 };
        let target = Target::Run(key.clone());
        let append = Append {
            target,
            thread: None,
            dialect: Some(Dialect::Loom),
            stamp: Some(stamp),
            frames,
            end: false,
            check: Default::default(),
            whole: Default::default(),
            parallel: false,
        };
        assert_eq!(served.log.append(append).await.unwrap().accepted, 1);
    }
    let served = served.restarted_with(|config| config.agents = vec![exec_agent("exit 0")]).await;
    for key in &keys {
        let ended = async {
            loop {
                let run = served.log.run(key).await.unwrap();
                if run.status.is_closed() {
                    return run;
                }
                tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            }
        };
        let run = crate::harness::within_timeout(ended).await;
        assert_eq!(run.summary.error.unwrap().code.as_deref(), Some("producer_lost"), "{key:?}");
    }
}

#[tokio::test]
async fn a_run_that_was_cancelled_before_its_server_died_is_not_resumed() {
    let served =
        left_behind("{\"type\":\"tool_approval\",\"name\":\"x\",\"arguments\":{},\"call_id\":\"c\"}\n").await;
    served.post("/v1/runs/r/interactions/c", r#"{"decision":"approved"}"#).await;
    served.post("/v1/runs/r/cancel", r#"{"reason":"enough"}"#).await;
    let fake = FakeHttpAgent::telling("{\"reply\":\"went on\"}").await;
    let agent = fake.agent_with(Dialect::Loom, |agent| agent.answer_url = Some(agent.url.clone()));
    let served = served.restarted_with(|config| config.agents = vec![agent]).await;
    assert_eq!(served.closed("r").await["status"], "cancelled");
    assert!(fake.asked().is_empty());
}

/// A store as a server leaves it that dies before its agent has said anything.
async fn never_begun() -> Served {
    let served = Served::start().await;
    let new = NewRun {
        tenant: "default".into(),
        run_id: Some("r".into()),
        agent: Some("a".into()),
        message: Some("hi".into()),
        is_started_here: true,
        ..NewRun::default()
    };
    served.log.create_run(new).await.unwrap();
    served
}

#[tokio::test]
async fn a_run_that_was_left_before_anything_was_written_to_it_is_started() {
    let served = never_begun().await;
    let program = exec_agent(r#"echo "{\"reply\":\"began\"}""#);
    let served = served.restarted_with(|config| config.agents = vec![program]).await;
    let run = served.closed("r").await;
    assert_eq!(run["status"], "completed", "{run}");
    let message = served.get("/v1/runs/r/message").await.json();
    assert_eq!(message["mainContent"], "began");
}

#[tokio::test]
async fn an_agent_that_takes_its_servers_down_is_not_started_for_ever() {
    let served = never_begun().await;
    // Another server took it up, and died before the agent said anything.
    let append = Append {
        target: Target::Run(RunKey::new("default", "r")),
        thread: None,
        dialect: Some(Dialect::Loom),
        stamp: Some(Stamp { producer: "runwire-agent".into(), epoch: 2, index: 0 }),
        frames: FrameBatch::default(),
        end: false,
        check: Default::default(),
        whole: Default::default(),
        parallel: false,
    };
    served.log.append(append).await.unwrap();
    let served = served.restarted_with(|config| config.agents = vec![exec_agent("exit 0")]).await;
    let run = served.closed("r").await;
    assert_eq!((&run["status"], &run["error"]["code"]), (&"failed".into(), &"producer_lost".into()));
}
