//! Commits groups of commands, with retries: after conflicts with other nodes, during outages, and after lost
//! answers.
//!
//! A command that was certainly not written is retried until its time is up, and then refused. If the answer to a
//! COMMIT was lost, the store is asked for the outcome; only if that cannot be found out, the caller gets an unknown
//! outcome.

use std::collections::{HashSet, VecDeque};
use std::time::{Duration, Instant};

use tokio::sync::OwnedSemaphorePermit;

use super::begin::LockMode;
use super::commit_outcome::{CommitAttempt, CommitOutcome};
use super::error::{PgError, PgResult};
use super::store_clock::SentAt;
use super::submit::Ticket;
use super::txn_store::PgTxnStore;
use super::write_set::WriteSet;
use super::writer::PgWriter;
use super::writer_pool::Assignment;
use crate::error::LogError;
use crate::key::{RunKey, ThreadKey};
use crate::limits;
use crate::txn::LogCommand;

/// A command in the queue of a writer.
pub(super) struct QueuedCommand {
    pub(super) command: LogCommand,
    since: Instant,
    /// Why it was not committed so far.
    retry_reason: Option<String>,
    /// Threads to lock first on the next attempt: it has met them while it was executed.
    pub(super) wanted: Vec<i64>,
    /// Whether it was deferred once.
    pub(super) was_deferred: bool,
    ticket: Ticket,
    /// Its share of the byte semaphore, and the assignment of its run, until it is answered.
    _held: (OwnedSemaphorePermit, Option<Assignment>),
}

impl QueuedCommand {
    pub(super) fn new(
        command: LogCommand,
        since: Instant,
        ticket: Ticket,
        held: (OwnedSemaphorePermit, Option<Assignment>),
    ) -> Self {
        Self {
            command,
            since,
            retry_reason: None,
            wanted: Vec::new(),
            was_deferred: false,
            ticket,
            _held: held,
        }
    }

    /// Starts the command; returns `false` if its caller has given up.
    pub(super) fn begin(&self) -> bool {
        self.ticket.take()
    }

    fn is_expired(&self) -> bool {
        self.since.elapsed() >= Duration::from_millis(limits::STORE_REQUEST_MILLIS)
    }

    fn refuse(self, why: &str) {
        self.command.refuse(LogError::Unavailable(format!("{why}; nothing was written")));
    }
}

/// How an attempt to commit failed.
pub(super) enum AttemptError {
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
        let mut backoff = CommitBackoff::default();
        while let Some(group) = queue.pop_front() {
            let mut group = self.refuse_expired(group);
            if group.is_empty() {
                continue;
            }
            let begun = Instant::now();
            let failure = match self.attempt(&mut group) {
                Ok(()) if group.is_empty() => {
                    self.outage = None;
                    continue;
                }
                Ok(()) => {
                    (self.outage, backoff) = (None, CommitBackoff::default());
                    self.release(group, begun.elapsed());
                    continue;
                }
                Err(AttemptError::Failed(failure)) => failure,
                Err(AttemptError::OutcomeUnknown(attempt, failure)) => match self.resolve_outcome(&attempt) {
                    CommitOutcome::Committed => {
                        self.outage = None;
                        self.release(group, begun.elapsed());
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
                backoff.wait();
            } else if group.len() > 1 {
                for mut request in group.into_iter().rev() {
                    request.retry_reason = failure.is_conflict().then(|| contended(&failure));
                    queue.push_front(vec![request]);
                }
            } else if failure.is_conflict() {
                group.iter_mut().for_each(|request| request.retry_reason = Some(contended(&failure)));
                requeue_behind(group, &mut queue);
                backoff.wait();
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

    /// Executes and commits commands, except for deferred ones. On failure all of it can be retried.
    fn attempt(&mut self, group: &mut Group) -> Result<(), AttemptError> {
        self.txn.forget();
        self.txn.store.connection.poll_closed();
        if self.txn.store.connection.is_closed() {
            self.reconnect()?;
        }
        let done = self.transact(group);
        if let Err(AttemptError::Failed(_)) = &done
            && !self.txn.store.connection.is_closed()
        {
            // If this fails, too, the connection is gone, and with it the transaction.
            let _ = self.txn.store.connection.run("ROLLBACK");
        }
        done
    }

    pub(super) fn reconnect(&mut self) -> PgResult<()> {
        self.txn.store = PgTxnStore::open(&self.address)?;
        Ok(())
    }

    fn transact(&mut self, group: &mut Group) -> Result<(), AttemptError> {
        if self.try_optimistic(group)? {
            return Ok(());
        }
        let (mut threads, runs): (Vec<_>, Vec<_>) =
            group.iter().map(|request| request.command.keys()).unzip();
        for ((request, thread), run) in group.iter().zip(&mut threads).zip(&runs) {
            let is_known =
                run.first().is_some_and(|run| self.txn.store.cache.borrow().run_location(run).is_some());
            if thread.is_empty() && !is_known {
                thread.extend(request.command.default_thread());
            }
        }
        let threads: Vec<_> = threads.iter().flatten().collect();
        let runs: Vec<_> = runs.iter().flatten().collect();
        let wanted: Vec<_> = group.iter().flat_map(|request| &request.wanted).copied().collect();
        let lock_mode = self.lock_mode(group);
        let begun = self.txn.store.begin(&threads, &runs, &wanted, &lock_mode)?;
        self.txn.now = begun.now;
        if let LockMode::SkipLocked { .. } = lock_mode {
            self.defer_busy(group);
        }
        if group.is_empty() {
            return Ok(self.txn.store.connection.run("ROLLBACK")?);
        }
        for request in group {
            self.txn.store.next();
            let executed = self.txn.execute(&mut request.command);
            request.wanted.extend(self.txn.store.wanted.take());
            executed?;
        }
        let attempt = CommitAttempt::new(begun.transaction, WriteSet::collect(&mut self.txn, self.terms)?);
        self.commit_attempt(attempt)
    }

    /// Commits a write set, and caches its heads.
    pub(super) fn commit_attempt(&mut self, attempt: CommitAttempt) -> Result<(), AttemptError> {
        let sent = SentAt::now();
        let store_time = match attempt.commit(&self.txn.store.connection) {
            Err(failure) if failure.has_ended_connection() => {
                return Err(AttemptError::OutcomeUnknown(Box::new(attempt), failure));
            }
            store_time => store_time?,
        };
        let heads = std::mem::take(&mut self.txn.heads);
        attempt.cache_heads(&self.txn.store, heads);
        if let Some(store_time) = store_time {
            self.txn.store.set_clock(store_time, sent);
        }
        Ok(())
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

/// The backoff between attempts, with jitter against other nodes.
pub(super) struct CommitBackoff {
    next: Duration,
}

impl Default for CommitBackoff {
    fn default() -> Self {
        Self { next: Duration::from_millis(2) }
    }
}

impl CommitBackoff {
    pub(super) fn wait(&mut self) {
        std::thread::sleep(self.next.mul_f64(0.5 + fastrand::f64() / 2.0));
        self.next = (2 * self.next).min(Duration::from_millis(limits::STORE_RETRY_MILLIS));
    }
}
