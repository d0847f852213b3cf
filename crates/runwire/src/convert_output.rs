//! Buffered output of `runwire convert`.

use std::io::{self, StdoutLock, Write};

use runwire_model::convert::Converted;
use runwire_model::framing::{Framing, write_frame};

use crate::failure::Failure;

/// Bytes that are buffered before they are written.
const BATCH: usize = 64 * 1024;

/// The format of frames in the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConvertFormat {
    /// One JSON object per line.
    Ndjson,
    /// Server-sent events with the cursor as their id.
    Sse,
    /// `text`: only the text, and a final line end.
    PlainText,
    /// `text`: one JSON string per line.
    JsonStrings,
}

pub(crate) struct ConvertOutput {
    format: ConvertFormat,
    /// Index of a record's first frame in cursors.
    first_frame: u32,
    stdout: StdoutLock<'static>,
    buffer: Vec<u8>,
    /// The run whose text was written last.
    text_of: Option<String>,
}

impl ConvertOutput {
    pub(crate) fn new(format: ConvertFormat, first_frame: u32) -> Self {
        let buffer = Vec::with_capacity(BATCH);
        Self { format, first_frame, stdout: io::stdout().lock(), buffer, text_of: None }
    }

    /// Buffers the frames of a record; [`ConvertOutput::write_batch`] or [`ConvertOutput::flush`] writes them.
    pub(crate) fn push(&mut self, converted: &Converted<'_>) {
        let out = &mut self.buffer;
        for (k, (name, data)) in (self.first_frame..).zip(converted.frames.iter()) {
            match self.format {
                ConvertFormat::Ndjson => write_frame(Framing::Ndjson, out, None, None, data),
                ConvertFormat::Sse => {
                    let cursor = format!("{}-{k}", converted.record.seq);
                    write_frame(Framing::Sse, out, Some(&cursor), name, data);
                }
                ConvertFormat::PlainText => {
                    if self.text_of.as_deref() != Some(converted.run_id) {
                        let is_first = self.text_of.replace(converted.run_id.to_owned()).is_none();
                        out.extend_from_slice(if is_first { b"" } else { b"\n\n" });
                    }
                    out.extend_from_slice(data);
                }
                ConvertFormat::JsonStrings => {
                    let text = String::from_utf8_lossy(data);
                    out.extend_from_slice(serde_json::Value::from(text).to_string().as_bytes());
                    out.push(b'\n');
                }
            }
        }
    }

    /// Writes the buffer if it is full.
    pub(crate) fn write_batch(&mut self) -> Result<(), Failure> {
        if self.buffer.len() >= BATCH { self.write() } else { Ok(()) }
    }

    /// Writes the buffer and flushes standard output.
    pub(crate) fn flush(&mut self) -> Result<(), Failure> {
        self.write()?;
        self.stdout.flush().map_err(Failure::Write)
    }

    /// Ends the output.
    pub(crate) fn finish(&mut self) -> Result<(), Failure> {
        if self.text_of.is_some() {
            self.buffer.push(b'\n');
        }
        self.flush()
    }

    fn write(&mut self) -> Result<(), Failure> {
        self.stdout.write_all(&self.buffer).map_err(Failure::Write)?;
        self.buffer.clear();
        // Free the memory of one huge frame.
        self.buffer.shrink_to(2 * BATCH);
        Ok(())
    }
}
