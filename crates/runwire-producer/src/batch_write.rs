//! The state machine of one batch.

use std::time::Duration;

use tokio::time::Instant;

use crate::{Ack, AppendError, Backoff, Producer};

/// When a batch is sent again, and for how long.
#[derive(Debug, Clone)]
pub struct RetryPolicy {
    /// The delays between attempts.
    pub backoff: Backoff,
    /// How long a batch is retried; `None` means without end.
    pub give_up_after: Option<Duration>,
}

impl RetryPolicy {
    /// Creates a policy of one attempt.
    pub const fn never() -> Self {
        let tick = Duration::from_millis(1);
        Self { backoff: Backoff::new(tick, tick), give_up_after: Some(Duration::ZERO) }
    }
}

/// Why a batch was not written completely.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WriteError<E> {
    /// The frame at an index was refused; those before it are written.
    #[error("{error}")]
    Frame {
        /// The index in the batch.
        at: usize,
        /// The error.
        error: E,
    },
    /// The run has ended; the frames before an index are written.
    #[error("{error}")]
    Closed {
        /// The index in the batch.
        at: usize,
        /// The error.
        error: E,
    },
    /// A newer epoch of the producer has taken over.
    #[error("{0}")]
    Fenced(E),
    /// No attempt succeeded in the time given, or the process stops.
    #[error("gave up after {attempts} attempts in {after:?}: {last}")]
    GaveUp {
        /// Time since the first attempt.
        after: Duration,
        /// Number of attempts.
        attempts: u32,
        /// The error of the last one.
        last: E,
    },
    /// Anything else that no retry helps against; the frames before an index are written.
    #[error("{error}")]
    Permanent {
        /// The index in the batch.
        at: usize,
        /// The error.
        error: E,
    },
}

impl<E> WriteError<E> {
    /// Returns the destination's error.
    pub fn into_inner(self) -> E {
        match self {
            Self::Frame { error, .. }
            | Self::Closed { error, .. }
            | Self::Fenced(error)
            | Self::GaveUp { last: error, .. }
            | Self::Permanent { error, .. } => error,
        }
    }
}

/// The attempts to write one batch.
#[derive(Debug)]
pub(crate) struct BatchWrite {
    frames: u64,
    begun: Instant,
    attempts: u32,
    backoff: Backoff,
    give_up_after: Option<Duration>,
}

/// What follows from a reply.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum AfterReply<R, E> {
    /// The batch is written.
    Done(R),
    /// It acknowledges another number of frames than it was given.
    Miscounted { counted: u64 },
    /// It is sent again after a delay.
    Wait { delay: Duration, error: E },
    /// It will not be written.
    Failed(WriteError<E>),
}

impl BatchWrite {
    pub(crate) fn begin(frames: u64, retry: &RetryPolicy, now: Instant) -> Self {
        let RetryPolicy { backoff, give_up_after } = retry.clone();
        Self { frames, begun: now, attempts: 0, backoff, give_up_after }
    }

    /// Returns the number of attempts that were answered.
    pub(crate) fn attempts(&self) -> u32 {
        self.attempts
    }

    /// Ends the attempts.
    pub(crate) fn give_up<E>(&self, last: E, now: Instant) -> WriteError<E> {
        WriteError::GaveUp { after: now.duration_since(self.begun), attempts: self.attempts, last }
    }

    /// Takes the reply to an attempt, and moves the producer behind the frames that are written.
    pub(crate) fn on_reply<R, E>(
        &mut self,
        producer: &mut Producer,
        reply: Result<Ack<R>, AppendError<E>>,
        now: Instant,
    ) -> AfterReply<R, E> {
        self.attempts += 1;
        let error = match reply {
            Ok(ack) => {
                let counted = ack.accepted.saturating_add(ack.duplicates);
                if counted != self.frames {
                    return AfterReply::Miscounted { counted };
                }
                producer.advance(self.frames);
                return AfterReply::Done(ack.receipt);
            }
            Err(error) => error,
        };
        AfterReply::Failed(match error {
            AppendError::Temporary { error, retry_after } => {
                let delay = self.backoff.next_delay_or(retry_after);
                let elapsed = now.duration_since(self.begun);
                if self.give_up_after.is_none_or(|limit| elapsed + delay <= limit) {
                    return AfterReply::Wait { delay, error };
                }
                self.give_up(error, now)
            }
            AppendError::Frame { written, error } => match self.advance(producer, written) {
                // A frame behind the last one can't be refused.
                at if at as u64 == self.frames => WriteError::Permanent { at, error },
                at => WriteError::Frame { at, error },
            },
            AppendError::Closed { written, error } => {
                WriteError::Closed { at: self.advance(producer, written), error }
            }
            AppendError::Permanent { written, error } => {
                WriteError::Permanent { at: self.advance(producer, written), error }
            }
            AppendError::Fenced(error) => WriteError::Fenced(error),
        })
    }

