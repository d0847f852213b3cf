//! Uploads of one producer: batches that are retried, each frame written once.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use runwire_model::ErrorCode;
use runwire_model::dialect::Dialect;
use runwire_producer::{
    Ack, AppendError, Backoff, Producer, RetryPolicy, Stamp, WriteDestination, WriteError,
};
use tokio::time::timeout;

use super::upload::{Upload, UploadReceipt};
use crate::client::Client;
use crate::error::Error;
use crate::problem::Problem;

/// The frames of one batch, in the framing of their upload.
#[derive(Debug, Clone, Default)]
pub struct EncodedFrames {
    /// All of them, one after another.
    pub body: Bytes,
    /// How many there are.
    pub count: u64,
}

/// Writes the frames of one producer: in order, and each once, however often a batch must be sent.
#[derive(Debug)]
pub struct ProducerWriter {
    producer: Producer,
    server: ServerDestination,
    retry: RetryPolicy,
}

impl Upload {
    /// Writes batches as a producer, whose next frame has an index; temporary errors are retried without end.
    pub fn into_producer(self, producer: Producer) -> ProducerWriter {
        let retry = RetryPolicy { backoff: self.client().backoff(), give_up_after: None };
        let server = ServerDestination { upload: self, must_be_reached: false, on_retry: None };
        ProducerWriter { producer, server, retry }
    }
}

impl ProducerWriter {
    /// Limits how long a batch is retried.
    #[must_use]
    pub fn give_up_after(mut self, time: Option<Duration>) -> Self {
        self.retry.give_up_after = time;
        self
    }

    /// Makes a server that cannot be reached an error at once, until it was reached.
    #[must_use]
    pub fn fail_unless_reached(mut self) -> Self {
        self.server.must_be_reached = true;
        self
    }

    /// Sets what is called after each temporary error, with the number of attempts so far.
    #[must_use]
    pub fn on_retry(mut self, call: impl FnMut(u32, &Error) + Send + Sync + 'static) -> Self {
        self.server.on_retry = Some(Box::new(call));
        self
    }

    /// Sets the dialect of the frames.
    pub fn set_dialect(&mut self, dialect: Dialect) {
        self.server.upload.set_dialect(dialect);
    }

    /// Returns the dialect of the frames, if it is set.
    pub fn dialect(&self) -> Option<Dialect> {
        self.server.upload.dialect_name()
    }

    /// Returns the index of the next frame: how many are written.
    pub fn next(&self) -> u64 {
        self.producer.next()
    }

    /// Writes a batch, and returns once it is durable; `end` ends the run after it.
    pub async fn write(
        &mut self,
        frames: &EncodedFrames,
        end: bool,
    ) -> Result<UploadReceipt, WriteError<Error>> {
        self.producer.write(&mut self.server, frames, end, &self.retry).await
    }
}

impl Client {
    /// Returns the delays between attempts.
    pub(crate) fn backoff(&self) -> Backoff {
        Backoff::new(self.retry.initial_delay, self.retry.max_delay)
    }
}

/// Is called after a temporary error, with the number of attempts so far.
type OnRetry = Box<dyn FnMut(u32, &Error) + Send + Sync>;

/// A server as the destination of a producer.
struct ServerDestination {
    upload: Upload,
    /// Whether a server that was never reached is an error at once.
    must_be_reached: bool,
    on_retry: Option<OnRetry>,
}

impl WriteDestination for ServerDestination {
    type Frames = EncodedFrames;
    type Receipt = UploadReceipt;
    type Error = Error;

    fn count(frames: &EncodedFrames) -> u64 {
        frames.count
    }

    async fn append(
        &mut self,
        stamp: &Stamp,
        frames: &EncodedFrames,
        end: bool,
    ) -> Result<Ack<UploadReceipt>, AppendError<Error>> {
        let client = self.upload.client();
        let sent = timeout(client.retry.idle_timeout, self.upload.post(stamp, frames.body.clone(), end));
        let error = match sent.await.unwrap_or_else(|_| Err(client.http.idle_error())) {
            Ok(receipt) => {
                self.must_be_reached = false;
                let (accepted, duplicates) = (receipt.accepted, receipt.duplicates);
                return Ok(Ack { accepted, duplicates, receipt });
            }
            Err(error) => error,
        };
        let is_absent = self.must_be_reached && matches!(error, Error::Unreachable { .. });
        if error.is_temporary() && !is_absent {
            self.must_be_reached = false;
            let retry_after = error.retry_after();
            return Err(AppendError::Temporary { error, retry_after });
        }
        Err(permanent(error))
    }

    fn miscounted(&self, frames: u64, counted: u64) -> Error {
        self.upload.client().http.protocol_error(format!("of {frames} frames it counts {counted}"))
    }

    fn on_retry(&mut self, attempts: u32, error: &Error) {
        if let Some(call) = &mut self.on_retry {
            call(attempts, error);
        }
    }
}

fn permanent(error: Error) -> AppendError<Error> {
    let Error::Refused(problem) = &error else { return AppendError::Permanent { written: 0, error } };
    let written = problem.accepted().unwrap_or(0).saturating_add(problem.duplicates().unwrap_or(0));
    match problem.code() {
        Some(ErrorCode::RunClosed) => AppendError::Closed { written, error },
        Some(ErrorCode::ProducerFenced) => AppendError::Fenced(error),
        Some(ErrorCode::DialectPinned | ErrorCode::DialectAmbiguous | ErrorCode::ProducerGap) => {
            AppendError::Permanent { written, error }
        }
        _ if is_of_a_frame(problem) => AppendError::Frame { written, error },
        _ => AppendError::Permanent { written, error },
    }
}

/// Returns true if a problem is about one frame. It has a line then, which one about the run, thread or producer has not.
fn is_of_a_frame(problem: &Problem) -> bool {
    problem.line().is_some() && matches!(problem.status(), 400 | 413 | 422)
}

impl fmt::Debug for ServerDestination {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("ServerDestination").field("upload", &self.upload).finish_non_exhaustive()
    }
}
