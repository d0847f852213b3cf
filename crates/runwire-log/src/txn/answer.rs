//! The command that answers interactions: each has one answer, and the first commit wins.

use std::ops::ControlFlow;

use runwire_model::Timestamp;
use runwire_model::event::{Body, Event, InteractionRequested};

use super::heads::{RunHead, ThreadHead};
use super::sweep::expiry_events;
use super::{CommandResult, StoreResult, Txn, TxnStore, was_accepted};
use crate::error::LogError;
use crate::info::InteractionInfo;
use crate::interaction::{Answer, Answered, Resolution};
use crate::key::RunKey;
use crate::record::{StoredRecord, Wanted};
use crate::run_history::RecordSource;

impl<S: TxnStore> Txn<S> {
    /// Writes answers together: all in one record, or none.
    pub(crate) fn answer(&mut self, key: &RunKey, answers: &[Answer]) -> CommandResult<S, Vec<Answered>> {
        self.with_open_thread(key, |txn, thread, run| txn.take_answers(thread, run, answers))
    }

    fn take_answers(
        &mut self,
        thread: &mut ThreadHead,
        run: &mut RunHead,
        answers: &[Answer],
    ) -> CommandResult<S, Vec<Answered>> {
        self.expire(thread, run, answers)?;
        // The answer that each interaction has already; `None` while it is open.
        let mut settled = Vec::with_capacity(answers.len());
        for answer in answers {
            settled.push(self.settled(thread, run, answer)?);
        }
        let given = answers.iter().zip(&settled).filter(|(_, settled)| settled.is_none());
        let events: Vec<_> = given.map(|(answer, _)| Event::new(answer.clone().into_event())).collect();
        if !events.is_empty() {
            was_accepted(self.append_server_events(thread, run, events))?;
        }
        let answered = |(answer, settled): (&Answer, Option<Resolution>)| {
            let new = settled.is_none();
            let answer = settled.unwrap_or_else(|| Resolution {
                decision: answer.decision,
                values: answer.values.clone(),
                reason: answer.reason.clone(),
                by: answer.by.clone(),
                at: thread.at,
            });
            Answered { run: run.info(), answer, new }
        };
        Ok(answers.iter().zip(settled).map(answered).collect())
    }

    /// Expires interactions that are due before they are answered, if the sweep is late.
    fn expire(
        &mut self,
        thread: &mut ThreadHead,
        run: &mut RunHead,
        answers: &[Answer],
    ) -> StoreResult<S, ()> {
        let now = self.now;
        let is_due = |answer: &Answer| {
            let asked = run.head.summary.interaction(&answer.interaction_id);
            asked.is_some_and(|asked| asked.is_open() && asked.expires_at.is_some_and(|at| at <= now.0))
        };
        if answers.iter().any(is_due) {
            let events = expiry_events(run, now);
            was_accepted(self.append_server_events(thread, run, events))?;
        }
        Ok(())
    }

    /// Returns the answer that an interaction has already, or `None` while it is open; refuses a different one.
    fn settled(
        &self,
        thread: &ThreadHead,
        run: &RunHead,
        answer: &Answer,
    ) -> CommandResult<S, Option<Resolution>> {
        let (interaction, status) = (answer.interaction_id.clone(), run.head.state.status);
        let asked = run.head.summary.interaction(&interaction);
        if !status.is_closed() && asked.is_some_and(InteractionInfo::is_open) {
            return Ok(None);
        }
        let won = asked.map(|asked| self.resolution(thread, run, asked)).transpose()?.flatten();
        let id = run.key.id.to_string();
        Err(Self::refuse(match (asked, won) {
            (_, won) if status.is_closed() => {
                LogError::RunClosed { run: id, status, answer: won.map(Box::new) }
            }
            (None, _) => LogError::InteractionUnknown { run: id, interaction },
            (_, Some(won)) if answer.equals(&won) => return Ok(Some(won)),
            (_, Some(won)) => LogError::InteractionClosed { interaction, answer: Box::new(won) },
            // A resolved interaction of an open run has its answer in a record: the store has lost it.
            (_, None) => LogError::Unavailable(format!("the answer to `{interaction}` is not stored")),
        }))
    }

    /// Returns the answer that an interaction has.
    fn resolution(
        &self,
        thread: &ThreadHead,
        run: &RunHead,
        asked: &InteractionInfo,
    ) -> StoreResult<S, Option<Resolution>> {
        let source = self.source(thread);
        let search = RecordSearch { run: &run.key.id, first_seq: run.first_seq, known: asked.settled_seq };
        let found = search.find(
            |after, wanted, show| source.visit(after, wanted, show),
            |body, at| resolution_in(body, &asked.interaction_id, at),
        );
        source.check()?;
        Ok(found)
    }
}

/// Searches the records of a run: one record, or all of them if an older store does not say which.
pub(crate) struct RecordSearch<'a> {
    pub(crate) run: &'a str,
    pub(crate) first_seq: Option<u64>,
    pub(crate) known: Option<u64>,
}

impl RecordSearch<'_> {
    /// Returns the first match among the visited records.
    pub(crate) fn find<T>(
        &self,
        visit: impl FnOnce(u64, Wanted<'_>, &mut dyn FnMut(&StoredRecord) -> ControlFlow<()>),
        pick: impl Fn(&Body, Timestamp) -> Option<T>,
    ) -> Option<T> {
        let from = self.known.or(self.first_seq)?;
        let mut found = None;
        let wanted = Wanted { run: Some(self.run), types: &["interaction."] };
        visit(from.saturating_sub(1), wanted, &mut |stored| {
            let record = &stored.record;
            if self.known.is_some_and(|known| known != record.seq) {
                return ControlFlow::Break(());
            }
            if *stored.run == *self.run {
                found = record.entries.iter().find_map(|entry| pick(&entry.event.body, record.at));
            }
            if found.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        found
    }
}

/// Returns the answer in an event, if it resolves the interaction.
pub(crate) fn resolution_in(body: &Body, interaction: &str, at: Timestamp) -> Option<Resolution> {
    match body {
        Body::InteractionResolved(resolved) if resolved.interaction_id == interaction => {
            Some(Resolution::of(resolved, at))
        }
        _ => None,
    }
}

/// Returns the request in an event, if it requests the interaction.
pub(crate) fn question_in(
    body: &Body,
    interaction: &str,
    at: Timestamp,
) -> Option<(InteractionRequested, Timestamp)> {
    match body {
        Body::InteractionRequested(asked) if asked.interaction_id == interaction => Some((asked.clone(), at)),
        _ => None,
    }
}
