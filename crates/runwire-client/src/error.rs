//! What keeps a request from its answer.

use std::time::Duration;

use crate::http::UrlError;
use crate::problem::Problem;

/// A request could not be made, was refused, or its answer makes no sense.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The URL names no server.
    #[error("the URL `{url}` names no server: {fault}")]
    Url {
        /// The URL as it was given.
        url: String,
        /// What is wrong with it.
        fault: UrlError,
    },
    /// The token cannot be sent.
    #[error("the token cannot be sent in a header: a token is ASCII without spaces and line ends")]
    Token,
    /// The producer's name cannot be sent.
    #[error("the producer `{0}` cannot be sent in a header: use letters, digits and dashes")]
    Producer(String),
    /// The certificates that tell a server's identity cannot be used.
    #[error("no TLS: {0}")]
    Tls(String),
    /// Nobody answers at the address.
    #[error("cannot reach {url}: {reason}")]
    Unreachable {
        /// The server.
        url: String,
        /// What happened.
        reason: String,
    },
    /// A connection broke, or fell silent for too long. What was sent may or may not have arrived.
    #[error("the connection to {url} broke: {reason}")]
    Broken {
        /// The server.
        url: String,
        /// What happened.
        reason: String,
    },
    /// The server said no, and why.
    #[error("{0}")]
    Refused(Box<Problem>),
    /// The answer is not what a Runwire server answers.
    #[error("{url} does not answer like a Runwire server: {reason}")]
    Strange {
        /// The server.
        url: String,
        /// What is odd about its answer.
        reason: String,
    },
}

impl Error {
    /// Tells whether the same request may succeed a little later.
    pub fn is_temporary(&self) -> bool {
        match self {
            Self::Unreachable { .. } | Self::Broken { .. } => true,
            Self::Refused(problem) => problem.is_temporary(),
            _ => false,
        }
    }

    /// Tells how long the server asks to wait before the next attempt.
    pub fn retry_after(&self) -> Option<Duration> {
        self.problem()?.retry_after()
    }

    /// Gives what the server said when it refused.
    pub fn problem(&self) -> Option<&Problem> {
        match self {
            Self::Refused(problem) => Some(problem),
            _ => None,
        }
    }

    /// Tells the stable code of a refusal: `run_unknown`, `cursor_trimmed`, …
    pub fn code(&self) -> Option<&str> {
        self.problem()?.code()
    }
}

impl From<Problem> for Error {
    fn from(problem: Problem) -> Self {
        Self::Refused(Box::new(problem))
    }
}
