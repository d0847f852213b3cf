//! A program's output on its way to the run: in order, acknowledged, each frame once.
//!
//! Two producers write the run. One is the program: its frames go as they are. The other is this command, in
//! canonical events: lines that are no frame, and the end that the program's exit decides. A producer has one
//! dialect, so they cannot be one; that one waits for the other's acknowledgement keeps the order.

use bytes::Bytes;
use runwire_client::{Client, Error};
use runwire_model::dialect::Dialect;
use runwire_model::framing::Framing;
use runwire_model::json::Object;
use serde_json::json;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout_at};

use super::ending::Ending;
use super::sorter::Said;
use crate::client::batch::{Batch, Waiting};
use crate::client::notes::Notes;
use crate::client::writer::{BEAT_TIME, Fault, Place, Producer, Writer};

/// The message that stray lines become.
const TEXT_MESSAGE: &str = "stdout";
/// Stray lines that wait for the program's first frame.
const EARLY_LINES: usize = 16;

/// Writes what a program says.
#[derive(Debug)]
pub(super) struct Delivery {
    program: Lane,
    own: Lane,
    /// Whether lines that are no frame are the answer's text.
    strays_are_text: bool,
    /// Lines before the first frame: that one starts the run, and says with what.
    early: Vec<Bytes>,
    /// Whether the run takes no more text.
    is_full_of_text: bool,
    /// Whether the run has ended, so that nothing more can be written.
    is_closed: bool,
    /// Frames that the server did not take.
    refused: u64,
    /// When the server last heard of the program.
    last_sign: Instant,
    notes: Notes,
}

/// One producer, and its frames that wait.
#[derive(Debug)]
struct Lane {
    writer: Writer,
    batch: Batch,
}

impl Delivery {
    /// Makes a delivery to a run, whose producers have names that nobody had before.
    pub(super) fn new(client: &Client, run: &str, speaks: Option<Dialect>, text: bool, notes: Notes) -> Self {
        let unique = super::unique_name();
        let lane = |name: String, dialect, framing| {
            let place = Place::run(client, run);
            let producer = Producer { id: name, epoch: None, next: 0 };
            let notes = notes.clone();
            let writer = Writer {
                place,
                dialect,
                thread: None,
                parallel: false,
                producer,
                patience: None,
                was_there: true,
                notes,
            };
            Lane { writer, batch: Batch::new(framing) }
        };
        Self {
            program: lane(unique.clone(), speaks, Framing::Sse),
            own: lane(format!("{unique}-own"), Some(Dialect::Runwire), Framing::Sse),
            strays_are_text: text,
            early: Vec::new(),
            is_full_of_text: false,
            is_closed: false,
            refused: 0,
            last_sign: Instant::now(),
            notes,
        }
    }

