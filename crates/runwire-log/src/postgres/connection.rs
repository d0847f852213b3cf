//! A connection that is used from one thread at a time, which waits for it.
//!
//! The verbs and the reads are synchronous. So a connection brings the runtime that drives it, and no other thread
//! has to be woken for an answer.

use std::cell::RefCell;
use std::collections::HashMap;

use tokio::runtime::{Builder, Runtime};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Config, NoTls, Row, Statement};

use super::failure::{Db, Failure};

/// What a statement is given.
pub(super) type By<'a> = &'a [&'a (dyn ToSql + Sync)];

pub(super) struct Connection {
    /// Always there, until the connection is dropped.
    runtime: Option<Runtime>,
    client: Client,
    statements: RefCell<HashMap<String, Statement>>,
}

impl Connection {
    /// Connects, and waits for it.
    pub(super) fn open(config: &Config) -> Db<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let (client, connection) = runtime.block_on(config.connect(NoTls))?;
        runtime.spawn(async move {
            if let Err(error) = connection.await {
                tracing::warn!(%error, "a connection to the store has ended");
            }
        });
        Ok(Self { runtime: Some(runtime), client, statements: RefCell::default() })
    }

    /// Tells whether it can be used no more.
    pub(super) fn is_closed(&self) -> bool {
        self.client.is_closed()
    }

    /// Runs statements that give nothing.
    pub(super) fn run(&self, sql: &str) -> Db<()> {
        Ok(self.wait(self.client.batch_execute(sql))?)
    }

    /// Runs a statement, and counts the rows that it has changed.
    pub(super) fn execute(&self, sql: &str, by: By<'_>) -> Db<u64> {
        let statement = self.prepared(sql)?;
        Ok(self.wait(self.client.execute(&statement, by))?)
    }

    /// Reads rows.
    pub(super) fn query(&self, sql: &str, by: By<'_>) -> Db<Vec<Row>> {
        let statement = self.prepared(sql)?;
        Ok(self.wait(self.client.query(&statement, by))?)
    }

    /// Reads the first row, if there is one.
    pub(super) fn first(&self, sql: &str, by: By<'_>) -> Db<Option<Row>> {
        Ok(self.query(sql, by)?.into_iter().next())
    }

    /// Reads a row that must be there.
    pub(super) fn one(&self, sql: &str, by: By<'_>) -> Db<Row> {
        self.first(sql, by)?.ok_or_else(|| Failure::Damaged("a row is missing".into()))
    }

    fn prepared(&self, sql: &str) -> Db<Statement> {
        if let Some(statement) = self.statements.borrow().get(sql) {
            return Ok(statement.clone());
        }
        let statement = self.wait(self.client.prepare(sql))?;
        self.statements.borrow_mut().insert(sql.to_owned(), statement.clone());
        Ok(statement)
    }

    fn wait<F: Future>(&self, work: F) -> F::Output {
        match &self.runtime {
            Some(runtime) => runtime.block_on(work),
            None => unreachable!("only dropping takes the runtime away"),
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // Also where waiting is not allowed.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
