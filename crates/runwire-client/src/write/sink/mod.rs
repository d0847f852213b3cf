//! Where an engine writes: a server, standard output, a file, a channel, or something of one's own.

mod channel;
mod output;
mod server;

use std::sync::Arc;
use std::time::Duration;

pub use channel::{ChannelSink, Emitted};
pub use output::OutputSink;
pub(super) use server::{Producer, ServerSink};

use super::Failure;
use super::batch::Batch;
use super::shared::Shared;
use super::state::Connection;

/// Something that an engine writes to.
///
/// One batch is under way at a time. What fails is not sent again by the engine: a sink that can try again does
/// so itself, and tells the [`Link`].
pub trait Sink: Send + 'static {
    /// Writes a batch, and returns once it is safe.
    fn send(&mut self, batch: &Batch, link: &Link)
    -> impl Future<Output = Result<Receipt, SendError>> + Send;

    /// Tells how long the sink may be left alone before [`Sink::beat`] is called; without a time it never is.
    fn heartbeat(&self) -> Option<Duration> {
        None
    }

    /// Shows that the agent lives although it has nothing to say.
    fn beat(&mut self, link: &Link) -> impl Future<Output = Result<(), Failure>> + Send {
        let _ = link;
        async { Ok(()) }
    }

    /// Ends what is written; nothing follows.
    fn close(&mut self) -> impl Future<Output = Result<(), Failure>> + Send {
        async { Ok(()) }
    }
}

/// What a sink tells of a batch that is safe.
#[derive(Debug, Clone, Copy, Default)]
pub struct Receipt {
    /// The `seq` that the thread has now, where there is one.
    pub last_seq: Option<u64>,
}

/// A batch that could not be written, or not wholly.
#[derive(Debug, Clone)]
pub struct SendError {
    /// How many of its frames are written nevertheless, from the first.
    pub accepted: u64,
    /// Why the rest is not.
    pub failure: Failure,
}

impl From<Failure> for SendError {
    fn from(failure: Failure) -> Self {
        Self { accepted: 0, failure }
    }
}

impl From<std::io::Error> for SendError {
    fn from(error: std::io::Error) -> Self {
        Failure::from(error).into()
    }
}

/// What a sink tells its engine while it works.
#[derive(Debug)]
pub struct Link(pub(super) Arc<Shared>);

impl Link {
    /// Says that the batch is being sent again, and why.
    pub fn retrying(&self, attempts: u32, reason: impl ToString) {
        let reason = reason.to_string();
        tracing::warn!(target: super::TARGET, run = self.0.request_id, attempts, reason, "trying again");
        self.0.set_connection(Connection::Retrying { attempts, reason });
    }

    /// Says that somebody asked the run to stop.
    pub fn cancel_requested(&self) {
        self.0.set_cancel_requested();
    }

    /// Tells the thread that the run shall be in.
    pub(super) fn thread(&self) -> Option<String> {
        self.0.thread()
    }

    /// Says that the sink answers.
    pub(super) fn connected(&self) {
        self.0.set_connection(Connection::Connected);
    }

    /// Tells whether the session has ended, so that the run needs no more signs of life.
    pub(super) fn has_ended(&self) -> bool {
        self.0.has_ended()
    }
}
