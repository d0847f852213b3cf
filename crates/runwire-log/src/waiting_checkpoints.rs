//! Checkpoints that readers have left, until a store has time for them.
//!
//! A checkpoint is a cache. The oldest are lost where there are too many, and so are those that wait when a process ends.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::key::RunKey;
use crate::{ReadFormat, limits};

/// The state of an encoder after a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Checkpoint {
    pub(crate) run: RunKey,
    pub(crate) form: ReadFormat,
    pub(crate) seq: u64,
    /// As JSON.
    pub(crate) state: String,
}

/// Waiting checkpoints, bounded in number and bytes.
#[derive(Debug, Default)]
pub(crate) struct WaitingCheckpoints(Mutex<Queue>);

#[derive(Debug, Default)]
struct Queue {
    checkpoints: VecDeque<Checkpoint>,
    bytes: usize,
}

impl WaitingCheckpoints {
    /// Keeps a checkpoint, and drops the oldest where there is no room. Returns whether it is the only one, so that the
    /// store must learn that one waits.
    pub(crate) fn keep(&self, checkpoint: Checkpoint) -> bool {
        let mut queue = self.lock();
        let bytes = checkpoint.state.len();
        let is_known = |known: &Checkpoint| {
            known.seq == checkpoint.seq && known.form == checkpoint.form && known.run == checkpoint.run
        };
        if bytes > limits::WAITING_CHECKPOINT_BYTES || queue.checkpoints.iter().any(is_known) {
            return false;
        }
        let was_empty = queue.checkpoints.is_empty();
        queue.bytes += bytes;
        queue.checkpoints.push_back(checkpoint);
        while queue.checkpoints.len() > limits::WAITING_CHECKPOINTS
            || queue.bytes > limits::WAITING_CHECKPOINT_BYTES
        {
            let Some(oldest) = queue.checkpoints.pop_front() else { break };
            queue.bytes -= oldest.state.len();
        }
        was_empty
    }

    /// Returns whether none waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.lock().checkpoints.is_empty()
    }

    /// Takes all of them.
    pub(crate) fn take(&self) -> Vec<Checkpoint> {
        std::mem::take(&mut *self.lock()).checkpoints.into()
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use runwire_model::dialect::Dialect;

    use super::*;

    fn checkpoint(run: usize, seq: u64, bytes: usize) -> Checkpoint {
        let (run, form) = (RunKey::new("tenant", format!("r{run}")), ReadFormat::new(Dialect::Loom));
        Checkpoint { run, form, seq, state: "x".repeat(bytes) }
    }

    #[test]
    fn each_checkpoint_waits_once() {
        let waiting = WaitingCheckpoints::default();
        assert!(waiting.is_empty());
        for (seq, is_first) in [(2, true), (3, false), (2, false)] {
            assert_eq!(waiting.keep(checkpoint(1, seq, 10)), is_first);
        }
        assert_eq!(waiting.take(), [checkpoint(1, 2, 10), checkpoint(1, 3, 10)]);
        assert!(waiting.is_empty());
        assert!(waiting.keep(checkpoint(1, 2, 10)), "what was taken hinders none");
    }

    #[test]
    fn waiting_checkpoints_are_bounded_in_number_and_bytes() {
        let waiting = WaitingCheckpoints::default();
        for run in 0..2 * limits::WAITING_CHECKPOINTS {
            waiting.keep(checkpoint(run, 1, 1));
        }
        let kept = waiting.take();
        assert_eq!(kept.len(), limits::WAITING_CHECKPOINTS);
        assert_eq!(kept[0], checkpoint(limits::WAITING_CHECKPOINTS, 1, 1), "the oldest are lost");
        let half = limits::WAITING_CHECKPOINT_BYTES / 2;
        for run in 1..=3 {
            waiting.keep(checkpoint(run, 1, half));
        }
        let kept: Vec<_> = waiting.take().into_iter().map(|kept| kept.run.id.to_string()).collect();
        assert_eq!(kept, ["r2", "r3"]);
        assert!(!waiting.keep(checkpoint(1, 1, limits::WAITING_CHECKPOINT_BYTES + 1)));
        assert!(waiting.is_empty());
    }
}
