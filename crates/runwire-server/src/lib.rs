//! Runwire's server: writes and reads runs over HTTP/1.1, HTTP/2 and WebSocket.
//!
//! | module | what |
//! |---|---|
//! | `listener` | accepts connections, with limits |
//! | `routes` | the table of routes |
//! | `openapi` | the OpenAPI document, made from the table and the handlers |
//! | `socket_loop` | threads that serve small writes, and streams at the end of their run, without hyper |
//! | `read` | read requests: streams and pages; `read::raw_http` serves streams without hyper |
//! | `feed` | fan-out: records are encoded once for all readers of a run or thread in a dialect |
//! | `write` | write requests: request bodies become appends to the log |
//! | `open_bodies` | registry of open request bodies, for fencing older epochs |
//! | `ws`, `websocket` | the WebSocket endpoint, and code shared by all WebSockets |
//! | `resources` | REST handlers: threads, runs, interactions, messages, producers … |
//! | `facade` | endpoints of other systems, for their unchanged front ends |
//! | `interactions` | validates answers |
//! | `webhooks` | notifies other servers from an outbox |
//! | `housekeeping` | background tasks: leases, orphaned runs, retention |
//! | `metrics` | counters and `/metrics` |
//! | `console` | the embedded web console |
//! | `hosts`, `origin` | protection against DNS rebinding and cross-site requests |
//! | `problem` | converts errors to problem details |
//! | `ids`, `query`, `json_body`, `content_type` | parse requests into typed values |
//! | `memory_budget` | limits the bytes that are buffered for clients |
//! | `limits` | every limit |
//!
//! ```no_run
//! # async fn serve(log: std::sync::Arc<dyn runwire_log::Log>) -> std::io::Result<()> {
//! use runwire_server::{Config, Server};
//!
//! let server = Server::bind(Config::default(), log)?;
//! println!("http://{}", server.address());
//! server.run(std::future::pending()).await
//! # }
//! ```
#![forbid(unsafe_code)]

mod auth;
mod console;
mod content_type;
mod facade;
mod feed;
pub mod hosts;
mod housekeeping;
mod ids;
pub mod interactions;
mod json_body;
pub mod limits;
mod listener;
mod memory_budget;
mod metrics;
mod open_bodies;
mod openapi;
mod origin;
pub mod problem;
mod query;
mod raw_response;
mod read;
mod request_head;
mod resources;
mod rewind;
mod routes;
mod socket_loop;
mod stalled_streams;
pub mod webhooks;
mod websocket;
mod write;
mod ws;

pub use facade::Facades;

use std::future::Future;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use memory_budget::MemoryBudget;
use runwire_agents::{Agent, Agents, AgentsConfig};
use runwire_log::Log;
use tokio::sync::{Semaphore, watch};

/// Configuration of the server.
#[derive(Debug, Clone)]
pub struct Config {
    /// Address to listen on; port 0 takes any free port.
    pub listen: SocketAddr,
    /// The hosts that requests may name beside loopback names and the server's own addresses.
    pub allowed_hosts: Vec<hosts::AllowedHost>,
    /// Limit of open connections.
    pub connections: usize,
    /// Limit of the bytes that are buffered for clients.
    pub memory_budget: u64,
    /// Timeout for the head of a request.
    pub header_time: Duration,
    /// Time after which a client is cut off that takes none of the bytes that are sent to it.
    pub stalled_time: Duration,
    /// Interval of keep-alives on an idle stream.
    pub keep_alive: Duration,
    /// Idle time of an open body after which its run is checked.
    pub body_idle: Duration,
    /// Minimum time between two lease renewals by heartbeats of an open body; well below the lease itself.
    pub heartbeat: Duration,
    /// Time limit for retries of an open body's appends during an outage, beyond the store's own retries.
    pub outage: Duration,
    /// Grace period of connections at shutdown.
    pub grace: Duration,
    /// Retention of closed runs.
    pub retention: RetentionConfig,
    /// The agents that the server runs.
    pub agents: Vec<Agent>,
    /// The agent of façade requests that name none; without one, the only agent.
    pub default_agent: Option<String>,
    /// The extension frames that each façade sends.
    pub facades: Facades,
    /// Limit of working agents; further runs wait, pending.
    pub agents_at_once: usize,
    /// Limit of open runs of agents; further ones are refused.
    pub agents_open: usize,
    /// Grace period between asking an agent to stop and killing it.
    pub agent_grace: Duration,
    /// The servers that are notified of interactions and ended runs.
    pub webhooks: Vec<webhooks::Webhook>,
    /// Whether the console is served at `/`.
    pub console: bool,
}

