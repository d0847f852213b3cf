//! Reading what is stored: a whole run from its start, and the last events of a long one.

use std::time::{Duration, Instant};

use super::append::{expect_success, last_seq};
use super::client::{self, Connection};
use super::frame;
use super::process::Server;
use crate::Failure;
use crate::statistics::median;

/// Events that are written at once to fill a run.
const FILL_AT_ONCE: usize = 500;
/// Text of a whole run, of the 8 MiB that it may have.
const TEXT_BYTES: usize = 7 << 20;
/// An event's text is not longer than that, however few there are.
const EVENT_TEXT_BYTES: usize = 64;
/// How many events before the end a reader has been cut off.
const BEHIND: u64 = 10;

/// Writes a run of so many events, and leaves it open: the last frame of some dialects is the whole text.
pub(crate) async fn fill(server: &Server, run: &str, events: usize) -> Result<(), Failure> {
    let mut connection = Connection::open(server.address).await?;
    let line = frame::with_text(run, &frame::words((TEXT_BYTES / events).min(EVENT_TEXT_BYTES)));
    let mut body = Vec::new();
    let mut left = events;
    while left > 0 {
        let now = FILL_AT_ONCE.min(left);
        let request = client::post(&frame::write_path(run), frame::CONTENT_TYPE, &line.repeat(now));
        let status = connection.exchange(&request, &mut body).await?;
        expect_success(status, &body)?;
        left -= now;
    }
    Ok(())
}

/// The path of a run from its start to where it is now.
pub(crate) fn replay_path(run: &str, dialect: &str) -> String {
    format!("/v1/runs/{run}/events?dialect={dialect}&follow=false")
}

/// Reads a whole body.
pub(crate) async fn read_whole(server: &Server, path: &str) -> Result<Vec<u8>, Failure> {
    let mut body = Vec::new();
    let mut connection = Connection::open(server.address).await?;
    let status = connection.exchange(&client::get(path, "text/event-stream"), &mut body).await?;
    expect_success(status, &body)?;
    Ok(body)
}

/// Counts the frames of a stream of server-sent events.
pub(crate) fn frames_in(stream: &[u8]) -> usize {
    stream.split(|byte| *byte == b'\n').filter(|line| line.starts_with(b"data:")).count()
}

/// How long reading a whole stream took, and the server's CPU time for it.
pub(crate) struct Read {
    pub(crate) took: Duration,
    pub(crate) cpu: Duration,
}

/// Reads a stream of known length some times, and keeps nothing of it.
pub(crate) async fn measure(server: &Server, path: &str, length: usize, times: u32) -> Result<Read, Failure> {
    let request = client::get(path, "text/event-stream");
    let (cpu, begun) = (server.cpu_time()?, Instant::now());
    for _ in 0..times {
        let mut connection = Connection::open(server.address).await?;
        connection.send(&request).await?;
        let head = connection.head().await?;
        expect_success(head.status, b"")?;
        let mut read = 0;
        connection.body(head, |piece| read += piece.len()).await?;
        if read != length {
            return Err(format!("{path}: {read} bytes came, not the {length} of the first time").into());
        }
    }
    Ok(Read { took: begun.elapsed() / times, cpu: server.cpu_time()?.saturating_sub(cpu) / times })
}

/// How long it takes to get the last events of a run.
pub(crate) struct Resumed {
    /// The first time, in milliseconds: nothing has been prepared for this run and dialect.
    pub(crate) first: f64,
    /// The median of all other times.
    pub(crate) median: f64,
}

/// Resumes a few events before the end of each run, in turn, so that what else happens strikes all alike.
pub(crate) async fn resume(
    server: &Server,
    runs: &[&str],
    dialect: &str,
    times: usize,
) -> Result<Vec<Resumed>, Failure> {
    let mut connection = Connection::open(server.address).await?;
    let mut requests = Vec::new();
    for run in runs {
        let after = last_seq(&mut connection, run).await?.saturating_sub(BEHIND);
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
