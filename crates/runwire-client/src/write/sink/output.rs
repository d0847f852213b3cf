//! The sink that writes to standard output, a file or any byte stream, in any dialect and framing.

use std::path::Path;

use runwire_model::convert::{Converted, Converter, Options};
use runwire_model::dialect::Dialect;
use runwire_model::framing::{Framing, write_frame};
use tokio::fs::File;
use tokio::io::{AsyncWrite, AsyncWriteExt, Stdout};

use super::{EngineSink, Receipt, SendBatch, SendError, SinkContext};
use crate::write::EngineFailure;
use crate::write::engine::DIALECT;

/// Writes a run to a byte stream, exactly as `runwire convert` would.
///
/// Every batch is flushed before it is acknowledged. In NDJSON the frames of the `text` dialect are JSON
/// strings; [`OutputSink::plain_text`] writes the text alone. A run that has not ended when the engine is closed has
/// failed with the code `stream_ended`, as any converted stream that breaks off.
#[derive(Debug)]
pub struct OutputSink<W> {
    writer: W,
    converter: Converter,
    format: OutputFormat,
    /// The converted bytes of a batch.
    out: Vec<u8>,
}

/// The format of frames in the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OutputFormat {
    Framed(Framing),
    JsonStrings,
    PlainText,
}

impl OutputSink<Stdout> {
    /// Writes to standard output.
    pub fn stdout(dialect: Dialect, framing: Framing) -> Self {
        Self::new(tokio::io::stdout(), dialect, framing)
    }
}

impl OutputSink<File> {
    /// Writes to a file, which is created or truncated.
    pub async fn file(path: impl AsRef<Path>, dialect: Dialect, framing: Framing) -> std::io::Result<Self> {
        Ok(Self::new(File::create(path).await?, dialect, framing))
    }
}

impl<W: AsyncWrite + Unpin + Send + 'static> OutputSink<W> {
    /// Writes to a byte stream.
    pub fn new(writer: W, dialect: Dialect, framing: Framing) -> Self {
        let format = match (dialect, framing) {
            (Dialect::Text, Framing::Ndjson | Framing::Json) => OutputFormat::JsonStrings,
            _ => OutputFormat::Framed(framing),
        };
        Self::with(writer, dialect, format)
    }

    /// Writes only the answer's text, with a final line end.
    pub fn plain_text(writer: W) -> Self {
        Self::with(writer, Dialect::Text, OutputFormat::PlainText)
    }

    fn with(writer: W, dialect: Dialect, format: OutputFormat) -> Self {
        let options = Options { from: Some(DIALECT), ..Options::to(dialect) };
        Self { writer, converter: Converter::new(options), format, out: Vec::new() }
    }

    async fn flush(&mut self) -> std::io::Result<()> {
        self.writer.write_all(&self.out).await?;
        self.out.clear();
        self.writer.flush().await
    }
}

impl<W: AsyncWrite + Unpin + Send + 'static> EngineSink for OutputSink<W> {
    async fn send(&mut self, batch: &SendBatch, _: &SinkContext) -> Result<Receipt, SendError> {
        let (out, format) = (&mut self.out, self.format);
        for (sequence, frame) in batch.frames() {
            let pushed = self
                .converter
                .push(sequence + 1, None, &frame, &mut |converted| write(out, format, &converted));
            // The preflight check uses the same decoder and guard, so only a bug gets here.
            pushed.map_err(|error| EngineFailure::Sink(std::sync::Arc::new(error)))?;
        }
        self.flush().await?;
        Ok(Receipt::default())
    }

    async fn close(&mut self) -> Result<(), EngineFailure> {
        let (out, format) = (&mut self.out, self.format);
        let finished = self.converter.finish(&mut |converted| write(out, format, &converted));
        finished.map_err(|error| EngineFailure::Sink(std::sync::Arc::new(error)))?;
        if format == OutputFormat::PlainText {
            out.push(b'\n');
        }
        self.flush().await?;
        Ok(self.writer.shutdown().await?)
    }
}

fn write(out: &mut Vec<u8>, format: OutputFormat, converted: &Converted<'_>) {
    for (k, (name, data)) in converted.frames.iter().enumerate() {
        match format {
            OutputFormat::Framed(Framing::Sse) => {
                let cursor = format!("{}-{k}", converted.record.seq);
                write_frame(Framing::Sse, out, Some(&cursor), name, data);
            }
            OutputFormat::Framed(framing) => write_frame(framing, out, None, None, data),
            OutputFormat::PlainText => out.extend_from_slice(data),
            OutputFormat::JsonStrings => {
                let text = String::from_utf8_lossy(data);
                out.extend_from_slice(runwire_model::Json::string(&text).text().as_bytes());
                out.push(b'\n');
            }
        }
    }
}
