//! Socket loops: nothing is lost, doubled or reordered, however readers stall and leave and writers pipeline.

use std::io::{Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::Method;
use socket2::{Domain, SockRef, Socket, Type};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::harness::{COMPLETED, Raw, Served, delta, within_timeout};
use crate::outage::FlakyLog;

fn write_to(run: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "POST /v1/runs/{run}/events HTTP/1.1\r\nhost: localhost\r\ncontent-length: {length}\r\n\r\n{body}"
    )
}

/// A client that undoes the chunks of a stream by itself, and takes as much as it is told.
struct ChunkedReader {
    stream: TcpStream,
    bytes: Vec<u8>,
    /// What came in whole chunks.
    text: String,
    ended: bool,
}

impl ChunkedReader {
    /// Connects with little room for what was not read, and waits until the stream has caught up.
    async fn attach(served: &Served, path: &str) -> Self {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        socket.set_recv_buffer_size(8 << 10).unwrap();
        socket.connect(&served.address.into()).unwrap();
        socket.set_nonblocking(true).unwrap();
        let mut stream = TcpStream::from_std(socket.into()).unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\naccept: text/event-stream\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut reader = Self { stream, bytes: Vec::new(), text: String::new(), ended: false };
        let head = loop {
            if let Some(at) = reader.bytes.windows(4).position(|four| four == b"\r\n\r\n") {
                break String::from_utf8(reader.bytes.drain(..at + 4).collect()).unwrap();
            }
            assert!(reader.take(1 << 10).await > 0);
        };
        assert!(head.starts_with("HTTP/1.1 200") && head.contains("connection: close"), "{head}");
        reader.unchunk();
        while !reader.text.contains(": caught-up\n\n") {
            assert!(reader.take(1 << 10).await > 0);
            reader.unchunk();
        }
        reader
    }

    /// Reads some bytes; none at the end.
    async fn take(&mut self, limit: usize) -> usize {
        let mut buffer = vec![0; limit];
        let count = within_timeout(self.stream.read(&mut buffer)).await.unwrap();
        self.bytes.extend_from_slice(&buffer[..count]);
        count
    }

    fn unchunk(&mut self) {
        while let Some(line) = self.bytes.windows(2).position(|two| two == b"\r\n") {
            let length = std::str::from_utf8(&self.bytes[..line]).unwrap();
            let length = usize::from_str_radix(length, 16).unwrap_or_else(|_| panic!("no length: {length}"));
            let whole = line + 2 + length + 2;
            if self.bytes.len() < whole {
                return;
            }
            assert_eq!(&self.bytes[whole - 2..whole], b"\r\n");
            assert!(!self.ended, "nothing follows the last chunk");
            self.ended = length == 0;
            self.text.push_str(std::str::from_utf8(&self.bytes[line + 2..whole - 2]).unwrap());
            self.bytes.drain(..whole);
        }
    }

    /// Reads to the end, which must be a proper one.
    async fn rest(mut self) -> String {
        while self.take(64 << 10).await > 0 {
            self.unchunk();
        }
        assert!(self.ended && self.bytes.is_empty(), "the stream was cut off");
        self.text
    }
}

/// The cursors of the frames of a stream, without comments.
fn cursors(text: &str) -> Vec<u64> {
    let blocks = text.split("\n\n").filter(|block| block.contains("data: "));
    let ids = blocks.map(|block| block.lines().find_map(|line| line.strip_prefix("id: ")).unwrap());
    ids.map(|id| id.split('-').next().unwrap().parse().unwrap()).collect()
}

