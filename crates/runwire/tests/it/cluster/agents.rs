//! An agent on one node is answered and cancelled on another.

use std::net::SocketAddr;

use serde_json::json;

use super::check::no_process_is_left;
use super::requests::{events, processes, the_end, wait_for, wait_for_status};
use super::test_cluster::{Setup, TestCluster};
use super::users::{agents, start};
use crate::crash::http::{get, post};

fn answer(node: SocketAddr, run: &str, question: &str, body: &serde_json::Value) {
    let path = format!("/v1/runs/{run}/interactions/{question}");
    let told = post(node, &path, &[], &body.to_string()).unwrap();
    assert_eq!(told.status, 200, "{told:?}");
}

#[test]
fn what_an_agent_asks_on_one_node_is_answered_on_another_and_it_goes_on() {
    let mark = format!("asked-agent-{}", std::process::id());
    let mut cluster = TestCluster::start(Setup { agents: &agents(&mark), ..Setup::default() });
    let [a, b, c] = cluster.addresses()[..] else { panic!("three nodes") };
    let approved = json!({"decision": "approved"});
    let cases = [
        ("asks", "q", approved),
        ("http", "q", json!({"decision": "submitted", "values": {"any": 1}})),
        (
            "demo",
            "trip",
            json!({"decision": "submitted", "values": {"name": "Ann", "email": "ann@example.com"}}),
        ),
    ];
    for (agent, question, said) in &cases {
        start(a, agent, agent);
        // The other nodes see that it waits, in their inbox too.
        wait_for_status(b, agent, "suspended");
        let inbox = get(c, &format!("/v1/interactions?run={agent}")).unwrap().json();
        assert_eq!(inbox["interactions"][0]["interaction_id"], *question, "{inbox}");
        answer(b, agent, question, said);
    }
    for (agent, question, said) in &cases {
        // The demo asks for an approval next.
        wait_for(&format!("{agent} does not go on"), || {
            let info = get(c, &format!("/v1/runs/{agent}")).unwrap().json();
            let open =
                info["interactions"].as_array().unwrap().iter().find(|asked| asked["status"] == "open");
            if let Some(asked) = open {
                answer(c, agent, asked["interaction_id"].as_str().unwrap(), &json!({"decision": "approved"}));
            }
            info["ended_at"].is_string().then_some(())
        });
        let told = events(c, agent);
        assert_eq!(the_end(agent, &told)["type"], "run.completed");
        let settled = told
            .iter()
            .find(|event| event["type"] == "interaction.resolved" && event["interaction_id"] == *question);
        assert_eq!(settled.unwrap()["decision"], said["decision"]);
        assert_eq!(told, events(a, agent));
        assert_eq!(told, events(b, agent));
    }
    cluster.stop();
    no_process_is_left(&mark);
}

#[test]
fn a_cancel_on_one_node_reaches_the_agent_on_another() {
    let mark = format!("stopped-agent-{}", std::process::id());
    let mut cluster = TestCluster::start(Setup { agents: &agents(&mark), ..Setup::default() });
    let [a, b, c] = cluster.addresses()[..] else { panic!("three nodes") };
    for agent in ["counts", "endless"] {
        start(a, agent, agent);
        wait_for_status(c, agent, "running");
    }
    wait_for("the program does not run", || (processes(&mark) > 0).then_some(()));
    for agent in ["counts", "endless"] {
        let told = post(b, &format!("/v1/runs/{agent}/cancel"), &[], r#"{"reason":"enough"}"#).unwrap();
        assert!(matches!(told.status, 200 | 202), "{told:?}");
    }
    for agent in ["counts", "endless"] {
        wait_for_status(c, agent, "cancelled");
        the_end(agent, &events(b, agent));
    }
    no_process_is_left(&mark);
    cluster.stop();
}
