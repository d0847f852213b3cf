//! Fan-out: a thousand readers of one run, a hundred of them stalled, do not affect each other.
//!
//! Order is shown by what has happened when, never by time.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use socket2::{Domain, SockRef, Socket, Type};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::harness::{COMPLETED, Served, delta, within_timeout};
use crate::socket_loops::until_figure;

const READERS: usize = 1000;
const STALLED: usize = 100;
const EVENTS: usize = 2000;
/// What all of it may take while a hundred readers stand still: what the server holds for each of them (a piece of
/// the log on its way), and the test's own buffers. Everything for all stalled readers would be 200 MiB.
const GROWTH: usize = 160 << 20;

/// Returns the resident memory of the process, which is both server and clients.
fn resident_bytes() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kibibytes = line.and_then(|line| line.trim().trim_end_matches(" kB").trim().parse::<usize>().ok());
    kibibytes.unwrap_or(0) << 10
}

/// Returns the unsent bytes in the kernel for each connection of the server.
fn held_by_the_kernel(port: u16) -> Vec<usize> {
    let table = std::fs::read_to_string("/proc/self/net/tcp").unwrap_or_default();
    let port = format!(":{port:04X}");
    let lines = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    // Those that are being closed have their last bytes on the way.
    let ours = lines.filter(|words| words.len() > 4 && words[1].ends_with(&port) && words[3] == "01");
    let held = ours.filter_map(|words| usize::from_str_radix(words[4].split(':').next()?, 16).ok());
    held.filter(|held| *held > 0).collect()
}

/// Allows two sockets a reader; where that cannot be, connecting says so.
fn allow_many_files() {
    let (pid, limit) = (std::process::id().to_string(), format!("--nofile={}:", 4 * READERS));
    let _ = std::process::Command::new("prlimit").args(["--pid", &pid, &limit]).output();
}

/// Connects with room for little that was not read, and asks for the run.
async fn connect(served: &Served, small: bool) -> TcpStream {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    if small {
        socket.set_recv_buffer_size(32 << 10).unwrap();
    }
    socket.connect(&served.address.into()).unwrap();
    socket.set_nonblocking(true).unwrap();
    let mut stream = TcpStream::from_std(socket.into()).unwrap();
    let request = "GET /v1/runs/r/events?after=1&dialect=text HTTP/1.1\r\nhost: localhost\r\naccept: text/event-stream\r\n\r\n";
    stream.write_all(request.as_bytes()).await.unwrap();
    stream
}

/// Writes what everyone must get, byte for byte.
fn everything(filler: &str) -> String {
    let mut all = String::new();
    for number in 0..EVENTS {
        all.push_str(&format!("id: {}-0\ndata: {}\n\n", number + 2, content(number, filler)));
    }
    // The end is no text, and yet a place.
    all + &format!("id: {}\n\n: end\n\n", EVENTS + 2)
}

fn content(number: usize, filler: &str) -> String {
    format!("{number} {filler}")
}

/// Where a reader is in the chunks of its response.
enum Chunks {
    /// In the length line of a chunk, of which this has come.
    Length(Vec<u8>),
    /// Before so many bytes of a chunk and its line end.
    Data(usize),
    Ended,
}

impl Chunks {
    /// Takes what is in the chunks out of some bytes.
    fn data(&mut self, mut bytes: &[u8]) -> Vec<u8> {
        let mut data = Vec::new();
        while let Some((&first, rest)) = bytes.split_first() {
            match self {
                Self::Length(line) if first == b'\n' => {
                    let length = std::str::from_utf8(line).unwrap().trim_end();
                    let length = usize::from_str_radix(length, 16).unwrap();
                    *self = Self::Data(length + 2);
                    if length == 0 {
                        assert_eq!(rest, b"\r\n");
                        *self = Self::Ended;
                        return data;
                    }
                    bytes = rest;
                }
                Self::Length(line) => {
                    line.push(first);
                    bytes = rest;
                }
                Self::Data(left) => {
                    let count = bytes.len().min(*left);
                    let content = left.saturating_sub(2).min(count);
                    data.extend_from_slice(&bytes[..content]);
                    bytes = &bytes[count..];
                    *left -= count;
                    if *left == 0 {
                        *self = Self::Length(Vec::new());
                    }
                }
                Self::Ended => panic!("nothing follows the last chunk"),
            }
        }
        data
    }
}

