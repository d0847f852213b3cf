//! The state of an engine, and the handle that waits for an acknowledgement.

use std::sync::Arc;

use super::EngineFailure;
use super::shared::Shared;

/// A snapshot of an engine's state.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct EngineState {
    /// Number of events emitted, including those of earlier epochs of a resumed producer.
    pub emitted: u64,
    /// Number of acknowledged events.
    pub acknowledged: u64,
    /// Number of unacknowledged events.
    pub buffered: u64,
    /// Bytes of the unacknowledged frames.
    pub buffered_bytes: usize,
    /// The thread's `seq` after the last acknowledgement, if the sink is a server.
    pub last_seq: Option<u64>,
    /// Whether a request to cancel the run was received.
    pub cancel_requested: bool,
    /// The state of the sink's connection.
    pub connection: ConnectionState,
}

/// The state of a sink's connection.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum ConnectionState {
    /// Nothing was sent yet.
    Idle,
    /// The last batch was acknowledged.
    Connected,
    /// The last batch is being retried.
    Retrying {
        /// Number of attempts.
        attempts: u32,
        /// The last error.
        reason: String,
    },
    /// The engine has stopped.
    Failed(EngineFailure),
    /// The engine was closed, and everything is written.
    Closed,
}

/// A queued event: its sequence, and a way to wait for its acknowledgement. May be dropped.
#[derive(Debug, Clone)]
pub struct PendingAck {
    pub(super) sequence: u64,
    pub(super) shared: Arc<Shared>,
}

impl PendingAck {
    /// Returns the event's sequence in all that its producer has emitted, from 0.
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Waits until the event is acknowledged.
    pub async fn acknowledged(&self) -> Result<(), EngineFailure> {
        self.shared.acknowledged_up_to(self.sequence + 1).await
    }
}
