//! The command that closes runs whose lease has expired: the producer is lost, or did not stop, or nobody answered.

use runwire_model::event::{Decision, Event, InteractionResolved, RunCancelled, RunFailed};
use runwire_model::run::Status;
use runwire_model::{RunFailureCode, Timestamp};

use super::heads::RunHead;
use super::lease::Lease;
use super::{StoreResult, Txn, TxnStore, was_accepted};
use crate::info::InteractionInfo;

impl<S: TxnStore> Txn<S> {
    /// Closes the runs whose lease has expired, and returns their number. One that cannot be read hinders no other.
    pub(crate) fn sweep(&mut self) -> StoreResult<S, usize> {
        let mut closed = 0;
        for id in self.store.expired_leases(self.now)? {
            let mark = self.mark();
            match self.close_if_expired(id) {
                Ok(is_closed) => closed += usize::from(is_closed),
                Err(failure) => {
                    if !self.store.skip_unreadable(id, &failure) || self.mark() != mark {
                        return Err(failure);
                    }
                }
            }
        }
        Ok(closed)
    }

    /// Closes a run if its lease has expired; returns whether it is closed. If it cannot be read, nothing has changed.
    fn close_if_expired(&mut self, id: i64) -> StoreResult<S, bool> {
        let Some(mut run) = self.heads.take_run_by_id(&self.store, id)? else { return Ok(false) };
        if !run.is_due(self.now) {
            self.heads.put_run(run);
            return Ok(false);
        }
        let mut thread = match self.thread_of(&run) {
            Ok(thread) => thread,
            Err(failure) => {
                self.heads.put_run(run);
                return Err(failure);
            }
        };
        let events = match run.lease {
            Lease::None | Lease::Active => vec![producer_lost(&run)],
            Lease::Stopping => vec![Event::new(RunCancelled::default())],
            Lease::AwaitingAnswer(_) => expiry_events(&run, self.now),
        };
        match was_accepted(self.append_server_events(&mut thread, &mut run, events)) {
            Ok(true) => {}
            // Only a closed run refuses, and it has no lease.
            Ok(false) => run.set_lease(Lease::None),
            Err(failure) => {
                // What was looked up before the failure is not all that there is.
                run.lookups.clear();
                self.heads.put_thread(thread);
                self.heads.put_run(run);
                return Err(failure);
            }
        }
        let is_closed = run.head.state.status.is_closed();
        self.put(thread, run);
        Ok(is_closed)
    }
}

fn producer_lost(run: &RunHead) -> Event {
    let error = RunFailureCode::ProducerLost.error(producer_lost_reason(run));
    Event::new(RunFailed { error, ..Default::default() })
}

/// Explains why a run has lost its producer; one without a record may wait for an agent that does not exist.
fn producer_lost_reason(run: &RunHead) -> String {
    if run.head.state.status != Status::Pending {
        return "the producer was silent for longer than its lease".to_owned();
    }
    let message = "nothing was written to the run before its lease ran out";
    match &run.request.agent {
        Some(agent) => format!(
            "{message}; a server starts only its own agents (GET /v1/agents lists them), and `{agent}` may be none"
        ),
        None => message.to_owned(),
    }
}

/// Returns the events for a suspended run whose lease has expired: its expired interactions are resolved, and a run
/// that waits without an interaction has lost its producer.
pub(crate) fn expiry_events(run: &RunHead, now: Timestamp) -> Vec<Event> {
    let is_due = |asked: &&InteractionInfo| asked.expires_at.is_none_or(|at| at <= now.0);
    let open = run.head.summary.interactions.iter().filter(|asked| asked.is_open());
    let resolved = open.filter(is_due).map(|asked| {
        Event::new(InteractionResolved {
            interaction_id: asked.interaction_id.clone(),
            decision: Decision::Expired,
            ..Default::default()
        })
    });
    let resolved: Vec<_> = resolved.collect();
    if resolved.is_empty() { vec![producer_lost(run)] } else { resolved }
}
