//! Finds out the outcome of a commit whose answer was lost.
//!
//! Postgres remembers the outcome of each transaction id. But after a crash it may reuse the id of a lost one. So
//! "committed" counts only if something is found that the transaction has written.
//!
//! An optimistic transaction may not even have begun, and has no known id. But it is valid only for the versions that
//! its threads had: if these are unchanged they are changed now, so that it can never commit.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use runwire_model::Timestamp;

use super::commit::CommitBackoff;
use super::connection::PgConnection;
use super::error::{PgError, PgResult};
use super::optimistic::ExpectedVersions;
use super::txn_store::PgTxnStore;
use super::write_set::WriteSet;
use super::writer::PgWriter;
use crate::limits;
use crate::txn::Heads;

/// A transaction that is being committed, with what proves its outcome.
pub(super) struct CommitAttempt {
    proof: OutcomeProof,
    write_set: WriteSet,
}

/// What proves the outcome of a commit.
enum OutcomeProof {
    /// Its transaction id.
    Number(String),
    /// The versions that its threads had before.
    Versions(ExpectedVersions),
}

/// The outcome of a commit.
pub(super) enum CommitOutcome {
    Committed,
    /// Nothing was written.
    Aborted,
    /// It cannot be found out, for this reason.
    Unknown(String),
}

impl CommitAttempt {
    pub(super) fn new(transaction: String, write_set: WriteSet) -> Self {
        Self { proof: OutcomeProof::Number(transaction), write_set }
    }

    /// Makes an optimistic transaction.
    pub(super) fn optimistic(versions: HashMap<i64, i64>, write_set: WriteSet) -> Self {
        Self { proof: OutcomeProof::Versions(ExpectedVersions::new(versions)), write_set }
    }

    /// Writes and commits; returns the store's time if the transaction begins with it.
    pub(super) fn commit(&self, connection: &PgConnection) -> PgResult<Option<Timestamp>> {
        match &self.proof {
            OutcomeProof::Number(_) => self.write_set.commit(connection).map(|()| None),
            OutcomeProof::Versions(versions) => versions.commit(connection, &self.write_set),
        }
    }

    /// Caches the heads after the commit.
    pub(super) fn cache_heads(&self, store: &PgTxnStore, heads: Heads) {
        store.cache_heads(heads, &self.write_set.changed(), self.write_set.version);
    }

    /// Queries the outcome; returns `None` while the transaction is in progress.
    fn query_outcome(&self, connection: &PgConnection) -> PgResult<Option<CommitOutcome>> {
        let transaction = match &self.proof {
            OutcomeProof::Number(transaction) => transaction,
            OutcomeProof::Versions(versions) => {
                return Ok(Some(match versions.resolve(connection, &self.write_set)? {
                    Some(true) => CommitOutcome::Committed,
                    Some(false) => CommitOutcome::Aborted,
                    None => CommitOutcome::Unknown("others have overwritten what would prove it".into()),
                }));
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
            Some("committed") if self.write_set.was_committed(connection)? => Some(CommitOutcome::Committed),
            Some("committed") => {
                Some(CommitOutcome::Unknown("others have overwritten what would prove it".into()))
            }
            _ => Some(CommitOutcome::Unknown("the store has forgotten the transaction".into())),
        })
    }
}

impl PgWriter {
    /// Finds out the outcome of a commit.
    pub(super) fn resolve_outcome(&mut self, attempt: &CommitAttempt) -> CommitOutcome {
        if attempt.write_set.is_empty() {
            return match attempt.proof {
                OutcomeProof::Number(_) => CommitOutcome::Committed,
                // Whether its versions were current is not known.
                OutcomeProof::Versions(_) => CommitOutcome::Aborted,
            };
        }
        let until = Instant::now() + Duration::from_millis(limits::STORE_OUTCOME_MILLIS);
        let mut backoff = CommitBackoff::default();
        loop {
            let resolved = self.reconnect().and_then(|()| self.poll_outcome(attempt, until, &mut backoff));
            let failure = match resolved {
                Ok(outcome) => return outcome,
                Err(failure) => failure,
            };
            let may_pass = failure.is_unavailable() || failure.is_conflict();
            if !may_pass || Instant::now() >= until {
                return CommitOutcome::Unknown(failure.to_string());
            }
            backoff.wait();
        }
    }

    fn poll_outcome(
        &self,
        attempt: &CommitAttempt,
        until: Instant,
        backoff: &mut CommitBackoff,
    ) -> PgResult<CommitOutcome> {
        loop {
            if let Some(outcome) = attempt.query_outcome(&self.txn.store.connection)? {
                return Ok(outcome);
            }
            if Instant::now() >= until {
                return Ok(CommitOutcome::Unknown("the store is still busy with it".into()));
            }
            backoff.wait();
        }
    }
}
