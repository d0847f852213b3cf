//! Servers behind TLS with trusted and untrusted certificates.

use std::net::SocketAddr;
use std::sync::Arc;

use futures_util::StreamExt;
use rcgen::{CertifiedKey, generate_simple_self_signed};
use runwire_client::{Client, Dialect, Error, Transport};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

use crate::fake_servers::{COMPLETED, all, delta, write};
use crate::test_server::{TestServer, within_timeout};

/// Starts a TLS proxy for a server; returns its address and certificate.
async fn tls_proxy(server: SocketAddr) -> (SocketAddr, String) {
    let CertifiedKey { cert, signing_key } = generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let key = PrivateKeyDer::try_from(signing_key.serialize_der()).unwrap();
    let provider = Arc::new(ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = config.with_no_client_auth().with_single_cert(vec![cert.der().clone()], key).unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let Ok(mut client) = acceptor.accept(client).await else { return };
                let Ok(mut server) = TcpStream::connect(server).await else { return };
                let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
            });
        }
    });
    (address, cert.pem())
}

#[tokio::test]
async fn a_trusted_server_is_read_and_written_through_tls() {
    let server = TestServer::start().await;
    let (address, certificate) = tls_proxy(server.address).await;
    let url = format!("https://localhost:{}", address.port());
    let client = Client::builder().url(&url).root_certificates(certificate.as_bytes()).build().unwrap();
    write(&client.run("r1"), &(delta("one") + COMPLETED)).await;
    let plain = all(server.client().run("r1").frames(Dialect::AgUi)).await;
    for transport in [Transport::Sse, Transport::WebSocket] {
        assert_eq!(all(client.run("r1").frames(Dialect::AgUi).transport(transport)).await, plain);
    }
}

#[tokio::test]
async fn an_untrusted_certificate_is_an_error_at_once() {
    let server = TestServer::start().await;
    let (address, certificate) = tls_proxy(server.address).await;
    let (_, another) = tls_proxy(server.address).await;
    for (host, trusted) in [("localhost", another), ("127.0.0.1", certificate)] {
        let url = format!("https://{host}:{}", address.port());
        let client = Client::builder().url(url).root_certificates(trusted.as_bytes()).build().unwrap();
        let error = within_timeout(client.run("r1").events().next()).await.unwrap().unwrap_err();
        assert!(matches!(&error, Error::Tls(_)) && !error.is_temporary(), "{error}");
    }
    assert!(matches!(
        Client::builder()
            .root_certificates(b"-----BEGIN CERTIFICATE-----\nbm8=\n-----END CERTIFICATE-----")
            .build(),
        Err(Error::Tls(_))
    ));
}
