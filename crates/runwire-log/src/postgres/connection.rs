//! A blocking connection to Postgres, used from one thread at a time.
//!
//! Commands and reads are synchronous. So a connection brings the runtime that drives it, and no other thread has to
//! be woken for an answer. Every answer has a timeout, which costs the connection.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{OptionFuture, join_all, join3};
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Config, Row, Statement};

use super::address::PgAddress;
use super::connection_counters::ConnectionCounters;
use super::error::{PgError, PgResult};
use crate::limits;

/// Time to read an answer that has arrived already.
const LATE_ANSWER_GRACE: Duration = Duration::from_millis(100);

/// How long an answer may take.
const ANSWER_TIMEOUT: Duration = Duration::from_millis(limits::STORE_ANSWER_MILLIS);

/// Parameters of a statement.
pub(super) type Params<'a> = &'a [&'a (dyn ToSql + Sync)];

pub(crate) struct PgConnection {
    /// `None` only while it is dropped.
    runtime: Option<Runtime>,
    client: Client,
    statements: RefCell<HashMap<String, Statement>>,
    /// How long an answer may take.
    limit: Option<Duration>,
    state: Cell<State>,
    counters: Arc<ConnectionCounters>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Healthy,
    /// It has ended.
    Broken,
    /// An answer is overdue. It may still come, so nothing else can be sent.
    TimedOut,
}

impl PgConnection {
    /// Connects. Blocks.
    pub(super) fn open(address: &PgAddress) -> PgResult<Self> {
        Self::connect(address, &address.with_limits(), Some(ANSWER_TIMEOUT))
    }

    /// Connects for a writer.
    pub(super) fn open_for_writing(address: &PgAddress) -> PgResult<Self> {
        Self::connect(address, &address.for_writing(), Some(ANSWER_TIMEOUT))
    }

    /// Connects for queries with a timeout of their own.
    pub(super) fn open_within(address: &PgAddress, limit: Duration) -> PgResult<Self> {
        Self::connect(address, &address.with_limits(), Some(limit))
    }

    /// Connects without timeouts.
    pub(super) fn open_without_timeout(address: &PgAddress) -> PgResult<Self> {
        Self::connect(address, &address.config, None)
    }

    fn connect(address: &PgAddress, config: &Config, limit: Option<Duration>) -> PgResult<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let hosts = config.get_hosts().len().max(config.get_hostaddrs().len()).max(1);
        let timeout_after =
            Duration::from_millis(limits::STORE_CONNECT_MILLIS) * u32::try_from(hosts).unwrap_or(1);
        let connecting = async { timeout(timeout_after, config.connect(address.tls.clone())).await };
        let (client, connection) =
            runtime.block_on(connecting).map_err(|_| PgError::Timeout(timeout_after))??;
        runtime.spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection to the store has ended");
            }
        });
        let (statements, state) = (RefCell::default(), Cell::new(State::Healthy));
        address.counters.opened();
        Ok(Self {
            runtime: Some(runtime),
            client,
            statements,
            limit,
            state,
            counters: address.counters.clone(),
        })
    }

    /// Returns whether it is broken or closed.
    pub(super) fn is_closed(&self) -> bool {
        self.state.get() != State::Healthy || self.client.is_closed()
    }

    /// Checks whether the server has closed it since it was last used: nothing polls it in between.
    pub(super) fn poll_closed(&self) {
        // The first poll reads what has arrived, the next ones handle it.
        let polls = async {
            for _ in 0..3 {
                tokio::task::yield_now().await;
            }
        };
        if let Some(runtime) = &self.runtime {
            runtime.block_on(polls);
        }
    }

    /// Returns whether an answer has timed out.
    pub(super) fn has_timed_out(&self) -> bool {
        self.state.get() == State::TimedOut
    }

    /// Runs statements without results.
    pub(super) fn run(&self, sql: &str) -> PgResult<()> {
        self.wait(self.client.batch_execute(sql))
    }

    /// Runs a statement, and returns the number of changed rows.
    pub(super) fn execute(&self, sql: &str, params: Params<'_>) -> PgResult<u64> {
        let statement = self.prepared(sql)?;
        self.wait(self.client.execute(&statement, params))
    }

    /// Reads rows.
    pub(super) fn query(&self, sql: &str, params: Params<'_>) -> PgResult<Vec<Row>> {
        let statement = self.prepared(sql)?;
        self.wait(self.client.query(&statement, params))
    }

    /// Runs several queries in one round trip.
    pub(super) fn query_all(&self, queries: &[(&str, Params<'_>)]) -> PgResult<Vec<Vec<Row>>> {
        self.run_pipelined(None, queries, None)
    }

    /// Runs queries in one round trip, optionally between two statements without results; returns the rows of each.
    ///
    /// They run in order. Within a transaction, all that follow a failed one fail.
    pub(super) fn run_pipelined(
        &self,
        first: Option<&str>,
        queries: &[(&str, Params<'_>)],
        last: Option<&str>,
    ) -> PgResult<Vec<Vec<Row>>> {
        let statements = self.all_prepared(queries)?;
        let queries = statements
            .iter()
            .zip(queries)
            .map(|(statement, (_, params))| self.client.query(statement, params));
        let [first, last] =
            [first, last].map(|sql| OptionFuture::from(sql.map(|sql| self.client.batch_execute(sql))));
        self.wait(async {
            // Futures that are polled in order send in order.
            let (begun, read, ended) = join3(first, join_all(queries), last).await;
            begun.transpose()?;
            let read = read.into_iter().collect::<Result<_, _>>()?;
            ended.transpose()?;
            Ok(read)
        })
    }

    /// Returns the first row, if there is one.
    pub(super) fn first(&self, sql: &str, params: Params<'_>) -> PgResult<Option<Row>> {
        Ok(self.query(sql, params)?.into_iter().next())
    }

    /// Returns a row that must exist.
    pub(super) fn one(&self, sql: &str, params: Params<'_>) -> PgResult<Row> {
        self.first(sql, params)?.ok_or_else(|| PgError::Damaged("a row is missing".into()))
    }

    fn all_prepared(&self, queries: &[(&str, Params<'_>)]) -> PgResult<Vec<Statement>> {
        queries.iter().map(|(sql, _)| self.prepared(sql)).collect()
    }

    fn prepared(&self, sql: &str) -> PgResult<Statement> {
        if let Some(statement) = self.statements.borrow().get(sql) {
            return Ok(statement.clone());
        }
        let statement = self.wait(self.client.prepare(sql))?;
        self.statements.borrow_mut().insert(sql.to_owned(), statement.clone());
        Ok(statement)
    }

    fn wait<T>(&self, work: impl Future<Output = Result<T, tokio_postgres::Error>>) -> PgResult<T> {
        let Some(runtime) = self.runtime.as_ref().filter(|_| self.state.get() == State::Healthy) else {
            return Err(PgError::Broken);
        };
        let done = match self.limit {
            None => runtime.block_on(work),
            Some(limit) => match runtime.block_on(within(limit, work)) {
                Some(done) => done,
                None => {
                    self.state.set(State::TimedOut);
                    return Err(PgError::Timeout(limit));
                }
            },
        };
        done.map_err(|error| {
            let failure = PgError::Postgres(error);
            if failure.has_ended_connection() {
                self.state.set(State::Broken);
            }
            failure
        })
    }
}

/// Waits for an answer, with some grace: if this process was paused, the answer is there and was not read.
async fn within<T>(limit: Duration, work: impl Future<Output = T>) -> Option<T> {
    let mut work = pin!(work);
    match timeout(limit, &mut work).await {
        Ok(done) => Some(done),
        Err(_) => timeout(LATE_ANSWER_GRACE, work).await.ok(),
    }
}

impl Drop for PgConnection {
    fn drop(&mut self) {
        self.counters.closed(self.is_closed());
        // Works also in async contexts, where blocking is not allowed.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
