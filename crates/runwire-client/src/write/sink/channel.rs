//! The sink that sends frames to a channel.

use bytes::Bytes;
use tokio::sync::mpsc;

use super::{EngineSink, Receipt, SendBatch, SendError, SinkContext};
use crate::write::EngineFailure;

/// A frame of the `streaming-engine` dialect, as a [`ChannelSink`] sends it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Emitted {
    /// Its sequence, from 0.
    pub sequence: u64,
    /// Its JSON text.
    pub frame: Bytes,
}

/// Sends frames to a channel; a frame is acknowledged once the channel has it.
#[derive(Debug)]
pub struct ChannelSink(mpsc::Sender<Emitted>);

impl ChannelSink {
    /// Creates a sink and the receiver of a channel with this capacity.
    pub fn new(capacity: usize) -> (Self, mpsc::Receiver<Emitted>) {
        let (sender, receiver) = mpsc::channel(capacity.max(1));
        (Self(sender), receiver)
    }
}

impl From<mpsc::Sender<Emitted>> for ChannelSink {
    fn from(sender: mpsc::Sender<Emitted>) -> Self {
        Self(sender)
    }
}

impl EngineSink for ChannelSink {
    async fn send(&mut self, batch: &SendBatch, _: &SinkContext) -> Result<Receipt, SendError> {
        for (accepted, (sequence, frame)) in (0..).zip(batch.frames()) {
            let sent = self.0.send(Emitted { sequence, frame }).await;
            sent.map_err(|_| SendError { accepted, failure: EngineFailure::ReceiverDropped })?;
        }
        Ok(Receipt::default())
    }
}
