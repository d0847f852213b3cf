//! `push --producer`: uploads batches with retries; the producer's sequence makes each write exactly once.

use bytes::Bytes;
use runwire_client::{Error, UploadReceipt, WriteError};
use runwire_model::ErrorCode;
use runwire_model::framing::{Framing, Unframer, is_end_mark};
use tokio::sync::mpsc::error::TryRecvError;
use tokio::time::timeout;

use super::batch::{QueuedFrame, UploadBatch};
use super::push::{FirstBytes, InputChunks, PushError};
use super::writer::{BatchWriter, HEARTBEAT_INTERVAL};
use crate::failure::Failure;
use crate::hint;

/// Limits the frames that wait until the server can detect the dialect.
const UNDECIDED_FRAMES: usize = 16;

/// Sends the input in batches, each as soon as it is read.
pub(super) async fn push(
    writer: BatchWriter,
    first: FirstBytes,
    mut input: InputChunks,
    end: bool,
) -> Result<UploadReceipt, PushError> {
    let mut sending = ProducerPush::new(writer, first.framing);
    sending.unframer.push(&first.bytes);
    loop {
        sending.cut().await?;
        let piece = match input.pieces.try_recv() {
            Ok(piece) => Some(piece?),
            Err(TryRecvError::Disconnected) => None,
            Err(TryRecvError::Empty) => {
                sending.write(false, false).await?;
                match timeout(HEARTBEAT_INTERVAL, input.pieces.recv()).await {
                    Ok(piece) => piece.transpose()?,
                    Err(_) => {
                        sending.writer.target.send_heartbeats().await;
                        continue;
                    }
                }
            }
        };
        match piece {
            Some(piece) => sending.unframer.push(&piece),
            None => break,
        }
    }
    sending.unframer.finish();
    sending.cut().await?;
    // An empty input still asks the server for the run's position.
    if end || !sending.batch.is_empty() || sending.last.is_none() {
        sending.write(true, end).await?;
    }
    Ok(sending.written())
}

struct ProducerPush {
    writer: BatchWriter,
    unframer: Unframer,
    batch: UploadBatch,
    last: Option<UploadReceipt>,
    accepted: u64,
    duplicates: u64,
}

impl ProducerPush {
    fn new(writer: BatchWriter, framing: Framing) -> Self {
        let (unframer, batch) = (Unframer::new(framing), UploadBatch::new(framing));
        Self { writer, unframer, batch, last: None, accepted: 0, duplicates: 0 }
    }

    /// Splits the received bytes into frames, and writes full batches.
    async fn cut(&mut self) -> Result<(), PushError> {
        loop {
            match self.unframer.next() {
                None => return Ok(()),
                Some(Ok(frame)) if is_end_mark(frame.data) => {}
                Some(Ok(frame)) => self.batch.push(QueuedFrame {
                    line: frame.line,
                    name: frame.name.map(str::to_owned),
                    data: Bytes::copy_from_slice(frame.data),
                }),
                Some(Err(error)) => {
                    // Write the frames before it, as the server would.
                    self.write(true, false).await?;
                    let code = error.code();
                    return Err(PushError::NoFrame {
                        problem: format!("line {}: {error} [{code}]", error.line()),
                        hint: hint::for_code(code),
                        accepted: self.accepted,
                    });
                }
            }
            if self.batch.is_full() {
                self.write(false, false).await?;
            }
        }
    }

    /// Writes the batch; before the input ends, frames of an undetected dialect may wait for more.
    async fn write(&mut self, is_over: bool, end: bool) -> Result<(), PushError> {
        if self.batch.is_empty() && !is_over {
            return Ok(());
        }
        match self.writer.write(&self.batch, end).await {
            Ok(written) => {
                self.accepted += written.accepted;
                self.duplicates += written.duplicates;
                self.last = Some(written);
                self.batch.clear();
                Ok(())
            }
            Err(
                WriteError::Frame { at, error: Error::Refused(problem) }
                | WriteError::Closed { at, error: Error::Refused(problem) },
            ) => {
                let line = self.batch.take(at).map(|frame| frame.line);
                let accepted = self.accepted + problem.accepted().unwrap_or(0);
                let duplicates = self.duplicates + problem.duplicates().unwrap_or(0);
                Err(PushError::Refused { problem, line, accepted, duplicates })
            }
            Err(error) => match error.into_inner() {
                error if !is_over && self.may_wait(&error) => Ok(()),
                error => Err(Failure::from(error).into()),
            },
        }
    }

    fn may_wait(&self, error: &Error) -> bool {
        let is_undecided = error.code() == Some(ErrorCode::DialectAmbiguous) && self.last.is_none();
        is_undecided && self.batch.len() < UNDECIDED_FRAMES && !self.batch.is_full()
    }

    /// Returns the receipt of the whole input.
    fn written(self) -> UploadReceipt {
        let mut written = self.last.unwrap_or_default();
        (written.accepted, written.duplicates) = (self.accepted, self.duplicates);
        written.threads = self.writer.target.threads();
        written
    }
}
