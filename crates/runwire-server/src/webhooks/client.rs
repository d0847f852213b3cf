//! WebhookHttpClient to webhooks: plain, or through TLS, and only to addresses that are allowed.

use bytes::Bytes;
use http_body_util::Full;
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;

use super::address::Resolver;
use super::config::Webhook;
use crate::https_client::{self, TrustedRoots};
use crate::limits;

/// Makes connections to one webhook.
pub(super) type WebhookHttpClient = Client<HttpsConnector<HttpConnector<Resolver>>, Full<Bytes>>;

/// Prepares connections to a webhook; what keeps them from being trusted is told. Reads the machine's certificates,
/// which takes a while.
pub(super) fn build(webhook: &Webhook) -> Result<WebhookHttpClient, String> {
    let plain = HttpConnector::new_with_resolver(Resolver { allow_private: webhook.allow_private });
    let system = webhook.url.scheme_str() == Some("https");
    let connector = https_client::connector(plain, TrustedRoots { extra: &webhook.trusted, system })?;
    Ok(https_client::client_builder().http1_max_buf_size(limits::WEBHOOK_HEAD_BYTES).build(connector))
}
