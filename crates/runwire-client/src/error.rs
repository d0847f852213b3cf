//! The errors of requests and streams.

use std::time::Duration;

use runwire_model::ErrorCode;

use crate::http::UrlError;
use crate::problem::Problem;

/// Why a request or a stream failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The URL is not a server's.
    #[error("the URL `{url}` names no server: {fault}")]
    Url {
        /// The URL as it was given.
        url: String,
        /// Why it is invalid.
        fault: UrlError,
    },
    /// The token cannot be sent in a header.
    #[error("the token cannot be sent in a header: a token is ASCII without spaces and line ends")]
    Token,
    /// The producer's name cannot be sent in a header.
    #[error("the producer `{0}` cannot be sent in a header: use letters, digits and dashes")]
    Producer(String),
    /// The server's certificate is not trusted, or the trusted certificates cannot be loaded.
    #[error("no TLS: {0}")]
    Tls(String),
    /// The connection could not be opened.
    #[error("cannot reach {url}: {reason}")]
    Unreachable {
        /// The server.
        url: String,
        /// What happened.
        reason: String,
    },
    /// An open connection broke or timed out. Whether the request was processed is unknown.
    #[error("the connection to {url} broke: {reason}")]
    Broken {
        /// The server.
        url: String,
        /// What happened.
        reason: String,
    },
    /// The server refused the request with a problem (RFC 9457).
    #[error("{0}")]
    Refused(Box<Problem>),
    /// The response does not follow Runwire's protocol.
    #[error("{url} does not answer like a Runwire server: {reason}")]
    Protocol {
        /// The server.
        url: String,
        /// What is wrong with the response.
        reason: String,
    },
}

impl Error {
    /// Returns true if the same request may succeed later.
    pub fn is_temporary(&self) -> bool {
        match self {
            Self::Unreachable { .. } | Self::Broken { .. } => true,
            Self::Refused(problem) => problem.is_temporary(),
            _ => false,
        }
    }

    /// Returns the server's `Retry-After`.
    pub fn retry_after(&self) -> Option<Duration> {
        self.problem()?.retry_after()
    }

    /// Returns the problem of a refused request.
    pub fn problem(&self) -> Option<&Problem> {
        match self {
            Self::Refused(problem) => Some(problem),
            _ => None,
        }
    }

    /// Returns the stable code of a refusal; see [`Problem::code`].
    pub fn code(&self) -> Option<ErrorCode> {
        self.problem()?.code()
    }
}

impl From<Problem> for Error {
    fn from(problem: Problem) -> Self {
        Self::Refused(Box::new(problem))
    }
}
