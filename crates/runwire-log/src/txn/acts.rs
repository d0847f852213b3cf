//! What the server does of its own accord or when it is asked: making threads and runs, stopping them, and
//! ending those that nobody writes any more.

use runwire_model::Timestamp;
use runwire_model::event::{
    Decision, ErrorInfo, Event, InteractionResolved, RunCancelRequested, RunCancelled, RunFailed,
};
use runwire_model::run::Status;

use super::heads::{RunHead, RunRequest, ThreadHead};
use super::lease::Lease;
use super::{CommandResult, StoreResult, Txn, TxnStore, mint};
use crate::error::LogError;
use crate::info::{Created, InteractionInfo, NewRun, NewThread, RunInfo, ThreadInfo};
use crate::key::{RunKey, ThreadKey};
use crate::{Cancel, Cancelled};

impl<S: TxnStore> Txn<S> {
    pub(crate) fn create_thread(&mut self, new: &NewThread) -> CommandResult<S, Created<ThreadInfo>> {
        let id = new.thread_id.clone().unwrap_or_else(mint);
        let key = ThreadKey::new(new.tenant.as_str(), id.as_str());
        let known = self.heads.take_thread(&self.store, &key)?;
        let is_new = known.is_none();
        let thread = match known {
            Some(thread) => thread,
            None => self.new_thread(key, new.parallel, self.now)?,
        };
        let result = if thread.deleted {
            Err(LogError::ThreadDeleted(id))
        } else if thread.parallel != new.parallel {
            Err(LogError::ThreadExists(id))
        } else {
            let info = ThreadInfo {
                thread_id: id,
                parallel: thread.parallel,
                created_at: thread.created_at,
                head: thread.seq,
                oldest: 1,
                open_runs: Vec::new(),
                runs: 0,
                title: None,
                latest: None,
            };
            Ok(Created { value: info, new: is_new })
        };
        self.put_thread(thread);
        Ok(result)
    }

    pub(crate) fn create_run(&mut self, new: &NewRun) -> CommandResult<S, Created<RunInfo>> {
        let key = RunKey::new(new.tenant.as_str(), new.run_id.clone().unwrap_or_else(mint));
        let request = RunRequest::of(new);
        if let Some(run) = self.heads.take_run(&self.store, &key)? {
            let thread = self.thread_of(&run)?;
            let result = if thread.deleted {
                Err(LogError::ThreadDeleted(thread.key.id.to_string()))
            } else if run.request.is_same(&request) {
                Ok(Created { value: run.info(), new: run.request.is_same_attempt(&request) })
            } else {
                Err(LogError::RunExists(key.id.to_string()))
            };
            self.heads.put_thread(thread);
            self.heads.put_run(run);
            return Ok(result);
        }
        let thread = match &new.thread_id {
            Some(thread) => self.thread_to_join(&key.thread(thread.as_str()), self.now)?,
            None => Ok(self.thread_of_its_own(&key, self.now)?),
        };
        let mut thread = match thread {
            Ok(thread) => thread,
            Err(refused) => return Ok(Err(refused)),
        };
        let mut run = self.new_run(key, &thread, request, self.now)?;
        thread.open.push(run.id);
        run.renew_lease();
        run.owner = self.node.clone().filter(|_| new.is_started_here);
        let info = run.info();
        self.put(thread, run);
        Ok(Ok(Created { value: info, new: true }))
    }

    pub(crate) fn cancel(&mut self, key: &RunKey, cancel: &Cancel) -> CommandResult<S, Cancelled> {
        self.on_run(key, |txn, thread, run| {
            let Cancel { reason, by } = cancel.clone();
            let new = match run.head.state.status {
                Status::Pending | Status::Suspended => {
                    let event = Event::new(RunCancelled { reason, ..Default::default() });
                    txn.act(thread, run, vec![event])?.is_ok()
                }
                Status::Running if !run.head.summary.cancel_requested => {
                    let event = Event::new(RunCancelRequested { reason, by });
                    let asked = txn.act(thread, run, vec![event])?.is_ok();
                    if asked {
                        run.set_lease(Lease::Stopping);
                    }
                    asked
                }
                _ => false,
            };
            Ok(Cancelled { run: run.info(), new })
        })
    }

    pub(crate) fn heartbeat(&mut self, key: &RunKey) -> CommandResult<S, RunInfo> {
        self.on_run(key, |_, _, run| {
            if !run.head.state.status.is_closed() {
                run.renew_lease();
            }
            Ok(run.info())
        })
    }

    /// Works on a run and its thread, unless that is gone.
    pub(crate) fn on_run<T>(
        &mut self,
        key: &RunKey,
        work: impl FnOnce(&mut Self, &mut ThreadHead, &mut RunHead) -> StoreResult<S, T>,
    ) -> CommandResult<S, T> {
        let Some(mut run) = self.heads.take_run(&self.store, key)? else {
            return Ok(Err(LogError::RunUnknown(key.id.to_string())));
        };
        let mut thread = self.thread_of(&run)?;
        let result = if thread.deleted {
            Err(LogError::ThreadDeleted(thread.key.id.to_string()))
        } else {
            Ok(work(self, &mut thread, &mut run)?)
        };
        self.put(thread, run);
        Ok(result)
    }

    /// Closes the runs whose lease ran out.
    pub(crate) fn sweep(&mut self) -> StoreResult<S, usize> {
        let mut closed = 0;
        for id in self.store.due(self.now)? {
            match self.close_due(id) {
                Ok(is_closed) => closed += usize::from(is_closed),
                Err(error) => {
                    self.store.pass_over(id, &error);
                    return Err(error);
                }
            }
        }
        Ok(closed)
    }

    /// Closes a run if its lease ran out; tells whether it is closed.
    fn close_due(&mut self, id: i64) -> StoreResult<S, bool> {
        let Some(mut run) = self.heads.take_run_by_id(&self.store, id)? else { return Ok(false) };
        if !run.is_due(self.now) {
            self.heads.put_run(run);
            return Ok(false);
        }
        let mut thread = self.thread_of(&run)?;
        let events = match run.lease {
            Lease::None | Lease::Alive => vec![producer_lost(&run)],
            Lease::Stopping => vec![Event::new(RunCancelled::default())],
            Lease::Asking(_) => expired(&run, self.now),
        };
        // Only a closed run refuses, and that has no lease.
        if self.act(&mut thread, &mut run, events)?.is_err() {
            run.set_lease(Lease::None);
        }
        let is_closed = run.head.state.status.is_closed();
        self.put(thread, run);
        Ok(is_closed)
    }
}

fn producer_lost(run: &RunHead) -> Event {
    let error = ErrorInfo::coded("producer_lost", lost_because(run));
    Event::new(RunFailed { error, ..Default::default() })
}

/// Tells why a run has lost its producer; one that nobody ever wrote may wait for an agent that is none.
fn lost_because(run: &RunHead) -> String {
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

/// Tells what becomes of a run whose time to wait for an answer is over: the questions that have expired are
/// resolved, and a run that waits without a question has lost its producer.
pub(crate) fn expired(run: &RunHead, now: Timestamp) -> Vec<Event> {
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
