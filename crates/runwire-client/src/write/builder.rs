//! How an engine is set up.

use std::time::Duration;

use serde::Deserialize;
use uuid::Uuid;

use super::check::Start;
use super::frame::check_path_id;
use super::shared::{Bounds, Shared};
use super::sink::{Producer, ServerSink, Sink};
use super::{EmitError, StreamingEngine};
use crate::{Client, Error};

/// What `emit_*` does when as much is unacknowledged as may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WhenFull {
    /// It waits for room.
    #[default]
    Wait,
    /// It gives [`EmitError::Full`] at once.
    Refuse,
}

/// Sets up a [`StreamingEngine`].
#[derive(Debug, Clone)]
#[must_use]
pub struct EngineBuilder {
    request_id: String,
    thread: Option<String>,
    bounds: Bounds,
    patience: Duration,
    heartbeat: Duration,
    linger: Duration,
}

/// How far a producer is, as the server tells it.
#[derive(Deserialize)]
struct Known {
    epoch: u64,
    next: u64,
}

impl EngineBuilder {
    pub(super) fn new(request_id: String) -> Self {
        Self {
            request_id,
            thread: None,
            bounds: Bounds { window: 64, events: 4096, bytes: 4 << 20, when_full: WhenFull::Wait },
            patience: Duration::from_secs(120),
            heartbeat: Duration::from_secs(15),
            linger: Duration::from_secs(5),
        }
    }

    /// Names the thread that a new run joins. Without it, it is the `session_id` of the first event, if that is a
    /// session's start; else the run has a thread of its own.
    pub fn thread(mut self, thread: impl Into<String>) -> Self {
        self.thread = Some(thread.into());
        self
    }

    /// Sets how many events may be on their way unacknowledged: 64 without it. As many again are taken meanwhile;
    /// then `emit_*` waits. With 1, each `emit_*` waits for its own acknowledgement.
    pub fn window(mut self, events: u64) -> Self {
        self.bounds.window = events.max(1);
        self
    }

    /// Sets how much may be unacknowledged while the server does not answer: 4,096 events without it, and never,
    /// answering or not, more than 4 MiB and one frame.
    pub fn buffer(mut self, events: u64, bytes: usize) -> Self {
        (self.bounds.events, self.bounds.bytes) = (events.max(1), bytes.max(1));
        self
    }

    /// Sets what happens when the window or the buffer is full: `emit_*` waits without it.
    pub fn when_full(mut self, when_full: WhenFull) -> Self {
        self.bounds.when_full = when_full;
        self
    }

    /// Sets for how long a batch is tried again before the engine gives up: 2 minutes without it.
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Sets how long the engine may be silent before it shows the server that it lives: 15 s without it. A server
    /// waits 60 s unless it is told otherwise.
    pub fn heartbeat(mut self, heartbeat: Duration) -> Self {
        self.heartbeat = heartbeat.max(Duration::from_millis(1));
        self
    }

    /// Sets how long an engine that was dropped without [`StreamingEngine::close`] goes on sending what was
    /// emitted: 5 s without it.
    pub fn linger(mut self, linger: Duration) -> Self {
        self.linger = linger;
        self
    }

    /// Starts an engine that writes to anything. Must be called within a Tokio runtime.
    pub fn sink(self, sink: impl Sink) -> Result<StreamingEngine, EmitError> {
        self.check()?;
        Ok(self.start(sink, None, Start::Fresh))
    }

    /// Starts an engine that writes to a run on a server, as a producer of its own. Nothing is sent yet. Must be
    /// called within a Tokio runtime.
    pub fn server(self, client: &Client) -> Result<StreamingEngine, EmitError> {
        self.check()?;
        let producer = Producer { id: Uuid::now_v7().to_string(), epoch: 1 };
        self.start_on(client, &producer, Start::Fresh)
    }

    /// Starts an engine that goes on where another one of the same name was, whether or not that is still there:
    /// this one takes over, and the other one is refused from now on.
    ///
    /// Two that resume the same producer at the same moment cannot be told apart: let one place decide who may.
    pub async fn resume(
        self,
        client: &Client,
        producer: impl Into<String>,
    ) -> Result<StreamingEngine, ResumeError> {
        self.check()?;
        let id = producer.into();
        check_path_id("producer", &id)?;
        let target = client.http.target().segment("v1").segment("runs").segment(&self.request_id);
        let known = client.http.get_json::<Known>(&target.segment("producers").segment(&id)).await;
        let (epoch, start) = match known {
            Ok(known) => (known.epoch, Start::Joined { next: known.next }),
            Err(error) if error.code() == Some("run_unknown") => (0, Start::Fresh),
            Err(error) => return Err(error.into()),
        };
        Ok(self.start_on(client, &Producer { id, epoch: epoch + 1 }, start)?)
    }

    fn start_on(
        self,
        client: &Client,
        producer: &Producer,
        start: Start,
    ) -> Result<StreamingEngine, EmitError> {
        let run = self.request_id.clone();
        let sink = ServerSink::new(client.clone(), run, producer, self.patience, self.heartbeat)
            .map_err(|_| EmitError::field("producer", "must be text that a header can carry"))?;
        Ok(self.start(sink, Some(client.clone()), start))
    }

    fn check(&self) -> Result<(), EmitError> {
        check_path_id("request_id", &self.request_id)?;
        self.thread.as_deref().map_or(Ok(()), |thread| check_path_id("thread", thread))
    }

    fn start(self, sink: impl Sink, client: Option<Client>, start: Start) -> StreamingEngine {
        let shared = Shared::new(self.request_id, self.thread, self.bounds, start);
        StreamingEngine::start(shared, sink, client, self.linger)
    }
}

/// Why an engine could not go on where another one was.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ResumeError {
    /// An id cannot be used.
    #[error(transparent)]
    Id(#[from] EmitError),
    /// The server could not be asked how far the producer is.
    #[error(transparent)]
    Server(#[from] Error),
}
