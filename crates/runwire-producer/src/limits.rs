//! Every limit of a producer; `docs/limits.md` names them.

/// Bytes of frames in one append; the frame that exceeds it is the last.
pub const BATCH_BYTES: usize = 256 << 10;
/// Frames in one append.
pub const BATCH_FRAMES: usize = 1024;