/// Reads to the end, and compares as it goes.
async fn read_all(mut stream: TcpStream, everything: &[u8], mut chunks: Chunks, begun: &[u8]) {
    assert_eq!(begun, &everything[..begun.len()]);
    let (mut buffer, mut at) = (vec![0; 4 << 10], begun.len());
    loop {
        let count = stream.read(&mut buffer).await.unwrap();
        if count == 0 {
            break;
        }
        let data = chunks.data(&buffer[..count]);
        assert!(data == everything[at..at + data.len()], "nothing twice, nothing missing: {at}");
        at += data.len();
    }
    assert_eq!(at, everything.len(), "the stream was cut off");
    assert!(matches!(chunks, Chunks::Ended), "the stream was cut off before its last chunk");
}

#[tokio::test(flavor = "multi_thread")]
async fn stalled_readers_slow_no_other_reader_and_cost_little_memory() {
    allow_many_files();
    // Nothing but frames shall come, however long the machine takes.
    let served = Served::with(|config| config.keep_alive = Duration::from_secs(3600)).await;
    let filler = "x".repeat(1000);
    let everything: Arc<str> = everything(&filler).into();
    served.post("/v1/runs/r/events", &delta("first")).await.written(1, 0);
    let (go_on, stalled) = watch::channel(false);
    let (mut quick, mut slow) = (JoinSet::new(), JoinSet::new());
    let begun = Arc::new(AtomicUsize::new(0));
    for at in 0..READERS {
        let is_slow = at % (READERS / STALLED) == 0;
        let mut stream = connect(&served, is_slow).await;
        let (begun, mut stalled, everything) = (begun.clone(), stalled.clone(), everything.clone());
        let reading = async move {
            // The head and the sign that it has caught up: the reader is attached.
            let mut buffer = [0; 1024];
            let (mut head, mut seen) = (Vec::new(), Vec::new());
            let mut chunks = Chunks::Length(Vec::new());
            let caught_up = |seen: &[u8]| seen.windows(13).position(|bytes| bytes == b": caught-up\n\n");
            while caught_up(&seen).is_none() {
                let count = stream.read(&mut buffer).await.unwrap();
                assert!(count > 0);
                let mut bytes = &buffer[..count];
                while let Some((&first, rest)) = bytes.split_first()
                    && !head.ends_with(b"\r\n\r\n")
                {
                    head.push(first);
                    bytes = rest;
                }
                seen.extend(chunks.data(bytes));
            }
            begun.fetch_add(1, Ordering::SeqCst);
            if is_slow {
                stalled.wait_for(|go_on| *go_on).await.unwrap();
                SockRef::from(&stream).set_recv_buffer_size(1 << 20).unwrap();
            }
            let rest = caught_up(&seen).unwrap() + 13;
            read_all(stream, everything.as_bytes(), chunks, &seen[rest..]).await;
        };
        if is_slow {
            slow.spawn(reading);
        } else {
            quick.spawn(reading);
        }
    }
    while begun.load(Ordering::SeqCst) < READERS {
        tokio::task::yield_now().await;
    }
    let loops_have_all = format!("runwire_socket_loop_connections{{role=\"reader\"}} {READERS}");
    until_figure(&served, &loops_have_all).await;
    let before = resident_bytes();
    for at in (0..EVENTS).step_by(20) {
        let body: String = (at..at + 20).map(|number| delta(&content(number, &filler))).collect();
        served.post("/v1/runs/r/events", &body).await.written(20, 0);
    }
    served.post("/v1/runs/r/events", COMPLETED).await.written(1, 0);
    while let Some(done) = quick.join_next().await {
        done.unwrap();
    }
    // Everyone else has everything, and the stalled ones have not read on.
    let growth = resident_bytes().saturating_sub(before);
    let mut held = held_by_the_kernel(served.address.port());
    if cfg!(target_os = "linux") {
        // An answer that was sent a moment ago may not have been acknowledged yet.
        within_timeout(async {
            while held.len() != STALLED {
                tokio::time::sleep(Duration::from_millis(5)).await;
                held = held_by_the_kernel(served.address.port());
            }
        })
        .await;
    }
    assert!(held.iter().all(|held| *held < everything.len() / 2), "most of it waits in the log: {held:?}");
    assert_eq!(slow.try_join_next().map(|done| done.is_ok()), None);
    assert!(growth < GROWTH, "{} MiB more", growth >> 20);
    go_on.send_replace(true);
    while let Some(done) = slow.join_next().await {
        done.unwrap();
    }
}
