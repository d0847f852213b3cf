//! How `tail` prints frames.

use std::io::{self, StdoutLock, Write};

use runwire_model::dialect::Dialect;

use super::events::Event;
use crate::arguments::{TailArguments, TailForm};
use crate::failure::Failure;

/// How frames stand in the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// One JSON object a line.
    Lines,
    /// Server-sent events as the server wrote them.
    Events,
    /// `text`: nothing but the text, and a line end after it.
    BareText,
    /// `text`: one JSON string a line.
    Strings,
}

pub(super) struct Printer {
    form: Form,
    pub(super) dialect: Dialect,
    stdout: StdoutLock<'static>,
    gathered: Vec<u8>,
    has_text: bool,
}

impl Printer {
    pub(super) fn new(arguments: &TailArguments) -> Result<Self, Failure> {
        let (form, dialect) = match (arguments.output, arguments.dialect) {
            (Some(TailForm::Text), Some(dialect)) if dialect != Dialect::Text => {
                let message =
                    format!("`-o text` is the `text` dialect, and --dialect says `{}`", dialect.name());
                return Err(Failure::Usage { message, hint: "leave one of them out" });
            }
            (Some(TailForm::Text), _) | (None, Some(Dialect::Text)) => (Form::BareText, Dialect::Text),
            (Some(TailForm::Ndjson), Some(Dialect::Text)) => (Form::Strings, Dialect::Text),
            (Some(TailForm::Sse), dialect) => (Form::Events, dialect.unwrap_or(Dialect::Runwire)),
            (_, dialect) => (Form::Lines, dialect.unwrap_or(Dialect::Runwire)),
        };
        let stdout = io::stdout().lock();
        Ok(Self { form, dialect, stdout, gathered: Vec::new(), has_text: false })
    }

    /// Gathers an event; signs of life are the connection's affair and are not printed.
    pub(super) fn gather(&mut self, event: &Event) {
        let Some(data) = &event.data else { return };
        let out = &mut self.gathered;
        match self.form {
            Form::Lines => {
                out.extend_from_slice(data);
                out.push(b'\n');
            }
            Form::Events => out.extend_from_slice(&event.raw),
            Form::BareText => {
                self.has_text |= !data.is_empty();
                out.extend_from_slice(data);
            }
            Form::Strings => {
                let text = String::from_utf8_lossy(data);
                out.extend_from_slice(serde_json::Value::from(text).to_string().as_bytes());
                out.push(b'\n');
            }
        }
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

    /// Drops what was gathered and will come again.
    pub(super) fn forget(&mut self) {
        self.gathered.clear();
    }

    /// Ends the output.
    pub(super) fn finish(&mut self) -> Result<(), Failure> {
        if self.has_text {
            self.gathered.push(b'\n');
        }
        self.flush()
    }
}
