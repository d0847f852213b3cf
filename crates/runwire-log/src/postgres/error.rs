//! Errors of Postgres, and whether a retry helps.

use std::time::Duration;

use tokio_postgres::error::{DbError, Severity, SqlState};

use crate::error::LogError;
use crate::record::DamagedRecord;
use crate::sql::DamagedColumn;
use crate::txn::MissingRow;

/// A result whose error is a failure of the store.
pub(super) type PgResult<T> = Result<T, PgError>;

/// A failure of the store.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PgError {
    /// Postgres refuses, or cannot be reached.
    #[error("{}", describe(.0))]
    Postgres(#[from] tokio_postgres::Error),
    /// No answer has come in time. The statement may have been executed.
    #[error("Postgres has not answered for {} s", .0.as_secs())]
    Timeout(Duration),
    /// The connection was dropped before.
    #[error("the connection is broken")]
    Broken,
    /// The runtime of a connection cannot be started.
    #[error(transparent)]
    Runtime(#[from] std::io::Error),
    /// Another node has written first.
    #[error("another node was faster")]
    Conflict,
    /// A head is not cached, and nothing is locked yet.
    #[error("a head is not cached")]
    NotCached,
    /// Stored data cannot be read.
    #[error("{0}")]
    Damaged(String),
}

impl PgError {
    /// Returns whether another node has won a conflict, so that a retry may succeed.
    pub(super) fn is_conflict(&self) -> bool {
        match self {
            Self::Conflict | Self::NotCached => true,
            Self::Postgres(error) => error.code().is_some_and(|code| CONFLICTS.contains(code)),
            _ => false,
        }
    }

    /// Returns whether the store is unavailable or read-only, so that a later retry may succeed.
    pub(super) fn is_unavailable(&self) -> bool {
        let error = match self {
            Self::Timeout(_) | Self::Broken | Self::Runtime(_) => return true,
            Self::Postgres(error) => error,
            Self::Conflict | Self::NotCached | Self::Damaged(_) => return false,
        };
        match error.as_db_error() {
            Some(refused) => is_fatal(refused) || is_transient(refused.code()),
            None => error.is_closed() || is_io_error(error),
        }
    }

    /// Returns whether every retry will fail.
    pub(super) fn is_permanent(&self) -> bool {
        match self {
            Self::Damaged(_) => true,
            Self::Postgres(error) => error.code().is_some_and(|code| !self.is_conflict() && is_final(code)),
            _ => false,
        }
    }

    /// Returns whether it has ended the connection.
    pub(super) fn has_ended_connection(&self) -> bool {
        match self {
            Self::Postgres(error) => error.as_db_error().is_none_or(is_fatal),
            Self::Timeout(_) | Self::Broken => true,
            _ => false,
        }
    }
}

/// Conflicts with other nodes.
const CONFLICTS: [SqlState; 4] = [
    SqlState::UNIQUE_VIOLATION,
    SqlState::T_R_DEADLOCK_DETECTED,
    SqlState::T_R_SERIALIZATION_FAILURE,
    SqlState::LOCK_NOT_AVAILABLE,
];

fn is_fatal(refused: &DbError) -> bool {
    matches!(refused.parsed_severity(), Some(Severity::Fatal | Severity::Panic))
}

/// Returns whether an error is transient: a broken connection, a server that stops, starts or has no resources, a
/// timed out statement, or a server that is not the primary yet.
pub(super) fn is_transient(code: &SqlState) -> bool {
    let classes = ["08", "53", "57", "58"];
    classes.iter().any(|class| code.code().starts_with(class)) || *code == SqlState::READ_ONLY_SQL_TRANSACTION
}

/// Returns whether an error is about the data itself: it cannot be stored, violates a constraint, is too large, or a
/// page is corrupt.
fn is_final(code: &SqlState) -> bool {
    let classes = ["22", "23", "54", "XX001", "XX002"];
    classes.iter().any(|class| code.code().starts_with(class))
}

fn is_io_error(error: &tokio_postgres::Error) -> bool {
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        if error.is::<std::io::Error>() {
            return true;
        }
        cause = error.source();
    }
    false
}

fn describe(error: &tokio_postgres::Error) -> String {
    match error.as_db_error() {
        Some(refused) => refused.to_string(),
        None => match std::error::Error::source(error) {
            Some(cause) => format!("{error}: {cause}"),
            None => error.to_string(),
        },
    }
}

impl From<MissingRow> for PgError {
    fn from(missing: MissingRow) -> Self {
        Self::Damaged(missing.to_string())
    }
}

impl From<DamagedColumn> for PgError {
    fn from(damaged: DamagedColumn) -> Self {
        Self::Damaged(damaged.to_string())
    }
}

impl From<DamagedRecord> for PgError {
    fn from(damaged: DamagedRecord) -> Self {
        Self::Damaged(damaged.to_string())
    }
}

/// A failed (de)serialisation of a state is a failure of the store.
impl From<serde_json::Error> for PgError {
    fn from(error: serde_json::Error) -> Self {
        Self::Damaged(error.to_string())
    }
}

impl From<PgError> for LogError {
    fn from(failure: PgError) -> Self {
        match failure.is_permanent() {
            true => Self::Damaged(failure.to_string()),
            false => Self::Unavailable(failure.to_string()),
        }
    }
}
