//! An interaction has one answer, whichever channels people use.

use runwire_agents::demos;
use serde_json::{Value, json};

use super::{FORM, of_type, write};
use crate::agents::fake_agents::RunAssertions;
use crate::harness::{COMPLETED, Served};

/// The ways to answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AnswerChannel {
    Http,
    Socket,
    EasyFlow,
    AgUi,
}

pub(super) const CHANNELS: [AnswerChannel; 4] =
    [AnswerChannel::Http, AnswerChannel::Socket, AnswerChannel::EasyFlow, AnswerChannel::AgUi];

impl AnswerChannel {
    /// Answers a form; gives the status and what was said about it, which is nothing where a stream goes on.
    pub(super) async fn answer(
        self,
        served: &Served,
        run: &str,
        question: &str,
        values: &Value,
    ) -> (u16, Value) {
        let (path, body) = match self {
            Self::Http => (
                format!("/v1/runs/{run}/interactions/{question}"),
                json!({"decision": "submitted", "values": values}),
            ),
            Self::EasyFlow => (
                "/api/v1/bot/form".to_owned(),
                json!({"conversation_id": run, "form_id": question, "values": values}),
            ),
            Self::AgUi => {
                let resume = json!([{"interruptId": question, "status": "resolved", "payload": values}]);
                let input = json!({"threadId": run, "runId": "again", "messages": [], "resume": resume});
                ("/ag-ui/demo".to_owned(), input)
            }
            Self::Socket => {
                let mut socket = served.socket().await;
                let answer = json!({"op": "answer", "id": 1, "run": run, "interaction": question, "decision": "submitted", "values": values});
                socket.say(answer).await;
                let told = socket.hear().await.unwrap();
                let status = if told["op"] == "ack" { 200 } else { told["status"].as_u64().unwrap() };
                return (u16::try_from(status).unwrap(), told);
            }
        };
        let body = body.to_string();
        let mut raw = served.raw().await;
        let head =
            format!("POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\n\r\n", body.len());
        raw.send(format!("{head}{body}").as_bytes()).await.unwrap();
        let answer = raw.answer().await.unwrap();
        (answer.status.as_u16(), serde_json::from_str(&answer.text).unwrap_or_default())
    }
}

async fn serving() -> Served {
    Served::with(|config| config.agents = demos(true)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_people_who_answer_at_once_through_different_channels_one_wins() {
    let served = serving().await;
    for round in 0..3 {
        for (at, one) in CHANNELS.into_iter().enumerate() {
            for two in CHANNELS.into_iter().skip(at + 1) {
                let run = format!("{one:?}-{two:?}-{round}");
                write(&served, &run, &[r#"{"type":"run.started"}"#, FORM]).await;
                let (first, second) = (json!({"n": 1}), json!({"n": 2}));
                let (said_one, said_two) = tokio::join!(
                    one.answer(&served, &run, "q", &first),
                    two.answer(&served, &run, "q", &second)
                );
                let (won, (status, told)) = match said_one.0 {
                    200 => (first, said_two),
                    _ => {
                        assert_eq!(said_two.0, 200, "{run}: {said_one:?} {said_two:?}");
                        (second, said_one)
                    }
                };
                assert_eq!((status, &told["code"]), (409, &json!("interaction_closed")), "{run}: {told}");
                assert_eq!(told["answer"]["values"], won, "{run}: {told}");
                let events = served.happened(&run).await;
                let resolved = of_type(&events, "interaction.resolved");
                assert_eq!((resolved.len(), &resolved[0]["values"]), (1, &won), "{run}");
                // Whoever says what won, wherever, has said nothing new.
                for channel in CHANNELS {
                    assert_eq!(channel.answer(&served, &run, "q", &won).await.0, 200, "{run} {channel:?}");
                }
                assert_eq!(served.happened(&run).await.len(), events.len());
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_answer_at_once_through_every_channel_is_one_answer() {
    let served = serving().await;
    for round in 0..5 {
        let run = format!("r{round}");
        write(&served, &run, &[r#"{"type":"run.started"}"#, FORM]).await;
        let values = json!({"n": 7});
        let said = futures_util::future::join_all(
            CHANNELS.map(|channel| channel.answer(&served, &run, "q", &values)),
        )
        .await;
        assert!(said.iter().all(|(status, _)| *status == 200), "{said:?}");
        write(&served, &run, &[COMPLETED.trim()]).await;
        served.one_end(&run).await;
        assert_eq!(of_type(&served.happened(&run).await, "interaction.resolved").len(), 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_after_the_end_gets_the_outcome_of_the_interaction() {
    let served = serving().await;
    write(&served, "r", &[r#"{"type":"run.started"}"#, FORM]).await;
    served.post("/v1/runs/r/cancel", r#"{"reason":"too late"}"#).await;
    for channel in CHANNELS {
        let (status, told) = channel.answer(&served, "r", "q", &json!({"n": 1})).await;
        assert_eq!((status, &told["code"]), (409, &json!("run_closed")), "{channel:?}: {told}");
        assert_eq!(told["answer"]["decision"], "cancelled", "{channel:?}: {told}");
    }
    served.one_end("r").await;
}
