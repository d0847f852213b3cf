//! Standard output, a file, or any other stream of bytes, in any dialect and framing.

use std::path::Path;

use runwire_model::convert::{Converted, Converter, Options};
use runwire_model::dialect::Dialect;
use runwire_model::framing::{Framing, write_frame};
use tokio::fs::File;
use tokio::io::{AsyncWrite, AsyncWriteExt, Stdout};

use super::{Batch, Link, Receipt, SendError, Sink};
use crate::write::Failure;

/// Writes a run to a stream of bytes, exactly as `runwire convert` would translate it.
///
/// Every batch is flushed before it counts as acknowledged. In NDJSON the frames of the `text` dialect are JSON
/// strings; [`OutputSink::bare_text`] writes the text alone. A run that has not ended when the engine is closed has
/// failed with the code `stream_ended`, as for any reader of a stream that breaks off.
#[derive(Debug)]
pub struct OutputSink<W> {
    writer: W,
    converter: Converter,
    form: Form,
    /// What a batch became.
    out: Vec<u8>,
}

/// How frames stand in the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Framed(Framing),
    Strings,
    BareText,
}

impl OutputSink<Stdout> {
    /// Writes to standard output.
    pub fn stdout(dialect: Dialect, framing: Framing) -> Self {
        Self::new(tokio::io::stdout(), dialect, framing)
    }
}

impl OutputSink<File> {
    /// Writes to a file, which is made anew.
    pub async fn file(path: impl AsRef<Path>, dialect: Dialect, framing: Framing) -> std::io::Result<Self> {
        Ok(Self::new(File::create(path).await?, dialect, framing))
    }
}

impl<W: AsyncWrite + Unpin + Send + 'static> OutputSink<W> {
    /// Writes to anything that takes bytes.
    pub fn new(writer: W, dialect: Dialect, framing: Framing) -> Self {
        let form = match (dialect, framing) {
            (Dialect::Text, Framing::Ndjson | Framing::Json) => Form::Strings,
            _ => Form::Framed(framing),
        };
        Self::with(writer, dialect, form)
    }

    /// Writes the answer's text alone, and a line end after it.
    pub fn bare_text(writer: W) -> Self {
        Self::with(writer, Dialect::Text, Form::BareText)
    }

    fn with(writer: W, dialect: Dialect, form: Form) -> Self {
        let options = Options { from: Some(Dialect::StreamingEngine), ..Options::to(dialect) };
        Self { writer, converter: Converter::new(options), form, out: Vec::new() }
    }

    async fn flush(&mut self) -> std::io::Result<()> {
        self.writer.write_all(&self.out).await?;
        self.out.clear();
        self.writer.flush().await
    }
}

impl<W: AsyncWrite + Unpin + Send + 'static> Sink for OutputSink<W> {
    async fn send(&mut self, batch: &Batch, _: &Link) -> Result<Receipt, SendError> {
        let (out, form) = (&mut self.out, self.form);
        for (sequence, frame) in batch.frames() {
            let pushed = self
                .converter
                .push(sequence + 1, None, &frame, &mut |converted| write(out, form, &converted));
            // The engine's own check is the same decoder and guard; only a bug gets here.
            pushed.map_err(|error| Failure::Sink(std::sync::Arc::new(error)))?;
        }
        self.flush().await?;
        Ok(Receipt::default())
    }

    async fn close(&mut self) -> Result<(), Failure> {
        let (out, form) = (&mut self.out, self.form);
        let finished = self.converter.finish(&mut |converted| write(out, form, &converted));
        finished.map_err(|error| Failure::Sink(std::sync::Arc::new(error)))?;
        if form == Form::BareText {
            out.push(b'\n');
        }
        self.flush().await?;
        Ok(self.writer.shutdown().await?)
    }
}

fn write(out: &mut Vec<u8>, form: Form, converted: &Converted<'_>) {
    for (k, (name, data)) in converted.frames.iter().enumerate() {
        match form {
            Form::Framed(Framing::Sse) => {
                let cursor = format!("{}-{k}", converted.record.seq);
                write_frame(Framing::Sse, out, Some(&cursor), name, data);
            }
            Form::Framed(framing) => write_frame(framing, out, None, None, data),
            Form::BareText => out.extend_from_slice(data),
            Form::Strings => {
                let text = String::from_utf8_lossy(data);
                out.extend_from_slice(runwire_model::Json::string(&text).text().as_bytes());
                out.push(b'\n');
            }
        }
    }
}
