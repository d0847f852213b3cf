//! The address of a Postgres store: connection settings, timeouts and TLS.

use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use percent_encoding::percent_decode_str;
use tokio_postgres::Config;
use tokio_postgres::config::{SslMode, TargetSessionAttrs};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::connection_counters::ConnectionCounters;
use super::tls::{self, ServerVerification};
use crate::limits;
use crate::unreadable_rows::UnreadableRows;

/// A parsed address.
#[derive(Clone)]
pub(super) struct PgAddress {
    pub(super) config: Config,
    pub(super) tls: MakeRustlsConnect,
    /// Counters of all connections to it.
    pub(super) counters: Arc<ConnectionCounters>,
    /// Runs that this node could not read.
    pub(super) unreadable: Arc<UnreadableRows>,
}

/// TCP timeout after which the system drops a broken connection.
const SILENCE: Duration = Duration::from_millis(limits::STORE_ANSWER_MILLIS);

impl PgAddress {
    /// Parses an address; errors contain no secrets.
    pub(super) fn parse(url: &str) -> Result<Self, String> {
        let (rest, security) = Security::take_from(url)?;
        let mut config =
            Config::from_str(&rest).map_err(|error| match std::error::Error::source(&error) {
                Some(cause) => format!("{error}: {cause}"),
                None => error.to_string(),
            })?;
        if config.get_ssl_mode() != SslMode::Prefer {
            return Err("`sslmode` stands where it is not read; write it behind the `?`".into());
        }
        config.ssl_mode(security.mode);
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(Duration::from_millis(limits::STORE_CONNECT_MILLIS));
        }
        if config.get_tcp_user_timeout().is_none() {
            config.tcp_user_timeout(SILENCE);
        }
        if config.get_keepalives_interval().is_none() {
            config.keepalives_idle(SILENCE).keepalives_interval(SILENCE / 4).keepalives_retries(3);
        }
        // A standby is behind; if the address names several servers, use the primary.
        config.target_session_attrs(TargetSessionAttrs::ReadWrite);
        if config.get_application_name().is_none() {
            config.application_name("runwire");
        }
        let tls = tls::connector(security.mode != SslMode::Disable, &security.trust)?;
        Ok(Self { config, tls, counters: Arc::default(), unreadable: Arc::default() })
    }

    /// Returns the configuration with server-side timeouts. Those in the address win.
    pub(super) fn with_limits(&self) -> Config {
        self.with_settings(&[])
    }

    /// Returns the configuration for a writer, whose statements find all rows by key.
    ///
    /// The planner does not know that of tables that are young, small, or were not analysed for long: it would scan
    /// them from end to end, with every row version that is not vacuumed yet, and plan each statement again.
    pub(super) fn for_writing(&self) -> Config {
        self.with_settings(&[
            "plan_cache_mode=force_generic_plan",
            "enable_seqscan=off",
            "enable_hashjoin=off",
            "enable_mergejoin=off",
            // A scan that remains, of the one row of `store`, would be costly enough for JIT.
            "jit=off",
        ])
    }

    fn with_settings(&self, settings: &[&str]) -> Config {
        let limits = [
            ("statement_timeout", limits::STORE_STATEMENT_MILLIS),
            ("lock_timeout", limits::STORE_LOCK_MILLIS),
            ("idle_in_transaction_session_timeout", limits::STORE_IDLE_TRANSACTION_MILLIS),
        ];
        let mut options: Vec<_> = limits.map(|(name, millis)| format!("-c {name}={millis}")).into();
        // A node that is cut off while Postgres sends to it must not hold locks for long.
        let silence = [
            format!("tcp_user_timeout={}", limits::STORE_ANSWER_MILLIS),
            "tcp_keepalives_idle=10".into(),
            "tcp_keepalives_interval=3".into(),
            "tcp_keepalives_count=3".into(),
            r"default_transaction_isolation=read\ committed".into(),
        ];
        options.extend(silence.map(|setting: String| format!("-c {setting}")));
        options.extend(settings.iter().map(|setting| format!("-c {setting}")));
        options.extend(self.config.get_options().map(str::to_owned));
        let mut config = self.config.clone();
        config.options(options.join(" "));
        config
    }
}

/// The TLS options of an address, as in libpq.
struct Security {
    mode: SslMode,
    trust: ServerVerification,
}

