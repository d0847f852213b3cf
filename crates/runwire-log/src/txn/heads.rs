//! Heads: the state of threads, runs and producers that commands work on. They are loaded when needed, and written
//! back at the commit.

use std::collections::HashMap;
use std::sync::Arc;

use runwire_check::CheckState;
use runwire_model::Timestamp;
use runwire_model::dialect::Decoder;
use runwire_model::run::{RunState, Status};
use serde::{Deserialize, Serialize};

use super::StoreResult;
use super::base_state::BaseState;
use super::lease::Lease;
use super::store::TxnStore;
use crate::info::{NewRun, OrphanedRun, RunInfo, RunSummary, truncate_title};
use crate::key::{RunKey, ThreadKey};
use crate::limits;
use crate::run_history::HistoryCache;

/// The state of a thread in its writer.
#[derive(Debug)]
pub(crate) struct ThreadHead {
    pub(crate) id: i64,
    pub(crate) key: ThreadKey,
    pub(crate) parallel: bool,
    pub(crate) created_at: Timestamp,
    pub(crate) seq: u64,
    pub(crate) at: Timestamp,
    /// The last `seq` that the store has in rows of records, or has removed.
    pub(crate) stored_seq: u64,
    /// The first `seq` that is kept.
    pub(crate) oldest: u64,
    /// The state before its oldest record, for a new thread that was imported without its beginning.
    pub(crate) imported_base: Option<Box<ImportedBase>>,
    pub(crate) deleted: bool,
    /// Its open runs, oldest first.
    pub(crate) open: Vec<i64>,
    /// The run that began last.
    pub(crate) latest: Option<i64>,
    /// The run whose snapshot is in its row, if the store has such snapshots.
    pub(crate) snapshot_run: Option<i64>,
    pub(crate) producers: HashMap<String, ProducerHead>,
    /// Producers whose rows go with the next commit.
    pub(crate) forgotten: Vec<String>,
    /// Whether the store has no row yet.
    pub(crate) new: bool,
    /// Whether it is indexed by its key.
    pub(crate) listed: bool,
}

/// The state before the oldest record of an imported thread.
#[derive(Debug)]
pub(crate) struct ImportedBase {
    pub(crate) base: BaseState,
    /// The time of the last record before.
    pub(crate) at: Timestamp,
}

/// The state of a run in its writer.
#[derive(Debug)]
pub(crate) struct RunHead {
    pub(crate) id: i64,
    pub(crate) key: RunKey,
    pub(crate) thread: i64,
    pub(crate) thread_key: ThreadKey,
    pub(crate) request: RunOrigin,
    /// The requested agent, else the one that the producer names.
    pub(crate) agent: Option<String>,
    pub(crate) created_at: Timestamp,
    pub(crate) started_at: Option<Timestamp>,
    pub(crate) ended_at: Option<Timestamp>,
    pub(crate) first_seq: Option<u64>,
    pub(crate) last_seq: u64,
    pub(crate) deadline: Option<u64>,
    pub(crate) lease: Lease,
    /// Whether the lease is renewed by this commit.
    pub(crate) leased: bool,
    pub(crate) trimmed: bool,
    /// The node whose server starts its agent, if the run is new.
    pub(crate) owner: Option<Arc<str>>,
    pub(crate) head: RunProgress,
    /// The status in its row.
    pub(crate) stored_status: Status,
    /// How many interactions its row has, and how many of them are open.
    pub(crate) stored_interactions: (usize, usize),
    /// The lease in its row, and when that expires, if the store has it.
    pub(crate) stored_lease: (Lease, u64),
    pub(crate) producers: HashMap<String, ProducerHead>,
    /// What commands have looked up of its records.
    pub(crate) lookups: HistoryCache,
    pub(crate) new: bool,
    /// Whether its row is stale.
    pub(crate) dirty: bool,
    /// Whether its snapshot is stale, too.
    pub(crate) snapshot_dirty: bool,
    /// Whether it is indexed by its key.
    pub(crate) listed: bool,
}

/// The part of a run that changes with every record.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct RunProgress {
    pub(crate) state: RunState,
    pub(crate) summary: RunSummary,
    /// The state of the check of its frames.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) check: Option<Box<CheckState>>,
}

/// The request that created a run.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct RunOrigin {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) thread_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) agent: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) message: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) message_id: Option<String>,
    /// As JSON text, so that numbers keep their digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) input: Option<String>,
    /// Whether a request created it, rather than its first frame.
    #[serde(default)]
    pub(crate) asked: bool,
    /// Whether the server that created it starts the agent.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) started: bool,
    /// The attempt that created it, if it was named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) attempt: Option<String>,
}

