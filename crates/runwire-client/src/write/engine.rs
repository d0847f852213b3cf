//! The engine's handle: emit, flush, close, state, signals.

use std::sync::Arc;
use std::time::Duration;

use runwire_model::dialect::Dialect;
use tokio::time::Instant;
use tracing::debug;

use super::emission::Emission;
use super::shared::{Closing, Shared};
use super::signals::Signals;
use super::state::{EngineState, PendingAck};
use super::{EmitError, EngineBuilder, EngineFailure, EngineSink};
use crate::Client;

/// The dialect of the frames that an engine writes.
pub(super) const DIALECT: Dialect = Dialect::StreamingEngine;

/// Writes one run, with an `emit_*` method for each kind of event.
///
/// Cheap to clone; clones write to the same run, in the order of their calls. See the [module](super) for batching,
/// retries and failures.
///
/// ```no_run
/// # async fn write() -> Result<(), Box<dyn std::error::Error>> {
/// use runwire_client::Client;
/// use runwire_client::write::{Format, SessionStatus, StreamingEngine};
///
/// let engine = StreamingEngine::builder("req_1").server(&Client::from_env()?)?;
/// engine.emit_session_start("sess_1").await?;
/// engine.emit_content("你好", Format::Markdown, true).await?;
/// engine.emit_session_end(SessionStatus::Completed, None).await?;
/// engine.close().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct StreamingEngine {
    pub(super) shared: Arc<Shared>,
    /// Client that reads signals; `None` if the engine does not write to a server.
    pub(super) client: Option<Client>,
    _guard: Arc<HandleGuard>,
}

impl StreamingEngine {
    /// Returns a builder; `request_id` is the run's id.
    pub fn builder(request_id: impl Into<String>) -> EngineBuilder {
        EngineBuilder::new(request_id.into())
    }

    pub(super) fn start(
        shared: Shared,
        sink: impl EngineSink,
        client: Option<Client>,
        linger: Duration,
    ) -> Self {
        let shared = Arc::new(shared);
        tokio::spawn(super::pump::run(shared.clone(), sink));
        let guard = HandleGuard { shared: shared.clone(), linger };
        Self { shared, client, _guard: Arc::new(guard) }
    }

    pub(super) async fn emit_emission(&self, emission: Emission) -> Result<PendingAck, EmitError> {
        let kind = emission.kind();
        let run = &self.shared.request_id;
        let sequence = self.shared.enqueue(emission).await.inspect_err(|error| {
            debug!(target: super::TARGET, run, "type" = kind, %error, "not emitted");
        })?;
        debug!(target: super::TARGET, run, "type" = kind, sequence, "emitted");
        if self.shared.limits.window == 1 {
            self.shared.acknowledged_up_to(sequence + 1).await?;
        }
        Ok(PendingAck { sequence, shared: self.shared.clone() })
    }

    /// Returns the id of the run.
    pub fn request_id(&self) -> &str {
        &self.shared.request_id
    }

    /// Returns what is emitted, acknowledged and buffered.
    pub fn state(&self) -> EngineState {
        self.shared.state()
    }

    /// Returns true if [`signals`](Self::signals) or a heartbeat have reported a request to cancel the run.
    pub fn is_cancel_requested(&self) -> bool {
        self.shared.state().cancel_requested
    }

    /// Waits until everything emitted so far is acknowledged.
    pub async fn flush(&self) -> Result<(), EngineFailure> {
        self.shared.acknowledged_up_to(self.shared.next_sequence()).await
    }

    /// Flushes everything that was emitted, and stops the engine.
    ///
    /// It does not end the run: without [`emit_session_end`](Self::emit_session_end) a run on a server stays open for a
    /// [resumed](EngineBuilder::resume) engine, or until its lease expires.
    pub async fn close(&self) -> Result<(), EngineFailure> {
        self.shared.close(Closing::Requested);
        self.shared.stopped().await
    }

    /// Returns a stream of what people send to the run: answers and requests to cancel, each once.
    ///
    /// They are read from the run's start, so that a resumed engine gets again what its predecessor may not have handled.
    /// The stream ends with the run. Without a server it is empty.
    pub fn signals(&self) -> Signals {
        Signals::of(self)
    }
}

/// Stops the engine when its last handle is dropped.
#[derive(Debug)]
struct HandleGuard {
    shared: Arc<Shared>,
    linger: Duration,
}

impl Drop for HandleGuard {
    fn drop(&mut self) {
        self.shared.close(Closing::Dropped(Instant::now() + self.linger));
    }
}
