//! Runs and stores of a given size.

use std::time::{Duration, Instant};

use tokio::task::JoinSet;
use tokio::time::sleep;

use super::{exchange_latency, latency};
use crate::Failure;
use crate::wire::append::{expect_success, last_seq};
use crate::wire::client::{self, HttpConnection};
use crate::wire::frame;
use crate::wire::process::ServerProcess;

/// Events of a request while a run is written.
const BATCH: usize = 1000;
/// Events that a resuming reader has missed.
const MISSED: u64 = 10;
/// Connections that write a store.
const WRITERS: usize = 8;
/// Text of a run of a store, and of one of its frames.
const RUN_TEXT: usize = 1 << 20;
const FRAME_TEXT: usize = 128 << 10;
/// Retention looks once a minute; this is how long it may take.
const RETENTION_TIMEOUT: Duration = Duration::from_secs(3600);

/// A run of many events.
pub(super) struct LongRun {
    last_seq: u64,
}

impl LongRun {
    const NAME: &str = "long";

    /// Writes it. The events are no text, of which a run may have only 8 MiB.
    pub(super) async fn write(server: &ServerProcess, events: usize) -> Result<Self, Failure> {
        let mut connection = HttpConnection::open(server.address).await?;
        let mut body = Vec::new();
        let mut left = events;
        while left > 0 {
            let now = BATCH.min(left);
            let status = connection.exchange(&write_request(now), &mut body).await?;
            expect_success(status, &body)?;
            left -= now;
        }
        Ok(Self { last_seq: last_seq(&mut connection, Self::NAME).await? })
    }

    /// Returns the latencies of an append, of resuming, and of a page at its end, in milliseconds.
    pub(super) async fn measure(&self, server: &ServerProcess, times: usize) -> Result<[f64; 3], Failure> {
        let after = self.last_seq.saturating_sub(MISSED);
        let path = |rest: &str| format!("{}&after={after}{rest}", frame::read_path(Self::NAME));
        let resume = client::get(&path("&follow=false"), "text/event-stream");
        // The first reader of a dialect walks the run; those after it find its checkpoints.
        exchange_latency(server, &resume, 1).await?;
        Ok([
            exchange_latency(server, &write_request(1), times).await?,
            exchange_latency(server, &resume, times).await?,
            latency(server, &path("&limit=5"), times).await?,
        ])
    }
}

fn write_request(events: usize) -> Vec<u8> {
    let line = b"{\"type\":\"custom\",\"name\":\"step\",\"value\":1}\n";
    let path = format!("/v1/runs/{}/events?dialect=runwire", LongRun::NAME);
    client::post(&path, frame::CONTENT_TYPE, &line.repeat(events))
}

/// A store of closed runs of a mebibyte each.
pub(super) struct StoreSize {
    runs: usize,
}

impl StoreSize {
    /// Writes it.
    pub(super) async fn write(server: &ServerProcess, bytes: u64) -> Result<Self, Failure> {
        let runs = (bytes as usize / RUN_TEXT).max(2);
        let mut writers = JoinSet::new();
        for writer in 0..WRITERS {
            let address = server.address;
            writers.spawn(async move {
                let mut connection = HttpConnection::open(address).await?;
                let mut body = Vec::new();
                for number in (writer..runs).step_by(WRITERS) {
                    let run = run_name(number);
                    let text = frame::with_text(&run, &frame::words(FRAME_TEXT));
                    for _ in 1..RUN_TEXT / FRAME_TEXT {
                        let request = client::post(&frame::write_path(&run), frame::CONTENT_TYPE, &text);
                        let status = connection.exchange(&request, &mut body).await?;
                        expect_success(status, &body)?;
                    }
                    let path = format!("{}&end=true", frame::write_path(&run));
                    let status = connection
                        .exchange(&client::post(&path, frame::CONTENT_TYPE, &text), &mut body)
                        .await?;
                    expect_success(status, &body)?;
                }
                Ok::<_, Failure>(())
            });
        }
        while let Some(writer) = writers.join_next().await {
            writer??;
        }
        Ok(Self { runs })
    }

    /// Returns the path of a page at the end of a run in the middle.
    pub(super) fn resume_path(&self) -> String {
        let run = run_name(self.runs / 2);
        format!("{}&after={}&limit=5", frame::read_path(&run), RUN_TEXT / FRAME_TEXT - 1)
    }

    /// Waits until retention has removed the older half, and returns the seconds.
    pub(super) async fn wait_until_trimmed(&self, server: &ServerProcess) -> Result<f64, Failure> {
        let mut connection = HttpConnection::open(server.address).await?;
        // A run that is well in the older half.
        let path = format!("/v1/runs/{}", run_name(self.runs * 2 / 5));
        let request = client::get(&format!("{path}/events?follow=false"), "application/x-ndjson");
        let (begun, mut body) = (Instant::now(), Vec::new());
        while begun.elapsed() < RETENTION_TIMEOUT {
            if connection.exchange(&request, &mut body).await? >= 400 {
                return Ok(begun.elapsed().as_secs_f64());
            }
            sleep(Duration::from_millis(250)).await;
        }
        Err("retention has not removed the older half".into())
    }
}

fn run_name(number: usize) -> String {
    format!("stored-{number:06}")
}
