//! Benchmark of the SDK and the command line, compared with raw requests and curl.

use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use runwire_client::Client;
use runwire_client::write::{Format, StreamingEngine};

use super::append::expect_success;
use super::client::{self, HttpConnection};
use super::frame;
use super::process::ServerProcess;
use crate::Failure;

/// Text of each emitted event.
const TEXT_BYTES: usize = 48;

/// Emits for a while with this window, and returns the acknowledged events per second.
pub(crate) async fn emit(
    server: &ServerProcess,
    run: &str,
    window: u64,
    duration: Duration,
) -> Result<f64, Failure> {
    let client = Client::builder().url(url_of(server.address)).build()?;
    let engine = StreamingEngine::builder(run).window(window).server(&client)?;
    engine.emit_session_start(run).await?;
    engine.flush().await?;
    let text = frame::words(TEXT_BYTES);
    let (begun, mut emitted) = (Instant::now(), 0u32);
    while begun.elapsed() < duration {
        let sent = engine.emit_content(text.as_str(), Format::Markdown, false).await?;
        if window == 1 {
            sent.acknowledged().await?;
        }
        emitted += 1;
    }
    engine.flush().await?;
    let took = begun.elapsed();
    engine.close().await?;
    Ok(f64::from(emitted) / took.as_secs_f64())
}

/// Sends requests like the emitter's on one connection, with this many events in each.
pub(crate) async fn send_raw(
    server: &ServerProcess,
    run: &str,
    events: u64,
    duration: Duration,
) -> Result<f64, Failure> {
    let mut connection = HttpConnection::open(server.address).await?;
    let text = frame::words(TEXT_BYTES);
    let path = format!("/v1/runs/{run}/events?dialect=streaming-engine");
    let (mut answer, mut sequence) = (Vec::new(), 0);
    let (begun, mut sent) = (Instant::now(), 0u32);
    while begun.elapsed() < duration {
        let first = sequence;
        let mut body = Vec::new();
        for _ in 0..events {
            body.extend_from_slice(content_frame(run, sequence, &text).as_bytes());
            sequence += 1;
        }
        let fields =
            [("Producer-Id", "bench"), ("Producer-Epoch", "1"), ("Producer-Seq", &first.to_string())];
        let request = client::post_with(&path, frame::CONTENT_TYPE, &fields, &body);
        let status = connection.exchange(&request, &mut answer).await?;
        expect_success(status, &answer)?;
        sent += u32::try_from(events)?;
    }
    Ok(f64::from(sent) / begun.elapsed().as_secs_f64())
}

fn content_frame(run: &str, sequence: u64, text: &str) -> String {
    format!(
        "{{\"type\":\"content\",\"data\":{{\"content\":\"{text}\",\"format\":\"markdown\",\"is_complete\":false}},\
         \"metadata\":{{\"request_id\":\"{run}\",\"timestamp\":1763174400000,\"sequence\":{sequence}}}}}\n"
    )
}

/// Ends a run, so that its stream ends too.
pub(crate) async fn end(server: &ServerProcess, run: &str) -> Result<(), Failure> {
    let request = client::post(&format!("/v1/runs/{run}/events?end=true"), frame::CONTENT_TYPE, b"");
    let mut answer = Vec::new();
    let status = HttpConnection::open(server.address).await?.exchange(&request, &mut answer).await?;
    expect_success(status, &answer)
}

/// Reads a run with `runwire tail`, and returns the duration.
pub(crate) fn tail(program: &Path, server: &ServerProcess, run: &str) -> Result<Duration, Failure> {
    let mut command = Command::new(program);
    command.args(["tail", run, "-o", "ndjson", "--dialect", frame::DIALECT.name()]);
    command.args(["--url", &url_of(server.address)]);
    time_of(&mut command)
}

/// Reads a run with curl, and returns the duration.
pub(crate) fn curl(server: &ServerProcess, run: &str) -> Result<Duration, Failure> {
    let mut command = Command::new("curl");
    let address = format!("{}/v1/runs/{run}/events?dialect={}", url_of(server.address), frame::DIALECT);
    time_of(command.args(["--silent", "--fail", "-H", "Accept: text/event-stream", &address]))
}

/// Exports a run to a file.
pub(crate) fn export(program: &Path, server: &ServerProcess, run: &str, file: &Path) -> Result<(), Failure> {
    let mut command = Command::new(program);
    command.args(["export", run, "--url", &url_of(server.address), "-o"]).arg(file);
    time_of(&mut command).map(drop)
}

/// Imports a file without verification, and returns the duration.
pub(crate) fn import(program: &Path, server: &ServerProcess, file: &Path) -> Result<Duration, Failure> {
    let mut command = Command::new(program);
    command.args(["import", "--no-verify", "--url", &url_of(server.address)]).arg(file);
    time_of(&mut command)
}

fn time_of(command: &mut Command) -> Result<Duration, Failure> {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let begun = Instant::now();
    let output = command.output().map_err(|error| format!("{}: {error}", command.get_program().display()))?;
    let took = begun.elapsed();
    if output.status.success() {
        return Ok(took);
    }
    Err(format!("{:?}: {}", command, String::from_utf8_lossy(&output.stderr)).into())
}

fn url_of(address: SocketAddr) -> String {
    format!("http://{address}")
}
