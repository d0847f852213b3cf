//! Output modes of a run: a view for people, or frames for programs.

use std::io::{self, Write};

use runwire_client::ReceivedFrame;
use runwire_model::dialect::Dialect;
use runwire_model::framing::{Framing, write_frame};

use crate::arguments::{OutputArguments, OutputFormat};
use crate::failure::Failure;

/// Bytes that are buffered before they are written.
const MAX_BUFFER_BYTES: usize = 64 << 10;

/// How a run is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PrintMode {
    /// A view for people; `plain` is without colours and changing lines.
    View { plain: bool },
    /// Frames of a dialect.
    Frames(PrintFormat, Dialect),
}

/// The format of printed frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PrintFormat {
    /// One JSON object per line.
    Ndjson,
    /// Server-sent events with their cursors.
    Sse,
    /// `text`: only the text, and a final line end.
    PlainText,
    /// `text`: one JSON string per line.
    JsonStrings,
}

impl OutputArguments {
    /// Returns the mode of the arguments.
    pub(crate) fn print_mode(&self) -> Result<PrintMode, Failure> {
        let conflict = |format: &str, dialect: Dialect| {
            let message = format!("`-o {format}` does not go with `--dialect {}`", dialect.name());
            Err(Failure::Usage { message, hint: "leave one of them out" })
        };
        let or_canonical = |dialect: Option<Dialect>| dialect.unwrap_or(Dialect::Runwire);
        Ok(match (self.output, self.dialect) {
            (Some(OutputFormat::Pretty), Some(dialect)) => return conflict("pretty", dialect),
            (Some(OutputFormat::Plain), Some(dialect)) => return conflict("plain", dialect),
            (Some(OutputFormat::Text), Some(dialect)) if dialect != Dialect::Text => {
                return conflict("text", dialect);
            }
            (None | Some(OutputFormat::Pretty), None) => PrintMode::View { plain: false },
            (Some(OutputFormat::Plain), None) => PrintMode::View { plain: true },
            (Some(OutputFormat::Text), _) | (None, Some(Dialect::Text)) => {
                PrintMode::Frames(PrintFormat::PlainText, Dialect::Text)
            }
            (Some(OutputFormat::Ndjson), Some(Dialect::Text)) => {
                PrintMode::Frames(PrintFormat::JsonStrings, Dialect::Text)
            }
            (Some(OutputFormat::Sse), dialect) => PrintMode::Frames(PrintFormat::Sse, or_canonical(dialect)),
            (None | Some(OutputFormat::Ndjson), dialect) => {
                PrintMode::Frames(PrintFormat::Ndjson, or_canonical(dialect))
            }
        })
    }
}

/// Prints frames.
pub(super) struct Printer {
    format: PrintFormat,
    stdout: io::Stdout,
    buffer: Vec<u8>,
    /// Whether the last line of text has no line end.
    has_text: bool,
}

impl Printer {
    pub(super) fn new(format: PrintFormat) -> Self {
        Self { format, stdout: io::stdout(), buffer: Vec::new(), has_text: false }
    }

    /// Buffers a frame.
    pub(super) fn push(&mut self, frame: &ReceivedFrame) -> Result<(), Failure> {
        let (data, out) = (&frame.data[..], &mut self.buffer);
        match self.format {
            PrintFormat::Ndjson => {
                out.extend_from_slice(data);
                out.push(b'\n');
            }
            PrintFormat::Sse => {
                let cursor = frame.cursor.map(|cursor| cursor.to_string());
                write_frame(Framing::Sse, out, cursor.as_deref(), frame.name().as_deref(), data);
            }
            PrintFormat::PlainText => {
                // No extra line end after the text's own.
                self.has_text = data.last().map_or(self.has_text, |last| *last != b'\n');
                out.extend_from_slice(data);
            }
            PrintFormat::JsonStrings => {
                out.extend_from_slice(serde_json::Value::from(frame.text()).to_string().as_bytes());
                out.push(b'\n');
            }
        }
        if self.buffer.len() >= MAX_BUFFER_BYTES { self.flush() } else { Ok(()) }
    }

    /// Writes the buffer and flushes standard output.
    pub(super) fn flush(&mut self) -> Result<(), Failure> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        self.stdout.write_all(&self.buffer).map_err(Failure::Write)?;
        self.buffer.clear();
        // Free the memory of one huge frame.
        self.buffer.shrink_to(128 << 10);
        self.stdout.flush().map_err(Failure::Write)
    }

    /// Ends the output.
    pub(super) fn finish(&mut self) -> Result<(), Failure> {
        if self.has_text {
            self.buffer.push(b'\n');
        }
        self.flush()
    }
}
