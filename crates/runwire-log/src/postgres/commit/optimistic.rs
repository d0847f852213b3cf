//! The optimistic state: commands are executed on cached heads before anything is locked, and the commit checks that
//! they were current.
//!
//! Everything is sent to Postgres at once: locks of all threads in the order of their numbers, a check that each
//! still has its cached version, the writes, the commit. If another node has written meanwhile, the check fails and
//! with it the whole transaction; the commands are executed again, with locks taken first.

use std::collections::HashMap;

use runwire_model::Timestamp;

use super::outcome::{CommitAttempt, OutcomeProof};
use super::write_set::WriteSet;
use super::{AttemptError, Committed, Group};
use crate::key::{RunKey, ThreadKey};
use crate::postgres::error::PgError;
use crate::postgres::txn_store::PgTxnStore;
use crate::postgres::writer::PgWriter;

/// Number of commits with locks after a conflict.
const PESSIMISTIC_COMMITS: u32 = 16;

impl PgWriter {
    /// Executes and commits commands optimistically; returns `None` if that is not possible.
    pub(super) fn commit_optimistically(
        &mut self,
        group: &mut Group,
    ) -> Result<Option<Committed>, AttemptError> {
        if self.pessimistic_commits > 0 || group.iter().any(|request| !request.command.continues_run()) {
            self.pessimistic_commits = self.pessimistic_commits.saturating_sub(1);
            return Ok(None);
        }
        let (threads, runs): (Vec<_>, Vec<_>) = group.iter().map(|request| request.command.keys()).unzip();
        let threads: Vec<_> = threads.iter().flatten().collect();
        let runs: Vec<_> = runs.iter().flatten().collect();
        let Some(now) = self.txn.store.begin_optimistic(&threads, &runs) else { return Ok(None) };
        self.txn.now = now;
        let executed = group.iter_mut().try_for_each(|request| self.txn.execute(&mut request.command));
        let done = executed.and_then(|()| WriteSet::collect(&mut self.txn, self.terms));
        let done = done.map_err(AttemptError::from).and_then(|write_set| {
            let proof = OutcomeProof::versions(&self.txn.store.locked.borrow());
            self.finish(CommitAttempt { proof, write_set })
        });
        self.txn.store.is_optimistic = false;
        match done {
            Ok(committed) => Ok(Some(committed)),
            // Damage may be an illusion: other nodes may have written meanwhile.
            Err(AttemptError::Failed(PgError::NotCached | PgError::Damaged(_))) => {
                self.txn.forget();
                Ok(None)
            }
            Err(AttemptError::Failed(PgError::Conflict)) => {
                self.address.counters.retried();
                self.txn.forget();
                self.pessimistic_commits = PESSIMISTIC_COMMITS;
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}

impl PgTxnStore {
    /// Begins an optimistic transaction and returns its time, if all named threads and runs are cached.
    fn begin_optimistic(&mut self, threads: &[&ThreadKey], runs: &[&RunKey]) -> Option<Timestamp> {
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
