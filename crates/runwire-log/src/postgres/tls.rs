//! TLS for connections to Postgres.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use tokio_postgres_rustls::MakeRustlsConnect;

/// How the server's certificate is verified. Without a file, by the system's roots.
pub(super) enum ServerVerification {
    /// Not at all: safe against eavesdropping, not against an active attacker.
    None,
    /// It must be signed by a trusted root (`verify-ca`).
    Ca(Option<PathBuf>),
    /// It must be signed, and be for the host name (`verify-full`).
    Full(Option<PathBuf>),
}

/// Creates what makes TLS connections; where TLS is not wanted, it is never asked.
pub(super) fn connector(wanted: bool, trust: &ServerVerification) -> Result<MakeRustlsConnect, String> {
    let trust = if wanted { trust } else { &ServerVerification::None };
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = verifier(trust, &provider)?;
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.map_err(|error| error.to_string())?;
    let config = config.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth();
    Ok(MakeRustlsConnect::new(config))
}

fn verifier(
    trust: &ServerVerification,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<dyn ServerCertVerifier>, String> {
    let signed = |file: &Option<PathBuf>| {
        let roots = Arc::new(roots(file.as_deref())?);
        let built = WebPkiServerVerifier::builder_with_provider(roots, provider.clone()).build();
        built.map_err(|error| format!("no certificate can be checked: {error}"))
    };
    Ok(match trust {
        ServerVerification::None => Arc::new(Lenient { signed: None, provider: provider.clone() }),
        ServerVerification::Ca(file) => {
            Arc::new(Lenient { signed: Some(signed(file)?), provider: provider.clone() })
        }
        ServerVerification::Full(file) => signed(file)?,
    })
}

fn roots(file: Option<&Path>) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    let Some(file) = file else {
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        return Ok(roots);
    };
    let unreadable = |error: &dyn std::fmt::Display| format!("{} cannot be read: {error}", file.display());
    for certificate in CertificateDer::pem_file_iter(file).map_err(|error| unreadable(&error))? {
        let certificate = certificate.map_err(|error| unreadable(&error))?;
        roots.add(certificate).map_err(|error| unreadable(&error))?;
    }
    match roots.is_empty() {
        true => Err(unreadable(&"there is no certificate in it")),
        false => Ok(roots),
    }
}

/// Accepts a certificate for any name; without a verifier, any certificate at all.
#[derive(Debug)]
struct Lenient {
    signed: Option<Arc<WebPkiServerVerifier>>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Lenient {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        chain: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(signed) = &self.signed else { return Ok(ServerCertVerified::assertion()) };
        match signed.verify_server_cert(certificate, chain, name, ocsp, now) {
            // The name is checked last, after everything else was found valid.
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(ServerCertVerified::assertion()),
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
