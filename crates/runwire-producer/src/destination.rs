//! Where a producer writes.

use std::time::Duration;

use crate::Stamp;

/// Where a producer writes its batches: a server over HTTP, or a log in this process.
pub trait WriteDestination: Send {
    /// A batch of frames.
    type Frames: Sync;
    /// What the destination says of a batch that is written.
    type Receipt: Send;
    /// Its error.
    type Error: Send;

    /// Counts the frames of a batch.
    fn count(frames: &Self::Frames) -> u64;

    /// Makes one attempt to write a batch.
    fn append(
        &mut self,
        stamp: &Stamp,
        frames: &Self::Frames,
        end: bool,
    ) -> impl Future<Output = Result<Ack<Self::Receipt>, AppendError<Self::Error>>> + Send;

    /// Creates the error of an acknowledgement that counts other frames than it was given.
    fn miscounted(&self, frames: u64, counted: u64) -> Self::Error;

    /// Is called before the pause after a temporary error, with the number of attempts so far.
    fn on_retry(&mut self, attempts: u32, error: &Self::Error) {
        let _ = (attempts, error);
    }

    /// Completes when no further attempt makes sense, as the process stops.
    fn stopped(&self) -> impl Future<Output = ()> + Send {
        std::future::pending()
    }
}

/// A batch that is durable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ack<R> {
    /// Frames that this attempt has written.
    pub accepted: u64,
    /// Frames that an earlier attempt had written.
    pub duplicates: u64,
    /// What the destination says of it.
    pub receipt: R,
}

/// Why an attempt failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AppendError<E> {
    /// It may succeed later; it is not known what is written.
    Temporary {
        /// The error.
        error: E,
        /// How long the destination asks to wait.
        retry_after: Option<Duration>,
    },
    /// The frame after those that are written is refused.
    Frame {
        /// Frames that are written, by this attempt or an earlier one.
        written: u64,
        /// The error.
        error: E,
    },
    /// The run has ended, and takes no frame after those that are written.
    Closed {
        /// Frames that are written, by this attempt or an earlier one.
        written: u64,
        /// The error.
        error: E,
    },
    /// A newer epoch of the producer has taken over.
    Fenced(E),
    /// Anything else that no retry helps against.
    Permanent {
        /// Frames that are written, by this attempt or an earlier one.
        written: u64,
        /// The error.
        error: E,
    },
}
