//! Interactions over the SDK: listed, answered, and the answer received by the agent.

use futures_util::TryStreamExt;
use runwire_client::write::{InteractionRequest, SessionStatus, Signal};
use runwire_client::{Answer, Decision, Error, InteractionFilter, Json};
use runwire_model::ErrorCode;
use serde_json::json;

use crate::test_server::{TestServer, within_timeout};

fn values(text: &str) -> Answer {
    Answer::submitted(Json::parse(text).unwrap())
}

#[tokio::test]
async fn an_answer_reaches_the_agent_even_after_a_restart() {
    let mut server = TestServer::start().await;
    let client = server.client();
    let engine = server.engine("r1");
    let mut signals = engine.signals();
    let schema = json!({"type": "object", "required": ["city"], "properties": {"city": {"type": "string"}}});
    engine.emit_interaction(InteractionRequest::form("where", schema).title("Where?")).await.unwrap();
    engine.emit_interaction(InteractionRequest::approval("pay")).await.unwrap();
    within_timeout(engine.flush()).await.unwrap();
    let open: Vec<_> = within_timeout(
        client.all_interactions(InteractionFilter { limit: Some(1), ..Default::default() }).try_collect(),
    )
    .await
    .unwrap();
    let ids: Vec<_> =
        open.iter().map(|asked: &runwire_client::Interaction| asked.interaction_id.as_str()).collect();
    assert_eq!(ids, ["pay", "where"]);
    assert!(open.iter().all(|asked| asked.is_open() && asked.run_id == "r1"));
    let run = client.run("r1");
    let wrong = run.answer("where", &values(r#"{"city":7}"#)).await.unwrap_err();
    let fields = wrong.problem().unwrap().field_problems();
    assert_eq!((wrong.code(), fields[0].pointer.as_str()), (Some(ErrorCode::InvalidAnswer), "/city"));
    // The answer survives the server, and the agent hears of it after all.
    let won = run.answer("where", &values(r#"{"city":"Oslo"}"#)).await.unwrap();
    server.kill();
    server.restart().await;
    assert_eq!(run.answer("where", &values(r#"{"city":"Oslo"}"#)).await.unwrap(), won);
    let late = run.answer("where", &values(r#"{"city":"Rome"}"#)).await.unwrap_err();
    assert_eq!(late.problem().unwrap().answer(), won.answer);
    run.answer("pay", &Answer::rejected("too much")).await.unwrap();
    let heard = within_timeout(signals.next()).await.unwrap().unwrap();
    let Signal::Answer { interaction_id, decision, values, .. } = heard else { panic!("{heard:?}") };
    assert_eq!((interaction_id.as_str(), decision), ("where", Decision::Submitted));
    assert_eq!(values.unwrap().text(), r#"{"city":"Oslo"}"#);
    let heard = within_timeout(signals.next()).await.unwrap().unwrap();
    let Signal::Answer { decision, reason, .. } = heard else { panic!("{heard:?}") };
    assert_eq!((decision, reason.as_deref()), (Decision::Rejected, Some("too much")));
    engine.emit_session_end(SessionStatus::Completed, None).await.unwrap();
    within_timeout(engine.close()).await.unwrap();
    assert!(
        matches!(run.answer("pay", &Answer::approved()).await, Err(Error::Refused(problem)) if problem.code() == Some(ErrorCode::RunClosed))
    );
    assert_eq!(run.interaction("pay").await.unwrap().status, "rejected");
}
