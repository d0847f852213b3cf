//! The engine: one handle for everything that a run says.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use tracing::debug;

use super::frame::Says;
use super::shared::{Closing, Shared};
use super::signals::Signals;
use super::state::{EngineState, Sent};
use super::{EmitError, EngineBuilder, Failure, Sink};
use crate::Client;

/// Writes one run: a method for everything that can happen in it.
///
/// Cheap to clone; clones write to the same run, in the order of their calls. See the [module](super) for what is
/// sent, when, and what happens when it cannot be.
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
    /// Where people's answers are read, where there is such a place.
    pub(super) client: Option<Client>,
    _alive: Arc<Alive>,
}

impl StreamingEngine {
    /// Begins an engine for a run: `request_id` is the run's id.
    pub fn builder(request_id: impl Into<String>) -> EngineBuilder {
        EngineBuilder::new(request_id.into())
    }

    pub(super) fn start(shared: Shared, sink: impl Sink, client: Option<Client>, linger: Duration) -> Self {
        let shared = Arc::new(shared);
        tokio::spawn(super::pump::run(shared.clone(), sink));
        let alive = Alive { shared: shared.clone(), linger };
        Self { shared, client, _alive: Arc::new(alive) }
    }

    pub(super) async fn say(&self, says: Says) -> Result<Sent, EmitError> {
        let kind = says.kind();
        let run = &self.shared.request_id;
        let sequence = self.shared.put(says).await.inspect_err(|error| {
            debug!(target: super::TARGET, run, "type" = kind, %error, "not emitted");
        })?;
        debug!(target: super::TARGET, run, "type" = kind, sequence, "emitted");
        if self.shared.bounds.window == 1 {
            self.shared.acknowledged_up_to(sequence + 1).await?;
        }
        Ok(Sent { sequence, shared: self.shared.clone() })
    }

    /// Tells the id of the run.
    pub fn request_id(&self) -> &str {
        &self.shared.request_id
    }

    /// Tells how far the engine is.
    pub fn state(&self) -> EngineState {
        self.shared.state()
    }

    /// Tells whether somebody asked the run to stop, as far as it was heard: by [`signals`](Self::signals), or
    /// by a heartbeat.
    pub fn is_cancel_requested(&self) -> bool {
        self.shared.state().cancel_requested
    }

    /// Waits until everything that was emitted so far is acknowledged.
    pub async fn flush(&self) -> Result<(), Failure> {
        self.shared.acknowledged_up_to(self.shared.next_sequence()).await
    }

    /// Writes everything that was emitted, and ends the engine; nothing may be emitted after.
    ///
    /// Ends the run only if [`emit_session_end`](Self::emit_session_end) did. A run on a server stays open
    /// otherwise, for a [resumed](EngineBuilder::resume) engine or until its lease runs out.
    pub async fn close(&self) -> Result<(), Failure> {
        self.shared.close(Closing::Asked);
        self.shared.stopped().await
    }

    /// Gives what people send back to the run: answers and requests to stop, each once.
    ///
    /// They are read from the run's log, from its start, so that a resumed engine hears again what its predecessor
    /// may not have acted on. The stream ends with the run. Of an engine that does not write to a server it is empty.
    pub fn signals(&self) -> Signals {
        Signals::of(self)
    }
}

/// Ends the engine when its last handle is gone.
#[derive(Debug)]
struct Alive {
    shared: Arc<Shared>,
    linger: Duration,
}

impl Drop for Alive {
    fn drop(&mut self) {
        self.shared.close(Closing::Dropped(Instant::now() + self.linger));
    }
}
