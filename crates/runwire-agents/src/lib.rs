//! Agents that a server runs: HTTP agents, programs (`exec`), and the built-in demos.
//!
//! ```text
//!              ┌─ http ─┐
//! start ─▶ job ┼─ exec ─┼─▶ delivery ─▶ Log::append ─▶ readers
//!              └─ demo ─┘                   │
//!                  ▲                        ▼
//!                  └──── signals ◀── the run's tail: answers, cancel, the end
//! ```
//!
//! An agent is a producer like any other. Answers and cancel requests are records of the log, which the job follows;
//! there is no side channel, so people and agents see the same history. `recovery` claims the orphaned runs of servers
//! that died.

mod agent_writer;
mod config;
pub mod demo;
mod exec;
mod http;
pub mod https_client;
mod job;
pub mod limits;
mod log_producer;
mod outcome;
pub mod programs;
mod recovery;
pub mod signals;

use std::sync::Arc;
use std::time::Duration;

use runwire_log::{Created, Log, LogError, NewRun, RunInfo, RunKey};
use runwire_model::Json;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

pub use config::{Agent, AgentKind, DemoAgent, ExecAgent, HttpAgent, demo_names, demos};

use job::{Job, JobStart};
pub use recovery::start_in;
use runwire_check::nearest::nearest;
use runwire_log::outage;

/// The agents of a server, and their running jobs.
#[derive(Clone)]
pub struct Agents {
    log: Arc<dyn Log>,
    agents: Vec<Arc<Agent>>,
    /// The agent of requests that name none.
    default: Option<String>,
    shutdown: watch::Receiver<bool>,
    heartbeat: Duration,
    grace: Duration,
    /// Time limit for retries of a run's creation with an unknown outcome.
    outage: Duration,
    /// Limit of open runs.
    open: usize,
    open_permits: Arc<Semaphore>,
    /// Limit of runs whose agent is working.
    at_once: usize,
    run_permits: Arc<Semaphore>,
}

/// Which agents there are, and how many may work.
#[derive(Debug, Clone)]
pub struct AgentsConfig {
    /// The agents.
    pub agents: Vec<Agent>,
    /// The agent of requests that name none; without one, the only agent.
    pub default_agent: Option<String>,
    /// Limit of working agents; further runs wait, pending.
    pub at_once: usize,
    /// Limit of open runs; further ones are refused.
    pub open: usize,
    /// Grace period between asking an agent to stop and killing it.
    pub grace: Duration,
    /// Time between two renewals of a run's lease.
    pub heartbeat: Duration,
    /// Time limit for retries of a run's creation with an unknown outcome.
    pub outage: Duration,
}

/// Why a run was not created.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CreateError {
    /// Too many runs of agents are open.
    #[error("{limit} runs of agents are open")]
    TooManyAgents {
        /// The limit.
        limit: usize,
    },
    /// The log refuses it.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The task that creates it has ended early.
    #[error("the run was not created to its end")]
    Aborted,
}

/// The configured default agent does not exist.
#[derive(Debug, thiserror::Error)]
#[error("the default agent is `{0}`, and no agent is called so")]
pub struct UnknownDefaultAgent(String);

/// Number of runs and working agents.
#[derive(Debug, Clone, Copy)]
pub struct AgentLoad {
    /// Open runs.
    pub open: usize,
    /// Open runs whose agent is working.
    pub running: usize,
}

/// Creates a unique id.
fn new_id() -> String {
    uuid::Uuid::now_v7().to_string()
}

/// The input of an agent.
#[derive(Debug, Clone, Default)]
pub struct AgentInput {
    /// The person's message.
    pub message: Option<String>,
    /// The id of the message.
    pub message_id: Option<String>,
    /// Further input.
    pub input: Option<Json>,
}

impl Agents {
    /// Creates the agents of a configuration; fails if its default agent does not exist.
    pub fn new(
        config: &AgentsConfig,
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
        let open = config.open.clamp(1, limits::AGENTS_LIMIT);
        let at_once = config.at_once.clamp(1, limits::AGENTS_LIMIT);
        Ok(Self {
            log,
            agents,
            default,
            shutdown,
            heartbeat: config.heartbeat,
            grace: config.grace,
            outage: config.outage,
            open,
            open_permits: Arc::new(Semaphore::new(open)),
            at_once,
            run_permits: Arc::new(Semaphore::new(at_once)),
        })
    }

