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
/// Bytes of the body of a request of AG-UI, which carries the whole conversation.
pub const CONVERSATION_BYTES: usize = 8 << 20;
/// Bytes of `message`, and of `input`, of a new run: each goes into its first record.
pub const INPUT_BYTES: usize = 1 << 20;
/// Bytes of a `reason`.
pub const REASON_BYTES: usize = 4 << 10;

/// Bytes of frames that one append takes; the frame that passes it is the last.
pub const BATCH_BYTES: usize = 256 << 10;
/// Frames that one append takes.
pub const BATCH_FRAMES: usize = 1024;
/// Threads that a body whose frames name theirs keeps alive, and is told of: those that were written to last.
pub const THREADS_OF_BODY: usize = 1024;
/// Bytes of one line of a thread that is imported: a record with its frame and what it means.
pub const RECORD_LINE_BYTES: usize = 32 << 20;
/// Bytes of lines that are imported at once; the line that passes it is the last.
pub const IMPORT_BYTES: usize = 1 << 20;
/// Lines that are imported at once.
pub const IMPORT_LINES: usize = 4096;
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
/// Time after which something is tried again that the store could not do; each further time is twice as long.
pub const OUTAGE_FIRST_RETRY_TIME: Duration = Duration::from_millis(50);
/// Longest time between two such tries.
pub const OUTAGE_RETRY_TIME: Duration = Duration::from_secs(1);
/// Time for which the frames of an open body or a WebSocket are tried again, on top of what the store does itself.
pub const OUTAGE_TIME: Duration = Duration::from_secs(10);
/// How long the store may take to tell its figures, before `/metrics` is answered without them.
pub const FIGURES_TIME: Duration = Duration::from_secs(3);
/// Time between two sweeps for runs whose lease ran out.
pub const SWEEP_TIME: Duration = Duration::from_secs(1);
/// Runs of servers that are gone that are taken up with one sweep.
pub const TAKE_UP_RUNS: usize = 256;
/// Time that those may take before a server that starts lets anyone in.
pub const RECOVERY_TIME: Duration = Duration::from_secs(5);
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
/// Bytes of the `id` of a WebSocket message, as JSON.
pub const MESSAGE_ID_BYTES: usize = 256;
/// Messages that wait to be sent on one WebSocket; subscriptions wait while it is full.
pub const SOCKET_QUEUE: usize = 32;
/// Time that the answer to a ping on a WebSocket waits for the leases to be renewed.
pub const RENEWAL_TIME: Duration = Duration::from_secs(1);
/// Subscriptions of one WebSocket, and runs whose leases its pings renew.
pub const SUBSCRIPTIONS: usize = 64;

/// Bytes of the values of an answer, and of the schema that they are checked with.
pub const ANSWER_BYTES: usize = 256 << 10;
/// Wrong fields of an answer that are told at once.
pub const ANSWER_ERRORS: usize = 100;
/// Choices of a field that are told to who has chosen none of them.
pub const CHOICES_TOLD: usize = 10;
/// Objects in a question's schema.
pub const SCHEMA_NODES: usize = 5_000;
/// Patterns in a question's schema.
pub const SCHEMA_PATTERNS: usize = 100;
/// Steps that checking an answer may take: parts of the schema, each as often as it applies.
pub const SCHEMA_STEPS: usize = 100_000;
/// Steps into a schema, references included, that checking an answer may take at once.
pub const SCHEMA_DEPTH: usize = 512;
/// Steps back that matching a pattern may take.
pub const PATTERN_STEPS: usize = 10_000;
/// Bytes of a compiled pattern.
pub const PATTERN_BYTES: usize = 1 << 20;
/// Bytes of all compiled patterns of a question's schema.
pub const PATTERNS_BYTES: usize = 4 << 20;
/// Compiled bytes × bytes of text, summed over all patterns that checking an answer matches.
pub const PATTERN_WORK: u64 = 4_000_000_000;
/// Answers that are checked at once; others wait.
pub const CHECKS: usize = 4;
/// Time that checking an answer may take.
pub const CHECK_TIME: Duration = Duration::from_secs(5);
/// Bytes of the stack that checks run on: schemas may refer to each other many times over.
pub const CHECK_STACK_BYTES: usize = 64 << 20;

/// Runs of agents that are under way at once; others wait, pending.
pub const AGENTS_AT_ONCE: usize = 256;
/// Runs of agents that may be open at once: under way, waiting to begin, or waiting for a person.
pub const AGENTS_OPEN: usize = 4096;
/// Most of either that a configuration may allow.
pub const AGENTS_MOST: usize = 100_000;
/// Bytes of an agent's output that are read at once.
pub const AGENT_PIECE_BYTES: usize = 64 << 10;
/// Frames of one agent's run that cannot be read, each of which is kept as `foreign`; one more fails the run.
pub const AGENT_STRAYS: usize = 1000;
/// Last lines of a program's standard error that the failure of its run tells.
pub const STDERR_LINES: usize = 20;
/// Bytes of each of those lines.
pub const STDERR_LINE_BYTES: usize = 1 << 10;
/// Lines of a program's standard error that go to the log in a second; how many more there were is told.
pub const STDERR_LOGGED_LINES: u64 = 100;
/// Bytes of a message that a program finds in its environment; a longer one is on its standard input only.
pub const MESSAGE_VARIABLE_BYTES: usize = 64 << 10;
/// Time that a program has to read that it is cancelled before SIGTERM says so.
pub const AGENT_READING_TIME: Duration = Duration::from_secs(1);
/// Time that an agent has to end after it was asked to, before it is killed or cut off.
pub const AGENT_GRACE_TIME: Duration = Duration::from_secs(10);
/// Time that the output of an ended program may be silent while something that it started holds it open.
pub const AGENT_LINGER_TIME: Duration = Duration::from_secs(1);
/// Time in which a connection to an HTTP agent must be made.
pub const AGENT_CONNECT_TIME: Duration = Duration::from_secs(10);
/// Time in which an HTTP agent's answer must begin.
pub const AGENT_ANSWER_TIME: Duration = Duration::from_secs(120);
/// Time that an HTTP agent's stream may be silent.
pub const AGENT_SILENCE_TIME: Duration = Duration::from_secs(300);
/// Requests that are made of an HTTP agent that cannot be reached, or says that it is busy.
pub const AGENT_TRIES: u32 = 3;
/// Longest time between two of those.
pub const AGENT_RETRY_TIME: Duration = Duration::from_secs(10);
/// Bytes of an HTTP agent's refusal that are read to find out what it says.
pub const AGENT_REFUSAL_BYTES: usize = 16 << 10;
/// Characters of a refusal that the failure of its run tells.
pub const AGENT_REFUSAL_TOLD: usize = 300;

/// Messages that are on their way to one webhook at once; others wait in the log.
pub const WEBHOOK_AT_ONCE: usize = 8;
/// Time in which a webhook must answer.
pub const WEBHOOK_TIME: Duration = Duration::from_secs(15);
/// Bytes of the head of a webhook's answer; its body is not read.
pub const WEBHOOK_HEAD_BYTES: usize = 64 << 10;
/// Attempts to tell a webhook something; they take about a day.
pub const WEBHOOK_ATTEMPTS: u32 = 14;
/// Time between the first two of those; each further one waits three times as long.
pub const WEBHOOK_RETRY_TIME: Duration = Duration::from_secs(5);
/// Longest time between two of those.
pub const WEBHOOK_LONGEST_RETRY_TIME: Duration = Duration::from_secs(14_400);
