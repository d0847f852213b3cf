//! Frames handed to another part of the program.

use bytes::Bytes;
use tokio::sync::mpsc;

use super::{Batch, Link, Receipt, SendError, Sink};
use crate::write::Failure;

/// A frame of the `streaming-engine` dialect, as a [`ChannelSink`] hands it over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Emitted {
    /// Its sequence, from 0.
    pub sequence: u64,
    /// Its JSON text.
    pub frame: Bytes,
}

/// Hands the frames to whoever receives from a channel; a frame counts as acknowledged once it is in.
#[derive(Debug)]
pub struct ChannelSink(mpsc::Sender<Emitted>);

impl ChannelSink {
    /// Makes a sink with room for so many frames, and the other end of the channel.
    pub fn new(room: usize) -> (Self, mpsc::Receiver<Emitted>) {
        let (sender, receiver) = mpsc::channel(room.max(1));
        (Self(sender), receiver)
    }
}

impl From<mpsc::Sender<Emitted>> for ChannelSink {
    fn from(sender: mpsc::Sender<Emitted>) -> Self {
        Self(sender)
    }
}

impl Sink for ChannelSink {
    async fn send(&mut self, batch: &Batch, _: &Link) -> Result<Receipt, SendError> {
        for (accepted, (sequence, frame)) in (0..).zip(batch.frames()) {
            let sent = self.0.send(Emitted { sequence, frame }).await;
            sent.map_err(|_| SendError { accepted, failure: Failure::Unheard })?;
        }
        Ok(Receipt::default())
    }
}
