//! Delivery status of webhooks.

use runwire_server::webhooks::OutboxKind;
use serde_json::{Value, json};

use super::target::{Target, status};
use super::{STARTED, everything, until_log};
use crate::harness::{Served, within_timeout};

/// Waits until a webhook stands as is hoped for.
async fn until_stands(served: &Served, at: usize, hoped: impl Fn(&Value) -> bool) -> Value {
    within_timeout(async {
        loop {
            let webhook = served.get("/v1/webhooks").await.json()["webhooks"][at].clone();
            if hoped(&webhook) {
                return webhook;
            }
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    })
    .await
}

#[tokio::test]
async fn an_operator_sees_what_was_not_delivered_and_why() {
    let target = Target::start(|number| status(if number == 0 { 503 } else { 200 })).await;
    let mut webhook = target.webhook();
    webhook.url = format!("http://127.0.0.1:{}/hook/secret?key=secret", target.port).parse().unwrap();
    let served = Served::with(|config| config.webhooks = vec![webhook]).await;
    let fresh = served.get("/v1/webhooks").await.json()["webhooks"][0].clone();
    let expected = json!({
        "name": "w",
        "target": format!("http://127.0.0.1:{}", target.port),
        "events": ["interaction.requested", "run.completed", "run.failed", "run.cancelled"],
        "status": "active",
        "waiting": 0,
        "retrying": 0,
        "delivered": 0,
        "failed_attempts": 0,
        "given_up": 0,
        "last_success_at": null,
        "last_failure": null,
    });
    assert_eq!(fresh, expected);
    served.post("/v1/runs/r/events?end=true", STARTED).await.written(1, 0);
    let stood = until_stands(&served, 0, |webhook| webhook["delivered"] == 1).await;
    assert_eq!((&stood["failed_attempts"], &stood["given_up"]), (&1.into(), &0.into()));
    assert_eq!(stood["last_failure"]["reason"], "it answered 503 Service Unavailable");
    assert!(stood["last_success_at"].as_str() >= stood["last_failure"]["at"].as_str(), "{stood}");
    assert!(!stood.to_string().contains("secret"), "{stood}");
}

#[tokio::test]
async fn what_waits_for_a_webhook_is_counted() {
    let target = Target::start(|_| status(500)).await;
    let mut webhook = target.webhook();
    webhook.retry_time = std::time::Duration::from_secs(600);
    let served = Served::with(|config| config.webhooks = vec![webhook]).await;
    for run in ["a", "b"] {
        served.post(&format!("/v1/runs/{run}/events?end=true"), STARTED).await.written(1, 0);
    }
    let stood = until_stands(&served, 0, |webhook| webhook["retrying"] == 2).await;
    assert_eq!((&stood["waiting"], &stood["delivered"]), (&2.into(), &0.into()));
    let metrics = served.get("/metrics").await.text;
    assert!(metrics.contains("runwire_webhook_messages_waiting{webhook=\"w\"} 2\n"), "{metrics}");
    assert!(metrics.contains("runwire_webhook_attempts_failed_total{webhook=\"w\"} 2\n"), "{metrics}");
}

#[tokio::test]
async fn a_webhook_that_answers_gone_gets_nothing_more_until_the_server_restarts() {
    let gone = Target::start(|_| status(410)).await;
    let (first, mut second) = (gone.webhook(), Target::start(|_| status(200)).await.webhook());
    second.name = "other".into();
    let served = Served::with(|config| config.webhooks = vec![first, second]).await;
    served.post("/v1/runs/a/events?end=true", STARTED).await.written(1, 0);
    let stood = until_stands(&served, 0, |webhook| webhook["status"] == "gone").await;
    assert_eq!((&stood["given_up"], &stood["delivered"]), (&1.into(), &0.into()));
    until_log(&served, <[_]>::is_empty).await;
    // The other one goes on; that it was told of `b` shows that `b` is noted for nobody else.
    served.post("/v1/runs/b/events?end=true", STARTED).await.written(1, 0);
    until_stands(&served, 1, |webhook| webhook["delivered"] == 2).await;
    assert!(served.log.outbox("w", 9).await.unwrap().is_empty());
    assert_eq!(gone.got().len(), 1);
    let back = Target::start(|_| status(200)).await;
    let webhook = back.webhook();
    let served = served.restarted_with(|config| config.webhooks = vec![webhook]).await;
    served.post("/v1/runs/c/events?end=true", STARTED).await.written(1, 0);
    assert_eq!(back.until(1).await[0].what(), "c run.completed");
}

#[tokio::test]
async fn the_openapi_document_describes_every_message() {
    let target = Target::start(|_| status(200)).await;
    let webhook = target.webhook();
    let served = Served::with(|config| config.webhooks = vec![webhook]).await;
    everything(&served).await;
    let document = served.get("/openapi.json").await.json();
    let described = document["webhooks"].as_object().unwrap();
    assert_eq!(described.len(), OutboxKind::ALL.len());
    assert!(OutboxKind::ALL.iter().all(|kind| described.contains_key(kind.name())));
    let schema = &document["components"]["schemas"]["WebhookMessage"];
    for got in target.until(OutboxKind::ALL.len()).await {
        let message = got.json();
        let members = message.as_object().unwrap();
        assert!(members.keys().all(|member| schema["properties"].get(member).is_some()), "{message}");
        let required = schema["required"].as_array().unwrap();
        assert!(required.iter().all(|member| members.contains_key(member.as_str().unwrap())), "{message}");
    }
    let listed = served.get("/v1/webhooks").await.json();
    let schema = &document["components"]["schemas"]["Webhook"]["properties"];
    let members = listed["webhooks"][0].as_object().unwrap();
    assert_eq!(members.keys().collect::<Vec<_>>(), schema.as_object().unwrap().keys().collect::<Vec<_>>());
}
