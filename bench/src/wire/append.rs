//! Benchmark of writing: closed-loop connections that send the next event once the last one is durable.

use std::time::{Duration, Instant};

use tokio::task::JoinSet;

use super::client::{self, HttpConnection};
use super::frame;
use super::process::{ServerKind, ServerProcess};
use crate::Failure;
use crate::statistics::percentile;

/// Concurrent connections.
const CONNECTIONS: usize = 64;
/// Runs that are written to in turn.
pub(crate) const RUNS: usize = 100;

/// How events are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WriteLoad {
    /// A number of events per request.
    Requests { events: usize },
    /// One streamed request; each event is a chunk, and several chunks are one write.
    OpenBodies { chunks_at_once: usize },
}

/// The result of a round.
pub(crate) struct WriteRound {
    events: usize,
    pub(crate) events_per_second: f64,
    /// Latency of a request; `None` for open bodies.
    pub(crate) p99_milliseconds: Option<f64>,
    pub(crate) cpu_microseconds_per_event: f64,
}

/// Writes for a while to new runs, named after `label`.
pub(crate) async fn measure(
    server: &ServerProcess,
    load: WriteLoad,
    label: &str,
    duration: Duration,
) -> Result<WriteRound, Failure> {
    let runs: Vec<String> = (0..runs_of(load)).map(|number| format!("{label}-{number:03}")).collect();
    begin(server, &runs).await?;
    let wrote = write_for(server, load, &runs, duration).await?;
    if server.kind == ServerKind::Runwire {
        let stored = end(server, &runs).await?;
        if stored < wrote.events {
            return Err(format!("{} events were acknowledged, {stored} are stored", wrote.events).into());
        }
    }
    Ok(wrote)
}

/// Writes single events for a while to runs that were begun, and leaves them open.
pub(crate) async fn measure_runs(
    server: &ServerProcess,
    runs: &[String],
    duration: Duration,
) -> Result<WriteRound, Failure> {
    write_for(server, WriteLoad::Requests { events: 1 }, runs, duration).await
}

async fn write_for(
    server: &ServerProcess,
    load: WriteLoad,
    runs: &[String],
    duration: Duration,
) -> Result<WriteRound, Failure> {
    let mut connections = Vec::new();
    for _ in 0..CONNECTIONS {
        connections.push(HttpConnection::open(server.address).await?);
    }
    let (cpu, begun) = (server.cpu_time()?, Instant::now());
    let deadline = begun + duration;
    let mut writers = JoinSet::new();
    for (number, connection) in connections.into_iter().enumerate() {
        let kind = server.kind;
        match load {
            WriteLoad::Requests { events } => {
                // Over all runs, in an order that differs from connection to connection.
                let turns = runs.len().div_ceil(CONNECTIONS).max(RUNS.min(runs.len()));
                let requests: Vec<Vec<u8>> = (0..turns)
                    .map(|turn| &runs[(number + turn * CONNECTIONS) % runs.len()])
                    .map(|run| kind.write_request(run, &frame::typical(run).repeat(events)))
                    .collect();
                writers.spawn(write_requests(connection, requests, events, deadline));
            }
            WriteLoad::OpenBodies { chunks_at_once } => {
                writers.spawn(write_open_body(
                    connection,
                    runs[number].clone(),
                    chunks_at_once,
                    kind,
                    deadline,
                ));
            }
        }
    }
    let (mut events, mut latencies) = (0, Vec::new());
    while let Some(writer) = writers.join_next().await {
        let mut wrote = writer??;
        events += wrote.events;
        latencies.append(&mut wrote.latencies);
    }
    let (took, cpu) = (begun.elapsed(), server.cpu_time()?.saturating_sub(cpu));

    Ok(WriteRound {
        events,
        events_per_second: events as f64 / took.as_secs_f64(),
        p99_milliseconds: percentile(&mut latencies, 0.99).map(|microseconds| f64::from(microseconds) / 1e3),
        cpu_microseconds_per_event: cpu.as_secs_f64() * 1e6 / events as f64,
    })
}

fn runs_of(load: WriteLoad) -> usize {
    match load {
        WriteLoad::Requests { .. } => RUNS,
        WriteLoad::OpenBodies { .. } => CONNECTIONS,
    }
}

/// The result of one connection.
struct ConnectionResult {
    events: usize,
    /// Microseconds of each request.
    latencies: Vec<u32>,
}

