//! The note of a thread: how far one of its runs is, where the run's own rows are behind.
//!
//! Nearly every commit changes of a run only what changes with every record. Writing its row for that costs more than
//! writing the records. But the row of the thread is written anyway, so that it goes there: one run of each thread may
//! have its note in it. Whatever else changes of the run, its own rows are written, and the note goes.

use std::collections::HashMap;

use runwire_model::run::Status;
use serde::{Deserialize, Serialize};

use super::failure::{Db, Failure};
use crate::work::{Head, Lease, NoteError, ProducerHead, RunHead};

/// Tells how a note is written: whoever changes the form gives it another number, and goes on reading the old one.
const FORM: u8 = 1;

/// What stands in the row of a thread.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Note {
    pub(super) last_seq: u64,
    head: Vec<u8>,
    /// Those whose rows are behind.
    producers: Vec<NotedProducer>,
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct NotedProducer {
    name: String,
    epoch: u64,
    next: u64,
    /// As JSON.
    speech: String,
}

impl Note {
    /// Tells whether nothing has changed of a run but what is noted.
    pub(super) fn suffices(run: &RunHead) -> bool {
        !run.new
            && [run.stored_status, run.head.state.status] == [Status::Running; 2]
            && [run.stored_lease.0, run.lease] == [Lease::Alive; 2]
            && run.head.summary.interactions.is_empty()
    }

    /// Notes how far a run is.
    pub(super) fn write(run: &RunHead) -> Db<Vec<u8>> {
        let mut head = Vec::with_capacity(256);
        run.head.write_note(&mut head)?;
        let behind = run.producers.iter().filter(|(_, producer)| producer.dirty);
        let producers = behind.map(|(name, producer)| {
            let speech = serde_json::to_string(&producer.speech)?;
            Ok(NotedProducer { name: name.clone(), epoch: producer.epoch, next: producer.next, speech })
        });
        let producers = producers.collect::<Db<_>>()?;
        let note = Self { last_seq: run.last_seq, head, producers };
        Ok(postcard::to_extend(&note, vec![FORM]).map_err(NoteError::from)?)
    }

    /// Reads a note.
    pub(super) fn read(note: &[u8]) -> Db<Self> {
        match note.split_first() {
            Some((&FORM, note)) => Ok(postcard::from_bytes(note).map_err(NoteError::from)?),
            _ => Err(Failure::Damaged("the note of a run has a form that is not known here".into())),
        }
    }

    /// Brings the head of a run up to what is noted.
    pub(super) fn bring_up(&self, run: &mut RunHead) -> Db<()> {
        let message = run.head.summary.message.take();
        run.head = Head::of_note(&self.head)?;
        run.head.summary.message = message;
        (run.last_seq, run.dirty) = (self.last_seq, true);
        self.bring_up_producers(&mut run.producers)
    }

    /// Brings producers up to what is noted of them.
    pub(super) fn bring_up_producers(&self, producers: &mut HashMap<String, ProducerHead>) -> Db<()> {
        for NotedProducer { name, epoch, next, speech } in &self.producers {
            let speech = serde_json::from_str(speech)?;
            let noted = ProducerHead { epoch: *epoch, next: *next, speech, dirty: true, unnoted: false };
            producers.insert(name.clone(), noted);
        }
        Ok(())
    }
}

impl From<NoteError> for Failure {
    fn from(error: NoteError) -> Self {
        Self::Damaged(error.to_string())
    }
}