impl RunOrigin {
    pub(crate) fn of(run: &NewRun) -> Self {
        Self {
            thread_id: run.thread_id.clone(),
            agent: run.agent.clone(),
            message: run.message.clone(),
            message_id: run.message_id.clone(),
            input: run.input.as_ref().map(|input| input.text().to_owned()),
            asked: true,
            started: run.is_started_here,
            attempt: run.attempt.clone(),
        }
    }

    /// Returns whether both requests are of the same attempt.
    pub(crate) fn is_same_attempt(&self, other: &Self) -> bool {
        self.attempt.is_some() && self.attempt == other.attempt
    }

    /// Returns whether both requests are for the same run; the layout of their JSON does not matter.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let words = |request: &Self| {
            let Self { thread_id, agent, message, message_id, asked, .. } = request.clone();
            (thread_id, agent, message, message_id, asked)
        };
        let input = |request: &Self| request.input.as_deref().map(runwire_model::Json::parse);
        words(self) == words(other)
            && match (input(self), input(other)) {
                (Some(Ok(one)), Some(Ok(another))) => one.is_same_value(&another),
                (None, None) => true,
                _ => false,
            }
    }
}

/// The state of a producer in its writer.
#[derive(Debug, Clone, Default)]
pub(crate) struct ProducerHead {
    pub(crate) epoch: u64,
    pub(crate) next: u64,
    pub(crate) state: ProducerState,
    /// Whether its row is stale.
    pub(crate) dirty: bool,
    /// Whether its snapshot is stale, too.
    pub(crate) snapshot_dirty: bool,
    /// Whether its state has changed since it was written, and not only its position.
    pub(crate) state_dirty: bool,
}

/// The decoder of a producer, and the runs that its frames go to.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct ProducerState {
    pub(crate) decoder: Option<Decoder>,
    /// For a whole thread: the runs that its frames go to, the last used at the end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) routes: Vec<Route>,
    /// The session that its frames to a run name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) session: Option<Session>,
    /// For a tenant whose frames name their threads: when it wrote last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) written_at: Option<u64>,
}

/// The session of a producer's frames.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Session {
    pub(crate) id: String,
    /// Which incarnation of the producer names it, and after how many answers: each may name another.
    pub(crate) writer: u64,
}

/// The run that frames of a source's session or run go to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Route {
    pub(crate) thread: Option<String>,
    pub(crate) run: Option<String>,
    pub(crate) to: i64,
}

impl ThreadHead {
    /// Makes a thread without records.
    pub(crate) fn new(id: i64, key: ThreadKey, parallel: bool, created_at: Timestamp) -> Self {
        Self {
            id,
            key,
            parallel,
            created_at,
            seq: 0,
            at: Timestamp(0),
            stored_seq: 0,
            oldest: 1,
            imported_base: None,
            deleted: false,
            open: Vec::new(),
            latest: None,
            snapshot_run: None,
            producers: HashMap::new(),
            forgotten: Vec::new(),
            new: true,
            listed: false,
        }
    }

    /// Advances to records that are about to be written to a row of their own; they follow those that the store has.
    pub(crate) fn store_records(&mut self, first: u64, last: u64) {
        assert!(
            first == self.stored_seq + 1 && (first..=self.seq).contains(&last),
            "stored records are contiguous in a thread"
        );
        self.stored_seq = last;
    }
}

impl RunHead {
    /// Makes a run without records.
    pub(crate) fn new(
        id: i64,
        key: RunKey,
        thread: &ThreadHead,
        request: RunOrigin,
        created_at: Timestamp,
    ) -> Self {
        let state = RunState::new(&*thread.key.id, &*key.id);
        Self {
            id,
            key,
            thread: thread.id,
            thread_key: thread.key.clone(),
            agent: request.agent.clone(),
            request,
            created_at,
            started_at: None,
            ended_at: None,
            first_seq: None,
            last_seq: 0,
            deadline: None,
            lease: Lease::None,
            leased: false,
            trimmed: false,
            owner: None,
            head: RunProgress { state, ..RunProgress::default() },
            stored_status: Status::Pending,
            stored_interactions: (0, 0),
            stored_lease: (Lease::None, 0),
            producers: HashMap::new(),
            lookups: HistoryCache::default(),
            new: true,
            dirty: true,
            snapshot_dirty: false,
            listed: false,
        }
    }

    /// Returns how many interactions it has, and how many of them are open.
    pub(crate) fn interaction_counts(&self) -> (usize, usize) {
        (self.head.summary.interactions.len(), self.head.state.interactions.len())
    }

    /// Returns whether something of it is to be written, beside its lease.
    pub(crate) fn is_changed(&self) -> bool {
        self.new || self.snapshot_dirty || self.producers.values().any(|producer| producer.snapshot_dirty)
    }

