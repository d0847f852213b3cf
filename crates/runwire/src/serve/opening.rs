//! Opening the store, and waiting for one that is not there yet: nodes are often started before their database.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use runwire_log::postgres::{self, PostgresLog};
use runwire_log::sqlite::{self, SqliteLog};
use runwire_log::{Log, Migrated};

use super::{end_at_once, end_with_this_life};
use crate::config::{Address, Settings, Store, Tail};
use crate::failure::Failure;

/// How long a store that cannot be reached is waited for.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long it is left alone between two tries.
const PAUSE: Duration = Duration::from_secs(1);
/// How many tries in vain are told of once.
const TRIES_A_LINE: u32 = 5;

/// Opens the store that is configured.
pub(super) async fn open(settings: &Settings) -> Result<Arc<dyn Log>, Failure> {
    match settings.store.clone() {
        Store::Sqlite(path) => {
            let options = sqlite::SqliteOptions {
                lease: settings.lease,
                cancel_grace: settings.cancel_grace,
                fatal: Arc::new(end_at_once),
                ..sqlite::SqliteOptions::default()
            };
            Ok(Arc::new(apart(move || SqliteLog::open(&path, options)).await??))
        }
        Store::Postgres(address) => {
            let options = postgres::PgOptions {
                lease: settings.lease,
                cancel_grace: settings.cancel_grace,
                node_name: machine(),
                tail: settings.tail.as_ref().map(Tail::options),
                fatal: Arc::new(end_with_this_life),
                ..postgres::PgOptions::default()
            };
            let opened = patiently(&address, move |url| PostgresLog::open(url, &options)).await?;
            Ok(Arc::new(opened))
        }
    }
}

/// Migrates the store, and tells which versions it had and has.
pub(crate) async fn migrate(store: &Store) -> Result<Migrated, Failure> {
    match store.clone() {
        Store::Sqlite(path) => Ok(apart(move || SqliteLog::migrate(&path)).await??),
        Store::Postgres(address) => patiently(&address, PostgresLog::migrate).await,
    }
}

/// Tries until the store is there, as long as waiting may help.
async fn patiently<T: Send + 'static>(
    address: &Address,
    open: impl Fn(&str) -> Result<T, postgres::PgOpenError> + Clone + Send + 'static,
) -> Result<T, Failure> {
    let began = Instant::now();
    let mut tries = 0;
    loop {
        let (once, to) = (open.clone(), address.clone());
        match apart(move || once(to.whole())).await? {
            Err(error) if error.may_pass() && began.elapsed() < PATIENCE => {
                if tries % TRIES_A_LINE == 0 {
                    let left = PATIENCE.saturating_sub(began.elapsed()).as_secs();
                    tracing::warn!(store = %address, %error, seconds_left = left, "waiting for the store");
                }
                tries += 1;
                tokio::time::sleep(PAUSE).await;
            }
            result => return Ok(result?),
        }
    }
}

/// Tells what people call this machine, where the system knows it.
fn machine() -> String {
    #[cfg(unix)]
    return rustix::system::uname().nodename().to_string_lossy().into_owned();
    #[cfg(not(unix))]
    return std::env::var("COMPUTERNAME").unwrap_or_default();
}

/// Does what blocks where it stops nobody.
async fn apart<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Failure> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|panic| Failure::Start(io::Error::other(panic)))
}
