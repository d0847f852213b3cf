//! Answering: a question has one answer, and the first commit wins.

use std::ops::ControlFlow;

use runwire_model::Timestamp;
use runwire_model::event::{Body, Event, InteractionRequested};

use super::acts::expired;
use super::heads::{RunHead, ThreadHead};
use super::{Done, Store, Tried, Work};
use crate::earlier::RecordSource;
use crate::error::LogError;
use crate::info::InteractionInfo;
use crate::interaction::{Answer, Answered, Resolution};
use crate::key::RunKey;
use crate::record::Stored;

impl<S: Store> Work<S> {
    pub(crate) fn answer(&mut self, key: &RunKey, answer: &Answer) -> Done<S, Answered> {
        let done = self.on_run(key, |work, thread, run| work.take_answer(thread, run, answer))?;
        Ok(done.and_then(|taken| taken))
    }

    fn take_answer(
        &mut self,
        thread: &mut ThreadHead,
        run: &mut RunHead,
        answer: &Answer,
    ) -> Done<S, Answered> {
        let status = run.head.state.status;
        if status.is_closed() {
            let asked = run.head.summary.interaction(&answer.interaction_id);
            let won = asked.map(|asked| self.resolution(thread, run, asked)).transpose()?.flatten();
            let run = run.key.id.to_string();
            return Ok(Err(LogError::RunClosed { run, status, answer: won.map(Box::new) }));
        }
        let interaction = answer.interaction_id.clone();
        let is_due = |asked: &InteractionInfo| asked.expires_at.is_some_and(|at| at <= self.now.0);
        match run.head.summary.interaction(&interaction) {
            None => {
                let run = run.key.id.to_string();
                return Ok(Err(LogError::InteractionUnknown { run, interaction }));
            }
            Some(asked) if asked.is_open() && is_due(asked) => {
                // The sweep is late; what it would have done comes first.
                let events = expired(run, self.now);
                let _ = self.act(thread, run, events)?;
            }
            Some(asked) if asked.is_open() => {
                let event = answer.clone().into_event();
                let _ = self.act(thread, run, vec![Event::new(event)])?;
                let answer = Resolution {
                    decision: answer.decision,
                    values: answer.values.clone(),
                    reason: answer.reason.clone(),
                    by: answer.by.clone(),
                    at: thread.at,
                };
                return Ok(Ok(Answered { run: run.info(), answer, new: true }));
            }
            Some(_) => {}
        }
        let asked = run.head.summary.interaction(&interaction);
        let won = asked.map(|asked| self.resolution(thread, run, asked)).transpose()?.flatten();
        let Some(won) = won else {
            // A settled question of an open run has its answer in a record: the store has lost it.
            return Ok(Err(LogError::Unavailable(format!("the answer to `{interaction}` is not stored"))));
        };
        if answer.is(&won) {
            return Ok(Ok(Answered { run: run.info(), answer: won, new: false }));
        }
        Ok(Err(LogError::InteractionClosed { interaction, answer: Box::new(won) }))
    }

    /// Finds the answer that a question has.
    fn resolution(
        &self,
        thread: &ThreadHead,
        run: &RunHead,
        asked: &InteractionInfo,
    ) -> Tried<S, Option<Resolution>> {
        let source = self.source(thread);
        let place = Place { run: &run.key.id, first_seq: run.first_seq, known: asked.settled_seq };
        let found = place.find(
            |after, show| source.visit(after, show),
            |body, at| resolution_in(body, &asked.interaction_id, at),
        );
        source.check()?;
        Ok(found)
    }
}

/// Where something of a run is looked for: in one record, or where an older store does not say which, in all.
pub(crate) struct Place<'a> {
    pub(crate) run: &'a str,
    pub(crate) first_seq: Option<u64>,
    pub(crate) known: Option<u64>,
}

impl Place<'_> {
    /// Looks for something in the records that a visit shows.
    pub(crate) fn find<T>(
        &self,
        visit: impl FnOnce(u64, &mut dyn FnMut(&Stored) -> ControlFlow<()>),
        pick: impl Fn(&Body, Timestamp) -> Option<T>,
    ) -> Option<T> {
        let from = self.known.or(self.first_seq)?;
        let mut found = None;
        visit(from.saturating_sub(1), &mut |stored| {
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

/// Picks the answer to a question out of an event.
pub(crate) fn resolution_in(body: &Body, interaction: &str, at: Timestamp) -> Option<Resolution> {
    match body {
        Body::InteractionResolved(resolved) if resolved.interaction_id == interaction => {
            Some(Resolution::of(resolved, at))
        }
        _ => None,
    }
}

/// Picks a question out of an event.
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
