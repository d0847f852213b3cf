//! Commits requests, come what may: other nodes that are faster, a store that is away, an answer that is lost.
//!
//! What certainly was not written is tried again until its time is up, and then refused. Where the answer to a COMMIT
//! was lost, the store is asked what became of it; only where that cannot be found out, nobody is told either.

use std::collections::{HashSet, VecDeque};
use std::time::{Duration, Instant};

use tokio::sync::OwnedSemaphorePermit;

use super::ahead::Sent;
use super::asking::Turn;
use super::begin::Locking;
use super::doubt::{Doubt, Settled};
use super::failure::{Db, Failure};
use super::flush::Flushed;
use super::lanes::Place;
use super::tables::Tables;
use super::writer::Writer;
use crate::error::LogError;
use crate::key::{RunKey, ThreadKey};
use crate::limits;
use crate::txn::Command;

/// A request that waits to be committed.
pub(super) struct Request {
    pub(super) command: Command,
    since: Instant,
    /// Why it could not be committed so far.
    setback: Option<String>,
    /// Threads that it could not begin with, and must: it has met them while it was worked out.
    pub(super) wanted: Vec<i64>,
    /// Whether its thread was not free once.
    pub(super) was_put_off: bool,
    turn: Turn,
    /// The room that it takes until it is answered, and the place of its run.
    _held: (OwnedSemaphorePermit, Option<Place>),
}

impl Request {
    pub(super) fn new(
        command: Command,
        since: Instant,
        turn: Turn,
        held: (OwnedSemaphorePermit, Option<Place>),
    ) -> Self {
        Self { command, since, setback: None, wanted: Vec::new(), was_put_off: false, turn, _held: held }
    }

    /// Begins with it, unless nobody waits for it any more.
    pub(super) fn begin(&self) -> bool {
        self.turn.take()
    }

    fn is_late(&self) -> bool {
        self.since.elapsed() >= Duration::from_millis(limits::STORE_PATIENCE_MILLIS)
    }

    fn refuse(self, why: &str) {
        self.command.refuse(LogError::Unavailable(format!("{why}; nothing was written")));
    }
}

/// How a try failed.
pub(super) enum Setback {
    /// Nothing was written.
    Failed(Failure),
    /// It is not known whether it was committed.
    Doubtful(Box<Doubt>, Failure),
}

impl From<Failure> for Setback {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// Requests that are committed together.
type Group = Vec<Request>;

impl Writer {
    /// Commits requests together; where that fails and not the store, one by one, so that none suffers for others.
    pub(super) fn commit(&mut self, requests: Group) {
        let mut left = VecDeque::from([requests]);
        let mut pause = Pause::default();
        while let Some(group) = left.pop_front() {
            let mut group = self.without_late(group);
            if group.is_empty() {
                continue;
            }
            let begun = Instant::now();
            let failure = match self.attempt(&mut group) {
                Ok(()) if group.is_empty() => {
                    self.away = None;
                    continue;
                }
                Ok(()) => {
                    (self.away, pause) = (None, Pause::default());
                    self.release(group, begun.elapsed());
                    continue;
                }
                Err(Setback::Failed(failure)) => failure,
                Err(Setback::Doubtful(doubt, failure)) => match self.settle(&doubt) {
                    Settled::Committed => {
                        self.away = None;
                        self.release(group, begun.elapsed());
                        continue;
                    }
                    Settled::Aborted => failure,
                    Settled::Unknown(why) => {
                        tracing::error!(%failure, why, "it is not known whether a commit happened");
                        self.txn.forget();
                        // Whoever waited meanwhile need not wait for as long again.
                        self.away = Some(why.clone());
                        for request in group {
                            request.command.refuse(LogError::Uncertain(format!("{failure}, and {why}")));
                        }
                        continue;
                    }
                },
            };
            self.address.count.retried();
            self.txn.forget();
            if failure.is_away() {
                if self.away.is_none() {
                    tracing::warn!(%failure, "the store is away");
                }
                self.away = Some(failure.to_string());
                left.push_front(group);
                pause.wait();
            } else if group.len() > 1 {
                for mut request in group.into_iter().rev() {
                    request.setback = failure.is_race().then(|| held_up(&failure));
                    left.push_front(vec![request]);
                }
            } else if failure.is_race() {
                group.iter_mut().for_each(|request| request.setback = Some(held_up(&failure)));
                put_behind(group, &mut left);
                pause.wait();
            } else {
                tracing::error!(%failure, "the store refuses what it was given");
                for request in group {
                    match failure.is_for_good() {
                        true => request
                            .command
                            .refuse(LogError::Damaged(format!("{failure}; nothing was written"))),
                        false => request.refuse(&failure.to_string()),
                    }
                }
            }
        }
    }