    /// Writes what comes until nothing more does, and keeps the lease meanwhile.
    pub(super) async fn follow(mut self, mut said: mpsc::Receiver<Vec<Said>>) -> Result<Self, Error> {
        loop {
            // What is held back or left out is no sign of life; what is written is.
            match timeout_at(self.last_sign + BEAT_TIME, said.recv()).await {
                Ok(Some(piece)) => self.take(piece).await?,
                Ok(None) => break,
                Err(_) => {
                    if !self.is_closed {
                        self.program.writer.place.beat().await;
                    }
                    self.last_sign = Instant::now();
                    continue;
                }
            }
            while let Ok(piece) = said.try_recv() {
                self.take(piece).await?;
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
    pub(super) async fn end(mut self, ending: &Ending) -> Result<(), Error> {
        if self.is_closed {
            return Ok(());
        }
        if let Some(frame) = ending.frame() {
            self.own.batch.push(waiting(frame));
        }
        match self.own.writer.write(&self.own.batch, ending.frame().is_none()).await {
            // The program, or the server, has said the end.
            Ok(_) | Err(Fault::Closed { .. }) => Ok(()),
            Err(Fault::Frame { problem, .. }) => Err(Error::Refused(problem)),
            Err(Fault::Other(error)) => Err(error),
        }
    }

    async fn take(&mut self, piece: Vec<Said>) -> Result<(), Error> {
        for said in piece {
            if self.is_closed {
                return Ok(());
            }
            match said {
                Said::Speaks(dialect) => self.program.writer.dialect = Some(dialect),
                Said::Frame(frame) => {
                    self.flush_own().await?;
                    self.program.batch.push(frame);
                    if self.program.batch.is_full() || !self.early.is_empty() {
                        self.flush_program().await?;
                        self.release_early();
                    }
                }
                // Only a text has blank lines.
                Said::Stray(line) if line.is_empty() && !self.strays_are_text => {}
                Said::Stray(line) if self.is_early() => {
                    self.early.push(line);
                    if self.early.len() >= EARLY_LINES {
                        self.release_early();
                    }
                }
                Said::Stray(line) => {
                    self.flush_program().await?;
                    self.stray(&line);
                    if self.own.batch.is_full() {
                        self.flush_own().await?;
                    }
                }
                Said::TooLong { line } => {
                    let message = format!("line {line} of the program's output is too long, and is left out");
                    self.notes.say(&message);
                    let notice = json!({
                        "type": "notice",
                        "level": "warning",
                        "code": "frame_too_long",
                        "message": message,
                    });
                    self.flush_program().await?;
                    self.own.batch.push(waiting(notice.to_string()));
                }
            }
        }
        Ok(())
    }

    /// Tells whether a line may wait for the first frame; text is for people, who do not.
    fn is_early(&self) -> bool {
        let nothing_yet = self.program.batch.is_empty() && self.own.batch.is_empty();
        let next = self.program.writer.producer.next + self.own.writer.producer.next;
        !self.strays_are_text && nothing_yet && next == 0
    }

    fn release_early(&mut self) {
        for line in std::mem::take(&mut self.early) {
            self.stray(&line);
        }
    }

    /// Takes a line that is no frame: as text, or as the foreign thing that it is.
    fn stray(&mut self, line: &[u8]) {
        if self.strays_are_text {
            if !self.is_full_of_text {
                let content = format!("{}\n", String::from_utf8_lossy(line));
                let delta = json!({"type": "text.delta", "message_id": TEXT_MESSAGE, "content": content});
                self.own.batch.push(waiting(delta.to_string()));
            }
            return;
        }
        let text = String::from_utf8_lossy(line);
        // A value that no reader would take as JSON goes on as its text.
        let frame = match Object::parse(line) {
            Ok(_) => text.into_owned(),
            Err(_) => json!(text).to_string(),
        };
        let dialect = self.program.writer.dialect.unwrap_or(Dialect::Text).name();
        let foreign = format!(r#"{{"type":"foreign","dialect":"{dialect}","frame":{frame}}}"#);
        self.own.batch.push(waiting(foreign));
    }

    /// Writes the program's frames; what the server does not take of them goes on as a stray line.
    async fn flush_program(&mut self) -> Result<(), Error> {
        while !self.program.batch.is_empty() {
            match self.program.writer.write(&self.program.batch, false).await {
                Ok(_) => {
                    self.program.batch.clear();
                    self.last_sign = Instant::now();
                }
                Err(Fault::Frame { at, problem }) => {
                    let Some(frame) = self.program.batch.take(at) else { continue };
                    self.refused += 1;
                    if self.refused == 1 {
                        let why = problem.detail().or(problem.title()).unwrap_or("it was refused");
                        let kept = if self.strays_are_text { "text" } else { "`foreign`" };
                        let why: String = why.chars().map(crate::table::tame).collect();
                        self.notes.say(&format!("line {}: {why}; it is kept as {kept}", frame.line));
                    }
                    self.stray(&frame.data);
                    self.flush_own().await?;
                }
                Err(Fault::Closed { .. }) => self.close(),
                Err(Fault::Other(error)) => return Err(error),
            }
        }
        Ok(())
    }

    /// Writes this command's own events; what the server does not take of them is left out.
    async fn flush_own(&mut self) -> Result<(), Error> {
        while !self.own.batch.is_empty() {
            match self.own.writer.write(&self.own.batch, false).await {
                Ok(_) => {
                    self.own.batch.clear();
                    self.last_sign = Instant::now();
                }
                Err(Fault::Frame { at, problem }) => {
                    self.own.batch.take(at);
                    self.refused += 1;
                    if problem.code() == Some("too_large") && self.strays_are_text {
                        self.is_full_of_text = true;
                        self.own.batch.clear();
                        self.notes.say("the run takes no more text; the rest of it is left out");
                    }
                }
                Err(Fault::Closed { .. }) => self.close(),
                Err(Fault::Other(error)) => return Err(error),
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

fn waiting(frame: impl Into<Bytes>) -> Waiting {
    Waiting { line: 0, name: None, data: frame.into() }
}
