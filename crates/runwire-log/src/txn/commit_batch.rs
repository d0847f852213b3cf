//! The records, outbox messages and touched heads of commands that are committed together.

use std::cell::OnceCell;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use runwire_model::record::Record;
use runwire_model::{Json, Timestamp};

use super::heads::{RunHead, ThreadHead};
use super::{Txn, TxnStore};
use crate::cluster::EncodedBatch;
use crate::key::ThreadKey;
use crate::outbox::OutboxKind;
use crate::record::StoredRecord;

/// What a commit writes, beside the touched heads.
#[derive(Default)]
pub(crate) struct CommitBatch {
    /// The new records, by the number of their thread.
    pub(crate) records: HashMap<i64, ThreadRecords>,
    pub(crate) touched_threads: HashSet<i64>,
    pub(crate) touched_runs: HashSet<i64>,
    /// Deleted threads; their readers are notified after the commit.
    pub(crate) deleted: Vec<(i64, ThreadKey)>,
    /// New outbox messages.
    pub(crate) outbox: Vec<NewOutboxMessage>,
    /// Number of changes: grows with every record and every changed head.
    pub(super) changes: u64,
}

/// New records of a thread, each with the number of its run.
pub(crate) struct ThreadRecords {
    pub(crate) key: ThreadKey,
    pub(crate) records: Vec<(i64, Arc<StoredRecord>)>,
    encoded: OnceCell<Option<EncodedBatch>>,
}

impl ThreadRecords {
    /// Encodes the records once, when all of them are there; returns `None` if there are none.
    pub(crate) fn encoded(&self, thread: i64) -> Option<&EncodedBatch> {
        self.encoded.get_or_init(|| EncodedBatch::encode(thread, &self.records)).as_ref()
    }
}

/// An event for a subscriber.
pub(crate) struct NewOutboxMessage {
    pub(crate) subscriber: String,
    pub(crate) run: i64,
    pub(crate) kind: OutboxKind,
    pub(crate) seq: u64,
    pub(crate) at: Timestamp,
    pub(crate) event: Json,
}

impl CommitBatch {
    /// Adds a record, the next one of its thread.
    pub(super) fn push(&mut self, thread: &mut ThreadHead, run: i64, stored: Arc<StoredRecord>) {
        let Record { seq, at, .. } = stored.record;
        assert!(seq == thread.seq + 1, "`seq` is contiguous in a thread");
        assert!(at >= thread.at, "the time of a thread never goes backwards");
        (thread.seq, thread.at) = (seq, at);
        let begin =
            || ThreadRecords { key: thread.key.clone(), records: Vec::new(), encoded: OnceCell::new() };
        self.changes += 1;
        self.records.entry(thread.id).or_insert_with(begin).records.push((run, stored));
    }

    /// Lists the new records of a thread.
    pub(super) fn records_of(&self, thread: i64) -> &[(i64, Arc<StoredRecord>)] {
        self.records.get(&thread).map_or(&[], |pending| &pending.records)
    }
}

impl<S: TxnStore> Txn<S> {
    /// Adds the outbox messages of a record that is about to be added.
    pub(super) fn queue_outbox(&mut self, run: &RunHead, record: &Record) {
        if self.subscribers.is_empty() {
            return;
        }
        for event in record.entries.iter().map(|entry| &entry.event) {
            let Some(kind) = OutboxKind::of(&event.body) else { continue };
            for subscriber in self.subscribers.iter().filter(|known| known.kinds.contains(&kind)) {
                self.batch.outbox.push(NewOutboxMessage {
                    subscriber: subscriber.name.clone(),
                    run: run.id,
                    kind,
                    seq: record.seq,
                    at: record.at,
                    event: event.to_json(),
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(seq: u64, at: u64) -> Arc<StoredRecord> {
        let record = Record { seq, at: Timestamp(at), source_time: None, dialect: None, entries: Vec::new() };
        Arc::new(StoredRecord { run: "run".into(), record, name: None, frame: None })
    }

    #[test]
    #[should_panic(expected = "`seq` is contiguous in a thread")]
    fn a_gap_between_records_is_not_written() {
        let mut batch = CommitBatch::default();
        let mut thread = ThreadHead::new(1, ThreadKey::new("tenant", "thread"), false, Timestamp(1));
        for seq in [1, 3] {
            batch.push(&mut thread, 1, record(seq, 1));
        }
    }

    #[test]
    #[should_panic(expected = "the time of a thread never goes backwards")]
    fn a_record_from_before_the_last_one_is_not_written() {
        let mut batch = CommitBatch::default();
        let mut thread = ThreadHead::new(1, ThreadKey::new("tenant", "thread"), false, Timestamp(1));
        for (seq, at) in [(1, 7), (2, 7), (3, 6)] {
            batch.push(&mut thread, 1, record(seq, at));
        }
    }

    #[test]
    #[should_panic(expected = "stored records are contiguous in a thread")]
    fn records_are_not_written_behind_others_than_those_before_them() {
        let mut batch = CommitBatch::default();
        let mut thread = ThreadHead::new(1, ThreadKey::new("tenant", "thread"), false, Timestamp(1));
        for seq in 1..=4 {
            batch.push(&mut thread, 1, record(seq, 1));
        }
        thread.store_records(1, 2);
        thread.store_records(4, 4);
    }
}
