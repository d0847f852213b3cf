//! All limits of the server; `docs/limits.md` lists them.

use std::time::Duration;

/// Connections that may be open at once; further ones wait to be accepted.
pub const CONNECTIONS: usize = 50_000;
/// Connections that may wait to be accepted.
pub const BACKLOG: i32 = 4096;
/// Timeout for the head of a request, and idle timeout of most connections between two requests.
pub const HEADER_TIME: Duration = Duration::from_secs(10);
/// Header fields of one request.
pub const HEADERS: usize = 100;
/// Bytes of the head of one HTTP/1 request, and of one read from a connection.
pub const HEAD_BYTES: usize = 32 << 10;
/// Streams that are opened at once; others wait, with their requests in the kernel.
pub const OPENING_STREAMS: usize = 16;
/// Time that a stream waits to be opened while that many others are.
pub const OPENING_TIME: Duration = Duration::from_secs(1);
/// Bytes of the first request of a connection that can be served as a stream without hyper.
pub const PEEKED_BYTES: usize = 4 << 10;
/// Bytes of a write request, head and body, that can be served without hyper.
pub const WHOLE_REQUEST_BYTES: usize = 64 << 10;
/// Timeout for the body of such a request after its head.
pub const LATE_BODY_TIME: Duration = Duration::from_millis(20);
/// Idle timeout of a connection that only sends such requests.
pub const IDLE_TIME: Duration = Duration::from_secs(75);
/// Socket loops, if there are as many cores.
pub const SOCKET_LOOPS: usize = 8;
/// Steps (reads, requests, answers) that a socket loop takes for one writer before it looks at the others.
pub const WRITER_STEPS: usize = 64;
/// Appends that a socket loop submits to the log at once.
pub const SUBMITTED_APPENDS: usize = 256;
/// Readers that a socket loop writes to before it looks for requests and replies.
pub const PUMPED_SOCKETS: usize = 32;
/// Segments of a feed that a socket loop writes to a reader at once.
pub const PUMPED_SEGMENTS: usize = 32;
/// Duration of a pass through the readers of a feed after which the feed rests: the poller's time has milliseconds.
pub const LONG_PASS_TIME: Duration = Duration::from_micros(250);
/// Multiple of the duration of a pass that its feed rests.
pub const REST_PASSES: u32 = 2;
/// Maximum of that time.
pub const REST_TIME: Duration = Duration::from_millis(4);
/// Bytes of the header list of one HTTP/2 request.
pub const HEADER_LIST_BYTES: u32 = 16 << 10;
/// Requests that one HTTP/2 connection may have open at once.
pub const CONNECTION_STREAMS: u32 = 256;
/// Flow-control window of one HTTP/2 request.
pub const STREAM_WINDOW_BYTES: u32 = 256 << 10;
/// Flow-control window of all requests of one HTTP/2 connection.
pub const CONNECTION_WINDOW_BYTES: u32 = 1 << 20;
/// Time after which an idle peer is probed.
pub const PROBE_TIME: Duration = Duration::from_secs(30);
/// Grace period of connections when the server stops.
pub const GRACE_TIME: Duration = Duration::from_secs(10);

/// Bytes of an id in a path, a query or a body, after percent-decoding.
pub const ID_BYTES: usize = 256;
/// Bytes of a `Producer-Id`.
pub const PRODUCER_BYTES: usize = 256;
/// Bytes of a JSON body that is not a stream of frames.
pub const JSON_BODY_BYTES: usize = 2 << 20;
/// Bytes of the body of an AG-UI request, which contains the whole conversation.
pub const CONVERSATION_BYTES: usize = 8 << 20;
/// Bytes of `message`, and of `input`, of a new run: each is stored in its first record.
pub const INPUT_BYTES: usize = 1 << 20;
/// Bytes of a `reason`.
pub const REASON_BYTES: usize = 4 << 10;

