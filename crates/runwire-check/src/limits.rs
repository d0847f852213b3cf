//! Every limit of the checks, in one place; `docs/limits.md` names them.

/// Ids of one kind that the order rules remember in a state that is stored with its run.
pub const REMEMBERED_IDS: usize = 1000;
/// Ids of one kind that `validate` remembers, whose state lasts as long as its stream is read.
pub const STREAM_IDS: usize = 1_000_000;
/// Ids of one kind that the order rules remember by name; of the others, a digest.
pub const REMEMBERED_NAMES: usize = 16;
/// Runs side by side that the order rules remember in one stream; the one that was silent for longest is forgotten.
pub const REMEMBERED_RUNS: usize = 8;
/// Bytes of an id that the order rules remember; of a longer one, its beginning and a hash.
pub const REMEMBERED_ID_BYTES: usize = 48;
/// Bytes of a finding's message, field or hint that are kept.
pub const FINDING_BYTES: usize = 512;
/// Errors of a schema in one frame that are explained, and unknown keys that are compared with the known ones.
pub const EXPLAINED_ERRORS: usize = 64;
/// Findings of one frame that are told.
pub const FINDINGS_OF_FRAME: usize = 16;
