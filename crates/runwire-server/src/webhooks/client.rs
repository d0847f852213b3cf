//! The HTTP client of a webhook, which connects only to allowed addresses.

use bytes::Bytes;
use http_body_util::Full;
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;

use super::address::Resolver;
use super::config::Webhook;
use crate::limits;
use runwire_agents::https_client::{self, TrustedRoots};

/// The HTTP client of one webhook.
pub(super) type WebhookHttpClient = Client<HttpsConnector<HttpConnector<Resolver>>, Full<Bytes>>;

/// Builds the client of a webhook; fails if a certificate cannot be used. Blocks to load the system's certificates.
pub(super) fn build(webhook: &Webhook) -> Result<WebhookHttpClient, String> {
    let plain = HttpConnector::new_with_resolver(Resolver { allow_private: webhook.allow_private });
    let system = webhook.url.scheme_str() == Some("https");
    let connector = https_client::connector(plain, TrustedRoots { extra: &webhook.trusted, system })?;
    Ok(https_client::client_builder().http1_max_buf_size(limits::WEBHOOK_HEAD_BYTES).build(connector))
}
