//! The sinks of an engine: a server, standard output, a file, a channel, or a custom one.

mod channel;
mod output;
mod server;

use std::sync::Arc;
use std::time::Duration;

pub use channel::{ChannelSink, Emitted};
pub use output::OutputSink;
pub(super) use server::ServerSink;

use super::EngineFailure;
use super::queue::SendBatch;
use super::shared::Shared;
use super::state::ConnectionState;

/// The destination of an engine's frames.
///
/// One batch is in flight at a time. The engine does not retry: a sink that can does so itself, and reports it to the
/// [`SinkContext`].
pub trait EngineSink: Send + 'static {
    /// Writes a batch, and returns once it is durable.
    fn send(
        &mut self,
        batch: &SendBatch,
        context: &SinkContext,
    ) -> impl Future<Output = Result<Receipt, SendError>> + Send;

    /// Returns the interval of [`EngineSink::send_heartbeat`]; `None` disables heartbeats.
    fn heartbeat_interval(&self) -> Option<Duration> {
        None
    }

    /// Sends a heartbeat while there is nothing to write.
    fn send_heartbeat(
        &mut self,
        context: &SinkContext,
    ) -> impl Future<Output = Result<(), EngineFailure>> + Send {
        let _ = context;
        async { Ok(()) }
    }

    /// Closes the output after the last batch.
    fn close(&mut self) -> impl Future<Output = Result<(), EngineFailure>> + Send {
        async { Ok(()) }
    }
}

/// The acknowledgement of a batch.
#[derive(Debug, Clone, Copy, Default)]
pub struct Receipt {
    /// The thread's `seq` after the batch, if the sink is a server.
    pub last_seq: Option<u64>,
}

/// A batch that could not be written completely.
#[derive(Debug, Clone)]
pub struct SendError {
    /// Number of frames that are written, from the first.
    pub accepted: u64,
    /// Why the rest is not written.
    pub failure: EngineFailure,
}

impl From<EngineFailure> for SendError {
    fn from(failure: EngineFailure) -> Self {
        Self { accepted: 0, failure }
    }
}

impl From<std::io::Error> for SendError {
    fn from(error: std::io::Error) -> Self {
        EngineFailure::from(error).into()
    }
}

/// Lets a sink report to its engine.
#[derive(Debug)]
pub struct SinkContext(pub(super) Arc<Shared>);

impl SinkContext {
    /// Reports that the batch is being retried, and why.
    pub fn retrying(&self, attempts: u32, reason: impl ToString) {
        let reason = reason.to_string();
        tracing::warn!(target: super::TARGET, run = self.0.request_id, attempts, reason, "trying again");
        self.0.set_connection(ConnectionState::Retrying { attempts, reason });
    }

    /// Reports a request to cancel the run.
    pub fn cancel_requested(&self) {
        self.0.set_cancel_requested();
    }

    /// Returns the thread of a new run.
    pub(super) fn thread(&self) -> Option<String> {
        self.0.thread()
    }

    /// Reports that the sink answers.
    pub(super) fn connected(&self) {
        self.0.set_connection(ConnectionState::Connected);
    }

    /// Returns true if the session has ended, so that the run needs no more heartbeats.
    pub(super) fn has_ended(&self) -> bool {
        self.0.has_ended()
    }
}
