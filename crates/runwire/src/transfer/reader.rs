//! The lines of a file that was exported, checked for what only the file as a whole tells.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use runwire_log::transfer::line;
use runwire_log::{StoredRecord, TransferItem};
use tokio::sync::mpsc;

use super::{Counts, Header, Kind, VERSION};
use crate::failure::Failure;
use crate::input::{PIECE, Source};

/// Bytes of one line; the server takes no longer ones.
const LINE_BYTES: usize = 32 << 20;

/// A line, with its number from 1.
pub(super) struct Line {
    pub(super) number: u64,
    pub(super) kind: Kind,
    pub(super) bytes: Bytes,
    /// What it says, where it is a record and somebody wants to know.
    pub(super) stored: Option<Arc<StoredRecord>>,
}

/// What is read of a file.
pub(super) enum Read {
    /// Some lines, and how many bytes were read for them.
    Lines(Vec<Line>, u64),
    /// The whole file is read, or it cannot be read further.
    End(Result<Counts, Failure>),
}

/// Bytes of lines that are handed on together.
const BATCH_BYTES: usize = 64 * 1024;
/// Batches that wait to be taken.
const BATCHES: usize = 8;

/// Reads a file line by line.
pub(super) struct Reader {
    source: Source,
    bytes: BytesMut,
    scanned: usize,
    read: u64,
    number: u64,
    ended: bool,
    /// Whether the last line has no end.
    is_cut_off: bool,
    /// Whether a thread has begun and not ended.
    in_thread: bool,
    begun: bool,
    over: bool,
    counts: Counts,
}

impl Reader {
    pub(super) fn new(source: Source) -> Self {
        Self {
            source,
            bytes: BytesMut::new(),
            scanned: 0,
            read: 0,
            number: 0,
            ended: false,
            is_cut_off: false,
            in_thread: false,
            begun: false,
            over: false,
            counts: Counts::default(),
        }
    }

    /// Reads on a thread of its own: a pipe may be silent for as long as it likes. With `look`, records are read, too.
    pub(super) fn read_ahead(mut self, look: bool) -> mpsc::Receiver<Read> {
        let (sender, receiver) = mpsc::channel(BATCHES);
        std::thread::spawn(move || {
            let ended = self.read_into(&sender, look);
            // Where nobody listens any more, nobody wants to know.
            let _ = sender.blocking_send(Read::End(ended.map(|()| self.counts)));
        });
        receiver
    }

    fn read_into(&mut self, sender: &mpsc::Sender<Read>, look: bool) -> Result<(), Failure> {
        let (mut lines, mut bytes) = (Vec::new(), 0);
        loop {
            // What is read is handed on before the pipe is waited for.
            if !lines.is_empty() && (bytes >= BATCH_BYTES || !self.has_line()) {
                bytes = 0;
                if sender.blocking_send(Read::Lines(std::mem::take(&mut lines), self.read)).is_err() {
                    return Ok(());
                }
            }
            let next = self.next().and_then(|line| line.map(|line| self.looked_at(line, look)).transpose());
            if let Ok(Some(line)) = next {
                bytes += line.bytes.len();
                lines.push(line);
                continue;
            }
            let _ = sender.blocking_send(Read::Lines(lines, self.read));
            return next.map(drop);
        }
    }

    fn looked_at(&self, mut line: Line, look: bool) -> Result<Line, Failure> {
        if look && line.kind == Kind::Record {
            let read = line::read(&line.bytes).map_err(|bad| self.wrong(&bad.to_string()))?;
            line.stored = if let TransferItem::Record(stored) = read { Some(stored) } else { None };
        }
        Ok(line)
    }

    /// Tells whether a whole line is there already.
    fn has_line(&self) -> bool {
        memchr::memchr(b'\n', &self.bytes).is_some()
    }

    /// Counts the bytes read so far.
    pub(super) fn bytes_read(&self) -> u64 {
        self.read
    }

    /// Tells what was read.
    pub(super) fn counts(&self) -> Counts {
        self.counts
    }

