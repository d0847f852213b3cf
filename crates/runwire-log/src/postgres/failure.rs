//! What can go wrong with Postgres.

use tokio_postgres::error::SqlState;

use crate::error::LogError;
use crate::record::Damaged;
use crate::work::Missing;

/// A result that only the store can spoil.
pub(super) type Db<T> = Result<T, Failure>;

/// A fault of the store.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    /// Postgres refuses, or cannot be reached.
    #[error("{}", told(.0))]
    Postgres(#[from] tokio_postgres::Error),
    /// No connection can be driven.
    #[error(transparent)]
    Runtime(#[from] std::io::Error),
    /// Another node has made what this one had found missing.
    #[error("another node was faster")]
    Overtaken,
    /// What is stored cannot be read.
    #[error("{0}")]
    Damaged(String),
}

impl Failure {
    /// Tells whether the same work may succeed when it is done again from the start: another node was faster.
    pub(super) fn is_race(&self) -> bool {
        let error = match self {
            Self::Overtaken => return true,
            Self::Postgres(error) => error,
            Self::Runtime(_) | Self::Damaged(_) => return false,
        };
        error.code().is_some_and(|code| {
            [SqlState::UNIQUE_VIOLATION, SqlState::T_R_DEADLOCK_DETECTED, SqlState::T_R_SERIALIZATION_FAILURE]
                .contains(code)
        })
    }
}

fn told(error: &tokio_postgres::Error) -> String {
    match error.as_db_error() {
        Some(refused) => refused.to_string(),
        None => error.to_string(),
    }
}

impl From<Missing> for Failure {
    fn from(missing: Missing) -> Self {
        Self::Damaged(missing.to_string())
    }
}

impl From<Damaged> for Failure {
    fn from(damaged: Damaged) -> Self {
        Self::Damaged(damaged.to_string())
    }
}

/// A state that cannot be written or read is a fault of the store.
impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Self {
        Self::Damaged(error.to_string())
    }
}

impl From<Failure> for LogError {
    fn from(failure: Failure) -> Self {
        Self::Unavailable(failure.to_string())
    }
}
