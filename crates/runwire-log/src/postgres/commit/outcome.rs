//! The unknown outcome: the answer to a COMMIT was lost, and the store is asked what became of it.
//!
//! Postgres remembers the outcome of each transaction id. But after a crash it may reuse the id of a lost one. So
//! "committed" counts only if something is found that the transaction has written.
//!
//! An optimistic transaction may not even have begun, and has no known id. But it is valid only for the versions that
//! its threads had: if these are unchanged they are changed now, so that it can never commit.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use runwire_model::Timestamp;
use tokio_postgres::error::SqlState;

use super::write_set::WriteSet;
use super::{COMMIT_BACKOFF, Committed, version};
use crate::limits;
use crate::postgres::connection::{Params, PgConnection};
use crate::postgres::error::{PgError, PgResult};
use crate::postgres::rows::time;
use crate::postgres::txn_store::NOW;
use crate::postgres::writer::PgWriter;

/// A transaction that is being committed, with what proves its outcome.
pub(super) struct CommitAttempt {
    pub(super) proof: OutcomeProof,
    pub(super) write_set: WriteSet,
}

/// What proves the outcome of a commit.
pub(super) enum OutcomeProof {
    /// The id of a transaction that holds its locks.
    Transaction(String),
    /// The versions that the threads of an optimistic transaction had before, in the order of their numbers.
    Versions { threads: Vec<i64>, versions: Vec<i64> },
}

/// The outcome of a commit.
pub(super) enum CommitOutcome {
    Committed(Committed),
    /// Nothing was written, and nothing will be.
    Aborted,
    /// It cannot be found out, for this reason.
    Unknown(String),
}

impl OutcomeProof {
    /// Makes the proof of an optimistic transaction.
    pub(super) fn versions(versions: &HashMap<i64, i64>) -> Self {
        let (threads, versions) = versions.iter().collect::<BTreeMap<_, _>>().into_iter().unzip();
        Self::Versions { threads, versions }
    }
}

impl CommitAttempt {
    /// Writes and commits; returns the store's time if the transaction begins with it.
    ///
    /// An optimistic transaction begins here: it locks the threads and checks their versions first.
    pub(super) fn commit(&self, connection: &PgConnection) -> PgResult<Option<Timestamp>> {
        let OutcomeProof::Versions { threads, versions } = &self.proof else {
            return self.write_set.commit(None, connection).map(|_| None);
        };
        // Division by zero is an error, which fails the rest of the transaction.
        let check = format!(
            "SELECT {NOW} / (coalesce(array_agg(version ORDER BY id), '{{}}') = $2::bigint[])::int FROM \
             (SELECT id, version FROM thread WHERE id = ANY($1) ORDER BY id FOR UPDATE) AS held"
        );
        let params: Params<'_> = &[threads, versions];
        match self.write_set.commit(Some((&check, params)), connection) {
            Err(PgError::Postgres(error)) if error.code() == Some(&SqlState::DIVISION_BY_ZERO) => {
                Err(PgError::Conflict)
            }
            // It is committed, whatever the row says.
            row => Ok(row?.map(|row| time(&row, 0))),
        }
    }

    /// Queries the outcome; returns `None` while the transaction is in progress.
    fn query_outcome(&self, connection: &PgConnection) -> PgResult<Option<CommitOutcome>> {
        let transaction = match &self.proof {
            OutcomeProof::Transaction(transaction) => transaction,
            OutcomeProof::Versions { threads, versions } => {
                connection.run("BEGIN")?;
                let outcome = self.settle_versions(connection, threads, versions);
                match &outcome {
                    Ok(_) => connection.run("COMMIT")?,
                    // If this fails, too, the connection is gone, and with it the transaction.
                    Err(_) => drop(connection.run("ROLLBACK")),
                }
                return outcome.map(Some);
            }
        };
        let sql = "SELECT pg_xact_status($1::text::xid8)";
        let status = match connection.one(sql, &[transaction]) {
            Ok(row) => row.get::<_, Option<String>>(0),
            // An id that was not assigned yet: Postgres has lost the transaction, and all that followed.
            Err(PgError::Postgres(error)) if error.code().is_some_and(|code| code.code() == "22023") => {
                return Ok(Some(CommitOutcome::Aborted));
            }
            Err(failure) => return Err(failure),
        };
        Ok(match status.as_deref() {
            Some("in progress") => None,
            Some("aborted") => Some(CommitOutcome::Aborted),
            Some("committed") if self.write_set.was_committed(connection)? => {
                Some(CommitOutcome::Committed(Committed(())))
            }
            Some("committed") => Some(CommitOutcome::Unknown(OVERWRITTEN.into())),
            _ => Some(CommitOutcome::Unknown("the store has forgotten the transaction".into())),
        })
    }

    /// Locks the threads of an optimistic transaction, and makes sure that it never commits, unless it has.
    fn settle_versions(
        &self,
        connection: &PgConnection,
        threads: &Vec<i64>,
        versions: &[i64],
    ) -> PgResult<CommitOutcome> {
        let sql = "SELECT id, version FROM thread WHERE id = ANY($1) ORDER BY id FOR UPDATE";
        let held = connection.query(sql, &[threads])?;
        let held: HashMap<i64, i64> = held.iter().map(|row| (row.get(0), row.get(1))).collect();
        // A transaction changes all of them or none.
        let changed = self.write_set.changed();
        let mut changed = threads.iter().zip(versions).filter(|(thread, _)| changed.contains(thread));
        let unchanged = changed.find(|(thread, version)| held.get(thread) == Some(version));
        Ok(match unchanged {
            _ if self.write_set.was_committed(connection)? => CommitOutcome::Committed(Committed(())),
            Some((thread, _)) => {
                // A commit that is still in flight finds another version.
                let version = version::draw();
                connection.execute("UPDATE thread SET version = $2 WHERE id = $1", &[thread, &version])?;
                CommitOutcome::Aborted
            }
            None if self.write_set.would_be_visible(connection)? => CommitOutcome::Aborted,
            None => CommitOutcome::Unknown(OVERWRITTEN.into()),
        })
    }
}

const OVERWRITTEN: &str = "others have overwritten what would prove it";

impl PgWriter {
    /// Finds out the outcome of a commit. Nothing else is committed meanwhile.
    pub(super) fn resolve_outcome(&mut self, attempt: &CommitAttempt) -> CommitOutcome {
        if attempt.write_set.is_empty() {
            return match attempt.proof {
                OutcomeProof::Transaction(_) => CommitOutcome::Committed(Committed(())),
                // Whether its versions were current is not known.
                OutcomeProof::Versions { .. } => CommitOutcome::Aborted,
            };
        }
        let until = Instant::now() + Duration::from_millis(limits::STORE_OUTCOME_MILLIS);
        let mut backoff = COMMIT_BACKOFF;
        let mut is_connected = false;
        loop {
            let outcome = match is_connected {
                true => Ok(()),
                false => self.reconnect(),
            };
            let outcome = outcome.and_then(|()| attempt.query_outcome(&self.txn.store.connection));
            is_connected = outcome.is_ok();
            let why = match outcome {
                Ok(Some(outcome)) => return outcome,
                Ok(None) => "the store is still busy with it".to_owned(),
                Err(failure) if failure.is_unavailable() || failure.is_conflict() => failure.to_string(),
                Err(failure) => return CommitOutcome::Unknown(failure.to_string()),
            };
            if Instant::now() >= until {
                return CommitOutcome::Unknown(why);
            }
            std::thread::sleep(backoff.next_delay());
        }
    }
}
