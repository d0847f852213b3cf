//! Parses a program's output into frames and stray lines; detects its framing and dialect.

use bytes::Bytes;
use runwire_model::dialect::{Dialect, detect};
use runwire_model::framing::{Framing, FramingError, Unframer, is_end_mark};
use runwire_model::json::Object;

use crate::client::batch::QueuedFrame;

/// Limits the bytes that framing detection looks at.
const SNIFFED_BYTES: usize = 64 << 10;
/// Limits the blank lines that are kept between two stray lines.
const BLANK_LINES: u64 = 100;
/// Limits the lines that wait until the dialect is detected.
const UNDECIDED_LINES: usize = 16;

/// An item of a program's output.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum OutputItem {
    /// The dialect of all following frames was detected.
    Dialect(Dialect),
    /// A JSON object; the server may still refuse it.
    Frame(QueuedFrame),
    /// A line that is not a frame.
    Stray(Bytes),
    /// A line that exceeds the frame limit.
    TooLong { line: u64 },
}

/// Incremental parser of a program's output.
#[derive(Debug)]
pub(super) struct OutputParser {
    framing: Option<Framing>,
    /// The first bytes, until the framing is detected.
    first: Vec<u8>,
    unframer: Option<Unframer>,
    dialect: Option<Dialect>,
    /// Lines since the first object, until the dialect is detected.
    held: Vec<OutputItem>,
    /// Number of the last line, if it was stray.
    stray: Option<u64>,
}

impl OutputParser {
    /// Creates a parser; framing and dialect are detected unless given.
    pub(super) fn new(framing: Option<Framing>, dialect: Option<Dialect>) -> Self {
        Self { framing, first: Vec::new(), unframer: None, dialect, held: Vec::new(), stray: None }
    }

    /// Parses a chunk of output, and returns the complete items.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Vec<OutputItem> {
        match &mut self.unframer {
            Some(unframer) => unframer.push(bytes),
            None => {
                self.first.extend_from_slice(bytes);
                let found = self.framing.or_else(|| detect_framing(&self.first));
                let found = found.or((self.first.len() > SNIFFED_BYTES).then_some(Framing::Ndjson));
                let Some(framing) = found else { return Vec::new() };
                self.begin(framing);
            }
        }
        self.parse()
    }

    /// Returns the remaining items at the end of the output.
    pub(super) fn finish(&mut self) -> Vec<OutputItem> {
        if self.unframer.is_none() {
            self.begin(self.framing.unwrap_or(Framing::Ndjson));
        }
        if let Some(unframer) = &mut self.unframer {
            unframer.finish();
        }
        let mut items = self.parse();
        self.release_as_stray(&mut items);
        items
    }

    fn begin(&mut self, framing: Framing) {
        let mut unframer = Unframer::new(framing);
        unframer.push(&std::mem::take(&mut self.first));
        self.unframer = Some(unframer);
    }

    fn parse(&mut self) -> Vec<OutputItem> {
        let mut items = Vec::new();
        let Some(mut unframer) = self.unframer.take() else { return items };
        while let Some(cut) = unframer.next() {
            match cut {
                Ok(frame) if is_end_mark(frame.data) => {}
                Ok(frame) => {
                    let data = Bytes::copy_from_slice(frame.data);
                    let (line, before) = (frame.line, self.stray.take());
                    match Object::parse(&data) {
                        Ok(object) => {
                            let found = self.dialect.is_none().then(|| detect(&object).ok()).flatten();
                            let name = frame.name.map(str::to_owned);
                            let frame = QueuedFrame { line: frame.line, name, data: data.clone() };
                            self.frame(frame, found, &mut items);
                        }
                        Err(_) => {
                            // Blank lines are not frames, but part of a text.
                            let blank = before.map_or(0, |before| line.saturating_sub(before + 1));
                            for _ in 0..blank.min(BLANK_LINES) {
                                self.push_line(OutputItem::Stray(Bytes::new()), &mut items);
                            }
                            self.push_line(OutputItem::Stray(data), &mut items);
                            self.stray = Some(line);
                        }
                    }
                }
                Err(FramingError::TooLong { line } | FramingError::NameTooLong { line }) => {
                    self.push_line(OutputItem::TooLong { line }, &mut items);
                }
                // Only JSON arrays fail like this, which are not used here.
                Err(FramingError::NotJson { .. }) => break,
            }
        }
        self.unframer = Some(unframer);
        items
    }

    /// Emits a frame, or holds it until the dialect is detected.
    fn frame(&mut self, frame: QueuedFrame, found: Option<Dialect>, items: &mut Vec<OutputItem>) {
        if let Some(dialect) = found {
            self.dialect = Some(dialect);
            items.push(OutputItem::Dialect(dialect));
            items.append(&mut self.held);
        }
        if self.dialect.is_some() {
            return items.push(OutputItem::Frame(frame));
        }
        self.held.push(OutputItem::Frame(frame));
        self.release_if_full(items);
    }

    /// Emits a line, or holds it behind the held ones.
    fn push_line(&mut self, line: OutputItem, items: &mut Vec<OutputItem>) {
        if self.held.is_empty() {
            return items.push(line);
        }
        self.held.push(line);
        self.release_if_full(items);
    }

    fn release_if_full(&mut self, items: &mut Vec<OutputItem>) {
        if self.held.len() >= UNDECIDED_LINES {
            self.release_as_stray(items);
        }
    }

    /// Emits the held frames as stray lines.
    fn release_as_stray(&mut self, items: &mut Vec<OutputItem>) {
        items.extend(self.held.drain(..).map(|held| match held {
            OutputItem::Frame(frame) => OutputItem::Stray(frame.data),
            other => other,
        }));
    }
}

