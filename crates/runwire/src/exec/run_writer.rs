//! Writes a program's output to its run: in order, acknowledged, exactly once.
//!
//! Two producers write the run. One sends the program's frames unchanged. The other sends this command's own canonical
//! events: stray lines (lines that are not frames), and the end that follows from the program's exit. A producer has one
//! dialect, so there must be two; each waits for the other's acknowledgement, which keeps the order.

use bytes::Bytes;
use runwire_client::{Client, Error, Producer, WriteError};
use runwire_model::ErrorCode;
use runwire_model::dialect::Dialect;
use runwire_model::event::Foreign;
use runwire_model::framing::Framing;
use serde_json::json;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout_at};

use super::exit::ProgramOutcome;
use super::output_parser::OutputItem;
use crate::client::batch::{QueuedFrame, UploadBatch};
use crate::client::notes::Notes;
use crate::client::writer::{BatchWriter, HEARTBEAT_INTERVAL, WriteTarget};

/// Message id of the text of stray lines.
const TEXT_MESSAGE: &str = "stdout";
/// Epoch of a producer that no other one follows.
const FIRST_EPOCH: u64 = 0;
/// Limits the stray lines that wait for the program's first frame.
const EARLY_LINES: usize = 16;

/// Writes a program's output to its run.
#[derive(Debug)]
pub(super) struct RunWriter {
    program: ProducerQueue,
    own: ProducerQueue,
    /// Whether stray lines are the answer's text.
    stray_lines_are_text: bool,
    /// Stray lines before the first frame, which starts the run.
    early_lines: Vec<Bytes>,
    /// Whether the run's text limit is reached.
    is_text_full: bool,
    /// Whether the run has ended.
    is_closed: bool,
    /// Number of frames that the server refused.
    refused: u64,
    /// When the lease was last renewed, by a write or a heartbeat.
    last_heartbeat: Instant,
    notes: Notes,
}

/// A producer and its queued frames.
#[derive(Debug)]
struct ProducerQueue {
    writer: BatchWriter,
    batch: UploadBatch,
}

impl RunWriter {
    /// Creates a writer with two new producers.
    pub(super) fn new(client: &Client, run: &str, speaks: Option<Dialect>, text: bool, notes: Notes) -> Self {
        let unique = super::unique_name();
        let queue = |name: &str, dialect| {
            let target = WriteTarget::run(client, run);
            let mut upload = target.upload().framing(Framing::Sse);
            if let Some(dialect) = dialect {
                upload = upload.dialect(dialect);
            }
            let writer = BatchWriter::new(
                target,
                upload.into_producer(Producer::new(name, FIRST_EPOCH, 0)),
                notes.clone(),
            );
            ProducerQueue { writer, batch: UploadBatch::new(Framing::Sse) }
        };
        Self {
            program: queue(&unique, speaks),
            own: queue(&format!("{unique}-own"), Some(Dialect::Runwire)),
            stray_lines_are_text: text,
            early_lines: Vec::new(),
            is_text_full: false,
            is_closed: false,
            refused: 0,
            last_heartbeat: Instant::now(),
            notes,
        }
    }

    /// Writes output until the channel closes, and sends heartbeats while there is none.
    pub(super) async fn run(mut self, mut items: mpsc::Receiver<Vec<OutputItem>>) -> Result<Self, Error> {
        loop {
            // Only a write renews the lease.
            match timeout_at(self.last_heartbeat + HEARTBEAT_INTERVAL, items.recv()).await {
                Ok(Some(items)) => self.take(items).await?,
                Ok(None) => break,
                Err(_) => {
                    if !self.is_closed {
                        self.program.writer.target.send_heartbeats().await;
                    }
                    self.last_heartbeat = Instant::now();
                    continue;
                }
            }
            while let Ok(more) = items.try_recv() {
                self.take(more).await?;
            }
            self.flush_program().await?;
            self.flush_own().await?;
        }
        self.release_early();
        self.flush_own().await?;
        if self.refused > 1 {
            self.notes.say(&format!("{} frames in all were not taken as they are", self.refused));
        }
        Ok(self)
    }

    /// Ends the run, unless it has ended.
    pub(super) async fn end(mut self, outcome: &ProgramOutcome) -> Result<(), Error> {
        if self.is_closed {
            return Ok(());
        }
        if let Some(frame) = outcome.frame() {
            self.own.batch.push(queued(frame));
        }
        match self.own.writer.write(&self.own.batch, outcome.frame().is_none()).await {
            // The program or the server has ended the run.
            Ok(_) | Err(WriteError::Closed { .. }) => Ok(()),
            Err(error) => Err(error.into_inner()),
        }
    }

