//! Shutdown: acknowledged frames are kept, open bodies get their counts.

use std::time::Duration;

use crate::harness::{Served, delta, within_timeout};

#[tokio::test]
async fn an_open_body_is_answered_with_what_was_written_when_the_server_stops() {
    let mut served = Served::start().await;
    let mut body = served.open("/v1/runs/r/events?end=true", &[]).await;
    body.chunk(&(delta("a") + &delta("b") + "{\"half")).await;
    served.until_records("r", 2).await;
    served.begin_to_stop();
    let answer = body.answer().await.unwrap();
    let problem = answer.problem(503, "shutting_down");
    assert_eq!((&problem["accepted"], &problem["last_seq"]), (&2.into(), &2.into()));
    assert!(answer.headers.contains_key("retry-after"));
    served.stopped().await;
}

#[tokio::test]
async fn idle_connections_do_not_hold_up_the_stop() {
    let served = Served::start().await;
    let mut idle = served.raw().await;
    idle.send(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    assert_eq!(idle.answer().await.unwrap().status, 200);
    let silent = served.raw().await;
    within_timeout(served.stopped()).await;
    drop((idle, silent));
}

#[tokio::test]
async fn what_does_not_finish_in_time_is_cut_off() {
    let served = Served::with(|config| config.grace = Duration::from_millis(200)).await;
    let mut stuck = served.raw().await;
    stuck.send(b"POST /v1/runs HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100\r\n\r\n{").await.unwrap();
    tokio::time::sleep(Duration::from_millis(50)).await;
    within_timeout(served.stopped()).await;
}
