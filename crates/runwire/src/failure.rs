//! What keeps a command from doing its work, whatever the stream says.

use std::io;
use std::net::SocketAddr;

use crate::client::Refusal;

/// A command could not do its work.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error("cannot read {name}: {error}")]
    Read { name: String, error: io::Error },
    #[error("cannot write to standard output: {0}")]
    Write(io::Error),
    #[error("{message}")]
    Usage { message: String, hint: &'static str },
    #[error("cannot open the store: {0}")]
    Store(#[from] runwire_log::sqlite::OpenError),
    #[error("cannot listen on {address}: {error}")]
    Listen { address: SocketAddr, error: io::Error },
    #[error("the server stopped: {0}")]
    Serve(io::Error),
    #[error("cannot start: {0}")]
    Start(io::Error),
    #[error("cannot reach {url}: {reason}")]
    Unreachable { url: String, reason: String },
    #[error("the connection to {url} broke: {reason}")]
    Broken { url: String, reason: String },
    #[error("the connection to {url} broke while writing: {reason}")]
    BrokenWrite { url: String, reason: String },
    #[error("{url} does not answer like a Runwire server: {reason}")]
    Answer { url: String, reason: String },
    #[error("{0}")]
    Refused(Box<Refusal>),
}

impl Failure {
    pub(crate) fn is_broken_pipe(&self) -> bool {
        matches!(self, Self::Write(error) if error.kind() == io::ErrorKind::BrokenPipe)
    }

    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::Refused(_) => 1,
            Self::Usage { .. } => 2,
            _ => 3,
        }
    }

    /// Tells what helps.
    pub(crate) fn hint(&self) -> Option<&str> {
        match self {
            Self::Usage { hint, .. } => Some(hint),
            Self::Unreachable { .. } => {
                Some("`runwire dev` starts a server; --url or RUNWIRE_URL names another")
            }
            Self::BrokenWrite { .. } => Some(
                "how much was written is not known; with --producer and --seq it can be sent again safely",
            ),
            Self::Answer { .. } => Some("--url or RUNWIRE_URL names the server"),
            Self::Listen { error, .. } if error.kind() == io::ErrorKind::AddrInUse => {
                Some("another program listens there; --listen 127.0.0.1:0 takes any port that is free")
            }
            Self::Refused(refusal) => refusal.hint(),
            _ => None,
        }
    }
}
