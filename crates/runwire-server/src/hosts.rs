//! Host check: refuses requests whose `Host` is not one of this server.
//!
//! This prevents DNS rebinding: a web page makes its own name point to this machine, and the browser lets it read and
//! write here as its own site. The `Host` of such a request is still the page's name. So every request must name a
//! loopback name, the IP address that the connection was made to, or a configured host. An IP address cannot be
//! rebound.

use std::net::IpAddr;
use std::str::FromStr;

use http::header::HOST;
use http::uri::Authority;
use http::{HeaderMap, Uri, Version};
use runwire_model::ErrorCode;

use crate::problem::Problem;

/// A configured host that requests may name, on any port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AllowedHost {
    /// Any host at all.
    Any,
    /// Any name within a domain: `*.example.com`.
    Within(String),
    /// A name: `example.com`.
    Name(String),
    /// An IP address.
    Address(IpAddr),
}

/// The text is not a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a host is a name, `*.` and a name, an IP address or `*`, without scheme, port and path")]
pub struct InvalidHost;

impl FromStr for AllowedHost {
    type Err = InvalidHost;

    fn from_str(text: &str) -> Result<Self, InvalidHost> {
        if text == "*" {
            return Ok(Self::Any);
        }
        if let Some(domain) = text.strip_prefix("*.") {
            return if is_name(domain) { Ok(Self::Within(lower(domain))) } else { Err(InvalidHost) };
        }
        if let Ok(address) = text.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>() {
            return Ok(Self::Address(address.to_canonical()));
        }
        if is_name(text) { Ok(Self::Name(lower(text))) } else { Err(InvalidHost) }
    }
}

impl std::fmt::Display for AllowedHost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Any => f.write_str("*"),
            Self::Within(domain) => write!(f, "*.{domain}"),
            Self::Name(name) => f.write_str(name),
            Self::Address(address) => address.fmt(f),
        }
    }
}

/// The host that a request names.
#[derive(Debug, PartialEq, Eq)]
enum Host<'a> {
    Name(&'a str),
    Address(IpAddr),
}

impl<'a> Host<'a> {
    fn of(authority: &'a Authority) -> Self {
        let host = authority.host();
        match host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>() {
            Ok(address) => Self::Address(address.to_canonical()),
            // The trailing dot of a fully qualified name is ignored.
            Err(_) => Self::Name(host.strip_suffix('.').unwrap_or(host)),
        }
    }

    fn is_loopback(&self) -> bool {
        match self {
            Self::Name(name) => is_or_within(name, "localhost", true),
            Self::Address(address) => address.is_loopback(),
        }
    }

    fn is(&self, allowed: &AllowedHost) -> bool {
        match (self, allowed) {
            (_, AllowedHost::Any) => true,
            (Self::Name(name), AllowedHost::Name(allowed)) => name.eq_ignore_ascii_case(allowed),
            (Self::Name(name), AllowedHost::Within(domain)) => is_or_within(name, domain, false),
            (Self::Address(address), AllowedHost::Address(allowed)) => address == allowed,
            _ => false,
        }
    }
}

/// Refuses a request whose host is not one of this server; `local` is the local address of its connection.
///
/// Health probes are exempt: load balancers send them to addresses that are not configured.
pub(crate) fn check(
    allowed: &[AllowedHost],
    local: Option<IpAddr>,
    (version, uri, headers): (Version, &Uri, &HeaderMap),
) -> Result<(), Problem> {
    let Some(authority) = authority(version, uri, headers)? else {
        return if is_probe(uri) { Ok(()) } else { Err(bad_host("`Host` is missing")) };
    };
    let host = Host::of(&authority);
    let is_own =
        matches!(host, Host::Address(address) if local.map(|own| own.to_canonical()) == Some(address));
    if host.is_loopback() || is_own || is_probe(uri) || allowed.iter().any(|allowed| host.is(allowed)) {
        return Ok(());
    }
    let name = authority.host();
    let detail =
        format!("`{name}` is no host of this server; the setting `allowed_hosts` names those that it has");
    Err(Problem::new(ErrorCode::HostRefused, detail).with("host", name))
}

/// Returns the host and port that a request names; none only in HTTP/1.0, which has no `Host`.
fn authority(version: Version, uri: &Uri, headers: &HeaderMap) -> Result<Option<Authority>, Problem> {
    let mut fields = headers.get_all(HOST).iter();
    let field = fields.next();
    if fields.next().is_some() {
        return Err(bad_host("`Host` stands there more than once"));
    }
    if field.is_none() && version == Version::HTTP_11 {
        return Err(bad_host("`Host` is missing"));
    }
    let field = field.map(|field| {
        let authority = Authority::try_from(field.as_bytes()).ok();
        authority
            .filter(|authority| !authority.as_str().contains('@'))
            .ok_or_else(|| bad_host("`Host` is no host with or without a port"))
    });
    match (field.transpose()?, uri.authority()) {
        (Some(field), Some(target)) if field != *target => {
            Err(bad_host("`Host` is another host than that of the request's target"))
        }
        (_, Some(target)) if target.as_str().contains('@') => {
            Err(bad_host("the request's target is no host with or without a port"))
        }
        (field, target) => Ok(target.cloned().or(field)),
    }
}

fn is_probe(uri: &Uri) -> bool {
    matches!(uri.path(), "/healthz" | "/readyz")
}

fn bad_host(detail: &str) -> Problem {
    Problem::new(ErrorCode::BadHeader, detail).with("header", "Host")
}

/// Returns true if a name lies within a domain, or is the domain itself where `itself` allows that.
fn is_or_within(name: &str, domain: &str, itself: bool) -> bool {
    match name.len().checked_sub(domain.len()) {
        Some(0) => itself && name.eq_ignore_ascii_case(domain),
        Some(at) if at > 1 && name.is_char_boundary(at) => {
            let (before, end) = name.split_at(at);
            before.ends_with('.') && end.eq_ignore_ascii_case(domain)
        }
        _ => false,
    }
}

