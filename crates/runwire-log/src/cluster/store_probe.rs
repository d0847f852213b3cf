//! What a node has to look up in the store for its readers.

use std::sync::Arc;

use crate::error::LogError;
use crate::key::ThreadKey;
use crate::record::StoredRecord;

/// A thread that was looked for by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ThreadLocation {
    pub(crate) number: i64,
    pub(crate) head: u64,
    pub(crate) deleted: bool,
}

/// A thread that is not where it was said to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HeadChange {
    pub(crate) number: i64,
    pub(crate) head: u64,
    pub(crate) deleted: bool,
}

/// What a thread has after a record.
#[derive(Debug)]
pub(crate) struct RecordsAfter {
    pub(crate) number: i64,
    /// The thread's last record, as the read saw it.
    pub(crate) head: u64,
    pub(crate) deleted: bool,
    /// The records up to the head; nothing where they are too much, or cannot be read.
    pub(crate) records: Option<Vec<Arc<StoredRecord>>>,
}

/// Looks into the store, and waits for it: each look is short, and is committed work only.
pub(crate) trait StoreProbe: Send + 'static {
    /// Looks for threads by name; tells of each in the order asked, as far as it exists.
    fn locate(&mut self, threads: &[ThreadKey]) -> Result<Vec<Option<ThreadLocation>>, LogError>;

    /// Tells which threads are not at these heads, or deleted.
    fn changed_heads(&mut self, heads: &[(i64, u64)]) -> Result<Vec<HeadChange>, LogError>;

    /// Reads what threads have after these records.
    fn read(&mut self, after: &[(i64, u64)]) -> Result<Vec<RecordsAfter>, LogError>;
}

/// Opens an eye, and waits for it.
pub(crate) type ProbeOpener = Arc<dyn Fn() -> Result<Box<dyn StoreProbe>, LogError> + Send + Sync>;
