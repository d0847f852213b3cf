//! Every limit of the server, in one place; `docs/limits.md` names them.

use std::time::Duration;

/// Connections that may be open at once; further ones wait to be accepted.
pub const CONNECTIONS: usize = 50_000;
/// Connections that may wait to be accepted.
pub const BACKLOG: i32 = 4096;
/// Time that a client has to send the head of a request, and that most connections may be idle between two.
pub const HEADER_TIME: Duration = Duration::from_secs(10);
/// Header fields of one request.
pub const HEADERS: usize = 100;
/// Bytes of the head of one HTTP/1 request, and of what is read from a connection at once.
pub const HEAD_BYTES: usize = 32 << 10;
/// Bytes of the first request of a connection that may ask for a stream without the cost of an HTTP connection.
pub const PEEKED_BYTES: usize = 4 << 10;
/// Bytes of a request to write, head and body, that does without the cost of an HTTP connection.
pub const WHOLE_REQUEST_BYTES: usize = 64 << 10;
/// Time that the body of such a request may take after its head.
pub const LATE_BODY_TIME: Duration = Duration::from_millis(20);
/// Time that a connection may be idle that has done nothing but write such requests.
pub const IDLE_TIME: Duration = Duration::from_secs(75);
/// Bytes of the header list of one HTTP/2 request.
pub const HEADER_LIST_BYTES: u32 = 16 << 10;
/// Requests that one HTTP/2 connection may have open at once.
pub const STREAMS_OF_CONNECTION: u32 = 256;
/// Bytes that may be on their way in one HTTP/2 request.
pub const STREAM_WINDOW_BYTES: u32 = 256 << 10;
/// Bytes that may be on their way in all requests of one HTTP/2 connection.
pub const CONNECTION_WINDOW_BYTES: u32 = 1 << 20;
/// Time after which a silent peer is asked whether it is still there.
pub const PROBE_TIME: Duration = Duration::from_secs(30);
/// Time that connections have to finish when the server stops.
pub const GRACE_TIME: Duration = Duration::from_secs(10);

/// Bytes of an id in a path, a query or a body, after percent-decoding.
pub const ID_BYTES: usize = 256;
/// Bytes of a `Producer-Id`.
pub const PRODUCER_BYTES: usize = 256;
/// Bytes of a JSON body that is no stream of frames.
pub const JSON_BODY_BYTES: usize = 2 << 20;
/// Bytes of `message`, and of `input`, of a new run: each goes into its first record.
pub const INPUT_BYTES: usize = 1 << 20;
/// Bytes of a `reason`.
pub const REASON_BYTES: usize = 4 << 10;

/// Bytes of frames that one append takes; the frame that passes it is the last.
pub const BATCH_BYTES: usize = 256 << 10;
/// Frames that one append takes.
pub const BATCH_FRAMES: usize = 1024;
/// Frames that wait for one that tells the dialect.
pub const UNDECIDED_FRAMES: usize = 16;
/// Bytes of the frames that wait for one that tells the dialect.
pub const UNDECIDED_BYTES: usize = BATCH_BYTES;
/// Bytes that are looked at to tell the framing of a body without a content type.
pub const SNIFFED_BYTES: usize = 4 << 10;
/// Time without a frame or a sign of life after which an open body is checked.
pub const BODY_IDLE_TIME: Duration = Duration::from_secs(60);
/// Time between two renewals of a lease by blank lines or comments of one body.
pub const BEAT_TIME: Duration = Duration::from_secs(5);
/// Bytes that are read and dropped after an answer that came before the end of a body.
pub const LINGER_BYTES: usize = 8 << 20;
/// Time for which bytes are read and dropped after such an answer.
pub const LINGER_TIME: Duration = Duration::from_secs(2);
/// Time without bytes after which a client counts as having heard such an answer.
pub const LINGER_QUIET_TIME: Duration = Duration::from_millis(500);

/// Bytes that the kernel takes for a connection before it can send them, where it can be told.
pub const UNSENT_BYTES: u32 = 128 << 10;
/// Time between two signs of life on an idle stream.
pub const KEEP_ALIVE_TIME: Duration = Duration::from_secs(15);
/// Bytes of the newest frames that are kept in memory for each view that is being read.
pub const FEED_BYTES: usize = 256 << 10;
/// Records after which the state of an encoder is kept, so that resuming late walks no further back.
pub const CHECKPOINT_RECORDS: u64 = 512;
/// Translations that go on at once: each may occupy a thread while it waits for the store.
pub const TRANSLATIONS: usize = 64;
/// Runs or threads of one page of a list.
pub const LIST_ITEMS: usize = 200;
/// Runs or threads of a page where the request does not say.
pub const LIST_ITEMS_DEFAULT: usize = 50;
/// Runs whose messages one request folds.
pub const FOLDED_RUNS: usize = 100;
/// Bytes of calls, data and questions that one request folds into messages; texts have a limit of their own.
pub const FOLDED_BYTES: usize = 64 << 20;
/// Time between two sweeps for runs whose lease ran out.
pub const SWEEP_TIME: Duration = Duration::from_secs(1);
/// Time between two removals of what retention does not keep.
pub const TRIM_TIME: Duration = Duration::from_secs(60);

/// Frames of one JSON page.
pub const PAGE_FRAMES: usize = 1000;
/// Frames of a page where the request does not say.
pub const PAGE_FRAMES_DEFAULT: usize = 100;
/// Bytes of one JSON page; the frames that pass it are the last.
pub const PAGE_BYTES: usize = 4 << 20;
/// Shortest and longest time, in milliseconds, after which readers come back when the server stops.
pub const RETRY_MILLIS: std::ops::Range<u64> = 500..5000;
/// Bytes of one WebSocket message.
pub const MESSAGE_BYTES: usize = 4 << 20;
/// Messages that wait to be sent on one WebSocket; subscriptions wait while it is full.
pub const SOCKET_QUEUE: usize = 32;
/// Subscriptions of one WebSocket, and runs whose leases its pings renew.
pub const SUBSCRIPTIONS: usize = 64;
