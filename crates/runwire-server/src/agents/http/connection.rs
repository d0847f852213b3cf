//! Connections to HTTP agents: plain, or through TLS.

use std::error::Error as StdError;

use bytes::Bytes;
use http_body_util::Full;
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;

use crate::agents::config::HttpAgent;
use crate::outgoing::{self, Trust};

/// Makes connections to one agent.
pub(super) type Connections = Client<HttpsConnector<HttpConnector>, Full<Bytes>>;

/// Prepares connections to an agent; what keeps them from being trusted is told.
pub(super) fn prepare(agent: &HttpAgent) -> Result<Connections, String> {
    let urls = [Some(&agent.url), agent.answer_url.as_ref(), agent.cancel_url.as_ref()];
    let machines = urls.into_iter().flatten().any(|url| url.starts_with("https:"));
    let mut plain = HttpConnector::new();
    plain.set_connect_timeout(Some(agent.connect_time));
    let connector = outgoing::secured(plain, Trust { own: &agent.trusted, machines })?;
    Ok(outgoing::client().build(connector))
}

/// Tells an error with what caused it: the outermost alone says little.
pub(super) fn told(error: &(dyn StdError + 'static)) -> String {
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