    /// Gives the next line that belongs to a thread; nothing at the end of a whole file.
    pub(super) fn next(&mut self) -> Result<Option<Line>, Failure> {
        loop {
            let Some(bytes) = self.cut()? else {
                return match (self.begun, self.over) {
                    (_, true) => Ok(None),
                    (true, false) => {
                        Err(self.wrong("the file is cut off: its last line does not say how much there is"))
                    }
                    (false, false) => Err(self.wrong("this is no export: it is empty")),
                };
            };
            if bytes.trim_ascii().is_empty() {
                continue;
            }
            if self.is_cut_off
                && serde_json::from_slice::<serde::de::IgnoredAny>(&bytes).is_err()
                && self.begun
            {
                return Err(self.wrong("the file ends in the middle of this line: it is cut off"));
            }
            let kind = Kind::of(&bytes);
            self.check(kind, &bytes)?;
            if !matches!(kind, Kind::Header | Kind::Trailer) {
                return Ok(Some(Line { number: self.number, kind, bytes, stored: None }));
            }
        }
    }

    fn check(&mut self, kind: Kind, bytes: &[u8]) -> Result<(), Failure> {
        if !self.begun {
            return self.check_header(kind, bytes);
        }
        if self.over {
            return Err(self.wrong("something follows the last line"));
        }
        match kind {
            Kind::Header => return Err(self.wrong("a second export begins; import them one by one")),
            Kind::Other => return Err(self.wrong("this line is none of an export")),
            Kind::Thread if self.in_thread => return Err(self.wrong("the thread before this one has no end")),
            Kind::Thread => {
                self.in_thread = true;
                self.counts.threads += 1;
            }
            Kind::Trailer => {
                let told: Counts =
                    serde_json::from_slice(bytes).map_err(|error| self.wrong(&error.to_string()))?;
                if self.in_thread {
                    return Err(self.wrong("the last thread has no end"));
                }
                if told != self.counts {
                    let message =
                        format!("lines are missing: there should be {told}, and there are {}", self.counts);
                    return Err(self.wrong(&message));
                }
                self.over = true;
            }
            _ if !self.in_thread => return Err(self.wrong("this line belongs to no thread")),
            Kind::Run => self.counts.runs += 1,
            Kind::Record => self.counts.records += 1,
            Kind::End => self.in_thread = false,
            Kind::State => {}
        }
        Ok(())
    }

    fn check_header(&mut self, kind: Kind, bytes: &[u8]) -> Result<(), Failure> {
        let header = match kind {
            Kind::Header => serde_json::from_slice::<Header>(bytes).ok(),
            _ => None,
        };
        let header = header.ok_or_else(|| self.wrong("this is no export: its first line does not say so"))?;
        if header.version != VERSION {
            let message = format!(
                "the file has version {}, and this program knows version {VERSION}; use another runwire",
                header.version
            );
            return Err(self.wrong(&message));
        }
        self.begun = true;
        Ok(())
    }

    /// Says what is wrong with the line that was read last.
    pub(super) fn wrong(&self, message: &str) -> Failure {
        Failure::BadFile { name: self.source.name.clone(), line: self.number, message: message.to_owned() }
    }

    /// Tells what the file is called.
    pub(super) fn name(&self) -> &str {
        &self.source.name
    }

    fn cut(&mut self) -> Result<Option<Bytes>, Failure> {
        loop {
            if let Some(at) = memchr::memchr(b'\n', &self.bytes[self.scanned..]) {
                let line = self.bytes.split_to(self.scanned + at + 1).freeze();
                (self.scanned, self.number) = (0, self.number + 1);
                return Ok(Some(line.slice(..line.len() - 1)));
            }
            self.scanned = self.bytes.len();
            if self.scanned > LINE_BYTES {
                self.number += 1;
                return Err(self.wrong(&format!("the line has more than {LINE_BYTES} bytes")));
            }
            if self.ended {
                let rest = self.bytes.split().freeze();
                self.scanned = 0;
                self.number += u64::from(!rest.is_empty());
                self.is_cut_off = true;
                return Ok((!rest.is_empty()).then_some(rest));
            }
            let filled = self.bytes.len();
            self.bytes.resize(filled + PIECE, 0);
            let count = self.source.read(&mut self.bytes[filled..])?;
            self.bytes.truncate(filled + count);
            self.read += count as u64;
            self.ended = count == 0;
        }
    }
}
