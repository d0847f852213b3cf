//! The versions of threads.
//!
//! A version is compared for equality alone: with the one that a writer has cached, and with the one that a commit of
//! unknown outcome has drawn. So it must differ from every version that the thread had before, and from what any other
//! writer draws at the same time. A number of 62 random bits does both, without asking anybody; a number that only
//! grows would do the first alone.

/// Draws a version.
pub(in crate::postgres) fn draw() -> i64 {
    fastrand::i64(1..i64::MAX / 2)
}
