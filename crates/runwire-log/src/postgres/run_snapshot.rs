//! The snapshot of a run's progress in the row of its thread, while the run's own rows are stale.
//!
//! Nearly every commit changes only the part of a run that changes with every record. Updating its row for that costs
//! more than writing the records. But the row of the thread is written anyway, so it holds the snapshot of one run.
//! When anything else changes of the run, its own rows are written, and the snapshot is removed.

use std::collections::HashMap;

use runwire_model::run::Status;
use serde::{Deserialize, Serialize};

use super::error::{PgError, PgResult};
use crate::txn::{Lease, ProducerHead, ProgressError, RunHead, RunProgress, decode_all};

/// The version of the encoding: a change of the encoding increments it. After the first release old versions must be
/// read, too. A test of the cluster pins it.
const VERSION: u8 = 5;

/// The snapshot of a run in the row of its thread.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RunSnapshot {
    pub(super) last_seq: u64,
    head: Vec<u8>,
    /// Producers whose rows are stale.
    producers: Vec<ProducerSnapshot>,
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct ProducerSnapshot {
    name: String,
    epoch: u64,
    next: u64,
    /// As JSON.
    state: String,
}

impl RunSnapshot {
    /// Returns whether a snapshot can hold all changes of a run.
    pub(super) fn can_hold(run: &RunHead) -> bool {
        !run.new
            && [run.stored_status, run.head.state.status] == [Status::Running; 2]
            && [run.stored_lease.0, run.lease] == [Lease::Active; 2]
            && run.head.summary.interactions.is_empty()
    }

    /// Encodes the snapshot of a run.
    pub(super) fn write(run: &RunHead) -> PgResult<Vec<u8>> {
        let mut head = Vec::with_capacity(256);
        run.head.encode(&mut head)?;
        let behind = run.producers.iter().filter(|(_, producer)| producer.dirty);
        let producers = behind.map(|(name, producer)| {
            let state = serde_json::to_string(&producer.state)?;
            Ok(ProducerSnapshot { name: name.clone(), epoch: producer.epoch, next: producer.next, state })
        });
        let producers = producers.collect::<PgResult<_>>()?;
        let snapshot = Self { last_seq: run.last_seq, head, producers };
        Ok(postcard::to_extend(&snapshot, vec![VERSION]).map_err(ProgressError::from)?)
    }

    /// Decodes a snapshot.
    pub(super) fn read(snapshot: &[u8]) -> PgResult<Self> {
        match snapshot.split_first() {
            Some((&VERSION, snapshot)) => Ok(decode_all(snapshot)?),
            _ => Err(PgError::Damaged("the snapshot of a run has an unknown version".into())),
        }
    }

    /// Updates the head of a run to the snapshot.
    pub(super) fn apply_to(&self, run: &mut RunHead) -> PgResult<()> {
        let message = run.head.summary.message.take();
        run.head = RunProgress::decode(&self.head)?;
        run.head.summary.message = message;
        (run.last_seq, run.dirty) = (self.last_seq, true);
        self.apply_producers(&mut run.producers)
    }

    /// Updates producers to the snapshot.
    pub(super) fn apply_producers(&self, producers: &mut HashMap<String, ProducerHead>) -> PgResult<()> {
        for ProducerSnapshot { name, epoch, next, state } in &self.producers {
            let state = serde_json::from_str(state)?;
            let snapshot_run =
                ProducerHead { epoch: *epoch, next: *next, state, dirty: true, ..ProducerHead::default() };
            producers.insert(name.clone(), snapshot_run);
        }
        Ok(())
    }
}

impl From<ProgressError> for PgError {
    fn from(error: ProgressError) -> Self {
        Self::Damaged(error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::{RunKey, ThreadKey};
    use crate::txn::{ProducerState, RunOrigin, ThreadHead};
    use runwire_model::Timestamp;
    use runwire_model::dialect::{Decoder, Dialect};

    fn run() -> RunHead {
        let thread = ThreadHead::new(1, ThreadKey::new("tenant", "thread"), false, Timestamp(5));
        let mut run =
            RunHead::new(2, RunKey::new("tenant", "run"), &thread, RunOrigin::default(), Timestamp(6));
        (run.last_seq, run.head.summary.records, run.head.summary.events) = (300, 300, 301);
        run.head.state.status = Status::Running;
        let state = ProducerState { decoder: Some(Decoder::new(Dialect::Loom)), ..ProducerState::default() };
        let producer = ProducerHead { epoch: 3, next: 200, state, dirty: true, ..ProducerHead::default() };
        run.producers.insert("p".to_owned(), producer);
        let quiet = ProducerHead { dirty: false, ..ProducerHead::default() };
        run.producers.insert("written".to_owned(), quiet);
        run
    }

    #[test]
    fn a_run_is_updated_to_its_snapshot() {
        let (run, mut behind) = (run(), run());
        let snapshot = RunSnapshot::read(&RunSnapshot::write(&run).unwrap()).unwrap();
        behind.head = RunProgress::default();
        behind.head.summary.message = Some("asked".to_owned());
        (behind.last_seq, behind.dirty) = (1, false);
        behind.producers.retain(|name, _| name == "written");
        snapshot.apply_to(&mut behind).unwrap();
        assert_eq!(behind.head.state, run.head.state);
        assert_eq!((behind.last_seq, behind.dirty), (300, true));
        assert_eq!(behind.head.summary.message.as_deref(), Some("asked"), "the message of its row stays");
        assert_eq!((behind.head.summary.events, behind.producers.len()), (301, 2));
        let producer = &behind.producers["p"];
        assert_eq!((producer.epoch, producer.next, producer.dirty), (3, 200, true));
        assert_eq!(producer.state, run.producers["p"].state);
    }

    #[test]
    fn a_damaged_snapshot_is_an_error() {
        let snapshot = RunSnapshot::write(&run()).unwrap();
        let mut longer = snapshot.clone();
        longer.push(0);
        let mut newer = snapshot.clone();
        newer[0] = VERSION + 1;
        for damaged in
            [&longer[..], &newer[..], &[]].into_iter().chain((0..snapshot.len()).map(|end| &snapshot[..end]))
        {
            assert!(matches!(RunSnapshot::read(damaged), Err(PgError::Damaged(_))), "{damaged:?}");
        }
    }
}
