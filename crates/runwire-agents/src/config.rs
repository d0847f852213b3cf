//! Configuration of agents.

use std::path::PathBuf;
use std::time::Duration;

use http::{HeaderName, HeaderValue};
use runwire_model::dialect::Dialect;
use runwire_model::run::WholePolicy;

use crate::{demo, limits};

/// An agent that the server can run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Agent {
    /// The name in requests.
    pub name: String,
    /// How it is run.
    pub kind: AgentKind,
}

/// The kinds of agents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentKind {
    /// A request to another server.
    Http(HttpAgent),
    /// A program on this machine.
    Exec(ExecAgent),
    /// A built-in script.
    Demo(DemoAgent),
}

/// An agent that answers a request with a stream of frames.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpAgent {
    /// The URL that the run's input is posted to; `{message}`, `{run}` and `{thread}` are replaced.
    pub url: String,
    /// The dialect of its output.
    pub dialect: Dialect,
    /// Whether frames that break the dialect's document are refused.
    pub strict: bool,
    /// Policy for a whole text that differs from its streamed pieces.
    pub whole: WholePolicy,
    /// Headers of every request to it.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// URL for answers, for dialects whose requests cannot carry them.
    pub answer_url: Option<String>,
    /// URL for cancel requests; without one, the connection is closed.
    pub cancel_url: Option<String>,
    /// PEM certificates to trust beside those of the system.
    pub trusted: Vec<u8>,
    /// Connect timeout.
    pub connect_time: Duration,
    /// Timeout for the head of the response.
    pub answer_time: Duration,
    /// Idle timeout of the stream.
    pub silence_time: Duration,
}

impl HttpAgent {
    /// Creates an agent without headers, with default timeouts.
    pub fn new(url: impl Into<String>, dialect: Dialect) -> Self {
        Self {
            url: url.into(),
            dialect,
            strict: false,
            whole: WholePolicy::Add,
            headers: Vec::new(),
            answer_url: None,
            cancel_url: None,
            trusted: Vec::new(),
            connect_time: limits::AGENT_CONNECT_TIME,
            answer_time: limits::AGENT_ANSWER_TIME,
            silence_time: limits::AGENT_IDLE_TIME,
        }
    }
}

/// An agent that is a program; its standard output is the run, one frame per line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecAgent {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// The dialect of its output.
    pub dialect: Dialect,
    /// Whether frames that break the dialect's document are refused.
    pub strict: bool,
    /// Policy for a whole text that differs from its streamed pieces.
    pub whole: WholePolicy,
    /// Environment variables beside those of the server.
    pub env: Vec<(String, String)>,
    /// The working directory.
    pub directory: Option<PathBuf>,
}

impl ExecAgent {
    /// Creates an agent from a command.
    pub fn new(command: impl IntoIterator<Item = impl Into<String>>, dialect: Dialect) -> Self {
        let command = command.into_iter().map(Into::into).collect();
        Self { command, dialect, strict: false, whole: WholePolicy::Add, env: Vec::new(), directory: None }
    }
}

/// A built-in demo agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DemoAgent {
    /// The name of the script; see [`demo_names`].
    pub script: String,
    /// Whether its pauses are a hundredth of the normal ones.
    pub fast: bool,
}

/// Lists the names of the built-in agents.
pub fn demo_names() -> impl Iterator<Item = &'static str> {
    demo::agents().iter().map(|demo| demo.name)
}

/// Creates all built-in agents, each under its own name.
pub fn demos(fast: bool) -> Vec<Agent> {
    let agent = |name: &str| Agent {
        name: name.to_owned(),
        kind: AgentKind::Demo(DemoAgent { script: name.to_owned(), fast }),
    };
    demo_names().map(agent).collect()
}

impl AgentKind {
    /// Returns the name of the kind in the configuration.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Http(_) => "http",
            Self::Exec(_) => "exec",
            Self::Demo(_) => "demo",
        }
    }

    /// Returns the policy for a whole text that differs from its streamed pieces.
    pub fn whole(&self) -> WholePolicy {
        match self {
            Self::Http(http) => http.whole,
            Self::Exec(exec) => exec.whole,
            Self::Demo(_) => WholePolicy::Add,
        }
    }

    /// Returns true if frames that break the dialect's document are refused.
    pub fn is_strict(&self) -> bool {
        match self {
            Self::Http(http) => http.strict,
            Self::Exec(exec) => exec.strict,
            Self::Demo(_) => false,
        }
    }

    /// Returns the dialect of the agent's output.
    pub fn dialect(&self) -> Dialect {
        match self {
            Self::Http(http) => http.dialect,
            Self::Exec(exec) => exec.dialect,
            Self::Demo(_) => Dialect::Runwire,
        }
    }
}
