//! The server's base URL, and the URLs of its endpoints.

use std::fmt::{self, Display};
use std::str::FromStr;

use http::Uri;
use http::uri::Scheme;
use runwire_model::percent_encoded;

/// The base URL of a server: `http://host:port`, and the path prefix of a proxy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BaseUrl {
    /// Without a slash at the end.
    text: String,
    is_secure: bool,
}

/// Why a URL is not a server's base URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UrlError {
    /// It is not `http://host:port` with an optional path.
    #[error("a server's URL looks like `http://127.0.0.1:7420`")]
    Malformed,
    /// It is `https://`, and this build has no TLS.
    #[error("this build has no TLS (feature `tls`): use http://, on this machine or through a tunnel")]
    NoTls,
    /// It has a query, which may hold a secret.
    #[error("a server's URL has no query; tokens come from RUNWIRE_TOKEN")]
    HasQuery,
}

impl BaseUrl {
    /// Default URL of `runwire dev` and `runwire serve`.
    pub const DEFAULT: &'static str = "http://127.0.0.1:7420";

    #[cfg(feature = "tls")]
    pub(super) fn is_secure(&self) -> bool {
        self.is_secure
    }
}

impl FromStr for BaseUrl {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<Self, UrlError> {
        let uri: Uri = text.parse().map_err(|_| UrlError::Malformed)?;
        let is_secure = match uri.scheme() {
            Some(scheme) if *scheme == Scheme::HTTP => false,
            Some(scheme) if *scheme == Scheme::HTTPS && cfg!(feature = "tls") => true,
            Some(scheme) if *scheme == Scheme::HTTPS => return Err(UrlError::NoTls),
            _ => return Err(UrlError::Malformed),
        };
        if uri.query().is_some() {
            return Err(UrlError::HasQuery);
        }
        let authority = uri.authority().ok_or(UrlError::Malformed)?;
        if authority.as_str().contains('@') || authority.host().is_empty() {
            return Err(UrlError::Malformed);
        }
        let scheme = if is_secure { "https" } else { "http" };
        let text = format!("{scheme}://{authority}{}", uri.path().trim_end_matches('/'));
        Ok(Self { text, is_secure })
    }
}

impl Display for BaseUrl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

/// The URL of an endpoint; segments and parameters are percent-encoded as they are added.
#[derive(Debug, Clone)]
pub(crate) struct Endpoint {
    text: String,
    has_query: bool,
}

impl Endpoint {
    /// Returns the root endpoint of a server.
    pub(super) fn of(url: &BaseUrl) -> Self {
        Self { text: url.text.clone(), has_query: false }
    }

    /// Appends a path segment.
    pub(crate) fn segment(mut self, segment: &str) -> Self {
        self.text.push('/');
        self.escape(segment);
        self
    }

    /// Adds a query parameter.
    pub(crate) fn parameter(mut self, name: &str, value: &str) -> Self {
        self.text.push(if std::mem::replace(&mut self.has_query, true) { '&' } else { '?' });
        self.escape(name);
        self.text.push('=');
        self.escape(value);
        self
    }

    /// Adds a query parameter if it has a value.
    pub(crate) fn parameter_if(self, name: &str, value: Option<impl ToString>) -> Self {
        match value {
            Some(value) => self.parameter(name, &value.to_string()),
            None => self,
        }
    }

    /// Adds `name=true` if `holds`.
    pub(crate) fn flag(self, name: &str, holds: bool) -> Self {
        self.parameter_if(name, holds.then_some("true"))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.text
    }

    fn escape(&mut self, text: &str) {
        self.text.extend(percent_encoded(text));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_url_has_a_host_and_no_query() {
        let url: BaseUrl = "http://[::1]:7420/runwire/".parse().unwrap();
        assert_eq!(url.to_string(), "http://[::1]:7420/runwire");
        assert_eq!("http://example.org/?a=b".parse::<BaseUrl>(), Err(UrlError::HasQuery));
        for wrong in ["", "127.0.0.1:7420", "/v1", "ftp://a", "http://me:secret@host"] {
            assert_eq!(wrong.parse::<BaseUrl>(), Err(UrlError::Malformed), "{wrong}");
        }
        let secure = "https://example.org".parse::<BaseUrl>();
        assert_eq!(secure.is_ok(), cfg!(feature = "tls"));
    }

    #[test]
    fn segments_and_parameters_are_percent_encoded() {
        let url: BaseUrl = "http://host/p".parse().unwrap();
        let endpoint = Endpoint::of(&url).segment("v1").segment("a/b?c=d&天").segment("..");
        let endpoint =
            endpoint.parameter("after", "12-0").parameter_if("dialect", None::<&str>).parameter("x", "a b+c");
        assert_eq!(
            endpoint.as_str(),
            "http://host/p/v1/a%2Fb%3Fc%3Dd%26%E5%A4%A9/%2E%2E?after=12-0&x=a%20b%2Bc"
        );
    }
}
