//! The pool of read connections.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::address::PgAddress;
use super::connection_counters::ConnectionCounters;
use super::error::PgResult;
use super::reader::PgReader;
use crate::error::LogError;
use crate::limits;

/// Number of read connections.
const READERS: usize = 4;

/// Read connections, opened on demand.
#[derive(Clone)]
pub(super) struct ReaderPool {
    address: PgAddress,
    idle: Arc<Mutex<Vec<PgReader>>>,
    permits: Arc<Semaphore>,
}

impl ReaderPool {
    pub(super) fn new(address: PgAddress) -> Self {
        Self { address, idle: Arc::default(), permits: Arc::new(Semaphore::new(READERS)) }
    }

    /// Returns the counters of all connections of this node.
    pub(super) fn counters(&self) -> &ConnectionCounters {
        &self.address.counters
    }

    /// Runs `work` with a connection on a blocking thread. If the connection breaks, another is tried once.
    pub(super) async fn using<T: Send + 'static>(
        &self,
        work: impl Fn(&mut PgReader) -> Result<T, LogError> + Send + 'static,
    ) -> Result<T, LogError> {
        let unavailable = |error: &dyn std::fmt::Display| LogError::Unavailable(error.to_string());
        let wait_limit = Duration::from_millis(limits::STORE_REQUEST_MILLIS);
        let permit = timeout(wait_limit, self.permits.clone().acquire_owned()).await;
        let permit = permit.map_err(|_| unavailable(&"all connections that read are busy"))?;
        let permit = permit.map_err(|error| unavailable(&error))?;
        let pool = self.clone();
        let reading = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            let mut reader = pool.take()?;
            let mut result = work(&mut reader);
            // Do not wait for a second timeout.
            if result.is_err() && reader.connection.is_closed() && !reader.connection.has_timed_out() {
                reader = PgReader::open(&pool.address)?;
                result = work(&mut reader);
            }
            // The state of a connection is unknown after a failure.
            if !matches!(result, Err(LogError::Unavailable(_) | LogError::Damaged(_))) {
                pool.lock().push(reader);
            }
            result
        });
        reading.await.map_err(|error| unavailable(&error))?
    }

    /// Waits for running reads, and closes the connections.
    pub(super) async fn close(&self) {
        let reads = self.permits.acquire_many(READERS as u32).await;
        self.permits.close();
        drop(reads);
        self.lock().clear();
    }

    fn take(&self) -> PgResult<PgReader> {
        let idle = self.lock().pop();
        match idle.filter(|reader| !reader.connection.is_closed()) {
            Some(reader) => Ok(reader),
            None => PgReader::open(&self.address),
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<PgReader>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
