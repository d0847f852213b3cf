//! Connects to Redis, with a timeout for each attempt and a growing backoff between them.

use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::io::tcp::TcpSettings;
use redis::{
    AsyncConnectionConfig, Client, IntoConnectionInfo, ProtocolVersion, PushInfo, RedisResult,
    TlsCertificates,
};

use runwire_producer::Backoff;

use super::TailError;
use crate::limits;

/// Backoff after the first failure.
const FIRST_PAUSE: Duration = Duration::from_millis(50);

/// Opens connections to Redis.
#[derive(Debug, Clone)]
pub(super) struct RedisConnector {
    client: Client,
}

impl RedisConnector {
    pub(super) fn new(url: &str, trust: Option<&[u8]>) -> Result<Self, TailError> {
        let address = |error: redis::RedisError| TailError::Address(error.to_string());
        let info = url.into_connection_info().map_err(address)?;
        // Small entries must not wait for the answer to the one before.
        let info = info.set_tcp_settings(TcpSettings::default().set_nodelay(true));
        // Subscriptions and commands share a connection only in RESP3.
        let settings = info.redis_settings().clone().set_protocol(ProtocolVersion::RESP3);
        let info = info.set_redis_settings(settings);
        if matches!(info.addr(), redis::ConnectionAddr::TcpTls { .. }) {
            // The client uses the process's default provider; one that is installed already is as good.
            let _ = rustls::crypto::ring::default_provider().install_default();
        }
        let client = match trust {
            None => Client::open(info).map_err(address)?,
            Some(pem) => {
                let certificates = TlsCertificates { client_tls: None, root_cert: Some(pem.to_vec()) };
                Client::build_with_tls(info, certificates)
                    .map_err(|error| TailError::Certificates(error.to_string()))?
            }
        };
        Ok(Self { client })
    }

    /// Connects once.
    pub(super) async fn connect(&self) -> RedisResult<MultiplexedConnection> {
        self.client.get_multiplexed_async_connection_with_config(&with_timeouts()).await
    }

    /// Connects once; `push` handles messages that Redis pushes.
    pub(super) async fn connect_with(
        &self,
        push: impl Fn(PushInfo) -> Result<(), ()> + Send + Sync + 'static,
    ) -> RedisResult<MultiplexedConnection> {
        self.client.get_multiplexed_async_connection_with_config(&with_timeouts().set_push_sender(push)).await
    }
}

fn with_timeouts() -> AsyncConnectionConfig {
    let timeout = Some(Duration::from_millis(limits::REDIS_ANSWER_MILLIS));
    AsyncConnectionConfig::new().set_connection_timeout(timeout).set_response_timeout(timeout)
}

/// The backoff between attempts.
pub(super) const REDIS_BACKOFF: Backoff =
    Backoff::new(FIRST_PAUSE, Duration::from_millis(limits::REDIS_RETRY_MILLIS));