    /// Returns the agent of requests that name none: the default, else the only one.
    pub fn default(&self) -> Option<&str> {
        self.default.as_deref()
    }

    /// Lists the agents.
    pub fn list(&self) -> impl Iterator<Item = &Agent> {
        self.agents.iter().map(|agent| &**agent)
    }

    /// Returns true if the server has an agent of that name.
    pub fn exists(&self, name: &str) -> bool {
        self.find(name).is_some()
    }

    /// Returns the agent with the most similar name, for a name that is no agent's.
    pub fn similar_name(&self, name: &str) -> Option<&str> {
        let names: Vec<_> = self.list().map(|agent| agent.name.as_str()).collect();
        nearest(name, &names).filter(|_| !self.exists(name))
    }

    /// Creates a run; starts its agent if the server has one of that name.
    ///
    /// Any other name is a label of a run that an external producer writes. Idempotent: the same request returns the same
    /// run and starts nothing.
    pub async fn create(&self, run: NewRun) -> Result<Created<RunInfo>, CreateError> {
        let agent = run.agent.as_deref().and_then(|name| self.find(name)).cloned();
        let Some(agent) = agent else { return Ok(self.log.create_run(run).await?) };
        let run_id = run.run_id.clone().unwrap_or_else(new_id);
        let run = NewRun { run_id: Some(run_id), is_started_here: true, attempt: Some(new_id()), ..run };
        // Acquired before the run is created: a run that cannot start must not exist.
        let permit = self.acquire_open_permit()?;
        let input = AgentInput {
            message: run.message.clone(),
            message_id: run.message_id.clone(),
            input: run.input.clone(),
        };
        let tenant: Arc<str> = run.tenant.as_str().into();
        let agents = self.clone();
        // In a task of its own: if the client disconnects, the run is created all the same and needs its agent.
        let creating = tokio::spawn(async move {
            let created = outage::create_run(&*agents.log, &agents.shutdown, agents.outage, run).await?;
            if created.new {
                let key = RunKey::new(tenant, created.value.run_id.as_str());
                agents.spawn_job(permit, agent, &created.value, key, input, JobStart::New);
            }
            Ok::<_, LogError>(created)
        });
        Ok(creating.await.map_err(|_| CreateError::Aborted)??)
    }

    /// Returns the number of open runs and working agents.
    pub fn load(&self) -> AgentLoad {
        let in_use = |all: usize, permits: &Semaphore| all.saturating_sub(permits.available_permits());
        AgentLoad {
            open: in_use(self.open, &self.open_permits),
            running: in_use(self.at_once, &self.run_permits),
        }
    }

    /// Waits until all agents have ended after a shutdown began, with a time limit.
    pub async fn wait_until_stopped(&self) {
        let all_permits = u32::try_from(self.open).unwrap_or(u32::MAX);
        // The grace period of a program before SIGKILL, and time to write its outcome.
        let limit = self.grace + limits::AGENT_OUTPUT_TIME + limits::END_TIME;
        if tokio::time::timeout(limit, self.open_permits.acquire_many(all_permits)).await.is_err() {
            let left = self.open - self.open_permits.available_permits();
            tracing::warn!(left, "some agents did not end in time");
        }
    }

    fn find(&self, name: &str) -> Option<&Arc<Agent>> {
        self.agents.iter().find(|agent| agent.name == name)
    }

    fn acquire_open_permit(&self) -> Result<OwnedSemaphorePermit, CreateError> {
        let permit = self.open_permits.clone().try_acquire_owned();
        permit.map_err(|_| CreateError::TooManyAgents { limit: self.open })
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
            heartbeat: self.heartbeat,
            grace: self.grace,
        };
        tokio::spawn(async move {
            job.execute(start).await;
            drop(permit);
        });
    }
}
