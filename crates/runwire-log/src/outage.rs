//! Retries with backoff while the store is unavailable.
//!
//! A client that can retry gets a 503 ([`LogError::Unavailable`]). Work that nobody can retry waits here: a stream
//! whose head is sent, a running agent, an open request body. Delays grow exponentially and have jitter, so that a
//! store that has just come back is not overrun.

use std::future::Future;
use std::time::Duration;

use runwire_producer::Backoff;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use crate::{Append, Appended, Created, LogError, LogEvents, LogRuns, NewRun, RunInfo, limits};

/// Returns true if an error means a temporary outage of the store.
///
/// A failed write may have been committed all the same: see [`LogError::Uncertain`]. A write with a producer stamp
/// can always be repeated.
pub fn is_outage(error: &LogError) -> bool {
    matches!(error, LogError::Unavailable(_) | LogError::Uncertain(_))
}

/// Exponential backoff with jitter for retries during an outage.
#[derive(Debug)]
pub struct OutageBackoff {
    backoff: Backoff,
    due: Option<Instant>,
}

/// Delays between attempts during an outage.
pub const OUTAGE_BACKOFF: Backoff = Backoff::new(limits::OUTAGE_FIRST_RETRY_TIME, limits::OUTAGE_RETRY_TIME);

impl Default for OutageBackoff {
    fn default() -> Self {
        Self { backoff: OUTAGE_BACKOFF, due: None }
    }
}

impl OutageBackoff {
    /// Records a failure and returns the time of the next attempt. Failures before that time count as one.
    pub fn record_failure(&mut self, error: &LogError) -> Instant {
        if let Some(due) = self.due() {
            return due;
        }
        if self.backoff.is_fresh() {
            // The reason may contain addresses: it is for the server's log only.
            tracing::debug!(%error, "waiting for the store");
        }
        *self.due.insert(Instant::now() + self.backoff.next_delay())
    }

    /// Ends the backoff: the store has answered.
    pub fn reset(&mut self) {
        *self = Self::default();
    }

    /// Returns the time of the next attempt, if it is in the future.
    pub fn due(&self) -> Option<Instant> {
        self.due.filter(|due| Instant::now() < *due)
    }

    /// Waits until the next attempt is due. Cancel-safe.
    pub async fn wait(&self) {
        if let Some(due) = self.due() {
            sleep_until(due).await;
        }
    }
}

/// Retries until the store answers or the server stops.
pub async fn retry_until_available<T, F>(
    shutdown: &watch::Receiver<bool>,
    attempt: impl FnMut() -> F,
) -> Result<T, LogError>
where
    F: Future<Output = Result<T, LogError>>,
{
    retry_while(shutdown, None, is_outage, attempt).await
}

/// Creates a run, which must have an id and an attempt. An uncertain outcome is retried within a time limit.
pub async fn create_run(
    log: &dyn LogRuns,
    shutdown: &watch::Receiver<bool>,
    limit: Duration,
    run: NewRun,
) -> Result<Created<RunInfo>, LogError> {
    let created = log.create_run(run.clone()).await;
    let Err(uncertain @ LogError::Uncertain(_)) = created else { return created };
    match retry_while(shutdown, Some(limit), is_outage, || log.create_run(run.clone())).await {
        Err(error) if is_outage(&error) => Err(uncertain),
        known => known,
    }
}

/// Appends with retries, for producers that cannot easily resend.
pub async fn append(
    log: &(impl LogEvents + ?Sized),
    shutdown: &watch::Receiver<bool>,
    limit: Duration,
    append: Append,
) -> Result<Appended, LogError> {
    let may_repeat = |error: &LogError| match error {
        LogError::Uncertain(_) => append.stamp.is_some(),
        error => is_outage(error),
    };
    let attempt = || log.append(append.clone());
    retry_while(shutdown, Some(limit), may_repeat, attempt).await
}

async fn retry_while<T, F>(
    shutdown: &watch::Receiver<bool>,
    limit: Option<Duration>,
    may_repeat: impl Fn(&LogError) -> bool,
    mut attempt: impl FnMut() -> F,
) -> Result<T, LogError>
where
    F: Future<Output = Result<T, LogError>>,
{
    let mut backoff = OutageBackoff::default();
    let mut deadline = None;
    loop {
        let error = match attempt().await {
            Err(error) if may_repeat(&error) => error,
            done => return done,
        };
        let due = backoff.record_failure(&error);
        let deadline = *deadline.get_or_insert_with(|| limit.map(|limit| Instant::now() + limit));
        if deadline.is_some_and(|deadline| due > deadline) {
            return Err(error);
        }
        tokio::select! {
            () = sleep_until(due) => {}
            () = shutdown_begun(shutdown) => return Err(error),
        }
    }
}

/// Waits until the server starts to shut down.
pub async fn shutdown_begun(shutdown: &watch::Receiver<bool>) {
    let mut shutdown = shutdown.clone();
    if shutdown.wait_for(|stopping| *stopping).await.is_err() {
        // The sender is gone, so no shutdown can be signalled any more.
        std::future::pending().await
    }
}
