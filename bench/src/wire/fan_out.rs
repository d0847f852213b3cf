//! Benchmark of fan-out: one writer, many readers of one run.
//!
//! Each event carries a mark with its number and write time, which each reader finds in its stream.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};

use super::append::{begin, expect_success, finish};
use super::client::{self, HttpConnection};
use super::frame;
use super::process::{ServerKind, ServerProcess};
use crate::Failure;
use crate::statistics::percentile;

/// Buffer of an idle reader.
const READER_BYTES: usize = 4 << 10;
/// Pause before the server's memory is read or the first event is written.
const SETTLE_TIME: Duration = Duration::from_millis(500);
/// How long readers may take after the last event.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(10);
/// Readers that attach concurrently.
const CONCURRENT_ATTACHES: usize = 64;

/// The number of readers and the rate of events.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FanOutLoad {
    pub(crate) readers: usize,
    pub(crate) events_per_second: usize,
}

/// The result of a round.
pub(crate) struct FanOutRound {
    pub(crate) p50_milliseconds: f64,
    pub(crate) p99_milliseconds: f64,
    pub(crate) deliveries_per_second: f64,
    pub(crate) deliveries_per_cpu_second: f64,
    /// Events that the writer could write in a second.
    pub(crate) written_per_second: f64,
}

/// Writes events at a fixed rate to one server, and measures when each reader of this or another server has them.
pub(crate) async fn measure(
    [server, near_readers]: [&ServerProcess; 2],
    crowd: FanOutLoad,
    writer: PacedWriter,
    run: &str,
    duration: Duration,
) -> Result<FanOutRound, Failure> {
    let epoch = Instant::now();
    let events = (crowd.events_per_second as f64 * duration.as_secs_f64()) as u64;
    begin(server, &[run.to_owned()]).await?;
    let latencies = Arc::new(Mutex::new(Vec::with_capacity(crowd.readers * events as usize)));
    let mut readers = JoinSet::new();
    for connection in attach(near_readers, run, crowd.readers).await? {
        readers.spawn(read(connection, epoch, events, Arc::clone(&latencies)));
    }
    sleep(SETTLE_TIME).await;

    let (cpu, begun) = (server.cpu_time()?, Instant::now());
    let written_per_second = write_paced(server, run, writer, crowd, (events, epoch)).await?;
    let all = async {
        while let Some(reader) = readers.join_next().await {
            reader??;
        }
        Ok::<_, Failure>(())
    };
    let complete = timeout(DRAIN_TIMEOUT, all).await;
    let (took, cpu) = (begun.elapsed(), server.cpu_time()?.saturating_sub(cpu));
    readers.abort_all();

    if server.kind == ServerKind::Runwire {
        finish(&mut HttpConnection::open(server.address).await?, run).await?;
    }

    let mut latencies = latencies.lock().unwrap_or_else(PoisonError::into_inner);
    let (delivered, expected) = (latencies.len(), crowd.readers * events as usize);
    match complete {
        Ok(read) => read?,
        Err(_) => return Err(format!("{delivered} of {expected} deliveries arrived").into()),
    }
    let mut milliseconds =
        |share| percentile(&mut latencies, share).map_or(0.0, |micros| f64::from(micros) / 1e3);
    Ok(FanOutRound {
        p50_milliseconds: milliseconds(0.5),
        p99_milliseconds: milliseconds(0.99),
        deliveries_per_second: delivered as f64 / took.as_secs_f64(),
        deliveries_per_cpu_second: delivered as f64 / cpu.as_secs_f64(),
        written_per_second,
    })
}

/// Measures the server's memory per idle reader, in KiB.
///
/// The server should be fresh: reused memory would not be counted.
pub(crate) async fn kibibytes_per_idle_reader(
    server: &ServerProcess,
    readers: usize,
) -> Result<f64, Failure> {
    let run = "idle";
    begin(server, &[run.to_owned()]).await?;
    // The first readers also cause one-time allocations.
    let first = attach(server, run, CONCURRENT_ATTACHES).await?;
    sleep(SETTLE_TIME).await;
    let before = server.resident_kibibytes()?;
    let more = attach(server, run, readers).await?;
    sleep(SETTLE_TIME).await;
    let after = server.resident_kibibytes()?;
    drop((first, more));
    Ok((after - before) / readers as f64)
}

/// How the writer writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PacedWriter {
    /// One body that stays open.
    OpenBody,
    /// A request for each event, each after the answer to the one before.
    Requests,
}

/// Writes events at an even pace, and returns how many there were in a second.
async fn write_paced(
    server: &ServerProcess,
    run: &str,
    writer: PacedWriter,
    crowd: FanOutLoad,
    (events, epoch): (u64, Instant),
) -> Result<f64, Failure> {
    let mut connection = HttpConnection::open(server.address).await?;
    let mut body = Vec::new();
    if writer == PacedWriter::OpenBody {
        let path = match server.kind {
            ServerKind::Floor => "/broadcast".to_owned(),
            _ => frame::write_path(run),
        };
        connection.send(&client::post_open(&path, frame::CONTENT_TYPE)).await?;
    }
    let begun = Instant::now();
    let mut pace = interval(Duration::from_secs(1) / crowd.events_per_second as u32);
    pace.set_missed_tick_behavior(MissedTickBehavior::Burst);
    let filling = frame::words(120);
    for number in 1..=events {
        pace.tick().await;
        let mark = Mark { number, written: epoch.elapsed().as_micros() as u64 };
        let event = frame::with_text(run, &format!("{}{filling}", mark.render()));
        match writer {
            PacedWriter::OpenBody => {
                let mut chunk = Vec::new();
                client::push_chunk(&mut chunk, &event);
                connection.send(&chunk).await?;
            }
            PacedWriter::Requests => {
                let status = connection.exchange(&server.kind.write_request(run, &event), &mut body).await?;
                expect_success(status, &body)?;
            }
        }
    }
    let took = begun.elapsed();
    if writer == PacedWriter::OpenBody {
        connection.send(client::LAST_CHUNK).await?;
        let status = connection.answer(&mut body).await?;
        expect_success(status, &body)?;
    }
    Ok(events as f64 / took.as_secs_f64())
}