/// Threads of a body whose frames name their threads: the most recent ones get heartbeats and are in the response.
pub const BODY_THREADS: usize = 1024;
/// Bytes of one line of an import: a record with its frame and its events.
pub const RECORD_LINE_BYTES: usize = 32 << 20;
/// Bytes of lines in one import batch; the line that exceeds it is the last.
pub const IMPORT_BYTES: usize = 1 << 20;
/// Lines in one import batch.
pub const IMPORT_LINES: usize = 4096;
/// Frames that wait for one that identifies the dialect.
pub const UNDECIDED_FRAMES: usize = 16;
/// Bytes of the frames that wait for one that identifies the dialect.
pub const UNDECIDED_BYTES: usize = 256 << 10;
/// Bytes for detecting the framing of a body without a content type.
pub const SNIFFED_BYTES: usize = 4 << 10;
/// Time without a frame or a heartbeat after which an open body is checked.
pub const BODY_IDLE_TIME: Duration = Duration::from_secs(60);
/// Minimum time between two lease renewals by blank lines or comments of one body.
pub const HEARTBEAT_TIME: Duration = Duration::from_secs(5);
/// Runs whose leases one commit renews.
pub const RENEWED_RUNS: usize = 256;
/// Bytes that are drained after a response that was sent before the end of a body.
pub const DRAIN_BYTES: usize = 8 << 20;
/// Time for draining such a body.
pub const DRAIN_TIME: Duration = Duration::from_secs(2);
/// Idle time after which such a body counts as drained.
pub const DRAIN_IDLE_TIME: Duration = Duration::from_millis(500);

/// Bytes that are buffered for clients where the configuration says nothing, and the machine's memory is not known.
pub const MEMORY_BUDGET_BYTES: u64 = 1 << 30;
/// Bytes of a request's body that are buffered without a share of the memory budget.
pub const FREE_BYTES: usize = 64 << 10;
/// Time that a request waits for its share of the memory budget.
pub const BUDGET_TIME: Duration = Duration::from_secs(10);
/// Bytes that a reader who catches up takes of the memory budget to read and encode a page.
pub const CATCH_UP_BYTES: usize = 1 << 20;
/// Concurrent encodings of readers that catch up; those of feeds have permits of their own.
pub const CATCH_UP_ENCODINGS: usize = 32;
/// Bytes of the events that a snapshot of a run is made of; a longer run is replayed instead.
pub const SNAPSHOT_BYTES: usize = 16 << 20;
/// Time after which a client is cut off that takes none of the bytes that are sent to it, where the platform can tell.
pub const STALLED_TIME: Duration = Duration::from_secs(30);
/// Unsent bytes of a connection in the kernel's buffer, where the platform can limit them.
pub const UNSENT_BYTES: u32 = 128 << 10;
/// Time between two keep-alives on an idle stream.
pub const KEEP_ALIVE_TIME: Duration = Duration::from_secs(15);
/// Bytes of the newest frames that are kept in memory for each feed.
pub const FEED_BYTES: usize = 256 << 10;
/// Records between two checkpoints of an encoder, from which late readers resume.
pub const CHECKPOINT_RECORDS: u64 = 512;
/// Concurrent encodings: each may block a thread while it waits for the store.
pub const ENCODINGS: usize = 64;
/// Items in one page of a list.
pub const LIST_ITEMS: usize = 200;
/// Items in a page without `limit`.
pub const LIST_ITEMS_DEFAULT: usize = 50;
/// Runs that one request folds into messages.
pub const FOLDED_RUNS: usize = 100;
/// Bytes of calls, data and interactions that one request folds into messages; texts have a limit of their own.
pub const FOLDED_BYTES: usize = 64 << 20;
/// Time limit for retries of an open body's or a WebSocket's appends, beyond the store's own retries.
pub const OUTAGE_TIME: Duration = Duration::from_secs(10);
/// Timeout for the store's figures; then `/metrics` responds without them.
pub const FIGURES_TIME: Duration = Duration::from_secs(3);
/// Time between two sweeps for expired leases.
pub const SWEEP_TIME: Duration = Duration::from_secs(1);
/// Time between two applications of retention.
pub const TRIM_TIME: Duration = Duration::from_secs(60);

