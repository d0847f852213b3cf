//! What an agent is, as the configuration says it.

use std::path::PathBuf;
use std::time::Duration;

use http::{HeaderName, HeaderValue};
use runwire_model::dialect::Dialect;
use runwire_model::run::WholePolicy;

use crate::{demo, limits};

/// An agent that the server can start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Agent {
    /// What requests call it.
    pub name: String,
    /// What it is.
    pub kind: AgentKind,
}

/// The ways to start an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentKind {
    /// A request to somebody else's server.
    Http(HttpAgent),
    /// A program on this machine.
    Exec(ExecAgent),
    /// A built-in script.
    Demo(DemoAgent),
}

/// An agent that answers a request with a stream of frames.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpAgent {
    /// Where the run's input is posted; `{message}`, `{run}` and `{thread}` in it are filled in.
    pub url: String,
    /// What it speaks.
    pub dialect: Dialect,
    /// Whether frames are refused that its dialect's document does not allow.
    pub strict: bool,
    /// What becomes of a whole text that differs from what the run has told.
    pub whole: WholePolicy,
    /// Headers of every request to it.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// Where answers are posted, for dialects whose own request cannot carry them.
    pub answer_url: Option<String>,
    /// Where it is told that a run is cancelled; without one, its connection is closed.
    pub cancel_url: Option<String>,
    /// Certificates, as PEM, that are trusted beside those of the machine.
    pub trusted: Vec<u8>,
    /// Time in which a connection must be made.
    pub connect_time: Duration,
    /// Time in which its answer must begin.
    pub answer_time: Duration,
    /// Time that its stream may be silent.
    pub silence_time: Duration,
}

impl HttpAgent {
    /// Makes an agent that is reached without headers, in the usual times.
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
            silence_time: limits::AGENT_SILENCE_TIME,
        }
    }
}

/// An agent that is a program: its standard output is the run, one frame a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecAgent {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// What it speaks.
    pub dialect: Dialect,
    /// Whether frames are refused that its dialect's document does not allow.
    pub strict: bool,
    /// What becomes of a whole text that differs from what the run has told.
    pub whole: WholePolicy,
    /// Variables of its environment, beside those of the server.
    pub env: Vec<(String, String)>,
    /// The directory that it starts in.
    pub directory: Option<PathBuf>,
}

impl ExecAgent {
    /// Makes an agent of a command.
    pub fn new(command: impl IntoIterator<Item = impl Into<String>>, dialect: Dialect) -> Self {
        let command = command.into_iter().map(Into::into).collect();
        Self { command, dialect, strict: false, whole: WholePolicy::Add, env: Vec::new(), directory: None }
    }
}

/// An agent that is built in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DemoAgent {
    /// Which one; see [`demo_names`].
    pub script: String,
    /// Whether its pauses are a hundredth of what people need to follow.
    pub fast: bool,
}

/// Lists the names of the built-in agents.
pub fn demo_names() -> impl Iterator<Item = &'static str> {
    demo::agents().iter().map(|demo| demo.name)
}

/// Makes all built-in agents, each under its own name.
pub fn demos(fast: bool) -> Vec<Agent> {
    let agent = |name: &str| Agent {
        name: name.to_owned(),
        kind: AgentKind::Demo(DemoAgent { script: name.to_owned(), fast }),
    };
    demo_names().map(agent).collect()
}

impl AgentKind {
    /// Tells the name of the kind, as the configuration has it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Http(_) => "http",
            Self::Exec(_) => "exec",
            Self::Demo(_) => "demo",
        }
    }

    /// Returns what becomes of a whole text that differs from what the run has told.
    pub fn whole(&self) -> WholePolicy {
        match self {
            Self::Http(http) => http.whole,
            Self::Exec(exec) => exec.whole,
            Self::Demo(_) => WholePolicy::Add,
        }
    }

    /// Tells whether frames are refused that the dialect's document does not allow.
    pub fn is_strict(&self) -> bool {
        match self {
            Self::Http(http) => http.strict,
            Self::Exec(exec) => exec.strict,
            Self::Demo(_) => false,
        }
    }

    /// Tells what the agent speaks.
    pub fn dialect(&self) -> Dialect {
        match self {
            Self::Http(http) => http.dialect,
            Self::Exec(exec) => exec.dialect,
            Self::Demo(_) => Dialect::Runwire,
        }
    }
}
