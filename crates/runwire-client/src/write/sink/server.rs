//! The sink that writes to a server: sends batches in order and retries them; producer headers make each write exactly
//! once.

use std::sync::Arc;
use std::time::Duration;

use http::Method;
use http::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use http_body_util::Full;
use runwire_model::dialect::Dialect;
use serde::Deserialize;
use tokio::time::{Instant, sleep, timeout};
use tracing::debug;

use super::{EngineSink, Receipt, SendBatch, SendError, SinkContext};
use crate::backoff::RetryBackoff;
use crate::http::{Endpoint, boxed_body};
use crate::write::EngineFailure;
use crate::{Client, Error};

const PRODUCER_ID: HeaderName = HeaderName::from_static("producer-id");
const PRODUCER_EPOCH: HeaderName = HeaderName::from_static("producer-epoch");
const PRODUCER_SEQ: HeaderName = HeaderName::from_static("producer-seq");

const DIALECT: Dialect = Dialect::StreamingEngine;

/// The id and epoch of a producer.
#[derive(Debug, Clone)]
pub(crate) struct ProducerIdentity {
    pub(crate) id: String,
    pub(crate) epoch: u64,
}

/// Writes a run to a server.
///
/// A batch is one request, so that the server commits it at once; the next one follows when it is acknowledged. (A
/// streamed body would be acknowledged only at its end.) One event is one frame, so the sequence of a batch's first
/// frame is its `producer-seq`.
#[derive(Debug)]
pub(crate) struct ServerSink {
    client: Client,
    run: String,
    producer: HeaderMap,
    /// Endpoint of the run's events; set with the first batch, which may name the thread.
    endpoint: Option<Endpoint>,
    retry_timeout: Duration,
    heartbeat: Duration,
}

#[derive(Deserialize)]
struct WriteResponse {
    accepted: u64,
    duplicates: u64,
    last_seq: u64,
}

#[derive(Deserialize)]
struct HeartbeatResponse {
    status: String,
    cancel_requested: bool,
}

impl ServerSink {
    pub(crate) fn new(
        client: Client,
        run: String,
        producer: &ProducerIdentity,
        retry_timeout: Duration,
        heartbeat: Duration,
    ) -> Result<Self, http::header::InvalidHeaderValue> {
        let headers = HeaderMap::from_iter([
            (CONTENT_TYPE, HeaderValue::from_static("application/x-ndjson")),
            (PRODUCER_ID, HeaderValue::from_bytes(producer.id.as_bytes())?),
            (PRODUCER_EPOCH, HeaderValue::from(producer.epoch)),
        ]);
        Ok(Self { client, run, producer: headers, endpoint: None, retry_timeout, heartbeat })
    }

    fn run_endpoint(&self) -> Endpoint {
        self.client.http.endpoint().segment("v1").segment("runs").segment(&self.run)
    }
}

impl EngineSink for ServerSink {
    async fn send(&mut self, batch: &SendBatch, context: &SinkContext) -> Result<Receipt, SendError> {
        let endpoint = match &self.endpoint {
            Some(endpoint) => endpoint,
            None => {
                let events = self.run_endpoint().segment("events").parameter("dialect", DIALECT.name());
                &*self.endpoint.insert(events.parameter_if("thread", context.thread().as_deref()))
            }
        };
        let (begun, mut attempts) = (Instant::now(), 0);
        let mut backoff = RetryBackoff::new(&self.client.retry);
        loop {
            attempts += 1;
            let error = match attempt(&self.client, &self.producer, endpoint, batch).await {
                Ok(written) if written.accepted + written.duplicates == batch.len() as u64 => {
                    return Ok(Receipt { last_seq: Some(written.last_seq) });
                }
                Ok(written) => {
                    let counts = format!("{} and {}", written.accepted, written.duplicates);
                    self.client.http.protocol_error(format!("of {} frames it counts {counts}", batch.len()))
                }
                Err(error) => error,
            };
            if !error.is_temporary() {
                return Err(refused(error));
            }
            let wait = backoff.next_delay(error.retry_after());
            if begun.elapsed() + wait > self.retry_timeout {
                let failure =
                    EngineFailure::GaveUp { after: begun.elapsed(), attempts, last: Arc::new(error) };
                return Err(failure.into());
            }
            context.retrying(attempts, &error);
            sleep(wait).await;
        }
    }

    fn heartbeat_interval(&self) -> Option<Duration> {
        Some(self.heartbeat)
    }

    async fn send_heartbeat(&mut self, context: &SinkContext) -> Result<(), EngineFailure> {
        if context.has_ended() {
            return Ok(());
        }
        let http = &self.client.http;
        let asked =
            http.request(Method::POST, &self.run_endpoint().segment("heartbeat"), HeaderMap::new()).await;
        let response = match asked {
            Ok(response) => http.json::<HeartbeatResponse>(response).await,
            Err(error) => Err(error),
        };
        match response {
            Ok(response) => {
                context.connected();
                if response.cancel_requested || response.status == "cancelled" {
                    context.cancel_requested();
                }
                match response.status.as_str() {
                    "completed" | "failed" | "cancelled" => {
                        Err(EngineFailure::RunClosed { status: response.status })
                    }
                    _ => Ok(()),
                }
            }
            // A run that does not exist yet has no lease. Any other error will fail the next write.
            Err(error) => {
                debug!(target: crate::write::TARGET, run = self.run, %error, "heartbeat failed");
                Ok(())
            }
        }
    }
}

/// Converts a refusal to the engine's failure, with the number of frames that are written.
fn refused(error: Error) -> SendError {
    match error {
        Error::Refused(problem) => {
            let count = |count: Option<u64>| count.unwrap_or(0);
            let accepted = count(problem.accepted()) + count(problem.duplicates());
            let fenced = problem.code() == Some("producer_fenced");
            let problem = Arc::from(problem);
            let failure =
                if fenced { EngineFailure::Fenced(problem) } else { EngineFailure::Refused(problem) };
            SendError { accepted, failure }
        }
        other => EngineFailure::Answer(Arc::new(other)).into(),
    }
}

async fn attempt(
    client: &Client,
    producer: &HeaderMap,
    endpoint: &Endpoint,
    batch: &SendBatch,
) -> Result<WriteResponse, Error> {
    let http = &client.http;
    let mut headers = producer.clone();
    headers.insert(PRODUCER_SEQ, HeaderValue::from(batch.first()));
    let exchange = async {
        let body = boxed_body(Full::new(batch.lines().clone()));
        let response = http.send(Method::POST, endpoint, headers, body).await?;
        http.json::<WriteResponse>(response).await
    };
    timeout(client.retry.idle_timeout, exchange).await.unwrap_or_else(|_| Err(http.idle_error()))
}