    pub(crate) fn info(&self) -> RunInfo {
        RunInfo {
            run_id: self.key.id.to_string(),
            thread_id: self.thread_key.id.to_string(),
            agent: self.agent.clone(),
            status: self.head.state.status,
            created_at: self.created_at,
            started_at: self.started_at,
            ended_at: self.ended_at,
            first_seq: self.first_seq,
            last_seq: self.last_seq,
            trimmed: self.trimmed,
            summary: self.summary(),
        }
    }

    /// Returns the run as an orphan, with the request that created it.
    pub(crate) fn orphaned(&self) -> OrphanedRun {
        let request = self.request.clone();
        let asked = NewRun {
            tenant: self.key.tenant.to_string(),
            run_id: Some(self.key.id.to_string()),
            thread_id: request.thread_id,
            agent: request.agent,
            message: request.message,
            message_id: request.message_id,
            input: request.input.and_then(|input| runwire_model::Json::parse(&input).ok()),
            is_started_here: request.started,
            attempt: request.attempt,
        };
        OrphanedRun { tenant: asked.tenant.clone(), run: self.info(), asked }
    }

    /// Returns the counters; before the first record the user message is only in the request.
    fn summary(&self) -> RunSummary {
        let mut summary = self.head.summary.clone();
        if self.first_seq.is_none() {
            summary.message =
                self.request.message.as_deref().map(|message| truncate_title(message).to_owned());
        }
        summary
    }
}

/// A loaded head, if it exists.
type Loaded<S, T> = StoreResult<S, Option<Box<T>>>;

/// The heads of the current transaction, by number and by key.
#[derive(Debug, Default)]
pub(crate) struct Heads {
    /// Boxed, because every append takes them out and puts them back.
    threads: HashMap<i64, Box<ThreadHead>>,
    thread_ids: HashMap<ThreadKey, i64>,
    runs: HashMap<i64, Box<RunHead>>,
    run_ids: HashMap<RunKey, i64>,
    /// Cached heads that were taken out, and not put back.
    taken: usize,
    lookups: LookupLimit,
}

/// Limits the texts and arguments that the heads of runs have looked up and cache.
#[derive(Debug, Default)]
pub(crate) struct LookupLimit {
    /// The bytes of each run that caches any.
    runs: HashMap<i64, usize>,
    total: usize,
}

impl LookupLimit {
    /// Records the bytes that a run caches. Returns the other runs that must drop theirs, because all together would be
    /// too much.
    pub(crate) fn record(&mut self, run: i64, bytes: usize) -> Vec<i64> {
        if bytes == 0 && self.runs.is_empty() {
            return Vec::new();
        }
        let before = if bytes == 0 { self.runs.remove(&run) } else { self.runs.insert(run, bytes) };
        self.total = self.total + bytes - before.unwrap_or(0);
        if self.total <= limits::CACHED_LOOKUP_BYTES {
            return Vec::new();
        }
        let others = self.runs.extract_if(|other, _| *other != run).map(|(other, _)| other).collect();
        self.total = bytes;
        others
    }

    /// Forgets runs that are no longer cached.
    pub(crate) fn retain(&mut self, is_cached: impl Fn(i64) -> bool) {
        self.runs.retain(|run, _| is_cached(*run));
        self.total = self.runs.values().sum();
    }
}

impl Heads {
    /// Takes a thread out, loaded if needed; [`Heads::put_thread`] puts it back.
    pub(crate) fn take_thread<S: TxnStore>(&mut self, store: &S, key: &ThreadKey) -> Loaded<S, ThreadHead> {
        if let Some(id) = self.thread_ids.get(key) {
            let thread = self.threads.remove(id);
            self.taken += usize::from(thread.is_some());
            return Ok(thread);
        }
        store.thread(key)
    }

    pub(crate) fn take_thread_by_id<S: TxnStore>(&mut self, store: &S, id: i64) -> Loaded<S, ThreadHead> {
        match self.threads.remove(&id) {
            Some(thread) => {
                self.taken += 1;
                Ok(Some(thread))
            }
            None => store.thread_by_id(id),
        }
    }

    pub(crate) fn put_thread(&mut self, mut thread: Box<ThreadHead>) {
        if !std::mem::replace(&mut thread.listed, true) {
            self.thread_ids.insert(thread.key.clone(), thread.id);
        } else {
            self.taken = self.taken.saturating_sub(1);
        }
        self.threads.insert(thread.id, thread);
    }

