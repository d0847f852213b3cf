//! What became of a commit whose answer was lost.
//!
//! The store remembers what became of each transaction. But after a crash it may give the number of one that was lost
//! to another. So that a transaction is said to be committed counts only where something is found that it has written.

use std::time::{Duration, Instant};

use super::commit::Pause;
use super::connection::Connection;
use super::failure::{Db, Failure};
use super::flush::Flushed;
use super::tables::Tables;
use super::writer::Writer;
use crate::limits;
use crate::work::Heads;

/// A transaction that is committed, or not.
pub(super) struct Doubt {
    /// Its number.
    transaction: String,
    flushed: Flushed,
}

/// What became of it.
pub(super) enum Settled {
    Committed,
    /// Nothing was written.
    Aborted,
    /// It cannot be found out, and why.
    Unknown(String),
}

impl Doubt {
    pub(super) fn new(transaction: String, flushed: Flushed) -> Self {
        Self { transaction, flushed }
    }

    /// Writes what it is about, and commits it.
    pub(super) fn commit(&self, connection: &Connection) -> Db<()> {
        self.flushed.commit(connection)
    }

    /// Keeps the heads that it has left, once it is committed.
    pub(super) fn keep(&self, tables: &Tables, heads: Heads) {
        tables.keep(heads, &self.flushed.changed(), self.flushed.version);
    }

    /// Looks what became of it; nothing while it is still under way.
    fn look(&self, connection: &Connection) -> Db<Option<Settled>> {
        let sql = "SELECT pg_xact_status($1::text::xid8)";
        let status = match connection.one(sql, &[&self.transaction]) {
            Ok(row) => row.get::<_, Option<String>>(0),
            // A number that was not given yet: where it was, the store has lost all that followed.
            Err(Failure::Postgres(error)) if error.code().is_some_and(|code| code.code() == "22023") => {
                return Ok(Some(Settled::Aborted));
            }
            Err(failure) => return Err(failure),
        };
        Ok(match status.as_deref() {
            Some("in progress") => None,
            Some("aborted") => Some(Settled::Aborted),
            Some("committed") if self.flushed.is_found(connection)? => Some(Settled::Committed),
            Some("committed") => Some(Settled::Unknown("others have written over what would tell it".into())),
            _ => Some(Settled::Unknown("the store has forgotten the transaction".into())),
        })
    }
}

impl Writer {
    /// Finds out what became of a transaction.
    pub(super) fn settle(&mut self, doubt: &Doubt) -> Settled {
        if doubt.flushed.is_empty() {
            return Settled::Committed;
        }
        let until = Instant::now() + Duration::from_millis(limits::STORE_DOUBT_MILLIS);
        let mut pause = Pause::default();
        loop {
            let looked = self.reconnect().and_then(|()| self.look(doubt, until, &mut pause));
            let failure = match looked {
                Ok(settled) => return settled,
                Err(failure) => failure,
            };
            if !failure.is_away() || Instant::now() >= until {
                return Settled::Unknown(failure.to_string());
            }
            pause.wait();
        }
    }

    fn look(&self, doubt: &Doubt, until: Instant, pause: &mut Pause) -> Db<Settled> {
        loop {
            if let Some(settled) = doubt.look(&self.work.store.connection)? {
                return Ok(settled);
            }
            if Instant::now() >= until {
                return Ok(Settled::Unknown("the store is still busy with it".into()));
            }
            pause.wait();
        }
    }
}
