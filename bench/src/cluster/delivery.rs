//! Latency from a commit on one node to a reader on another, compared with a bare `XADD` and `XREAD`.

use std::sync::Arc;
use std::time::{Duration, Instant};

use redis::streams::StreamReadReply;
use redis::{AsyncConnectionConfig, Client, IntoConnectionInfo, io::tcp::TcpSettings};
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

use super::load::{self, Node};
use crate::Failure;
use crate::statistics::percentile;
use crate::wire::frame;

/// Timeout of one event.
const TIMEOUT: Duration = Duration::from_secs(10);
/// MAXLEN of the bare Redis stream, as of a thread's.
const STREAM_MAXLEN: usize = 64;

/// When events are written: after the arrival of the last one and a pause.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pace {
    pub(crate) events: usize,
    /// Pauses are spread evenly up to this many milliseconds, so that no timer synchronises.
    pub(crate) most_milliseconds: usize,
}

impl Pace {
    async fn pause(self, event: usize) {
        // 37 is coprime to the usual lengths, so every pause occurs.
        let milliseconds = 1 + event * 37 % self.most_milliseconds.max(1);
        sleep(Duration::from_millis(milliseconds as u64)).await;
    }
}

/// The latencies of a round.
pub(crate) struct Latencies {
    pub(crate) p50_milliseconds: f64,
    pub(crate) p99_milliseconds: f64,
}

impl Latencies {
    fn of(mut microseconds: Vec<u32>) -> Self {
        let mut milliseconds =
            |share| percentile(&mut microseconds, share).map_or(0.0, |micros| f64::from(micros) / 1e3);
        Self { p50_milliseconds: milliseconds(0.5), p99_milliseconds: milliseconds(0.99) }
    }
}

/// Writes on one node, and measures from the acknowledgement until a reader on another has the record.
pub(crate) async fn measure(
    writer: &Node,
    reader: &Node,
    name: &str,
    pace: Pace,
) -> Result<Latencies, Failure> {
    let run = load::run(name);
    let first = load::write(writer, load::append(&run, 1)).await?;
    let (arrived, mut arrivals) = mpsc::unbounded_channel();
    let following = tokio::spawn(follow(reader.clone(), name.to_owned(), first, arrived));
    // The first events are a warm-up.
    let warm_up = 10;
    let mut latencies = Vec::with_capacity(pace.events);
    for event in 0..warm_up + pace.events {
        pace.pause(event).await;
        let seq = load::write(writer, load::append(&run, 1)).await?;
        let acknowledged = Instant::now();
        let seen = loop {
            let next = timeout(TIMEOUT, arrivals.recv()).await;
            let next = next.map_err(|_| format!("record {seq} did not arrive"))?;
            let (arrived, at): (u64, Instant) = next.ok_or("the reader has ended")?;
            if arrived >= seq {
                break at;
            }
        };
        if event >= warm_up {
            latencies.push(seen.saturating_duration_since(acknowledged).as_micros() as u32);
        }
    }
    following.abort();
    Ok(Latencies::of(latencies))
}

/// Reads a thread as a feed does: from the tail, or from the store if the tail lost records.
async fn follow(
    node: Node,
    name: String,
    mut last: u64,
    arrived: mpsc::UnboundedSender<(u64, Instant)>,
) -> Result<(), Failure> {
    let thread = load::run(&name).thread(name.as_str());
    let tail = node.tail(&thread);
    let mut head = tail.watch();
    loop {
        let records = match tail.after(last) {
            Some(records) => records,
            None => node.read(&thread, last).await?.records,
        };
        let now = Instant::now();
        if let Some(newest) = records.last() {
            last = newest.record.seq;
            // The receiver is dropped: the round is over.
            if arrived.send((last, now)).is_err() {
                return Ok(());
            }
        }
        let behind = head.borrow_and_update().seq > last;
        if !behind {
            head.changed().await?;
        }
    }
}

/// Measures from an `XADD` until a blocking `XREAD` on another connection returns it.
pub(crate) async fn measure_pair(url: &str, name: &str, pace: Pace) -> Result<Latencies, Failure> {
    let info = url.into_connection_info()?;
    let client = Client::open(info.set_tcp_settings(TcpSettings::default().set_nodelay(true)))?;
    // A blocking read has no time limit.
    let config = AsyncConnectionConfig::new().set_response_timeout(None);
    let mut sending = client.get_multiplexed_async_connection_with_config(&config).await?;
    let mut reading = client.get_multiplexed_async_connection_with_config(&config).await?;
    let (arrived, mut arrivals) = mpsc::unbounded_channel();
    let key: Arc<str> = name.into();
    let read_key = key.clone();
    let following = tokio::spawn(async move {
        let mut last = "0".to_owned();
        loop {
            let mut command = redis::cmd("XREAD");
            command.arg("BLOCK").arg(0).arg("STREAMS").arg(&*read_key).arg(&last);
            let reply: StreamReadReply = command.query_async(&mut reading).await?;
            let now = Instant::now();
            for entry in reply.keys.into_iter().flat_map(|stream| stream.ids) {
                last = entry.id;
                if arrived.send((last.clone(), now)).is_err() {
                    return Ok::<_, Failure>(());
                }
            }
        }
    });
    // A record holds its frame and its decoded event, so the payload is doubled.
    let body = frame::typical(name).repeat(2);
    let mut latencies = Vec::with_capacity(pace.events);
    for event in 0..pace.events {
        pace.pause(event).await;
        let id = format!("{}-0", event + 1);
        let mut command = redis::cmd("XADD");
        command.arg(&*key).arg("MAXLEN").arg("~").arg(STREAM_MAXLEN).arg(&id);
        command.arg("first").arg(event + 1).arg("body").arg(&body);
        let sent = Instant::now();
        command.exec_async(&mut sending).await?;
        let next = timeout(TIMEOUT, arrivals.recv()).await.map_err(|_| "an entry did not arrive")?;
        let (arrived, at): (String, Instant) = next.ok_or("the reader has ended")?;
        if arrived != id {
            return Err(format!("entry {arrived} arrived instead of {id}").into());
        }
        latencies.push((at - sent).as_micros() as u32);
    }
    following.abort();
    Ok(Latencies::of(latencies))
}
