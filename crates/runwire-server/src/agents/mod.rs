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

pub(crate) mod ag_ui_messages;
mod agent_writer;
mod config;
mod demo;
mod exec;
mod http;
mod job;
mod outcome;
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
use job::{Job, JobStart};
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
    open_permits: Arc<Semaphore>,
    /// How many of them may be under way at once.
    at_once: usize,
    run_permits: Arc<Semaphore>,
}

/// Tells that the default agent is none of the agents.
#[derive(Debug, thiserror::Error)]
#[error("the default agent is `{0}`, and no agent is called so")]
pub(crate) struct UnknownDefaultAgent(String);

/// How busy the agents are.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AgentLoad {
    /// Runs that are open.
    pub(crate) open: usize,
    /// Those of them that an agent is at work on.
    pub(crate) running: usize,
}

/// Makes an id that is new.
fn new_id() -> String {
    uuid::Uuid::now_v7().to_string()
}

/// What an agent is given.
#[derive(Debug, Clone, Default)]
pub(crate) struct AgentInput {
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
    ) -> Result<Self, UnknownDefaultAgent> {
        let agents: Vec<_> = config.agents.iter().cloned().map(Arc::new).collect();
        let default = match &config.default_agent {
            Some(name) if agents.iter().all(|agent| agent.name != *name) => {
                return Err(UnknownDefaultAgent(name.clone()));
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
            open_permits: Arc::new(Semaphore::new(open)),
            at_once,
            run_permits: Arc::new(Semaphore::new(at_once)),
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
    pub(crate) fn similar_name(&self, name: &str) -> Option<&str> {
        let names: Vec<_> = self.list().map(|agent| agent.name.as_str()).collect();
        nearest(name, &names).filter(|_| !self.exists(name))
    }

    /// Makes the problem of an agent that the server cannot start.
    pub(crate) fn unknown_agent(&self, name: &str) -> Problem {
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
        let run_id = run.run_id.clone().unwrap_or_else(new_id);
        let run = NewRun { run_id: Some(run_id), is_started_here: true, attempt: Some(new_id()), ..run };
        // Before the run exists: one that cannot be started shall not be there.
        let permit = self.acquire_open_permit()?;
        let input = AgentInput {
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
                agents.spawn_job(permit, agent, &created.value, key, input, JobStart::New);
            }
            Ok::<_, LogError>(created)
        });
        Ok(creating.await.map_err(|_| Problem::new("internal", "the run was not created to its end"))??)
    }

    /// Tells how many runs of agents are open, and how many agents are at work.
    pub(crate) fn load(&self) -> AgentLoad {
        let in_use = |all: usize, permits: &Semaphore| all.saturating_sub(permits.available_permits());
        AgentLoad {
            open: in_use(self.open, &self.open_permits),
            running: in_use(self.at_once, &self.run_permits),
        }
    }

    /// Waits until no agent works any more, which they begin to do when the server begins to stop.
    pub(crate) async fn wait_until_stopped(&self) {
        let everyone = u32::try_from(self.open).unwrap_or(u32::MAX);
        // A program has the grace before SIGKILL; the rest is for writing the end.
        let most = self.grace + limits::AGENT_LINGER_TIME + limits::GRACE_TIME;
        if tokio::time::timeout(most, self.open_permits.acquire_many(everyone)).await.is_err() {
            let left = self.open - self.open_permits.available_permits();
            tracing::warn!(left, "some agents did not end in time");
        }
    }

    fn find(&self, name: &str) -> Option<&Arc<Agent>> {
        self.agents.iter().find(|agent| agent.name == name)
    }

    fn acquire_open_permit(&self) -> Result<OwnedSemaphorePermit, Problem> {
        self.open_permits.clone().try_acquire_owned().map_err(|_| {
            let detail = format!("{} runs of agents are open", self.open);
            Problem::new("too_many_agents", detail).with("limit", self.open)
        })
    }

    fn spawn_job(
        &self,
        permit: OwnedSemaphorePermit,
        agent: Arc<Agent>,
        run: &RunInfo,
        key: RunKey,
        input: AgentInput,
        start: JobStart,
    ) {
        let job = Job {
            log: self.log.clone(),
            thread: key.thread(run.thread_id.as_str()),
            run: key,
            agent,
            input,
            run_permits: self.run_permits.clone(),
            shutdown: self.shutdown.clone(),
            beat: self.beat,
            grace: self.grace,
        };
        tokio::spawn(async move {
            job.execute(start).await;
            drop(permit);
        });
    }
}
