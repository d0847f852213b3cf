//! Opens or creates a Postgres store, and explains why it cannot be opened.

use tokio_postgres::error::SqlState;

use super::address::PgAddress;
use super::connection::PgConnection;
use super::error::{PgError, is_transient};
use super::{PostgresLog, schema};
use crate::Migrated;
use crate::cluster::redis::TailError;

/// Why a store cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum PgOpenError {
    /// The address is invalid.
    #[error("the address cannot be used: {0}")]
    Unreadable(String),
    /// It is unreachable, which may be temporary.
    #[error("Postgres cannot be reached: {0}")]
    Away(String),
    /// It refuses this user and password.
    #[error("Postgres lets nobody in with this user and password: {0}")]
    Credentials(String),
    /// The database does not exist.
    #[error("the database is not there: {0}")]
    NoDatabase(String),
    /// The schema for the tables does not exist.
    #[error("the schema is not there: {0}")]
    NoSchema(String),
    /// The user lacks a privilege.
    #[error("the user may not do what must be done: {0}")]
    NotAllowed(String),
    /// Tables of another program have the names of a store's tables.
    #[error("the database holds tables of another program, called as those of a store are: {0}")]
    Others(String),
    /// It acknowledges commits that a crash can lose.
    #[error("Postgres acknowledges commits before they are on disk: synchronous_commit is `{0}`")]
    LosesCommits(String),
    /// The connection cannot be secured by TLS.
    #[error("the way to Postgres cannot be secured by TLS: {0}")]
    Insecure(String),
    /// It cannot be used.
    #[error("Postgres cannot be used: {0}")]
    Unusable(String),
    /// The live tail cannot be used.
    #[error(transparent)]
    Tail(#[from] TailError),
    /// An older version has written it, in another layout.
    #[error(
        "the store has schema version {found}, and this program needs version {needed}; export its threads with the \
         runwire that wrote it (`runwire export`), and import them into a new store"
    )]
    Older {
        /// The version that it has.
        found: u32,
        /// The version that is needed here.
        needed: u32,
    },
    /// A newer version has written it.
    #[error(
        "the store has schema version {found}, and this program knows versions up to {known}; use a newer runwire"
    )]
    Newer {
        /// The version that it has.
        found: u32,
        /// The newest version that is known here.
        known: u32,
    },
}

impl PgOpenError {
    /// Returns whether a retry may succeed.
    pub fn may_pass(&self) -> bool {
        matches!(self, Self::Away(_))
    }
}

impl From<PgError> for PgOpenError {
    fn from(failure: PgError) -> Self {
        let (description, is_conflict) = (failure.to_string(), failure.is_conflict());
        let error = match failure {
            PgError::Postgres(error) => error,
            failure if failure.is_unavailable() => return Self::Away(description),
            _ => return Self::Unusable(description),
        };
        let Some(code) = error.code() else {
            // Only its text reveals its kind.
            return match error.to_string().as_str() {
                "invalid configuration" | "authentication error" => Self::Credentials(description),
                "error performing TLS handshake" => Self::Insecure(description),
                _ => Self::Away(description),
            };
        };
        match code {
            &SqlState::INVALID_PASSWORD | &SqlState::INVALID_AUTHORIZATION_SPECIFICATION => {
                Self::Credentials(description)
            }
            &SqlState::INVALID_CATALOG_NAME => Self::NoDatabase(description),
            &SqlState::INVALID_SCHEMA_NAME => Self::NoSchema(description),
            &SqlState::INSUFFICIENT_PRIVILEGE => Self::NotAllowed(description),
            code if is_conflict || is_transient(code) => Self::Away(description),
            _ => Self::Unusable(description),
        }
    }
}

impl PostgresLog {
    /// Creates the tables of a new store. Blocks.
    pub fn migrate(url: &str) -> Result<Migrated, PgOpenError> {
        prepare(&PgConnection::open_without_timeout(&config(url)?)?)
    }

    /// Checks an address without connecting.
    pub fn check_address(url: &str) -> Result<(), PgOpenError> {
        config(url).map(drop)
    }
}

/// Parses an address.
pub(super) fn config(url: &str) -> Result<PgAddress, PgOpenError> {
    PgAddress::parse(url).map_err(PgOpenError::Unreadable)
}

/// The oldest supported version of Postgres.
const OLDEST: i32 = 130_000;

/// Checks that the server is supported and durable, and makes the tables of a new store.
pub(super) fn prepare(connection: &PgConnection) -> Result<Migrated, PgOpenError> {
    // A transaction that waited for another migration must see its result.
    connection.run("SET default_transaction_isolation = 'read committed'")?;
    let row = connection
        .one("SELECT current_setting('server_encoding'), current_setting('server_version_num')::int", &[])?;
    let (encoding, version): (String, i32) = (row.get(0), row.get(1));
    if version < OLDEST {
        let (found, needed) = (version / 10_000, OLDEST / 10_000);
        return Err(PgOpenError::Unusable(format!(
            "it is Postgres {found}, and {needed} or newer is needed"
        )));
    }
    if encoding != "UTF8" {
        let description = format!("the encoding of the database is {encoding}, and must be UTF8");
        return Err(PgOpenError::Unusable(description));
    }
    let commits: String = connection.one("SHOW synchronous_commit", &[])?.get(0);
    if commits == "off" {
        return Err(PgOpenError::LosesCommits(commits));
    }
    schema::migrate(connection)
}
