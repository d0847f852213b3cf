//! Executes the commands of the log in a transaction, the same for every store: decode, guard, order, deduplicate.
//!
//! A store's writer executes commands ([`LogCommand`]) in a [`Txn`], one after the other. They read and change heads:
//! the cached state of a thread, a run or a producer. Their results are collected in a [`CommitBatch`]: records,
//! outbox messages, and which heads were touched. Then the writer stores the batch and the heads, commits, and only
//! then replies.
//!
//! Nothing here accesses the store but through [`TxnStore`], and only to load something. So a transaction that cannot
//! be committed can be dropped with all heads, and its commands can be executed again.

mod answer;
mod append;
mod base_state;
mod cancel;
mod check;
mod command;
mod commit_batch;
mod create;
mod delete;
mod heads;
mod heartbeat;
mod import;
mod import_state;
mod lease;
mod merge;
mod producer;
mod progress_codec;
mod record_source;
mod reply;
mod retention;
mod route;
mod store;
mod sweep;

use std::cell::Cell;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use runwire_model::Timestamp;

pub(crate) use answer::{RecordSearch, question_in, resolution_in};
pub(crate) use base_state::BaseState;
pub(crate) use command::{LogCommand, Pending};
pub(crate) use commit_batch::{CommitBatch, NewOutboxMessage};
pub(crate) use heads::{
    Heads, LookupLimit, ProducerHead, ProducerState, RunHead, RunOrigin, RunProgress, ThreadHead,
};
pub(crate) use lease::Lease;
pub(crate) use merge::Merge;
pub(crate) use progress_codec::{ProgressError, decode_all};
pub(crate) use reply::{CommandReply, SinkTicket};
pub(crate) use retention::{Candidate, ThreadTrim, plan_trims};
pub(crate) use store::{MissingRow, TxnStore};

use crate::error::LogError;
use crate::key::{RunKey, ThreadKey};
use crate::outbox::Subscriber;

/// A result whose error is a failure of the store.
pub(crate) type StoreResult<S, T> = Result<T, <S as TxnStore>::Error>;

/// The result of a command, or of a part of one with refusals of its own.
pub(crate) type CommandResult<S, T, R = LogError> = Result<T, CommandError<<S as TxnStore>::Error, R>>;

/// Why a command was not executed.
#[derive(Debug)]
pub(crate) enum CommandError<E, R> {
    /// The store failed. The batch is dropped then, with all heads.
    Store(E),
    /// It was refused, and has changed nothing.
    Refused(R),
}

impl<E, R> From<E> for CommandError<E, R> {
    fn from(failure: E) -> Self {
        Self::Store(failure)
    }
}

/// The context in which commands are executed until they are committed together.
pub(crate) struct Txn<S> {
    pub(crate) store: S,
    pub(crate) heads: Heads,
    pub(crate) batch: CommitBatch,
    /// Subscribers of events.
    pub(crate) subscribers: Vec<Subscriber>,
    /// This node, where a store has several.
    pub(crate) node: Option<Arc<str>>,
    /// The time of the batch: one for all its records.
    pub(crate) now: Timestamp,
    /// Stored records that commands have looked at since the last commit.
    pub(crate) scanned: Cell<u64>,
}

/// How much a transaction has changed so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TxnMark {
    changes: u64,
    taken: usize,
}

impl<S: TxnStore> Txn<S> {
    /// Makes an empty context.
    pub(crate) fn new(store: S, now: Timestamp) -> Self {
        Self {
            store,
            heads: Heads::default(),
            batch: CommitBatch::default(),
            subscribers: Vec::new(),
            node: None,
            now,
            scanned: Cell::new(0),
        }
    }

    /// Makes the error of a refusal.
    fn refuse<R>(refusal: R) -> CommandError<S::Error, R> {
        CommandError::Refused(refusal)
    }

    /// Drops all heads and the batch: it was not committed, or other nodes may write before the next one.
    pub(crate) fn forget(&mut self) {
        self.heads = Heads::default();
        self.batch = CommitBatch::default();
    }

    /// Returns a mark that is the same before and after a command that has changed nothing.
    pub(crate) fn mark(&self) -> TxnMark {
        TxnMark { changes: self.batch.changes, taken: self.heads.taken() }
    }

