//! The store of a cluster passes the suite.

mod failures;
mod faults;
mod health;
mod optimistic;
mod query_plans;
mod readers;
mod shared_threads;
mod tls;

use std::sync::Arc;

use async_trait::async_trait;
use runwire_log::Log;
use runwire_log::conformance::{Bed, Timing};
use runwire_log::postgres::{PgOptions, PostgresLog};

/// Opens a store. That waits, which a thread of the runtime must not.
async fn open(url: String, options: PgOptions) -> Arc<PostgresLog> {
    let opened = tokio::task::spawn_blocking(move || PostgresLog::open(&url, &options).unwrap());
    Arc::new(opened.await.unwrap())
}

/// A server that a test has for itself.
pub(crate) struct PostgresBed {
    server: runwire_engines::Postgres,
}

impl PostgresBed {
    pub(crate) fn new() -> Self {
        Self { server: runwire_engines::Postgres::start().unwrap() }
    }
}

#[async_trait]
impl Bed for PostgresBed {
    async fn open(&self, timing: Timing) -> Arc<dyn Log> {
        let options =
            PgOptions { lease: timing.lease, cancel_grace: timing.cancel_grace, ..PgOptions::default() };
        open(self.server.url("postgres"), options).await
    }

    async fn reopen(&self, log: Arc<dyn Log>, timing: Timing) -> Arc<dyn Log> {
        log.close().await;
        drop(log);
        self.open(timing).await
    }
}

runwire_log::log_conformance!(PostgresBed::new());
