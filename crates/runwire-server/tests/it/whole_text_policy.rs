//! The policy for a whole text that differs from its streamed pieces.

use runwire_agents::{Agent, AgentKind, ExecAgent};
use runwire_model::dialect::Dialect;
use runwire_model::run::WholePolicy;
use serde_json::{Value, json};

use crate::agents::fake_agents::RunAssertions;
use crate::harness::Served;

const EDITED: &str = "{\"type\":\"message_chunk\",\"content\":\"Two plus two is five.\",\"id\":\"think\"}\n\
                      {\"reply\":\"Two plus two is four.\"}\n";

const ANSWERS: [(&str, &str); 3] = [
    ("add", "Two plus two is five.\n\nTwo plus two is four."),
    ("ignore", "Two plus two is five."),
    ("replace", "Two plus two is four."),
];

async fn answer(served: &Served, run: &str) -> Value {
    served.get(&format!("/v1/runs/{run}/message")).await.json()["mainContent"].clone()
}

#[tokio::test]
async fn a_whole_text_adds_replaces_or_is_ignored_as_the_write_says() {
    let served = Served::start().await;
    for (policy, expected) in ANSWERS {
        served.post(&format!("/v1/runs/{policy}/events?dialect=loom&whole={policy}"), EDITED).await.json();
        assert_eq!(answer(&served, policy).await, expected);
    }
    served.post("/v1/runs/default/events?dialect=loom", EDITED).await.json();
    assert_eq!(answer(&served, "default").await, ANSWERS[0].1);
    served.post("/v1/runs/r/events?whole=maybe", EDITED).await.problem(400, "bad_query");
    let mut socket = served.socket().await;
    let frames: Vec<Value> = EDITED.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let write = json!({"op": "write", "id": "w", "run": "ws", "dialect": "loom", "frames": frames, "whole": "replace"});
    socket.say(write).await;
    assert_eq!(socket.hear().await.unwrap()["op"], "ack");
    assert_eq!(answer(&served, "ws").await, ANSWERS[2].1);
}

#[tokio::test]
async fn an_agent_that_edits_its_answer_says_so_in_the_configuration() {
    let served = Served::with(|config| {
        config.agents = ANSWERS
            .map(|(policy, _)| {
                let whole = WholePolicy::from_name(policy).unwrap();
                let agent = ExecAgent { whole, ..ExecAgent::new(["printf", "%s", EDITED], Dialect::Loom) };
                Agent { name: policy.to_owned(), kind: AgentKind::Exec(agent) }
            })
            .into();
    })
    .await;
    for (policy, expected) in ANSWERS {
        served.post("/v1/runs", &json!({"run_id": policy, "agent": policy}).to_string()).await;
        served.closed(policy).await;
        assert_eq!(answer(&served, policy).await, expected);
    }
}