    /// Returns a run and its thread to the heads. What has not changed is not written: other nodes' commits would fail.
    fn put(&mut self, thread: Box<ThreadHead>, run: Box<RunHead>) {
        if run.is_changed() {
            self.put_thread(thread);
        } else {
            self.put_thread_if_changed(thread);
        }
        if run.is_changed() || run.leased {
            self.put_run(run);
        } else {
            self.heads.put_run(run);
        }
    }

    /// Returns a thread to the heads, which a refusal or a duplicate may have left as it was.
    fn put_thread_if_changed(&mut self, thread: Box<ThreadHead>) {
        let is_changed = thread.new
            || !thread.forgotten.is_empty()
            || thread.producers.values().any(|producer| producer.dirty)
            || self.batch.records.contains_key(&thread.id);
        if is_changed {
            self.put_thread(thread);
        } else {
            self.heads.put_thread(thread);
        }
    }

    /// Returns a changed thread to the heads.
    fn put_thread(&mut self, thread: Box<ThreadHead>) {
        self.batch.changes += 1;
        self.batch.touched_threads.insert(thread.id);
        self.heads.put_thread(thread);
    }

    /// Returns a changed run to the heads.
    fn put_run(&mut self, run: Box<RunHead>) {
        self.batch.changes += 1;
        self.batch.touched_runs.insert(run.id);
        self.heads.put_run(run);
    }

    /// Applies a change to a run by its number.
    fn with_run<T>(
        &mut self,
        id: i64,
        apply: impl FnOnce(&mut Self, &mut RunHead) -> StoreResult<S, T>,
    ) -> StoreResult<S, Option<T>> {
        let Some(mut run) = self.heads.take_run_by_id(&self.store, id)? else { return Ok(None) };
        let result = apply(self, &mut run)?;
        self.put_run(run);
        Ok(Some(result))
    }

    /// Applies a change to a run and its thread, unless the thread is deleted.
    fn with_open_thread<T>(
        &mut self,
        key: &RunKey,
        apply: impl FnOnce(&mut Self, &mut ThreadHead, &mut RunHead) -> CommandResult<S, T>,
    ) -> CommandResult<S, T> {
        let Some(mut run) = self.heads.take_run(&self.store, key)? else {
            return Err(Self::refuse(LogError::RunUnknown(key.id.to_string())));
        };
        let mut thread = self.thread_of(&run)?;
        let result = if thread.deleted {
            Err(Self::refuse(LogError::ThreadDeleted(thread.key.id.to_string())))
        } else {
            apply(self, &mut thread, &mut run)
        };
        if !matches!(result, Err(CommandError::Store(_))) {
            self.put(thread, run);
        }
        result
    }

    /// Takes the thread of a run out of the heads; it must exist.
    fn thread_of(&mut self, run: &RunHead) -> StoreResult<S, Box<ThreadHead>> {
        let thread = self.heads.take_thread_by_id(&self.store, run.thread)?;
        Ok(thread.ok_or(MissingRow("the thread of a run"))?)
    }

    fn new_thread(
        &mut self,
        key: ThreadKey,
        parallel: bool,
        created_at: Timestamp,
    ) -> StoreResult<S, Box<ThreadHead>> {
        Ok(Box::new(ThreadHead::new(self.store.new_thread_id()?, key, parallel, created_at)))
    }

    fn new_run(
        &mut self,
        key: RunKey,
        thread: &ThreadHead,
        request: RunOrigin,
        created_at: Timestamp,
    ) -> StoreResult<S, Box<RunHead>> {
        Ok(Box::new(RunHead::new(self.store.new_run_id()?, key, thread, request, created_at)))
    }
}

/// Returns whether something was accepted and not refused.
pub(crate) fn was_accepted<E, R>(result: Result<(), CommandError<E, R>>) -> Result<bool, E> {
    match result {
        Ok(()) => Ok(true),
        Err(CommandError::Refused(_)) => Ok(false),
        Err(CommandError::Store(failure)) => Err(failure),
    }
}

/// Returns the time of the machine's clock.
pub(crate) fn clock() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

/// Makes a new unique id.
pub(crate) fn mint() -> String {
    uuid::Uuid::now_v7().to_string()
}
