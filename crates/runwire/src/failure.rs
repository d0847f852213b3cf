//! The errors of commands, with exit codes and hints.

use std::io;
use std::net::SocketAddr;

use runwire_client::Error;
use runwire_log::postgres;
use runwire_log::sqlite::SqliteOpenError;

use crate::table::sanitize;

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error("cannot read {name}: {error}")]
    Read { name: String, error: io::Error },
    #[error("cannot write to standard output: {0}")]
    Write(io::Error),
    #[error("cannot write {name}: {error}")]
    WriteFile { name: String, error: io::Error },
    #[error("{name}, line {line}: {message}")]
    BadFile { name: String, line: u64, message: String },
    #[error("{}{}", place.as_ref().map(|place| format!("{place}: ")).unwrap_or_default(), unplaced(error))]
    Import { place: Option<String>, error: Error },
    #[error("{message}")]
    Usage { message: String, hint: &'static str },
    #[error("cannot open the store: {0}")]
    Store(#[from] SqliteOpenError),
    #[error("cannot open the store: {0}")]
    SharedStore(#[from] postgres::PgOpenError),
    #[error("cannot listen on {address}: {error}")]
    Listen { address: SocketAddr, error: io::Error },
    #[error("the server stopped: {0}")]
    Serve(io::Error),
    #[error("cannot start: {0}")]
    Start(io::Error),
    #[error("{}", plain(.0))]
    Server(Error),
    #[error("{0}")]
    BrokenWrite(String),
    #[error("no agent of the server is called `{}`", .name.chars().map(sanitize).collect::<String>())]
    NoAgent { name: String, hint: String },
}

impl Failure {
    pub(crate) fn is_broken_pipe(&self) -> bool {
        matches!(self, Self::Write(error) if error.kind() == io::ErrorKind::BrokenPipe)
    }

    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::Server(Error::Refused(_)) | Self::Import { error: Error::Refused(_), .. } => 1,
            Self::BadFile { .. } | Self::NoAgent { .. } => 1,
            // A supervisor need not restart the server: the configuration must be fixed first.
            Self::SharedStore(error) if !error.may_pass() => 1,
            Self::Store(SqliteOpenError::Newer { .. } | SqliteOpenError::Older { .. }) => 1,
            Self::Usage { .. } => 2,
            _ => 3,
        }
    }

    /// Returns a hint.
    pub(crate) fn hint(&self) -> Option<&str> {
        match self {
            Self::Usage { hint, .. } => Some(hint),
            Self::NoAgent { hint, .. } => Some(hint),
            // The reason has the hint.
            Self::Server(Error::Unreachable { reason, .. }) if reason.contains("TLS") => None,
            Self::Server(Error::Unreachable { .. }) => {
                Some("`runwire dev` starts a server; --url or RUNWIRE_URL names another")
            }
            Self::Server(Error::Broken { url, reason })
                if url.starts_with("http://") && !reason.contains("silent") =>
            {
                Some("if the server wants TLS, its address begins with `https://`")
            }
            Self::Server(Error::Protocol { .. }) => Some("--url or RUNWIRE_URL names the server"),
            Self::Import { error, .. } => match error.problem() {
                Some(problem) => problem.hint(),
                None => Some("repeating the import goes on where it stopped"),
            },
            Self::Server(error) => error.problem()?.hint(),
            Self::WriteFile { error, .. } if error.kind() == io::ErrorKind::StorageFull => {
                Some("nothing is kept of the export; make room, or write to another disk")
            }
            Self::BrokenWrite(_) => Some(
                "how much was written is not known; with --producer and --seq it can be sent again safely",
            ),
            Self::SharedStore(error) => postgres_hint(error),
            Self::Listen { error, .. } if error.kind() == io::ErrorKind::AddrInUse => {
                Some("another program listens there; --listen 127.0.0.1:0 takes any port that is free")
            }
            _ => None,
        }
    }
}

/// Returns a hint for a PostgresLog store that cannot be opened.
fn postgres_hint(error: &postgres::PgOpenError) -> Option<&'static str> {
    match error {
        postgres::PgOpenError::Unreadable(_) => {
            Some("an address is postgres://USER:PASSWORD@HOST:PORT/DATABASE; `%40` is an @ in a password")
        }
        postgres::PgOpenError::Away(_) => Some("start Postgres, or name the address that it listens on"),
        postgres::PgOpenError::Credentials(_) => Some(
            "check user and password in the address; an @ in them is written `%40`, a / `%2F`, a : `%3A`",
        ),
        postgres::PgOpenError::NoDatabase(_) => {
            Some("an administrator of Postgres creates it: CREATE DATABASE … OWNER …")
        }
        postgres::PgOpenError::NoSchema(_) => {
            Some("create the schema that `search_path` in the address names: CREATE SCHEMA … AUTHORIZATION …")
        }
        postgres::PgOpenError::NotAllowed(_) => Some(
            "the user must own the database: ALTER DATABASE … OWNER TO …; or migrate as its owner, and \
                 GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES and USAGE ON ALL SEQUENCES to the user",
        ),
        postgres::PgOpenError::Others(_) => Some(
            "give Runwire a database of its own, or a schema: CREATE SCHEMA runwire, and \
             options=-c%20search_path%3Drunwire behind the `?` of the address",
        ),
        postgres::PgOpenError::LosesCommits(_) => {
            Some("what Runwire acknowledges must be kept: ALTER ROLE … SET synchronous_commit = on")
        }
        postgres::PgOpenError::Insecure(_) => Some(
            "`sslmode` in the address says whether there must be TLS and what is checked, `sslrootcert` names a \
             file of certificates that are trusted",
        ),
        postgres::PgOpenError::Tail(_) => {
            Some("an address is redis://:PASSWORD@HOST:PORT, with TLS rediss://…")
        }
        postgres::PgOpenError::Unusable(_)
        | postgres::PgOpenError::Newer { .. }
        | postgres::PgOpenError::Older { .. } => None,
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let (message, hint) = match error {
            Error::Token => {
                ("RUNWIRE_TOKEN cannot be sent in a header", "a token is ASCII without spaces and line ends")
            }
            Error::Producer(_) => ("--producer cannot be sent in a header", "use letters, digits and dashes"),
            error => return Self::Server(error),
        };
        Self::Usage { message: message.to_owned(), hint }
    }
}

/// Formats a server's error without characters that act on a terminal.
pub(crate) fn plain(error: &Error) -> String {
    error.to_string().chars().map(sanitize).collect()
}

/// Formats a server's error without its line number.
fn unplaced(error: &Error) -> String {
    match error.problem() {
        Some(problem) => {
            let (detail, code) =
                (problem.detail().unwrap_or_default(), problem.code_text().unwrap_or_default());
            format!("{detail} [{code}]").chars().map(sanitize).collect()
        }
        None => plain(error),
    }
}
