//! Reads the lines of an export, and checks header, trailer, counts and order.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use runwire_log::transfer::line;
use runwire_log::{StoredRecord, TransferItem};
use tokio::sync::mpsc;

use super::{Header, LineKind, TransferCounts, VERSION};
use crate::failure::Failure;
use crate::input::{CHUNK_BYTES, InputSource};

/// Limits the bytes of one line, as the server does.
const LINE_BYTES: usize = 32 << 20;

/// A line, with its number from 1.
pub(super) struct ExportLine {
    pub(super) number: u64,
    pub(super) kind: LineKind,
    pub(super) bytes: Bytes,
    /// The decoded record, if requested.
    pub(super) stored: Option<Arc<StoredRecord>>,
}

/// A message of the reading thread.
pub(super) enum ReadAhead {
    /// Lines, and the bytes read so far.
    Lines(Vec<ExportLine>, u64),
    /// The file is read completely, or failed.
    End(Result<TransferCounts, Failure>),
}

/// Bytes of lines in one message.
const MAX_BATCH_BYTES: usize = 64 * 1024;
/// Capacity of the channel.
const BATCHES: usize = 8;

/// Reads a file line by line.
pub(super) struct ExportReader {
    source: InputSource,
    bytes: BytesMut,
    scanned: usize,
    read: u64,
    number: u64,
    ended: bool,
    /// Whether the last line has no line end.
    is_truncated: bool,
    /// Whether a thread is open.
    in_thread: bool,
    has_header: bool,
    has_trailer: bool,
    counts: TransferCounts,
}

impl ExportReader {
    pub(super) fn new(source: InputSource) -> Self {
        Self {
            source,
            bytes: BytesMut::new(),
            scanned: 0,
            read: 0,
            number: 0,
            ended: false,
            is_truncated: false,
            in_thread: false,
            has_header: false,
            has_trailer: false,
            counts: TransferCounts::default(),
        }
    }

    /// Reads on a separate thread, as a pipe may block. With `decode_records`, records are decoded too.
    pub(super) fn read_ahead(mut self, decode_records: bool) -> mpsc::Receiver<ReadAhead> {
        let (sender, receiver) = mpsc::channel(BATCHES);
        std::thread::spawn(move || {
            let ended = self.read_into(&sender, decode_records);
            // The receiver is dropped if the import was aborted.
            let _ = sender.blocking_send(ReadAhead::End(ended.map(|()| self.counts)));
        });
        receiver
    }

    fn read_into(&mut self, sender: &mpsc::Sender<ReadAhead>, decode_records: bool) -> Result<(), Failure> {
        let (mut lines, mut bytes) = (Vec::new(), 0);
        loop {
            // Send what was read before waiting for the pipe.
            if !lines.is_empty() && (bytes >= MAX_BATCH_BYTES || !self.has_line()) {
                bytes = 0;
                if sender.blocking_send(ReadAhead::Lines(std::mem::take(&mut lines), self.read)).is_err() {
                    return Ok(());
                }
            }
            let next =
                self.next().and_then(|line| line.map(|line| self.decoded(line, decode_records)).transpose());
            if let Ok(Some(line)) = next {
                bytes += line.bytes.len();
                lines.push(line);
                continue;
            }
            let _ = sender.blocking_send(ReadAhead::Lines(lines, self.read));
            return next.map(drop);
        }
    }

    fn decoded(&self, mut line: ExportLine, decode_records: bool) -> Result<ExportLine, Failure> {
        if decode_records && line.kind == LineKind::Record {
            let read = line::read(&line.bytes).map_err(|bad| self.bad_line(&bad.to_string()))?;
            line.stored = if let TransferItem::Record(stored) = read { Some(stored) } else { None };
        }
        Ok(line)
    }

    /// Returns true if a complete line is buffered.
    fn has_line(&self) -> bool {
        memchr::memchr(b'\n', &self.bytes).is_some()
    }

    /// Returns the number of bytes read so far.
    pub(super) fn bytes_read(&self) -> u64 {
        self.read
    }

    /// Returns the counts of what was read.
    pub(super) fn counts(&self) -> TransferCounts {
        self.counts
    }