impl Security {
    /// Removes `sslmode` and `sslrootcert` from an address.
    fn take_from(url: &str) -> Result<(String, Self), String> {
        // Everything before the first `@` is credentials, as the parser of the driver assumes, too.
        let place = url.find('@').unwrap_or(0);
        let (place, query) = match url[place..].find('?') {
            Some(mark) => (&url[..place + mark], &url[place + mark + 1..]),
            None => (url, ""),
        };
        let (mut mode, mut roots, mut rest) = (None, None, Vec::new());
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let decoded = || percent_decode_str(value).decode_utf8().map(std::borrow::Cow::into_owned);
            let decoded = || decoded().map_err(|_| format!("`{name}` is not UTF-8"));
            match name {
                "sslmode" => mode = Some(decoded()?),
                "sslrootcert" => roots = Some(decoded()?),
                _ => rest.push(pair),
            }
        }
        let roots_are_systems = roots.as_deref() == Some("system");
        let file = roots.filter(|_| !roots_are_systems).map(PathBuf::from);
        let mode = mode.as_deref().unwrap_or(if roots_are_systems { "verify-full" } else { "prefer" });
        let (mode, trust) = match (mode, file) {
            ("disable", _) => (SslMode::Disable, ServerVerification::None),
            // As in libpq, named roots are verified.
            ("require", Some(file)) => (SslMode::Require, ServerVerification::Ca(Some(file))),
            ("require", None) if !roots_are_systems => (SslMode::Require, ServerVerification::None),
            ("allow" | "prefer", _) => (SslMode::Prefer, ServerVerification::None),
            ("verify-ca", file) if !roots_are_systems => (SslMode::Require, ServerVerification::Ca(file)),
            ("verify-full", file) => (SslMode::Require, ServerVerification::Full(file)),
            ("require" | "verify-ca", _) => {
                return Err("`sslrootcert=system` needs `sslmode=verify-full`".into());
            }
            (unknown, _) => {
                let known = "disable, prefer, require, verify-ca, verify-full";
                return Err(format!("`sslmode` can be {known}, and not `{unknown}`"));
            }
        };
        let rest = if rest.is_empty() { place.to_owned() } else { format!("{place}?{}", rest.join("&")) };
        Ok((rest, Self { mode, trust }))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn timeouts_in_an_address_win_over_the_defaults() {
        let address = PgAddress::parse("postgres://host/db?options=-c%20statement_timeout%3D5").unwrap();
        let config = address.with_limits();
        let options = config.get_options().unwrap();
        assert!(options.starts_with("-c statement_timeout=9000 "), "{options}");
        assert!(options.ends_with(" -c statement_timeout=5"), "{options}");
    }

    #[test]
    fn tls_options_in_an_address_mean_what_they_mean_in_libpq() {
        let mode = |query: &str| {
            PgAddress::parse(&format!("postgres://host/db{query}")).map(|it| it.config.get_ssl_mode())
        };
        assert_eq!(mode(""), Ok(SslMode::Prefer));
        assert_eq!(mode("?sslmode=disable"), Ok(SslMode::Disable));
        assert_eq!(mode("?sslmode=require&application_name=it"), Ok(SslMode::Require));
        assert!(mode("?sslmode=sometimes").unwrap_err().contains("verify-full"));
        assert!(
            mode("?sslmode=require&sslrootcert=/nowhere/at/all.pem")
                .unwrap_err()
                .contains("/nowhere/at/all.pem")
        );
        assert!(mode("?sslmode=verify-ca&sslrootcert=system").unwrap_err().contains("verify-full"));
    }

    #[test]
    fn a_required_tls_mode_holds_whatever_the_password_is() {
        let address = PgAddress::parse("postgres://user:pass?word@host/db?sslmode=require").unwrap();
        assert_eq!(address.config.get_ssl_mode(), SslMode::Require);
        assert_eq!(address.config.get_password(), Some(&b"pass?word"[..]));
        for hidden in ["host=host sslmode=require", "postgres://host/db?ssl%6dode=require"] {
            let error = PgAddress::parse(hidden).err().unwrap();
            assert!(error.contains("`sslmode`"), "{error}");
        }
    }

    #[test]
    fn the_server_drops_a_node_that_reads_nothing() {
        let address = PgAddress::parse("postgres://host/db").unwrap();
        let config = address.with_limits();
        let options = config.get_options().unwrap();
        assert!(options.contains("-c tcp_user_timeout=10000 "), "{options}");
    }

    #[test]
    fn errors_of_an_address_do_not_contain_its_password() {
        let error = PgAddress::parse("postgres://user:secret@host:port/db").err().unwrap();
        assert!(!error.contains("secret"), "{error}");
    }
}
