//! Invalid answers and hostile schemas: refused without side effects.

use runwire_agents::demos;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::answer_channels::{AnswerChannel, CHANNELS};
use super::{FORM, write};
use crate::agents::fake_agents::RunAssertions;
use crate::harness::Served;

const STARTED: &str = r#"{"type":"run.started"}"#;

fn asking(schema: &Value) -> String {
    json!({"type": "interaction.requested", "interaction_id": "q", "kind": "form", "schema": schema})
        .to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_that_a_schema_points_to_is_ever_fetched() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/schema.json", listener.local_addr().unwrap());
    let served = Served::with(|config| config.agents = demos(true)).await;
    let schemas = [
        json!({"$ref": url}),
        json!({"properties": {"n": {"$ref": format!("{url}#/n")}}}),
        json!({"$dynamicRef": url}),
        json!({"$schema": url, "type": "object"}),
        json!({"$id": url, "$ref": "other.json"}),
        json!({"$vocabulary": {&url: true}, "allOf": [{"$ref": &url}]}),
        json!({"$schema": "http://json-schema.org/draft-04/schema#", "id": url, "$ref": "x"}),
    ];
    for (at, schema) in schemas.iter().enumerate() {
        let run = format!("r{at}");
        write(&served, &run, &[STARTED, &asking(schema)]).await;
        for channel in CHANNELS {
            let (status, told) = channel.answer(&served, &run, "q", &json!({"n": 1})).await;
            assert_eq!(
                (status, &told["code"]),
                (422, &json!("schema_unusable")),
                "{channel:?} {schema}: {told}"
            );
        }
        assert_eq!(served.get(&format!("/v1/runs/{run}")).await.json()["status"], "suspended");
    }
    // Somebody who connects would be waiting here by now.
    assert!(futures_util::FutureExt::now_or_never(listener.accept()).is_none(), "something was fetched");
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_patterns_delay_no_other_answer() {
    let served = Served::with(|config| config.agents = demos(true)).await;
    for (at, pattern) in
        ["^(a+)+$", "^(a|a)*$", r"^(?=(a+)+$)(a|aa)+\1b$", "^(([a-z])+.)+[A-Z]([a-z])+$", "(x+x+)+y"]
            .iter()
            .enumerate()
    {
        let run = format!("r{at}");
        let schema = json!({"properties": {"n": {"type": "string", "pattern": pattern}}});
        write(&served, &run, &[STARTED, &asking(&schema)]).await;
        let values = json!({"n": "a".repeat(50_000) + "!"});
        // All doors at once: whoever answers the harmless form meanwhile is served.
        let harmless = format!("harmless{at}");
        write(&served, &harmless, &[STARTED, FORM]).await;
        let all = futures_util::future::join_all(
            CHANNELS.map(|channel| channel.answer(&served, &run, "q", &values)),
        );
        let fine = json!({"n": 1});
        let (refused, taken) = tokio::join!(all, AnswerChannel::Http.answer(&served, &harmless, "q", &fine));
        assert!(refused.iter().all(|(status, _)| *status == 422), "{pattern}: {refused:?}");
        assert_eq!(taken.0, 200);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_another_run_or_thread_asks_cannot_be_answered_here() {
    let served = Served::with(|config| config.agents = demos(true)).await;
    write(&served, "here", &[STARTED, FORM]).await;
    let theirs = FORM.replace("\"q\"", "\"theirs\"");
    write(&served, "there", &[STARTED, &theirs]).await;
    for channel in CHANNELS {
        for question in ["theirs", "nothing", "Q", "q.2", ""] {
            let (status, told) = channel.answer(&served, "here", question, &json!({"n": 1})).await;
            let expected: &[u16] = if question.is_empty() { &[400, 404, 405, 422] } else { &[404, 422] };
            assert!(expected.contains(&status), "{channel:?} `{question}`: {status} {told}");
        }
        let (status, told) = channel.answer(&served, "nowhere", "q", &json!({"n": 1})).await;
        assert_eq!(status, 404, "{channel:?}: {told}");
    }
    for run in ["here", "there"] {
        assert_eq!(served.happened(run).await.len(), 3, "{run}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn values_that_are_deep_huge_or_wrong_are_refused_through_every_channel() {
    let served = Served::with(|config| config.agents = demos(true)).await;
    let closed =
        json!({"type": "object", "additionalProperties": false, "properties": {"n": {"type": "integer"}}});
    write(&served, "r", &[STARTED, &asking(&closed)]).await;
    let mut deep = json!(1);
    for _ in 0..200 {
        deep = json!([deep]);
    }
    let wide: Vec<_> = (0..100_000).collect();
    for channel in CHANNELS {
        for (what, values) in [
            ("extra", json!({"n": 1, "extra": 2})),
            ("wrong", json!({"n": "one"})),
            ("fraction", json!({"n": 1.5})),
            ("deep", json!({"n": deep})),
            ("wide", json!({"n": wide})),
            ("long", json!({"n": "x".repeat(300_000)})),
            ("text", json!("text")),
            ("list", json!([1, 2])),
        ] {
            let (status, told) = channel.answer(&served, "r", "q", &values).await;
            assert!([400, 413, 422].contains(&status), "{channel:?} {what}: {status} {told}");
            assert!(
                told["detail"].as_str().is_some_and(|detail| detail.len() < 1000),
                "{channel:?} {what}: {told}"
            );
        }
        assert_eq!(served.happened("r").await.len(), 3, "{channel:?}");
    }
    // Where the schema allows more, more is taken, byte for byte.
    write(&served, "open", &[STARTED, FORM]).await;
    let values = r#"{"n":1,"extra":[12345678901234567890]}"#;
    let body = format!(r#"{{"decision":"submitted","values":{values}}}"#);
    let told = served.post("/v1/runs/open/interactions/q", &body).await;
    assert!(told.status.is_success() && told.text.contains(values), "{told:?}");
}
