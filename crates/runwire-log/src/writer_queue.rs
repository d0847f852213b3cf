//! Back-pressure of the writers' queues: a limit on their bytes, and on the time that a command waits for space.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, TryAcquireError};
use tokio::time::{Instant, timeout_at};

use crate::error::LogError;
use crate::limits;

/// How long a command may wait in the queue.
pub(crate) const QUEUE_TIMEOUT: Duration = Duration::from_millis(limits::STORE_REQUEST_MILLIS);

/// Refuses a command that was not executed.
pub(crate) fn refused(why: &str) -> LogError {
    LogError::Unavailable(format!("{why}; nothing was written"))
}

/// Limits the bytes of queued commands.
#[derive(Debug, Clone)]
pub(crate) struct QueueBytes {
    semaphore: Arc<Semaphore>,
    limit: usize,
}

impl Default for QueueBytes {
    fn default() -> Self {
        Self::new(limits::WRITER_QUEUE_BYTES)
    }
}

impl QueueBytes {
    pub(crate) fn new(limit: usize) -> Self {
        Self { semaphore: Arc::new(Semaphore::new(limit)), limit }
    }

    /// Waits until there is space for the bytes of a command; the permit is held until it is answered.
    pub(crate) async fn acquire(
        &self,
        bytes: usize,
        until: Instant,
    ) -> Result<OwnedSemaphorePermit, LogError> {
        let bytes = u32::try_from(bytes.min(self.limit)).unwrap_or(u32::MAX);
        let closed = || refused("the store was closed");
        match self.semaphore.clone().try_acquire_many_owned(bytes) {
            Ok(permit) => return Ok(permit),
            Err(TryAcquireError::Closed) => return Err(closed()),
            Err(TryAcquireError::NoPermits) => {}
        }
        let permit = timeout_at(until, self.semaphore.clone().acquire_many_owned(bytes)).await;
        permit.map_err(|_| refused("too many bytes wait for the store"))?.map_err(|_| closed())
    }

    /// Takes space for commands, if there is some.
    pub(crate) fn try_acquire(&self, bytes: usize) -> Option<OwnedSemaphorePermit> {
        let bytes = u32::try_from(bytes.min(self.limit)).unwrap_or(u32::MAX);
        self.semaphore.clone().try_acquire_many_owned(bytes).ok()
    }
}