async fn write_requests(
    mut connection: HttpConnection,
    requests: Vec<Vec<u8>>,
    events: usize,
    deadline: Instant,
) -> Result<ConnectionResult, Failure> {
    let mut wrote = ConnectionResult { events: 0, latencies: Vec::with_capacity(1 << 12) };
    let mut body = Vec::new();
    let mut sent = Instant::now();
    for request in requests.iter().cycle() {
        let status = connection.exchange(request, &mut body).await?;
        expect_success(status, &body)?;
        wrote.events += events;
        let answered = Instant::now();
        wrote.latencies.push((answered - sent).as_micros() as u32);
        if answered >= deadline {
            break;
        }
        sent = answered;
    }
    Ok(wrote)
}

async fn write_open_body(
    mut connection: HttpConnection,
    run: String,
    chunks_at_once: usize,
    kind: ServerKind,
    deadline: Instant,
) -> Result<ConnectionResult, Failure> {
    let mut chunks = Vec::new();
    for _ in 0..chunks_at_once {
        client::push_chunk(&mut chunks, &frame::typical(&run));
    }
    connection.send(&client::post_open(&frame::write_path(&run), frame::CONTENT_TYPE)).await?;
    let mut events = 0;
    // A server that refuses a frame responds and closes: report the response, not the broken pipe.
    let mut open = true;
    while open && Instant::now() < deadline {
        open = connection.send(&chunks).await.is_ok();
        events += chunks_at_once;
    }
    if open {
        connection.send(client::LAST_CHUNK).await?;
    }
    let mut body = Vec::new();
    let status = connection.answer(&mut body).await?;
    expect_success(status, &body)?;
    let accepted = number_in(&body, "/accepted");
    if kind == ServerKind::Runwire && accepted != Some(events as u64) {
        return Err(format!("{events} events were sent, {accepted:?} accepted").into());
    }
    Ok(ConnectionResult { events, latencies: Vec::new() })
}

/// Starts each run, so that this is not measured.
pub(crate) async fn begin(server: &ServerProcess, runs: &[String]) -> Result<(), Failure> {
    let mut connection = HttpConnection::open(server.address).await?;
    let mut body = Vec::new();
    for run in runs {
        let Some(request) = server.kind.begin_request(run) else { return Ok(()) };
        let status = connection.exchange(&request, &mut body).await?;
        expect_success(status, &body)?;
    }
    Ok(())
}

/// Ends the runs, and returns their number of records without the first ones.
async fn end(server: &ServerProcess, runs: &[String]) -> Result<usize, Failure> {
    let mut connection = HttpConnection::open(server.address).await?;
    let mut stored = 0;
    for run in runs {
        stored += last_seq(&mut connection, run).await?.saturating_sub(1) as usize;
        finish(&mut connection, run).await?;
    }
    Ok(stored)
}

/// Ends a run.
pub(crate) async fn finish(connection: &mut HttpConnection, run: &str) -> Result<(), Failure> {
    let path = format!("{}&end=true", frame::write_path(run));
    let mut body = Vec::new();
    let status = connection.exchange(&client::post(&path, frame::CONTENT_TYPE, b""), &mut body).await?;
    expect_success(status, &body)
}

/// Reads the last `seq` of a run.
pub(crate) async fn last_seq(connection: &mut HttpConnection, run: &str) -> Result<u64, Failure> {
    let mut body = Vec::new();
    let request = client::get(&format!("/v1/runs/{run}"), "application/json");
    let status = connection.exchange(&request, &mut body).await?;
    expect_success(status, &body)?;
    let answer: serde_json::Value = serde_json::from_slice(&body)?;
    let cursor = &answer["cursor"];
    let seq = match cursor.as_str() {
        Some(cursor) => cursor.split('-').next().and_then(|seq| seq.parse().ok()),
        None => cursor.as_u64(),
    };
    Ok(seq.ok_or_else(|| format!("no cursor in {answer}"))?)
}

/// Returns an error with the response's body unless the status is 2xx.
pub(crate) fn expect_success(status: u16, body: &[u8]) -> Result<(), Failure> {
    if (200..300).contains(&status) {
        return Ok(());
    }
    Err(format!("the server answered {status}: {}", String::from_utf8_lossy(body)).into())
}

fn number_in(body: &[u8], pointer: &str) -> Option<u64> {
    serde_json::from_slice::<serde_json::Value>(body).ok()?.pointer(pointer)?.as_u64()
}
