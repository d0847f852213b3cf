//! Connections to Redis: each try has a time limit, and the tries grow rarer.

use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::io::tcp::TcpSettings;
use redis::{
    AsyncConnectionConfig, Client, IntoConnectionInfo, ProtocolVersion, PushInfo, RedisResult,
    TlsCertificates,
};

use super::TailError;
use crate::limits;

/// The pause after the first failure.
const FIRST_PAUSE: Duration = Duration::from_millis(50);

/// What connects to Redis.
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
        // Subscriptions and commands on one connection need the third protocol.
        let settings = info.redis_settings().clone().set_protocol(ProtocolVersion::RESP3);
        let info = info.set_redis_settings(settings);
        if matches!(info.addr(), redis::ConnectionAddr::TcpTls { .. }) {
            // The client takes the process's; where there is one already, that is as good.
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
        self.client.get_multiplexed_async_connection_with_config(&timed()).await
    }

    /// Connects once; `push` takes what Redis sends by itself.
    pub(super) async fn connect_with(
        &self,
        push: impl Fn(PushInfo) -> Result<(), ()> + Send + Sync + 'static,
    ) -> RedisResult<MultiplexedConnection> {
        self.client.get_multiplexed_async_connection_with_config(&timed().set_push_sender(push)).await
    }
}

fn timed() -> AsyncConnectionConfig {
    let patience = Some(Duration::from_millis(limits::REDIS_ANSWER_MILLIS));
    AsyncConnectionConfig::new().set_connection_timeout(patience).set_response_timeout(patience)
}

/// The pauses between tries.
#[derive(Debug)]
pub(super) struct RedisBackoff {
    next: Duration,
}

impl RedisBackoff {
    pub(super) fn new() -> Self {
        Self { next: FIRST_PAUSE }
    }

    /// Waits before the next try.
    pub(super) async fn pause(&mut self) {
        tokio::time::sleep(self.next).await;
        self.next = (2 * self.next).min(Duration::from_millis(limits::REDIS_RETRY_MILLIS));
    }
}
