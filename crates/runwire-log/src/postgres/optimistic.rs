//! Optimistic commit: commands are executed on cached heads before anything is locked, and the commit checks that
//! they were current.
//!
//! Everything is sent to Postgres at once: locks of all threads in the order of their numbers, a check that each
//! still has its cached version, the writes, the commit. If another node has written meanwhile, the check fails and
//! with it the whole transaction; the commands are executed again, with locks taken first.

use std::collections::{BTreeMap, HashMap};

use runwire_model::Timestamp;
use tokio_postgres::error::SqlState;

use super::commit::{AttemptError, QueuedCommand};
use super::commit_outcome::CommitAttempt;
use super::connection::{Params, PgConnection};
use super::error::{PgError, PgResult};
use super::rows::time;
use super::txn_store::{NOW, PgTxnStore};
use super::write_set::WriteSet;
use super::writer::PgWriter;
use crate::key::{RunKey, ThreadKey};

/// Number of pessimistic commits after a conflict.
const PESSIMISTIC_COMMITS: u32 = 16;

impl PgTxnStore {
    /// Begins an optimistic transaction and returns its time, if all named threads and runs are cached.
    fn try_optimistic(&mut self, threads: &[&ThreadKey], runs: &[&RunKey]) -> Option<Timestamp> {
        let now = self.clock?.now()?;
        let mut versions = HashMap::with_capacity(runs.len());
        {
            let cache = self.cache.borrow();
            for key in threads {
                let thread = cache.thread_id(key)?;
                versions.insert(thread, cache.version_of(thread)?);
            }
            for key in runs {
                let location = cache.run_location(key).filter(|location| cache.has_run(location.run))?;
                versions.insert(location.thread, cache.version_of(location.thread)?);
            }
        }
        self.reset();
        self.locked.replace(versions);
        self.is_optimistic = true;
        Some(now)
    }
}

impl PgWriter {
    /// Executes and commits commands optimistically; returns whether that was possible.
    pub(super) fn try_optimistic(&mut self, group: &mut [QueuedCommand]) -> Result<bool, AttemptError> {
        if self.pessimistic_commits > 0 || group.iter().any(|request| !request.command.continues_run()) {
            self.pessimistic_commits = self.pessimistic_commits.saturating_sub(1);
            return Ok(false);
        }
        let (threads, runs): (Vec<_>, Vec<_>) = group.iter().map(|request| request.command.keys()).unzip();
        let threads: Vec<_> = threads.iter().flatten().collect();
        let runs: Vec<_> = runs.iter().flatten().collect();
        let Some(now) = self.txn.store.try_optimistic(&threads, &runs) else { return Ok(false) };
        self.txn.now = now;
        let done = self.execute_optimistic(group);
        self.txn.store.is_optimistic = false;
        match done {
            Ok(()) => Ok(true),
            // Damage may be an illusion: other nodes may have written meanwhile.
            Err(AttemptError::Failed(PgError::NotCached | PgError::Damaged(_))) => {
                self.txn.forget();
                Ok(false)
            }
            Err(AttemptError::Failed(PgError::Conflict)) => {
                self.address.counters.retried();
                self.txn.forget();
                self.pessimistic_commits = PESSIMISTIC_COMMITS;
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    fn execute_optimistic(&mut self, group: &mut [QueuedCommand]) -> Result<(), AttemptError> {
        for request in group {
            self.txn.execute(&mut request.command)?;
        }
        let versions = self.txn.store.locked.borrow().clone();
        let attempt = CommitAttempt::optimistic(versions, WriteSet::collect(&mut self.txn, self.terms)?);
        self.commit_attempt(attempt)
    }
}

/// The versions that threads must have at the commit, in the order of their numbers.
pub(super) struct ExpectedVersions {
    threads: Vec<i64>,
    versions: Vec<i64>,
}

impl ExpectedVersions {
    pub(super) fn new(versions: HashMap<i64, i64>) -> Self {
        let versions: BTreeMap<_, _> = versions.into_iter().collect();
        let (threads, versions) = versions.into_iter().unzip();
        Self { threads, versions }
    }

    /// Locks the threads, checks their versions, writes and commits; returns the store's time.
    pub(super) fn commit(
        &self,
        connection: &PgConnection,
        write_set: &WriteSet,
    ) -> PgResult<Option<Timestamp>> {
        // Division by zero is an error, which fails the rest of the transaction.
        let check = format!(
            "SELECT {NOW} / (coalesce(array_agg(version ORDER BY id), '{{}}') = $2::bigint[])::int FROM \
             (SELECT id, version FROM thread WHERE id = ANY($1) ORDER BY id FOR UPDATE) AS held"
        );
        let params: Params<'_> = &[&self.threads, &self.versions];
        let row = write_set.commit_after((&check, params), connection);
        let row = row.map_err(|failure| match failure {
            PgError::Postgres(error) if error.code() == Some(&SqlState::DIVISION_BY_ZERO) => {
                PgError::Conflict
            }
            failure => failure,
        })?;
        // It is committed, whatever the row says.
        Ok(row.map(|row| time(&row, 0)))
    }

    /// Makes sure that the transaction never commits, unless it has; returns whether it has, or `None` if that cannot
    /// be found out any more.
    pub(super) fn resolve(&self, connection: &PgConnection, write_set: &WriteSet) -> PgResult<Option<bool>> {
        connection.run("BEGIN")?;
        let outcome = self.resolve_locked(connection, write_set);
        match &outcome {
            Ok(_) => connection.run("COMMIT")?,
            // If this fails, too, the connection is gone, and with it the transaction.
            Err(_) => drop(connection.run("ROLLBACK")),
        }
        outcome
    }

    fn resolve_locked(&self, connection: &PgConnection, write_set: &WriteSet) -> PgResult<Option<bool>> {
        let sql = "SELECT id, version FROM thread WHERE id = ANY($1) ORDER BY id FOR UPDATE";
        let versions = connection.query(sql, &[&self.threads])?;
        let versions: HashMap<i64, i64> = versions.iter().map(|row| (row.get(0), row.get(1))).collect();
        // A transaction changes all of them or none.
        let changed = write_set.changed();
        let mut changed =
            self.threads.iter().zip(&self.versions).filter(|(thread, _)| changed.contains(thread));
        let unchanged = changed.find(|(thread, version)| versions.get(thread) == Some(version));
        Ok(match unchanged {
            _ if write_set.was_committed(connection)? => Some(true),
            Some((thread, _)) => {
                // A commit that is still in flight finds another version.
                let version = fastrand::i64(1..i64::MAX / 2);
                connection.execute("UPDATE thread SET version = $2 WHERE id = $1", &[thread, &version])?;
                Some(false)
            }
            None => write_set.would_be_visible(connection)?.then_some(false),
        })
    }
}
