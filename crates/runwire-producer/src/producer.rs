//! Identity and position of a producer.

use std::sync::Arc;

use tokio::time::Instant;

use crate::batch_write::{AfterReply, BatchWrite};
use crate::{RetryPolicy, WriteDestination, WriteError};

/// Upper bound of the random step to the epoch that takes over.
const EPOCH_STEP: u64 = 1 << 20;

/// A producer's name, epoch and index, which make a retried append idempotent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stamp {
    /// The producer.
    pub producer: Arc<str>,
    /// Its incarnation.
    pub epoch: u64,
    /// The index of the first frame among all frames that the producer has sent to this run, thread or tenant.
    pub index: u64,
}

/// A producer and the index of its next frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Producer(Stamp);

/// Returns an epoch that fences a producer of the known epoch. The step is random, so that two that take over at once do
/// not get the same one.
pub fn next_epoch(known: u64) -> u64 {
    known.saturating_add(fastrand::u64(1..=EPOCH_STEP))
}

impl Producer {
    /// Creates a producer whose next frame has an index.
    pub fn new(id: impl Into<Arc<str>>, epoch: u64, next: u64) -> Self {
        Self(Stamp { producer: id.into(), epoch, index: next })
    }

    /// Returns the stamp of the next frame.
    pub fn stamp(&self) -> &Stamp {
        &self.0
    }

    /// Returns the index of the next frame: how many are written.
    pub fn next(&self) -> u64 {
        self.0.index
    }

    /// Counts frames that are written.
    pub(crate) fn advance(&mut self, frames: u64) {
        self.0.index += frames;
    }

    /// Writes a batch, and returns once it is durable; `end` ends the run after it.
    ///
    /// Temporary errors are retried with the same stamp. Afterwards the producer stands behind the frames that are
    /// written, also if one was refused; where the outcome is not known, it stands before them, and the batch may be
    /// written again.
    pub async fn write<D: WriteDestination>(
        &mut self,
        to: &mut D,
        frames: &D::Frames,
        end: bool,
        retry: &RetryPolicy,
    ) -> Result<D::Receipt, WriteError<D::Error>> {
        let mut write = BatchWrite::begin(D::count(frames), retry, Instant::now());
        loop {
            let reply = to.append(&self.0, frames, end).await;
            match write.on_reply(self, reply, Instant::now()) {
                AfterReply::Done(receipt) => return Ok(receipt),
                AfterReply::Failed(error) => return Err(error),
                AfterReply::Miscounted { counted } => {
                    let error = to.miscounted(D::count(frames), counted);
                    return Err(WriteError::Permanent { at: 0, error });
                }
                AfterReply::Wait { delay, error } => {
                    to.on_retry(write.attempts(), &error);
                    tokio::select! {
                        () = tokio::time::sleep(delay) => {}
                        () = to.stopped() => return Err(write.give_up(error, Instant::now())),
                    }
                }
            }
        }
    }
}
