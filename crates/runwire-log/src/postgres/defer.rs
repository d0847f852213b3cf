//! Defers commands for threads that other nodes have locked, so that other commands need not wait for them.
//!
//! A thread is locked until its commit has reached the disk. A group that waited for all of its threads would wait
//! for most of the other nodes' groups, one after the other, and hold its own locks meanwhile. So where nodes share
//! threads a writer skips locked threads, and takes their commands with its next group. Then it waits for a thread
//! that is locked again.

use super::begin::LockMode;
use super::commit::QueuedCommand;
use super::writer::PgWriter;

impl PgWriter {
    /// Chooses how the threads of a group are locked.
    pub(super) fn lock_mode(&self, group: &[QueuedCommand]) -> LockMode {
        if self.pessimistic_commits == 0 {
            return LockMode::Cached;
        }
        if group.iter().any(|request| !request.wanted.is_empty()) {
            return LockMode::Reload;
        }
        let Some(threads) = group.iter().map(|request| self.threads_of(request)).collect::<Option<Vec<_>>>()
        else {
            return LockMode::Reload;
        };
        let first = threads.first().cloned().unwrap_or_default();
        if threads.iter().all(|threads| *threads == first) {
            return LockMode::Reload;
        }
        let deferred = group.iter().zip(threads).filter(|(request, _)| request.was_deferred);
        LockMode::SkipLocked { except: deferred.flat_map(|(_, threads)| threads).collect() }
    }

    /// Defers the commands whose threads are not locked by this transaction.
    pub(super) fn defer_busy(&mut self, group: &mut Vec<QueuedCommand>) {
        let is_free = |request: &QueuedCommand| {
            let locked = self.txn.store.locked.borrow();
            self.threads_of(request).is_some_and(|threads| threads.iter().all(|id| locked.contains_key(id)))
        };
        let (free, mut busy): (Vec<_>, Vec<_>) = group.drain(..).partition(is_free);
        *group = free;
        busy.iter_mut().for_each(|request| request.was_deferred = true);
        self.deferred.append(&mut busy);
    }

    /// Returns the threads of a command, if their numbers are cached.
    fn threads_of(&self, request: &QueuedCommand) -> Option<Vec<i64>> {
        let (cache, (threads, runs)) = (self.txn.store.cache.borrow(), request.command.keys());
        let threads = threads.iter().map(|thread| cache.thread_id(thread));
        let of_runs = runs.iter().map(|run| cache.run_location(run).map(|location| location.thread));
        let mut threads = threads.chain(of_runs).collect::<Option<Vec<_>>>()?;
        threads.dedup();
        (!threads.is_empty()).then_some(threads)
    }
}