fn is_name(text: &str) -> bool {
    let is_label = |label: &str| {
        let letters = label.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
        !label.is_empty() && label.len() <= 63 && letters
    };
    text.len() <= 253 && text.split('.').all(is_label)
}

fn lower(text: &str) -> String {
    text.to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed(texts: &[&str]) -> Vec<AllowedHost> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    fn checked(
        allowed: &[AllowedHost],
        version: Version,
        target: &str,
        hosts: &[&str],
    ) -> Result<(), ErrorCode> {
        let mut headers = HeaderMap::new();
        for host in hosts {
            headers.append(HOST, host.parse().unwrap());
        }
        let uri: Uri = target.parse().unwrap();
        let local = Some([10, 0, 0, 5].into());
        check(allowed, local, (version, &uri, &headers)).map_err(|problem| problem.code())
    }

    fn named(settings: &[&str], host: &str) -> Result<(), ErrorCode> {
        checked(&allowed(settings), Version::HTTP_11, "/v1/runs", &[host])
    }

    #[test]
    fn loopback_names_and_the_address_that_was_reached_are_always_allowed() {
        for host in [
            "localhost",
            "localhost:7420",
            "LOCALHOST",
            "localhost.",
            "console.localhost:1",
            "127.0.0.1:7420",
            "127.255.0.9",
            "[::1]",
            "[::1]:7420",
            "[::ffff:127.0.0.1]",
            "10.0.0.5:80",
            "[::ffff:10.0.0.5]",
        ] {
            assert_eq!(named(&[], host), Ok(()), "{host}");
        }
        for host in [
            "evil.example",
            "evil.example:7420",
            "localhost.evil.example",
            "notlocalhost",
            ".localhost",
            "127.0.0.1.nip.io",
            "127.1",
            "0.0.0.0",
            "10.0.0.6",
            "[::2]",
            "[fe80::1]:7420",
        ] {
            assert_eq!(named(&[], host), Err(ErrorCode::HostRefused), "{host}");
        }
    }

    #[test]
    fn configured_hosts_are_allowed_on_any_port() {
        let settings = ["Wire.example.com", "*.Inside.example", "192.0.2.7", "2001:db8::1"];
        for host in [
            "wire.EXAMPLE.com",
            "wire.example.com.:443",
            "a.b.inside.example:1",
            "192.0.2.7:80",
            "[2001:db8:0::1]",
        ] {
            assert_eq!(named(&settings, host), Ok(()), "{host}");
        }
        for host in ["example.com", "a.wire.example.com", "inside.example", "xinside.example", "192.0.2.8"] {
            assert_eq!(named(&settings, host), Err(ErrorCode::HostRefused), "{host}");
        }
        assert_eq!(named(&["*"], "evil.example"), Ok(()));
    }

    #[test]
    fn one_host_is_named_and_only_one() {
        let (none, any) = (Vec::new(), allowed(&["*"]));
        let bad = Err(ErrorCode::BadHeader);
        for hosts in [
            &[][..],
            &["localhost", "localhost"],
            &["localhost", "evil.example"],
            &["a b"],
            &["x@localhost"],
            &[""],
        ] {
            for settings in [&none, &any] {
                assert_eq!(checked(settings, Version::HTTP_11, "/v1/runs", hosts), bad, "{hosts:?}");
            }
        }
        assert_eq!(checked(&none, Version::HTTP_10, "/v1/runs", &[]), bad);
        // Where the target names the host, both must be the same.
        for version in [Version::HTTP_11, Version::HTTP_2] {
            let target = "http://localhost:7420/v1/runs";
            assert_eq!(checked(&none, version, target, &["localhost:7420"]), Ok(()));
            assert_eq!(checked(&none, version, target, &["evil.example"]), bad);
            let evil = "http://evil.example/v1/runs";
            assert_eq!(checked(&none, version, evil, &["evil.example"]), Err(ErrorCode::HostRefused));
            assert_eq!(checked(&none, version, evil, &["localhost"]), bad);
        }
        assert_eq!(checked(&none, Version::HTTP_2, "http://localhost/v1/runs", &[]), Ok(()));
        assert_eq!(
            checked(&none, Version::HTTP_2, "http://evil.example/v1/runs", &[]),
            Err(ErrorCode::HostRefused)
        );
        assert_eq!(checked(&none, Version::HTTP_2, "/v1/runs", &[]), bad);
    }

    #[test]
    fn probes_may_come_by_any_host() {
        for path in ["/healthz", "/readyz"] {
            assert_eq!(checked(&[], Version::HTTP_11, path, &["10.9.9.9:7420"]), Ok(()));
            assert_eq!(checked(&[], Version::HTTP_10, path, &[]), Ok(()));
            assert_eq!(checked(&[], Version::HTTP_11, path, &[]), Err(ErrorCode::BadHeader));
        }
        assert_eq!(checked(&[], Version::HTTP_11, "/metrics", &["10.9.9.9"]), Err(ErrorCode::HostRefused));
    }

    #[test]
    fn an_invalid_host_cannot_be_configured() {
        for text in
            ["", "*.", "*.*", "a..b", "http://a", "a:80", "a/b", "a b", "10.0.0.0/8", "[::1]:80", "höst"]
        {
            assert_eq!(text.parse::<AllowedHost>(), Err(InvalidHost), "{text}");
        }
        for text in ["*", "*.example.com", "runwire", "::1", "10.0.0.1"] {
            assert_eq!(text.parse::<AllowedHost>().unwrap().to_string(), text);
        }
    }
}
