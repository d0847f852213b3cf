//! Connections to HTTP agents: plain, or through TLS.

use std::error::Error as StdError;
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

use crate::agents::config::HttpAgent;

/// Makes connections to one agent.
pub(super) type Connections = Client<HttpsConnector<HttpConnector>, Full<Bytes>>;

/// Prepares connections to an agent; what keeps them from being trusted is told.
pub(super) fn prepare(agent: &HttpAgent) -> Result<Connections, String> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&agent.trusted) {
        let certificate = certificate.map_err(|error| format!("a certificate cannot be read: {error}"))?;
        roots.add(certificate).map_err(|error| format!("a certificate cannot be used: {error}"))?;
    }
    let urls = [Some(&agent.url), agent.answer_url.as_ref(), agent.cancel_url.as_ref()];
    // Reading the machine's certificates takes a while, which nobody should wait for in vain.
    if urls.into_iter().flatten().any(|url| url.starts_with("https:")) {
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    }
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let mut plain = HttpConnector::new();
    plain.set_connect_timeout(Some(agent.connect_time));
    plain.set_nodelay(true);
    plain.enforce_http(false);
    let connector = hyper_rustls::HttpsConnectorBuilder::new()
        .with_tls_config(config)
        .https_or_http()
        .enable_http1()
        .wrap_connector(plain);
    // A connection that lay idle may be gone by the time it is used, and nobody could tell whether the agent has
    // seen the request. So none is kept.
    Ok(Client::builder(TokioExecutor::new()).pool_max_idle_per_host(0).build(connector))
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
