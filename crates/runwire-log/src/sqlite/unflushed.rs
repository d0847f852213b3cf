//! What is committed and not flushed, as readers see it: reading needs no flush.
//!
//! After each commit the committer publishes its part of `pending_commits` here, before anything is acknowledged. A
//! reader takes the parts of the threads that it reads, and then begins its snapshot. So whatever is missing in the
//! parts is in the tables; what is in both is told apart by `seq`.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

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
#[derive(Debug)]
pub(super) enum Added {
    Records { last_seq: u64, records: Bytes },
    Progress { run: i64, progress: UnflushedProgress },
    Producer { run: i64, name: Bytes, producer: UnflushedProducer },
}

/// What a commit has changed.
#[derive(Debug, Default)]
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
pub(super) struct Unflushed(Mutex<UnflushedParts>);

impl Unflushed {
    /// Publishes the changes of a commit that has happened.
    pub(super) fn publish(&self, changes: UnflushedChanges) {
        let mut parts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for (thread, added) in changes.added {
            // Copied only if a reader has just taken it.
            let part = Arc::make_mut(parts.entry(thread).or_default());
            match added {
                Added::Records { last_seq, records } => part.records.push((last_seq, records)),
                Added::Progress { run, progress } => {
                    part.runs.entry(run).or_default().progress = Some(progress)
                }
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

    /// Returns the part of one thread.
    pub(super) fn of(&self, thread: i64) -> UnflushedParts {
        let parts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        parts.get(&thread).map(|part| (thread, part.clone())).into_iter().collect()
    }

    /// Returns the parts of all threads.
    pub(super) fn all(&self) -> UnflushedParts {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
