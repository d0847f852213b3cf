//! A URL that may hold a password, which is never printed.

use std::borrow::Cow;
use std::fmt::{self, Debug, Display};

/// Printed instead of a password.
const HIDDEN: &str = "***";

/// The URL of a store or a tail; `Display` and `Debug` hide the password.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct SecretUrl(String);

impl SecretUrl {
    pub(super) fn new(text: &str) -> Self {
        Self(text.to_owned())
    }

    /// Returns the URL with its password, to connect.
    pub(crate) fn expose(&self) -> &str {
        &self.0
    }
}

impl Display for SecretUrl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&without_password(&self.0))
    }
}

impl Debug for SecretUrl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        Debug::fmt(&without_password(&self.0), formatter)
    }
}

/// Replaces what may be a password in a text that may be a URL.
///
/// Messages quote invalid input, so the text need not be a valid URL: in doubt too much is hidden.
pub(crate) fn without_password(text: &str) -> Cow<'_, str> {
    let start = text.find("://").map_or(0, |at| at + 3);
    let (scheme, rest) = text.split_at(start);
    let credentials = rest.rfind('@').map(|end| &rest[..end]);
    let shown = match credentials.map(|credentials| (credentials, credentials.find(':'))) {
        Some((credentials, Some(colon))) => {
            let (user, rest) = (&credentials[..colon], &rest[credentials.len()..]);
            Cow::Owned(format!("{scheme}{user}:{HIDDEN}{rest}"))
        }
        // A Redis URL whose colon was forgotten has the password as its user.
        Some((credentials, None)) if scheme.starts_with("redis") => {
            Cow::Owned(format!("{scheme}{HIDDEN}{}", &rest[credentials.len()..]))
        }
        _ => Cow::Borrowed(text),
    };
    let Some(at) = shown.to_ascii_lowercase().find("passw") else { return shown };
    // A query parameter, or a key in a connection string.
    let value = at + shown[at..].find('=').map_or(0, |equals| equals + 1);
    let after = shown[value..].find('&').filter(|_| start > 0);
    let after = after.map_or("", |end| &shown[value + end..]);
    Cow::Owned(format!("{}{HIDDEN}{after}", &shown[..value]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_password_is_ever_shown() {
        for (written, shown) in [
            ("postgres://ann:secret@db.example:5432/runwire", "postgres://ann:***@db.example:5432/runwire"),
            ("postgres://ann:se@cr/et?@db.example/runwire", "postgres://ann:***@db.example/runwire"),
            (
                "postgres://db/runwire?password=secret&sslmode=require",
                "postgres://db/runwire?password=***&sslmode=require",
            ),
            ("postgres://db/runwire?user=ann&password=secret", "postgres://db/runwire?user=ann&password=***"),
            ("rediss://:secret@redis:6379/0", "rediss://:***@redis:6379/0"),
            ("redis://secret@redis", "redis://***@redis"),
            ("postgress:ann:secret@db", "postgress:***@db"),
            ("ann:secret@db/runwire", "ann:***@db/runwire"),
            ("host=db password='se cret' user=ann", "host=db password=***"),
        ] {
            assert_eq!(without_password(written), shown);
            assert_eq!(SecretUrl::new(written).to_string(), shown);
            assert_eq!(format!("{:?}", SecretUrl::new(written)), format!("{shown:?}"));
        }
    }

    #[test]
    fn what_holds_no_password_is_shown_as_it_is() {
        for text in ["postgres://ann@db/runwire", "redis://redis:6379", "sqlite:runwire.db", "127.0.0.1:7420"]
        {
            assert_eq!(without_password(text), text);
        }
    }
}
