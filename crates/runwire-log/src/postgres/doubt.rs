//! What became of a commit whose answer was lost.
//!
//! The store remembers what became of each transaction. But after a crash it may give the number of one that was lost
//! to another. So that a transaction is said to be committed counts only where something is found that it has written.
//!
//! One that was worked out ahead may not even have begun, and has no number. But it holds only for the versions that its
//! threads had: where these are still the same they are changed, so that it can never be committed.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use runwire_model::Timestamp;

use super::ahead::Versions;
use super::commit::Pause;
use super::connection::Connection;
use super::failure::{Db, Failure};
use super::flush::Flushed;
use super::tables::Tables;
use super::writer::Writer;
use crate::limits;
use crate::txn::Heads;

/// A transaction that is committed, or not.
pub(super) struct Doubt {
    proof: Proof,
    flushed: Flushed,
}

/// What tells which of both.
enum Proof {
    /// Its number.
    Number(String),
    /// The versions that its threads had before.
    Versions(Versions),
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
        Self { proof: Proof::Number(transaction), flushed }
    }

    /// A transaction that is worked out before anything is locked.
    pub(super) fn ahead(versions: HashMap<i64, i64>, flushed: Flushed) -> Self {
        Self { proof: Proof::Versions(Versions::new(versions)), flushed }
    }

    /// Writes what it is about, and commits it; tells the store's time where it begins with that.
    pub(super) fn commit(&self, connection: &Connection) -> Db<Option<Timestamp>> {
        match &self.proof {
            Proof::Number(_) => self.flushed.commit(connection).map(|()| None),
            Proof::Versions(versions) => versions.commit(connection, &self.flushed),
        }
    }

    /// Keeps the heads that it has left, once it is committed.
    pub(super) fn keep(&self, tables: &Tables, heads: Heads) {
        tables.keep(heads, &self.flushed.changed(), self.flushed.version);
    }

    /// Looks what became of it; nothing while it is still under way.
    fn look(&self, connection: &Connection) -> Db<Option<Settled>> {
        let transaction = match &self.proof {
            Proof::Number(transaction) => transaction,
            Proof::Versions(versions) => {
                return Ok(Some(match versions.settle(connection, &self.flushed)? {
                    Some(true) => Settled::Committed,
                    Some(false) => Settled::Aborted,
                    None => Settled::Unknown("others have written over what would tell it".into()),
                }));
            }
        };
        let sql = "SELECT pg_xact_status($1::text::xid8)";
        let status = match connection.one(sql, &[transaction]) {
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
            return match doubt.proof {
                Proof::Number(_) => Settled::Committed,
                // Whether it still held is not known.
                Proof::Versions(_) => Settled::Aborted,
            };
        }
        let until = Instant::now() + Duration::from_millis(limits::STORE_DOUBT_MILLIS);
        let mut pause = Pause::default();
        loop {
            let looked = self.reconnect().and_then(|()| self.look(doubt, until, &mut pause));
            let failure = match looked {
                Ok(settled) => return settled,
                Err(failure) => failure,
            };
            let may_pass = failure.is_away() || failure.is_race();
            if !may_pass || Instant::now() >= until {
                return Settled::Unknown(failure.to_string());
            }
            pause.wait();
        }
    }

    fn look(&self, doubt: &Doubt, until: Instant, pause: &mut Pause) -> Db<Settled> {
        loop {
            if let Some(settled) = doubt.look(&self.txn.store.connection)? {
                return Ok(settled);
            }
            if Instant::now() >= until {
                return Ok(Settled::Unknown("the store is still busy with it".into()));
            }
            pause.wait();
        }
    }
}
