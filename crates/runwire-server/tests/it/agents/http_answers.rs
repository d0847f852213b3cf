//! Answers that continue the run of an HTTP agent.

use runwire_model::dialect::Dialect;
use serde_json::json;

use super::fake_agents::{
    FakeHttpAgent, ReceivedRequest, RunAssertions, begin_sse, chunk, count, sse, until_closed, whole,
};
use crate::harness::{Served, within_timeout};

const ASKS: &str = "{\"type\":\"RUN_STARTED\",\"threadId\":\"t\",\"runId\":\"r\"}\n{\"type\":\"RUN_FINISHED\",\"threadId\":\"t\",\"runId\":\"r\",\"outcome\":{\"type\":\"interrupt\",\"interrupts\":[{\"id\":\"i1\",\"reason\":\"input_required\",\"message\":\"Who?\",\"responseSchema\":{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\"}},\"required\":[\"name\"]}}]}}";

/// An AG-UI agent that asks for a name, and greets it.
pub(crate) async fn greeter() -> FakeHttpAgent {
    FakeHttpAgent::start(|asked: ReceivedRequest, mut stream| async move {
        let Some(resumed) = asked.body["resume"].as_array() else { return sse(&mut stream, ASKS).await };
        let run = asked.body["runId"].as_str().unwrap();
        let name = resumed[0]["payload"]["name"].as_str().unwrap_or("nobody");
        let frames = format!(
            "{{\"type\":\"RUN_STARTED\",\"threadId\":\"t\",\"runId\":\"{run}\"}}\n\
             {{\"type\":\"TEXT_MESSAGE_START\",\"messageId\":\"m\",\"role\":\"assistant\"}}\n\
             {{\"type\":\"TEXT_MESSAGE_CONTENT\",\"messageId\":\"m\",\"delta\":\"hello {name}\"}}\n\
             {{\"type\":\"TEXT_MESSAGE_END\",\"messageId\":\"m\"}}\n\
             {{\"type\":\"RUN_FINISHED\",\"threadId\":\"t\",\"runId\":\"{run}\"}}"
        );
        sse(&mut stream, &frames).await;
    })
    .await
}

