//! How far an engine is.

use std::sync::Arc;

use super::Failure;
use super::shared::Shared;

/// How far an engine is, at one moment.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct EngineState {
    /// How many events were emitted; of a resumed producer, with those of its earlier lives.
    pub emitted: u64,
    /// How many of them are known to be written.
    pub acknowledged: u64,
    /// How many of them are not.
    pub buffered: u64,
    /// Bytes of the frames that are not.
    pub buffered_bytes: usize,
    /// The `seq` that the thread had after the last acknowledgement, where a server tells it.
    pub last_seq: Option<u64>,
    /// Whether somebody asked the run to stop, as far as it was heard.
    pub cancel_requested: bool,
    /// How the engine stands with what it writes to.
    pub connection: Connection,
}

/// How an engine stands with what it writes to.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Connection {
    /// Nothing was sent yet.
    Idle,
    /// What was sent last was acknowledged.
    Connected,
    /// What was sent last is being sent again.
    Retrying {
        /// How often it was tried.
        attempts: u32,
        /// What went wrong last.
        reason: String,
    },
    /// The engine has stopped, and takes no more events.
    Failed(Failure),
    /// The engine was closed, and everything is written.
    Closed,
}

/// An event that was taken: its place, and a way to wait for its acknowledgement. It may as well be dropped.
#[derive(Debug, Clone)]
pub struct Sent {
    pub(super) sequence: u64,
    pub(super) shared: Arc<Shared>,
}

impl Sent {
    /// Tells the event's sequence in everything that its producer has emitted, from 0.
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Waits until the event is known to be written.
    pub async fn acknowledged(&self) -> Result<(), Failure> {
        self.shared.acknowledged_up_to(self.sequence + 1).await
    }
}
