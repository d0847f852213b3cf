//! A writer of a node: takes whatever has queued up, and commits it as one transaction.
//!
//! While a commit is waited for, requests queue up; the next one takes them all. What becomes of them when another
//! node is faster, or the store is away, is in `commit.rs`.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot, watch};

use super::address::Address;
use super::commit::Request;
use super::connection::By;
use super::failure::Db;
use super::rows::whole_number;
use super::tables::Tables;
use crate::cluster::FollowedThreads;
use crate::error::LogError;
use crate::figures::{Meter, Tally};
use crate::key::RunKey;
use crate::outbox::Subscriber;
use crate::tail::Tails;
use crate::txn::{Lease, RunHead, Txn};
use crate::{Form, limits};

/// What the writer is asked to do.
pub(super) enum Order {
    /// One of the log's verbs.
    Command(Box<Request>),
    Subscribe(Vec<Subscriber>, oneshot::Sender<Result<(), LogError>>),
    Checkpoint(Checkpoint),
    Close,
}

/// The state of an encoder that is to be kept.
pub(super) struct Checkpoint {
    pub(super) run: RunKey,
    pub(super) form: Form,
    pub(super) seq: u64,
    pub(super) state: String,
}

/// How long leases are, in milliseconds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Terms {
    pub(super) lease: u64,
    pub(super) grace: u64,
}

impl Terms {
    /// Tells by how much a term may be longer than was asked for, so that it need not be moved with every commit.
    pub(super) fn slack(self) -> u64 {
        self.lease / 8
    }

    /// Tells whether a run has a full term already, so that its lease need not be moved.
    pub(super) fn are_met(self, run: &RunHead, now: u64) -> bool {
        let (lease, until) = run.stored_lease;
        let full = now.saturating_add(self.lease);
        // One that is longer than any can be is from before the clock was set back: it may have been moved since.
        lease == Lease::Alive
            && run.lease == Lease::Alive
            && (full..=full.saturating_add(self.slack())).contains(&until)
    }
}

/// What a commit tells.
#[derive(Clone)]
pub(super) struct Listeners {
    pub(super) tails: Arc<Tails>,
    pub(super) followed: Arc<FollowedThreads>,
    pub(super) outbox_changed: Arc<watch::Sender<()>>,
    pub(super) meter: Arc<Meter>,
}

pub(super) struct Writer {
    pub(super) address: Address,
    pub(super) txn: Txn<Tables>,
    pub(super) terms: Terms,
    listeners: Listeners,
    /// Why the store is away, if it is.
    pub(super) away: Option<String>,
    /// Commits that lock first what they work on, because other nodes write there too.
    pub(super) wary: u32,
    /// Requests whose threads other nodes were writing to: see put_off.rs.
    pub(super) put_off: Vec<Request>,
}

impl Writer {
    /// Connects.
    pub(super) fn open(address: &Address, terms: Terms, node: Arc<str>, listeners: Listeners) -> Db<Self> {
        let mut txn = Txn::new(Tables::open(address)?, runwire_model::Timestamp(0));
        txn.node = Some(node);
        Ok(Self { address: address.clone(), txn, terms, listeners, away: None, wary: 0, put_off: Vec::new() })
    }

    /// Works until it is told to close, or nobody is left to ask.
    pub(super) fn run(mut self, mut requests: mpsc::Receiver<Order>) {
        let mut closing = false;
        loop {
            // They come before all that was asked for since.
            let mut asked = std::mem::take(&mut self.put_off);
            let mut bytes = asked.iter().map(|request| request.command.bytes()).sum::<usize>();
            let mut next = match asked.is_empty() {
                true if closing => break,
                true => match requests.blocking_recv() {
                    Some(order) => Some(order),
                    None => break,
                },
                false if closing => None,
                false => requests.try_recv().ok(),
            };
            while let Some(order) = next {
                match order {
                    Order::Command(request) if !request.begin() => {}
                    Order::Command(request) => {
                        bytes += request.command.bytes();
                        asked.push(*request);
                    }
                    Order::Subscribe(subscribers, reply) => {
                        self.txn.subscribers = subscribers;
                        let _ = reply.send(Ok(()));
                    }
                    Order::Checkpoint(checkpoint) => self.keep(&checkpoint),
                    Order::Close => closing = true,
                }
                let full = asked.len() >= limits::COMMIT_REQUESTS || bytes >= limits::COMMIT_BYTES;
                next = if full || closing { None } else { requests.try_recv().ok() };
            }
            self.commit(asked);
        }
        requests.close();
        while let Some(order) = requests.blocking_recv() {
            if let Order::Command(request) = order {
                request
                    .command
                    .refuse(LogError::Unavailable("the store was closed; nothing was written".into()));
            }
        }
    }

    /// Keeps a checkpoint. It is a cache: where that fails, it is lost.
    fn keep(&self, Checkpoint { run, form, seq, state }: &Checkpoint) {
        let sql = "INSERT INTO checkpoint (run, form, seq, state) SELECT id, $3, $4, $5 FROM run \
                   WHERE tenant = $1 AND name = $2 AND NOT trimmed \
                   ON CONFLICT (run, form, seq) DO UPDATE SET state = excluded.state";
        let by: By<'_> = &[&&*run.tenant, &&*run.id, &form.name(), &whole_number(*seq), state];
        if let Err(failure) = self.txn.store.connection.execute(sql, by) {
            tracing::debug!(%failure, "a checkpoint is lost");
        }
    }

    /// Counts what a commit has written.
    fn count(&self, took: Duration) {
        let mut tally = Tally::default();
        for (_, stored) in self.txn.batch.pending.values().flat_map(|pending| &pending.records) {
            tally.records += 1;
            tally.events += stored.record.entries.len() as u64;
            tally.bytes += stored.frame.as_ref().map_or(0, |frame| frame.len() as u64);
        }
        self.listeners.meter.note(tally, took);
    }

    /// Shows what is committed to readers, then tells whoever asked for it.
    pub(super) fn release(&mut self, requests: Vec<Request>, took: Duration) {
        self.count(took);
        let followed = &self.listeners.followed;
        let pending = &self.txn.batch.pending;
        followed.publish(pending.iter().filter_map(|(thread, pending)| pending.encoded(*thread).cloned()));
        for (thread, pending) in self.txn.batch.pending.drain() {
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
        for request in requests {
            request.command.into_reply()();
        }
    }
}
