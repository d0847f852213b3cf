//! A writer thread: takes all queued commands as a group, and commits it.
//!
//! While a commit is in flight, commands queue up; the next group takes them all. `commit/` handles conflicts and
//! outages.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot, watch};

use super::address::PgAddress;
use super::commit::{Committed, QueuedCommand};
use super::error::PgResult;
use super::txn_store::PgTxnStore;
use crate::cluster::FollowedThreads;
use crate::error::LogError;
use crate::limits;
use crate::outbox::Subscriber;
use crate::stats::{CommitCounts, WriteCounters};
use crate::tail::Tails;
use crate::txn::{CommandReply, Lease, RunHead, Txn};

/// A message to a writer.
pub(super) enum PgWriterMessage {
    /// A command of the log.
    Command(Box<QueuedCommand>),
    Subscribe(Vec<Subscriber>, oneshot::Sender<Result<(), LogError>>),
    Close,
}

/// Durations of leases, in milliseconds.
#[derive(Debug, Clone, Copy)]
pub(super) struct LeaseTerms {
    pub(super) lease: u64,
    pub(super) grace: u64,
}

impl LeaseTerms {
    /// Returns by how much a term may exceed its duration, so that it need not be updated with every commit.
    pub(super) fn slack(self) -> u64 {
        self.lease / 8
    }

    /// Returns whether a run's stored lease is long enough, so that it need not be updated.
    pub(super) fn covers(self, run: &RunHead, now: u64) -> bool {
        let (lease, until) = run.stored_lease;
        let full = now.saturating_add(self.lease);
        // A longer one is from before the clock moved back: it may have been changed since.
        lease == Lease::Active
            && run.lease == Lease::Active
            && (full..=full.saturating_add(self.slack())).contains(&until)
    }
}

/// Who is notified of a commit.
#[derive(Clone)]
pub(super) struct CommitListeners {
    pub(super) tails: Arc<Tails>,
    pub(super) followed: Arc<FollowedThreads>,
    pub(super) outbox_changed: Arc<watch::Sender<()>>,
    pub(super) write_counters: Arc<WriteCounters>,
}

pub(super) struct PgWriter {
    pub(super) address: PgAddress,
    pub(super) txn: Txn<PgTxnStore>,
    pub(super) terms: LeaseTerms,
    listeners: CommitListeners,
    /// Why the store is unavailable, if it is.
    pub(super) outage: Option<String>,
    /// Number of commits that still lock first, because other nodes write to the same threads.
    pub(super) pessimistic_commits: u32,
    /// Commands whose threads other nodes had locked: see commit/locked.rs.
    pub(super) deferred: Vec<QueuedCommand>,
}

impl PgWriter {
    /// Connects.
    pub(super) fn open(
        address: &PgAddress,
        terms: LeaseTerms,
        node: Arc<str>,
        listeners: CommitListeners,
    ) -> PgResult<Self> {
        let mut txn = Txn::new(PgTxnStore::open(address)?, runwire_model::Timestamp(0));
        txn.node = Some(node);
        Ok(Self {
            address: address.clone(),
            txn,
            terms,
            listeners,
            outage: None,
            pessimistic_commits: 0,
            deferred: Vec::new(),
        })
    }

    /// Runs until it is closed, or all senders are gone.
    pub(super) fn run(mut self, mut queue: mpsc::Receiver<PgWriterMessage>) {
        let mut closing = false;
        loop {
            // Deferred commands come first.
            let mut group = std::mem::take(&mut self.deferred);
            let mut bytes = group.iter().map(|request| request.command.bytes()).sum::<usize>();
            let mut next = match group.is_empty() {
                true if closing => break,
                true => match queue.blocking_recv() {
                    Some(message) => Some(message),
                    None => break,
                },
                false if closing => None,
                false => queue.try_recv().ok(),
            };
            while let Some(message) = next {
                match message {
                    PgWriterMessage::Command(request) if !request.begin() => {}
                    PgWriterMessage::Command(request) => {
                        bytes += request.command.bytes();
                        group.push(*request);
                    }
                    PgWriterMessage::Subscribe(subscribers, reply) => {
                        self.txn.subscribers = subscribers;
                        let _ = reply.send(Ok(()));
                    }
                    PgWriterMessage::Close => closing = true,
                }
                let full = group.len() >= limits::COMMIT_REQUESTS || bytes >= limits::COMMIT_BYTES;
                next = if full || closing { None } else { queue.try_recv().ok() };
            }
            self.commit(group);
        }
        queue.close();
        while let Some(message) = queue.blocking_recv() {
            if let PgWriterMessage::Command(request) = message {
                request
                    .command
                    .refuse(LogError::Unavailable("the store was closed; nothing was written".into()));
            }
        }
    }

    /// Counts a commit.
    fn count(&self, took: Duration) {
        let mut counts = CommitCounts { scanned: self.txn.scanned.take(), ..CommitCounts::default() };
        for (_, stored) in self.txn.batch.records.values().flat_map(|pending| &pending.records) {
            counts.records += 1;
            counts.events += stored.record.entries.len() as u64;
            counts.bytes += stored.frame.as_ref().map_or(0, |frame| frame.len() as u64);
        }
        self.listeners.write_counters.record(counts, took);
    }

    /// Shows a commit to readers, then replies to the callers.
    pub(super) fn release(&mut self, requests: Vec<QueuedCommand>, _proof: Committed, took: Duration) {
        self.count(took);
        let followed = &self.listeners.followed;
        let pending = &self.txn.batch.records;
        followed.publish(pending.iter().filter_map(|(thread, pending)| pending.encoded(*thread).cloned()));
        for (thread, pending) in self.txn.batch.records.drain() {
            if let Some(tail) = self.listeners.tails.live(&pending.key) {
                let records: Vec<_> = pending.records.into_iter().map(|(_, stored)| stored).collect();
                followed.show_commit(thread, &tail, &records);
            }
        }
        for (_, thread) in self.txn.batch.deleted.drain(..) {
            if let Some(tail) = self.listeners.tails.live(&thread) {
                tail.delete();
            }
        }
        if !self.txn.batch.outbox.is_empty() {
            self.listeners.outbox_changed.send_replace(());
        }
        CommandReply::send_all(requests.into_iter().map(|request| request.command.into_reply()));
    }
}
