//! The builder of an engine: its sink, window, buffer, timeouts.

use std::time::Duration;

use http::HeaderValue;
use runwire_model::ErrorCode;
use runwire_producer::{Producer, next_epoch};
use serde::Deserialize;
use uuid::Uuid;

use super::emission::check_path_id;
use super::preflight::Start;
use super::shared::{BufferLimits, Shared};
use super::sink::{EngineSink, ServerSink};
use super::{EmitError, StreamingEngine};
use crate::{Client, Error};

/// What `emit_*` does when the window or the buffer is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WhenFull {
    /// It waits.
    #[default]
    Wait,
    /// It returns [`EmitError::Full`] at once.
    Refuse,
}

/// Builds a [`StreamingEngine`].
#[derive(Debug, Clone)]
#[must_use]
pub struct EngineBuilder {
    request_id: String,
    thread: Option<String>,
    limits: BufferLimits,
    retry_timeout: Duration,
    heartbeat: Duration,
    linger: Duration,
}

/// A producer's epoch and next sequence, as the server has them.
#[derive(Deserialize)]
struct ProducerPosition {
    epoch: u64,
    next: u64,
}

impl EngineBuilder {
    pub(super) fn new(request_id: String) -> Self {
        Self {
            request_id,
            thread: None,
            limits: BufferLimits { window: 64, events: 4096, bytes: 4 << 20, when_full: WhenFull::Wait },
            retry_timeout: Duration::from_secs(120),
            heartbeat: Duration::from_secs(15),
            linger: Duration::from_secs(5),
        }
    }

    /// Sets the thread of a new run. The default is the `session_id` if the first event is a session's start, else a
    /// thread of its own.
    pub fn thread(mut self, thread: impl Into<String>) -> Self {
        self.thread = Some(thread.into());
        self
    }

    /// Sets how many events may be in flight unacknowledged; default 64. As many again are queued meanwhile; then
    /// `emit_*` waits. With 1, each `emit_*` waits for its own acknowledgement.
    pub fn window(mut self, events: u64) -> Self {
        self.limits.window = events.max(1);
        self
    }

    /// Sets how much may be unacknowledged while the server does not answer; default 4,096 events. The bytes, by
    /// default 4 MiB and one frame, are always a limit.
    pub fn buffer(mut self, events: u64, bytes: usize) -> Self {
        (self.limits.events, self.limits.bytes) = (events.max(1), bytes.max(1));
        self
    }

    /// Sets what happens when the window or the buffer is full; by default `emit_*` waits.
    pub fn when_full(mut self, when_full: WhenFull) -> Self {
        self.limits.when_full = when_full;
        self
    }

    /// Sets how long a batch is retried before the engine gives up; default 2 minutes.
    pub fn retry_timeout(mut self, retry_timeout: Duration) -> Self {
        self.retry_timeout = retry_timeout;
        self
    }

    /// Sets the interval of heartbeats; default 15 s. A server's default lease is 60 s.
    pub fn heartbeat(mut self, heartbeat: Duration) -> Self {
        self.heartbeat = heartbeat.max(Duration::from_millis(1));
        self
    }

    /// Sets how long an engine that was dropped without [`StreamingEngine::close`] keeps sending what was emitted;
    /// default 5 s.
    pub fn linger(mut self, linger: Duration) -> Self {
        self.linger = linger;
        self
    }

    /// Starts an engine with a sink. Must be called within a Tokio runtime.
    pub fn sink(self, sink: impl EngineSink) -> Result<StreamingEngine, EmitError> {
        self.check()?;
        Ok(self.start(sink, None, Start::Fresh))
    }

    /// Starts an engine that writes to a run on a server, as a new producer. Sends nothing yet. Must be called within
    /// a Tokio runtime.
    pub fn server(self, client: &Client) -> Result<StreamingEngine, EmitError> {
        self.check()?;
        self.start_on(client, &Uuid::now_v7().to_string(), 1, Start::Fresh)
    }

    /// Starts an engine that resumes a producer: it takes a newer epoch, which fences off an engine with the former
    /// one.
    pub async fn resume(
        self,
        client: &Client,
        producer: impl Into<String>,
    ) -> Result<StreamingEngine, ResumeError> {
        self.check()?;
        let id = producer.into();
        check_path_id("producer", &id)?;
        let endpoint = client.http.endpoint().segment("v1").segment("runs").segment(&self.request_id);
        let known =
            client.http.get_json::<ProducerPosition>(&endpoint.segment("producers").segment(&id)).await;
        let (epoch, start) = match known {
            Ok(known) => (known.epoch, Start::Joined { next: known.next }),
            Err(error) if error.code() == Some(ErrorCode::RunUnknown) => (0, Start::Fresh),
            Err(error) => return Err(error.into()),
        };
        Ok(self.start_on(client, &id, next_epoch(epoch), start)?)
    }

    fn start_on(
        self,
        client: &Client,
        producer: &str,
        epoch: u64,
        start: Start,
    ) -> Result<StreamingEngine, EmitError> {
        if HeaderValue::from_str(producer).is_err() {
            return Err(EmitError::field("producer", "must be text that a header can carry"));
        }
        let (run, producer) = (self.request_id.clone(), Producer::new(producer, epoch, start.sequence()));
        let sink = ServerSink::new(client.clone(), run, producer, self.retry_timeout, self.heartbeat);
        Ok(self.start(sink, Some(client.clone()), start))
    }

    fn check(&self) -> Result<(), EmitError> {
        check_path_id("request_id", &self.request_id)?;
        self.thread.as_deref().map_or(Ok(()), |thread| check_path_id("thread", thread))
    }

    fn start(self, sink: impl EngineSink, client: Option<Client>, start: Start) -> StreamingEngine {
        let shared = Shared::new(self.request_id, self.thread, self.limits, start);
        StreamingEngine::start(shared, sink, client, self.linger)
    }
}

/// Why a producer could not be resumed.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ResumeError {
    /// An id is invalid.
    #[error(transparent)]
    Id(#[from] EmitError),
    /// The server did not return the producer's position.
    #[error(transparent)]
    Server(#[from] Error),
}
