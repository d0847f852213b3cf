//! A store that is away for a while, and comes back.
//!
//! Whoever can ask again is told so: [`LogError::Unavailable`] is a 503. Whoever cannot waits here and tries again: a
//! stream whose head is sent, an agent at work, a body that stays open. They do so ever later, and each at another
//! moment, so that a store that has just come back is not run over.

use std::future::Future;
use std::time::Duration;

use runwire_log::{Append, Appended, Created, Log, LogError, NewRun, RunInfo};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use crate::{AppState, limits};

/// Tells whether an error says that the store is away, which passes.
///
/// Of what was to be written then, something may be there all the same: see [`LogError::Uncertain`]. Whoever writes
/// under a stamp can repeat it in any case.
pub(crate) fn is_outage(error: &LogError) -> bool {
    matches!(error, LogError::Unavailable(_) | LogError::Uncertain(_))
}

/// The moments at which something is tried again that the store could not do.
#[derive(Debug, Default)]
pub(crate) struct Patience {
    failures: u32,
    due: Option<Instant>,
}

impl Patience {
    /// Notes a failure, and tells when to try again. Those that fail together count as one.
    pub(crate) fn failed(&mut self, error: &LogError) -> Instant {
        if let Some(due) = self.due() {
            return due;
        }
        if self.failures == 0 {
            // The reason may name addresses, which the server's log may hold and nobody else may see.
            tracing::debug!(%error, "waiting for the store");
        }
        let most = limits::OUTAGE_RETRY_TIME;
        let wait = limits::OUTAGE_FIRST_RETRY_TIME.saturating_mul(1 << self.failures.min(16)).min(most);
        let due = Instant::now() + wait.mul_f64(0.5 + 0.5 * fastrand::f64());
        self.failures += 1;
        *self.due.insert(due)
    }

    /// Notes that the store has answered.
    pub(crate) fn worked(&mut self) {
        *self = Self::default();
    }

    /// Tells when to try again, if that is not now.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.due.filter(|due| Instant::now() < *due)
    }

    /// Waits until it is time to try again. May be dropped and asked again.
    pub(crate) async fn wait(&self) {
        if let Some(due) = self.due() {
            sleep_until(due).await;
        }
    }
}

/// Does something again until the store answers, or until the server stops.
pub(crate) async fn outlast<T, F>(
    shutdown: &watch::Receiver<bool>,
    attempt: impl FnMut() -> F,
) -> Result<T, LogError>
where
    F: Future<Output = Result<T, LogError>>,
{
    try_until(shutdown, None, is_outage, attempt).await
}

/// Creates a run, which must name its id and its attempt. Where the store cannot tell whether it has, it is asked again
/// until it can, for a while.
pub(crate) async fn create_run(
    log: &dyn Log,
    shutdown: &watch::Receiver<bool>,
    most: Duration,
    run: NewRun,
) -> Result<Created<RunInfo>, LogError> {
    let created = log.create_run(run.clone()).await;
    let Err(doubt @ LogError::Uncertain(_)) = created else { return created };
    match try_until(shutdown, Some(most), is_outage, || log.create_run(run.clone())).await {
        Err(error) if is_outage(&error) => Err(doubt),
        known => known,
    }
}

/// Appends for a producer that cannot send everything again at once: a few times, for a while.
pub(crate) async fn append(state: &AppState, append: Append) -> Result<Appended, LogError> {
    let may_repeat = |error: &LogError| match error {
        LogError::Uncertain(_) => append.stamp.is_some(),
        error => is_outage(error),
    };
    let attempt = || state.log.append(append.clone());
    try_until(&state.shutdown, Some(state.config.outage), may_repeat, attempt).await
}

async fn try_until<T, F>(
    shutdown: &watch::Receiver<bool>,
    most: Option<Duration>,
    may_repeat: impl Fn(&LogError) -> bool,
    mut attempt: impl FnMut() -> F,
) -> Result<T, LogError>
where
    F: Future<Output = Result<T, LogError>>,
{
    let mut patience = Patience::default();
    let mut given_up_at = None;
    loop {
        let error = match attempt().await {
            Err(error) if may_repeat(&error) => error,
            done => return done,
        };
        let due = patience.failed(&error);
        let given_up_at = *given_up_at.get_or_insert_with(|| most.map(|most| Instant::now() + most));
        if given_up_at.is_some_and(|given_up_at| due > given_up_at) {
            return Err(error);
        }
        tokio::select! {
            () = sleep_until(due) => {}
            () = stopped(shutdown) => return Err(error),
        }
    }
}

/// Waits until the server begins to stop.
pub(crate) async fn stopped(shutdown: &watch::Receiver<bool>) {
    let mut shutdown = shutdown.clone();
    if shutdown.wait_for(|stopping| *stopping).await.is_err() {
        // Nobody is left who could say so; then nobody waits either.
        std::future::pending().await
    }
}