/// Frames in one JSON page.
pub const PAGE_FRAMES: usize = 1000;
/// Frames in a page without `limit`.
pub const PAGE_FRAMES_DEFAULT: usize = 100;
/// Bytes of one JSON page; the frame that exceeds it is the last.
pub const PAGE_BYTES: usize = 4 << 20;
/// Range of the random reconnect delay, in milliseconds, that readers get when the server stops.
pub const RETRY_MILLIS: std::ops::Range<u64> = 500..5000;
/// Bytes of one WebSocket message.
pub const MESSAGE_BYTES: usize = 4 << 20;
/// Bytes of the `id` of a WebSocket message, as JSON.
pub const MESSAGE_ID_BYTES: usize = 256;
/// Outgoing messages in the queue of one WebSocket; subscriptions wait while it is full.
pub const SOCKET_QUEUE: usize = 32;
/// Bytes of those messages; a larger one is queued alone.
pub const SOCKET_QUEUE_BYTES: usize = 256 << 10;
/// Time that the reply to a WebSocket ping waits for renewing leases.
pub const RENEWAL_TIME: Duration = Duration::from_secs(1);
/// Subscriptions of one WebSocket, and targets whose leases its pings renew.
pub const SUBSCRIPTIONS: usize = 64;

/// Bytes of the values of an answer, and of the schema that validates them.
pub const ANSWER_BYTES: usize = 256 << 10;
/// Violations that are listed for one answer.
pub const ANSWER_ERRORS: usize = 100;
/// Allowed values that are listed for a wrong choice.
pub const CHOICES_SHOWN: usize = 10;
/// Objects in an interaction's schema.
pub const SCHEMA_NODES: usize = 5_000;
/// Patterns in an interaction's schema.
pub const SCHEMA_PATTERNS: usize = 100;
/// Steps of validating an answer: subschemas, each as often as it applies.
pub const SCHEMA_STEPS: usize = 100_000;
/// Depth of validating an answer, references included.
pub const SCHEMA_DEPTH: usize = 512;
/// Backtracking steps of matching a pattern.
pub const PATTERN_STEPS: usize = 10_000;
/// Bytes of a compiled pattern.
pub const PATTERN_BYTES: usize = 1 << 20;
/// Bytes of all compiled patterns of an interaction's schema.
pub const PATTERNS_BYTES: usize = 4 << 20;
/// Compiled bytes × bytes of text, summed over all pattern matches of validating an answer.
pub const PATTERN_MATCH_STEPS: u64 = 4_000_000_000;
/// Concurrent answer checks; others wait.
pub const CHECKS: usize = 4;
/// Timeout for checking an answer.
pub const CHECK_TIME: Duration = Duration::from_secs(5);
/// Stack size of an answer check: schemas may be deeply recursive.
pub const CHECK_STACK_BYTES: usize = 64 << 20;

/// Concurrent deliveries to one webhook; others wait in the outbox.
pub const WEBHOOK_AT_ONCE: usize = 8;
/// Timeout of a delivery attempt.
pub const WEBHOOK_TIME: Duration = Duration::from_secs(15);
/// Bytes of the head of a webhook's response; its body is not read.
pub const WEBHOOK_HEAD_BYTES: usize = 64 << 10;
/// Delivery attempts of a message; they take about a day.
pub const WEBHOOK_ATTEMPTS: u32 = 14;
/// Delay between the first two attempts; triples with each further one.
pub const WEBHOOK_RETRY_TIME: Duration = Duration::from_secs(5);
/// Maximum delay between two attempts.
pub const WEBHOOK_MAX_RETRY_TIME: Duration = Duration::from_secs(14_400);
