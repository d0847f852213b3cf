//! A job: one run of one agent, from its start to its end.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use runwire_log::{Log, LogError, RunKey, ThreadKey};
use runwire_model::Json;
use runwire_model::dialect::start::{refers_to_messages, restore_input};
use runwire_model::event::InteractionResolved;
use runwire_model::record::{ChatMessage, History};
use runwire_model::window::Window;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use super::agent_writer::AgentWriter;
use super::config::{Agent, AgentKind};
use super::outcome::AgentOutcome;
use super::signals::{RecordFollower, RunSignal};
use super::{AgentInput, demo, exec, http};
use runwire_log::outage;

/// One run of an agent.
pub(super) struct Job {
    pub(super) log: Arc<dyn Log>,
    pub(super) run: RunKey,
    pub(super) thread: ThreadKey,
    pub(super) agent: Arc<Agent>,
    pub(super) input: AgentInput,
    pub(super) run_permits: Arc<Semaphore>,
    pub(super) shutdown: watch::Receiver<bool>,
    pub(super) heartbeat: Duration,
    /// Grace period between asking the agent to stop and killing it.
    pub(super) grace: Duration,
}

/// How a job starts.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum JobStart {
    /// With a new run.
    New,
    /// With an orphaned run without records: from its beginning.
    Restart,
    /// With an orphaned run: from its stored state.
    Resume(OrphanState),
}

/// The state of an orphaned run, read from its records.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct OrphanState {
    /// The last record that was read.
    pub(super) seq: u64,
    /// All answers so far, in order.
    pub(super) answers: Vec<InteractionResolved>,
    /// Answers that the agent has not received.
    pub(super) undelivered_answers: Vec<InteractionResolved>,
    /// Whether the run waits for a person.
    pub(super) is_suspended: bool,
    /// The record in which the last open interaction was settled, if the agent has written nothing since.
    pub(super) resumed: Option<u64>,
    /// Whether the run was cancelled.
    pub(super) is_cancelled: bool,
}

impl Job {
    /// Executes the job until the run ends or the server stops.
    pub(super) async fn execute(&self, start: JobStart) {
        if let Err(error) = self.try_execute(start).await {
            tracing::warn!(run = &*self.run.id, agent = self.agent.name, %error, "an agent cannot be run");
        }
    }

    async fn try_execute(&self, start: JobStart) -> Result<(), LogError> {
        let after = match &start {
            JobStart::New | JobStart::Restart => {
                self.retry_until_available(|| self.log.thread(&self.thread)).await?.head
            }
            JobStart::Resume(left) => left.seq,
        };
        let follower = RecordFollower::new(self.log.clone(), Some(&self.run), &self.thread, after);
        // An end before that position shows here; a later one is a signal.
        if self.retry_until_available(|| self.log.run(&self.run)).await?.status.is_closed() {
            return Ok(());
        }
        let (log, dialect) = (&self.log, self.agent.kind.dialect());
        let (writer, left) = match start {
            JobStart::New => (
                self.retry_until_available(|| AgentWriter::start(log.clone(), &self.run, dialect)).await?,
                None,
            ),
            JobStart::Restart => (
                self.retry_until_available(|| AgentWriter::claim(log.clone(), &self.run, dialect)).await?,
                None,
            ),
            JobStart::Resume(left) => (
                self.retry_until_available(|| AgentWriter::claim(log.clone(), &self.run, dialect)).await?,
                Some(left),
            ),
        };
        let writer = writer.retry_until(&self.shutdown);
        let writer = writer.strict(self.agent.kind.is_strict()).whole(self.agent.kind.whole());
        match &self.agent.kind {
            AgentKind::Http(agent) => http::run(self, agent, writer, follower, left).await,
            AgentKind::Exec(agent) => exec::run(self, agent, writer, follower).await,
            AgentKind::Demo(agent) => demo::runner::run(self, agent, writer, follower, left).await,
        }
        Ok(())
    }

