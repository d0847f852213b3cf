//! Records that were stored before, taken into a run's state again: how a run moves from one log to another.

use super::guard::{Authority, Refusal};
use super::state::{OpenCall, OpenText, RunState};
use crate::event::Body;
use crate::limits;
use crate::record::{By, Earlier, Entry, Record};

/// Why a record cannot be one of its run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// The run takes no such event.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The guard would have stored other events.
    #[error("event {index} of the record is not what its run would have stored")]
    Other {
        /// The first event that differs, from 0.
        index: usize,
    },
}

/// Beyond any count that a run can come to, and far from where numbers end.
const MOST: u64 = 1 << 53;

impl RunState {
    /// Takes in a record that a log has stored, which must be just what the guard makes of it. On an error nothing
    /// has changed.
    pub fn replay(&mut self, record: &Record, earlier: &dyn Earlier) -> Result<(), Unfit> {
        let before = self.clone();
        self.take_in(record, earlier).inspect_err(|_| *self = before)
    }

    fn take_in(&mut self, record: &Record, earlier: &dyn Earlier) -> Result<(), Unfit> {
        let mut stored = Vec::with_capacity(record.entries.len());
        for Entry { event, by } in &record.entries {
            // What the guard added it adds again, but for the start and the end that nobody said.
            let is_said =
                *by != By::Guard || event.body.is_terminal() || matches!(event.body, Body::RunStarted(_));
            if is_said {
                self.apply(event.clone(), *by, Authority::Server, record.seq, earlier, &mut stored)?;
            }
        }
        if stored == record.entries {
            return Ok(());
        }
        let same = stored.iter().zip(&record.entries).take_while(|(one, another)| one == another).count();
        Err(Unfit::Other { index: same })
    }

    /// Takes over what only a decoder knows of the run, from the state that it had in another log: which ids were
    /// minted, and what the source calls things.
    pub fn recall(&mut self, known: &Self) {
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
            self.told.compared = known.told.compared;
            self.counts.messages = known.counts.messages;
            self.counts.thoughts = known.counts.thoughts;
            self.counts.calls = known.counts.calls;
            self.counts.approvals = known.counts.approvals;
        }
    }

    /// Returns whether a state that comes from outside keeps within what any run can come to.
    pub fn is_within_limits(&self) -> bool {
        let counts = &self.counts;
        let counted = [counts.messages, counts.thoughts, counts.calls, counts.steps, counts.approvals];
        let told = &self.told;
        let digests = [told.last.len, told.before.len, told.trailing.len, told.compared];
        let open = [
            self.texts.len(),
            self.thoughts.len(),
            self.steps.len(),
            self.calls.len(),
            self.carried.len(),
            self.questions.len(),
        ];
        let held =
            self.calls.iter().map(|call| call.bytes).chain(self.questions.iter().map(|asked| asked.bytes));
        counted.into_iter().chain(digests).chain(held).chain([self.text_bytes]).all(|number| number < MOST)
            && self.steps_before <= counts.steps
            && open.into_iter().all(|open| open <= limits::OPEN_ITEMS)
            && self.asked.len() <= limits::RUN_INTERACTIONS
            && self.recent.len() <= limits::RECENT_IDS
            && self.renamed.len() <= limits::RECENT_IDS
            && self.aliases.len() <= limits::RECENT_IDS
            && self.renamed.iter().all(|renamed| renamed.times < u32::MAX / 2)
    }
}
