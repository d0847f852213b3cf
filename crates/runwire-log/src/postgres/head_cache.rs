//! Caches heads from one commit of a writer to the next.
//!
//! A cached head of a thread is valid while its row is locked and has the version that it had when it was cached:
//! every commit that changes the thread, one of its runs or one of their producers changes the version. Names are
//! cached apart: they are used once, and never change their meaning.

use std::collections::HashMap;

use crate::key::{RunKey, ThreadKey};
use crate::limits;
use crate::txn::{LookupLimit, RunHead, ThreadHead};

/// A cache of heads, by number and by name.
#[derive(Default)]
pub(super) struct HeadCache {
    threads: HashMap<i64, CachedThread>,
    runs: HashMap<i64, Box<RunHead>>,
    thread_names: HashMap<ThreadKey, i64>,
    run_names: HashMap<RunKey, RunLocation>,
    lookups: LookupLimit,
}

/// The cached heads of a thread at one version.
struct CachedThread {
    version: i64,
    /// `None` if only some of its runs are cached, or while it is in use.
    head: Option<Box<ThreadHead>>,
    /// Its runs that may be cached.
    runs: Vec<i64>,
}

/// The numbers of a run and its thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RunLocation {
    pub(super) run: i64,
    pub(super) thread: i64,
}

impl HeadCache {
    pub(super) fn thread_id(&self, key: &ThreadKey) -> Option<i64> {
        self.thread_names.get(key).copied()
    }

    pub(super) fn run_location(&self, key: &RunKey) -> Option<RunLocation> {
        self.run_names.get(key).copied()
    }

    /// Checks the version of a locked thread: stale heads are dropped.
    pub(super) fn check(&mut self, thread: i64, version: i64) {
        if let Some(old) = self.threads.remove(&thread) {
            if old.version == version {
                self.threads.insert(thread, old);
            } else {
                self.drop_runs(&old);
            }
        }
    }

    /// Returns the cached version of a thread, if its head is cached.
    pub(super) fn version_of(&self, thread: i64) -> Option<i64> {
        self.threads.get(&thread).filter(|kept| kept.head.is_some()).map(|kept| kept.version)
    }

    pub(super) fn has_thread(&self, thread: i64) -> bool {
        self.version_of(thread).is_some()
    }

    pub(super) fn has_run(&self, run: i64) -> bool {
        self.runs.contains_key(&run)
    }

    /// Takes the head of a checked thread.
    pub(super) fn take_thread(&mut self, thread: i64) -> Option<Box<ThreadHead>> {
        self.threads.get_mut(&thread)?.head.take()
    }

    /// Takes the head of a run of a checked thread.
    pub(super) fn take_run(&mut self, run: i64) -> Option<Box<RunHead>> {
        self.lookups.record(run, 0);
        self.runs.remove(&run)
    }

    /// Returns the thread of a cached run.
    pub(super) fn thread_of(&self, run: i64) -> Option<i64> {
        self.runs.get(&run).map(|run| run.thread)
    }

    /// Caches the head of a thread with its stored version.
    pub(super) fn keep_thread(&mut self, mut head: Box<ThreadHead>, version: i64) {
        (head.new, head.listed, head.imported_base) = (false, false, None);
        head.producers
            .values_mut()
            .for_each(|producer| (producer.dirty, producer.snapshot_dirty) = (false, false));
        self.thread_names.insert(head.key.clone(), head.id);
        let kept = self.of(head.id, version);
        kept.head = Some(head);
    }

    /// Caches the head of a run with the stored version of its thread.
    pub(super) fn keep_run(&mut self, mut head: Box<RunHead>, version: i64) {
        (head.new, head.listed, head.leased) = (false, false, false);
        let location = RunLocation { run: head.id, thread: head.thread };
        self.run_names.insert(head.key.clone(), location);
        let kept = self.of(location.thread, version);
        if !kept.runs.contains(&location.run) {
            kept.runs.push(location.run);
        }
        for other in self.lookups.record(location.run, head.lookups.bytes()) {
            if let Some(other) = self.runs.get_mut(&other) {
                other.lookups.clear();
            }
        }
        self.runs.insert(location.run, head);
    }

    /// Changes the version of a cached thread after a commit.
    pub(super) fn advance(&mut self, thread: i64, version: i64) {
        if let Some(kept) = self.threads.get_mut(&thread) {
            kept.version = version;
        }
    }

    /// Clears the cache when it is too large.
    pub(super) fn shrink(&mut self) {
        let most =
            self.runs.len().max(self.threads.len()).max(self.run_names.len()).max(self.thread_names.len());
        if most > limits::CACHED_HEADS {
            *self = Self::default();
        }
    }

    fn of(&mut self, thread: i64, version: i64) -> &mut CachedThread {
        let begin = || CachedThread { version, head: None, runs: Vec::new() };
        self.threads.entry(thread).or_insert_with(begin)
    }

    fn drop_runs(&mut self, kept: &CachedThread) {
        for run in &kept.runs {
            self.lookups.record(*run, 0);
            self.runs.remove(run);
        }
    }
}
