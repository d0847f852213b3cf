//! The writer of a node: takes whatever has queued up, and commits it as one transaction.
//!
//! While a commit is waited for, requests queue up; the next one takes them all. Where another node was faster, the
//! transaction is taken back, and its requests are tried one by one: none suffers for its neighbours.

use std::sync::Arc;
use std::time::Instant;

use tokio::sync::{mpsc, oneshot, watch};
use tokio_postgres::Config;

use super::connection::{By, Connection};
use super::failure::Db;
use super::flush::flush;
use super::rows::whole_number;
use super::tables::Tables;
use crate::error::LogError;
use crate::figures::{Meter, Tally};
use crate::key::RunKey;
use crate::notice::Subscriber;
use crate::tail::Tails;
use crate::work::{Op, Work};
use crate::{Form, limits};

/// What the writer is asked to do.
pub(super) enum Order {
    /// One of the log's verbs.
    Op(Op),
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

/// What a commit tells.
pub(super) struct Listeners {
    pub(super) tails: Arc<Tails>,
    pub(super) noticed: Arc<watch::Sender<()>>,
    pub(super) meter: Arc<Meter>,
}

pub(super) struct Writer {
    config: Config,
    work: Work<Tables>,
    terms: Terms,
    listeners: Listeners,
}

/// How often work is done again for which another node was faster.
const TRIES: usize = 16;

impl Writer {
    pub(super) fn new(config: Config, connection: Connection, terms: Terms, listeners: Listeners) -> Self {
        let work = Work::new(Tables::new(connection), runwire_model::Timestamp(0));
        Self { config, work, terms, listeners }
    }

    /// Works until it is told to close, or nobody is left to ask.
    pub(super) fn run(mut self, mut requests: mpsc::Receiver<Order>) {
        while let Some(first) = requests.blocking_recv() {
            let (mut ops, mut bytes, mut next) = (Vec::new(), 0, Some(first));
            let mut closing = false;
            while let Some(order) = next {
                match order {
                    Order::Op(op) => {
                        bytes += op.bytes();
                        ops.push(op);
                    }
                    Order::Subscribe(subscribers, reply) => {
                        self.work.subscribers = subscribers;
                        let _ = reply.send(Ok(()));
                    }
                    Order::Checkpoint(checkpoint) => self.keep(&checkpoint),
                    Order::Close => closing = true,
                }
                let full = ops.len() >= limits::COMMIT_REQUESTS || bytes >= limits::COMMIT_BYTES;
                next = if full || closing { None } else { requests.try_recv().ok() };
            }
            self.commit(ops);
            if closing {
                break;
            }
        }
        requests.close();
        while requests.blocking_recv().is_some() {}
    }

    /// Keeps a checkpoint. It is a cache: where that fails, it is lost.
    fn keep(&self, Checkpoint { run, form, seq, state }: &Checkpoint) {
        let sql = "INSERT INTO checkpoint (run, form, seq, state) SELECT id, $3, $4, $5 FROM run \
                   WHERE tenant = $1 AND name = $2 AND NOT trimmed \
                   ON CONFLICT (run, form, seq) DO UPDATE SET state = excluded.state";
        let by: By<'_> = &[&&*run.tenant, &&*run.id, &form.name(), &whole_number(*seq), state];
        if let Err(failure) = self.work.store.connection.execute(sql, by) {
            tracing::debug!(%failure, "a checkpoint is lost");
        }
    }

    /// Commits requests together, or one by one where that fails.
    fn commit(&mut self, mut ops: Vec<Op>) {
        if ops.is_empty() {
            return;
        }
        match self.attempt(&mut ops) {
            Ok(()) => self.release(ops),
            Err(failure) if failure.is_race() => {
                for op in ops {
                    self.commit_alone(op);
                }
            }
            // Whoever waits is told by this that nobody knows.
            Err(failure) => tracing::error!(%failure, "the store failed; it is not known what was written"),
        }
    }

    fn commit_alone(&mut self, op: Op) {
        let mut ops = vec![op];
        for _ in 0..TRIES {
            match self.attempt(&mut ops) {
                Ok(()) => return self.release(ops),
                Err(failure) if failure.is_race() => {}
                Err(failure) => {
                    tracing::error!(%failure, "the store failed; it is not known what was written");
                    return;
                }
            }
        }
        tracing::error!("other nodes were faster each time");
    }

    /// Works requests out and commits them. Where that fails, nothing is at hand, and all of it can be tried again.
    fn attempt(&mut self, ops: &mut [Op]) -> Db<()> {
        self.work.forget();
        if self.work.store.connection.is_closed() {
            self.work.store = Tables::new(Connection::open(&self.config)?);
        }
        let done = self.transact(ops);
        if done.is_err() {
            self.work.forget();
            // Where also this fails the connection is gone, and with it the transaction.
            let _ = self.work.store.connection.run("ROLLBACK");
        }
        done
    }

    fn transact(&mut self, ops: &mut [Op]) -> Db<()> {
        let begun = Instant::now();
        let (threads, runs): (Vec<_>, Vec<_>) = ops.iter().map(Op::names).unzip();
        let threads: Vec<_> = threads.iter().flatten().collect();
        let runs: Vec<_> = runs.iter().flatten().collect();
        self.work.now = self.work.store.begin(&threads, &runs)?;
        for op in ops {
            self.work.store.next();
            self.work.perform(op)?;
        }
        flush(&mut self.work, self.terms)?;
        self.work.store.connection.run("COMMIT")?;
        self.listeners.meter.note(self.tally(), begun.elapsed());
        Ok(())
    }

    fn tally(&self) -> Tally {
        let mut tally = Tally::default();
        for (_, stored) in self.work.batch.pending.values().flat_map(|pending| &pending.records) {
            tally.records += 1;
            tally.events += stored.record.entries.len() as u64;
            tally.bytes += stored.frame.as_ref().map_or(0, |frame| frame.len() as u64);
        }
        tally
    }

    /// Shows what is committed to readers, then tells whoever asked for it.
    fn release(&mut self, ops: Vec<Op>) {
        for (_, pending) in self.work.batch.pending.drain() {
            if let Some(tail) = self.listeners.tails.live(&pending.key) {
                let records: Vec<_> = pending.records.into_iter().map(|(_, stored)| stored).collect();
                tail.publish(&records);
            }
        }
        for (_, thread) in self.work.batch.deleted.drain(..) {
            if let Some(tail) = self.listeners.tails.live(&thread) {
                tail.delete();
            }
        }
        if !self.work.batch.notices.is_empty() {
            self.listeners.noticed.send_replace(());
        }
        for op in ops {
            op.into_reply()();
        }
    }
}
