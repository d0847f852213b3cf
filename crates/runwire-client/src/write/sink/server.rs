//! A run on a server: batches sent in order, tried again until they are acknowledged, written exactly once.

use std::sync::Arc;
use std::time::Duration;

use http::Method;
use http::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use http_body_util::Full;
use runwire_model::dialect::Dialect;
use serde::Deserialize;
use tokio::time::{Instant, sleep, timeout};
use tracing::debug;

use super::{Batch, Link, Receipt, SendError, Sink};
use crate::backoff::Backoff;
use crate::http::{Target, body_of};
use crate::write::Failure;
use crate::{Client, Error};

const PRODUCER_ID: HeaderName = HeaderName::from_static("producer-id");
const PRODUCER_EPOCH: HeaderName = HeaderName::from_static("producer-epoch");
const PRODUCER_SEQ: HeaderName = HeaderName::from_static("producer-seq");

const DIALECT: Dialect = Dialect::StreamingEngine;

/// Who writes, and in which of its lives.
#[derive(Debug, Clone)]
pub(crate) struct Producer {
    pub(crate) id: String,
    pub(crate) epoch: u64,
}

/// Writes a run to a server.
///
/// Whatever has queued up is one request, so that the server commits it at once; the next one follows when it is
/// acknowledged. (An open body would tell how far it came only at its end.) The index of a batch's first frame in
/// what the producer has sent is its sequence: one event is one frame.
#[derive(Debug)]
pub(crate) struct ServerSink {
    client: Client,
    run: String,
    producer: HeaderMap,
    /// Where to write; made with the first batch, which may name the thread.
    target: Option<Target>,
    patience: Duration,
    heartbeat: Duration,
}

#[derive(Deserialize)]
struct Written {
    accepted: u64,
    duplicates: u64,
    last_seq: u64,
}

#[derive(Deserialize)]
struct Beat {
    status: String,
    cancel_requested: bool,
}

impl ServerSink {
    pub(crate) fn new(
        client: Client,
        run: String,
        producer: &Producer,
        patience: Duration,
        heartbeat: Duration,
    ) -> Result<Self, http::header::InvalidHeaderValue> {
        let headers = HeaderMap::from_iter([
            (CONTENT_TYPE, HeaderValue::from_static("application/x-ndjson")),
            (PRODUCER_ID, HeaderValue::from_bytes(producer.id.as_bytes())?),
            (PRODUCER_EPOCH, HeaderValue::from(producer.epoch)),
        ]);
        Ok(Self { client, run, producer: headers, target: None, patience, heartbeat })
    }

    fn run_target(&self) -> Target {
        self.client.http.target().segment("v1").segment("runs").segment(&self.run)
    }
}

impl Sink for ServerSink {
    async fn send(&mut self, batch: &Batch, link: &Link) -> Result<Receipt, SendError> {
        let target = match &self.target {
            Some(target) => target,
            None => {
                let events = self.run_target().segment("events").parameter("dialect", DIALECT.name());
                &*self.target.insert(events.parameter_if("thread", link.thread().as_deref()))
            }
        };
        let (begun, mut attempts) = (Instant::now(), 0);
        let mut backoff = Backoff::new(&self.client.patience);
        loop {
            attempts += 1;
            let error = match attempt(&self.client, &self.producer, target, batch).await {
                Ok(written) if written.accepted + written.duplicates == batch.len() as u64 => {
                    return Ok(Receipt { last_seq: Some(written.last_seq) });
                }
                Ok(written) => {
                    let counts = format!("{} and {}", written.accepted, written.duplicates);
                    self.client.http.strange(format!("of {} frames it counts {counts}", batch.len()))
                }
                Err(error) => error,
            };
            if !error.is_temporary() {
                return Err(refused(error));
            }
            let wait = backoff.next_wait(error.retry_after());
            if begun.elapsed() + wait > self.patience {
                let failure = Failure::GaveUp { after: begun.elapsed(), attempts, last: Arc::new(error) };
                return Err(failure.into());
            }
            link.retrying(attempts, &error);
            sleep(wait).await;
        }
    }

    fn heartbeat(&self) -> Option<Duration> {
        Some(self.heartbeat)
    }

    async fn beat(&mut self, link: &Link) -> Result<(), Failure> {
        if link.has_ended() {
            return Ok(());
        }
        let http = &self.client.http;
        let asked = http.ask(Method::POST, &self.run_target().segment("heartbeat"), HeaderMap::new()).await;
        let beat = match asked {
            Ok(response) => http.json::<Beat>(response).await,
            Err(error) => Err(error),
        };
        match beat {
            Ok(beat) => {
                link.connected();
                if beat.cancel_requested || beat.status == "cancelled" {
                    link.cancel_requested();
                }
                match beat.status.as_str() {
                    "completed" | "failed" | "cancelled" => Err(Failure::RunClosed { status: beat.status }),
                    _ => Ok(()),
                }
            }
            // A run that does not exist yet has no lease. Whatever else is wrong, the next write will meet it.
            Err(error) => {
                debug!(target: crate::write::TARGET, run = self.run, %error, "no heartbeat");
                Ok(())
            }
        }
    }
}

/// Tells what a refusal means for the engine, and how much of the batch is written.
fn refused(error: Error) -> SendError {
    match error {
        Error::Refused(problem) => {
            let count = |count: Option<u64>| count.unwrap_or(0);
            let accepted = count(problem.accepted()) + count(problem.duplicates());
            let fenced = problem.code() == Some("producer_fenced");
            let problem = Arc::from(problem);
            let failure = if fenced { Failure::Fenced(problem) } else { Failure::Refused(problem) };
            SendError { accepted, failure }
        }
        other => Failure::Answer(Arc::new(other)).into(),
    }
}

async fn attempt(
    client: &Client,
    producer: &HeaderMap,
    target: &Target,
    batch: &Batch,
) -> Result<Written, Error> {
    let http = &client.http;
    let mut headers = producer.clone();
    headers.insert(PRODUCER_SEQ, HeaderValue::from(batch.first()));
    let exchange = async {
        let body = body_of(Full::new(batch.lines().clone()));
        let response = http.send(Method::POST, target, headers, body).await?;
        http.json::<Written>(response).await
    };
    timeout(client.patience.silence, exchange).await.unwrap_or_else(|_| Err(http.silent()))
}