    /// Moves the producer behind the frames that are written, and returns the index of the first one that is not.
    fn advance(&self, producer: &mut Producer, written: u64) -> usize {
        let written = written.min(self.frames);
        producer.advance(written);
        usize::try_from(written).unwrap_or(usize::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn policy(give_up_after: Option<Duration>) -> RetryPolicy {
        RetryPolicy { backoff: Backoff::new(SECOND, SECOND).jitter(1.0, 1.0), give_up_after }
    }

    fn temporary() -> Result<Ack<()>, AppendError<&'static str>> {
        Err(AppendError::Temporary { error: "away", retry_after: None })
    }

    fn ack(accepted: u64, duplicates: u64) -> Result<Ack<()>, AppendError<&'static str>> {
        Ok(Ack { accepted, duplicates, receipt: () })
    }

    #[test]
    fn a_batch_that_is_repeated_counts_once() {
        let (mut producer, now) = (Producer::new("p", 1, 7), Instant::now());
        let mut write = BatchWrite::begin(3, &policy(None), now);
        assert_eq!(
            write.on_reply(&mut producer, temporary(), now),
            AfterReply::Wait { delay: SECOND, error: "away" }
        );
        assert_eq!(producer.next(), 7);
        assert_eq!(write.on_reply(&mut producer, ack(1, 2), now), AfterReply::Done(()));
        assert_eq!(producer.next(), 10);
    }

    #[test]
    fn a_count_that_is_not_the_batch_moves_nothing() {
        let (mut producer, now) = (Producer::new("p", 1, 0), Instant::now());
        for (accepted, duplicates, counted) in [(1, 0, 1), (2, 2, 4), (u64::MAX, 1, u64::MAX)] {
            let mut write = BatchWrite::begin(3, &policy(None), now);
            let next = write.on_reply(&mut producer, ack(accepted, duplicates), now);
            assert_eq!(next, AfterReply::Miscounted { counted });
        }
        assert_eq!(producer.next(), 0);
    }

    #[test]
    fn a_refusal_moves_the_producer_to_the_refused_frame() {
        let (mut producer, now) = (Producer::new("p", 1, 0), Instant::now());
        let mut write = BatchWrite::begin(3, &policy(None), now);
        let refused = Err::<Ack<()>, _>(AppendError::Frame { written: 2, error: "no" });
        let next = write.on_reply(&mut producer, refused, now);
        assert_eq!(next, AfterReply::Failed(WriteError::Frame { at: 2, error: "no" }));
        assert_eq!(producer.next(), 2);
        // A destination that counts more than it was given is not believed.
        let mut write = BatchWrite::begin(3, &policy(None), now);
        let refused = Err::<Ack<()>, _>(AppendError::Frame { written: 9, error: "no" });
        let next = write.on_reply(&mut producer, refused, now);
        assert_eq!(next, AfterReply::Failed(WriteError::Permanent { at: 3, error: "no" }));
        assert_eq!(producer.next(), 5);
        let closed = Err::<Ack<()>, _>(AppendError::Closed { written: 1, error: "over" });
        let next = write.on_reply(&mut producer, closed, now);
        assert_eq!(next, AfterReply::Failed(WriteError::Closed { at: 1, error: "over" }));
        assert_eq!(producer.next(), 6);
    }

    #[test]
    fn a_fenced_producer_stays_where_it_was() {
        let (mut producer, now) = (Producer::new("p", 1, 4), Instant::now());
        let mut write = BatchWrite::begin(3, &policy(None), now);
        let fenced = Err::<Ack<()>, _>(AppendError::Fenced("newer"));
        let next = write.on_reply(&mut producer, fenced, now);
        assert_eq!(next, AfterReply::Failed(WriteError::Fenced("newer")));
        assert_eq!(producer.next(), 4);
    }

    #[test]
    fn attempts_end_with_the_time_given() {
        let (mut producer, begun) = (Producer::new("p", 1, 0), Instant::now());
        let mut write = BatchWrite::begin(1, &policy(Some(3 * SECOND)), begun);
        for elapsed in [0, 1, 2] {
            let next = write.on_reply(&mut producer, temporary(), begun + elapsed * SECOND);
            assert_eq!(next, AfterReply::Wait { delay: SECOND, error: "away" });
        }
        let next = write.on_reply(&mut producer, temporary(), begun + 3 * SECOND);
        let gave_up = WriteError::GaveUp { after: 3 * SECOND, attempts: 4, last: "away" };
        assert_eq!(next, AfterReply::Failed(gave_up));
        let mut once = BatchWrite::begin(1, &RetryPolicy::never(), begun);
        let next = once.on_reply(&mut producer, temporary(), begun);
        assert!(matches!(next, AfterReply::Failed(WriteError::GaveUp { attempts: 1, .. })));
    }
}