    /// Refuses requests whose time is up, where trying on has no prospect.
    fn without_late(&self, group: Group) -> Group {
        let (mut left, away) = (Vec::with_capacity(group.len()), self.away.as_deref());
        for request in group {
            match request.setback.as_deref().or(away).map(str::to_owned) {
                Some(why) if request.is_late() => request.refuse(&why),
                _ => left.push(request),
            }
        }
        left
    }

    /// Works requests out and commits them, but for those that are put off. Where that fails all of it can be tried again.
    fn attempt(&mut self, group: &mut Group) -> Result<(), Setback> {
        self.txn.forget();
        self.txn.store.connection.listen();
        if self.txn.store.connection.is_closed() {
            self.reconnect()?;
        }
        let done = self.transact(group);
        if let Err(Setback::Failed(_)) = &done
            && !self.txn.store.connection.is_closed()
        {
            // Where also this fails the connection is gone, and with it the transaction.
            let _ = self.txn.store.connection.run("ROLLBACK");
        }
        done
    }

    pub(super) fn reconnect(&mut self) -> Db<()> {
        self.txn.store = Tables::open(&self.address)?;
        Ok(())
    }

    fn transact(&mut self, group: &mut Group) -> Result<(), Setback> {
        if self.go_ahead(group)? {
            return Ok(());
        }
        let (mut threads, runs): (Vec<_>, Vec<_>) =
            group.iter().map(|request| request.command.keys()).unzip();
        for ((request, thread), run) in group.iter().zip(&mut threads).zip(&runs) {
            let is_known =
                run.first().is_some_and(|run| self.txn.store.cache.borrow().run_named(run).is_some());
            if thread.is_empty() && !is_known {
                thread.extend(request.command.default_thread());
            }
        }
        let threads: Vec<_> = threads.iter().flatten().collect();
        let runs: Vec<_> = runs.iter().flatten().collect();
        let wanted: Vec<_> = group.iter().flat_map(|request| &request.wanted).copied().collect();
        let locking = self.locking(group);
        let begun = self.txn.store.begin(&threads, &runs, &wanted, &locking)?;
        self.txn.now = begun.now;
        if let Locking::Free { .. } = locking {
            self.put_off(group);
        }
        if group.is_empty() {
            return Ok(self.txn.store.connection.run("ROLLBACK")?);
        }
        for request in group {
            self.txn.store.next();
            let performed = self.txn.execute(&mut request.command);
            request.wanted.extend(self.txn.store.wanted.take());
            performed?;
        }
        let doubt = Doubt::new(begun.transaction, Flushed::gather(&mut self.txn, self.terms)?);
        self.commit_or_doubt(doubt)
    }

    /// Commits what is gathered, and keeps the heads that it leaves.
    pub(super) fn commit_or_doubt(&mut self, doubt: Doubt) -> Result<(), Setback> {
        let sent = Sent::now();
        let told = match doubt.commit(&self.txn.store.connection) {
            Err(failure) if failure.has_ended_connection() => {
                return Err(Setback::Doubtful(Box::new(doubt), failure));
            }
            told => told?,
        };
        let heads = std::mem::take(&mut self.txn.heads);
        doubt.keep(&self.txn.store, heads);
        if let Some(told) = told {
            self.txn.store.set_clock(told, sent);
        }
        Ok(())
    }
}

fn held_up(failure: &Failure) -> String {
    format!("other nodes keep writing there ({failure})")
}

/// Puts a request behind all that have nothing to do with it; the order of those that have stays.
fn put_behind(group: Group, left: &mut VecDeque<Group>) {
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
    for group in std::mem::take(left) {
        match is_behind(&group, false) {
            true => behind.push(group),
            false => left.push_back(group),
        }
    }
    left.extend(behind);
}

/// The pauses between tries: they grow, and differ from those of other nodes.
pub(super) struct Pause {
    next: Duration,
}

impl Default for Pause {
    fn default() -> Self {
        Self { next: Duration::from_millis(2) }
    }
}

impl Pause {
    pub(super) fn wait(&mut self) {
        std::thread::sleep(self.next.mul_f64(0.5 + fastrand::f64() / 2.0));
        self.next = (2 * self.next).min(Duration::from_millis(limits::STORE_RETRY_MILLIS));
    }
}
