//! Every limit of the log, in one place; `docs/limits.md` names them.

/// Bytes of the newest records that are kept in memory for each thread that is being read.
pub const TAIL_BYTES: usize = 256 << 10;
/// Producers that one run, or one thread written as a whole, may have.
pub const PRODUCERS: usize = 256;
/// Runs that may be open at once in one thread that was created with `parallel: true`.
pub const OPEN_RUNS_OF_THREAD: usize = 256;
/// Appends that are committed together.
pub const COMMIT_REQUESTS: usize = 1024;
/// Bytes of frames that are committed together; the append that passes it is the last.
pub const COMMIT_BYTES: usize = 8 << 20;
/// Bytes of records that one read hands out; the record that passes it is the last.
pub const PAGE_BYTES: usize = 256 << 10;
/// Requests that may wait for the writer.
pub const WRITER_QUEUE: usize = 4096;
/// Runs and threads whose state the writer keeps at hand.
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
/// Bytes of a failure's details that are told with its run; longer ones are in its record alone.
pub const ERROR_DETAILS_BYTES: usize = 32 << 10;
/// Bytes of questions that one page of the inbox hands out; the question that passes it is the last.
pub const INBOX_BYTES: usize = 4 << 20;
/// Milliseconds that the open runs of a thread may be silent while it is being imported: a day.
pub const IMPORT_MILLIS: u64 = 24 * 60 * 60 * 1000;
