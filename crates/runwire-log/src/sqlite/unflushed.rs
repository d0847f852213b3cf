//! What is committed and not flushed, as readers see it: reading needs no flush.
//!
//! After each commit the committer publishes its part of `pending_commits` here, before anything is acknowledged. A
//! reader takes the parts of the threads that it reads, and then begins its snapshot. So whatever is missing in the
//! parts is in the tables; what is in both is told apart by `seq`.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

/// The unflushed part of a thread.
#[derive(Debug, Clone, Default)]
pub(super) struct UnflushedPart {
    /// Encoded records, those of each commit together with their last `seq`.
    pub(super) records: Vec<(u64, Bytes)>,
    pub(super) runs: HashMap<i64, UnflushedRun>,
}

impl UnflushedPart {
    /// Returns the last `seq`.
    pub(super) fn last_seq(&self) -> Option<u64> {
        self.records.last().map(|(last, _)| *last)
    }
}

/// The newest progress of a run, and those of its producers that have changed.
#[derive(Debug, Clone, Default)]
pub(super) struct UnflushedRun {
    pub(super) progress: Option<UnflushedProgress>,
    pub(super) producers: HashMap<Bytes, UnflushedProducer>,
}

#[derive(Debug, Clone)]
pub(super) struct UnflushedProgress {
    pub(super) last_seq: u64,
    pub(super) deadline: Option<u64>,
    /// Encoded as `EncodedProgress`.
    pub(super) progress: Bytes,
}

#[derive(Debug, Clone)]
pub(super) struct UnflushedProducer {
    pub(super) epoch: u64,
    pub(super) next: u64,
    /// As JSON; empty where it is the one of the row.
    pub(super) state: Bytes,
}

/// Something that a commit has added to the unflushed part of a thread.
#[derive(Debug, Clone)]
pub(super) enum Added {
    Records { last_seq: u64, records: Bytes },
    Progress { run: i64, progress: UnflushedProgress },
    Producer { run: i64, name: Bytes, producer: UnflushedProducer },
}

/// What a commit has changed.
#[derive(Debug, Clone, Default)]
pub(super) struct UnflushedChanges {
    /// By the number of the thread, in order.
    pub(super) added: Vec<(i64, Added)>,
    /// Threads that were flushed or deleted after that.
    pub(super) flushed: Vec<i64>,
}

/// The unflushed parts of threads by their numbers.
pub(super) type UnflushedParts = HashMap<i64, Arc<UnflushedPart>>;

/// The unflushed parts of all threads. It holds no more than the table of pending commits.
#[derive(Debug, Default)]
pub(super) struct Unflushed(Mutex<Published>);

/// The parts, which lists share instead of copying them. While one has them, changes wait beside them, so that neither
/// delays a commit.
#[derive(Debug, Default)]
struct Published {
    parts: Arc<UnflushedParts>,
    /// Changes that are not in the parts yet, oldest first.
    waiting: Vec<Arc<UnflushedChanges>>,
}

/// Changes that wait before the parts are copied after all, because lists follow each other without a gap.
const WAITING_CHANGES: usize = 64;

impl Unflushed {
    /// Publishes the changes of a commit that has happened.
    pub(super) fn publish(&self, changes: UnflushedChanges) {
        let mut published = self.lock();
        let Published { parts, waiting } = &mut *published;
        if waiting.len() < WAITING_CHANGES && Arc::get_mut(parts).is_none() {
            waiting.push(Arc::new(changes));
            return;
        }
        let parts = Arc::make_mut(parts);
        for earlier in waiting.drain(..) {
            apply(parts, Arc::unwrap_or_clone(earlier));
        }
        apply(parts, changes);
    }

    /// Returns the part of one thread.
    pub(super) fn of(&self, thread: i64) -> UnflushedParts {
        let (part, waiting) = {
            let published = self.lock();
            (published.parts.get(&thread).cloned(), published.waiting.clone())
        };
        let mut parts: UnflushedParts = part.map(|part| (thread, part)).into_iter().collect();
        for changes in waiting {
            apply(&mut parts, changes.of(thread));
        }
        parts
    }

    /// Returns the parts of all threads.
    pub(super) fn all(&self) -> Arc<UnflushedParts> {
        let (mut parts, waiting) = {
            let published = self.lock();
            (published.parts.clone(), published.waiting.clone())
        };
        for changes in waiting {
            apply(Arc::make_mut(&mut parts), Arc::unwrap_or_clone(changes));
        }
        parts
    }

    fn lock(&self) -> MutexGuard<'_, Published> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl UnflushedChanges {
    /// Returns the changes of one thread.
    fn of(&self, thread: i64) -> Self {
        let added = self.added.iter().filter(|(of, _)| *of == thread).cloned().collect();
        let flushed = self.flushed.iter().filter(|of| **of == thread).copied().collect();
        Self { added, flushed }
    }
}

/// Applies the changes of a commit.
fn apply(parts: &mut UnflushedParts, changes: UnflushedChanges) {
    for (thread, added) in changes.added {
        // Copied only if a reader has just taken it.
        let part = Arc::make_mut(parts.entry(thread).or_default());
        match added {
            Added::Records { last_seq, records } => part.records.push((last_seq, records)),
            Added::Progress { run, progress } => part.runs.entry(run).or_default().progress = Some(progress),
            Added::Producer { run, name, mut producer } => {
                let producers = &mut part.runs.entry(run).or_default().producers;
                if let Some(before) = producers.get(&name).filter(|_| producer.state.is_empty()) {
                    producer.state = before.state.clone();
                }
                producers.insert(name, producer);
            }
        }
    }
    for thread in changes.flushed {
        parts.remove(&thread);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records(thread: i64, last_seq: u64) -> UnflushedChanges {
        let added = vec![(thread, Added::Records { last_seq, records: Bytes::new() })];
        UnflushedChanges { added, flushed: Vec::new() }
    }

    #[test]
    fn what_a_list_has_taken_stays_as_it_was_and_the_next_one_has_what_came_since() {
        let unflushed = Unflushed::default();
        unflushed.publish(records(1, 1));
        unflushed.publish(records(2, 1));
        let taken = unflushed.all();
        let last = |parts: &UnflushedParts, thread| parts.get(&thread).and_then(|part| part.last_seq());
        for seq in 2..3 * WAITING_CHANGES as u64 {
            unflushed.publish(records(1, seq));
            assert_eq!(last(&unflushed.of(1), 1), Some(seq));
            assert_eq!(last(&unflushed.all(), 1), Some(seq));
            assert_eq!((last(&taken, 1), last(&taken, 2)), (Some(1), Some(1)));
            assert!(unflushed.lock().waiting.len() <= WAITING_CHANGES);
        }
        unflushed.publish(UnflushedChanges { added: Vec::new(), flushed: vec![1] });
        assert_eq!((last(&unflushed.of(1), 1), last(&unflushed.of(2), 2)), (None, Some(1)));
        drop(taken);
        unflushed.publish(records(1, 1000));
        assert!(unflushed.lock().waiting.is_empty());
        let parts = unflushed.all();
        assert_eq!((last(&parts, 1), parts[&1].records.len(), last(&parts, 2)), (Some(1000), 1, Some(1)));
    }
}
