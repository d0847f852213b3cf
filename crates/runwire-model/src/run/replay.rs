//! Replays stored records into a run's state: the import of a run from another log.

use super::guard::{Authority, Refusal};
use super::state::{OpenCall, OpenText, RunState};
use crate::event::Body;
use crate::limits;
use crate::record::{Entry, EventOrigin, History, Record};

/// Reason why a record cannot be replayed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReplayError {
    /// The guard refuses an event of it.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The guard would have stored other events.
    #[error("event {index} of the record is not what its run would have stored")]
    Other {
        /// The first event that differs, from 0.
        index: usize,
    },
}

/// Bound that no counter of a run can reach.
const MOST: u64 = 1 << 53;

impl RunState {
    /// Replays a stored record, which must equal what the guard makes of it. An error changes nothing.
    pub fn replay(&mut self, record: &Record, history: &dyn History) -> Result<(), ReplayError> {
        let before = self.clone();
        self.take_in(record, history).inspect_err(|_| *self = before)
    }

    fn take_in(&mut self, record: &Record, history: &dyn History) -> Result<(), ReplayError> {
        let mut stored = Vec::with_capacity(record.entries.len());
        for Entry { event, origin } in &record.entries {
            // What the guard added it adds again, but for the start and the end that nobody said.
            let is_said = *origin != EventOrigin::Guard
                || event.body.is_terminal()
                || matches!(event.body, Body::RunStarted(_));
            if is_said {
                self.apply(event.clone(), *origin, Authority::Server, record.seq, history, &mut stored)?;
            }
        }
        if stored == record.entries {
            return Ok(());
        }
        let same = stored.iter().zip(&record.entries).take_while(|(one, another)| one == another).count();
        Err(ReplayError::Other { index: same })
    }

    /// Adopts what only a decoder knows of the run, from its state in another log: which ids were minted, and the
    /// source's names.
    pub fn adopt_decoder_state(&mut self, known: &Self) {
        let texts = |open: &mut [OpenText], known: &[OpenText]| {
            for text in open {
                text.minted = known.iter().any(|known| known.id == text.id && known.minted);
            }
        };
        texts(&mut self.texts, &known.texts);
        texts(&mut self.thoughts, &known.thoughts);
        for step in &mut self.steps {
            let known = known.steps.iter().find(|known| known.id == step.id);
            let source_id = known.and_then(|known| known.source_id.clone());
            step.source_id = source_id.filter(|id| id.len() <= limits::ID_BYTES);
        }
        let calls = |open: &mut [OpenCall], known: &[OpenCall]| {
            for call in open {
                if let Some(known) = known.iter().find(|known| known.id == call.id) {
                    call.minted = known.minted;
                    call.alias.clone_from(&known.alias);
                    call.bytes = known.bytes.min(limits::RUN_ARGUMENT_BYTES);
                }
            }
        };
        calls(&mut self.calls, &known.calls);
        calls(&mut self.carried, &known.carried);
        if known.is_within_limits() {
            self.renamed.clone_from(&known.renamed);
            self.aliases.clone_from(&known.aliases);
            self.text_digests.compared = known.text_digests.compared;
            self.counts.messages = known.counts.messages;
            self.counts.thoughts = known.counts.thoughts;
            self.counts.calls = known.counts.calls;
            self.counts.approvals = known.counts.approvals;
        }
    }

    /// Returns true if a state from outside keeps within the limits of any run.
    pub fn is_within_limits(&self) -> bool {
        let counts = &self.counts;
        let counted = [counts.messages, counts.thoughts, counts.calls, counts.steps, counts.approvals];
        let texts = &self.text_digests;
        let digests = [texts.last.len, texts.before.len, texts.trailing.len, texts.compared];
        let open = [
            self.texts.len(),
            self.thoughts.len(),
            self.steps.len(),
            self.calls.len(),
            self.carried.len(),
            self.interactions.len(),
        ];
        let held =
            self.calls.iter().map(|call| call.bytes).chain(self.interactions.iter().map(|asked| asked.bytes));
        counted.into_iter().chain(digests).chain(held).chain([self.text_bytes]).all(|number| number < MOST)
            && self.steps_before <= counts.steps
            && open.into_iter().all(|open| open <= limits::OPEN_ITEMS)
            && self.interaction_ids.len() <= limits::RUN_INTERACTIONS
            && self.recent.len() <= limits::RECENT_IDS
            && self.renamed.len() <= limits::RECENT_IDS
            && self.aliases.len() <= limits::RECENT_IDS
            && self.renamed.iter().all(|renamed| renamed.times < u32::MAX / 2)
    }
}