    async fn take(&mut self, items: Vec<OutputItem>) -> Result<(), Error> {
        for item in items {
            if self.is_closed {
                return Ok(());
            }
            match item {
                OutputItem::Dialect(dialect) => self.program.writer.producer.set_dialect(dialect),
                OutputItem::Frame(frame) => {
                    self.flush_own().await?;
                    self.program.batch.push(frame);
                    if self.program.batch.is_full() || !self.early_lines.is_empty() {
                        self.flush_program().await?;
                        self.release_early();
                    }
                }
                // Blank lines only matter in text.
                OutputItem::Stray(line) if line.is_empty() && !self.stray_lines_are_text => {}
                OutputItem::Stray(line) if self.is_early() => {
                    self.early_lines.push(line);
                    if self.early_lines.len() >= EARLY_LINES {
                        self.release_early();
                    }
                }
                OutputItem::Stray(line) => {
                    self.flush_program().await?;
                    self.stray(&line);
                    if self.own.batch.is_full() {
                        self.flush_own().await?;
                    }
                }
                OutputItem::TooLong { line } => {
                    let message = format!("line {line} of the program's output is too long, and is left out");
                    self.notes.say(&message);
                    let notice = json!({
                        "type": "notice",
                        "level": "warning",
                        "code": ErrorCode::FrameTooLong.as_str(),
                        "message": message,
                    });
                    self.flush_program().await?;
                    self.own.batch.push(queued(notice.to_string()));
                }
            }
        }
        Ok(())
    }

    /// Returns true if a stray line should wait for the first frame; text is shown at once.
    fn is_early(&self) -> bool {
        let nothing_yet = self.program.batch.is_empty() && self.own.batch.is_empty();
        let next = self.program.writer.producer.next() + self.own.writer.producer.next();
        !self.stray_lines_are_text && nothing_yet && next == 0
    }

    fn release_early(&mut self) {
        for line in std::mem::take(&mut self.early_lines) {
            self.stray(&line);
        }
    }

    /// Queues a stray line as text, or as a `foreign` event.
    fn stray(&mut self, line: &[u8]) {
        if self.stray_lines_are_text {
            if !self.is_text_full {
                let content = format!("{}\n", String::from_utf8_lossy(line));
                let delta = json!({"type": "text.delta", "message_id": TEXT_MESSAGE, "content": content});
                self.own.batch.push(queued(delta.to_string()));
            }
            return;
        }
        let dialect = self.program.writer.producer.dialect().unwrap_or(Dialect::Text).name();
        self.own.batch.push(queued(Foreign::canonical_frame(dialect, None, line)));
    }

    /// Writes the program's queued frames; a refused frame becomes a stray line.
    async fn flush_program(&mut self) -> Result<(), Error> {
        while !self.program.batch.is_empty() {
            match self.program.writer.write(&self.program.batch, false).await {
                Ok(_) => {
                    self.program.batch.clear();
                    self.last_heartbeat = Instant::now();
                }
                Err(WriteError::Frame { at, error: Error::Refused(problem) }) => {
                    let Some(frame) = self.program.batch.take(at) else { continue };
                    self.refused += 1;
                    if self.refused == 1 {
                        let why = problem.detail().or(problem.title()).unwrap_or("it was refused");
                        let kept = if self.stray_lines_are_text { "text" } else { "`foreign`" };
                        let why: String = why.chars().map(crate::table::sanitize).collect();
                        self.notes.say(&format!("line {}: {why}; it is kept as {kept}", frame.line));
                    }
                    self.stray(&frame.data);
                    self.flush_own().await?;
                }
                Err(WriteError::Closed { .. }) => self.close(),
                Err(error) => return Err(error.into_inner()),
            }
        }
        Ok(())
    }

    /// Writes this command's queued events; a refused one is dropped.
    async fn flush_own(&mut self) -> Result<(), Error> {
        while !self.own.batch.is_empty() {
            match self.own.writer.write(&self.own.batch, false).await {
                Ok(_) => {
                    self.own.batch.clear();
                    self.last_heartbeat = Instant::now();
                }
                Err(WriteError::Frame { at, error: Error::Refused(problem) }) => {
                    self.own.batch.take(at);
                    self.refused += 1;
                    if problem.code() == Some(ErrorCode::TooLarge) && self.stray_lines_are_text {
                        self.is_text_full = true;
                        self.own.batch.clear();
                        self.notes.say("the run takes no more text; the rest of it is left out");
                    }
                }
                Err(WriteError::Closed { .. }) => self.close(),
                Err(error) => return Err(error.into_inner()),
            }
        }
        Ok(())
    }

    fn close(&mut self) {
        if !std::mem::replace(&mut self.is_closed, true) {
            self.notes.say("the run has ended; what the program still writes is left out");
        }
        self.program.batch.clear();
        self.own.batch.clear();
    }
}

fn queued(frame: impl Into<Bytes>) -> QueuedFrame {
    QueuedFrame { line: 0, name: None, data: frame.into() }
}
