//! The verbs of the log, the same for every store: decode, guard, order, dedupe.
//!
//! A store's writer takes requests ([`Command`]) and has [`Txn`] work them out one after the other. They read and change
//! heads: what is known of a thread, a run, a producer. What comes of them is gathered in a [`CommitBatch`]: records,
//! notices, and which heads were touched. Then the writer stores the batch and the heads, commits, and only then
//! replies.
//!
//! Nothing here touches the store but through [`TxnStore`], and only to look something up. So work that cannot be
//! committed can be dropped with all heads, and the requests can be worked out again.

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
mod retention;
mod route;
mod store;
mod sweep;

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use runwire_model::Timestamp;

pub(crate) use answer::{RecordSearch, question_in, resolution_in};
pub(crate) use base_state::BaseState;
pub(crate) use command::{Command, Pending};
pub(crate) use commit_batch::{CommitBatch, NewOutboxMessage};
pub(crate) use heads::{Heads, ProducerHead, ProducerState, RunHead, RunProgress, RunRequest, ThreadHead};
pub(crate) use lease::Lease;
pub(crate) use merge::Merge;
pub(crate) use progress_codec::{ProgressError, decode_all};
pub(crate) use retention::{Candidate, ThreadTrim, plan_trims};
pub(crate) use store::{MissingRow, TxnStore};

use crate::error::LogError;
use crate::key::{RunKey, ThreadKey};
use crate::outbox::Subscriber;

/// A result that only the store can spoil.
pub(crate) type StoreResult<S, T> = Result<T, <S as TxnStore>::Error>;

/// What comes out of a verb: a fault of the store, a refusal, or a result.
pub(crate) type CommandResult<S, T> = StoreResult<S, Result<T, LogError>>;

/// Works out requests, one after the other.
pub(crate) struct Txn<S> {
    pub(crate) store: S,
    pub(crate) heads: Heads,
    pub(crate) batch: CommitBatch,
    /// Who is to be told of which events.
    pub(crate) subscribers: Vec<Subscriber>,
    /// This node, where a store has several.
    pub(crate) node: Option<Arc<str>>,
    /// The time of the batch: one for all its records.
    pub(crate) now: Timestamp,
}

impl<S: TxnStore> Txn<S> {
    /// Begins with nothing at hand.
    pub(crate) fn new(store: S, now: Timestamp) -> Self {
        Self {
            store,
            heads: Heads::default(),
            batch: CommitBatch::default(),
            subscribers: Vec::new(),
            node: None,
            now,
        }
    }

    /// Drops what is at hand: the batch was not committed, or others may write before the next one.
    pub(crate) fn forget(&mut self) {
        self.heads = Heads::default();
        self.batch = CommitBatch::default();
    }

    /// Brings back a run and its thread, which were worked on.
    fn put(&mut self, thread: Box<ThreadHead>, run: Box<RunHead>) {
        self.put_thread(thread);
        self.put_run(run);
    }

    /// Brings back a thread that was worked on.
    fn put_thread(&mut self, thread: Box<ThreadHead>) {
        self.batch.touched_threads.insert(thread.id);
        self.heads.put_thread(thread);
    }

    /// Brings back a run that was worked on.
    fn put_run(&mut self, run: Box<RunHead>) {
        self.batch.touched_runs.insert(run.id);
        self.heads.put_run(run);
    }

    /// Works on a run by its number.
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

    /// Works on a run and its thread, unless that is gone.
    fn with_open_thread<T>(
        &mut self,
        key: &RunKey,
        apply: impl FnOnce(&mut Self, &mut ThreadHead, &mut RunHead) -> StoreResult<S, T>,
    ) -> CommandResult<S, T> {
        let Some(mut run) = self.heads.take_run(&self.store, key)? else {
            return Ok(Err(LogError::RunUnknown(key.id.to_string())));
        };
        let mut thread = self.thread_of(&run)?;
        let result = if thread.deleted {
            Err(LogError::ThreadDeleted(thread.key.id.to_string()))
        } else {
            Ok(apply(self, &mut thread, &mut run)?)
        };
        self.put(thread, run);
        Ok(result)
    }

    /// Takes out the thread of a run, which cannot be missing.
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
        request: RunRequest,
        created_at: Timestamp,
    ) -> StoreResult<S, Box<RunHead>> {
        Ok(Box::new(RunHead::new(self.store.new_run_id()?, key, thread, request, created_at)))
    }
}

/// Returns the time by the machine's clock.
pub(crate) fn clock() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

/// Makes an id that is new.
pub(crate) fn mint() -> String {
    uuid::Uuid::now_v7().to_string()
}
