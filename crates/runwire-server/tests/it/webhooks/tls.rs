//! Webhooks behind TLS, trusted and untrusted.

use std::sync::Arc;

use rcgen::{CertifiedKey, generate_simple_self_signed};
use runwire_log::OutboxMessage;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

use super::target::{Target, status};
use super::{STARTED, until_log};
use crate::harness::Served;

/// Stands before a target as a proxy with a certificate does, and tells its port and the certificate.
async fn secured(target: u16) -> (u16, String) {
    let CertifiedKey { cert, signing_key } = generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let key = PrivateKeyDer::try_from(signing_key.serialize_der()).unwrap();
    let provider = Arc::new(ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = config.with_no_client_auth().with_single_cert(vec![cert.der().clone()], key).unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let Ok(mut client) = acceptor.accept(client).await else { return };
                let mut server = TcpStream::connect(("127.0.0.1", target)).await.unwrap();
                let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
            });
        }
    });
    (port, cert.pem())
}

#[tokio::test]
async fn a_webhook_is_reached_through_tls_if_it_is_trusted() {
    let target = Target::start(|_| status(200)).await;
    let (port, certificate) = secured(target.port).await;
    let mut webhook = target.webhook();
    webhook.url = format!("https://localhost:{port}/").parse().unwrap();
    let stranger = webhook.clone();
    let served = Served::with(|config| config.webhooks = vec![stranger]).await;
    served.post("/v1/runs/r/events?end=true", STARTED).await.written(1, 0);
    until_log(&served, |notices| notices.iter().any(|notice| notice.attempts > 1)).await;
    assert!(target.got().is_empty());
    webhook.trusted = certificate.into_bytes();
    let served = served.restarted_with(|config| config.webhooks = vec![webhook]).await;
    assert!(target.until(1).await[0].is_signed());
    until_log(&served, <[OutboxMessage]>::is_empty).await;
}
