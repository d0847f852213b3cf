//! `push` of a producer that has a name: sent again until it is acknowledged, written once.

use bytes::Bytes;
use runwire_client::{Error, UploadReceipt};
use runwire_model::framing::{Framing, Unframer};
use tokio::sync::mpsc::error::TryRecvError;
use tokio::time::timeout;

use super::batch::{Batch, Waiting};
use super::push::{First, Reading, Unsent};
use super::writer::{BEAT_TIME, Fault, Writer};
use crate::failure::Failure;
use crate::hint;

/// Frames that wait for one that tells the dialect.
const UNDECIDED_FRAMES: usize = 16;

/// Sends the input in pieces that are acknowledged one by one, each as soon as it is there.
pub(super) async fn push(
    writer: Writer,
    first: First,
    mut input: Reading,
    end: bool,
) -> Result<UploadReceipt, Unsent> {
    let mut sending = Sending::new(writer, first.framing);
    sending.unframer.push(&first.bytes);
    loop {
        sending.cut().await?;
        let piece = match input.pieces.try_recv() {
            Ok(piece) => Some(piece?),
            Err(TryRecvError::Disconnected) => None,
            Err(TryRecvError::Empty) => {
                sending.write(false, false).await?;
                match timeout(BEAT_TIME, input.pieces.recv()).await {
                    Ok(piece) => piece.transpose()?,
                    Err(_) => {
                        sending.writer.place.beat().await;
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
    // An input without frames is a question too: how far the run is.
    if end || !sending.batch.is_empty() || sending.last.is_none() {
        sending.write(true, end).await?;
    }
    Ok(sending.written())
}

struct Sending {
    writer: Writer,
    unframer: Unframer,
    batch: Batch,
    last: Option<UploadReceipt>,
    accepted: u64,
    duplicates: u64,
}

impl Sending {
    fn new(writer: Writer, framing: Framing) -> Self {
        let (unframer, batch) = (Unframer::new(framing), Batch::new(framing));
        Self { writer, unframer, batch, last: None, accepted: 0, duplicates: 0 }
    }

    /// Cuts what has come, and writes what is worth a request.
    async fn cut(&mut self) -> Result<(), Unsent> {
        loop {
            match self.unframer.next() {
                None => return Ok(()),
                Some(Ok(frame)) => self.batch.push(Waiting {
                    line: frame.line,
                    name: frame.name.map(str::to_owned),
                    data: Bytes::copy_from_slice(frame.data),
                }),
                Some(Err(error)) => {
                    // What came before it stays written, as it does where the server finds the fault.
                    self.write(true, false).await?;
                    let code = error.code();
                    return Err(Unsent::NoFrame {
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

    /// Writes what waits; before the input is over, frames that do not tell their dialect may wait for more.
    async fn write(&mut self, is_over: bool, end: bool) -> Result<(), Unsent> {
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
            Err(Fault::Frame { at, problem } | Fault::Closed { at, problem }) => {
                let line = self.batch.take(at).map(|frame| frame.line);
                let accepted = self.accepted + problem.accepted().unwrap_or(0);
                let duplicates = self.duplicates + problem.duplicates().unwrap_or(0);
                Err(Unsent::Refused { problem, line, accepted, duplicates })
            }
            Err(Fault::Other(error)) if !is_over && self.may_wait(&error) => Ok(()),
            Err(Fault::Other(error)) => Err(Failure::from(error).into()),
        }
    }

    fn may_wait(&self, error: &Error) -> bool {
        let is_undecided = error.code() == Some("dialect_ambiguous") && self.last.is_none();
        is_undecided && self.batch.len() < UNDECIDED_FRAMES && !self.batch.is_full()
    }

    /// Tells what became of the whole input.
    fn written(self) -> UploadReceipt {
        let mut written = self.last.unwrap_or_default();
        (written.accepted, written.duplicates) = (self.accepted, self.duplicates);
        written.threads = self.writer.place.threads();
        written
    }
}
