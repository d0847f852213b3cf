//! A producer that writes to the log of this process.

use std::sync::Arc;

use runwire_log::{
    Append, AppendFault, Appended, CheckMode, FrameBatch, Log, LogError, RunKey, Stamp, Target,
};
use runwire_model::ErrorCode;
use runwire_model::dialect::Dialect;
use runwire_model::run::WholePolicy;
use runwire_producer::{Ack, AppendError, Producer, RetryPolicy, WriteDestination, WriteError};
use tokio::sync::watch;

use runwire_log::outage::{OUTAGE_BACKOFF, is_outage, shutdown_begun};

/// A producer of a run, and the log that it writes to.
pub(super) struct LogProducer {
    pub(super) producer: Producer,
    pub(super) destination: LogDestination,
}

/// A run in the log as the destination of a producer.
pub(super) struct LogDestination {
    pub(super) log: Arc<dyn Log>,
    pub(super) run: RunKey,
    pub(super) dialect: Dialect,
    pub(super) check: CheckMode,
    pub(super) whole: WholePolicy,
    /// The last record that its writes are known to have reached.
    pub(super) last_seq: u64,
    /// Ends retries during an outage; none means no retries.
    pub(super) shutdown: Option<watch::Receiver<bool>>,
}

/// Why frames were not written to the log.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum LogWriteError {
    /// The log failed, or refuses the producer.
    #[error(transparent)]
    Log(#[from] LogError),
    /// A frame is refused.
    #[error("{}", .0.problem)]
    Frame(Box<AppendFault>),
}

impl LogProducer {
    /// Writes frames, and retries during outages until the server stops.
    pub(super) async fn write(
        &mut self,
        frames: &FrameBatch,
        end: bool,
    ) -> Result<(), WriteError<LogWriteError>> {
        let retry = match self.destination.shutdown {
            Some(_) => RetryPolicy { backoff: OUTAGE_BACKOFF, give_up_after: None },
            None => RetryPolicy::never(),
        };
        self.producer.write(&mut self.destination, frames, end, &retry).await
    }

    /// Makes an older epoch of the producer unable to write.
    pub(super) async fn fence(&self) -> Result<(), LogError> {
        let none = FrameBatch::default();
        self.destination.append_once(self.producer.stamp(), &none, false).await.map(drop)
    }
}

impl LogDestination {
    async fn append_once(&self, stamp: &Stamp, frames: &FrameBatch, end: bool) -> Result<Appended, LogError> {
        let append = Append {
            target: Target::Run(self.run.clone()),
            thread: None,
            dialect: Some(self.dialect),
            stamp: Some(stamp.clone()),
            frames: frames.clone(),
            end,
            check: self.check,
            whole: self.whole,
            parallel: false,
        };
        self.log.append(append).await
    }
}

impl WriteDestination for LogDestination {
    type Frames = FrameBatch;
    type Receipt = ();
    type Error = LogWriteError;

    fn count(frames: &FrameBatch) -> u64 {
        frames.len() as u64
    }

    async fn append(
        &mut self,
        stamp: &Stamp,
        frames: &FrameBatch,
        end: bool,
    ) -> Result<Ack<()>, AppendError<LogWriteError>> {
        match self.append_once(stamp, frames, end).await {
            Ok(appended) => {
                // Without frames it says what others have written.
                if end || !frames.is_empty() {
                    self.last_seq = self.last_seq.max(appended.last_seq);
                }
                let Appended { accepted, duplicates, fault, .. } = appended;
                let Some(fault) = fault else { return Ok(Ack { accepted, duplicates, receipt: () }) };
                let (written, is_closed) =
                    (accepted + duplicates, fault.problem.code() == ErrorCode::RunClosed);
                let error = LogWriteError::Frame(Box::new(fault));
                Err(match is_closed {
                    true => AppendError::Closed { written, error },
                    false => AppendError::Frame { written, error },
                })
            }
            Err(error) => Err(match error {
                error if is_outage(&error) => {
                    AppendError::Temporary { error: error.into(), retry_after: None }
                }
                error @ LogError::ThreadDeleted(_) => AppendError::Closed { written: 0, error: error.into() },
                error @ LogError::ProducerFenced { .. } => AppendError::Fenced(error.into()),
                error => {
                    if let LogError::Damaged(_) = error {
                        tracing::error!(run = &*self.run.id, %error, "the store refuses what an agent says");
                    }
                    AppendError::Permanent { written: 0, error: error.into() }
                }
            }),
        }
    }

    fn miscounted(&self, frames: u64, counted: u64) -> LogWriteError {
        LogError::Damaged(format!("of {frames} frames the log counts {counted}")).into()
    }

    fn on_retry(&mut self, attempts: u32, error: &LogWriteError) {
        tracing::debug!(run = &*self.run.id, attempts, %error, "waiting for the store");
    }

    async fn stopped(&self) {
        match &self.shutdown {
            Some(shutdown) => shutdown_begun(shutdown).await,
            None => std::future::pending().await,
        }
    }
}