/// Attaches readers and waits until each has had its first bytes.
async fn attach(server: &ServerProcess, run: &str, readers: usize) -> Result<Vec<HttpConnection>, Failure> {
    let request = Arc::new(server.kind.read_request(run));
    let mut attached = Vec::with_capacity(readers);
    while attached.len() < readers {
        let mut attaching = JoinSet::new();
        for _ in 0..CONCURRENT_ATTACHES.min(readers - attached.len()) {
            let (address, request) = (server.address, Arc::clone(&request));
            attaching.spawn(async move {
                let mut connection = HttpConnection::open(address).await?;
                connection.send(&request).await?;
                let head = connection.head().await?;
                expect_success(head.status, b"")?;
                connection.wait_for_bytes().await?;
                connection.shrink(READER_BYTES);
                Ok::<_, Failure>(connection)
            });
        }
        while let Some(connection) = attaching.join_next().await {
            attached.push(connection??);
        }
    }
    Ok(attached)
}

async fn read(
    mut connection: HttpConnection,
    epoch: Instant,
    events: u64,
    latencies: Arc<Mutex<Vec<u32>>>,
) -> Result<(), Failure> {
    let mut marks = Marks::default();
    while marks.last < events {
        let bytes = connection.wait_for_bytes().await?;
        let now = epoch.elapsed().as_micros() as u64;
        let mut latencies = latencies.lock().unwrap_or_else(PoisonError::into_inner);
        marks.find(bytes, |written| latencies.push(now.saturating_sub(written) as u32))?;
    }
    Ok(())
}

/// An event's number, and when it was written.
struct Mark {
    number: u64,
    /// Microseconds since the round began.
    written: u64,
}

impl Mark {
    /// Renders it without characters that need escaping in any dialect.
    fn render(&self) -> String {
        format!("@{}:{}@ ", self.number, self.written)
    }
}

/// Finds marks in a byte stream.
#[derive(Default)]
struct Marks {
    /// The number of the last mark.
    last: u64,
    /// The start of an incomplete mark.
    begun: Vec<u8>,
}

impl Marks {
    /// Finds each mark once, as a dialect may repeat a text; a missing mark is an error.
    fn find(&mut self, bytes: &[u8], mut found: impl FnMut(u64)) -> Result<(), Failure> {
        let mut rest = bytes;
        if !self.begun.is_empty() {
            let end = memchr::memchr(b'@', rest);
            self.begun.extend_from_slice(&rest[..end.unwrap_or(rest.len())]);
            let Some(end) = end else { return Ok(()) };
            rest = &rest[end + 1..];
            let begun = std::mem::take(&mut self.begun);
            self.take(&begun[1..], &mut found)?;
        }
        while let Some(start) = memchr::memchr(b'@', rest) {
            match memchr::memchr(b'@', &rest[start + 1..]) {
                Some(length) => {
                    self.take(&rest[start + 1..start + 1 + length], &mut found)?;
                    rest = &rest[start + length + 2..];
                }
                None => {
                    self.begun.extend_from_slice(&rest[start..]);
                    break;
                }
            }
        }
        Ok(())
    }

    fn take(&mut self, mark: &[u8], found: &mut impl FnMut(u64)) -> Result<(), Failure> {
        let (number, written) = std::str::from_utf8(mark)
            .ok()
            .and_then(|mark| mark.split_once(':'))
            .and_then(|(number, written)| Some((number.parse::<u64>().ok()?, written.parse().ok()?)))
            .ok_or_else(|| format!("no mark: {}", String::from_utf8_lossy(mark)))?;
        if number > self.last + 1 {
            return Err(format!("a reader got event {number} after event {}", self.last).into());
        }
        if number == self.last + 1 {
            self.last = number;
            found(written);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found_in(pieces: &[&str]) -> Result<Vec<u64>, String> {
        let (mut marks, mut found) = (Marks::default(), Vec::new());
        for piece in pieces {
            marks.find(piece.as_bytes(), |written| found.push(written)).map_err(|error| error.to_string())?;
        }
        Ok(found)
    }

    #[test]
    fn a_mark_is_found_across_chunks() {
        let stream = "data: @1:17@ a\n\ndata: @2:29@ b\n\n";
        for cut in 0..stream.len() {
            let (before, after) = stream.split_at(cut);
            assert_eq!(found_in(&[before, after]), Ok(vec![17, 29]), "cut at {cut}");
        }
        let letters: Vec<String> = stream.chars().map(String::from).collect();
        assert_eq!(found_in(&letters.iter().map(String::as_str).collect::<Vec<_>>()), Ok(vec![17, 29]));
    }

    #[test]
    fn a_mark_counts_once_and_none_may_be_missing() {
        assert_eq!(found_in(&["@1:5@ @1:5@ @2:6@"]), Ok(vec![5, 6]));
        assert_eq!(found_in(&["@1:5@ @3:6@"]), Err("a reader got event 3 after event 1".to_owned()));
    }
}
