//! Benchmark of reading stored events: a whole run, and the last events of a long one.

use std::time::{Duration, Instant};

use runwire_model::dialect::Dialect;

use super::append::{expect_success, last_seq};
use super::client::{self, HttpConnection};
use super::frame;
use super::process::ServerProcess;
use crate::Failure;
use crate::statistics::median;

/// Events per request while a run is filled.
const FILL_BATCH: usize = 500;
/// Text of a whole run; the limit is 8 MiB.
const TEXT_BYTES: usize = 7 << 20;
/// Limits the text of an event.
const EVENT_TEXT_BYTES: usize = 64;
/// Events that a resuming reader has missed.
const MISSED_EVENTS: u64 = 10;

/// Writes a run of this many events, and leaves it open: the last frame of some dialects is the whole text.
pub(crate) async fn fill(server: &ServerProcess, run: &str, events: usize) -> Result<(), Failure> {
    let mut connection = HttpConnection::open(server.address).await?;
    let line = frame::with_text(run, &frame::words((TEXT_BYTES / events).min(EVENT_TEXT_BYTES)));
    let mut body = Vec::new();
    let mut left = events;
    while left > 0 {
        let now = FILL_BATCH.min(left);
        let request = client::post(&frame::write_path(run), frame::CONTENT_TYPE, &line.repeat(now));
        let status = connection.exchange(&request, &mut body).await?;
        expect_success(status, &body)?;
        left -= now;
    }
    Ok(())
}

/// Returns the path that reads a run from its start to its current end.
pub(crate) fn replay_path(run: &str, dialect: Dialect) -> String {
    format!("/v1/runs/{run}/events?dialect={dialect}&follow=false")
}

/// Reads a whole body.
pub(crate) async fn read_whole(server: &ServerProcess, path: &str) -> Result<Vec<u8>, Failure> {
    let mut body = Vec::new();
    let mut connection = HttpConnection::open(server.address).await?;
    let status = connection.exchange(&client::get(path, "text/event-stream"), &mut body).await?;
    expect_success(status, &body)?;
    Ok(body)
}

/// Counts the frames of a stream of server-sent events.
pub(crate) fn frames_in(stream: &[u8]) -> usize {
    stream.split(|byte| *byte == b'\n').filter(|line| line.starts_with(b"data:")).count()
}

/// The result of a round: time, and the server's CPU time.
pub(crate) struct ReplayRound {
    pub(crate) took: Duration,
    pub(crate) cpu: Duration,
}

/// Reads a stream of known length several times, and discards it.
pub(crate) async fn measure(
    server: &ServerProcess,
    path: &str,
    length: usize,
    times: u32,
) -> Result<ReplayRound, Failure> {
    let request = client::get(path, "text/event-stream");
    let (cpu, begun) = (server.cpu_time()?, Instant::now());
    for _ in 0..times {
        let mut connection = HttpConnection::open(server.address).await?;
        connection.send(&request).await?;
        let head = connection.head().await?;
        expect_success(head.status, b"")?;
        let mut read = 0;
        connection.body(head, |piece| read += piece.len()).await?;
        if read != length {
            return Err(format!("{path}: {read} bytes came, not the {length} of the first time").into());
        }
    }
    Ok(ReplayRound { took: begun.elapsed() / times, cpu: server.cpu_time()?.saturating_sub(cpu) / times })
}

/// The latencies of resuming.
pub(crate) struct Resumed {
    /// The first one, in milliseconds, with a cold cache.
    pub(crate) first: f64,
    /// The median of the others.
    pub(crate) median: f64,
}

/// Resumes a few events before the end of each run, in turn, so that noise affects all alike.
pub(crate) async fn resume(
    server: &ServerProcess,
    runs: &[&str],
    dialect: Dialect,
    times: usize,
) -> Result<Vec<Resumed>, Failure> {
    let mut connection = HttpConnection::open(server.address).await?;
    let mut requests = Vec::new();
    for run in runs {
        let after = last_seq(&mut connection, run).await?.saturating_sub(MISSED_EVENTS);
        let path = format!("{}&after={after}", replay_path(run, dialect));
        requests.push(client::get(&path, "text/event-stream"));
    }
    let mut milliseconds = vec![Vec::new(); runs.len()];
    let mut body = Vec::new();
    for _ in 0..=times {
        for (request, milliseconds) in requests.iter().zip(&mut milliseconds) {
            let begun = Instant::now();
            let status = connection.exchange(request, &mut body).await?;
            milliseconds.push(begun.elapsed().as_secs_f64() * 1e3);
            expect_success(status, &body)?;
            if frames_in(&body) == 0 {
                return Err(format!("resuming answered {status} and no frame").into());
            }
        }
    }
    let resumed = milliseconds.into_iter().map(|mut milliseconds: Vec<f64>| {
        let first = milliseconds.remove(0);
        Resumed { first, median: median(milliseconds).unwrap_or(first) }
    });
    Ok(resumed.collect())
}
