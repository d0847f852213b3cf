//! Errors of the SQLite store.

use crate::error::LogError;
use crate::record::DamagedRecord;
use crate::sql::DamagedColumn;
use crate::txn::{MissingRow, ProgressError};

/// A result whose error is a failure of the store.
pub(crate) type SqliteResult<T> = Result<T, SqliteError>;

/// A failure of the store.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SqliteError {
    /// SQLite refuses, or its file cannot be used.
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
    /// Stored data cannot be read.
    #[error("{0}")]
    Damaged(String),
    /// A thread of the store cannot be started.
    #[error("cannot start a thread: {0}")]
    Thread(#[from] std::io::Error),
}

impl SqliteError {
    /// Returns whether it is about the stored data itself, so that every retry will fail.
    pub(super) fn is_damage(&self) -> bool {
        match self {
            Self::Damaged(_) => true,
            Self::Sqlite(error) => match error {
                rusqlite::Error::FromSqlConversionFailure(..)
                | rusqlite::Error::IntegralValueOutOfRange(..)
                | rusqlite::Error::InvalidColumnType(..)
                | rusqlite::Error::Utf8Error(..) => true,
                // SQLite calls a page corrupt also if it could not be read once; the next attempt may read it.
                _ => false,
            },
            Self::Thread(_) => false,
        }
    }
}

impl From<MissingRow> for SqliteError {
    fn from(missing: MissingRow) -> Self {
        Self::Damaged(missing.to_string())
    }
}

impl From<DamagedColumn> for SqliteError {
    fn from(damaged: DamagedColumn) -> Self {
        Self::Damaged(damaged.to_string())
    }
}

impl From<DamagedRecord> for SqliteError {
    fn from(damaged: DamagedRecord) -> Self {
        Self::Damaged(damaged.to_string())
    }
}

impl From<ProgressError> for SqliteError {
    fn from(damaged: ProgressError) -> Self {
        Self::Damaged(damaged.to_string())
    }
}

/// A failed (de)serialisation of a state is a failure of the store.
impl From<serde_json::Error> for SqliteError {
    fn from(error: serde_json::Error) -> Self {
        Self::Damaged(error.to_string())
    }
}

impl From<SqliteError> for LogError {
    fn from(failure: SqliteError) -> Self {
        match failure.is_damage() {
            true => Self::Damaged(failure.to_string()),
            false => Self::Unavailable(failure.to_string()),
        }
    }
}

impl From<rusqlite::Error> for LogError {
    fn from(error: rusqlite::Error) -> Self {
        SqliteError::from(error).into()
    }
}
