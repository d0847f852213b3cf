//! What servers have left that are gone: each open run of their agents is taken up again, or ends.
//!
//! | agent | waits for a person, or was not told the answer yet | nothing was written yet | anything else |
//! |---|---|---|---|
//! | `http` | goes on | starts, once more at most | `producer_lost`: its stream went with the server |
//! | `exec` | `producer_lost`: so did its program | starts, once more at most | `producer_lost` |
//! | `demo` | goes on | starts, once more at most | goes on |
//!
//! The log gives each run to one server. What the one before may still write is refused by its epoch.

use std::sync::Arc;

use runwire_log::{LeftRun, LogError, RunInfo, RunKey};
use runwire_model::event::{Body, RunStarted};
use runwire_model::run::Status;
use tokio::sync::OwnedSemaphorePermit;
use tokio::task::JoinHandle;

use super::agent_writer::{self, AgentWriter};
use super::config::{Agent, AgentKind};
use super::job::{JobStart, OrphanState};
use super::outcome::AgentOutcome;
use super::signals::{RunSignal, signals_in};
use super::{AgentInput, Agents};
use crate::{limits, store_retry};

/// What becomes of a run that was left.
enum RecoveryAction {
    /// It is none of ours: somebody else writes it, under the same name.
    NotOurs,
    /// Its agent works on it.
    Resume(AgentInput, JobStart),
    /// It ends.
    End,
}

impl Agents {
    /// Takes up the runs of agents whose server is gone, before anyone is served, as far as that is done soon.
    pub(crate) async fn recover_first(&self) {
        let all = async {
            for run in self.recover().await {
                // What it could not do was logged.
                let _ = run.await;
            }
        };
        if tokio::time::timeout(limits::RECOVERY_TIME, all).await.is_err() {
            tracing::info!("serving, while runs whose server is gone are still looked at");
        }
    }

    /// Takes up the runs of agents whose server is gone, as far as there is room for them; each is looked at on its
    /// own, so that none keeps another waiting.
    pub(crate) async fn recover(&self) -> Vec<JoinHandle<()>> {
        let names: Vec<_> = self.list().map(|agent| agent.name.as_str()).collect();
        let room = self.open_permits.available_permits().min(limits::TAKE_UP_RUNS);
        if names.is_empty() || room == 0 || *self.shutdown.borrow() {
            return Vec::new();
        }
        let left = self.log.take_up(&names, room).await.unwrap_or_else(|error| {
            tracing::warn!(%error, "cannot look for runs whose agents went with their server");
            Vec::new()
        });
        let look_at = |run| {
            let agents = self.clone();
            tokio::spawn(async move { agents.recover_run(run).await })
        };
        left.into_iter().map(look_at).collect()
    }

    async fn recover_run(&self, left: LeftRun) {
        let Some(agent) = left.run.agent.as_deref().and_then(|name| self.find(name)) else { return };
        let key = RunKey::new(left.tenant.as_str(), left.run.run_id.as_str());
        let run = left.run.run_id.as_str();
        let action =
            store_retry::retry_until_available(&self.shutdown, || self.recovery_action(agent, &left, &key))
                .await;
        let done = match action {
            Err(error) => Err(error),
            Ok(RecoveryAction::NotOurs) => Ok(()),
            Ok(RecoveryAction::Resume(input, start)) => {
                tracing::info!(run, agent = agent.name, "taking up a run");
                if let Some(permit) = self.wait_for_open_permit(&key).await {
                    self.spawn_job(permit, agent.clone(), &left.run, key, input, start);
                }
                Ok(())
            }
            Ok(RecoveryAction::End) => {
                tracing::info!(run, agent = agent.name, "ending a run whose agent is gone");
                self.end_orphan(agent, &left.run, &key).await
            }
        };
        if let Err(error) = done {
            // It is left to its lease.
            tracing::warn!(run, %error, "cannot take up a run");
        }
    }

