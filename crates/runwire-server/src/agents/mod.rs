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
//! servers that are gone have left open.

mod config;
pub(crate) mod conversation;
mod delivery;
mod demo;
mod ending;
mod exec;
mod http;
mod job;
mod recovery;
pub(crate) mod signals;

use std::sync::Arc;
use std::time::Duration;

use runwire_log::{Created, Log, LogError, NewRun, RunInfo, RunKey};
use runwire_model::Json;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

pub use config::{Agent, AgentKind, DemoAgent, ExecAgent, HttpAgent, demo_names, demos};

use crate::problem::Problem;
use crate::{Config, limits, store_retry};
use job::{Begin, Job};
pub(crate) use recovery::start_in;
use runwire_check::nearest::nearest;

/// The agents of a server, and the runs that they are working on.
#[derive(Clone)]
pub(crate) struct Agents {
    log: Arc<dyn Log>,
    agents: Vec<Arc<Agent>>,
    /// The agent of requests that cannot name one.
    default: Option<String>,
    shutdown: watch::Receiver<bool>,
    beat: Duration,
    grace: Duration,
    /// How long a store is asked that could not tell what it has done.
    outage: Duration,
    /// How many runs may be open at once.
    open: usize,
    places: Arc<Semaphore>,
    /// How many of them may be under way at once.
    at_once: usize,
    turns: Arc<Semaphore>,
}

/// Tells that the default agent is none of the agents.
#[derive(Debug, thiserror::Error)]
#[error("the default agent is `{0}`, and no agent is called so")]
pub(crate) struct UnknownDefault(String);

/// How busy the agents are.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Busy {
    /// Runs that are open.
    pub(crate) open: usize,
    /// Those of them that an agent is at work on.
    pub(crate) under_way: usize,
}

/// Makes an id that is new.
fn mint() -> String {
    uuid::Uuid::now_v7().to_string()
}

/// What an agent is given.
#[derive(Debug, Clone, Default)]
pub(crate) struct Input {
    /// What the person asked.
    pub(crate) message: Option<String>,
    /// The id of that, if it has one.
    pub(crate) message_id: Option<String>,
    /// Anything else.
    pub(crate) input: Option<Json>,
}

impl Agents {
    /// Takes the agents of the configuration, whose default must be one of them.
    pub(crate) fn new(
        config: &Config,
        log: Arc<dyn Log>,
        shutdown: watch::Receiver<bool>,
    ) -> Result<Self, UnknownDefault> {
        let agents: Vec<_> = config.agents.iter().cloned().map(Arc::new).collect();
        let default = match &config.default_agent {
            Some(name) if agents.iter().all(|agent| agent.name != *name) => {
                return Err(UnknownDefault(name.clone()));
            }
            Some(name) => Some(name.clone()),
            None => match agents.as_slice() {
                [only] => Some(only.name.clone()),
                _ => None,
            },
        };
        let open = config.agents_open.clamp(1, limits::AGENTS_MOST);
        let at_once = config.agents_at_once.clamp(1, limits::AGENTS_MOST);
        Ok(Self {
            log,
            agents,
            default,
            shutdown,
            beat: config.beat,
            grace: config.agent_grace,
            outage: config.outage,
            open,
            places: Arc::new(Semaphore::new(open)),
            at_once,
            turns: Arc::new(Semaphore::new(at_once)),
        })
    }

    /// Tells the agent of requests that cannot name one: the default, else the only one.
    pub(crate) fn default(&self) -> Option<&str> {
        self.default.as_deref()
    }

    /// Lists the agents.
    pub(crate) fn list(&self) -> impl Iterator<Item = &Agent> {
        self.agents.iter().map(|agent| &**agent)
    }

    /// Tells whether the server can start an agent.
    pub(crate) fn exists(&self, name: &str) -> bool {
        self.find(name).is_some()
    }

    /// Finds the agent that a name probably means, which is no agent's.
    pub(crate) fn meant_by(&self, name: &str) -> Option<&str> {
        let names: Vec<_> = self.list().map(|agent| agent.name.as_str()).collect();
        nearest(name, &names).filter(|_| !self.exists(name))
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
        let run_id = run.run_id.clone().unwrap_or_else(mint);
        let run = NewRun { run_id: Some(run_id), is_started_here: true, attempt: Some(mint()), ..run };
        // Before the run exists: one that cannot be started shall not be there.
        let place = self.place()?;
        let input = Input {
            message: run.message.clone(),
            message_id: run.message_id.clone(),
            input: run.input.clone(),
        };
        let tenant: Arc<str> = run.tenant.as_str().into();
        let agents = self.clone();
        // Not with the request, which ends when whoever made it goes: the run is created all the same, and needs its agent.
        let creating = tokio::spawn(async move {
            let created = store_retry::create_run(&*agents.log, &agents.shutdown, agents.outage, run).await?;
            if created.new {
                let key = RunKey::new(tenant, created.value.run_id.as_str());
                agents.begin(place, agent, &created.value, key, input, Begin::New);
            }
            Ok::<_, LogError>(created)
        });
        Ok(creating.await.map_err(|_| Problem::new("internal", "the run was not created to its end"))??)
    }

    /// Tells how many runs of agents are open, and how many agents are at work.
    pub(crate) fn busy(&self) -> Busy {
        let taken = |all: usize, places: &Semaphore| all.saturating_sub(places.available_permits());
        Busy { open: taken(self.open, &self.places), under_way: taken(self.at_once, &self.turns) }
    }

    /// Waits until no agent works any more, which they begin to do when the server begins to stop.
    pub(crate) async fn stopped(&self) {
        let everyone = u32::try_from(self.open).unwrap_or(u32::MAX);
        // A program has the grace before SIGKILL; the rest is for writing the end.
        let most = self.grace + limits::AGENT_LINGER_TIME + limits::GRACE_TIME;
        if tokio::time::timeout(most, self.places.acquire_many(everyone)).await.is_err() {
            let left = self.open - self.places.available_permits();
            tracing::warn!(left, "some agents did not end in time");
        }
    }

    fn find(&self, name: &str) -> Option<&Arc<Agent>> {
        self.agents.iter().find(|agent| agent.name == name)
    }

    fn place(&self) -> Result<OwnedSemaphorePermit, Problem> {
        self.places.clone().try_acquire_owned().map_err(|_| {
            let detail = format!("{} runs of agents are open", self.open);
            Problem::new("too_many_agents", detail).with("limit", self.open)
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
