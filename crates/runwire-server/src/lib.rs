//! Runwire's server: writing and reading runs over HTTP/1.1, HTTP/2 and WebSocket.
//!
//! | module | what |
//! |---|---|
//! | `listener` | accepts connections and bounds what each may do |
//! | `router` | which request goes where |
//! | `read` | a run or a thread as a stream or a page; `read::raw_http` serves streams without hyper |
//! | `write` | a producer's body becomes appends to the log |
//! | `agents` | agents that the server starts itself |
//! | `outage` | how a store is waited for that is away for a while |
//! | `outgoing` | connections to other servers |
//! | `programs` | programs, each with everything that it starts |
//! | `bodies` | bodies that stay open, so that a newer epoch can cut off an older one |
//! | `console` | the web console, out of the binary |
//! | `resources` | threads, runs, messages, producers |
//! | `webhooks` | other servers that are told when a run asks or ends |
//! | `interactions` | whether an answer fits its question |
//! | `metrics` | what the server tells of itself |
//! | `hosts` | the hosts that requests may be meant for |
//! | `problem` | every way to say no, in one table |
//! | `ids`, `query`, `json_body` | what comes in, turned into typed values at the edge |
//! | `limits` | every number that bounds something |
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

pub mod agents;
mod auth;
mod console;
mod content_type;
mod demo;
mod facade;
mod feed;
pub mod hosts;
mod housekeeping;
mod https_client;
mod ids;
pub mod interactions;
mod json_body;
pub mod limits;
mod listener;
mod metrics;
mod open_bodies;
mod openapi;
mod origin;
pub mod problem;
pub mod programs;
mod query;
mod read;
mod request_head;
mod resources;
mod rewind;
mod router;
mod store_retry;
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

use runwire_log::Log;
use tokio::sync::{Semaphore, watch};

/// How the server serves.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where it listens; port 0 takes any that is free.
    pub listen: SocketAddr,
    /// The hosts that requests may name beside loopback names and the server's own addresses.
    pub allowed_hosts: Vec<hosts::AllowedHost>,
    /// How many connections may be open at once.
    pub connections: usize,
    /// How long a client may take to send the head of a request.
    pub header_time: Duration,
    /// How often an idle stream shows a sign of life.
    pub keep_alive: Duration,
    /// How long an open body may be silent before its run is looked at.
    pub body_idle: Duration,
    /// How often blank lines and comments of an open body renew the lease; well below the lease itself.
    pub beat: Duration,
    /// How long frames of an open body are tried again that the store cannot take, on top of what it does itself.
    pub outage: Duration,
    /// How long connections may take to finish when the server stops.
    pub grace: Duration,
    /// What is removed when it is old, or when there is too much.
    pub retention: Retention,
    /// The agents that the server starts itself.
    pub agents: Vec<agents::Agent>,
    /// The agent of requests to façades that name none; without one, the only agent is meant.
    pub default_agent: Option<String>,
    /// Which extension frames each façade shows.
    pub facades: Facades,
    /// How many runs of agents may be under way at once; others wait, pending.
    pub agents_at_once: usize,
    /// How many runs of agents may be open at once; further ones are refused.
    pub agents_open: usize,
    /// How long an agent may take to end after it was asked to, before it is killed or cut off.
    pub agent_grace: Duration,
    /// The servers that are told when a run asks a person, or ends.
    pub webhooks: Vec<webhooks::Webhook>,
    /// Whether browsers find the console at `/`.
    pub console: bool,
}

/// What is removed: whole closed runs, oldest first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Retention {
    /// Runs that ended longer ago than this.
    pub age: Option<Duration>,
    /// As many as it takes to keep all records within this many bytes.
    pub bytes: Option<u64>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 7420)),
            allowed_hosts: Vec::new(),
            connections: limits::CONNECTIONS,
            header_time: limits::HEADER_TIME,
            keep_alive: limits::KEEP_ALIVE_TIME,
            body_idle: limits::BODY_IDLE_TIME,
            beat: limits::BEAT_TIME,
            outage: limits::OUTAGE_TIME,
            grace: limits::GRACE_TIME,
            retention: Retention::default(),
            agents: Vec::new(),
            default_agent: None,
            facades: Facades::default(),
            agents_at_once: limits::AGENTS_AT_ONCE,
            agents_open: limits::AGENTS_OPEN,
            agent_grace: limits::AGENT_GRACE_TIME,
            webhooks: Vec::new(),
            console: true,
        }
    }
}

/// State that all requests share.
pub(crate) struct AppState {
    pub(crate) log: Arc<dyn Log>,
    pub(crate) config: Config,
    /// Turns true when the server stops: streams end, open bodies are answered.
    pub(crate) shutdown: watch::Receiver<bool>,
    pub(crate) feeds: feed::Feeds,
    pub(crate) open_bodies: open_bodies::OpenBodies,
    /// How many answers may be checked at once.
    pub(crate) checks: Arc<Semaphore>,
    pub(crate) agents: agents::Agents,
    /// Tells this start of the server from others.
    pub(crate) start: u64,
    pub(crate) webhooks: Arc<webhooks::Webhooks>,
    pub(crate) metrics: Arc<metrics::Metrics>,
}

/// A server that has its address and serves once it is run.
pub struct Server {
    listener: std::net::TcpListener,
    address: SocketAddr,
    stop: watch::Sender<bool>,
    state: Arc<AppState>,
}

impl Server {
    /// Takes the address; connections wait until the server is run.
    pub fn bind(config: Config, log: Arc<dyn Log>) -> io::Result<Self> {
        let (stop, shutdown) = watch::channel(false);
        let agents = agents::Agents::new(&config, log.clone(), shutdown.clone())
            .map_err(|unknown| io::Error::new(io::ErrorKind::InvalidInput, unknown))?;
        let listener = listener::bind(config.listen)?;
        let address = listener.local_addr()?;
        let state = AppState {
            agents,
            webhooks: Arc::new(webhooks::Webhooks::new(&config.webhooks, log.clone())),
            metrics: Arc::default(),
            log,
            config,
            shutdown,
            feeds: feed::Feeds::default(),
            open_bodies: open_bodies::OpenBodies::default(),
            checks: Arc::new(Semaphore::new(limits::CHECKS)),
            start: fastrand::u64(..),
        };
        Ok(Self { listener, address, stop, state: Arc::new(state) })
    }

    /// Tells the address, with the port that was taken.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `shutdown` is done, then lets requests finish and closes the log.
    ///
    /// Readers are told to go, and open bodies are answered with what was written of them. What is not finished
    /// within [`Config::grace`] is cut off.
    pub async fn run(self, shutdown: impl Future<Output = ()>) -> io::Result<()> {
        let Self { listener, stop, state, .. } = self;
        // Before anything happens that is to be told.
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
