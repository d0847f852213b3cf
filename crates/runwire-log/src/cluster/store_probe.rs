//! What the head poller asks of a store.

use std::sync::Arc;

use crate::error::LogError;
use crate::key::ThreadKey;
use crate::record::StoredRecord;

/// A thread found by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ThreadLocation {
    pub(crate) number: i64,
    pub(crate) head: u64,
    pub(crate) deleted: bool,
}

/// A thread whose head is not the known one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HeadChange {
    pub(crate) number: i64,
    pub(crate) head: u64,
    pub(crate) deleted: bool,
}

/// The records of a thread after a known one.
#[derive(Debug)]
pub(crate) struct RecordsAfter {
    pub(crate) number: i64,
    /// The thread's last record, as the read saw it.
    pub(crate) head: u64,
    pub(crate) deleted: bool,
    /// The records up to the head; `None` where they are too many, or damaged.
    pub(crate) records: Option<Vec<Arc<StoredRecord>>>,
}

/// Queries a store for the head poller. Each query blocks, is short, and sees only committed data.
pub(crate) trait StoreProbe: Send + 'static {
    /// Looks up threads by name; returns one result for each, in order.
    fn locate(&mut self, threads: &[ThreadKey]) -> Result<Vec<Option<ThreadLocation>>, LogError>;

    /// Returns the threads whose head differs from the given one, or that are deleted.
    fn changed_heads(&mut self, heads: &[(i64, u64)]) -> Result<Vec<HeadChange>, LogError>;

    /// Reads the records of threads after the given ones.
    fn read(&mut self, after: &[(i64, u64)]) -> Result<Vec<RecordsAfter>, LogError>;
}

/// Opens a probe. Blocks while it connects.
pub(crate) type ProbeOpener = Arc<dyn Fn() -> Result<Box<dyn StoreProbe>, LogError> + Send + Sync>;
