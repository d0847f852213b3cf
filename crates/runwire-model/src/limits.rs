//! Every limit of the model, in one place.
//!
//! Nothing that comes from outside may grow memory without a bound: each number here is checked where
//! the bytes enter, and each is named in the docs (`docs/limits.md`).

/// Bytes of one frame.
pub const FRAME_BYTES: usize = 1 << 20;
/// Nesting of objects and arrays in one frame.
pub const JSON_DEPTH: usize = 128;
/// Bytes of text and thinking that one run may gather.
pub const RUN_TEXT_BYTES: u64 = 8 << 20;
/// Bytes of stored text that the whole texts of one run are compared with.
pub const RUN_COMPARED_BYTES: u64 = 64 << 20;
/// Bytes of streamed arguments that one tool call may gather.
pub const CALL_ARGUMENT_BYTES: u64 = 1 << 20;
/// Bytes of streamed arguments that one run may gather over all its calls.
pub const RUN_ARGUMENT_BYTES: u64 = 4 << 20;
/// Bytes of an id or a name: thread, run, message, call, step, interaction, tool.
pub const ID_BYTES: usize = 512;
/// Things of one kind that a run may have open at once: texts, steps, calls, questions.
pub const OPEN_ITEMS: usize = 256;
/// Questions that one run may ask.
pub const RUN_INTERACTIONS: usize = 1000;
/// Bytes of the messages and of the state that a conversion remembers from earlier runs of a thread.
pub const THREAD_MEMORY_BYTES: usize = 4 << 20;
/// Runs that may be open at once in one converted stream.
pub const OPEN_RUNS: usize = 256;
/// Bytes that the threads of one converted stream may hold together, where there are more than two.
pub const STREAM_MEMORY_BYTES: usize = 32 << 20;
/// Bytes of the pieces that are merged into one frame for a reader who catches up or attaches.
pub const MERGED_BYTES: usize = 64 << 10;
/// Ids that a thread remembers to recognise one that is used twice.
pub(crate) const RECENT_IDS: usize = 64;