    /// Returns the next line of a thread; `None` at the end of a complete file.
    pub(super) fn next(&mut self) -> Result<Option<ExportLine>, Failure> {
        loop {
            let Some(bytes) = self.read_line()? else {
                return match (self.has_header, self.has_trailer) {
                    (_, true) => Ok(None),
                    (true, false) => {
                        Err(self
                            .bad_line("the file is cut off: its last line does not say how much there is"))
                    }
                    (false, false) => Err(self.bad_line("this is no export: it is empty")),
                };
            };
            if bytes.trim_ascii().is_empty() {
                continue;
            }
            if self.is_truncated
                && serde_json::from_slice::<serde::de::IgnoredAny>(&bytes).is_err()
                && self.has_header
            {
                return Err(self.bad_line("the file ends in the middle of this line: it is cut off"));
            }
            let kind = LineKind::of(&bytes);
            self.check(kind, &bytes)?;
            if !matches!(kind, LineKind::Header | LineKind::Trailer) {
                return Ok(Some(ExportLine { number: self.number, kind, bytes, stored: None }));
            }
        }
    }

    fn check(&mut self, kind: LineKind, bytes: &[u8]) -> Result<(), Failure> {
        if !self.has_header {
            return self.check_header(kind, bytes);
        }
        if self.has_trailer {
            return Err(self.bad_line("something follows the last line"));
        }
        match kind {
            LineKind::Header => return Err(self.bad_line("a second export begins; import them one by one")),
            LineKind::Other => return Err(self.bad_line("this line is none of an export")),
            LineKind::Thread if self.in_thread => {
                return Err(self.bad_line("the thread before this one has no end"));
            }
            LineKind::Thread => {
                self.in_thread = true;
                self.counts.threads += 1;
            }
            LineKind::Trailer => {
                let expected: TransferCounts =
                    serde_json::from_slice(bytes).map_err(|error| self.bad_line(&error.to_string()))?;
                if self.in_thread {
                    return Err(self.bad_line("the last thread has no end"));
                }
                if expected != self.counts {
                    let message = format!(
                        "lines are missing: there should be {expected}, and there are {}",
                        self.counts
                    );
                    return Err(self.bad_line(&message));
                }
                self.has_trailer = true;
            }
            _ if !self.in_thread => return Err(self.bad_line("this line belongs to no thread")),
            LineKind::Run => self.counts.runs += 1,
            LineKind::Record => self.counts.records += 1,
            LineKind::End => self.in_thread = false,
            LineKind::State => {}
        }
        Ok(())
    }

    fn check_header(&mut self, kind: LineKind, bytes: &[u8]) -> Result<(), Failure> {
        let header = match kind {
            LineKind::Header => serde_json::from_slice::<Header>(bytes).ok(),
            _ => None,
        };
        let header =
            header.ok_or_else(|| self.bad_line("this is no export: its first line does not say so"))?;
        if header.version != VERSION {
            let message = format!(
                "the file has version {}, and this program knows version {VERSION}; use another runwire",
                header.version
            );
            return Err(self.bad_line(&message));
        }
        self.has_header = true;
        Ok(())
    }

    /// Returns the error of the line read last.
    pub(super) fn bad_line(&self, message: &str) -> Failure {
        Failure::BadFile { name: self.source.name.clone(), line: self.number, message: message.to_owned() }
    }

    /// Returns the file's name.
    pub(super) fn name(&self) -> &str {
        &self.source.name
    }

    fn read_line(&mut self) -> Result<Option<Bytes>, Failure> {
        loop {
            if let Some(at) = memchr::memchr(b'\n', &self.bytes[self.scanned..]) {
                let line = self.bytes.split_to(self.scanned + at + 1).freeze();
                (self.scanned, self.number) = (0, self.number + 1);
                return Ok(Some(line.slice(..line.len() - 1)));
            }
            self.scanned = self.bytes.len();
            if self.scanned > LINE_BYTES {
                self.number += 1;
                return Err(self.bad_line(&format!("the line has more than {LINE_BYTES} bytes")));
            }
            if self.ended {
                let rest = self.bytes.split().freeze();
                self.scanned = 0;
                self.number += u64::from(!rest.is_empty());
                self.is_truncated = true;
                return Ok((!rest.is_empty()).then_some(rest));
            }
            let filled = self.bytes.len();
            self.bytes.resize(filled + CHUNK_BYTES, 0);
            let count = self.source.read(&mut self.bytes[filled..])?;
            self.bytes.truncate(filled + count);
            self.read += count as u64;
            self.ended = count == 0;
        }
    }
}
