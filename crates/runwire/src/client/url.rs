//! Where the server is, and the addresses of what it has.

use std::fmt::{self, Display, Write};
use std::str::FromStr;

use http::Uri;
use http::uri::Scheme;

/// The server's address: `http://host:port`, and a path before `/v1` where a proxy adds one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BaseUrl {
    pub(super) host: String,
    pub(super) port: u16,
    /// Host and port as the URL says them.
    pub(super) authority: String,
    prefix: String,
}

/// Says what is wrong with a URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum UrlError {
    #[error("a server's URL looks like `http://127.0.0.1:7420`")]
    Malformed,
    #[error(
        "this build has no TLS: use http://, on this machine or through a tunnel (`ssh -L 7420:127.0.0.1:7420 …`)"
    )]
    Tls,
    #[error("a server's URL has no query; tokens come from RUNWIRE_TOKEN")]
    HasQuery,
}

impl FromStr for BaseUrl {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<Self, UrlError> {
        let uri: Uri = text.parse().map_err(|_| UrlError::Malformed)?;
        match uri.scheme() {
            Some(scheme) if *scheme == Scheme::HTTP => {}
            Some(scheme) if *scheme == Scheme::HTTPS => return Err(UrlError::Tls),
            _ => return Err(UrlError::Malformed),
        }
        if uri.query().is_some() {
            return Err(UrlError::HasQuery);
        }
        let authority = uri.authority().ok_or(UrlError::Malformed)?;
        if authority.as_str().contains('@') || authority.host().is_empty() {
            return Err(UrlError::Malformed);
        }
        let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_owned();
        let port = authority.port_u16().unwrap_or(80);
        let prefix = uri.path().trim_end_matches('/').to_owned();
        Ok(Self { host, port, authority: authority.as_str().to_owned(), prefix })
    }
}

impl Display for BaseUrl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "http://{}{}", self.authority, self.prefix)
    }
}

/// A path with its query, each part escaped as it is added.
#[derive(Debug, Clone)]
pub(super) struct Target {
    text: String,
    has_query: bool,
}

impl Target {
    /// Begins at `/v1` of a server.
    pub(super) fn of(url: &BaseUrl) -> Self {
        Self { text: format!("{}/v1", url.prefix), has_query: false }
    }

    /// Adds a segment of the path.
    pub(super) fn segment(mut self, segment: &str) -> Self {
        self.text.push('/');
        self.escape(segment);
        self
    }

    /// Adds a parameter.
    pub(super) fn parameter(mut self, name: &str, value: &str) -> Self {
        self.text.push(if std::mem::replace(&mut self.has_query, true) { '&' } else { '?' });
        self.escape(name);
        self.text.push('=');
        self.escape(value);
        self
    }

    /// Adds a parameter, if there is a value.
    pub(super) fn parameter_if(self, name: &str, value: Option<&str>) -> Self {
        match value {
            Some(value) => self.parameter(name, value),
            None => self,
        }
    }

    pub(super) fn as_str(&self) -> &str {
        &self.text
    }

    fn escape(&mut self, text: &str) {
        // A segment of dots alone would climb; escaped, it is a name like any other.
        let only_dots = text.bytes().all(|byte| byte == b'.');
        for byte in text.bytes() {
            match byte {
                b'.' if only_dots => self.text.push_str("%2E"),
                b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b':' => {
                    self.text.push(char::from(byte));
                }
                _ => {
                    // Writing to a string cannot fail.
                    let _ = write!(self.text, "%{byte:02X}");
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_named_by_its_url() {
        let url: BaseUrl = "http://[::1]:7420/runwire/".parse().unwrap();
        assert_eq!((url.host.as_str(), url.port), ("::1", 7420));
        assert_eq!(url.to_string(), "http://[::1]:7420/runwire");
        assert_eq!("http://example.org".parse::<BaseUrl>().map(|url| url.port), Ok(80));
        assert_eq!("https://example.org".parse::<BaseUrl>(), Err(UrlError::Tls));
        assert_eq!("http://example.org/?a=b".parse::<BaseUrl>(), Err(UrlError::HasQuery));
        for wrong in ["", "127.0.0.1:7420", "/v1", "ftp://a", "http://me:secret@host"] {
            assert_eq!(wrong.parse::<BaseUrl>(), Err(UrlError::Malformed), "{wrong}");
        }
    }

    #[test]
    fn ids_are_escaped_whatever_they_hold() {
        let url: BaseUrl = "http://host/p".parse().unwrap();
        let target = Target::of(&url).segment("runs").segment("a/b?c=d&天").segment("..");
        let target = target.parameter("after", "12-0").parameter_if("dialect", None).parameter("x", "a b+c");
        assert_eq!(target.as_str(), "/p/v1/runs/a%2Fb%3Fc%3Dd%26%E5%A4%A9/%2E%2E?after=12-0&x=a%20b%2Bc");
    }
}