    /// Returns the thread's current messages and state.
    pub(super) async fn window(&self) -> Result<Window, LogError> {
        let head = self.retry_until_available(|| self.log.thread(&self.thread)).await?.head;
        self.retry_until_available(|| self.log.before(&self.thread, head + 1)).await
    }

    /// Retries until the store answers or the server stops.
    async fn retry_until_available<T, F>(&self, attempt: impl FnMut() -> F) -> Result<T, LogError>
    where
        F: Future<Output = Result<T, LogError>>,
    {
        outage::retry_until_available(&self.shutdown, attempt).await
    }

    /// Returns the person's message.
    pub(super) fn user_message(&self) -> Option<ChatMessage> {
        let content = self.input.message.clone()?;
        let id = self.input.message_id.clone().unwrap_or_else(|| format!("{}:user", self.run.id));
        Some(ChatMessage { id, role: "user".into(), content, ..ChatMessage::default() })
    }

    /// Returns the agent's input, with referenced messages restored in full.
    pub(super) async fn full_input(&self) -> Result<Option<Json>, LogError> {
        let Some(input) = &self.input.input else { return Ok(None) };
        if !refers_to_messages(input) {
            return Ok(Some(input.clone()));
        }
        let mut messages = self.window().await?.messages();
        messages.extend(self.user_message());
        Ok(Some(restore_input(input, &messages)))
    }

    /// Waits for a permit to run; none if the run or the server ends first.
    pub(super) async fn acquire_run_permit(
        &self,
        writer: &mut AgentWriter,
        follower: &mut RecordFollower,
    ) -> Option<OwnedSemaphorePermit> {
        if let Ok(permit) = self.run_permits.clone().try_acquire_owned() {
            return Some(permit);
        }
        let waiting = async {
            loop {
                tokio::select! {
                    permit = self.run_permits.clone().acquire_owned() => return permit.ok(),
                    signals = follower.signals() => {
                        if signals.iter().any(|signal| matches!(signal, RunSignal::Closed { .. })) {
                            return None;
                        }
                    }
                    () = self.server_stops() => {
                        self.end(writer, AgentOutcome::server_stopped()).await;
                        return None;
                    }
                }
            }
        };
        self.with_heartbeat(waiting).await
    }

    /// Ends the run; logs a failure.
    pub(super) async fn end(&self, writer: &mut AgentWriter, outcome: AgentOutcome) {
        let failure = match &outcome {
            AgentOutcome::Failed(error) => Some(error.clone()),
            AgentOutcome::Complete | AgentOutcome::Cancelled { .. } => None,
        };
        let has_ended = writer.end(outcome).await;
        if let Some(failure) = failure.filter(|_| has_ended) {
            let (run, agent) = (&*self.run.id, self.agent.name.as_str());
            let (code, error) = (failure.code.as_deref().unwrap_or_default(), failure.message.as_str());
            let address = match &self.agent.kind {
                AgentKind::Http(agent) => http::address(agent),
                AgentKind::Exec(agent) => agent.command.first().cloned().unwrap_or_default(),
                AgentKind::Demo(agent) => agent.script.clone(),
            };
            tracing::warn!(run, agent, code, error, address, "the run of an agent has failed");
        }
    }

    /// Renews the run's lease while a future is pending.
    pub(super) async fn with_heartbeat<T>(&self, work: impl Future<Output = T>) -> T {
        tokio::select! {
            worked = work => worked,
            never = self.heartbeat_loop() => never,
        }
    }

    async fn heartbeat_loop<T>(&self) -> T {
        loop {
            tokio::time::sleep(self.heartbeat).await;
            // A missing run is noticed at the next write.
            let _ = self.log.heartbeat(&self.run).await;
        }
    }

    /// Waits until the server starts to shut down.
    pub(super) async fn server_stops(&self) {
        outage::shutdown_begun(&self.shutdown).await;
    }
}
