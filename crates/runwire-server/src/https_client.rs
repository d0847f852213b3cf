//! Connections to other servers, which agents and webhooks have: plain, or through TLS.

use std::sync::Arc;

use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::{Builder, Client};
use hyper_util::rt::TokioExecutor;
use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};

/// Who is trusted to be who they say.
pub(crate) struct Trust<'a> {
    /// Certificates, as PEM, that are trusted in any case.
    pub(crate) own: &'a [u8],
    /// Whether those of the machine are trusted too. Reading them takes a while.
    pub(crate) machines: bool,
}

/// Puts TLS on a way to connect; what keeps anybody from being trusted is told.
pub(crate) fn secured<R>(
    mut plain: HttpConnector<R>,
    trust: Trust<'_>,
) -> Result<HttpsConnector<HttpConnector<R>>, String> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(trust.own) {
        let certificate = certificate.map_err(|error| format!("a certificate cannot be read: {error}"))?;
        roots.add(certificate).map_err(|error| format!("a certificate cannot be used: {error}"))?;
    }
    if trust.machines {
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    }
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(roots)
        .with_no_client_auth();
    plain.set_nodelay(true);
    plain.enforce_http(false);
    let builder = HttpsConnectorBuilder::new().with_tls_config(config).https_or_http().enable_http1();
    Ok(builder.wrap_connector(plain))
}

/// Begins a client that uses no connection twice: one that lay idle may be gone by the time it is used, and nobody
/// could tell whether the other side has seen the request.
pub(crate) fn client() -> Builder {
    let mut builder = Client::builder(TokioExecutor::new());
    builder.pool_max_idle_per_host(0);
    builder
}