    /// Takes a run out, loaded if needed; [`Heads::put_run`] puts it back.
    pub(crate) fn take_run<S: TxnStore>(&mut self, store: &S, key: &RunKey) -> Loaded<S, RunHead> {
        if let Some(id) = self.run_ids.get(key) {
            let run = self.runs.remove(id);
            self.taken += usize::from(run.is_some());
            return Ok(run);
        }
        store.run(key)
    }

    pub(crate) fn take_run_by_id<S: TxnStore>(&mut self, store: &S, id: i64) -> Loaded<S, RunHead> {
        match self.runs.remove(&id) {
            Some(run) => {
                self.taken += 1;
                Ok(Some(run))
            }
            None => store.run_by_id(id),
        }
    }

    pub(crate) fn put_run(&mut self, mut run: Box<RunHead>) {
        if !std::mem::replace(&mut run.listed, true) {
            self.run_ids.insert(run.key.clone(), run.id);
        } else {
            self.taken = self.taken.saturating_sub(1);
        }
        for other in self.lookups.record(run.id, run.lookups.bytes()) {
            if let Some(other) = self.runs.get_mut(&other) {
                other.lookups.clear();
            }
        }
        self.runs.insert(run.id, run);
    }

    /// Returns the number of cached heads that were taken out, and not put back.
    pub(super) fn taken(&self) -> usize {
        self.taken
    }

    /// Returns whether the current command has created the thread.
    pub(crate) fn is_fresh_thread(&self, thread: &ThreadHead) -> bool {
        thread.new && !self.thread_ids.contains_key(&thread.key)
    }

    /// Returns whether the current command has created the run.
    pub(crate) fn is_fresh_run(&self, run: &RunHead) -> bool {
        run.new && !self.run_ids.contains_key(&run.key)
    }

    /// Returns a loaded thread.
    pub(crate) fn thread_mut(&mut self, id: i64) -> Option<&mut ThreadHead> {
        self.threads.get_mut(&id).map(|thread| &mut **thread)
    }

    /// Returns a loaded thread.
    pub(crate) fn thread(&self, id: i64) -> Option<&ThreadHead> {
        self.threads.get(&id).map(|thread| &**thread)
    }

    /// Returns a loaded run.
    pub(crate) fn run(&self, id: i64) -> Option<&RunHead> {
        self.runs.get(&id).map(|run| &**run)
    }

    /// Returns a loaded run.
    pub(crate) fn run_mut(&mut self, id: i64) -> Option<&mut RunHead> {
        self.runs.get_mut(&id).map(|run| &mut **run)
    }

    /// Returns a run if it is loaded.
    pub(crate) fn cached_run_mut(&mut self, key: &RunKey) -> Option<&mut RunHead> {
        let id = *self.run_ids.get(key)?;
        self.run_mut(id)
    }

    /// Returns whether a run id is taken.
    pub(crate) fn has_run<S: TxnStore>(&self, store: &S, key: &RunKey) -> StoreResult<S, bool> {
        Ok(self.run_ids.contains_key(key) || store.has_run(key)?)
    }

    /// Returns whether a run of a thread begins with a `seq`.
    pub(crate) fn has_run_from<S: TxnStore>(
        &self,
        store: &S,
        thread: i64,
        first_seq: u64,
    ) -> StoreResult<S, bool> {
        let begins = |run: &RunHead| run.thread == thread && run.first_seq == Some(first_seq);
        Ok(self.runs.values().any(|run| begins(run)) || store.has_run_from(thread, first_seq)?)
    }

    /// Returns whether too many heads are cached.
    pub(crate) fn is_full(&self) -> bool {
        self.runs.len() > limits::CACHED_HEADS || self.threads.len() > limits::CACHED_HEADS
    }

    /// Drops clean heads when there are too many. Only valid after a commit that flushed all.
    pub(crate) fn shrink(&mut self) {
        if self.is_full() {
            self.runs.retain(|_, run| run.dirty);
            self.run_ids.retain(|_, id| self.runs.contains_key(id));
            self.lookups.retain(|run| self.runs.contains_key(&run));
            self.threads.clear();
            self.thread_ids.clear();
        }
    }

    /// Returns all threads and runs.
    pub(crate) fn into_parts(
        self,
    ) -> (impl Iterator<Item = Box<ThreadHead>>, impl Iterator<Item = Box<RunHead>>) {
        (self.threads.into_values(), self.runs.into_values())
    }

    /// Drops a deleted thread and its runs.
    pub(crate) fn forget_thread(&mut self, id: i64) {
        self.runs.retain(|_, run| run.thread != id);
        self.run_ids.retain(|_, run| self.runs.contains_key(run));
        self.lookups.retain(|run| self.runs.contains_key(&run));
        self.threads.remove(&id);
        self.thread_ids.retain(|_, thread| *thread != id);
    }
}
