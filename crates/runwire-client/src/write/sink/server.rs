//! The sink that writes to a server, as one producer of its run.

use std::sync::Arc;
use std::time::Duration;

use http::Method;
use http::header::HeaderMap;
use runwire_producer::{Producer, WriteError};
use serde::Deserialize;
use tracing::debug;

use super::{EngineSink, Receipt, SendBatch, SendError, SinkContext};
use crate::http::Endpoint;
use crate::resources::{EncodedFrames, ProducerWriter, RunStatus};
use crate::write::EngineFailure;
use crate::write::engine::DIALECT;
use crate::{Client, Error};

/// Writes a run to a server.
///
/// A batch is one request, so that the server commits it at once; the next one follows when it is acknowledged. (A
/// streamed body would be acknowledged only at its end.) One event is one frame, so the sequence of a batch's first
/// frame is its `producer-seq`.
#[derive(Debug)]
pub(crate) struct ServerSink {
    client: Client,
    run: String,
    producer: Producer,
    /// Set with the first batch, which may name the thread.
    writer: Option<ProducerWriter>,
    retry_timeout: Duration,
    heartbeat: Duration,
}

#[derive(Deserialize)]
struct HeartbeatResponse {
    status: RunStatus,
    cancel_requested: bool,
}

impl ServerSink {
    pub(crate) fn new(
        client: Client,
        run: String,
        producer: Producer,
        retry_timeout: Duration,
        heartbeat: Duration,
    ) -> Self {
        Self { client, run, producer, writer: None, retry_timeout, heartbeat }
    }

    fn run_endpoint(&self) -> Endpoint {
        self.client.http.endpoint().segment("v1").segment("runs").segment(&self.run)
    }

    fn start(&self, context: &SinkContext) -> ProducerWriter {
        let mut upload = self.client.run(&self.run).upload().dialect(DIALECT);
        if let Some(thread) = context.thread() {
            upload = upload.thread(thread);
        }
        let context = SinkContext(context.0.clone());
        upload
            .into_producer(self.producer.clone())
            .give_up_after(Some(self.retry_timeout))
            .on_retry(move |attempts, error| context.retrying(attempts, error))
    }
}

impl EngineSink for ServerSink {
    async fn send(&mut self, batch: &SendBatch, context: &SinkContext) -> Result<Receipt, SendError> {
        if self.writer.is_none() {
            self.writer = Some(self.start(context));
        }
        let Some(writer) = &mut self.writer else { return Err(EngineFailure::Stopped.into()) };
        debug_assert_eq!(writer.next(), batch.first());
        let frames = EncodedFrames { body: batch.lines().clone(), count: batch.len() as u64 };
        match writer.write(&frames, false).await {
            Ok(receipt) => Ok(Receipt { last_seq: Some(receipt.last_seq) }),
            Err(WriteError::Fenced(Error::Refused(problem))) => {
                Err(EngineFailure::Fenced(problem.into()).into())
            }
            Err(WriteError::GaveUp { after, attempts, last }) => {
                Err(EngineFailure::GaveUp { after, attempts, last: Arc::new(last) }.into())
            }
            Err(
                WriteError::Frame { at, error }
                | WriteError::Closed { at, error }
                | WriteError::Permanent { at, error },
            ) => Err(SendError { accepted: at as u64, failure: refused(error) }),
            Err(WriteError::Fenced(error)) => Err(refused(error).into()),
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
                if response.cancel_requested || response.status == RunStatus::Cancelled {
                    context.cancel_requested();
                }
                if response.status.is_closed() {
                    return Err(EngineFailure::RunClosed { status: response.status });
                }
                Ok(())
            }
            // A run that does not exist yet has no lease. Any other error will fail the next write.
            Err(error) => {
                debug!(target: crate::write::TARGET, run = self.run, %error, "heartbeat failed");
                Ok(())
            }
        }
    }
}

fn refused(error: Error) -> EngineFailure {
    match error {
        Error::Refused(problem) => EngineFailure::Refused(problem.into()),
        other => EngineFailure::Answer(Arc::new(other)),
    }
}
