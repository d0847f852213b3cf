//! HTTP clients for agents and webhooks: the TLS connector and its trusted roots.

use std::sync::Arc;

use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::{Builder, Client};
use hyper_util::rt::TokioExecutor;
use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};

/// The certificates that a client trusts.
pub struct TrustedRoots<'a> {
    /// Configured certificates, as PEM.
    pub extra: &'a [u8],
    /// Whether to trust the system's certificates, too. Loading them takes a while.
    pub system: bool,
}

/// Adds TLS to a connector; fails if a certificate cannot be read or used.
pub fn connector<R>(
    mut plain: HttpConnector<R>,
    trusted: TrustedRoots<'_>,
) -> Result<HttpsConnector<HttpConnector<R>>, String> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(trusted.extra) {
        let certificate = certificate.map_err(|error| format!("a certificate cannot be read: {error}"))?;
        roots.add(certificate).map_err(|error| format!("a certificate cannot be used: {error}"))?;
    }
    if trusted.system {
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

/// Creates a client builder without connection reuse: a pooled connection may be dead when it is used, and then it is
/// unknown whether the server has seen the request.
pub fn client_builder() -> Builder {
    let mut builder = Client::builder(TokioExecutor::new());
    builder.pool_max_idle_per_host(0);
    builder
}
