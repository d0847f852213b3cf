//! Recovery: claims orphaned runs, whose server died, and resumes or ends each of them.
//!
//! | agent | waits for a person, or has not received the answer | nothing was written yet | anything else |
//! |---|---|---|---|
//! | `http` | resumes | restarts, at most once | `producer_lost`: its stream is broken |
//! | `exec` | `producer_lost`: its program is dead | restarts, at most once | `producer_lost` |
//! | `demo` | resumes | restarts, at most once | resumes |
//!
//! The log assigns each run to one server. Late writes of the dead server are fenced by its epoch.

use std::sync::Arc;

use runwire_log::{LogError, OrphanedRun, RunInfo, RunKey};
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
use runwire_log::outage;

use crate::limits;

/// What to do with an orphaned run.
enum RecoveryAction {
    /// Nothing: an external producer writes it under the same agent name.
    NotOurs,
    /// Run its agent.
    Resume(AgentInput, JobStart),
    /// End it.
    End,
}

impl Agents {
    /// Recovers orphaned runs at startup, with a time limit, before requests are served.
    pub async fn recover_first(&self) {
        let all = async {
            for run in self.recover().await {
                // Failures were logged.
                let _ = run.await;
            }
        };
        if tokio::time::timeout(limits::RECOVERY_TIME, all).await.is_err() {
            tracing::info!("serving, while runs whose server is gone are still looked at");
        }
    }

    /// Claims orphaned runs within the limit of open runs, and recovers each in a task of its own.
    pub async fn recover(&self) -> Vec<JoinHandle<()>> {
        let names: Vec<_> = self.list().map(|agent| agent.name.as_str()).collect();
        let capacity = self.open_permits.available_permits().min(limits::CLAIM_RUNS);
        if names.is_empty() || capacity == 0 || *self.shutdown.borrow() {
            return Vec::new();
        }
        let left = self.log.claim_orphans(&names, capacity).await.unwrap_or_else(|error| {
            tracing::warn!(%error, "cannot look for runs whose agents went with their server");
            Vec::new()
        });
        let look_at = |run| {
            let agents = self.clone();
            tokio::spawn(async move { agents.recover_run(run).await })
        };
        left.into_iter().map(look_at).collect()
    }

    async fn recover_run(&self, left: OrphanedRun) {
        let Some(agent) = left.run.agent.as_deref().and_then(|name| self.find(name)) else { return };
        let key = RunKey::new(left.tenant.as_str(), left.run.run_id.as_str());
        let run = left.run.run_id.as_str();
        let action =
            outage::retry_until_available(&self.shutdown, || self.recovery_action(agent, &left, &key)).await;
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
            // The run ends when its lease expires.
            tracing::warn!(run, %error, "cannot take up a run");
        }
    }

    async fn recovery_action(
        &self,
        agent: &Arc<Agent>,
        left: &OrphanedRun,
        key: &RunKey,
    ) -> Result<RecoveryAction, LogError> {
        let run = &left.run;
        let has_written = agent_writer::has_written(&*self.log, key).await?;
        if !has_written && !left.asked.is_started_here {
            return Ok(RecoveryAction::NotOurs);
        }
        if run.status == Status::Pending {
            // A claim leaves a trace, so an agent that crashes its server is restarted only once.
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
        // A cancelled run is not resumed.
        let can_resume = !left.is_cancelled && (left.is_suspended || left.resumed.is_some());
        let resumes = can_resume || matches!(agent.kind, AgentKind::Demo(_));
        Ok(if resumes { RecoveryAction::Resume(input, JobStart::Resume(left)) } else { RecoveryAction::End })
    }

    /// Waits for a permit while renewing the run's lease; none if the server stops first.
    async fn wait_for_open_permit(&self, run: &RunKey) -> Option<OwnedSemaphorePermit> {
        loop {
            tokio::select! {
                permit = self.open_permits.clone().acquire_owned() => return permit.ok(),
                () = tokio::time::sleep(self.heartbeat) => {
                    let _ = self.log.heartbeat(run).await;
                }
                () = outage::shutdown_begun(&self.shutdown) => return None,
            }
        }
    }

    async fn end_orphan(&self, agent: &Agent, run: &RunInfo, key: &RunKey) -> Result<(), LogError> {
        let outcome = match run.summary.cancel_requested {
            true => AgentOutcome::Cancelled { reason: None },
            false => AgentOutcome::producer_lost(),
        };
        let dialect = agent.kind.dialect();
        let claim = || AgentWriter::claim(self.log.clone(), key, dialect);
        let writer = outage::retry_until_available(&self.shutdown, claim).await?;
        writer.retry_until(&self.shutdown).end(outcome).await;
        Ok(())
    }

    /// Reads the input and the state of an orphaned run from its records.
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
                    // The agent has written since, so it has received the answers.
                    left.undelivered_answers.clear();
                }
                signals_in(stored).into_iter().for_each(|signal| left.note(signal));
            }
            left.seq = end;
        }
        Ok((input, left))
    }
}

/// Returns the input of a run without records.
fn pending_input(left: &OrphanedRun) -> AgentInput {
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

/// Returns the first `run.started` event.
pub fn start_in<'a>(bodies: impl IntoIterator<Item = &'a Body>) -> Option<&'a RunStarted> {
    bodies.into_iter().find_map(|body| match body {
        Body::RunStarted(started) => Some(started),
        _ => None,
    })
}
