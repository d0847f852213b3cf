//! One run of one agent, from its start to its end.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use runwire_log::{Log, LogError, RunKey, ThreadKey};
use runwire_model::Json;
use runwire_model::event::InteractionResolved;
use runwire_model::record::{ChatMessage, Earlier};
use runwire_model::window::Window;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use super::config::{Agent, AgentKind};
use super::delivery::Delivery;
use super::ending::Ending;
use super::signals::{Follower, Signal};
use super::{Input, conversation, demo, exec, http};
use crate::store_retry;

/// An agent at work on a run.
pub(super) struct Job {
    pub(super) log: Arc<dyn Log>,
    pub(super) run: RunKey,
    pub(super) thread: ThreadKey,
    pub(super) agent: Arc<Agent>,
    pub(super) input: Input,
    pub(super) turns: Arc<Semaphore>,
    pub(super) shutdown: watch::Receiver<bool>,
    pub(super) beat: Duration,
    /// How long the agent may take to end after it was asked to.
    pub(super) grace: Duration,
}

/// Where a job begins.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Begin {
    /// With a run that nothing was written to.
    New,
    /// With one that a server has left before anything was written to it.
    Anew,
    /// With a run that an earlier server has left.
    Left(Left),
}

/// How an earlier server has left a run.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Left {
    /// The last record that was looked at.
    pub(super) seq: u64,
    /// All answers so far, in order.
    pub(super) answers: Vec<InteractionResolved>,
    /// Those that the agent was not told of.
    pub(super) untold: Vec<InteractionResolved>,
    /// Whether a person is waited for.
    pub(super) is_suspended: bool,
    /// Where all questions were settled, if the agent has said nothing since.
    pub(super) resumed: Option<u64>,
    /// Whether someone wants it to stop.
    pub(super) is_cancelled: bool,
}

impl Job {
    /// Works to the run's end, or to the server's.
    pub(super) async fn work(&self, begin: Begin) {
        if let Err(error) = self.try_work(begin).await {
            tracing::warn!(run = &*self.run.id, agent = self.agent.name, %error, "an agent cannot be run");
        }
    }

    async fn try_work(&self, begin: Begin) -> Result<(), LogError> {
        let after = match &begin {
            Begin::New | Begin::Anew => {
                self.retry_until_available(|| self.log.thread(&self.thread)).await?.head
            }
            Begin::Left(left) => left.seq,
        };
        let follower = Follower::new(self.log.clone(), Some(&self.run), &self.thread, after);
        // What was written before that place shows here, what comes later is followed.
        if self.retry_until_available(|| self.log.run(&self.run)).await?.status.is_closed() {
            return Ok(());
        }
        let (log, dialect) = (&self.log, self.agent.kind.dialect());
        let (delivery, left) = match begin {
            Begin::New => {
                (self.retry_until_available(|| Delivery::begin(log.clone(), &self.run, dialect)).await?, None)
            }
            Begin::Anew => (
                self.retry_until_available(|| Delivery::take_up(log.clone(), &self.run, dialect)).await?,
                None,
            ),
            Begin::Left(left) => (
                self.retry_until_available(|| Delivery::take_up(log.clone(), &self.run, dialect)).await?,
                Some(left),
            ),
        };
        let delivery = delivery.until(self.shutdown.clone());
        let delivery = delivery.strict(self.agent.kind.is_strict()).whole(self.agent.kind.whole());
        match &self.agent.kind {
            AgentKind::Http(agent) => http::run(self, agent, delivery, follower, left).await,
            AgentKind::Exec(agent) => exec::run(self, agent, delivery, follower).await,
            AgentKind::Demo(agent) => demo::run(self, agent, delivery, follower, left).await,
        }
        Ok(())
    }

    /// Tells the thread's messages and state, as they are now.
    pub(super) async fn window(&self) -> Result<Window, LogError> {
        let head = self.retry_until_available(|| self.log.thread(&self.thread)).await?.head;
        self.retry_until_available(|| self.log.before(&self.thread, head + 1)).await
    }

    /// Does something again until the store answers, or until the server stops.
    async fn retry_until_available<T, F>(&self, attempt: impl FnMut() -> F) -> Result<T, LogError>
    where
        F: Future<Output = Result<T, LogError>>,
    {
        store_retry::retry_until_available(&self.shutdown, attempt).await
    }

    /// Tells what the person asked, as a message.
    pub(super) fn asked(&self) -> Option<ChatMessage> {
        let content = self.input.message.clone()?;
        let id = self.input.message_id.clone().unwrap_or_else(|| format!("{}:user", self.run.id));
        Some(ChatMessage { id, role: "user".into(), content, ..ChatMessage::default() })
    }

    /// Tells what the agent is given beside the message, with all messages in full.
    pub(super) async fn given(&self) -> Result<Option<Json>, LogError> {
        let Some(input) = &self.input.input else { return Ok(None) };
        if !conversation::has_messages(input) {
            return Ok(Some(input.clone()));
        }
        let mut messages = self.window().await?.messages();
        messages.extend(self.asked());
        Ok(Some(conversation::restored(input, &messages)))
    }

    /// Waits for a turn, and gives none where the run or the server ends first.
    pub(super) async fn turn(
        &self,
        delivery: &mut Delivery,
        follower: &mut Follower,
    ) -> Option<OwnedSemaphorePermit> {
        if let Ok(turn) = self.turns.clone().try_acquire_owned() {
            return Some(turn);
        }
        let waiting = async {
            loop {
                tokio::select! {
                    turn = self.turns.clone().acquire_owned() => return turn.ok(),
                    signals = follower.signals() => {
                        if signals.iter().any(|signal| matches!(signal, Signal::Closed { .. })) {
                            return None;
                        }
                    }
                    () = self.server_stops() => {
                        self.end(delivery, Ending::server_stopped()).await;
                        return None;
                    }
                }
            }
        };
        self.beating(waiting).await
    }

    /// Ends the run, and tells the server's log where that is a failure.
    pub(super) async fn end(&self, delivery: &mut Delivery, ending: Ending) {
        let failure = match &ending {
            Ending::Failed(error) => Some(error.clone()),
            Ending::Complete | Ending::Cancelled { .. } => None,
        };
        let has_ended = delivery.end(ending).await;
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

    /// Keeps the run's lease while something goes on.
    pub(super) async fn beating<T>(&self, work: impl Future<Output = T>) -> T {
        tokio::select! {
            worked = work => worked,
            never = self.beat_for_ever() => never,
        }
    }

    async fn beat_for_ever<T>(&self) -> T {
        loop {
            tokio::time::sleep(self.beat).await;
            // Whether the run is still there shows when something is written.
            let _ = self.log.heartbeat(&self.run).await;
        }
    }

    /// Waits until the server begins to stop.
    pub(super) async fn server_stops(&self) {
        store_retry::shutdown_begun(&self.shutdown).await;
    }
}
