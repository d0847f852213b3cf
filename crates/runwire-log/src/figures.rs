//! Figures: how much a log has written since it was opened, and what it holds now.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Longest times of the classes that commits are counted in; one more class has those that took longer.
pub const COMMIT_TIMES: [Duration; 10] = [
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
pub struct Figures {
    /// What was written.
    pub written: Written,
    /// Runs that nothing was written to yet.
    pub pending: u64,
    /// Runs that are under way.
    pub running: u64,
    /// Runs that wait for a person.
    pub suspended: u64,
    /// Questions that wait for an answer.
    pub questions: u64,
    /// Bytes that the store takes on disk.
    pub store_bytes: u64,
    /// What subscribers have not been told of, for each that has something waiting.
    pub waiting: Vec<Waiting>,
}

/// What was written since the log was opened.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Written {
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
    /// How many commits took how long: the classes of [`COMMIT_TIMES`], then the rest.
    pub commit_classes: [u64; COMMIT_TIMES.len() + 1],
}

/// What a subscriber has not been told of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting {
    /// The subscriber.
    pub subscriber: String,
    /// OutboxRows that wait.
    pub notices: u64,
    /// Those of them that were tried in vain.
    pub tried: u64,
}

/// Counts what is written: a few additions for each commit, whatever it holds.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    records: AtomicU64,
    events: AtomicU64,
    bytes: AtomicU64,
    commit_nanos: AtomicU64,
    commit_classes: [AtomicU64; COMMIT_TIMES.len() + 1],
}

/// What one commit has written.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Tally {
    pub(crate) records: u64,
    pub(crate) events: u64,
    pub(crate) bytes: u64,
}

impl Meter {
    /// Counts a commit.
    pub(crate) fn note(&self, tally: Tally, took: Duration) {
        self.records.fetch_add(tally.records, Ordering::Relaxed);
        self.events.fetch_add(tally.events, Ordering::Relaxed);
        self.bytes.fetch_add(tally.bytes, Ordering::Relaxed);
        let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.commit_nanos.fetch_add(nanos, Ordering::Relaxed);
        let class = COMMIT_TIMES.partition_point(|longest| *longest < took);
        self.commit_classes[class].fetch_add(1, Ordering::Relaxed);
    }

    /// Tells what was counted so far.
    pub(crate) fn written(&self) -> Written {
        let commit_classes = self.commit_classes.each_ref().map(|class| class.load(Ordering::Relaxed));
        Written {
            records: self.records.load(Ordering::Relaxed),
            events: self.events.load(Ordering::Relaxed),
            bytes: self.bytes.load(Ordering::Relaxed),
            // The sum of its classes, so that the two never contradict each other.
            commits: commit_classes.iter().sum(),
            commit_time: Duration::from_nanos(self.commit_nanos.load(Ordering::Relaxed)),
            commit_classes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_is_counted_in_the_class_of_its_time() {
        let meter = Meter::default();
        let tally = Tally { records: 2, events: 3, bytes: 50 };
        for took in [Duration::ZERO, COMMIT_TIMES[0], COMMIT_TIMES[1], Duration::from_secs(60)] {
            meter.note(tally, took);
        }
        let written = meter.written();
        assert_eq!((written.records, written.events, written.bytes, written.commits), (8, 12, 200, 4));
        assert_eq!(written.commit_classes, [2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
        assert!(written.commit_time > Duration::from_secs(60));
    }
}
