//! Every limit of the log, in one place; `docs/limits.md` names them.

use std::time::Duration;

/// Bytes of the newest records that are cached in memory for each thread that is being read.
pub const TAIL_BYTES: usize = 256 << 10;
/// Bytes of the newest records of all such threads; beyond it those that have rested longest are read from the store.
pub const TAILS_BYTES: usize = 64 << 20;
/// Producers that one run, or one thread written as a whole, may have.
pub const PRODUCERS: usize = 256;
/// Producers that one tenant may have whose frames name their threads.
pub const TENANT_PRODUCERS: usize = 4096;
/// Milliseconds of silence after which such a producer may be forgotten for a new one: a week.
pub const TENANT_PRODUCER_MILLIS: u64 = 7 * 24 * 60 * 60 * 1000;
/// Bytes of the id of a thread or a run that a producer's frame names.
pub const ID_BYTES: usize = 256;
/// Runs that may be open at once in one thread that was created with `parallel: true`.
pub const OPEN_RUNS_OF_THREAD: usize = 256;
/// Commands that are committed together.
pub const COMMIT_REQUESTS: usize = 1024;
/// Bytes of frames that are committed together; the append that passes it is the last.
pub const COMMIT_BYTES: usize = 8 << 20;
/// Bytes of an append up to which its records share its buffer; of a larger one each keeps a copy of its frame.
pub const SHARED_BATCH_BYTES: usize = 64 << 10;
/// Bytes of records that one read returns; the record that passes it is the last.
pub const PAGE_BYTES: usize = 256 << 10;
/// Writers of a node on Postgres, each with a connection; a node with fewer cores has as many as it has cores.
pub const WRITERS: usize = 4;
/// Runs whose writer a node on Postgres remembers at least.
pub const ASSIGNED_RUNS: usize = 8192;
/// Commands that may be queued for a writer.
pub const WRITER_QUEUE: usize = 4096;
/// Bytes of frames that may be queued for the writers of a server; beyond it a command waits, and is refused in time.
pub const WRITER_QUEUE_BYTES: usize = 256 << 20;
/// Runs and threads whose state a writer caches.
pub const CACHED_HEADS: usize = 4096;
/// Bytes of texts and arguments that were gathered of the open runs of a writer, so that their records are read once.
pub const CACHED_LOOKUP_BYTES: usize = 64 << 20;
/// Bytes of records of parallel runs that are held while a thread is folded; what is beyond is read again.
pub const HELD_BYTES: usize = 16 << 20;
/// Rows that are removed in one commit when a thread is deleted or trimmed.
pub const PURGE_ROWS: usize = 256;
/// Seconds without a write or a heartbeat after which a run counts as lost.
pub const LEASE_SECONDS: u64 = 60;
/// Seconds that a producer has to end a run after a cancel request.
pub const CANCEL_SECONDS: u64 = 30;
/// Checkpoints that wait until a store has time for them.
pub const WAITING_CHECKPOINTS: usize = 512;
/// Bytes of those checkpoints; one that is larger by itself is not stored.
pub const WAITING_CHECKPOINT_BYTES: usize = 4 << 20;
/// Milliseconds without a command after which the embedded store writes what waits; Postgres gets it after as long.
pub const CHECKPOINT_IDLE_MILLIS: u64 = 1000;
/// Milliseconds after which an interaction without an expiry of its own expires: a week.
pub const INTERACTION_MILLIS: u64 = 7 * 24 * 60 * 60 * 1000;
/// Bytes of an interaction's title, or of a user's message, that lists show.
pub const TITLE_BYTES: usize = 512;
/// Different warnings of one run that are kept; further ones are counted.
pub const WARNINGS: usize = 8;
/// Bytes of a warning's message, hint or field that are kept.
pub const WARNING_BYTES: usize = 256;
/// Bytes of an error's details that are returned with its run; longer ones are in its record alone.
pub const ERROR_DETAILS_BYTES: usize = 32 << 10;
/// Bytes of interactions that one page of the inbox returns; the interaction that passes it is the last.
pub const INBOX_BYTES: usize = 4 << 20;
/// Milliseconds of the lease of an open run while its thread is being imported: a day.
pub const IMPORT_MILLIS: u64 = 24 * 60 * 60 * 1000;
/// Bytes of records that one Redis entry carries; of larger ones it carries only the range of `seq`.
pub const REDIS_BODY_BYTES: usize = 64 << 10;
/// Approximate `MAXLEN` of a thread's Redis stream.
pub const REDIS_STREAM_LENGTH: usize = 64;
/// Seconds after the last entry when a thread's Redis stream expires.
pub const REDIS_STREAM_SECONDS: u64 = 60;
/// Entries that may be queued for Redis; further ones are dropped.
pub const REDIS_QUEUE: usize = 8192;
/// Bytes that may be queued for Redis, and as many received from it; larger entries lose their body.
pub const REDIS_QUEUE_BYTES: usize = 32 << 20;
/// Entries that are published to Redis in one pipeline.
pub const REDIS_BATCH: usize = 256;
/// Bytes of records that are published to Redis in one pipeline; the entry that passes it is the last.
pub const REDIS_BATCH_BYTES: usize = 1 << 20;
/// Entries received from Redis that may be queued; further ones are missed.
pub const REDIS_RECEIVED: usize = 16384;
/// Threads that are subscribed to, or unsubscribed from, in one Redis command.
pub const REDIS_SUBSCRIBE: usize = 512;
/// Threads whose missed entries are read from Redis at once, and entries of each.
pub const REDIS_CATCH_UP: usize = 16;
/// Timeout for connecting to Redis, and for its answer to a command, in milliseconds.
pub const REDIS_ANSWER_MILLIS: u64 = 2000;
/// Milliseconds between two health checks of a Redis connection.
pub const REDIS_PING_MILLIS: u64 = 1000;
/// Upper bound of the backoff between two attempts to connect to Redis, in milliseconds.
pub const REDIS_RETRY_MILLIS: u64 = 2000;
/// Timeout for connecting to Postgres, in milliseconds.
pub const STORE_CONNECT_MILLIS: u64 = 5_000;
/// Timeout for an answer of Postgres, in milliseconds; then the connection is dropped.
pub const STORE_ANSWER_MILLIS: u64 = 10_000;
/// `statement_timeout` of sessions in Postgres, in milliseconds.
pub const STORE_STATEMENT_MILLIS: u64 = 9_000;
/// `lock_timeout` of sessions in Postgres, in milliseconds: how long a thread may be locked by another node.
pub const STORE_LOCK_MILLIS: u64 = 3_000;
/// `idle_in_transaction_session_timeout` of sessions in Postgres, in milliseconds.
pub const STORE_IDLE_TRANSACTION_MILLIS: u64 = 5_000;
/// Milliseconds for which a command is retried while Postgres is unavailable or other nodes win.
pub const STORE_REQUEST_MILLIS: u64 = 10_000;
/// Milliseconds for which a node tries to find out the outcome of a commit whose answer was lost.
pub const STORE_OUTCOME_MILLIS: u64 = 15_000;
/// Upper bound of the backoff between two attempts to commit to Postgres, in milliseconds.
pub const STORE_RETRY_MILLIS: u64 = 250;
/// Milliseconds between two polls of the heads of followed threads while Redis is up.
pub const POLL_MILLIS: u64 = 1000;
/// The same while Redis is down or not configured, and after it has missed an entry.
pub const POLL_WITHOUT_REDIS_MILLIS: u64 = 50;
/// Milliseconds that missing records have to arrive from Redis, before they are read from the store.
pub const REORDER_MILLIS: u64 = 10;
/// Threads that one poll looks up by name.
pub const POLL_NAMES: usize = 512;
/// Threads whose missing records one poll reads.
pub const POLL_THREADS: usize = 64;
/// Commits of a thread whose missing records one poll reads; of more, readers read the store themselves.
pub const POLL_COMMITS: usize = 256;
/// Upper bound of the backoff between two polls while the store is unavailable, in milliseconds.
pub const POLL_RETRY_MILLIS: u64 = 1000;
/// Milliseconds without a heartbeat after which a node counts as gone.
pub const NODE_TIMEOUT_MILLIS: u64 = 10_000;
/// Timeout for moving all leases after an outage of the store, in seconds.
pub const LEASE_SHIFT_SECONDS: u64 = 300;
/// Milliseconds after which gone nodes, and outbox messages of unknown subscribers, are removed: a day.
pub const STALE_AFTER_MILLIS: u64 = 24 * 60 * 60 * 1000;
/// Seconds between two searches for what is stale.
pub const STALE_CHECK_SECONDS: u64 = 60;
/// Runs that one step of retention looks at, and runs of one thread.
pub const TRIM_RUNS: usize = 256;

/// First retry delay during an outage of the store; doubles with each retry.
pub const OUTAGE_FIRST_RETRY_TIME: Duration = Duration::from_millis(50);
/// Maximum of that delay.
pub const OUTAGE_RETRY_TIME: Duration = Duration::from_secs(1);