/// A sequence of numbers that is the same in every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn readers_that_stall_and_return_get_every_frame_once_and_in_order() {
    const READERS: u64 = 24;
    const EVENTS: u64 = 600;
    let configure = |config: &mut runwire_server::Config| {
        config.keep_alive = Duration::from_millis(20);
        // However slow the machine is.
        config.stalled_time = Duration::from_secs(3600);
    };
    let served = Arc::new(Served::with(configure).await);
    served.post("/v1/runs/r/events?thread=t", &delta("first")).await.written(1, 0);
    let (progress, seen) = watch::channel(0);
    let mut readers = JoinSet::new();
    for number in 0..READERS {
        let mut reader = ChunkedReader::attach(&served, "/v1/runs/r/events?after=1&dialect=text").await;
        let mut seen = seen.clone();
        readers.spawn(async move {
            let mut numbers = Numbers(number + 1);
            // Some always read, others stand still until so many more events are written, and read a little.
            let patience = [0, 1, 5, 40, 200][number as usize % 5];
            loop {
                let now = *seen.borrow_and_update();
                if now == EVENTS {
                    break;
                }
                if patience > 0 {
                    let until = EVENTS.min(now + numbers.below(patience) + 1);
                    seen.wait_for(|seen| *seen >= until).await.unwrap();
                }
                let limit = 1 + numbers.below(30 << 10) as usize;
                let reading = tokio::time::timeout(Duration::from_millis(1), reader.take(limit)).await;
                assert!(reading != Ok(0), "reader {number} was cut off");
                reader.unchunk();
            }
            (number, reader.rest().await)
        });
    }
    // The readers' rings are overtaken more than once, by frames of all sizes.
    let mut numbers = Numbers(99);
    let mut expected = String::new();
    for event in 0..EVENTS {
        let size = match event % 10 {
            0 => 20_000 + numbers.below(60_000),
            _ => numbers.below(2_000),
        };
        let content = format!("{event} {}", "x".repeat(size as usize));
        served.post("/v1/runs/r/events", &delta(&content)).await.written(1, 0);
        expected.push_str(&content);
        progress.send_replace(event + 1);
    }
    served.post("/v1/runs/r/events", COMPLETED).await.written(1, 0);
    while let Some(done) = readers.join_next().await {
        let (number, text) = done.unwrap();
        assert_eq!(cursors(&text), (2..EVENTS + 2).collect::<Vec<_>>(), "reader {number}");
        let told: String = text.lines().filter_map(|line| line.strip_prefix("data: ")).collect();
        assert!(told == expected, "reader {number} got other bytes");
        assert!(text.ends_with(": end\n\n"), "reader {number} was not told the end");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn readers_of_many_runs_and_dialects_get_what_a_replay_gives() {
    let served = Arc::new(Served::start().await);
    let dialects = ["runwire", "ag-ui", "text", "loom"];
    for run in 0..6 {
        served.post(&format!("/v1/runs/r{run}/events"), &delta("first")).await.written(1, 0);
    }
    let mut readers = JoinSet::new();
    for run in 0..6 {
        for dialect in dialects {
            let path = format!("/v1/runs/r{run}/events?dialect={dialect}");
            let reader = ChunkedReader::attach(&served, &path).await;
            readers.spawn(async move { (path, reader.rest().await) });
        }
    }
    let mut writers = JoinSet::new();
    for run in 0..6 {
        let served = served.clone();
        writers.spawn(async move {
            let mut raw = served.raw().await;
            for number in 0..100 {
                raw.send(write_to(&format!("r{run}"), &delta(&number.to_string())).as_bytes()).await.unwrap();
                raw.answer().await.unwrap().written(1, 0);
            }
            raw.send(write_to(&format!("r{run}"), COMPLETED).as_bytes()).await.unwrap();
            raw.answer().await.unwrap().written(1, 0);
        });
    }
    while let Some(done) = writers.join_next().await {
        done.unwrap();
    }
    while let Some(done) = readers.join_next().await {
        let (path, text) = done.unwrap();
        let replayed = served.get_with(&format!("{path}&follow=false"), &[crate::reading::SSE]).await.text;
        let frames = |text: &str| -> Vec<String> {
            text.split("\n\n").filter(|block| block.contains("data: ")).map(str::to_owned).collect()
        };
        assert_eq!(frames(&text), frames(&replayed), "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn readers_that_leave_at_any_moment_hold_up_nobody() {
    let served = Served::start().await;
    served.post("/v1/runs/r/events?thread=t", &delta("first")).await.written(1, 0);
    let stays = ChunkedReader::attach(&served, "/v1/runs/r/events?after=1&dialect=text").await;
    let mut numbers = Numbers(7);
    let filler = "x".repeat(4_000);
    for event in 0..60 {
        let mut leaves = ChunkedReader::attach(&served, "/v1/threads/t/events?after=end").await;
        served.post("/v1/runs/r/events", &delta(&format!("{event} {filler}"))).await.written(1, 0);
        match numbers.below(3) {
            0 => {}
            1 => drop(leaves.take(1 + numbers.below(3_000) as usize).await),
            _ => SockRef::from(&leaves.stream).set_linger(Some(Duration::ZERO)).unwrap(),
        }
        drop(leaves);
    }
    served.post("/v1/runs/r/events", COMPLETED).await.written(1, 0);
    assert_eq!(cursors(&stays.rest().await), (2..=61).collect::<Vec<_>>());
    // Nobody is counted who has left.
    until_figure(&served, "runwire_readers_open{framing=\"sse\"} 0").await;
    until_figure(&served, "runwire_socket_loop_connections{role=\"reader\"} 0").await;
}

#[tokio::test]
async fn streams_that_have_caught_up_and_small_writes_are_served_by_loops() {
    let served = Served::start().await;
    let mut writer = served.raw().await;
    writer.send(write_to("r", &delta("a")).as_bytes()).await.unwrap();
    writer.answer().await.unwrap().written(1, 0);
    until_figure(&served, "runwire_socket_loop_connections{role=\"writer\"} 1").await;
    until_figure(&served, "runwire_socket_loop_requests_total{role=\"writer\"} 1").await;
    let mut readers = Vec::new();
    for path in ["/v1/runs/r/events", "/v1/runs/r/events?dialect=ag-ui", "/v1/threads/r/events?after=end"] {
        readers.push(ChunkedReader::attach(&served, path).await);
    }
    until_figure(&served, "runwire_socket_loop_connections{role=\"reader\"} 3").await;
    for reader in &mut readers {
        writer.send(write_to("r", &delta("more")).as_bytes()).await.unwrap();
        writer.answer().await.unwrap().written(1, 0);
        while !reader.text.contains("more") {
            assert!(reader.take(1 << 10).await > 0);
            reader.unchunk();
        }
    }
    until_figure(&served, "runwire_socket_loop_connections{role=\"reader\"} 3").await;
    until_figure(&served, "runwire_socket_loop_requests_total{role=\"writer\"} 4").await;
    // One that is limited ends by itself.
    let _limited = ChunkedReader::attach(&served, "/v1/runs/r/events?limit=9").await;
    until_figure(&served, "runwire_socket_loop_connections{role=\"reader\"} 3").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_event_reaches_every_reader_before_the_next_one_is_written() {
    // Neither a keep-alive nor a later event makes up for one that a loop was not told of.
    let served = Served::with(|config| config.keep_alive = Duration::from_secs(3600)).await;
    let mut writer = served.raw().await;
    writer.send(write_to("r", &delta("first")).as_bytes()).await.unwrap();
    writer.answer().await.unwrap().written(1, 0);
    let mut readers = Vec::new();
    for dialect in ["text", "ag-ui", "loom"] {
        for _ in 0..2 {
            let path = format!("/v1/runs/r/events?after=end&dialect={dialect}");
            readers.push(ChunkedReader::attach(&served, &path).await);
        }
    }
    until_figure(&served, "runwire_socket_loop_connections{role=\"reader\"} 6").await;
    for number in 0..60 {
        let content = format!("<{number}>");
        writer.send(write_to("r", &delta(&content)).as_bytes()).await.unwrap();
        writer.answer().await.unwrap().written(1, 0);
        for reader in &mut readers {
            while !reader.text.contains(&content) {
                assert!(reader.take(1 << 10).await > 0);
                reader.unchunk();
            }
        }
    }
}

/// Waits until `/metrics` has a line.
pub(crate) async fn until_figure(served: &Served, line: &str) {
    within_timeout(async { while !served.get("/metrics").await.text.lines().any(|found| found == line) {} })
        .await;
}

#[tokio::test]
async fn a_keep_alive_has_the_cursor_of_records_without_frames() {
    let served = Served::with(|config| config.keep_alive = Duration::from_millis(30)).await;
    served.post("/v1/threads?", r#"{"thread_id":"t","parallel":true}"#).await;
    served.post("/v1/runs/quiet/events?thread=t", &delta("a")).await.written(1, 0);
    served.post("/v1/runs/loud/events?thread=t", &delta("a")).await.written(1, 0);
    let mut reader = ChunkedReader::attach(&served, "/v1/runs/quiet/events").await;
    for _ in 0..20 {
        served.post("/v1/runs/loud/events", &delta("a")).await.written(1, 0);
    }
    while !reader.text.contains(": keep-alive\nid: 22\n\n") {
        assert!(reader.take(1 << 10).await > 0);
        reader.unchunk();
    }
    served.post("/v1/runs/quiet/events", COMPLETED).await.written(1, 0);
    assert!(reader.rest().await.ends_with(": end\n\n"));
}

#[tokio::test]
async fn a_deleted_thread_ends_its_readers() {
    let served = Served::start().await;
    served.post("/v1/runs/r/events?thread=t", &(delta("a") + COMPLETED)).await.written(2, 0);
    let readers = [
        ChunkedReader::attach(&served, "/v1/threads/t/events").await,
        ChunkedReader::attach(&served, "/v1/threads/t/events?dialect=text").await,
    ];
    until_figure(&served, "runwire_socket_loop_connections{role=\"reader\"} 2").await;
    let request = served.request(Method::DELETE, "/v1/threads/t", &[]).body(Bytes::new()).unwrap();
    assert!(served.send(request).await.status.is_success());
    for reader in readers {
        reader.rest().await;
    }
}

#[tokio::test]
async fn pipelined_requests_are_answered_in_order() {
    let served = Served::start().await;
    let mut raw = served.raw().await;
    let mut requests = String::new();
    for number in 0..300 {
        match number % 30 {
            // A refusal, and a body that is looked up in the store, take their turn.
            7 => requests.push_str(&write_to("r", "{\"type\":\n")),
            19 => requests.push_str(&write_to("r", "")),
            _ => requests.push_str(&write_to("r", &delta(&number.to_string()))),
        }
    }
    let bytes = requests.into_bytes();
    let sending = async {
        for piece in bytes.chunks(7_001) {
            raw.send(piece).await.unwrap();
        }
    };
    sending.await;
    let mut last = 0;
    for number in 0..300 {
        let answer = raw.answer().await.unwrap();
        match number % 30 {
            7 => assert_eq!(answer.problem(400, "not_json")["last_seq"], last),
            19 => assert_eq!(answer.written(0, 0)["last_seq"], last),
            _ => {
                last += 1;
                assert_eq!(answer.written(1, 0)["last_seq"], last);
            }
        }
    }
    assert_eq!(served.get("/v1/runs/r").await.json()["counts"]["records"], last);
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_that_a_client_takes_late_are_complete_and_in_order() {
    const REQUESTS: usize = 4_000;
    let served = Served::start().await;
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.set_recv_buffer_size(4 << 10).unwrap();
    socket.connect(&served.address.into()).unwrap();
    socket.set_nonblocking(true).unwrap();
    let (mut reading, mut writing) = TcpStream::from_std(socket.into()).unwrap().into_split();
    // Refusals need no store. All requests together are more than the kernel takes.
    let request = write_to("r", &"x".repeat(10_000)).replace("host: localhost", "host: evil.example");
    let sent = Arc::new(AtomicUsize::new(0));
    let counted = sent.clone();
    let sender = tokio::spawn(async move {
        for _ in 0..REQUESTS {
            writing.write_all(request.as_bytes()).await.unwrap();
            counted.fetch_add(1, Ordering::SeqCst);
        }
        writing
    });
    // The server takes no more requests than it can answer: the client's own socket is full before all are sent.
    let mut before = usize::MAX;
    loop {
        let now = sent.load(Ordering::SeqCst);
        if now == before {
            break;
        }
        before = now;
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    assert!(sent.load(Ordering::SeqCst) < REQUESTS, "the answers are somewhere in memory");
    let (mut text, mut buffer) = (Vec::new(), vec![0; 64 << 10]);
    let mut answers = 0;
    let whole = b"\"host\":\"evil.example\"}";
    while answers < REQUESTS {
        let count = within_timeout(reading.read(&mut buffer)).await.unwrap();
        assert!(count > 0, "cut off after {answers}");
        text.extend_from_slice(&buffer[..count]);
        while let Some(at) = text.windows(whole.len()).position(|bytes| bytes == whole) {
            assert!(text.starts_with(b"HTTP/1.1 403 Forbidden\r\n"));
            text.drain(..at + whole.len());
            answers += 1;
        }
    }
    assert!(text.is_empty());
    drop(sender.await.unwrap());
}

#[tokio::test]
async fn a_client_that_never_takes_its_answers_is_cut_off() {
    let served = Served::with(|config| config.header_time = Duration::from_millis(300)).await;
    let mut raw = served.raw().await;
    let request = write_to("r", "").replace("host: localhost", "host: evil.example").repeat(100);
    // Until the server takes no more, and then resets the connection.
    while raw.send(request.as_bytes()).await.is_ok() {}
    assert_eq!(served.get("/healthz").await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_whose_refused_requests_never_end_hold_up_nobody() {
    let served = Served::start().await;
    let loops = std::thread::available_parallelism().map_or(1, usize::from).min(8);
    // Refusals need no store, so nothing but the loop itself ends its work for such a client.
    let request = write_to("r", "").replace("host: localhost", "host: evil.example");
    let requests: Arc<str> = request.repeat(4_000).into();
    let mut hostile = Vec::new();
    let taken = Arc::new(AtomicUsize::new(0));
    for _ in 0..2 * loops {
        // Threads, so that there is always something to read, and space for answers.
        let mut reading = std::net::TcpStream::connect(served.address).unwrap();
        let mut writing = reading.try_clone().unwrap();
        let (requests, taken) = (requests.clone(), taken.clone());
        hostile.push(std::thread::spawn(move || while writing.write_all(requests.as_bytes()).is_ok() {}));
        hostile.push(std::thread::spawn(move || {
            let mut buffer = vec![0; 256 << 10];
            while matches!(reading.read(&mut buffer), Ok(1..)) {
                taken.fetch_add(1, Ordering::SeqCst);
            }
        }));
    }
    within_timeout(async {
        while taken.load(Ordering::SeqCst) < 8 * loops {
            tokio::task::yield_now().await;
        }
    })
    .await;
    // A writer and a reader of any loop are served all the same.
    for number in 1..=2 * loops as u64 {
        let mut raw = served.raw().await;
        raw.send(write_to("r", &delta("a")).as_bytes()).await.unwrap();
        assert_eq!(raw.answer().await.unwrap().written(1, 0)["last_seq"], number);
    }
    let mut reader = ChunkedReader::attach(&served, "/v1/runs/r/events?after=end&dialect=text").await;
    served.post("/v1/runs/r/events", &delta("to everyone")).await.written(1, 0);
    while !reader.text.contains("to everyone") {
        assert!(reader.take(1 << 10).await > 0);
        reader.unchunk();
    }
    // And the server stops.
    served.stopped().await;
    hostile.into_iter().for_each(|thread| thread.join().unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn complete_frames_of_a_body_that_trickles_in_are_written() {
    let served = Served::start().await;
    let (first, second) = (delta("a"), delta(&"x".repeat(60_000)));
    let head = write_to("r", "").replace("length: 0", &format!("length: {}", first.len() + second.len()));
    let mut stream = std::net::TcpStream::connect(served.address).unwrap();
    stream.set_nodelay(true).unwrap();
    stream.write_all((head + &first).as_bytes()).unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = stop.clone();
    let trickle = std::thread::spawn(move || {
        let mut at = 0;
        // Pieces that come sooner than a body counts as late.
        while !stopped.load(Ordering::SeqCst) && at < second.len() - 1 {
            stream.write_all(&second.as_bytes()[at..=at]).unwrap();
            at += 1;
            std::thread::sleep(Duration::from_micros(300));
        }
        stream.write_all(&second.as_bytes()[at..]).unwrap();
        let mut answer = [0; 1 << 10];
        let count = stream.read(&mut answer).unwrap();
        String::from_utf8_lossy(&answer[..count]).into_owned()
    });
    served.until_records("r", 1).await;
    assert!(!trickle.is_finished(), "the rest was there already");
    stop.store(true, Ordering::SeqCst);
    let answer = within_timeout(tokio::task::spawn_blocking(|| trickle.join().unwrap())).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("\"accepted\":2"), "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_resets_no_connection_whose_last_answer_is_on_its_way() {
    let mut served = Served::start().await;
    let (mut reading, mut writing) = TcpStream::connect(served.address).await.unwrap().into_split();
    let requests: String = (0..8_000).map(|number| write_to("r", &delta(&number.to_string()))).collect();
    let sender = tokio::spawn(async move {
        // The server stops reading at some time, and the client sees that here.
        let _ = writing.write_all(requests.as_bytes()).await;
        writing
    });
    let (mut text, mut buffer) = (Vec::new(), vec![0; 64 << 10]);
    loop {
        let count = within_timeout(reading.read(&mut buffer)).await.expect("the connection was reset");
        if count == 0 {
            break;
        }
        served.begin_to_stop();
        text.extend_from_slice(&buffer[..count]);
    }
    let text = String::from_utf8(text).unwrap();
    let (answers, last) = (text.matches("HTTP/1.1 200").count(), text.rfind("HTTP/1.1 200").unwrap());
    assert!(text[last..].contains("connection: close"), "{}", &text[last..]);
    drop(sender.await.unwrap());
    let served = served.restarted().await;
    assert_eq!(served.get("/v1/runs/r").await.json()["counts"]["records"], answers);
}

#[tokio::test]
async fn a_loop_that_fails_ends_the_server_with_an_error() {
    let (served, log) = Served::through(FlakyLog::new, |_| {}).await;
    let mut raw = served.raw().await;
    raw.send(write_to("r", &delta("a")).as_bytes()).await.unwrap();
    raw.answer().await.unwrap().written(1, 0);
    log.panic_at_batches();
    raw.send(write_to("r", &delta("a")).as_bytes()).await.unwrap();
    assert!(raw.answer().await.is_none(), "nothing was acknowledged");
    let error = served.ended().await.unwrap_err();
    assert!(error.to_string().contains("socket loop"), "{error}");
}

#[tokio::test]
async fn a_malformed_head_is_refused_at_once() {
    // Nobody waits for a timeout here.
    let served = Served::with(|config| config.header_time = Duration::from_secs(3600)).await;
    for head in [
        "POST /v1/runs/r/events HTTP/1.1\r\nbad header\r\n\r\n",
        "POST /v1/runs/r/events HTTP/1.1\r\nhost: localhost\r\nbad name: x\r\n\r\n",
        "POST /v1/runs/r/events HTTP/1.1\r\nhost: localhost\r\ncontent-length: x\r\n\r\n",
        "POST /v1/runs/r/events HTTP/9.9\r\n\r\n",
        "POST /v1/runs/r/\0events HTTP/1.1\r\n\r\n",
        // What follows cannot make these good again.
        "POST /v1/runs/r/events HTTP/1.1\r\nbad header\r\n",
        "POST /v1/runs/r/events HTTP/9.9\r\n",
        "GET /v1/runs/r/events HTTP/9.9\r\n",
        "GET /v1/runs/r/events HTTP/1.1\r\nhost: localhost\r\nbad header\r\n",
    ] {
        let mut raw = served.raw().await;
        raw.send(head.as_bytes()).await.unwrap();
        let answer = raw.answer().await.unwrap_or_else(|| panic!("closed without an answer: {head:?}"));
        assert_eq!(answer.status, 400, "{head:?}");
        assert!(raw.answer().await.is_none());
    }
    // Also after a good one, and in pieces.
    let mut raw = served.raw().await;
    raw.send((write_to("r", &delta("a")) + "POST /v1/runs/r/events HTT").as_bytes()).await.unwrap();
    raw.answer().await.unwrap().written(1, 0);
    raw.send(b"P/1.1\r\nbad header\r\n").await.unwrap();
    assert_eq!(raw.answer().await.unwrap().status, 400);
}

#[tokio::test]
async fn appends_that_find_no_space_are_written_all_the_same() {
    // This log takes no batches, as one whose queue is full.
    let (served, _log) = Served::through(FlakyLog::new, |_| {}).await;
    let mut raws = Vec::new();
    for _ in 0..20 {
        raws.push(served.raw().await);
    }
    for round in 1..=10 {
        for (number, raw) in raws.iter_mut().enumerate() {
            raw.send(write_to(&format!("r{number}"), &delta("a")).as_bytes()).await.unwrap();
        }
        for raw in &mut raws {
            assert_eq!(raw.answer().await.unwrap().written(1, 0)["last_seq"], round);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_ends_streams_with_a_retry_and_every_answer_is_true() {
    const WRITERS: usize = 16;
    let mut served = Served::start().await;
    served.post("/v1/runs/r/events", &delta("a")).await.written(1, 0);
    let mut readers = Vec::new();
    for _ in 0..50 {
        readers.push(ChunkedReader::attach(&served, "/v1/runs/r/events?after=1").await);
    }
    until_figure(&served, "runwire_socket_loop_connections{role=\"reader\"} 50").await;
    let (written, mut enough) = watch::channel(0);
    let written = Arc::new(written);
    let mut writers = JoinSet::new();
    for number in 0..WRITERS {
        let (mut raw, written): (Raw, _) = (served.raw().await, written.clone());
        writers.spawn(async move {
            let run = format!("w{number}");
            let (mut accepted, mut closing) = (0, false);
            while raw.send(write_to(&run, &delta("x")).as_bytes()).await.is_ok() {
                // A connection that was closed while a request was on its way has acknowledged nothing.
                let Some(answer) = raw.answer().await else { break };
                assert!(!closing, "nothing follows the last answer");
                closing = answer.headers.get("connection").is_some_and(|value| value == "close");
                if answer.status == 200 {
                    accepted += 1;
                    written.send_modify(|count| *count += 1);
                }
            }
            (run, accepted)
        });
    }
    enough.wait_for(|count| *count > 20 * WRITERS).await.unwrap();
    served.begin_to_stop();
    for reader in readers {
        let text = reader.rest().await;
        assert!(text.lines().any(|line| line.starts_with("retry: ")), "{text}");
    }
    let mut accepted = Vec::new();
    while let Some(done) = writers.join_next().await {
        accepted.push(done.unwrap());
    }
    let served = served.restarted().await;
    for (run, accepted) in accepted {
        let records =
            served.get(&format!("/v1/runs/{run}")).await.json()["counts"]["records"].as_u64().unwrap();
        // The last one may have been written without its answer.
        assert!(
            (accepted..=accepted + 1).contains(&records),
            "{run}: {accepted} acknowledged, {records} written"
        );
    }
}
