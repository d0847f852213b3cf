//! What the verbs need of a store while they work.

use std::ops::ControlFlow;

use runwire_model::Timestamp;

use super::base_state::BaseState;
use super::heads::{RunHead, ThreadHead};
use crate::key::{RunKey, ThreadKey};
use crate::record::StoredRecord;

/// Something that the store must hold is not there.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("{0} is missing")]
pub(crate) struct MissingRow(pub(crate) &'static str);

/// What the verbs look up in a store.
///
/// Only what is not at hand is asked for. It is asked for while a batch is worked out, so whoever implements this
/// blocks; and what it tells must stay true until the batch is committed, or the commit must fail: a store with
/// several writers locks a thread before it hands out its head or that of one of its runs.
///
/// Nothing here changes the store: what is to be written is in the [`CommitBatch`](super::CommitBatch) and in the heads.
pub(crate) trait TxnStore {
    /// A fault of the store. The work of the batch is dropped then, with all heads.
    type Error: From<MissingRow>;

    /// Loads a thread, with its producers.
    fn thread(&self, key: &ThreadKey) -> Result<Option<Box<ThreadHead>>, Self::Error>;

    /// Loads a thread by its number.
    fn thread_by_id(&self, id: i64) -> Result<Option<Box<ThreadHead>>, Self::Error>;

    /// Loads a run, with its producers and its lease.
    fn run(&self, key: &RunKey) -> Result<Option<Box<RunHead>>, Self::Error>;

    /// Loads a run by its number.
    fn run_by_id(&self, id: i64) -> Result<Option<Box<RunHead>>, Self::Error>;

    /// Returns whether a run id is taken.
    fn has_run(&self, key: &RunKey) -> Result<bool, Self::Error>;

    /// Returns whether a run of a thread begins with a `seq`.
    fn has_run_from(&self, thread: i64, first_seq: u64) -> Result<bool, Self::Error>;

    /// Returns what was before the records of a thread, where its beginning is gone.
    fn base(&self, thread: i64) -> Result<Option<BaseState>, Self::Error>;

    /// Shows the stored records of a thread after a `seq`, in order, until it is told to stop.
    fn visit(
        &self,
        thread: i64,
        after: u64,
        show: &mut dyn FnMut(&StoredRecord) -> ControlFlow<()>,
    ) -> Result<(), Self::Error>;

    /// Lists the runs whose stored lease ran out.
    fn due(&self, now: Timestamp) -> Result<Vec<i64>, Self::Error>;

    /// Takes note that a run whose lease ran out cannot be closed: a store may leave it out the next time.
    fn skip_unreadable(&self, _run: i64, _error: &Self::Error) {}

    /// Returns a number to a thread; each is given once.
    fn new_thread_id(&mut self) -> Result<i64, Self::Error>;

    /// Returns a number to a run; each is given once.
    fn new_run_id(&mut self) -> Result<i64, Self::Error>;
}
