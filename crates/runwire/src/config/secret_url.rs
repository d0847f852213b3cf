//! The address of a server, with a password in it that is shown to nobody.

use std::borrow::Cow;
use std::fmt::{self, Debug, Display};

/// What stands where a password was.
const HIDDEN: &str = "***";

/// The address of a server; whoever shows it shows no password.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Address(String);

impl Address {
    pub(super) fn new(text: &str) -> Self {
        Self(text.to_owned())
    }

    /// Gives it with its password, to connect with.
    pub(crate) fn whole(&self) -> &str {
        &self.0
    }
}

impl Display for Address {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&without_password(&self.0))
    }
}

impl Debug for Address {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        Debug::fmt(&without_password(&self.0), formatter)
    }
}

/// Shows what may be an address, right or wrong, without what may be a password in it.
///
/// What was typed wrongly is quoted in messages, so nothing is taken for granted: in doubt too much is hidden.
pub(crate) fn without_password(text: &str) -> Cow<'_, str> {
    let start = text.find("://").map_or(0, |at| at + 3);
    let (scheme, rest) = text.split_at(start);
    let credentials = rest.rfind('@').map(|end| &rest[..end]);
    let shown = match credentials.map(|credentials| (credentials, credentials.find(':'))) {
        Some((credentials, Some(colon))) => {
            let (user, rest) = (&credentials[..colon], &rest[credentials.len()..]);
            Cow::Owned(format!("{scheme}{user}:{HIDDEN}{rest}"))
        }
        // A name alone is what a password becomes where its colon was forgotten.
        Some((credentials, None)) if scheme.starts_with("redis") => {
            Cow::Owned(format!("{scheme}{HIDDEN}{}", &rest[credentials.len()..]))
        }
        _ => Cow::Borrowed(text),
    };
    let Some(at) = shown.to_ascii_lowercase().find("passw") else { return shown };
    // One of several parameters in an address, or anything at all.
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
            assert_eq!(Address::new(written).to_string(), shown);
            assert_eq!(format!("{:?}", Address::new(written)), format!("{shown:?}"));
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