/// Detects the framing from the first bytes. A line that starts with a bracket is a log line, not a JSON array.
fn detect_framing(first: &[u8]) -> Option<Framing> {
    match Framing::detect(first)? {
        Framing::Sse => Some(Framing::Sse),
        Framing::Ndjson | Framing::Json => Some(Framing::Ndjson),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(parser: &mut OutputParser, text: &str) -> Vec<String> {
        let mut items = Vec::new();
        // Byte by byte.
        for byte in text.as_bytes() {
            items.extend(parser.push(&[*byte]));
        }
        items.extend(parser.finish());
        let text = |bytes: &Bytes| String::from_utf8_lossy(bytes).into_owned();
        let shown = items.iter().map(|item| match item {
            OutputItem::Dialect(dialect) => format!("speaks {}", dialect.name()),
            OutputItem::Frame(QueuedFrame { line, name, data }) => {
                format!("{line} {}{}", name.as_deref().unwrap_or_default(), text(data))
            }
            OutputItem::Stray(line) => format!("stray {}", text(line)),
            OutputItem::TooLong { line } => format!("too long {line}"),
        });
        shown.collect()
    }

    #[test]
    fn frames_and_stray_lines_keep_their_order() {
        let output =
            "[INFO] hello\n{\"type\":\"run_start\"}\n\nno frame\n[1]\n{\"reply\":\"Hi.\"}\ndata: [DONE]\n";
        let items = parsed(&mut OutputParser::new(None, None), output);
        let expected = [
            "stray [INFO] hello",
            "speaks loom",
            "2 {\"type\":\"run_start\"}",
            "stray no frame",
            "stray [1]",
            "6 {\"reply\":\"Hi.\"}",
            "stray data: [DONE]",
        ];
        assert_eq!(items, expected);
    }

    #[test]
    fn frames_wait_until_the_dialect_is_detected() {
        let output = "{\"mood\":1}\nlog\n{\"type\":\"node_enter\",\"id\":\"n\"}\n";
        let items = parsed(&mut OutputParser::new(None, None), output);
        let frames =
            ["speaks loom", "1 {\"mood\":1}", "stray log", "3 {\"type\":\"node_enter\",\"id\":\"n\"}"];
        assert_eq!(items, frames);
        assert_eq!(
            parsed(&mut OutputParser::new(None, Some(Dialect::Loom)), "{\"mood\":1}\n"),
            ["1 {\"mood\":1}"]
        );
        assert_eq!(
            parsed(&mut OutputParser::new(None, None), "{\"mood\":1}\nlog"),
            ["stray {\"mood\":1}", "stray log"]
        );
        let mut parser = OutputParser::new(None, None);
        assert_eq!(parser.push("{}\n".repeat(UNDECIDED_LINES).as_bytes()).len(), UNDECIDED_LINES);
    }

    #[test]
    fn server_sent_events_are_frames_with_names() {
        let output =
            ": hello\nevent: m\ndata: {\"reply\":1}\n\nid: 2\ndata: {\"reply\":2}\n\ndata: [DONE]\n\n";
        let items = parsed(&mut OutputParser::new(None, Some(Dialect::Loom)), output);
        assert_eq!(items, ["3 m{\"reply\":1}", "6 {\"reply\":2}"]);
    }
}
