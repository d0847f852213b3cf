//! How a run is printed: as a person reads it, or its frames for a program.

use std::io::{self, Write};

use runwire_client::ReceivedFrame;
use runwire_model::dialect::Dialect;
use runwire_model::framing::{Framing, write_frame};

use crate::arguments::{OutputArguments, OutputForm};
use crate::failure::Failure;

/// Bytes that are gathered before they are printed.
const GATHERED_BYTES: usize = 64 << 10;

/// What is printed of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Printed {
    /// What a person reads; `plain` without colours and lines that change.
    View { plain: bool },
    /// Frames of a dialect.
    Frames(Form, Dialect),
}

/// How frames stand in the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// One JSON object a line.
    Lines,
    /// Server-sent events with their cursors.
    Events,
    /// `text`: nothing but the text, and a line end after it.
    BareText,
    /// `text`: one JSON string a line.
    Strings,
}

impl OutputArguments {
    /// Tells what is to be printed.
    pub(crate) fn printed(&self) -> Result<Printed, Failure> {
        let odd = |form: &str, dialect: Dialect| {
            let message = format!("`-o {form}` does not go with `--dialect {}`", dialect.name());
            Err(Failure::Usage { message, hint: "leave one of them out" })
        };
        let or_canonical = |dialect: Option<Dialect>| dialect.unwrap_or(Dialect::Runwire);
        Ok(match (self.output, self.dialect) {
            (Some(OutputForm::Pretty), Some(dialect)) => return odd("pretty", dialect),
            (Some(OutputForm::Plain), Some(dialect)) => return odd("plain", dialect),
            (Some(OutputForm::Text), Some(dialect)) if dialect != Dialect::Text => {
                return odd("text", dialect);
            }
            (None | Some(OutputForm::Pretty), None) => Printed::View { plain: false },
            (Some(OutputForm::Plain), None) => Printed::View { plain: true },
            (Some(OutputForm::Text), _) | (None, Some(Dialect::Text)) => {
                Printed::Frames(Form::BareText, Dialect::Text)
            }
            (Some(OutputForm::Ndjson), Some(Dialect::Text)) => Printed::Frames(Form::Strings, Dialect::Text),
            (Some(OutputForm::Sse), dialect) => Printed::Frames(Form::Events, or_canonical(dialect)),
            (None | Some(OutputForm::Ndjson), dialect) => Printed::Frames(Form::Lines, or_canonical(dialect)),
        })
    }
}

/// Prints frames.
pub(super) struct Printer {
    form: Form,
    stdout: io::Stdout,
    gathered: Vec<u8>,
    /// Whether text stands on the last line.
    has_text: bool,
}

impl Printer {
    pub(super) fn new(form: Form) -> Self {
        Self { form, stdout: io::stdout(), gathered: Vec::new(), has_text: false }
    }

    /// Gathers a frame; what has come together is printed together.
    pub(super) fn gather(&mut self, frame: &ReceivedFrame) -> Result<(), Failure> {
        let (data, out) = (&frame.data[..], &mut self.gathered);
        match self.form {
            Form::Lines => {
                out.extend_from_slice(data);
                out.push(b'\n');
            }
            Form::Events => {
                let cursor = frame.cursor.map(|cursor| cursor.to_string());
                write_frame(Framing::Sse, out, cursor.as_deref(), frame.name().as_deref(), data);
            }
            Form::BareText => {
                // The text's own last line end is enough.
                self.has_text = data.last().map_or(self.has_text, |last| *last != b'\n');
                out.extend_from_slice(data);
            }
            Form::Strings => {
                out.extend_from_slice(serde_json::Value::from(frame.text()).to_string().as_bytes());
                out.push(b'\n');
            }
        }
        if self.gathered.len() >= GATHERED_BYTES { self.flush() } else { Ok(()) }
    }

    /// Prints what was gathered and lets readers see it.
    pub(super) fn flush(&mut self) -> Result<(), Failure> {
        if self.gathered.is_empty() {
            return Ok(());
        }
        self.stdout.write_all(&self.gathered).map_err(Failure::Write)?;
        self.gathered.clear();
        // One huge frame must not weigh on the rest of a long stream.
        self.gathered.shrink_to(128 << 10);
        self.stdout.flush().map_err(Failure::Write)
    }

    /// Ends the output.
    pub(super) fn finish(&mut self) -> Result<(), Failure> {
        if self.has_text {
            self.gathered.push(b'\n');
        }
        self.flush()
    }
}