    async fn recovery_action(
        &self,
        agent: &Arc<Agent>,
        left: &LeftRun,
        key: &RunKey,
    ) -> Result<RecoveryAction, LogError> {
        let run = &left.run;
        let has_written = agent_writer::has_written(&*self.log, key).await?;
        if !has_written && !left.asked.is_started_here {
            return Ok(RecoveryAction::NotOurs);
        }
        if run.status == Status::Pending {
            // Whoever takes it up leaves a trace: an agent that takes its servers down with it is not started for ever.
            return Ok(if has_written {
                RecoveryAction::End
            } else {
                RecoveryAction::Resume(pending_input(left), JobStart::Restart)
            });
        }
        if matches!(agent.kind, AgentKind::Exec(_)) {
            return Ok(RecoveryAction::End);
        }
        let (input, left) = self.read_orphan_state(run, key).await?;
        // Whoever wanted it to stop does not want it to be asked again.
        let can_resume = !left.is_cancelled && (left.is_suspended || left.resumed.is_some());
        let resumes = can_resume || matches!(agent.kind, AgentKind::Demo(_));
        Ok(if resumes { RecoveryAction::Resume(input, JobStart::Resume(left)) } else { RecoveryAction::End })
    }

    /// Waits for a place, and keeps the run's lease meanwhile; gives none where the server stops first.
    async fn wait_for_open_permit(&self, run: &RunKey) -> Option<OwnedSemaphorePermit> {
        loop {
            tokio::select! {
                permit = self.open_permits.clone().acquire_owned() => return permit.ok(),
                () = tokio::time::sleep(self.beat) => {
                    let _ = self.log.heartbeat(run).await;
                }
                () = store_retry::shutdown_begun(&self.shutdown) => return None,
            }
        }
    }

    async fn end_orphan(&self, agent: &Agent, run: &RunInfo, key: &RunKey) -> Result<(), LogError> {
        let outcome = match run.summary.cancel_requested {
            true => AgentOutcome::Cancelled { reason: None },
            false => AgentOutcome::producer_lost(),
        };
        let dialect = agent.kind.dialect();
        let take_up = || AgentWriter::claim(self.log.clone(), key, dialect);
        let writer = store_retry::retry_until_available(&self.shutdown, take_up).await?;
        writer.retry_until(self.shutdown.clone()).end(outcome).await;
        Ok(())
    }

    /// Reads what a run was given, and how it was left.
    async fn read_orphan_state(
        &self,
        run: &RunInfo,
        key: &RunKey,
    ) -> Result<(AgentInput, OrphanState), LogError> {
        let thread = key.thread(run.thread_id.as_str());
        let mut left =
            OrphanState { seq: run.first_seq.unwrap_or(1).saturating_sub(1), ..OrphanState::default() };
        let mut input = AgentInput::default();
        while left.seq < run.last_seq {
            let page = self.log.read(&thread, left.seq).await?;
            let Some(last) = page.records.last() else { break };
            let end = last.record.seq.min(run.last_seq);
            let records = page.records.iter().filter(|stored| *stored.run == *run.run_id);
            for stored in records.filter(|stored| stored.record.seq <= run.last_seq) {
                if let Some(started) = start_in(stored.record.entries.iter().map(|entry| &entry.event.body)) {
                    let RunStarted { message, message_id, input: given, .. } = started.clone();
                    input = AgentInput { message, message_id, input: given };
                }
                if stored.record.dialect.is_some() && left.resumed.take().is_some() {
                    // The agent has said something since, so it was told.
                    left.undelivered_answers.clear();
                }
                signals_in(stored).into_iter().for_each(|signal| left.note(signal));
            }
            left.seq = end;
        }
        Ok((input, left))
    }
}

/// Tells what a run was given that nothing was written to.
fn pending_input(left: &LeftRun) -> AgentInput {
    let asked = left.asked.clone();
    AgentInput { message: asked.message, message_id: asked.message_id, input: asked.input }
}

impl OrphanState {
    fn note(&mut self, signal: RunSignal) {
        match signal {
            RunSignal::Suspended => self.is_suspended = true,
            RunSignal::Answered(resolved) => {
                self.answers.push(resolved.clone());
                self.undelivered_answers.push(resolved);
            }
            RunSignal::Resumed { seq } => (self.is_suspended, self.resumed) = (false, Some(seq)),
            RunSignal::CancelRequested { .. } => self.is_cancelled = true,
            RunSignal::Closed { .. } => {}
        }
    }
}

/// Finds a run's start among events.
pub(crate) fn start_in<'a>(bodies: impl IntoIterator<Item = &'a Body>) -> Option<&'a RunStarted> {
    bodies.into_iter().find_map(|body| match body {
        Body::RunStarted(started) => Some(started),
        _ => None,
    })
}
