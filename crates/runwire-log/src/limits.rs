//! Every limit of the log, in one place; `docs/limits.md` names them.

/// Bytes of the newest records that are kept in memory for each thread that is being read.
pub const TAIL_BYTES: usize = 256 << 10;
/// Producers that one run, or one thread written as a whole, may have.
pub const PRODUCERS: usize = 256;
/// Producers that one tenant may have whose frames name their threads.
pub const TENANT_PRODUCERS: usize = 4096;
/// Bytes of the id of a thread or a run that a producer's frame names.
pub const ID_BYTES: usize = 256;
/// Runs that may be open at once in one thread that was created with `parallel: true`.
pub const OPEN_RUNS_OF_THREAD: usize = 256;
/// Appends that are committed together.
pub const COMMIT_REQUESTS: usize = 1024;
/// Bytes of frames that are committed together; the append that passes it is the last.
pub const COMMIT_BYTES: usize = 8 << 20;
/// Bytes of records that one read hands out; the record that passes it is the last.
pub const PAGE_BYTES: usize = 256 << 10;
/// Writers of a node on Postgres, each with a connection; a node with fewer cores has as many as it has cores.
pub const WRITERS: usize = 4;
/// Runs whose writer a node on Postgres remembers at least.
pub const ASSIGNED_RUNS: usize = 8192;
/// Requests that may wait for a writer.
pub const WRITER_QUEUE: usize = 4096;
/// Bytes of frames that may wait for the writers of a node on Postgres.
pub const WRITER_QUEUE_BYTES: usize = 256 << 20;
/// Runs and threads whose state a writer keeps at hand.
pub const HEADS_AT_HAND: usize = 4096;
/// Rows that are removed in one commit when a thread is deleted or trimmed.
pub const PURGE_ROWS: usize = 256;
/// Seconds that a run may be silent before it counts as lost.
pub const LEASE_SECONDS: u64 = 60;
/// Seconds that a producer has to end a run that was asked to stop.
pub const CANCEL_SECONDS: u64 = 30;
/// Milliseconds that a question waits for its answer, where it does not say: a week.
pub const QUESTION_MILLIS: u64 = 7 * 24 * 60 * 60 * 1000;
/// Bytes of a question's title, or of what a person asked, that lists show.
pub const TITLE_BYTES: usize = 512;
/// Different warnings of one run that are kept; further ones are counted.
pub const WARNINGS: usize = 8;
/// Bytes of a warning's message, hint or field that are kept.
pub const WARNING_BYTES: usize = 256;
/// Bytes of a failure's details that are told with its run; longer ones are in its record alone.
pub const ERROR_DETAILS_BYTES: usize = 32 << 10;
/// Bytes of questions that one page of the inbox hands out; the question that passes it is the last.
pub const INBOX_BYTES: usize = 4 << 20;
/// Milliseconds that the open runs of a thread may be silent while it is being imported: a day.
pub const IMPORT_MILLIS: u64 = 24 * 60 * 60 * 1000;
/// Bytes of records that Redis carries in one entry; of larger ones it tells only where they lie.
pub const REDIS_BODY_BYTES: usize = 64 << 10;
/// Entries that Redis keeps of a thread, about.
pub const REDIS_KEPT: usize = 64;
/// Seconds after which Redis forgets a thread that nothing was written to.
pub const REDIS_KEPT_SECONDS: u64 = 60;
/// Entries that may wait to be sent to Redis; others are dropped.
pub const REDIS_QUEUE: usize = 8192;
/// Bytes that may wait to be sent to Redis, and as many that may wait to be taken from it; larger ones lose their body.
pub const REDIS_QUEUE_BYTES: usize = 32 << 20;
/// Entries that are sent to Redis at once.
pub const REDIS_BATCH: usize = 256;
/// Bytes of records that are sent to Redis at once; the entry that passes it is the last.
pub const REDIS_BATCH_BYTES: usize = 1 << 20;
/// Entries from Redis that may wait to be taken; others are missed.
pub const REDIS_ARRIVALS: usize = 16384;
/// Threads that Redis is asked to tell of at once.
pub const REDIS_SUBSCRIBE: usize = 512;
/// Threads whose missed entries are read from Redis at once, and entries of each.
pub const REDIS_CATCH_UP: usize = 16;
/// Milliseconds that Redis has for an answer, or to let a node in.
pub const REDIS_ANSWER_MILLIS: u64 = 2000;
/// Milliseconds between two looks whether Redis is still there.
pub const REDIS_LOOK_MILLIS: u64 = 1000;
/// Milliseconds between two tries to reach a Redis that is away, at most.
pub const REDIS_RETRY_MILLIS: u64 = 2000;
/// Milliseconds that Postgres has to let a node in.
pub const STORE_CONNECT_MILLIS: u64 = 5_000;
/// Milliseconds that Postgres has for an answer; then the connection is given up.
pub const STORE_ANSWER_MILLIS: u64 = 10_000;
/// Milliseconds after which Postgres gives up a statement by itself.
pub const STORE_STATEMENT_MILLIS: u64 = 9_000;
/// Milliseconds that a statement waits for a thread that another node is writing to.
pub const STORE_LOCK_MILLIS: u64 = 3_000;
/// Milliseconds after which Postgres takes back the transaction of a node that has fallen silent.
pub const STORE_SILENT_MILLIS: u64 = 5_000;
/// Milliseconds that a request is tried for while Postgres is away or other nodes are faster.
pub const STORE_PATIENCE_MILLIS: u64 = 10_000;
/// Milliseconds that a node waits to learn whether a commit happened whose answer was lost.
pub const STORE_DOUBT_MILLIS: u64 = 15_000;
/// Milliseconds between two tries to reach a Postgres that is away, at most.
pub const STORE_RETRY_MILLIS: u64 = 250;
/// Milliseconds between two looks at how far the threads are that a node follows, while Redis tells of them.
pub const HEADS_MILLIS: u64 = 1000;
/// The same, while Redis is away or there is none, and after it has failed to tell of something.
pub const HEADS_ALONE_MILLIS: u64 = 50;
/// Milliseconds that what is missing has to arrive from Redis, before it is read from the store.
pub const LATE_MILLIS: u64 = 10;
/// Threads that are looked for by name at once.
pub const LOOK_NAMES: usize = 512;
/// Threads whose missing records are read at once.
pub const LOOK_THREADS: usize = 64;
/// Commits of a thread whose records are read at once because they are missing; of more, readers read themselves.
pub const LOOK_COMMITS: usize = 256;
/// Milliseconds between two tries to look into a store that is away, at most.
pub const LOOK_RETRY_MILLIS: u64 = 1000;
/// Milliseconds after which a node that shows no sign of life counts as gone.
pub const NODE_MILLIS: u64 = 10_000;
/// Seconds that moving all leases may take, after a time in which no node could reach the store.
pub const MOVE_SECONDS: u64 = 300;
/// Milliseconds after which nodes that are gone, and what waits for subscribers that nobody knows, are forgotten: a day.
pub const FORGET_AFTER_MILLIS: u64 = 24 * 60 * 60 * 1000;
/// Seconds between two looks for what can be forgotten.
pub const FORGET_EVERY_SECONDS: u64 = 60;
/// Runs that retention looks at in one go, and runs of one thread.
pub const TRIM_RUNS: usize = 256;
