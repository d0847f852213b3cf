//! Where events are kept, and how nodes that share a store tell each other of new ones.

use std::fmt::{self, Display};
use std::path::PathBuf;
use std::str::FromStr;

use super::address::Address;
use super::value::{Form, NONE, Setting, Wrong};

/// Where events are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Store {
    /// One SQLite file.
    Sqlite(PathBuf),
    /// A database in Postgres, which many nodes may share.
    Postgres(Address),
}

impl Default for Store {
    fn default() -> Self {
        Self::Sqlite(PathBuf::from("runwire.db"))
    }
}

impl Setting for Store {
    const ALLOWED: &'static str =
        "`sqlite:PATH`, such as `sqlite:runwire.db`, or `postgres://USER:PASSWORD@HOST/DATABASE`";
    const FORM: Form = Form::Text;
}

impl FromStr for Store {
    type Err = Wrong;

    fn from_str(text: &str) -> Result<Self, Wrong> {
        if text.starts_with("postgres://") || text.starts_with("postgresql://") {
            return Ok(Self::Postgres(Address::new(text)));
        }
        match text.strip_prefix("sqlite:").map(|path| path.strip_prefix("//").unwrap_or(path)) {
            Some(path) if !path.is_empty() && path != ":memory:" => Ok(Self::Sqlite(PathBuf::from(path))),
            _ => Err(Wrong::not_allowed::<Self>()),
        }
    }
}

impl Display for Store {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(path) => write!(formatter, "sqlite:{}", path.display()),
            Self::Postgres(address) => address.fmt(formatter),
        }
    }
}

/// Where nodes that share a store tell each other of new events; none means that they look into the store.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct LiveTail(pub(crate) Option<Address>);

impl Setting for LiveTail {
    const ALLOWED: &'static str = "`redis://HOST:PORT`, with TLS `rediss://HOST:PORT`, or `none`";
    const FORM: Form = Form::Text;
}

impl FromStr for LiveTail {
    type Err = Wrong;

    fn from_str(text: &str) -> Result<Self, Wrong> {
        if text == NONE {
            return Ok(Self(None));
        }
        let is_redis = ["redis://", "rediss://"].iter().any(|scheme| text.starts_with(scheme));
        is_redis.then(|| Self(Some(Address::new(text)))).ok_or_else(Wrong::not_allowed::<Self>)
    }
}

impl Display for LiveTail {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(address) => address.fmt(formatter),
            None => formatter.write_str(NONE),
        }
    }
}

/// A file with the certificates that are trusted instead of the system's.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Trust(pub(crate) Option<PathBuf>);

impl Setting for Trust {
    const ALLOWED: &'static str = "a file of certificates in PEM, or `none`";
    const FORM: Form = Form::Text;
}

impl FromStr for Trust {
    type Err = Wrong;

    fn from_str(text: &str) -> Result<Self, Wrong> {
        match text {
            "" => Err(Wrong::not_allowed::<Self>()),
            NONE => Ok(Self(None)),
            path => Ok(Self(Some(PathBuf::from(path)))),
        }
    }
}

impl Display for Trust {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(path) => path.display().fmt(formatter),
            None => formatter.write_str(NONE),
        }
    }
}
