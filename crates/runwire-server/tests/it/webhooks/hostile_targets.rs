//! Webhooks with slow, broken, redirecting or private targets.

use std::time::Duration;

use runwire_log::OutboxMessage;
use runwire_server::limits;

use super::target::{Say, Target, status};
use super::{STARTED, until_log};
use crate::harness::Served;

#[tokio::test]
async fn a_target_that_never_answers_slows_no_run_and_no_other_webhook() {
    let (slow, quick) = (Target::start(|_| Say::Nothing).await, Target::start(|_| status(200)).await);
    let (mut first, second) = (slow.webhook(), quick.webhook());
    first.name = "slow".into();
    let served = Served::with(|config| config.webhooks = vec![first, second]).await;
    let runs = limits::WEBHOOK_AT_ONCE * 3;
    for run in 0..runs {
        served.post(&format!("/v1/runs/r{run}/events?end=true"), STARTED).await.written(1, 0);
    }
    quick.until(runs).await;
    until_log(&served, <[OutboxMessage]>::is_empty).await;
    // It has as many messages as it may have at once, and the others wait.
    assert_eq!(slow.until(limits::WEBHOOK_AT_ONCE).await.len(), limits::WEBHOOK_AT_ONCE);
    assert_eq!(served.log.outbox("slow", 100).await.unwrap().len(), runs);
    served.stopped().await;
}

#[tokio::test]
async fn a_delivery_to_a_slow_target_is_retried() {
    let target = Target::start(|number| if number == 0 { Say::Nothing } else { status(200) }).await;
    let mut webhook = target.webhook();
    webhook.answer_time = Duration::from_millis(50);
    let served = Served::with(|config| config.webhooks = vec![webhook]).await;
    served.post("/v1/runs/r/events?end=true", STARTED).await.written(1, 0);
    let got = target.until(2).await;
    assert_eq!(got[0].id(), got[1].id());
}

#[tokio::test]
async fn a_target_that_drips_has_no_more_time_than_one_that_is_silent() {
    let target = Target::start(|number| if number == 0 { Say::Drip } else { status(200) }).await;
    let mut webhook = target.webhook();
    webhook.answer_time = Duration::from_millis(50);
    let served = Served::with(|config| config.webhooks = vec![webhook]).await;
    served.post("/v1/runs/r/events?end=true", STARTED).await.written(1, 0);
    target.until(2).await;
    until_log(&served, <[OutboxMessage]>::is_empty).await;
}

#[tokio::test]
async fn the_body_of_an_answer_is_not_read() {
    let target = Target::start(|_| Say::Endless).await;
    let webhook = target.webhook();
    let served = Served::with(|config| config.webhooks = vec![webhook]).await;
    served.post("/v1/runs/r/events?end=true", STARTED).await.written(1, 0);
    target.until(1).await;
    until_log(&served, <[OutboxMessage]>::is_empty).await;
    served.stopped().await;
}

#[tokio::test]
async fn an_answer_that_is_none_is_a_failure() {
    let long = format!("HTTP/1.1 200 OK\r\nx: {}\r\n\r\n", "x".repeat(2 * limits::WEBHOOK_HEAD_BYTES));
    let answers = ["garbage\r\n\r\n".to_owned(), String::new(), long];
    let target = Target::start(move |number| match answers.get(number) {
        Some(answer) => Say::Raw(answer.clone()),
        None => status(200),
    })
    .await;
    let webhook = target.webhook();
    let served = Served::with(|config| config.webhooks = vec![webhook]).await;
    served.post("/v1/runs/r/events?end=true", STARTED).await.written(1, 0);
    target.until(4).await;
    until_log(&served, <[OutboxMessage]>::is_empty).await;
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let elsewhere = Target::start(|_| status(200)).await;
    let location = format!("http://127.0.0.1:{}/", elsewhere.port);
    let redirect = format!("HTTP/1.1 307 X\r\nlocation: {location}\r\ncontent-length: 0\r\n\r\n");
    let target = Target::start(move |_| Say::Raw(redirect.clone())).await;
    let webhook = target.webhook();
    let served = Served::with(|config| config.webhooks = vec![webhook]).await;
    served.post("/v1/runs/r/events?end=true", STARTED).await.written(1, 0);
    target.until(2).await;
    assert!(elsewhere.got().is_empty());
}

#[tokio::test]
async fn a_private_address_is_refused_however_it_is_written() {
    for host in ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "2130706433"] {
        let target = Target::start(|_| status(200)).await;
        let mut webhook = target.webhook();
        webhook.allow_private = false;
        webhook.url = format!("http://{host}:{}/", target.port).parse().unwrap();
        let served = Served::with(|config| config.webhooks = vec![webhook]).await;
        served.post("/v1/runs/r/events?end=true", STARTED).await.written(1, 0);
        until_log(&served, |notices| notices.iter().any(|notice| notice.attempts > 1)).await;
        assert!(target.got().is_empty(), "{host}");
        served.stopped().await;
    }
}

#[tokio::test]
async fn a_name_of_a_private_address_is_reached_where_that_is_allowed() {
    let target = Target::start(|_| status(200)).await;
    let mut webhook = target.webhook();
    webhook.url = format!("http://localhost:{}/", target.port).parse().unwrap();
    let served = Served::with(|config| config.webhooks = vec![webhook]).await;
    served.post("/v1/runs/r/events?end=true", STARTED).await.written(1, 0);
    target.until(1).await;
}
