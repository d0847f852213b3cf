//! LogStats: how much a log has written since it was opened, and what it holds now.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Longest times of the classes that commits are counted in; one more bucket has those that took longer.
pub const COMMIT_TIME_BUCKETS: [Duration; 10] = [
    Duration::from_micros(250),
    Duration::from_micros(500),
    Duration::from_millis(1),
    Duration::from_micros(2500),
    Duration::from_millis(5),
    Duration::from_millis(10),
    Duration::from_millis(25),
    Duration::from_millis(100),
    Duration::from_millis(500),
    Duration::from_millis(2500),
];

/// What a log has done since it was opened, and what it holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogStats {
    /// What was written.
    pub written: WriteStats,
    /// Runs that nothing was written to yet.
    pub pending: u64,
    /// Runs that are under way.
    pub running: u64,
    /// Runs that wait for a person.
    pub suspended: u64,
    /// Questions that wait for an answer.
    pub interactions: u64,
    /// Bytes that the store takes on disk.
    pub store_bytes: u64,
    /// What subscribers have not been told of, for each that has something waiting.
    pub backlog: Vec<SubscriberBacklog>,
}

/// What was written since the log was opened.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WriteStats {
    /// Records.
    pub records: u64,
    /// Events that they mean.
    pub events: u64,
    /// Bytes of the frames that they keep.
    pub bytes: u64,
    /// Commits.
    pub commits: u64,
    /// Time that the commits took in all.
    pub commit_time: Duration,
    /// How many commits took how long: the classes of [`COMMIT_TIME_BUCKETS`], then the rest.
    pub commit_buckets: [u64; COMMIT_TIME_BUCKETS.len() + 1],
}

/// What a subscriber has not been told of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubscriberBacklog {
    /// The subscriber.
    pub subscriber: String,
    /// OutboxRows that wait.
    pub messages: u64,
    /// Those of them that were tried in vain.
    pub retried: u64,
}

/// Counts what is written: a few additions for each commit, whatever it holds.
#[derive(Debug, Default)]
pub(crate) struct WriteCounters {
    records: AtomicU64,
    events: AtomicU64,
    bytes: AtomicU64,
    commit_nanos: AtomicU64,
    commit_buckets: [AtomicU64; COMMIT_TIME_BUCKETS.len() + 1],
}

/// What one commit has written.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct CommitCounts {
    pub(crate) records: u64,
    pub(crate) events: u64,
    pub(crate) bytes: u64,
}

impl WriteCounters {
    /// Counts a commit.
    pub(crate) fn record(&self, counts: CommitCounts, took: Duration) {
        self.records.fetch_add(counts.records, Ordering::Relaxed);
        self.events.fetch_add(counts.events, Ordering::Relaxed);
        self.bytes.fetch_add(counts.bytes, Ordering::Relaxed);
        let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.commit_nanos.fetch_add(nanos, Ordering::Relaxed);
        let bucket = COMMIT_TIME_BUCKETS.partition_point(|longest| *longest < took);
        self.commit_buckets[bucket].fetch_add(1, Ordering::Relaxed);
    }

    /// Returns what was counted so far.
    pub(crate) fn written(&self) -> WriteStats {
        let commit_buckets = self.commit_buckets.each_ref().map(|bucket| bucket.load(Ordering::Relaxed));
        WriteStats {
            records: self.records.load(Ordering::Relaxed),
            events: self.events.load(Ordering::Relaxed),
            bytes: self.bytes.load(Ordering::Relaxed),
            // The sum of its classes, so that the two never contradict each other.
            commits: commit_buckets.iter().sum(),
            commit_time: Duration::from_nanos(self.commit_nanos.load(Ordering::Relaxed)),
            commit_buckets,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_is_counted_in_the_class_of_its_time() {
        let write_counters = WriteCounters::default();
        let counts = CommitCounts { records: 2, events: 3, bytes: 50 };
        for took in [Duration::ZERO, COMMIT_TIME_BUCKETS[0], COMMIT_TIME_BUCKETS[1], Duration::from_secs(60)]
        {
            write_counters.record(counts, took);
        }
        let written = write_counters.written();
        assert_eq!((written.records, written.events, written.bytes, written.commits), (8, 12, 200, 4));
        assert_eq!(written.commit_buckets, [2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
        assert!(written.commit_time > Duration::from_secs(60));
    }
}
