//! HTTP agents behind TLS.

use std::net::SocketAddr;
use std::sync::Arc;

use rcgen::{CertifiedKey, generate_simple_self_signed};
use runwire_model::dialect::Dialect;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

use super::fake_agents::{FakeHttpAgent, RunAssertions};
use crate::harness::Served;

/// Stands before an agent as a proxy with a certificate does, and tells its address and the certificate.
async fn secured(agent: SocketAddr) -> (SocketAddr, String) {
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
                let mut agent = TcpStream::connect(agent).await.unwrap();
                let _ = tokio::io::copy_bidirectional(&mut client, &mut agent).await;
            });
        }
    });
    (address, cert.pem())
}

#[tokio::test]
async fn an_agent_behind_tls_is_trusted_if_its_certificate_is() {
    let fake = FakeHttpAgent::telling("{\"reply\":\"safely\"}").await;
    let agent = fake.url.strip_prefix("http://").and_then(|rest| rest.strip_suffix("/run")).unwrap();
    let (address, pem) = secured(agent.parse().unwrap()).await;
    for (trusted, status) in [(pem, "completed"), (String::new(), "failed")] {
        let agent = fake.agent_with(Dialect::Loom, |agent| {
            agent.url = format!("https://localhost:{}/run", address.port());
            agent.trusted = trusted.into_bytes();
        });
        let served = Served::with(|config| config.agents = vec![agent]).await;
        served.post("/v1/runs", r#"{"run_id":"r","agent":"a"}"#).await;
        let run = served.closed("r").await;
        assert_eq!(run["status"], status, "{run}");
        if status == "failed" {
            assert_eq!(run["error"]["code"], "agent_unreachable");
            assert!(run["error"]["message"].as_str().unwrap().contains("certificate"), "{run}");
        }
    }
    assert_eq!(fake.asked().len(), 1);
}
