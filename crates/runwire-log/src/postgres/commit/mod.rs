//! The commit protocol of a writer.
//!
//! A writer commits commands in *groups*: all that have queued up. Any number of writers and nodes use one store. The
//! row of a thread orders them: it is locked until the commit, and it has a *version*, which every commit that touches
//! the thread, one of its runs or one of their producers replaces by a random number (`version.rs`). Versions have no
//! order: they are the same or not. Retention, which is no commit of a writer, replaces it, too (`retention.rs`).
//!
//! # States of a command
//!
//! | state | what is true |
//! |---|---|
//! | **queued** | nothing was executed. Its caller may still give up: the first to take the ticket decides |
//! | **optimistic** | executed on cached heads; nothing is locked or sent. Whatever was decided, refusals too, holds only if its threads still have the cached versions |
//! | **locked** | this transaction holds the rows of all its threads. Its heads have the versions of the rows, or were loaded under the locks. What is decided holds until the commit |
//! | **deferred** | not executed, because another node holds one of its threads. It comes first in the next group, which waits for that thread |
//! | **outcome unknown** | COMMIT was sent and its answer is lost. Nothing was replied or shown, and this writer commits nothing else |
//! | **committed** | durable. Only now its records are shown, then its caller gets the reply |
//! | **refused** | certainly not written, or nobody knows (`Uncertain`) |
//!
//! # Transitions
//!
//! | from | trigger | to |
//! |---|---|---|
//! | queued | all commands continue runs, all their heads are cached, no conflict lately | optimistic |
//! | queued | otherwise | locked, after the locks are taken in the order of their numbers |
//! | queued | nodes share threads, and another node holds one of these | deferred, once; then it waits for the lock |
//! | queued | its time is up during an outage, or while others keep winning | refused |
//! | optimistic | a head is not cached after all, or seems damaged | queued; locked at once |
//! | optimistic | the commit finds another version | queued; the next commits are locked |
//! | optimistic, locked | the commit is answered | committed |
//! | optimistic, locked | the connection ends during the COMMIT | outcome unknown |
//! | optimistic, locked | the store is unavailable before the COMMIT | queued, after a backoff |
//! | locked | a conflict: deadlock, lock timeout, a name that another node took | queued: a group is divided, a single command goes behind those that share nothing with it |
//! | locked | the store cannot hold or read the data | queued: a group is divided; a single command is refused |
//! | outcome unknown | the store has something that only this commit can have written | committed |
//! | outcome unknown | it has not happened, and cannot happen any more | queued |
//! | outcome unknown | neither can be found out | refused (`Uncertain`) |
//!
//! # Invariants
//!
//! - `seq` is contiguous where records are added (`CommitBatch::push`), encoded (`EncodedBatch::encode`), and put
//!   behind those that the store has (`ThreadHead::store_records`). Asserted.
//! - The time of a thread's records never goes backwards. Asserted where they are added.
//! - A commit changes only threads that it holds, and gives them another version than they had. Asserted in
//!   [`PgWriter::finish`]. That it is none of their earlier versions either is as certain as 62 random bits.
//! - No statement runs outside of its transaction: each has the condition `in_transaction!` (`write_set/`), because it
//!   is sent before the `BEGIN` is known to have succeeded.
//! - Nothing is acknowledged before its commit: releasing a group takes a [`Committed`], which only an answered
//!   COMMIT or a proven outcome makes.
//!
//! A violated assertion ends the writer: its callers get an unknown outcome, and none an acknowledgement.

mod locked;
mod optimistic;
mod outcome;
mod queued_command;
pub(super) mod version;
mod write_set;

use std::collections::{HashSet, VecDeque};
use std::time::{Duration, Instant};

use runwire_producer::Backoff;

use super::error::{PgError, PgResult};
use super::store_clock::SentAt;
use super::txn_store::PgTxnStore;
use super::writer::PgWriter;
use crate::error::LogError;
use crate::key::{RunKey, ThreadKey};
use crate::limits;
use outcome::{CommitAttempt, CommitOutcome};
pub(super) use queued_command::{QueuedCommand, Ticket};

/// Proves that a commit has happened.
pub(super) struct Committed(());

/// How an attempt to commit failed.
enum AttemptError {
    /// Nothing was written.
    Failed(PgError),
    /// The outcome of the commit is unknown.
    OutcomeUnknown(Box<CommitAttempt>, PgError),
}

impl From<PgError> for AttemptError {
    fn from(failure: PgError) -> Self {
        Self::Failed(failure)
    }
}

/// Commands that are committed together.
type Group = Vec<QueuedCommand>;

