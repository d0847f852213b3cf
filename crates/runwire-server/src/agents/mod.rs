//! Agents that the server starts itself: requests to other servers, programs, and the built-in demos.
//!
//! ```text
//!              ┌─ http ─┐
//! start ─▶ job ┼─ exec ─┼─▶ delivery ─▶ Log::append ─▶ readers
//!              └─ demo ─┘                   │
//!                  ▲                        ▼
//!                  └──── signals ◀── the run's tail: answers, cancel, the end
//! ```
//!
//! An agent is a producer like any other. Whatever people say to its run is a record of the log, which the job
//! reads; there is no side channel, so what a person was told is what the agent is told. `recovery` takes up what
//! an earlier server has left open.

mod config;
mod delivery;
mod demo;
mod ending;
mod exec;
mod group;
mod http;
mod job;
mod recovery;
mod signals;

use std::sync::Arc;
use std::time::Duration;

use runwire_log::{Created, Log, NewRun, RunInfo, RunKey};
use runwire_model::Json;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

pub use config::{Agent, AgentKind, DemoAgent, ExecAgent, HttpAgent, demo_names, demos};

use crate::problem::Problem;
use crate::{Config, limits};
use job::{Begin, Job};
pub(crate) use recovery::start_in;

/// The agents of a server, and the runs that they are working on.
pub(crate) struct Agents {
    log: Arc<dyn Log>,
    agents: Vec<Arc<Agent>>,
    shutdown: watch::Receiver<bool>,
    beat: Duration,
    grace: Duration,
    /// How many runs may be open at once.
    places: Arc<Semaphore>,
    /// How many of them may be under way at once.
    turns: Arc<Semaphore>,
}

/// What an agent is given.
#[derive(Debug, Clone, Default)]
pub(crate) struct Input {
    /// What the person asked.
    pub(crate) message: Option<String>,
    /// Anything else.
    pub(crate) input: Option<Json>,
}

impl Agents {
    pub(crate) fn new(config: &Config, log: Arc<dyn Log>, shutdown: watch::Receiver<bool>) -> Self {
        Self {
            log,
            agents: config.agents.iter().cloned().map(Arc::new).collect(),
            shutdown,
            beat: config.beat,
            grace: config.agent_grace,
            places: Arc::new(Semaphore::new(limits::AGENT_RUNS)),
            turns: Arc::new(Semaphore::new(config.agents_at_once.clamp(1, limits::AGENT_RUNS))),
        }
    }

    /// Lists the agents.
    pub(crate) fn list(&self) -> impl Iterator<Item = &Agent> {
        self.agents.iter().map(|agent| &**agent)
    }

    /// Tells whether the server can start an agent.
    pub(crate) fn exists(&self, name: &str) -> bool {
        self.find(name).is_some()
    }

    /// Makes the problem of an agent that the server cannot start.
    pub(crate) fn unknown(&self, name: &str) -> Problem {
        let names: Vec<_> = self.list().map(|agent| agent.name.as_str()).collect();
        let there_are = if names.is_empty() { "there are none".into() } else { names.join(", ") };
        let detail = format!("no agent of this server is called `{name}`: {there_are}");
        Problem::new("agent_unknown", detail).with("agent", name).with("agents", names)
    }

    /// Creates a run; where it names an agent of the server, that is started on it.
    ///
    /// Any other name is a label of a run that somebody else writes. The same words again give the same run, and
    /// start nothing.
    pub(crate) async fn create(&self, run: NewRun) -> Result<Created<RunInfo>, Problem> {
        let agent = run.agent.as_deref().and_then(|name| self.find(name)).cloned();
        let Some(agent) = agent else { return Ok(self.log.create_run(run).await?) };
        // Before the run exists: one that cannot be started shall not be there.
        let place = self.place()?;
        let input = Input { message: run.message.clone(), input: run.input.clone() };
        let tenant: Arc<str> = run.tenant.as_str().into();
        let created = self.log.create_run(run).await?;
        if created.new {
            let key = RunKey::new(tenant, created.value.run_id.as_str());
            self.begin(place, agent, &created.value, key, input, Begin::New);
        }
        Ok(created)
    }

    /// Waits until no agent works any more, which they begin to do when the server begins to stop.
    pub(crate) async fn stopped(&self) {
        let everyone = u32::try_from(limits::AGENT_RUNS).unwrap_or(u32::MAX);
        // A program has the grace before SIGKILL; the rest is for writing the end.
        let most = self.grace + limits::AGENT_LINGER_TIME + limits::GRACE_TIME;
        if tokio::time::timeout(most, self.places.acquire_many(everyone)).await.is_err() {
            let left = limits::AGENT_RUNS - self.places.available_permits();
            tracing::warn!(left, "some agents did not end in time");
        }
    }

    fn find(&self, name: &str) -> Option<&Arc<Agent>> {
        self.agents.iter().find(|agent| agent.name == name)
    }

    fn place(&self) -> Result<OwnedSemaphorePermit, Problem> {
        self.places.clone().try_acquire_owned().map_err(|_| {
            let detail = format!("{} runs of agents are open", limits::AGENT_RUNS);
            Problem::new("too_many_agents", detail).with("limit", limits::AGENT_RUNS)
        })
    }

    fn begin(
        &self,
        place: OwnedSemaphorePermit,
        agent: Arc<Agent>,
        run: &RunInfo,
        key: RunKey,
        input: Input,
        begin: Begin,
    ) {
        let job = Job {
            log: self.log.clone(),
            thread: key.thread(run.thread_id.as_str()),
            run: key,
            agent,
            input,
            turns: self.turns.clone(),
            shutdown: self.shutdown.clone(),
            beat: self.beat,
            grace: self.grace,
        };
        tokio::spawn(async move {
            job.work(begin).await;
            drop(place);
        });
    }
}
