//! The HTTP client of an agent, and how its URLs and errors are shown.

use std::error::Error as StdError;

use bytes::Bytes;
use http::Uri;
use http_body_util::Full;
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;

use crate::config::HttpAgent;
use crate::https_client::{self, TrustedRoots};

/// The HTTP client of one agent.
pub(super) type AgentHttpClient = Client<HttpsConnector<HttpConnector>, Full<Bytes>>;

/// Builds the client of an agent; fails if a certificate cannot be used.
pub(super) fn build(agent: &HttpAgent) -> Result<AgentHttpClient, String> {
    let urls = [Some(&agent.url), agent.answer_url.as_ref(), agent.cancel_url.as_ref()];
    let system = urls.into_iter().flatten().any(|url| url.starts_with("https:"));
    let mut plain = HttpConnector::new();
    plain.set_connect_timeout(Some(agent.connect_time));
    let connector = https_client::connector(plain, TrustedRoots { extra: &agent.trusted, system })?;
    Ok(https_client::client_builder().build(connector))
}

/// Returns host and port of a URL, without its secrets.
pub(super) fn host_and_port(url: &str) -> String {
    let Ok(uri) = url.parse::<Uri>() else { return "its address".to_owned() };
    let usual = if uri.scheme_str() == Some("https") { 443 } else { 80 };
    format!("{}:{}", uri.host().unwrap_or_default(), uri.port_u16().unwrap_or(usual))
}

/// Returns a URL without user, password and query, which may be secret.
pub(super) fn redacted_url(url: &str) -> String {
    let bare = url.split(['?', '#']).next().unwrap_or_default();
    let Some((scheme, rest)) = bare.split_once("://") else { return bare.to_owned() };
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    format!("{scheme}://{host}{path}")
}

/// Formats an error with its causes: the outermost one alone says little.
pub(super) fn error_chain(error: &(dyn StdError + 'static)) -> String {
    let mut message = error.to_string();
    let mut inner = error.source();
    while let Some(error) = inner {
        let cause = error.to_string();
        if !message.contains(&cause) {
            message.push_str(": ");
            message.push_str(&cause);
        }
        inner = error.source();
    }
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_shown_without_what_may_be_secret() {
        for (url, place, plain) in [
            ("http://h:9000/agent", "h:9000", "http://h:9000/agent"),
            ("https://li:pass@h/a/{run}?key=secret#x", "h:443", "https://h/a/{run}"),
            ("http://li:p@[::1]:8?key=a@b/c", "[::1]:8", "http://[::1]:8"),
        ] {
            let filled = url.replace("{run}", "r1");
            assert_eq!((host_and_port(&filled), redacted_url(url)), (place.to_owned(), plain.to_owned()));
        }
    }
}
