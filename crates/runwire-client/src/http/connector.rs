//! The connector of the connection pool: plain TCP or TLS.

use std::time::Duration;

use hyper_util::client::legacy::connect::HttpConnector;

use super::BaseUrl;
use crate::error::Error;

#[cfg(feature = "tls")]
pub(super) type ClientConnector = hyper_rustls::HttpsConnector<HttpConnector>;

#[cfg(not(feature = "tls"))]
pub(super) type ClientConnector = HttpConnector;

fn plain(connect_timeout: Duration) -> HttpConnector {
    let mut connector = HttpConnector::new();
    connector.set_connect_timeout(Some(connect_timeout));
    // Nagle's algorithm would delay small frames.
    connector.set_nodelay(true);
    connector
}

#[cfg(not(feature = "tls"))]
pub(super) fn new(_: &BaseUrl, connect_timeout: Duration, _: &[u8]) -> Result<ClientConnector, Error> {
    Ok(plain(connect_timeout))
}

/// Returns why the server's certificate was rejected, if that is the error's cause.
#[cfg(not(feature = "tls"))]
pub(super) fn certificate_error(_: &(dyn std::error::Error + 'static)) -> Option<String> {
    None
}

#[cfg(feature = "tls")]
pub(super) fn new(
    url: &BaseUrl,
    connect_timeout: Duration,
    root_certificates: &[u8],
) -> Result<ClientConnector, Error> {
    use std::sync::Arc;

    use rustls::crypto::ring;
    use rustls::pki_types::CertificateDer;
    use rustls::pki_types::pem::PemObject;
    use rustls::{ClientConfig, RootCertStore};

    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(root_certificates) {
        let unusable =
            |error: &dyn std::fmt::Display| Error::Tls(format!("a certificate cannot be used: {error}"));
        let certificate = certificate.map_err(|error| unusable(&error))?;
        roots.add(certificate).map_err(|error| unusable(&error))?;
    }
    // Loading the system's certificates is slow, so plain HTTP skips it.
    if url.is_secure() {
        let found = rustls_native_certs::load_native_certs();
        roots.add_parsable_certificates(found.certs);
        if roots.is_empty() {
            let reason =
                found.errors.first().map_or_else(|| "there are none".to_owned(), ToString::to_string);
            return Err(Error::Tls(format!("the machine's certificates cannot be read: {reason}")));
        }
    }
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| Error::Tls(error.to_string()))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let mut plain = plain(connect_timeout);
    plain.enforce_http(false);
    Ok(hyper_rustls::HttpsConnectorBuilder::new()
        .with_tls_config(config)
        .https_or_http()
        .enable_http1()
        .wrap_connector(plain))
}

/// Returns true if the server does not speak TLS.
#[cfg(not(feature = "tls"))]
pub(super) fn is_not_tls(_: &(dyn std::error::Error + 'static)) -> bool {
    false
}

/// Returns true if the server does not speak TLS.
#[cfg(feature = "tls")]
pub(super) fn is_not_tls(error: &(dyn std::error::Error + 'static)) -> bool {
    if let Some(rustls::Error::InvalidMessage(_)) = error.downcast_ref() {
        return true;
    }
    // `source` skips the error that an I/O error wraps.
    let wrapped = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
    match wrapped {
        Some(wrapped) => is_not_tls(wrapped),
        None => error.source().is_some_and(is_not_tls),
    }
}

/// Returns why the server's certificate was rejected, if that is the error's cause.
#[cfg(feature = "tls")]
pub(super) fn certificate_error(error: &(dyn std::error::Error + 'static)) -> Option<String> {
    if let Some(found @ rustls::Error::InvalidCertificate(_)) = error.downcast_ref() {
        return Some(found.to_string());
    }
    // `source` skips the error that an I/O error wraps.
    let wrapped = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
    match wrapped {
        Some(wrapped) => certificate_error(wrapped),
        None => certificate_error(error.source()?),
    }
}
