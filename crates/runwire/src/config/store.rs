//! Settings of the store and the live tail: URLs and trusted certificates.

use std::fmt::{self, Display};
use std::path::PathBuf;
use std::str::FromStr;

use super::secret_url::SecretUrl;
use super::value::{InvalidValue, NONE, Setting, TomlType};

/// The store of events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StoreUrl {
    /// One SQLite file.
    Sqlite(PathBuf),
    /// A database in Postgres, which many nodes may share.
    Postgres(SecretUrl),
}

impl Default for StoreUrl {
    fn default() -> Self {
        Self::Sqlite(PathBuf::from("runwire.db"))
    }
}

impl Setting for StoreUrl {
    const ALLOWED: &'static str =
        "`sqlite:PATH`, such as `sqlite:runwire.db`, or `postgres://USER:PASSWORD@HOST/DATABASE`";
    const TOML_TYPE: TomlType = TomlType::Text;
}

impl FromStr for StoreUrl {
    type Err = InvalidValue;

    fn from_str(text: &str) -> Result<Self, InvalidValue> {
        if text.starts_with("postgres://") || text.starts_with("postgresql://") {
            return Ok(Self::Postgres(SecretUrl::new(text)));
        }
        match text.strip_prefix("sqlite:").map(|path| path.strip_prefix("//").unwrap_or(path)) {
            Some(path) if !path.is_empty() && path != ":memory:" => Ok(Self::Sqlite(PathBuf::from(path))),
            _ => Err(InvalidValue::not_allowed::<Self>()),
        }
    }
}

impl Display for StoreUrl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(path) => write!(formatter, "sqlite:{}", path.display()),
            Self::Postgres(address) => address.fmt(formatter),
        }
    }
}

/// The live tail that nodes publish new events to; `none` makes them poll the store.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct TailUrl(pub(crate) Option<SecretUrl>);

impl Setting for TailUrl {
    const ALLOWED: &'static str = "`redis://HOST:PORT`, with TLS `rediss://HOST:PORT`, or `none`";
    const TOML_TYPE: TomlType = TomlType::Text;
}

impl FromStr for TailUrl {
    type Err = InvalidValue;

    fn from_str(text: &str) -> Result<Self, InvalidValue> {
        if text == NONE {
            return Ok(Self(None));
        }
        let is_redis = ["redis://", "rediss://"].iter().any(|scheme| text.starts_with(scheme));
        is_redis.then(|| Self(Some(SecretUrl::new(text)))).ok_or_else(InvalidValue::not_allowed::<Self>)
    }
}

impl Display for TailUrl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(address) => address.fmt(formatter),
            None => formatter.write_str(NONE),
        }
    }
}

/// A file of certificates that are trusted instead of the system's.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct TrustedCertificates(pub(crate) Option<PathBuf>);

impl Setting for TrustedCertificates {
    const ALLOWED: &'static str = "a file of certificates in PEM, or `none`";
    const TOML_TYPE: TomlType = TomlType::Text;
}

impl FromStr for TrustedCertificates {
    type Err = InvalidValue;

    fn from_str(text: &str) -> Result<Self, InvalidValue> {
        match text {
            "" => Err(InvalidValue::not_allowed::<Self>()),
            NONE => Ok(Self(None)),
            path => Ok(Self(Some(PathBuf::from(path)))),
        }
    }
}

impl Display for TrustedCertificates {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(path) => path.display().fmt(formatter),
            None => formatter.write_str(NONE),
        }
    }
}