/// Retention: removes closed runs, oldest first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RetentionConfig {
    /// Maximum age of an ended run.
    pub age: Option<Duration>,
    /// Maximum bytes of all records.
    pub bytes: Option<u64>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 7420)),
            allowed_hosts: Vec::new(),
            connections: limits::CONNECTIONS,
            memory_budget: limits::MEMORY_BUDGET_BYTES,
            header_time: limits::HEADER_TIME,
            stalled_time: limits::STALLED_TIME,
            keep_alive: limits::KEEP_ALIVE_TIME,
            body_idle: limits::BODY_IDLE_TIME,
            heartbeat: limits::HEARTBEAT_TIME,
            outage: limits::OUTAGE_TIME,
            grace: limits::GRACE_TIME,
            retention: RetentionConfig::default(),
            agents: Vec::new(),
            default_agent: None,
            facades: Facades::default(),
            agents_at_once: runwire_agents::limits::AGENTS_AT_ONCE,
            agents_open: runwire_agents::limits::AGENTS_OPEN,
            agent_grace: runwire_agents::limits::AGENT_GRACE_TIME,
            webhooks: Vec::new(),
            console: true,
        }
    }
}

/// State that all requests share.
pub(crate) struct AppState {
    pub(crate) log: Arc<dyn Log>,
    pub(crate) config: Config,
    /// Becomes true when the server stops.
    pub(crate) shutdown: watch::Receiver<bool>,
    pub(crate) feeds: feed::Feeds,
    pub(crate) memory: MemoryBudget,
    pub(crate) open_bodies: open_bodies::OpenBodies,
    /// Limits concurrent answer checks.
    pub(crate) checks: Arc<Semaphore>,
    pub(crate) agents: Agents,
    /// Random id of this server process, part of ETags.
    pub(crate) start: u64,
    pub(crate) webhooks: Arc<webhooks::Webhooks>,
    pub(crate) metrics: Arc<metrics::Metrics>,
}

/// A server that is bound to its address.
pub struct Server {
    listener: std::net::TcpListener,
    address: SocketAddr,
    stop: watch::Sender<bool>,
    state: Arc<AppState>,
}

impl Server {
    /// Binds the address; connections queue until [`Server::run`].
    pub fn bind(config: Config, log: Arc<dyn Log>) -> io::Result<Self> {
        let (stop, shutdown) = watch::channel(false);
        let agents = AgentsConfig {
            agents: config.agents.clone(),
            default_agent: config.default_agent.clone(),
            at_once: config.agents_at_once,
            open: config.agents_open,
            grace: config.agent_grace,
            heartbeat: config.heartbeat,
            outage: config.outage,
        };
        let agents = Agents::new(&agents, log.clone(), shutdown.clone())
            .map_err(|unknown| io::Error::new(io::ErrorKind::InvalidInput, unknown))?;
        let listener = listener::bind(config.listen)?;
        let memory = MemoryBudget::new(config.memory_budget);
        let address = listener.local_addr()?;
        let state = AppState {
            agents,
            webhooks: Arc::new(webhooks::Webhooks::new(&config.webhooks, log.clone())),
            metrics: Arc::default(),
            log,
            config,
            shutdown,
            feeds: feed::Feeds::new(memory.clone()),
            memory,
            open_bodies: open_bodies::OpenBodies::default(),
            checks: Arc::new(Semaphore::new(limits::CHECKS)),
            start: fastrand::u64(..),
        };
        Ok(Self { listener, address, stop, state: Arc::new(state) })
    }

    /// Returns the bound address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `shutdown` completes, then lets requests finish and closes the log.
    ///
    /// Streams end, and open bodies are answered with what was written. Connections that do not finish within
    /// [`Config::grace`] are cut off.
    pub async fn run(self, shutdown: impl Future<Output = ()>) -> io::Result<()> {
        let Self { listener, stop, state, .. } = self;
        // Before the first event that a webhook must get.
        state.webhooks.subscribe().await.map_err(io::Error::other)?;
        state.agents.recover_first().await;
        let housekeeping = housekeeping::start(&state);
        let served = listener::serve(listener, &state, shutdown, stop).await;
        state.agents.wait_until_stopped().await;
        housekeeping.abort_all();
        state.log.close().await;
        served
    }
}
