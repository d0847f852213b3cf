//! Questions over the SDK: listed, answered, and the answer heard by the agent that asked.

use futures_util::TryStreamExt;
use runwire_client::write::{Question, SessionStatus, Signal};
use runwire_client::{Answer, Decision, Error, InteractionFilter, Json};
use serde_json::json;

use crate::writing_stage::{Stage, patient};

fn values(text: &str) -> Answer {
    Answer::submitted(Json::parse(text).unwrap())
}

#[tokio::test]
async fn an_agent_asks_a_person_answers_and_the_agent_goes_on() {
    let mut stage = Stage::start().await;
    let client = stage.client();
    let engine = stage.engine("r1");
    let mut signals = engine.signals();
    let schema = json!({"type": "object", "required": ["city"], "properties": {"city": {"type": "string"}}});
    engine.emit_question(Question::form("where", schema).title("Where?")).await.unwrap();
    engine.emit_question(Question::approval("pay")).await.unwrap();
    patient(engine.flush()).await.unwrap();
    let open: Vec<_> = patient(
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
    let fields = wrong.problem().unwrap().wrong_fields();
    assert_eq!((wrong.code(), fields[0].pointer.as_str()), (Some("invalid_answer"), "/city"));
    // The answer survives the server, and the agent hears of it after all.
    let won = run.answer("where", &values(r#"{"city":"Oslo"}"#)).await.unwrap();
    stage.kill();
    stage.restart().await;
    assert_eq!(run.answer("where", &values(r#"{"city":"Oslo"}"#)).await.unwrap(), won);
    let late = run.answer("where", &values(r#"{"city":"Rome"}"#)).await.unwrap_err();
    assert_eq!(late.problem().unwrap().answer(), won.answer);
    run.answer("pay", &Answer::rejected("too much")).await.unwrap();
    let heard = patient(signals.next()).await.unwrap().unwrap();
    let Signal::Answer { interaction_id, decision, values, .. } = heard else { panic!("{heard:?}") };
    assert_eq!((interaction_id.as_str(), decision), ("where", Decision::Submitted));
    assert_eq!(values.unwrap().text(), r#"{"city":"Oslo"}"#);
    let heard = patient(signals.next()).await.unwrap().unwrap();
    let Signal::Answer { decision, reason, .. } = heard else { panic!("{heard:?}") };
    assert_eq!((decision, reason.as_deref()), (Decision::Rejected, Some("too much")));
    engine.emit_session_end(SessionStatus::Completed, None).await.unwrap();
    patient(engine.close()).await.unwrap();
    assert!(
        matches!(run.answer("pay", &Answer::approved()).await, Err(Error::Refused(problem)) if problem.code() == Some("run_closed"))
    );
    assert_eq!(run.interaction("pay").await.unwrap().status, "rejected");
}
