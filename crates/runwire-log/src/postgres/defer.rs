//! Putting off what concerns threads that other nodes are writing to, so that all else need not wait for them.
//!
//! A thread is locked until its commit has reached the disk. A group that waited for all of its threads would wait for
//! most of the other nodes' groups, one after the other, and hold its own locks meanwhile. So where nodes share threads a
//! writer takes those that are free, and the others with its next group. For a thread that was not free then it waits.

use super::begin::LockMode;
use super::commit::QueuedCommand;
use super::writer::PgWriter;

impl PgWriter {
    /// Returns how the threads of requests are locked.
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

    /// Puts off the requests whose threads are not locked.
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

    /// Returns the threads of a request, if their numbers are at hand.
    fn threads_of(&self, request: &QueuedCommand) -> Option<Vec<i64>> {
        let (cache, (threads, runs)) = (self.txn.store.cache.borrow(), request.command.keys());
        let threads = threads.iter().map(|thread| cache.thread_id(thread));
        let of_runs = runs.iter().map(|run| cache.run_location(run).map(|location| location.thread));
        let mut threads = threads.chain(of_runs).collect::<Option<Vec<_>>>()?;
        threads.dedup();
        (!threads.is_empty()).then_some(threads)
    }
}
