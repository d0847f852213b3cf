//! How connections are made: plain, or through TLS.

use std::time::Duration;

use hyper_util::client::legacy::connect::HttpConnector;

use super::BaseUrl;
use crate::error::Error;

#[cfg(feature = "tls")]
pub(super) type Connector = hyper_rustls::HttpsConnector<HttpConnector>;

#[cfg(not(feature = "tls"))]
pub(super) type Connector = HttpConnector;

fn plain(connect_time: Duration) -> HttpConnector {
    let mut connector = HttpConnector::new();
    connector.set_connect_timeout(Some(connect_time));
    // A frame that waits for more to go with it is a frame that readers see late.
    connector.set_nodelay(true);
    connector
}

#[cfg(not(feature = "tls"))]
pub(super) fn new(_: &BaseUrl, connect_time: Duration, _: &[u8]) -> Result<Connector, Error> {
    Ok(plain(connect_time))
}

/// Finds out why a server is not trusted, if that is what went wrong.
#[cfg(not(feature = "tls"))]
pub(super) fn mistrust(_: &(dyn std::error::Error + 'static)) -> Option<String> {
    None
}

#[cfg(feature = "tls")]
pub(super) fn new(url: &BaseUrl, connect_time: Duration, trusted: &[u8]) -> Result<Connector, Error> {
    use std::sync::Arc;

    use rustls::crypto::ring;
    use rustls::pki_types::CertificateDer;
    use rustls::pki_types::pem::PemObject;
    use rustls::{ClientConfig, RootCertStore};

    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(trusted) {
        let unusable =
            |error: &dyn std::fmt::Display| Error::Tls(format!("a certificate cannot be used: {error}"));
        let certificate = certificate.map_err(|error| unusable(&error))?;
        roots.add(certificate).map_err(|error| unusable(&error))?;
    }
    // Reading the machine's certificates takes a while, which nobody should wait for in vain.
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
    let mut plain = plain(connect_time);
    plain.enforce_http(false);
    Ok(hyper_rustls::HttpsConnectorBuilder::new()
        .with_tls_config(config)
        .https_or_http()
        .enable_http1()
        .wrap_connector(plain))
}

/// Tells whether a server answers in something else than TLS.
#[cfg(not(feature = "tls"))]
pub(super) fn is_no_tls(_: &(dyn std::error::Error + 'static)) -> bool {
    false
}

/// Tells whether a server answers in something else than TLS.
#[cfg(feature = "tls")]
pub(super) fn is_no_tls(error: &(dyn std::error::Error + 'static)) -> bool {
    if let Some(rustls::Error::InvalidMessage(_)) = error.downcast_ref() {
        return true;
    }
    // What an I/O error wraps is not its source.
    let wrapped = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
    match wrapped {
        Some(wrapped) => is_no_tls(wrapped),
        None => error.source().is_some_and(is_no_tls),
    }
}

/// Finds out why a server is not trusted, if that is what went wrong.
#[cfg(feature = "tls")]
pub(super) fn mistrust(error: &(dyn std::error::Error + 'static)) -> Option<String> {
    if let Some(found @ rustls::Error::InvalidCertificate(_)) = error.downcast_ref() {
        return Some(found.to_string());
    }
    // What an I/O error wraps is not its source.
    let wrapped = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
    match wrapped {
        Some(wrapped) => mistrust(wrapped),
        None => mistrust(error.source()?),
    }
}