impl PgWriter {
    /// Commits commands together; after a failure that is not an outage one by one, so that none suffers for others.
    pub(super) fn commit(&mut self, requests: Group) {
        let mut queue = VecDeque::from([requests]);
        let mut backoff = COMMIT_BACKOFF;
        while let Some(group) = queue.pop_front() {
            let mut group = self.refuse_expired(group);
            if group.is_empty() {
                continue;
            }
            let begun = Instant::now();
            let failure = match self.attempt(&mut group) {
                Ok(None) => {
                    self.outage = None;
                    continue;
                }
                Ok(Some(committed)) => {
                    (self.outage, backoff) = (None, COMMIT_BACKOFF);
                    self.release(group, committed, begun.elapsed());
                    continue;
                }
                Err(AttemptError::Failed(failure)) => failure,
                Err(AttemptError::OutcomeUnknown(attempt, failure)) => match self.resolve_outcome(&attempt) {
                    CommitOutcome::Committed(committed) => {
                        self.outage = None;
                        self.release(group, committed, begun.elapsed());
                        continue;
                    }
                    CommitOutcome::Aborted => failure,
                    CommitOutcome::Unknown(why) => {
                        tracing::error!(%failure, why, "it is not known whether a commit happened");
                        self.txn.forget();
                        // Commands that waited meanwhile must not wait as long again.
                        self.outage = Some(why.clone());
                        for request in group {
                            request.command.refuse(LogError::Uncertain(format!("{failure}, and {why}")));
                        }
                        continue;
                    }
                },
            };
            self.address.counters.retried();
            self.txn.forget();
            if failure.is_unavailable() {
                if self.outage.is_none() {
                    tracing::warn!(%failure, "the store is unavailable");
                }
                self.outage = Some(failure.to_string());
                queue.push_front(group);
                std::thread::sleep(backoff.next_delay());
            } else if group.len() > 1 {
                for mut request in group.into_iter().rev() {
                    request.retry_reason = failure.is_conflict().then(|| contended(&failure));
                    queue.push_front(vec![request]);
                }
            } else if failure.is_conflict() {
                group.iter_mut().for_each(|request| request.retry_reason = Some(contended(&failure)));
                requeue_behind(group, &mut queue);
                std::thread::sleep(backoff.next_delay());
            } else {
                tracing::error!(%failure, "the store refuses what it was given");
                for request in group {
                    match failure.is_permanent() {
                        true => request
                            .command
                            .refuse(LogError::Damaged(format!("{failure}; nothing was written"))),
                        false => request.refuse(&failure.to_string()),
                    }
                }
            }
        }
    }

    /// Refuses commands whose time is up, if retrying has no prospect.
    fn refuse_expired(&self, group: Group) -> Group {
        let (mut remaining, outage) = (Vec::with_capacity(group.len()), self.outage.as_deref());
        for request in group {
            match request.retry_reason.as_deref().or(outage).map(str::to_owned) {
                Some(why) if request.is_expired() => request.refuse(&why),
                _ => remaining.push(request),
            }
        }
        remaining
    }

    /// Executes and commits commands, except for deferred ones; returns `None` if all were deferred. On failure all of
    /// it can be retried.
    fn attempt(&mut self, group: &mut Group) -> Result<Option<Committed>, AttemptError> {
        self.txn.forget();
        self.txn.store.connection.poll_closed();
        if self.txn.store.connection.is_closed() {
            self.reconnect()?;
        }
        let done = match self.commit_optimistically(group) {
            Ok(None) => self.commit_locked(group),
            done => done,
        };
        if let Err(AttemptError::Failed(_)) = &done
            && !self.txn.store.connection.is_closed()
        {
            // If this fails, too, the connection is gone, and with it the transaction.
            let _ = self.txn.store.connection.run("ROLLBACK");
        }
        done
    }

    fn reconnect(&mut self) -> PgResult<()> {
        self.txn.store = PgTxnStore::open(&self.address)?;
        Ok(())
    }

    /// Sends the writes and the COMMIT of executed commands, and caches their heads.
    fn finish(&mut self, attempt: CommitAttempt) -> Result<Committed, AttemptError> {
        let (version, changed) = (attempt.write_set.version, attempt.write_set.changed());
        for thread in changed.iter().filter(|thread| !attempt.write_set.creates(**thread)) {
            let held = self.txn.store.locked.borrow().get(thread).copied();
            assert!(held.is_some(), "a commit changes only threads that it holds");
            assert!(held != Some(version), "a commit gives its threads another version than they had");
        }
        let sent = SentAt::now();
        let store_time = match attempt.commit(&self.txn.store.connection) {
            Err(failure) if failure.has_ended_connection() => {
                return Err(AttemptError::OutcomeUnknown(Box::new(attempt), failure));
            }
            store_time => store_time?,
        };
        let heads = std::mem::take(&mut self.txn.heads);
        self.txn.store.cache_heads(heads, &changed, version);
        if let Some(store_time) = store_time {
            self.txn.store.set_clock(store_time, sent);
        }
        Ok(Committed(()))
    }
}

fn contended(failure: &PgError) -> String {
    format!("other nodes keep writing there ({failure})")
}

/// Requeues a group behind all that share no thread or run with it; those that share one keep their order.
fn requeue_behind(group: Group, queue: &mut VecDeque<Group>) {
    let (mut threads, mut runs) = (HashSet::<ThreadKey>::new(), HashSet::<RunKey>::new());
    let mut is_behind = |group: &Group, is_first: bool| {
        let names: Vec<_> = group.iter().map(|request| request.command.keys()).collect();
        let meets = names.iter().any(|(named_threads, named_runs)| {
            named_threads.iter().any(|thread| threads.contains(thread))
                || named_runs.iter().any(|run| runs.contains(run))
        });
        if meets || is_first {
            for (thread, run) in names {
                threads.extend(thread);
                runs.extend(run);
            }
        }
        meets
    };
    is_behind(&group, true);
    let mut behind = vec![group];
    for group in std::mem::take(queue) {
        match is_behind(&group, false) {
            true => behind.push(group),
            false => queue.push_back(group),
        }
    }
    queue.extend(behind);
}

/// Waits between attempts.
const COMMIT_BACKOFF: Backoff =
    Backoff::new(Duration::from_millis(2), Duration::from_millis(limits::STORE_RETRY_MILLIS));
