//! Connections to webhooks: plain, or through TLS, and only to addresses that are allowed.

use std::sync::Arc;

use bytes::Bytes;
use http_body_util::Full;
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};

use super::address::Resolver;
use super::config::Webhook;
use crate::limits;

/// Makes connections to one webhook.
pub(super) type Connections = Client<HttpsConnector<HttpConnector<Resolver>>, Full<Bytes>>;

/// Prepares connections to a webhook; what keeps them from being trusted is told. Reads the machine's certificates,
/// which takes a while.
pub(super) fn prepare(webhook: &Webhook) -> Result<Connections, String> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&webhook.trusted) {
        let certificate = certificate.map_err(|error| format!("a certificate cannot be read: {error}"))?;
        roots.add(certificate).map_err(|error| format!("a certificate cannot be used: {error}"))?;
    }
    if webhook.url.scheme_str() == Some("https") {
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    }
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let mut plain = HttpConnector::new_with_resolver(Resolver { allow_private: webhook.allow_private });
    plain.set_nodelay(true);
    plain.enforce_http(false);
    let connector = hyper_rustls::HttpsConnectorBuilder::new()
        .with_tls_config(config)
        .https_or_http()
        .enable_http1()
        .wrap_connector(plain);
    // Events are rare, and an answer's body is not read: no connection is used twice.
    Ok(Client::builder(TokioExecutor::new())
        .pool_max_idle_per_host(0)
        .http1_max_buf_size(limits::WEBHOOK_HEAD_BYTES)
        .build(connector))
}
