//! Where converted frames are written.

use std::io::{self, StdoutLock, Write};

use runwire_model::convert::Converted;
use runwire_model::framing::{Framing, write_frame};

use crate::failure::Failure;

/// Bytes that are gathered before they are written, while nobody waits for them.
const BATCH: usize = 64 * 1024;

/// How frames stand in the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// One JSON object a line.
    Lines,
    /// Server-sent events with the cursor as their id.
    Events,
    /// `text`: nothing but the text, and a line end after it.
    BareText,
    /// `text`: one JSON string a line.
    Strings,
}

pub(crate) struct Output {
    form: Form,
    /// The number of a record's first frame in cursors.
    first_frame: u32,
    stdout: StdoutLock<'static>,
    gathered: Vec<u8>,
    /// The run whose text was written last.
    text_of: Option<String>,
}

impl Output {
    pub(crate) fn new(form: Form, first_frame: u32) -> Self {
        let gathered = Vec::with_capacity(BATCH);
        Self { form, first_frame, stdout: io::stdout().lock(), gathered, text_of: None }
    }

    /// Gathers the frames of a record; [`Output::write_batch`] or [`Output::flush`] writes them.
    pub(crate) fn gather(&mut self, converted: &Converted<'_>) {
        let out = &mut self.gathered;
        for (k, (name, data)) in (self.first_frame..).zip(converted.frames.iter()) {
            match self.form {
                Form::Lines => write_frame(Framing::Ndjson, out, None, None, data),
                Form::Events => {
                    let cursor = format!("{}-{k}", converted.record.seq);
                    write_frame(Framing::Sse, out, Some(&cursor), name, data);
                }
                Form::BareText => {
                    if self.text_of.as_deref() != Some(converted.run_id) {
                        let is_first = self.text_of.replace(converted.run_id.to_owned()).is_none();
                        out.extend_from_slice(if is_first { b"" } else { b"\n\n" });
                    }
                    out.extend_from_slice(data);
                }
                Form::Strings => {
                    let text = String::from_utf8_lossy(data);
                    out.extend_from_slice(serde_json::Value::from(text).to_string().as_bytes());
                    out.push(b'\n');
                }
            }
        }
    }

    /// Writes what has been gathered once it is worth a write.
    pub(crate) fn write_batch(&mut self) -> Result<(), Failure> {
        if self.gathered.len() >= BATCH { self.write() } else { Ok(()) }
    }

    /// Writes everything and lets readers see it.
    pub(crate) fn flush(&mut self) -> Result<(), Failure> {
        self.write()?;
        self.stdout.flush().map_err(Failure::Write)
    }

    /// Ends the output.
    pub(crate) fn finish(&mut self) -> Result<(), Failure> {
        if self.text_of.is_some() {
            self.gathered.push(b'\n');
        }
        self.flush()
    }

    fn write(&mut self) -> Result<(), Failure> {
        self.stdout.write_all(&self.gathered).map_err(Failure::Write)?;
        self.gathered.clear();
        // One huge frame must not weigh on the rest of a long stream.
        self.gathered.shrink_to(2 * BATCH);
        Ok(())
    }
}
