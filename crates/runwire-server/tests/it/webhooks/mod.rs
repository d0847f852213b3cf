//! Webhooks: messages, subscriptions, and at-least-once delivery.

mod hostile_targets;
mod status;
mod target;
mod tls;

use std::time::Duration;

use runwire_log::OutboxMessage;
use runwire_server::limits;
use runwire_server::webhooks::OutboxKind;

use crate::harness::{COMPLETED, Served, within_timeout};
use target::{Say, Target, status};

const STARTED: &str = "{\"type\":\"run.started\"}\n";
const ASKS: &str = "{\"type\":\"interaction.requested\",\"interaction_id\":\"trip\",\"kind\":\"form\",\"title\":\"Where to?\",\"schema\":{\"type\":\"object\"}}\n";
const FAILED: &str = "{\"type\":\"run.failed\",\"error\":{\"code\":\"x\",\"message\":\"no\"}}\n";

/// Writes a run with everything that can be told in it.
async fn everything(served: &Served) {
    served.post("/v1/runs", r#"{"run_id":"a","thread_id":"t","agent":"mine"}"#).await;
    served.post("/v1/runs/a/events", &format!("{STARTED}{ASKS}")).await.written(2, 0);
    served.post("/v1/runs/a/interactions/trip", r#"{"decision":"submitted","values":{}}"#).await;
    served.post("/v1/runs/a/events", COMPLETED).await.written(1, 0);
    served.post("/v1/runs/b/events", &format!("{STARTED}{FAILED}")).await.written(2, 0);
    served.post("/v1/runs", r#"{"run_id":"c"}"#).await;
    served.post("/v1/runs/c/cancel", "").await;
}

/// Waits until the log has of the webhook `w` what is hoped for.
async fn until_log(served: &Served, hoped: impl Fn(&[OutboxMessage]) -> bool) -> Vec<OutboxMessage> {
    within_timeout(async {
        loop {
            let notices = served.log.outbox("w", 100).await.unwrap();
            if hoped(&notices) {
                return notices;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await
}

#[tokio::test]
async fn a_webhook_gets_interactions_and_ends_in_signed_messages() {
    let target = Target::start(|_| status(204)).await;
    let mut webhook = target.webhook();
    webhook.base_url = "https://runwire.example.org/".into();
    let served = Served::with(|config| config.webhooks = vec![webhook]).await;
    everything(&served).await;
    let got = target.until(4).await;
    assert!(got.iter().all(target::Got::is_signed));
    let mut told: Vec<_> = got.iter().map(target::Got::what).collect();
    told.sort_unstable();
    assert_eq!(told, ["a interaction.requested", "a run.completed", "b run.failed", "c run.cancelled"]);
    let asked = got.iter().find(|got| got.what() == "a interaction.requested").unwrap();
    assert_eq!(asked.headers["content-type"], "application/json");
    let asked = asked.json();
    assert_eq!((&asked["thread_id"], &asked["agent"]), (&"t".into(), &"mine".into()));
    assert_eq!((&asked["seq"], &asked["data"]["title"]), (&2.into(), &"Where to?".into()));
    assert_eq!(asked["url"], "https://runwire.example.org/v1/runs/a/interactions/trip");
    assert!(asked["at"].as_str().unwrap().ends_with('Z'));
    let failed = got.iter().find(|got| got.what() == "b run.failed").unwrap().json();
    assert_eq!(failed["data"]["error"]["code"], "x");
    assert_eq!(failed["url"], "https://runwire.example.org/v1/runs/b");
    assert!(failed.get("agent").is_none());
    until_log(&served, <[OutboxMessage]>::is_empty).await;
    assert_eq!(target.got().len(), 4);
    served.stopped().await;
}

#[tokio::test]
async fn each_webhook_gets_only_the_events_it_subscribed_to() {
    let (questions, ends) = (Target::start(|_| status(200)).await, Target::start(|_| status(200)).await);
    let (mut first, mut second) = (questions.webhook(), ends.webhook());
    first.events = vec![OutboxKind::InteractionRequested];
    second.events = vec![OutboxKind::RunCancelled, OutboxKind::RunFailed];
    second.name = "ends".into();
    let served = Served::with(|config| config.webhooks = vec![first, second]).await;
    everything(&served).await;
    ends.until(2).await;
    questions.until(1).await;
    for name in ["w", "ends"] {
        within_timeout(async { while !served.log.outbox(name, 9).await.unwrap().is_empty() {} }).await;
    }
    assert_eq!(
        questions.got().iter().map(target::Got::what).collect::<Vec<_>>(),
        ["a interaction.requested"]
    );
    let mut told: Vec<_> = ends.got().iter().map(target::Got::what).collect();
    told.sort_unstable();
    assert_eq!(told, ["b run.failed", "c run.cancelled"]);
}

#[tokio::test]
async fn a_failed_delivery_is_retried_as_the_same_message() {
    let answers = [500, 429, 404, 503];
    let target = Target::start(move |number| status(answers.get(number).copied().unwrap_or(200))).await;
    let webhook = target.webhook();
    let served = Served::with(|config| config.webhooks = vec![webhook]).await;
    served.post("/v1/runs/r/events?end=true", STARTED).await.written(1, 0);
    let got = target.until(5).await;
    assert!(
        got.iter().all(|again| again.is_signed() && again.id() == got[0].id() && again.body == got[0].body)
    );
    until_log(&served, <[OutboxMessage]>::is_empty).await;
    assert_eq!(target.got().len(), 5);
}

#[tokio::test]
async fn a_restarted_server_delivers_what_is_queued() {
    // Nobody is there at first.
    let gone = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let target = Target::start(|_| status(200)).await;
    let mut away = target.webhook();
    away.url = format!("http://{}/", gone.local_addr().unwrap()).parse().unwrap();
    drop(gone);
    let served = Served::with(|config| config.webhooks = vec![away]).await;
    served.post("/v1/runs/r/events", &format!("{STARTED}{ASKS}")).await.written(2, 0);
    let left = until_log(&served, |notices| notices.iter().any(|notice| notice.attempts > 0)).await;
    let webhook = target.webhook();
    let served = served.restarted_with(|config| config.webhooks = vec![webhook]).await;
    let got = target.until(1).await;
    assert_eq!((got[0].id(), got[0].what().as_str()), (left[0].id.as_str(), "r interaction.requested"));
    until_log(&served, <[OutboxMessage]>::is_empty).await;
}

#[tokio::test]
async fn what_never_works_is_given_up_after_all_attempts() {
    let target = Target::start(|_| status(500)).await;
    let mut webhook = target.webhook();
    webhook.retry_time = Duration::ZERO;
    let served = Served::with(|config| config.webhooks = vec![webhook]).await;
    served.post("/v1/runs/r/events?end=true", STARTED).await.written(1, 0);
    let attempts = usize::try_from(limits::WEBHOOK_ATTEMPTS).unwrap();
    target.until(attempts).await;
    until_log(&served, <[OutboxMessage]>::is_empty).await;
    assert_eq!(target.got().len(), attempts);
}

#[tokio::test]
async fn a_webhook_may_ask_for_more_time() {
    let busy = "HTTP/1.1 429 X\r\nretry-after: 3600\r\ncontent-length: 0\r\n\r\n";
    let target = Target::start(move |_| Say::Raw(busy.to_owned())).await;
    let webhook = target.webhook();
    let served = Served::with(|config| config.webhooks = vec![webhook]).await;
    served.post("/v1/runs/r/events?end=true", STARTED).await.written(1, 0);
    let left = until_log(&served, |notices| notices.iter().any(|notice| notice.attempts > 0)).await;
    assert!(left[0].wait > Duration::from_secs(3000), "{left:?}");
}
