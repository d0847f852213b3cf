//! Moving threads between logs, and removing what is not kept.

use std::time::Duration;

use async_trait::async_trait;
use runwire_model::Timestamp;

use crate::error::LogError;
use crate::key::ThreadKey;
use crate::transfer::{ExportPage, ExportRequest, Imported, NumberedItem};

/// What retention removes: whole closed runs, oldest first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RetentionLimits {
    /// Runs that ended before this moment.
    pub ended_before: Option<Timestamp>,
    /// Runs that ended longer ago than this, by the store's clock.
    pub age: Option<Duration>,
    /// The oldest runs, until the records of all threads fit into this many bytes.
    pub max_bytes: Option<u64>,
}

impl RetentionLimits {
    /// Converts the age to a time before `now`.
    pub(crate) fn at(self, now: Timestamp) -> Self {
        let millis = |age: Duration| u64::try_from(age.as_millis()).unwrap_or(u64::MAX);
        let by_age = self.age.map(|age| Timestamp(now.0.saturating_sub(millis(age))));
        Self { ended_before: self.ended_before.max(by_age), age: None, ..self }
    }
}

/// Exports, imports and deletes threads, removes old runs, and closes lost ones.
#[async_trait]
pub trait LogUpkeep: Send + Sync + 'static {
    /// Returns a page of everything that is stored of a thread, for [`LogUpkeep::import`].
    async fn export(&self, thread: &ThreadKey, part: &ExportRequest) -> Result<ExportPage, LogError>;

    /// Imports items of a thread that another log has exported; returns once they are durable.
    ///
    /// A record must be what the guard makes of its events. Items that exist and are equal are skipped, so that an
    /// interrupted import can be repeated. Until [`TransferItem::End`](crate::TransferItem::End) the open runs of the thread have a lease that
    /// is long enough for that.
    async fn import(&self, thread: &ThreadKey, items: Vec<NumberedItem>) -> Result<Imported, LogError>;

    /// Deletes a thread with all its data; `force` cancels its open runs.
    async fn delete_thread(&self, thread: &ThreadKey, force: bool) -> Result<(), LogError>;

    /// Removes runs by retention, and returns their number.
    async fn trim(&self, retention: RetentionLimits) -> Result<usize, LogError>;

    /// Closes the runs whose lease has expired, and returns their number.
    async fn sweep(&self) -> Result<usize, LogError>;
}
