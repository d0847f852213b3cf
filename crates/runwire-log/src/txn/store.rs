//! What commands load from a store.

use std::ops::ControlFlow;

use runwire_model::Timestamp;

use super::base_state::BaseState;
use super::heads::{RunHead, ThreadHead};
use crate::key::{RunKey, ThreadKey};
use crate::record::{StoredRecord, Wanted};

/// A row that must exist is missing.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("{0} is missing")]
pub(crate) struct MissingRow(pub(crate) &'static str);

/// What commands load from a store.
///
/// Only what is not loaded yet is asked for. Implementations block, because commands are executed synchronously. What
/// they return must stay true until the batch is committed, or the commit must fail: a store with several writers
/// locks a thread before it returns its head or that of one of its runs.
///
/// Nothing here changes the store: writes are in the [`CommitBatch`](super::CommitBatch) and in the heads.
pub(crate) trait TxnStore {
    /// A failure of the store. The batch is dropped then, with all heads.
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

    /// Returns the base state of a thread whose beginning is gone.
    fn base(&self, thread: i64) -> Result<Option<BaseState>, Self::Error>;

    /// Calls `show` with the wanted records of a thread after a `seq`, in order, until it breaks; returns how many
    /// were looked at.
    fn visit(
        &self,
        thread: i64,
        after: u64,
        wanted: Wanted<'_>,
        show: &mut dyn FnMut(&StoredRecord) -> ControlFlow<()>,
    ) -> Result<u64, Self::Error>;

    /// Lists the runs whose stored lease has expired, without those that were marked as unreadable.
    fn expired_leases(&self, now: Timestamp) -> Result<Vec<i64>, Self::Error>;

    /// Marks a run with an expired lease as unreadable, if the failure says so: it is not listed for a while. Returns
    /// whether the transaction can go on without it.
    fn skip_unreadable(&self, run: i64, failure: &Self::Error) -> bool;

    /// Returns a new number for a thread.
    fn new_thread_id(&mut self) -> Result<i64, Self::Error>;

    /// Returns a new number for a run.
    fn new_run_id(&mut self) -> Result<i64, Self::Error>;
}
