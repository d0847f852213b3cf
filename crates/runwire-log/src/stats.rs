//! Statistics of a log: what it has written since it was opened, and what it holds now.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Upper bounds of the histogram of commit times; one more bucket counts longer ones.
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

/// Statistics of a log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogStats {
    /// Writes.
    pub written: WriteStats,
    /// Runs without a record.
    pub pending: u64,
    /// Running runs.
    pub running: u64,
    /// Suspended runs, which wait for a person.
    pub suspended: u64,
    /// Open interactions.
    pub interactions: u64,
    /// Size of the store on disk, in bytes.
    pub store_bytes: u64,
    /// Rows that could not be read lately, and were passed over.
    pub unreadable: u64,
    /// The undelivered outbox messages of each subscriber that has any.
    pub backlog: Vec<SubscriberBacklog>,
}

/// Writes since the log was opened.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WriteStats {
    /// Records.
    pub records: u64,
    /// Events of those records.
    pub events: u64,
    /// Bytes of their frames.
    pub bytes: u64,
    /// Stored records that writers have looked at again, for what a frame left to be gathered.
    pub scanned: u64,
    /// Commits.
    pub commits: u64,
    /// Sum of the commit times.
    pub commit_time: Duration,
    /// Histogram of commit times: the buckets of [`COMMIT_TIME_BUCKETS`], then the rest.
    pub commit_buckets: [u64; COMMIT_TIME_BUCKETS.len() + 1],
}

/// The undelivered outbox messages of a subscriber.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubscriberBacklog {
    /// The subscriber.
    pub subscriber: String,
    /// Undelivered messages.
    pub messages: u64,
    /// Those of them with a failed attempt.
    pub retried: u64,
}

/// Counts commits: a few atomic additions for each, however large.
#[derive(Debug, Default)]
pub(crate) struct WriteCounters {
    records: AtomicU64,
    events: AtomicU64,
    bytes: AtomicU64,
    scanned: AtomicU64,
    commit_nanos: AtomicU64,
    commit_buckets: [AtomicU64; COMMIT_TIME_BUCKETS.len() + 1],
}

/// The size of one commit.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct CommitCounts {
    pub(crate) records: u64,
    pub(crate) events: u64,
    pub(crate) bytes: u64,
    /// Stored records that were looked at.
    pub(crate) scanned: u64,
}

impl WriteCounters {
    /// Counts a commit.
    pub(crate) fn record(&self, counts: CommitCounts, took: Duration) {
        self.records.fetch_add(counts.records, Ordering::Relaxed);
        self.events.fetch_add(counts.events, Ordering::Relaxed);
        self.bytes.fetch_add(counts.bytes, Ordering::Relaxed);
        self.scanned.fetch_add(counts.scanned, Ordering::Relaxed);
        let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.commit_nanos.fetch_add(nanos, Ordering::Relaxed);
        let bucket = COMMIT_TIME_BUCKETS.partition_point(|longest| *longest < took);
        self.commit_buckets[bucket].fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the counters.
    pub(crate) fn written(&self) -> WriteStats {
        let commit_buckets = self.commit_buckets.each_ref().map(|bucket| bucket.load(Ordering::Relaxed));
        WriteStats {
            records: self.records.load(Ordering::Relaxed),
            events: self.events.load(Ordering::Relaxed),
            bytes: self.bytes.load(Ordering::Relaxed),
            scanned: self.scanned.load(Ordering::Relaxed),
            // The sum of the buckets, so that the two never contradict each other.
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
        let counts = CommitCounts { records: 2, events: 3, bytes: 50, scanned: 7 };
        for took in [Duration::ZERO, COMMIT_TIME_BUCKETS[0], COMMIT_TIME_BUCKETS[1], Duration::from_secs(60)]
        {
            write_counters.record(counts, took);
        }
        let written = write_counters.written();
        assert_eq!((written.records, written.events, written.bytes, written.commits), (8, 12, 200, 4));
        assert_eq!(written.scanned, 28);
        assert_eq!(written.commit_buckets, [2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
        assert!(written.commit_time > Duration::from_secs(60));
    }
}
