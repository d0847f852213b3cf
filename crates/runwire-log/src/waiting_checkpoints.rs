//! Checkpoints that readers have left, until a store has time for them: the newest of each run and format.
//!
//! A checkpoint is a cache. One for which there is no room is lost, and so are those that wait when a process ends.

use std::collections::HashMap;
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
pub(crate) struct WaitingCheckpoints(Mutex<Slots>);

#[derive(Debug, Default)]
struct Slots {
    newest: HashMap<(RunKey, ReadFormat), Checkpoint>,
    bytes: usize,
}

impl WaitingCheckpoints {
    /// Keeps a checkpoint in the place of an older one of its run and format, if there is room. Returns whether it is the
    /// only one, so that the store must learn that one waits.
    pub(crate) fn keep(&self, checkpoint: Checkpoint) -> bool {
        let mut slots = self.lock();
        let key = (checkpoint.run.clone(), checkpoint.form);
        let replaced = slots.newest.get(&key);
        if replaced.is_some_and(|older| older.seq >= checkpoint.seq) {
            return false;
        }
        let count = slots.newest.len() + usize::from(replaced.is_none());
        let bytes = slots.bytes + checkpoint.state.len() - replaced.map_or(0, |older| older.state.len());
        if count > limits::WAITING_CHECKPOINTS || bytes > limits::WAITING_CHECKPOINT_BYTES {
            return false;
        }
        let was_empty = slots.newest.is_empty();
        slots.bytes = bytes;
        slots.newest.insert(key, checkpoint);
        was_empty
    }

    /// Returns whether none waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.lock().newest.is_empty()
    }

    /// Takes all of them.
    pub(crate) fn take(&self) -> Vec<Checkpoint> {
        std::mem::take(&mut *self.lock()).newest.into_values().collect()
    }

    fn lock(&self) -> MutexGuard<'_, Slots> {
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
    fn the_newest_checkpoint_of_a_run_and_format_waits() {
        let waiting = WaitingCheckpoints::default();
        assert!(waiting.is_empty());
        for (seq, is_first) in [(2, true), (3, false), (1, false)] {
            assert_eq!(waiting.keep(checkpoint(1, seq, 10)), is_first);
        }
        assert_eq!(waiting.take(), [checkpoint(1, 3, 10)]);
        assert!(waiting.is_empty());
        assert!(waiting.keep(checkpoint(1, 1, 10)), "what was taken hinders none");
    }

    #[test]
    fn waiting_checkpoints_are_bounded_in_number_and_bytes() {
        let waiting = WaitingCheckpoints::default();
        for run in 0..2 * limits::WAITING_CHECKPOINTS {
            waiting.keep(checkpoint(run, 1, 1));
        }
        assert_eq!(waiting.take().len(), limits::WAITING_CHECKPOINTS);
        let half = limits::WAITING_CHECKPOINT_BYTES / 2;
        for (run, seq) in [(1, 1), (2, 1), (3, 1), (2, 2)] {
            waiting.keep(checkpoint(run, seq, half));
        }
        let mut kept: Vec<_> =
            waiting.take().into_iter().map(|kept| (kept.run.id.to_string(), kept.seq)).collect();
        kept.sort();
        assert_eq!(kept, [("r1".to_owned(), 1), ("r2".to_owned(), 2)]);
        assert!(!waiting.keep(checkpoint(1, 1, limits::WAITING_CHECKPOINT_BYTES + 1)));
        assert!(waiting.is_empty());
    }
}