async fn start(served: &Served) {
    served.post("/v1/runs", r#"{"run_id":"r","thread_id":"t","agent":"a","message":"hi"}"#).await;
    served.until_status("r", "suspended").await;
}

#[tokio::test]
async fn an_interrupt_is_resumed_and_its_stream_continues_the_same_run() {
    let fake = greeter().await;
    let agent = fake.agent(Dialect::AgUi);
    let served = Served::with(|config| config.agents = vec![agent]).await;
    start(&served).await;
    let answered = served
        .post("/v1/runs/r/interactions/i1", r#"{"decision":"submitted","values":{"name":"Ada"}}"#)
        .await;
    assert!(answered.status.is_success(), "{answered:?}");
    assert_eq!(served.closed("r").await["status"], "completed");
    assert_eq!(served.texts("r").await, "hello Ada");
    let events = served.happened("r").await;
    assert_eq!((count(&events, "run.started"), count(&events, "run.resumed")), (1, 1));
    let resumed = &fake.asked()[1].body;
    assert_eq!(
        resumed["resume"],
        json!([{"interruptId": "i1", "status": "resolved", "payload": {"name": "Ada"}}])
    );
    assert_ne!(resumed["runId"], "r");
    assert_eq!(resumed["messages"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn an_interaction_outlives_the_server_and_its_answer_reaches_the_agent() {
    let fake = greeter().await;
    let agent = fake.agent(Dialect::AgUi);
    let again = agent.clone();
    let served = Served::with(|config| config.agents = vec![agent]).await;
    start(&served).await;
    let served = served.restarted_with(|config| config.agents = vec![again]).await;
    served.post("/v1/runs/r/interactions/i1", r#"{"decision":"submitted","values":{"name":"Bo"}}"#).await;
    assert_eq!(served.closed("r").await["status"], "completed");
    assert_eq!(served.texts("r").await, "hello Bo");
}

#[tokio::test]
async fn an_answer_that_the_agent_did_not_get_is_sent_after_a_restart() {
    let fake = greeter().await;
    let agent = fake.agent(Dialect::AgUi);
    let again = agent.clone();
    let served = Served::with(|config| config.agents = vec![agent]).await;
    start(&served).await;
    // A server that knows no agents takes the answer, as one would that dies before it can hand it on.
    let served = served.restarted().await;
    served.post("/v1/runs/r/interactions/i1", r#"{"decision":"submitted","values":{"name":"Cy"}}"#).await;
    let served = served.restarted_with(|config| config.agents = vec![again]).await;
    assert_eq!(served.closed("r").await["status"], "completed");
    assert_eq!(served.texts("r").await, "hello Cy");
}

const FORM: &str = "{\"protocol\":\"easyflow-chat\",\"version\":\"1.1\",\"domain\":\"interaction\",\"type\":\"form_request\",\"conversation_id\":\"t\",\"payload\":{\"form_id\":\"f1\",\"title\":\"Who?\",\"schema\":{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\"}}}}}";

fn said(text: &str) -> String {
    let frame = |domain: &str, kind: &str, payload: serde_json::Value| {
        json!({"protocol": "easyflow-chat", "version": "1.1", "domain": domain, "type": kind,
               "conversation_id": "t", "payload": payload})
    };
    format!("{}\n{}", frame("llm", "message", json!({"delta": text})), frame("system", "done", json!({})))
}

#[tokio::test]
async fn a_form_is_answered_at_the_answer_url_and_that_stream_continues_the_run() {
    let fake = FakeHttpAgent::start(|asked: ReceivedRequest, mut stream| async move {
        match asked.path.as_str() {
            "/answer" => sse(&mut stream, &said(asked.body["values"]["name"].as_str().unwrap())).await,
            _ => sse(&mut stream, FORM).await,
        }
    })
    .await;
    let url = fake.url.replace("/run", "/answer");
    let agent = fake.agent_with(Dialect::EasyflowChat, |agent| agent.answer_url = Some(url));
    let served = Served::with(|config| config.agents = vec![agent]).await;
    start(&served).await;
    served.post("/v1/runs/r/interactions/f1", r#"{"decision":"submitted","values":{"name":"Di"}}"#).await;
    assert_eq!(served.closed("r").await["status"], "completed");
    assert_eq!(served.texts("r").await, "Di");
    let told = &fake.asked()[1].body;
    assert_eq!((&told["conversation_id"], &told["form_id"]), (&"t".into(), &"f1".into()));
    assert_eq!(told["decision"], "submitted");
}

#[tokio::test]
async fn a_stream_that_stays_open_over_an_interaction_continues_after_the_answer() {
    let (answer, _) = tokio::sync::broadcast::channel::<String>(4);
    let answer = std::sync::Arc::new(answer);
    let fake = FakeHttpAgent::start(move |asked: ReceivedRequest, mut stream| {
        let answer = answer.clone();
        async move {
            if asked.path == "/answer" {
                let _ = answer.send(asked.body["values"]["name"].as_str().unwrap().to_owned());
                return whole(&mut stream, "200 OK", "application/json", r#"{"ok":true}"#).await;
            }
            let mut answered = answer.subscribe();
            begin_sse(&mut stream).await;
            chunk(&mut stream, &format!("data: {FORM}\n\n")).await;
            let name = answered.recv().await.unwrap();
            for frame in said(&name).lines() {
                chunk(&mut stream, &format!("data: {frame}\n\n")).await;
            }
            until_closed(&mut stream).await;
        }
    })
    .await;
    let url = fake.url.replace("/run", "/answer");
    let agent = fake.agent_with(Dialect::EasyflowChat, |agent| agent.answer_url = Some(url));
    let served = Served::with(|config| config.agents = vec![agent]).await;
    start(&served).await;
    served.post("/v1/runs/r/interactions/f1", r#"{"decision":"submitted","values":{"name":"Ed"}}"#).await;
    assert_eq!(served.closed("r").await["status"], "completed");
    assert_eq!(served.texts("r").await, "Ed");
}

#[tokio::test]
async fn an_answer_that_cannot_be_sent_fails_the_run_and_says_what_is_missing() {
    let fake = FakeHttpAgent::telling(FORM).await;
    let agent = fake.agent(Dialect::EasyflowChat);
    let served = Served::with(|config| config.agents = vec![agent]).await;
    start(&served).await;
    served.post("/v1/runs/r/interactions/f1", r#"{"decision":"submitted","values":{}}"#).await;
    let run = served.closed("r").await;
    assert_eq!(run["error"]["code"], "agent_takes_no_answer");
    assert!(run["error"]["message"].as_str().unwrap().contains("answer_url"));
}

#[tokio::test]
async fn a_cancel_during_an_open_interaction_ends_the_run_at_once() {
    let fake = greeter().await;
    let agent = fake.agent(Dialect::AgUi);
    let served = Served::with(|config| config.agents = vec![agent]).await;
    start(&served).await;
    assert_eq!(served.post("/v1/runs/r/cancel", "").await.json()["status"], "cancelled");
    served.closed("r").await;
    served
        .post("/v1/runs/r/interactions/i1", r#"{"decision":"submitted","values":{"name":"x"}}"#)
        .await
        .problem(409, "run_closed");
    assert_eq!(fake.asked().len(), 1);
}

#[tokio::test]
async fn a_stream_lost_during_an_open_interaction_does_no_harm() {
    let (gone, mut was_gone) = tokio::sync::watch::channel(false);
    let gone = std::sync::Arc::new(gone);
    let fake = FakeHttpAgent::start(move |asked: ReceivedRequest, mut stream| {
        let gone = gone.clone();
        async move {
            if asked.path == "/answer" {
                return sse(&mut stream, &said(asked.body["values"]["name"].as_str().unwrap())).await;
            }
            begin_sse(&mut stream).await;
            chunk(&mut stream, &format!("data: {FORM}\n\n")).await;
            until_closed(&mut stream).await;
            gone.send_replace(true);
        }
    })
    .await;
    let url = fake.url.replace("/run", "/answer");
    let agent = fake.agent_with(Dialect::EasyflowChat, |agent| {
        agent.answer_url = Some(url);
        agent.silence_time = std::time::Duration::from_millis(50);
    });
    let served = Served::with(|config| config.agents = vec![agent]).await;
    start(&served).await;
    within_timeout(was_gone.wait_for(|gone| *gone)).await.unwrap();
    assert_eq!(served.get("/v1/runs/r").await.json()["status"], "suspended");
    served.post("/v1/runs/r/interactions/f1", r#"{"decision":"submitted","values":{"name":"Flo"}}"#).await;
    assert_eq!(served.closed("r").await["status"], "completed");
    assert_eq!(served.texts("r").await, "Flo");
}

#[tokio::test]
async fn an_agent_that_takes_the_answer_and_says_nothing_more_fails_its_run() {
    let fake = FakeHttpAgent::start(|asked: ReceivedRequest, mut stream| async move {
        match asked.path.as_str() {
            "/answer" => whole(&mut stream, "200 OK", "application/json", r#"{"ok":true}"#).await,
            _ => sse(&mut stream, FORM).await,
        }
    })
    .await;
    let url = fake.url.replace("/run", "/answer");
    let agent = fake.agent_with(Dialect::EasyflowChat, |agent| agent.answer_url = Some(url));
    let served = Served::with(|config| config.agents = vec![agent]).await;
    start(&served).await;
    served.post("/v1/runs/r/interactions/f1", r#"{"decision":"submitted","values":{}}"#).await;
    assert_eq!(served.closed("r").await["error"]["code"], "agent_not_a_stream");
}
