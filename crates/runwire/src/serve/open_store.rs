//! Opens the store, with retries: nodes are often started before their database.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use runwire_log::postgres::{self, PostgresLog};
use runwire_log::sqlite::{self, SqliteLog};
use runwire_log::{Log, Migrated};
use runwire_producer::Backoff;

use super::{exit_on_store_change, exit_on_store_failure};
use crate::config::{SecretUrl, Settings, StoreUrl, TailSettings};
use crate::failure::Failure;

/// How long an unreachable store is retried.
const STORE_TIMEOUT: Duration = Duration::from_secs(30);
/// The delays between attempts.
const BACKOFF: Backoff = Backoff::new(Duration::from_millis(200), Duration::from_secs(2));
/// Failed attempts per log line.
const ATTEMPTS_PER_LOG_LINE: u32 = 5;

/// Opens the configured store.
pub(super) async fn open(settings: &Settings) -> Result<Arc<dyn Log>, Failure> {
    match settings.store.clone() {
        StoreUrl::Sqlite(path) => {
            let options = sqlite::SqliteOptions {
                lease: settings.lease,
                cancel_grace: settings.cancel_grace,
                fatal: Arc::new(exit_on_store_failure),
                ..sqlite::SqliteOptions::default()
            };
            Ok(Arc::new(run_blocking(move || SqliteLog::open(&path, options)).await??))
        }
        StoreUrl::Postgres(address) => {
            let options = postgres::PgOptions {
                lease: settings.lease,
                cancel_grace: settings.cancel_grace,
                node_name: hostname(),
                tail: settings.tail.as_ref().map(TailSettings::options),
                fatal: Arc::new(exit_on_store_change),
                ..postgres::PgOptions::default()
            };
            let opened = with_retries(&address, move |url| PostgresLog::open(url, &options)).await?;
            Ok(Arc::new(opened))
        }
    }
}

/// Migrates the store, and returns its former and new version.
pub(crate) async fn migrate(store: &StoreUrl) -> Result<Migrated, Failure> {
    match store.clone() {
        StoreUrl::Sqlite(path) => Ok(run_blocking(move || SqliteLog::migrate(&path)).await??),
        StoreUrl::Postgres(address) => with_retries(&address, PostgresLog::migrate).await,
    }
}

/// Retries while the error is temporary and the timeout is not over.
async fn with_retries<T: Send + 'static>(
    address: &SecretUrl,
    open: impl Fn(&str) -> Result<T, postgres::PgOpenError> + Clone + Send + 'static,
) -> Result<T, Failure> {
    let started = Instant::now();
    let (mut attempts, mut backoff) = (0, BACKOFF);
    loop {
        let (once, to) = (open.clone(), address.clone());
        match run_blocking(move || once(to.expose())).await? {
            Err(error) if error.may_pass() && started.elapsed() < STORE_TIMEOUT => {
                if attempts % ATTEMPTS_PER_LOG_LINE == 0 {
                    let left = STORE_TIMEOUT.saturating_sub(started.elapsed()).as_secs();
                    tracing::warn!(store = %address, %error, seconds_left = left, "waiting for the store");
                }
                attempts += 1;
                tokio::time::sleep(backoff.next_delay()).await;
            }
            result => return Ok(result?),
        }
    }
}

/// Returns the host name, if the system knows it.
fn hostname() -> String {
    #[cfg(unix)]
    return rustix::system::uname().nodename().to_string_lossy().into_owned();
    #[cfg(not(unix))]
    return std::env::var("COMPUTERNAME").unwrap_or_default();
}

/// Runs blocking work on a thread of its own.
async fn run_blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Failure> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|panic| Failure::Start(io::Error::other(panic)))
}
